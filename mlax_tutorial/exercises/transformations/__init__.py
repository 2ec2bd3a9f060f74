"""The exercises of the chapter Your own transformation."""

from mlax_tutorial.exercises.transformations.reached import exercise as reached
from mlax_tutorial.exercises.transformations.rounded import exercise as rounded
from mlax_tutorial.exercises.transformations.inverse import exercise as inverse
from mlax_tutorial.exercises.transformations.bounds import exercise as bounds
from mlax_tutorial.exercises.transformations.clean import exercise as clean
from mlax_tutorial.exercises.transformations.draws import exercise as draws
