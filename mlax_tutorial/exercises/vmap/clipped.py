"""Clip the gradient of each example."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.vmap._clipped_otherwise import (
    always,
    by_one_norm,
    dropping,
    elements,
    larger,
    leaf_by_leaf,
    never,
    norms_added,
    not_averaged,
    padded,
    squared,
    summed,
    the_mean,
    upside_down,
)
from mlax_tutorial.exercises.vmap._growth import does_not_grow, equations


def solution(loss, params, x, labels, bound):
    def one(x, label):
        gradient = jax.grad(loss)(params, x, label)
        norm = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradient)))
        scale = jnp.minimum(1.0, bound / jnp.maximum(norm, 1e-12))
        return jax.tree.map(lambda leaf: scale * leaf, gradient)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(x, labels))


def _by_hand(params, x, labels, bound):
    """For the loss of the check."""
    params, x, labels = jax.tree.map(np.asarray, (params, x, labels))
    score = x @ params["layer"]["kernel"][:, 0] + params["layer"]["bias"]
    error = params["scale"] * score - labels
    slope = error * params["scale"]
    norm = np.sqrt(slope**2 * (1 + np.sum(x**2, axis=1)) + (error * score) ** 2)
    scale = np.minimum(1, bound / norm)
    layer = {"kernel": np.mean((scale * slope)[:, None] * x, axis=0)[:, None], "bias": np.mean(scale * slope)}
    return jax.device_put(jax.tree.map(np.float32, {"layer": layer, "scale": np.mean(scale * error * score)}))


class Line(NamedTuple):
    slope: jax.Array
    offset: jax.Array


def check(clipped):
    seen = []

    @jax.jit  # which keeps the shapes of each trace
    def loss(params, x, label):
        seen.append((jnp.shape(x), jnp.shape(label)))
        score = jnp.sum(x * params["layer"]["kernel"][:, 0]) + params["layer"]["bias"]
        return (params["scale"] * score - label) ** 2 / 2

    kernel = np.array([[1.0], [-2.0], [0.5]], np.float32)
    params = {"layer": {"kernel": kernel, "bias": np.float32(0.25)}, "scale": np.float32(1.5)}
    x = np.array([[1, 0, 0], [0, 1, 2], [2, -1, 0], [0.1, 0, 0.2], [-1, 1, 1]], np.float32)
    labels = np.array([2.0, 0.0, -1.0, 0.5, 3.0], np.float32)
    params, x, labels = jax.device_put((params, x, labels))

    bound = 1.0
    shown = {"input": f"a loss of five examples, bound = {bound}"}
    got = clipped(loss, params, x, labels, bound)
    checks.returned(got, **shown)
    if not seen:
        raise Failed("Your function does not call `loss`.")
    for x_shape, label_shape in seen:
        if x_shape == x.shape or label_shape == labels.shape:
            raise Failed(
                "`loss` is called with the whole batch, but it is for one example: take its gradient, and map that."
            )
    expected = _by_hand(params, x, labels, bound)
    known = (
        (
            the_mean,
            "The mean is clipped; clip each example's gradient, and average afterwards.",
        ),
        (
            leaf_by_leaf,
            "Each leaf is clipped by itself. A gradient is scaled as a whole: one norm over all its leaves.",
        ),
        (
            always,
            "Small gradients are scaled up to the bound. They should stay as they are: `jnp.minimum(1, …)`.",
        ),
        (
            by_one_norm,
            "One norm is taken over all examples together; each example's gradient has its own.",
        ),
        (
            norms_added,
            "The norms of the leaves are added up: the norm of the whole is the root of the sum of their *squares*.",
        ),
        (
            larger,
            "Here the larger of 1 and bound / norm is the scale: `jnp.minimum`, not `jnp.maximum`.",
        ),
        (elements, "Each number is clipped by itself; a gradient keeps its direction, so scale it."),
        (summed, "This is the sum over examples; the mean is asked for."),
        (squared, "The norm is the square *root* of the sum of squares: it is missing."),
        (upside_down, "The scale is upside down: bound / norm, not norm / bound."),
        (never, "Nothing is clipped."),
        (dropping, "Gradients over the bound are dropped; scale them down to the bound instead."),
        (not_averaged, "The gradients of all examples are returned; average them."),
        (padded, "Something is added to the norm before the division; only a zero needs care."),
    )
    recognise = ((wrong(loss, params, x, labels, bound), advice) for wrong, advice in known)
    checks.same(got, expected, rtol=1e-3, atol=1e-5, recognise=recognise, **shown)

    for many in (100.0, 0.01):
        checks.same(
            clipped(loss, params, x, labels, many),
            _by_hand(params, x, labels, many),
            rtol=1e-3,
            atol=1e-6,
            input=f"the same loss, bound = {many}",
        )
    flat = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], np.float32)

    @jax.jit
    def linear(params, x, label):
        return label * jnp.sum(params * x)

    @jax.jit
    def clipped_linear(x):
        return clipped(linear, jnp.ones(3), x, jnp.ones(2), 0.5)

    got = clipped_linear(flat)
    expected = np.array([0.25, 0.0, 0.0], np.float32)
    if np.isnan(jax.tree.leaves(got)[0]).any():
        raise Failed(
            "The gradient of one example is zero, and the result is nan: 0 / 0. Keep the divisor away from zero, "
            "with `jnp.maximum(norm, 1e-12)`, say.",
            got=got,
            expected=expected,
        )
    checks.same(got, expected, input="a bare array as params; the second example has the gradient 0")
    small = np.float32(1e-4) * flat
    checks.same(
        clipped_linear(small),
        small.mean(axis=0),
        rtol=1e-3,
        atol=1e-8,
        input="gradients far below the bound, which stay as they are",
    )
    draw = np.random.default_rng(2)
    more = np.float32(draw.normal(size=(17, 3))), np.float32(draw.normal(size=17))
    checks.same(
        jax.jit(lambda *rest: clipped(loss, *rest, bound))(params, *more),
        _by_hand(params, *more, bound),
        rtol=1e-3,
        atol=1e-5,
        input="the same loss, of seventeen examples",
    )

    @jax.jit
    def of_a_line(line, x, label):
        return jnp.sum(line.slope * x + line.offset) * label

    line = jax.device_put(Line(np.ones(3, np.float32), np.float32(2)))
    checks.same(
        clipped(of_a_line, line, x, labels, bound),
        solution(of_a_line, line, x, labels, bound),
        rtol=1e-3,
        atol=1e-5,
        input="parameters in a named tuple",
    )
    sizes = []
    for n in (2, 9):
        arguments = params, *[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((n, 3), (n,))], 1.0
        sizes.append(equations(lambda *rest: clipped(loss, *rest), *arguments))
    does_not_grow(sizes, "the batch")


exercise = Exercise(
    title="Clip the gradient of each example",
    stars=2,
    minutes=15,
    why="Each example's say is bounded, not the average's: that is the heart of differentially private training.",
    hints=(
        "Write a function for one example: its gradient, its norm, its scale. Then `jax.vmap` it over `x` and `labels`.",
        "The norm is over all leaves: the root of the sum, over `jax.tree.leaves(gradient)`, of `jnp.sum(leaf**2)`.",
        "`jnp.minimum(1, bound / jnp.maximum(norm, 1e-12))` is the scale; `jax.tree.map` applies it, and later the mean.",
    ),
    solution=solution,
    check=check,
)
