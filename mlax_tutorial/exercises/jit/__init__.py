"""The exercises of the chapter jit."""

from mlax_tutorial.exercises.jit.traces import exercise as traces
from mlax_tutorial.exercises.jit.counter import exercise as counter
from mlax_tutorial.exercises.jit.steady import exercise as steady
from mlax_tutorial.exercises.jit.jit_method import exercise as jit_method
from mlax_tutorial.exercises.jit.bucketed import exercise as bucketed
from mlax_tutorial.exercises.jit.masked_loss import exercise as masked_loss
from mlax_tutorial.exercises.jit.run import exercise as run
