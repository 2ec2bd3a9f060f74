"""Optimizers; compiled quickly."""

QUICK_TO_COMPILE = True
