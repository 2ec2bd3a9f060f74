"""The exercises of the chapter Pytrees."""

from mlax_tutorial.exercises.pytrees.leaf_counts import exercise as leaf_counts
from mlax_tutorial.exercises.pytrees.average import exercise as average
from mlax_tutorial.exercises.pytrees.count import exercise as count
from mlax_tutorial.exercises.pytrees.partition import exercise as partition
from mlax_tutorial.exercises.pytrees.combine import exercise as combine
from mlax_tutorial.exercises.pytrees.traced import exercise as traced
from mlax_tutorial.exercises.pytrees.node import exercise as node
