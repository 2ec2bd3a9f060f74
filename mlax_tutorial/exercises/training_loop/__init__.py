"""The exercises of the chapter The training loop."""

from mlax_tutorial.exercises.training_loop.waits import exercise as waits
from mlax_tutorial.exercises.training_loop.running_mean import exercise as running_mean
from mlax_tutorial.exercises.training_loop.evaluate_mean import exercise as evaluate_mean
from mlax_tutorial.exercises.training_loop.train_and_validate import exercise as train_and_validate
from mlax_tutorial.exercises.training_loop.rate_finder import exercise as rate_finder
from mlax_tutorial.exercises.training_loop.batch_at import exercise as batch_at
