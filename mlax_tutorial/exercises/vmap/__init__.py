"""The exercises of the chapter vmap."""

from mlax_tutorial.exercises.vmap.shapes import exercise as shapes
from mlax_tutorial.exercises.vmap.distances import exercise as distances
from mlax_tutorial.exercises.vmap.powers import exercise as powers
from mlax_tutorial.exercises.vmap.clipped import exercise as clipped
from mlax_tutorial.exercises.vmap.contrast import exercise as contrast
from mlax_tutorial.exercises.vmap.sweep import exercise as sweep
