"""The exercises of the chapter Autodiff."""

from mlax_tutorial.exercises.autodiff.slopes import exercise as slopes
from mlax_tutorial.exercises.autodiff.step import exercise as step
from mlax_tutorial.exercises.autodiff.trace import exercise as trace
from mlax_tutorial.exercises.autodiff.softplus import exercise as softplus
from mlax_tutorial.exercises.autodiff.clip_slope import exercise as clip_slope
from mlax_tutorial.exercises.autodiff.fixed_point import exercise as fixed_point
from mlax_tutorial.exercises.autodiff.pieces import exercise as pieces
