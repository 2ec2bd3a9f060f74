"""*Check on a TPU*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/tpu_check.ipynb
test_programs = programs.of_chapter("tpu_check")
