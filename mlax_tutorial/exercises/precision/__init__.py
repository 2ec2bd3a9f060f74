"""The exercises of the chapter Precision."""

from mlax_tutorial.exercises.precision.numbers import exercise as numbers
from mlax_tutorial.exercises.precision.total import exercise as total
from mlax_tutorial.exercises.precision.rms_norm import exercise as rms_norm
from mlax_tutorial.exercises.precision.three_products import exercise as three_products
from mlax_tutorial.exercises.precision.adjust import exercise as adjust
from mlax_tutorial.exercises.precision.to_float16 import exercise as to_float16
