"""A training loop in pieces: shuffled batches, one compiled step, evaluation, a progress bar, a log.

Each is a small function that can be used without the others; `fit` puts them together.
"""

from mlax_tutorial.training.average import follow
from mlax_tutorial.training.evaluation import is_right, make_evaluation
from mlax_tutorial.training.log import Log
from mlax_tutorial.training.loop import batches, fit
from mlax_tutorial.training.progress import Progress
from mlax_tutorial.training.state import State
from mlax_tutorial.training.step import make_step

__all__ = ["Log", "Progress", "State", "batches", "fit", "follow", "is_right", "make_evaluation", "make_step"]
