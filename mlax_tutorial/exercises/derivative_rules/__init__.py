"""The exercises of the chapter Derivative rules of your own."""

from mlax_tutorial.exercises.derivative_rules.softplus import exercise as softplus
from mlax_tutorial.exercises.derivative_rules.clip_slope import exercise as clip_slope
from mlax_tutorial.exercises.derivative_rules.receives import exercise as receives
from mlax_tutorial.exercises.derivative_rules.fixed_point import exercise as fixed_point
from mlax_tutorial.exercises.derivative_rules.pieces import exercise as pieces
