"""The exercises of the chapter Combining layers."""

from mlax_tutorial.exercises.combining_layers.insert import exercise as insert
from mlax_tutorial.exercises.combining_layers.masks import exercise as masks
from mlax_tutorial.exercises.combining_layers.series import exercise as series
from mlax_tutorial.exercises.combining_layers.residual import exercise as residual
from mlax_tutorial.exercises.combining_layers.unet import exercise as unet
from mlax_tutorial.exercises.combining_layers.stack import exercise as stack
