"""The laws, over the rows of all layers and optimizers, and what the laws themselves stand on; compiled quickly."""

QUICK_TO_COMPILE = True
