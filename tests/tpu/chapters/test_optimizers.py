"""*Optimizers*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/optimizers.ipynb
test_programs = programs.of_chapter("optimizers")
