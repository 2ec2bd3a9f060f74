"""*Precision*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/precision.ipynb
test_programs = programs.of_chapter("precision")
