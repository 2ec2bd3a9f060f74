"""*Recurrent layers*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/recurrent.ipynb
test_programs = programs.of_chapter("recurrent")
