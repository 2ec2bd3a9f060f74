"""Figures that teach: drawings that a page can hold in light and in dark, with words for who cannot see them.

- :func:`subplots` begins a figure in the book's style, :func:`show` puts it on the page.
- ``trace`` steps through a function and the program that JAX records of it.
- :func:`show_source` shows code of the installed package.

Matplotlib is imported by the first figure, not by this package.
"""

from mlax_tutorial.viz.show import show
from mlax_tutorial.viz.source import show_source
from mlax_tutorial.viz.style import subplots

__all__ = ["show", "show_source", "subplots", "trace"]


def __getattr__(name):
    if name == "trace":  # a module of its own, and not a small one
        from importlib import import_module

        globals()["trace"] = function = import_module("mlax_tutorial.viz.tracing").trace
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
