"""The exercise of the chapter Welcome: one, to try the checker."""

from mlax_tutorial.exercises.welcome.double import exercise as double
