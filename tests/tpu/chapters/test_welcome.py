"""*Welcome*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/welcome.ipynb
test_programs = programs.of_chapter("welcome")
