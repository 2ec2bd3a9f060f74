"""The code that a chapter builds, put together from its cells and used."""

QUICK_TO_COMPILE = True  # nbval runs the same cells as a reader does
