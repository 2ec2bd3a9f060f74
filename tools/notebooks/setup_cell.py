"""The cell that every chapter starts with: installs what is missing, switches the guards on."""

import nbformat

from tools import project
from tools.notebooks.places import Book

TEMPLATE = """\
#@title Set-up: install the companion package if it is missing, switch the guards on
import importlib.util

if importlib.util.find_spec("mlax_tutorial") is None:
    %pip install -q "{requirement}"

import jax
import numpy as np

jax.config.update("jax_debug_key_reuse", True)  # a random key used twice is an error
jax.config.update("jax_check_tracer_leaks", True)  # and so is a value that escapes from its trace
np.set_printoptions(precision=4, suppress=True)"""


def cell(book: Book) -> nbformat.NotebookNode:
    """Hidden in the rendered book (`hide-cell`), folded in Colab (`cellView`)."""
    source = TEMPLATE.format(requirement=project.requirement(book.root))
    return nbformat.v4.new_code_cell(source, metadata={"cellView": "form", "tags": ["hide-cell"]})
