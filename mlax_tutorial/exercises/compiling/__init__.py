"""The exercises of the chapter Shapes, memory, compiling ahead."""

from mlax_tutorial.exercises.compiling.compact import exercise as compact
from mlax_tutorial.exercises.compiling.bucketed import exercise as bucketed
from mlax_tutorial.exercises.compiling.masked_loss import exercise as masked_loss
from mlax_tutorial.exercises.compiling.run import exercise as run
from mlax_tutorial.exercises.compiling.ready import exercise as ready
from mlax_tutorial.exercises.compiling.any_length import exercise as any_length
