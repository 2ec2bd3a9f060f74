"""*Attention*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/attention.ipynb
test_programs = programs.of_chapter("attention")
