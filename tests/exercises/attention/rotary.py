"""Answers to the exercise attention.rotary."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.attention.rotary import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def angle(x, positions, base, power=2):
    rates = base ** (-power * jnp.arange(x.shape[-1] // 2) / x.shape[-1])
    angles = positions[..., None, None] * rates
    return jnp.cos(angles), jnp.sin(angles)


def paired(a, b, x):
    return jnp.stack([a, b], axis=-1).reshape(x.shape).astype(x.dtype)


@answers.wrong("This pairs feature i with i + d/2")
def halves(x, positions, base=10_000.0):
    cos, sin = angle(x, positions, base)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


@answers.wrong("turn the other way")
def other_way(x, positions, base=10_000.0):
    cos, sin = angle(x, positions, base)
    a, b = x[..., 0::2], x[..., 1::2]
    return paired(a * cos + b * sin, b * cos - a * sin, x)


@answers.wrong("has all first features before")
def not_interleaved(x, positions, base=10_000.0):
    cos, sin = angle(x, positions, base)
    a, b = x[..., 0::2], x[..., 1::2]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(x.dtype)


@answers.wrong("fall too slowly")
def slow_rates(x, positions, base=10_000.0):
    cos, sin = angle(x, positions, base, power=1)
    a, b = x[..., 0::2], x[..., 1::2]
    return paired(a * cos - b * sin, b * cos + a * sin, x)


@answers.wrong("The base makes no difference")
def fixed_base(x, positions, base=10_000.0):
    return exercise.answer(x, positions, 10_000.0)


@answers.wrong("The positions that are given are not looked at")
def own_positions(x, positions, base=10_000.0):
    return exercise.answer(x, jnp.arange(x.shape[-3]), base)


@answers.wrong("The dtype of the result for bfloat16")
def widens(x, positions, base=10_000.0):
    cos, sin = angle(x, positions, base)
    a, b = x[..., 0::2], x[..., 1::2]
    return jnp.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape)


@answers.wrong("bfloat16 has no 1001")
def narrow_angles(x, positions, base=10_000.0):
    return exercise.answer(x, positions.astype(x.dtype), base)


@answers.wrong("is rounded in float16")
def float16_angles(x, positions, base=10_000.0):
    """It thinks of bfloat16 only."""
    narrow = jnp.float16 if x.dtype == jnp.float16 else jnp.float32
    angles = positions[..., None, None].astype(narrow) * base ** (
        -2 * jnp.arange(x.shape[-1] // 2, dtype=narrow) / x.shape[-1]
    )
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = x[..., 0::2], x[..., 1::2]
    return paired(a * cos - b * sin, b * cos + a * sin, x)


@answers.wrong("is rounded in float16")
def float16_rates(x, positions, base=10_000.0):
    narrow = jnp.float16 if x.dtype == jnp.float16 else jnp.float32
    rates = (base ** (-2 * jnp.arange(x.shape[-1] // 2) / x.shape[-1])).astype(narrow)
    angles = positions[..., None, None] * rates.astype(jnp.float32)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = x[..., 0::2], x[..., 1::2]
    return paired(a * cos - b * sin, b * cos + a * sin, x)


@answers.wrong("its default should be 10,000")
def other_default(x, positions, base=10.0):
    return exercise.answer(x, positions, base)


@answers.wrong("but the exercise calls it with")
def no_default(x, positions, base):
    return exercise.answer(x, positions, base)


@answers.wrong()
def needs_a_batch(x, positions, base=10_000.0):
    batch, length, heads, d = x.shape
    return exercise.answer(x, positions, base)


@answers.wrong("No gradient comes back")
def without_gradient(x, positions, base=10_000.0):
    return jax.lax.stop_gradient(exercise.answer(x, positions, base))


@answers.right
def by_complex(x, positions, base=10_000.0):
    cos, sin = angle(x, positions, base)
    turned = (x[..., 0::2].astype(jnp.float32) + 1j * x[..., 1::2].astype(jnp.float32)) * (cos + 1j * sin)
    return paired(turned.real, turned.imag, x)


@answers.right
def in_place(x, positions, base=10_000.0):
    cos, sin = angle(x, positions, base)
    a, b = x[..., 0::2], x[..., 1::2]
    y = x.at[..., 0::2].set((a * cos - b * sin).astype(x.dtype))
    return y.at[..., 1::2].set((b * cos + a * sin).astype(x.dtype))


@answers.right
def by_pairs(x, positions, base=10_000.0):
    cos, sin = (jnp.repeat(part, 2, axis=-1) for part in angle(x, positions, base))
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    crossed = jnp.stack([-pairs[..., 1], pairs[..., 0]], axis=-1).reshape(x.shape)
    return (x * cos + crossed * sin).astype(x.dtype)


@answers.right
def by_matrices(x, positions, base=10_000.0):
    cos, sin = angle(x, positions, base)
    matrices = jnp.stack([jnp.stack([cos, -sin], -1), jnp.stack([sin, cos], -1)], -2)
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    turned = jnp.einsum(
        "...ij,...j->...i", matrices, pairs.astype(jnp.float32), precision=jax.lax.Precision.HIGHEST
    )
    return turned.reshape(x.shape).astype(x.dtype)


@answers.wrong("with 4 features in place of 6")
def of_six_features(x, positions, base=10_000.0):
    rates = base ** (-jnp.arange(3) / 3)
    angles = positions[..., None, None] * rates
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = x[..., 0::2], x[..., 1::2]
    return paired(a * cos - b * sin, b * cos + a * sin, x)
