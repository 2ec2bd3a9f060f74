"""The exercises of the chapter Randomness."""

from mlax_tutorial.exercises.randomness.augment import exercise as augment
from mlax_tutorial.exercises.randomness.same import exercise as same
from mlax_tutorial.exercises.randomness.drop_batch import exercise as drop_batch
from mlax_tutorial.exercises.randomness.draws import exercise as draws
from mlax_tutorial.exercises.randomness.estimate_pi import exercise as estimate_pi
from mlax_tutorial.exercises.randomness.epochs import exercise as epochs
from mlax_tutorial.exercises.randomness.bootstrap import exercise as bootstrap
