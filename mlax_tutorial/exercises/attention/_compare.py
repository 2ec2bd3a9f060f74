"""Compare what a reader's function gives with what NumPy says, and recognise known mistakes, without compiling anything more."""

import numpy as np

from mlax_tutorial.checking import Failed, checks
from mlax_tutorial.checking.describe import describe, is_array


def array(got, shape, dtype=None, name="result", **given):
    """``got`` is an array of that shape, and of that dtype."""
    if not is_array(got):
        raise Failed(f"The {name} should be one array, got {describe(got)}.", **_shown(given))
    if got.shape != shape:
        raise Failed(
            f"The shape of the {name} is wrong: expected {shape}, got {got.shape}.", **_shown(given), got=got
        )
    if dtype is not None and got.dtype != dtype:
        raise Failed(
            f"The dtype of the {name} is wrong: expected {np.dtype(dtype).name}, got {got.dtype}.",
            **_shown(given),
        )


def same(got, expected, recognise=(), name="result", tolerance=1e-4, **given):
    """The numbers are those that are expected, or the report says which known mistake gives what was given."""
    if close(got, expected, tolerance):
        return
    said = next((text for wrong, text in recognise if close(got, wrong, tolerance)), f"The {name} is wrong.")
    raise Failed(said, **_shown(given), expected=expected, got=got)


def close(one, other, tolerance=1e-4):
    return checks.agrees(one, np.asarray(other, np.float64), tolerance, tolerance)


def _shown(given):
    return {"input": given} if given else {}
