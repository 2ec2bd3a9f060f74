"""Tells the code of whoever uses this package from Python's, a library's and our own: by its file."""

import ast
import functools
import os
import pathlib

import jax

_PACKAGE = pathlib.Path(__file__).parent.parent
_LIBRARIES = tuple(str(pathlib.Path(module.__file__).parent) + os.sep for module in (ast, jax))


@functools.cache
def is_theirs(filename):
    """Whether a file is the reader's: not Python's, not a library's, not this package's."""
    if filename.startswith("<frozen"):
        return False
    path = pathlib.Path(filename)
    if _PACKAGE in path.parents or {"site-packages", "dist-packages"} & set(path.parts):
        return False
    return not filename.startswith(_LIBRARIES)
