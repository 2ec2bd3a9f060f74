"""The cell that every chapter starts with: installs what is missing, switches the guards on."""

# What the guards cost, measured (microseconds, jax 0.7.2 and 0.12.0.1): the check for reused keys takes each call off its
# fast path, 10 -> 100. The check for leaks is free in 0.12; up to 0.11 it bypasses the caches of traces (`jax/_src/util.py`),
# and a training step of 5 ms takes most of a second. Trace counts of jitted functions are the same with both as without.
# A cell that measures time switches both off: `with jax.debug_key_reuse(False), jax.check_tracer_leaks(False):`

import nbformat

from tools import project
from tools.notebooks.places import Book

TEMPLATE = """\
#@title Set-up: install the companion package if it is missing, switch the guards on
import importlib.util

if importlib.util.find_spec("mlax_tutorial") is None:
    %pip install -q "{requirement}"

import jax
import mlax_tutorial  # before JAX first uses a device: it works round a fault that old versions have on a CPU
import numpy as np

jax.config.update("jax_debug_key_reuse", True)  # a random key used twice is an error
# So is a value that escapes from its trace. (Before 0.12 this check is far too slow: it bypasses caches of JAX.)
jax.config.update("jax_check_tracer_leaks", jax.__version_info__ >= (0, 12))
np.set_printoptions(precision=4, suppress=True)"""


def cell(book: Book) -> nbformat.NotebookNode:
    """Hidden in the rendered book (`hide-cell`), folded in Colab (`cellView`)."""
    source = TEMPLATE.format(requirement=project.requirement(book.root))
    return nbformat.v4.new_code_cell(source, metadata={"cellView": "form", "tags": ["hide-cell"]})
