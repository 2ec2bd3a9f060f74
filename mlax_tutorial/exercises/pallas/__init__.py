"""The exercises of the chapter TPU and Pallas."""

from mlax_tutorial.exercises.pallas.index_maps import exercise as index_maps
from mlax_tutorial.exercises.pallas.block_sizes import exercise as block_sizes
from mlax_tutorial.exercises.pallas.column_sums import exercise as column_sums
from mlax_tutorial.exercises.pallas.matmul import exercise as matmul
from mlax_tutorial.exercises.pallas.two_cores import exercise as two_cores
from mlax_tutorial.exercises.pallas.rms_norm import exercise as rms_norm
from mlax_tutorial.exercises.pallas.attend import exercise as attend
