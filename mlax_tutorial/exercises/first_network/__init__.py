"""The exercises of the chapter A first network."""

from mlax_tutorial.exercises.first_network.mse import exercise as mse
from mlax_tutorial.exercises.first_network.binary_cross_entropy import exercise as binary_cross_entropy
from mlax_tutorial.exercises.first_network.init_mlp import exercise as init_mlp
from mlax_tutorial.exercises.first_network.make_step import exercise as make_step
from mlax_tutorial.exercises.first_network.class_accuracy import exercise as class_accuracy
from mlax_tutorial.exercises.first_network.gradient_norms import exercise as gradient_norms
from mlax_tutorial.exercises.first_network.count_parameters import exercise as count_parameters
