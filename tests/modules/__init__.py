"""The files beside nn and optim; compiled quickly."""

QUICK_TO_COMPILE = True
