"""The exercises of the chapter Arrays."""

from mlax_tutorial.exercises.arrays.dtypes import exercise as dtypes
from mlax_tutorial.exercises.arrays.squared_error import exercise as squared_error
from mlax_tutorial.exercises.arrays.heat_step import exercise as heat_step
from mlax_tutorial.exercises.arrays.lookup import exercise as lookup
from mlax_tutorial.exercises.arrays.benchmark import exercise as benchmark
from mlax_tutorial.exercises.arrays.moving_average import exercise as moving_average
from mlax_tutorial.exercises.arrays.push import exercise as push
