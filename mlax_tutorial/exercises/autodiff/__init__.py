"""The exercises of the chapter Autodiff."""

from mlax_tutorial.exercises.autodiff.slopes import exercise as slopes
from mlax_tutorial.exercises.autodiff.step import exercise as step
from mlax_tutorial.exercises.autodiff.jacobian import exercise as jacobian
from mlax_tutorial.exercises.autodiff.trace import exercise as trace
from mlax_tutorial.exercises.autodiff.checked import exercise as checked
