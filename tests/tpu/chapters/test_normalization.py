"""*Normalization and dropout*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/normalization.ipynb
test_programs = programs.of_chapter("normalization")
