"""*A first network*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/first_network.ipynb
test_programs = programs.of_chapter("first_network")
