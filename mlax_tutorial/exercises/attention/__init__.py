"""The exercises of the chapter Attention."""

from mlax_tutorial.exercises.attention.masks import exercise as masks
from mlax_tutorial.exercises.attention.relative import exercise as relative
from mlax_tutorial.exercises.attention.grouped import exercise as grouped
from mlax_tutorial.exercises.attention.rotary import exercise as rotary
from mlax_tutorial.exercises.attention.cache import exercise as cache
from mlax_tutorial.exercises.attention.chunked import exercise as chunked
