"""The exercises of the chapter Shapes, memory, compiling ahead."""

from mlax_tutorial.exercises.compiling.bucketed import exercise as bucketed
from mlax_tutorial.exercises.compiling.masked_loss import exercise as masked_loss
from mlax_tutorial.exercises.compiling.run import exercise as run
