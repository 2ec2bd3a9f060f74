"""Values in words: short, the same on every machine, with four digits after the point, or with more to tell two apart."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.inspection.values import is_array, is_key
from mlax_tutorial.inspection.values import kind as kind  # in words, too: imported from here

_LONGEST = 400  # characters of one described value
_MANY = 9  # digits that tell any two numbers of float32 apart


def describe(value, digits=4):
    """One value, in a line or a few: arrays with dtype and shape, trees with their structure."""
    text = _describe(value, digits)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 4].rstrip() + " ..."


def apart(one, two, words=describe):
    """Two values in words, with more digits where they would look alike."""
    texts = words(one), words(two)
    return texts if texts[0] != texts[1] else (words(one, _MANY), words(two, _MANY))


def _describe(value, digits):
    if isinstance(value, jax.core.Tracer):
        return f"a tracer of type {value.aval.str_short()}"
    if is_key(value):
        return "a random key" if value.shape == () else f"random keys of shape {value.shape}"
    if isinstance(value, jax.ShapeDtypeStruct):
        return f"any {value.dtype} of shape {value.shape}"
    if is_array(value):
        origin = ", NumPy" if isinstance(value, np.ndarray) else ""
        return f"{numbers(value, digits)}  ({value.dtype}, shape {value.shape}{origin})"
    if isinstance(value, np.generic):
        return f"{numbers(value, digits)}  (NumPy {value.dtype})"
    if isinstance(value, float):
        return f"{value:.{digits + 2}g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_describe(item, digits)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        opening, closing = "[]" if isinstance(value, list) else ("(", ",)" if len(value) == 1 else ")")
        return opening + ", ".join(_describe(item, digits) for item in value) + closing
    if callable(value) and hasattr(value, "__name__"):
        return f"the {'class' if isinstance(value, type) else 'function'} {value.__name__}"
    try:
        text = repr(value)
    except Exception as error:
        return f"{kind(value)} whose repr fails ({type(error).__name__})"
    if " at 0x" in text:  # an address differs from run to run
        return kind(value)
    return text


def numbers(array, digits=4):
    """The entries of an array, abbreviated where there are many."""
    array = np.asarray(array)
    if array.dtype.kind not in "biufc" and jnp.issubdtype(array.dtype, np.number):  # bfloat16 and its kin
        array = array.astype(np.float32)
    options = {"precision": digits, "suppress": digits == 4, "threshold": 40, "edgeitems": 3, "linewidth": 80}
    with np.printoptions(**options):
        return np.array2string(array)


def differences(expected, got, most=5):
    """Lists the entries in which two arrays (or trees of arrays) differ; empty if they cannot be compared so."""
    if _numeric(expected) and _numeric(got):
        return _array_differences(expected, got, most)
    try:
        left, structure = jax.tree_util.tree_flatten_with_path(expected)
        right, other = jax.tree_util.tree_flatten_with_path(got)
    except Exception:
        return ""
    if structure != other or len(left) < 2:
        return ""
    lines = []
    for (path, one), (_, two) in zip(left, right, strict=True):
        if not (_numeric(one) and _numeric(two)):
            continue
        text = _array_differences(one, two, 2)
        if not text and np.shape(one) == np.shape(two) == () and not close(one, two):
            text = "expected {}, got {}".format(*apart(one, two, numbers))
        lines.extend(f"{jax.tree_util.keystr(path)} {line}" for line in text.splitlines())
    return "\n".join(lines[:most])


def _numeric(value):
    if isinstance(value, jax.core.Tracer) or is_key(value):
        return False
    if is_array(value) or isinstance(value, np.generic):
        return value.dtype == bool or jnp.issubdtype(value.dtype, np.number)
    return isinstance(value, (bool, int, float))


def _array_differences(expected, got, most):
    one, two = np.asarray(expected), np.asarray(got)
    if one.shape != two.shape:
        return f"in shape: expected {one.shape}, got {two.shape}"
    lines = []
    if is_array(expected) and is_array(got) and one.dtype != two.dtype:
        lines.append(f"in dtype: expected {one.dtype}, got {two.dtype}")
    if one.shape == ():
        return "\n".join(lines)
    wrong = np.argwhere(~np.asarray(close(one, two)))
    for place in wrong[:most]:
        index = ", ".join(str(int(i)) for i in place)
        left, right = apart(one[tuple(place)], two[tuple(place)], numbers)
        lines.append(f"at [{index}]: expected {left}, got {right}")
    if len(wrong) > most:
        lines.append(f"... and at {len(wrong) - most} more of {one.size} places")
    return "\n".join(lines)


_TOLERANCES = {"float64": 1e-9, "float32": 2e-5, "complex64": 2e-5, "complex128": 1e-9, "float16": 2e-3}


def tolerance(*dtypes):
    """What two right answers may differ by, relative to their size: the coarsest of the dtypes decides."""
    return max(_TOLERANCES.get(str(dtype), 1.6e-2) if _inexact(dtype) else 0.0 for dtype in dtypes)


def _inexact(dtype):
    return jnp.issubdtype(dtype, jnp.inexact)


def close(expected, got, rtol=None, atol=None):
    """Which entries agree: NaN with NaN, infinities exactly, and the rest within the tolerance.

    Both tolerances default to what suits the dtypes. The absolute one grows with the largest finite entry, as
    numbers of that size, added and subtracted, leave an error of that size; and it is never below that of one.
    """
    one, two = np.asarray(expected), np.asarray(got)
    bound = tolerance(one.dtype, two.dtype)
    if one.dtype.kind not in "biufc":  # bfloat16 and its kin
        one = one.astype(np.float32)
    if two.dtype.kind not in "biufc":
        two = two.astype(np.float32)
    if one.dtype.kind in "biu" and two.dtype.kind in "biu":
        return one == two
    wide = np.complex128 if "c" in one.dtype.kind + two.dtype.kind else np.float64
    one, two = one.astype(wide), two.astype(wide)
    finite = np.abs(one[np.isfinite(one)])
    size = float(finite.max()) if finite.size else 0.0
    rtol = bound if rtol is None else rtol
    atol = 0.5 * bound * max(size, 1.0) if atol is None else atol
    return np.isclose(two, one, rtol=rtol, atol=atol, equal_nan=True)
