"""The exercises of the chapter Convolution and pooling."""

from mlax_tutorial.exercises.convolution.patches import exercise as patches
from mlax_tutorial.exercises.convolution.same import exercise as same
from mlax_tutorial.exercises.convolution.separable import exercise as separable
from mlax_tutorial.exercises.convolution.receptive_field import exercise as receptive_field
from mlax_tutorial.exercises.convolution.transposed import exercise as transposed
from mlax_tutorial.exercises.convolution.global_pool import exercise as global_pool
