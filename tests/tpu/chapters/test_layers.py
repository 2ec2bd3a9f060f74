"""*Layers*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/layers.ipynb
test_programs = programs.of_chapter("layers")
