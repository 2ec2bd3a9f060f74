"""The exercises of the chapter Recurrent layers."""

from mlax_tutorial.exercises.recurrent.weights import exercise as weights
from mlax_tutorial.exercises.recurrent.gru import exercise as gru
from mlax_tutorial.exercises.recurrent.last_real import exercise as last_real
from mlax_tutorial.exercises.recurrent.flip import exercise as flip
from mlax_tutorial.exercises.recurrent.truncated import exercise as truncated
from mlax_tutorial.exercises.recurrent.write import exercise as write
