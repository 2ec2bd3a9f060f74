"""The exercises of the chapter An MLP, and what its accuracy means."""

from mlax_tutorial.exercises.mlp.wilson import exercise as wilson
from mlax_tutorial.exercises.mlp.ensemble import exercise as ensemble
from mlax_tutorial.exercises.mlp.sign_test import exercise as sign_test
from mlax_tutorial.exercises.mlp.ridge import exercise as ridge
from mlax_tutorial.exercises.mlp.leaks import exercise as leaks
from mlax_tutorial.exercises.mlp.temperature import exercise as temperature
from mlax_tutorial.exercises.mlp.predictor import exercise as predictor
