"""The code that a chapter builds, put together from its cells and used."""
