"""*Combining layers*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/combining_layers.ipynb
test_programs = programs.of_chapter("combining_layers")
