"""Layers; compiled quickly."""

QUICK_TO_COMPILE = True
