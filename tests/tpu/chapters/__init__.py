"""A file for each chapter that trains: all programs that its cells jit compile for a TPU."""
