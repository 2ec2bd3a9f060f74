"""The package's tests, compiled quickly; the laws say where they compile as for a user."""

QUICK_TO_COMPILE = True
