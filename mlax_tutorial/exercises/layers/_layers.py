"""What the checks of layers share: variables by their names, and outputs."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Failed, checks, laws
from mlax_tutorial.checking.describe import describe, is_array
from mlax_tutorial.checking.laws import LayerSubject

MATRIX = np.array([[1.0, -2.0, 0.5, 0.0], [-0.25, 3.0, -1.0, 2.0]], np.float32)  # (2, 4): two examples


def subject(layer):
    """The layer with the reader's errors shown as theirs."""
    laws.LAYER["signature"](guarded := LayerSubject(layer, MATRIX.shape[1:]))
    return guarded


def outlines(layer, x):
    """The types of what ``init`` makes, for which nothing is compiled; where there is no trace, what it makes."""
    try:
        return jax.eval_shape(subject(layer).init, jax.random.key(0), x)
    except Exception:  # a law will say so, in its own words
        return subject(layer).init(jax.random.key(0), jax.device_put(x))


def variables(layer, x, trainables, non_trainables=None, made=None):
    """What ``init`` makes, if names and shapes are those that are asked for: dicts from names to shapes, None where there are none."""
    made = subject(layer).init(jax.random.key(0), jax.device_put(x)) if made is None else made
    for role, got, wanted in zip(("trainables", "non_trainables"), made, (trainables, non_trainables)):
        if not wanted:
            if jax.tree.leaves(got):
                raise Failed(f"There are no {role} here: `init` should return `()` for them.", got=got)
            continue
        if not isinstance(got, dict) or got.keys() != wanted.keys():
            names = ", ".join(f'"{name}"' for name in wanted)
            raise Failed(f"The {role} should be a dict with {names}, got {_kind(got)}.", got=got)
        for name, shape in wanted.items():
            is_one = is_array(got[name]) or isinstance(got[name], jax.ShapeDtypeStruct)
            if not is_one or got[name].shape != shape:
                found = f"its shape is {got[name].shape}" if is_one else f"it is {describe(got[name])}"
                raise Failed(
                    f'`{role}["{name}"]` should have the shape {shape} for x of shape {x.shape}, but {found}.',
                    **({"got": got[name]} if is_one else {}),
                )
    return made


def drawn(leaf, name, deviation, wanted):
    """The numbers of a large leaf have mean zero and this standard deviation, and are not uniform."""
    numbers = np.asarray(leaf, np.float32)
    found = float(np.std(numbers))
    if found == 0:
        raise Failed(
            f"`{name}` is constant, but its numbers should be drawn from the key: {wanted}.", got=leaf
        )
    if abs(found / deviation - 1) > 5 / np.sqrt(2 * numbers.size):  # five times what chance does
        raise Failed(
            f"The numbers of `{name}` should have a standard deviation of {deviation:.3g}, but theirs is {found:.3g}: {wanted}.",
            got=leaf,
        )
    if abs(np.mean(numbers)) > 0.2 * deviation:
        raise Failed(
            f"The mean of `{name}` is {np.mean(numbers):.3g}, and should be about 0: {wanted}.", got=leaf
        )
    if np.max(np.abs(numbers)) < 1.9 * deviation:
        raise Failed(
            f"The numbers of `{name}` have the right standard deviation, but they are not normal: none is further than two "
            f"standard deviations from zero, as with a uniform distribution. {wanted[0].upper()}{wanted[1:]}.",
            got=leaf,
        )
    narrow = (np.array_equal(numbers, numbers.astype(half)) for half in (np.float16, jnp.bfloat16))
    if leaf.dtype == jnp.float32 and any(narrow):
        raise Failed(
            f"The numbers of `{name}` are float32, but they have been rounded to half precision: each of them has zeros for its last "
            "digits. Draw them in the dtype that is asked for.",
            got=leaf,
        )


def _kind(tree):
    return f"a dict with {sorted(map(str, tree))}" if isinstance(tree, dict) else describe(tree)


def compare(layer, x, trainables, non_trainables, expected, recognise=()):
    """``fwd`` gives what is expected; or the report says which known mistake gives what it gave. (NumPy computes what is
    expected, so that nothing is compiled for it.)"""
    x, trainables, non_trainables = jax.device_put((x, trainables, non_trainables))
    fwd = subject(layer).fwd
    try:
        y, _ = jax.jit(fwd)(x, trainables, non_trainables)  # one program, where each operation would be one
    except Exception:  # a law will say so, in its own words
        y, _ = fwd(x, trainables, non_trainables)
    given = {"x": x, "trainables": trainables}
    if not is_array(y):
        raise Failed(f"`fwd` should return an array and non_trainables, got {describe(y)}.", input=given)
    if y.shape != expected.shape:
        raise Failed(
            f"The shape of the output is wrong: expected {expected.shape}, got {y.shape}.",
            input=given,
            got=y,
        )
    if _close(y, expected):
        return
    said = next((text for wrong, text in recognise if _close(y, wrong)), "The output is wrong.")
    if jnp.issubdtype(y.dtype, jnp.floating):  # NumPy's float64 is none of the reader's concern
        expected = np.asarray(expected, y.dtype)
    raise Failed(said, input=given, expected=expected, got=y)


def _close(one, other):
    return checks.agrees(one, np.asarray(other, np.float64), 1e-3, 1e-4)
