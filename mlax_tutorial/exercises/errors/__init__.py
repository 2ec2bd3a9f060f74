"""The exercises of the chapter Errors: ten broken functions."""

from mlax_tutorial.exercises.errors.clip_total import exercise as clip_total
from mlax_tutorial.exercises.errors.pick import exercise as pick
from mlax_tutorial.exercises.errors.mean_of_positive import exercise as mean_of_positive
from mlax_tutorial.exercises.errors.trajectory import exercise as trajectory
from mlax_tutorial.exercises.errors.window import exercise as window
from mlax_tutorial.exercises.errors.running_mean import exercise as running_mean
from mlax_tutorial.exercises.errors.train_step import exercise as train_step
from mlax_tutorial.exercises.errors.features import exercise as features
from mlax_tutorial.exercises.errors.entropy import exercise as entropy
from mlax_tutorial.exercises.errors.mean_log import exercise as mean_log
