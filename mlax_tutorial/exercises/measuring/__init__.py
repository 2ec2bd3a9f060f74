"""The exercises of the chapter Measuring."""

from mlax_tutorial.exercises.measuring.benchmark import exercise as benchmark
from mlax_tutorial.exercises.measuring.roofline import exercise as roofline
from mlax_tutorial.exercises.measuring.found import exercise as found
from mlax_tutorial.exercises.measuring.transformer_flops import exercise as transformer_flops
from mlax_tutorial.exercises.measuring.utilization import exercise as utilization
from mlax_tutorial.exercises.measuring.turning_batch import exercise as turning_batch
from mlax_tutorial.exercises.measuring.in_segments import exercise as in_segments
