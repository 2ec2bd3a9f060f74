"""The exercises of the chapter Layers."""

from mlax_tutorial.exercises.layers._suspects import SUSPECTS as SUSPECTS
from mlax_tutorial.exercises.layers.scale import exercise as scale
from mlax_tutorial.exercises.layers.prelu import exercise as prelu
from mlax_tutorial.exercises.layers.embed import exercise as embed
from mlax_tutorial.exercises.layers.tied import exercise as tied
from mlax_tutorial.exercises.layers.broken import exercise as broken
from mlax_tutorial.exercises.layers.lora import exercise as lora
