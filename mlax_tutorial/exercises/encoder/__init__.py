"""The exercises of the chapter A Transformer encoder."""

from mlax_tutorial.exercises.encoder.rollout import exercise as rollout
from mlax_tutorial.exercises.encoder.probe import exercise as probe
from mlax_tutorial.exercises.encoder.visible import exercise as visible
from mlax_tutorial.exercises.encoder.pack import exercise as pack
from mlax_tutorial.exercises.encoder.corrupt import exercise as corrupt
from mlax_tutorial.exercises.encoder.post_norm import exercise as post_norm
from mlax_tutorial.exercises.encoder.low_rank import exercise as low_rank
