"""The laws of layers and optimizers, a file for each family of rows; compiled quickly, but for some laws."""

QUICK_TO_COMPILE = True
