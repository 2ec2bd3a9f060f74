"""Training; compiled quickly, but for the example with convolutions."""

QUICK_TO_COMPILE = True
