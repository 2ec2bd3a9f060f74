"""*Convolution and pooling*: its programs compile for a TPU."""

from tests.tpu import programs

# reads: book/convolution.ipynb
test_programs = programs.of_chapter("convolution")
