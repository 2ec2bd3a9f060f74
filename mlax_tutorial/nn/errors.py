"""Errors that say where (the layer's path), what was wanted, what came, and the likely mend."""

import contextlib

from mlax_tutorial.nn.hyperparameters import show


class LayerError(ValueError):
    """A layer was given something that it cannot work with.

    The layer that notices raises it; every container on the way out puts the child's place in front, so
    that the message names the layer as the reader would: ``model[3].Linear: …``.
    """

    def __init__(self, layer, message: str):
        super().__init__(message)
        self.name, self.message, self.path = type(layer).__name__, message, ""

    def __str__(self):
        where = f"model{self.path}.{self.name}" if self.path else self.name
        return f"{where}: {self.message}"

    def __reduce__(self):  # an exception with arguments of its own needs this to travel between processes
        return _rebuild, (type(self), self.name, self.message, self.path)


def _rebuild(cls, name, message, path):
    error = cls.__new__(cls, message)
    error.name, error.message, error.path = name, message, path
    return error


def locate(error: Exception, place: str, child) -> None:
    """Put ``place`` in front of the path that ``error`` carries; a foreign error carries it as a note."""
    if isinstance(error, LayerError):
        error.path = place + error.path
        return
    path, name = getattr(error, "_layer_path", ("", type(child).__name__))
    notes = [note for note in getattr(error, "__notes__", ()) if note != _note(path, name)]
    error._layer_path = (place + path, name)
    error.__notes__ = [*notes, _note(*error._layer_path)]


@contextlib.contextmanager
def located(place: str, child):
    """Locate what is raised in here."""
    try:
        yield
    except Exception as error:
        locate(error, place, child)
        raise


def _note(path: str, name: str) -> str:
    return f"This was raised in model{path}.{name}."


def describe(value) -> str:
    """What came, in few words: ``float32[32,784]`` for an array, otherwise the type and the structure."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, dict):
        return f"a dict with keys {sorted(map(str, value))}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of length {len(value)}"
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"{type(value).__name__} {show(value)}"
