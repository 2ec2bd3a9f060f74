"""Errors that say where (the layer's path), what was wanted, what came, and the likely mend."""

import contextlib

from mlax_tutorial.nn.hyperparameters import show


class LayerError(ValueError):
    """A layer was given something that it cannot work with.

    The layer that notices raises it; every container on the way out puts the child's place in front, so
    that the message names the layer as the reader would: ``model[3].Linear: …``.
    """

    def __init__(self, name: str, message: str):
        super().__init__(name, message)
        self.name, self.message, self.path = name, message, ""

    def __str__(self):
        where = f"model{self.path}.{self.name}" if self.path else self.name
        return f"{where}: {self.message}"


@contextlib.contextmanager
def located(place: str, child):
    """Put ``place`` in front of the path that what is raised in here carries; a foreign error carries it as a note."""
    try:
        yield
    except LayerError as error:
        error.path = place + error.path
        raise
    except Exception as error:
        path, name, old = getattr(error, "_layer", ("", type(child).__name__, None))
        note = f"This was raised in model{place}{path}.{name}."
        error.__notes__ = [*(other for other in getattr(error, "__notes__", ()) if other != old), note]
        error._layer = place + path, name, note
        raise


def describe(value) -> str:
    """What came, in few words: ``float32[32,784]`` for an array, otherwise the type and the structure."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if isinstance(value, dict):
        return f"a dict with keys {sorted(map(str, value))}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of length {len(value)}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return "None" if value is None else f"{type(value).__name__} {show(value)}"
