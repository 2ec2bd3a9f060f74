"""Which exercises there are, in the order of the book."""

import importlib
import pkgutil

from mlax_tutorial import exercises
from mlax_tutorial.checking.exercise import Exercise

# Chapters in the order of the book. A module that is not named here comes after them, by its name.
ORDER = (
    "welcome",
    "arrays",
    "randomness",
    "tracing",
    "jit",
    "control_flow",
    "pytrees",
    "autodiff",
    "vmap",
    "transformations",
    "errors",
    "first_network",
)


def chapters():
    """The names of the chapters that have exercises."""
    names = [
        module.name for module in pkgutil.iter_modules(exercises.__path__) if not module.name.startswith("_")
    ]
    return sorted(names, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def of(chapter):
    """The exercises of a chapter, in the order in which its module defines them."""
    module = importlib.import_module(f"{exercises.__name__}.{chapter}")
    return [value for value in vars(module).values() if isinstance(value, Exercise)]


def title(chapter):
    """A chapter's title, from its module's name: ``first_network`` is *First network*."""
    return chapter.replace("_", " ").capitalize()
