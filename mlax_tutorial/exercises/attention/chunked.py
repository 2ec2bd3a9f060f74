"""Attention a piece at a time."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.exercises.attention._compare import array, close, same
from mlax_tutorial.inspection import jaxprs


def solution(query, key, value, size):
    query = query / math.sqrt(query.shape[-1])

    def body(carry, piece):
        total, normalizer, largest = carry
        key, value = piece
        logits = query @ key.T
        # The result does not depend on what is subtracted, so no gradient needs to go through it.
        now = jax.lax.stop_gradient(jnp.maximum(largest, logits.max(axis=-1, keepdims=True)))
        weights, rescale = jnp.exp(logits - now), jnp.exp(largest - now)
        total = total * rescale + weights @ value
        normalizer = normalizer * rescale + weights.sum(axis=-1, keepdims=True)
        return (total, normalizer, now), None

    rows = jnp.zeros((len(query), 1))
    carry = jnp.zeros((len(query), value.shape[-1])), rows, rows - jnp.inf
    pieces = key.reshape(-1, size, key.shape[-1]), value.reshape(-1, size, value.shape[-1])
    (total, normalizer, _), _ = jax.lax.scan(jax.checkpoint(body, prevent_cse=False), carry, pieces)
    return total / normalizer


def plain(q, k, v, scale=True):
    logits = np.float64(q) @ k.T / (np.sqrt(q.shape[-1]) if scale else 1)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def separately(q, k, v, size, scale=True):
    """Each piece has a softmax of its own."""
    return np.stack([plain(q, k[i : i + size], v[i : i + size], scale) for i in range(0, len(k), size)])


def unscaled(q, k, v, size):
    """Sums of pieces with maxima of their own; earlier ones are not scaled."""
    total, normalizer = 0.0, 0.0
    for i in range(0, len(k), size):
        logits = np.float64(q) @ k[i : i + size].T / np.sqrt(q.shape[-1])
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        total, normalizer = total + weights @ v[i : i + size], normalizer + weights.sum(-1, keepdims=True)
    return total / normalizer


def summed(q, k, v):
    """The values weighted by exponentials that are not divided by their sum."""
    logits = np.float64(q) @ k.T / np.sqrt(q.shape[-1])
    return np.exp(logits - logits.max(-1, keepdims=True)) @ v


def check(chunked):
    q = np.sin(np.arange(20.0)).reshape(5, 4).astype(np.float32) * 2
    k, v = (
        np.cos(np.arange(48.0)).reshape(12, 4).astype(np.float32) * 2,
        np.sin(np.arange(36.0)).reshape(12, 3).astype(np.float32),
    )
    q[:, 0] += 1
    k[:, 0] += np.linspace(-1, 2, 12, dtype=np.float32)
    size = 3
    function = jax.jit(lambda q, k, v: chunked(q, k, v, size))
    got = function(*map(jnp.asarray, (q, k, v)))
    array(got, (5, 3), np.float32, queries=5, keys=12, size=size)
    apart = separately(q, k, v, size)
    recognise = [
        (apart.mean(axis=0), "Each piece has a softmax of its own, and their means are averaged: a piece with larger logits should count more."),
        (apart.sum(axis=0), "Each piece has a softmax of its own: divide once, by the sum over all pieces, at the end."),
        (apart[-1], "Only the last piece counts: the carry is not added to."),
        (plain(q, k, v, scale=False), "The division by the square root of d is missing."),
        (summed(q, k, v), "The sums are right, but the weights do not add up to 1: divide by their sum at the end."),
        (unscaled(q, k, v, size), "Each piece is scaled to a maximum of its own, but the sums of earlier pieces are not scaled to the new one: times exp(old - new)."),
    ]  # fmt: skip
    same(got, plain(q, k, v), recognise, size=size)

    large = function(*map(jnp.asarray, (q * 300, k, v)))
    if not np.isfinite(np.asarray(large)).all():
        raise Failed(
            "For logits of about 1,000 the result is not finite: exponentials overflow. Subtract the largest logit so far.",
            got=large,
        )
    if not close(large, plain(q * 300, k, v), 1e-2):
        same(large, plain(q * 300, k, v), name="result for logits of about 1,000")
    low = np.abs(q) * 300, -np.abs(k), v
    if not close(function(*map(jnp.asarray, low)), plain(*low), 1e-2):
        raise Failed(
            "For logits that are all far below zero the result is wrong: a largest logit that begins at 0 is never reached. Begin at "
            "minus infinity, or at the lowest finite number.",
            expected=plain(*low),
            got=function(*map(jnp.asarray, low)),
        )

    _other_sizes(chunked)
    checks.gradients(function, None, *jax.device_put((q, k, v)), argnums=(0, 1, 2), jit=True)
    queries, keys = 50, 64
    specs = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((queries, 4), (keys, 4), (keys, 3))]
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(fresh(lambda q, k, v: chunked(q, k, v, 8)))(*specs)
    found = [equation for _, equation in jaxprs.walk(program)]
    if "scan" not in {equation.primitive.name for equation in found}:
        raise Failed("There is no `scan` in the jaxpr: go through the pieces with `jax.lax.scan`.")
    steps = {equation.params["length"] for equation in found if equation.primitive.name == "scan"}
    if not steps & {7, 8}:  # seven where the first piece stands before the loop
        raise Failed(
            "For 64 keys in pieces of 8 the scan should make 8 steps, a piece of keys in each, but it makes "
            f"{' and '.join(map(str, sorted(steps)))}.",
        )
    largest = _largest(found)
    if math.prod(largest) >= queries * keys:
        raise Failed(
            f"On the way there is an array of shape {largest}, as large as all weights together: the scan stores something for each "
            "piece, or the logits are computed outside of it.",
            input=f"{queries} queries, {keys} keys, size 8",
        )
    gradient = jax.grad(lambda q, k, v: jnp.sum(chunked(q, k, v, 8) ** 2), (0, 1, 2))
    with under("`jax.grad`"):
        backward = jax.make_jaxpr(fresh(gradient))(*specs)
    largest = _largest(equation for _, equation in jaxprs.walk(backward))
    if math.prod(largest) >= queries * keys:
        raise Failed(
            f"The result needs little memory, and its gradient much: there the scan stores an array of shape {largest}, a piece of "
            "weights for each step. Put `jax.checkpoint` around the function that you scan.",
            input=f"{queries} queries, {keys} keys, size 8",
        )


def _other_sizes(chunked):
    q, k, v = (
        np.sin(np.arange(a * b) + a).reshape(a, b).astype(np.float32) for a, b in ((3, 6), (4, 6), (4, 5))
    )
    with under(
        "`jax.jit`, for queries of shape (3, 6), keys of shape (4, 6), values of shape (4, 5) and size 2"
    ):
        got = jax.jit(lambda q, k, v: chunked(q, k, v, 2))(q, k, v)
    array(got, (3, 5), np.float32)
    if not close(got, plain(q, k, v)):
        raise Failed(
            "With other numbers of features the result is wrong: take them from the shapes, `query.shape[-1]` and `value.shape[-1]`.",
            expected=plain(q, k, v),
            got=got,
        )


def _largest(equations):
    shapes = [v.aval.shape for equation in equations for v in equation.outvars if hasattr(v.aval, "shape")]
    return max(shapes, key=math.prod)


exercise = Exercise(
    title="Attention a piece at a time",
    stars=3,
    minutes=20,
    why="This is the core of FlashAttention: a softmax needs no row as a whole, only its largest logit and its sum so far, and the backward pass can compute each piece again.",
    hints=(
        "The carry holds three things: the weighted sum of values, the sum of the weights, and the largest logit so far. `merge` in "
        "the chapter says how a new piece joins them.",
        "Begin with zeros, zeros and minus infinity. In the body: `now = jnp.maximum(largest, logits.max(axis=-1, keepdims=True))`, "
        "`rescale = jnp.exp(largest - now)`, and both sums are `old * rescale + new`. Divide after the scan. "
        "`jax.lax.scan(jax.checkpoint(body, prevent_cse=False), …)` computes a piece again in the backward pass.",
    ),
    solution=solution,
    check=check,
)
