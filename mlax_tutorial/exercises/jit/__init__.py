"""The exercises of the chapter jit."""

from mlax_tutorial.exercises.jit.traces import exercise as traces
from mlax_tutorial.exercises.jit.steady import exercise as steady
from mlax_tutorial.exercises.jit.settings import exercise as settings
from mlax_tutorial.exercises.jit.jit_method import exercise as jit_method
from mlax_tutorial.exercises.jit.stale import exercise as stale
from mlax_tutorial.exercises.jit.counter import exercise as counter
