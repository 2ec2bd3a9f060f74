"""Rotary positions with neighboring features as pairs."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.attention._compare import array, close, same


def solution(x, positions, base=10_000.0):
    half = x.shape[-1] // 2
    rates = base ** (-jnp.arange(half) / half)
    angles = positions[..., None, None] * rates
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = jnp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return pairs.reshape(x.shape).astype(x.dtype)


def turned(x, positions, base, sign=1, halves=False, scale=2.0, joined=False):
    """The same in NumPy, and with known mistakes."""
    half = x.shape[-1] // 2
    angles = sign * positions[..., None, None] * base ** (-scale * np.arange(half) / x.shape[-1])
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = (x[..., :half], x[..., half:]) if halves else (x[..., 0::2], x[..., 1::2])
    parts = [a * cos - b * sin, b * cos + a * sin]
    return np.concatenate(parts, -1) if halves or joined else np.stack(parts, -1).reshape(x.shape)


def check(interleaved):
    x = np.sin(np.arange(2 * 3 * 2 * 6)).reshape(2, 3, 2, 6).astype(np.float32)
    positions, base = np.array([[0, 1, 5], [7, 2, 3]]), 100.0
    expected = turned(x, positions, base)
    recognise = [
        (turned(x, positions, base, halves=True), "This pairs feature i with i + d/2, as the chapter does. Here neighbors are pairs: 0 with 1, 2 with 3."),
        (turned(x, positions, base, -1), "The pairs turn the other way: a cos - b sin, and b cos + a sin."),
        (turned(x, positions, base, joined=True), "The pairs turn rightly, but the result has all first features before all second ones: `jnp.stack(…, axis=-1)`, then reshape."),
        (turned(x, positions, base, scale=1.0), "The rates fall too slowly: pair i turns at base ** (-2i / d), where d is the number of features, not of pairs."),
        (turned(x, positions, 10_000.0), "The base makes no difference: 10,000 is only its default."),
        (turned(x, np.arange(3), base), "The positions that are given are not looked at: they need not be 0, 1, 2."),
        (turned(x.swapaxes(1, 2), np.broadcast_to(np.arange(2), (2, 2)), base).swapaxes(1, 2), "The positions run along the heads: the length is the axis before the heads."),
    ]  # fmt: skip
    given = {"positions": positions, "base": base}
    with under("`jax.jit`"):
        got = jax.jit(lambda x, positions: interleaved(x, positions, base))(x, positions)
    array(got, x.shape, np.float32, **given)
    same(got, expected, recognise, **given)

    one, many = x[0, :1], x[0]  # no batch, one position
    tangent = jax.jit(lambda x, positions: jax.jvp(lambda x: interleaved(x, positions, base), (x,), (x,)))
    got, along = tangent(many, positions[0])
    same(got, turned(many, positions[0], base), name="result without a batch axis")
    if not close(got, along):
        raise Failed(
            "No gradient comes back to x: a rotation is linear, and queries and keys learn through it."
        )
    far = np.array([1001])
    got = jax.jit(lambda x, positions: interleaved(x, positions, base))(one.astype(jnp.bfloat16), far)
    array(got, one.shape, jnp.bfloat16, name="result for bfloat16")
    exact = turned(one.astype(jnp.bfloat16).astype(np.float32), far, base)
    if not close(got, exact, 0.03):
        raise Failed(
            "At position 1001 the result for bfloat16 is far off: the angles must be float32, since bfloat16 has no 1001. Convert "
            "the result, not the positions.",
            expected=exact,
            got=got,
        )
    _float16(interleaved, x[0, :2, :, :4])


def _float16(interleaved, x):
    """In float16, with four features, and with the base left out. At position 1 any angles will do."""
    x, positions = x.astype(np.float16), np.array([1, 20001])
    with under("`jax.jit`, for float16, with 4 features in place of 6, and without `base`"):
        got = jax.jit(lambda x, positions: interleaved(x, positions))(x, positions)
    array(got, x.shape, np.float16, name="result for float16")
    expected = turned(x.astype(np.float32), positions, 10_000.0).astype(np.float16)
    if not close(got[0], expected[0], 0.01):
        said = "Without `base` the result is wrong: its default should be 10,000, as in `base=10_000.0`."
    elif not close(got, expected, 0.01):
        said = (
            "At position 20001 the result for float16 is far off: the angles must be float32, for a number so large is rounded in "
            "float16. Convert the result, not the positions or the rates."
        )
    else:
        return
    raise Failed(said, input={"x": x, "positions": positions}, expected=expected, got=got)


exercise = Exercise(
    title="Rotary positions, neighbors paired",
    stars=2,
    minutes=10,
    why="Two conventions, one shape: weights trained with one give wrong results with the other, until the features of each head are reordered.",
    hints=(
        "Copy the chapter's `rotary`, and change two lines: how the pairs are taken apart, and how they are put together.",
        "`a, b = x[..., 0::2], x[..., 1::2]`, and at the end `jnp.stack([…, …], axis=-1).reshape(x.shape).astype(x.dtype)`.",
    ),
    solution=solution,
    check=check,
)
