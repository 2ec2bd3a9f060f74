"""*The training loop*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/training_loop.ipynb
test_programs = programs.of_chapter("training_loop")
