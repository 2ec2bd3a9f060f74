"""A deep scan that stores a few carries only, by remat over segments."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.inspection import jaxprs


def solution(layer, kernels, x, segments):
    kernels = kernels.reshape(segments, -1, *kernels.shape[1:])

    def one(x, kernel):
        return layer(kernel, x), None

    @jax.checkpoint
    def segment(x, kernels):
        return jax.lax.scan(one, x, kernels)[0], None

    return jax.lax.scan(segment, x, kernels)[0]


def _layer(kernel, x):
    return x + jnp.tanh(jnp.sin(x @ kernel))


def check(in_segments):
    draw = np.random.default_rng(0)
    kernels = jnp.asarray(draw.normal(size=(12, 8, 8)) / 4, jnp.float32)
    x = jnp.asarray(draw.normal(size=(5, 8)), jnp.float32)
    expected = x
    for kernel in kernels:
        expected = _layer(kernel, expected)
    for segments in (3, 4):
        got = in_segments(_layer, kernels, x, segments)
        checks.same(got, expected, input=f"12 layers, {segments} segments", rtol=1e-4, atol=1e-4)
    _stored(in_segments)


def _stored(in_segments):
    layers, rows, width, segments = 64, 96, 8, 4
    kernels = jax.ShapeDtypeStruct((layers, width, width), jnp.float32)
    x = jax.ShapeDtypeStruct((rows, width), jnp.float32)

    def run(kernels, x):
        return in_segments(_layer, kernels, x, segments)

    # What the backward pass is handed, in units of one carry. The kernels are there in any case.
    residuals = jax.eval_shape(lambda *given: jax.vjp(run, *given)[1], kernels, x)
    carry = rows * width
    sizes = [leaf.size for leaf in jax.tree.leaves(residuals) if leaf.shape[-2:] != (width, width)]
    stored = math.ceil(sum(sizes) / carry)
    shown = {
        "input": f"{layers} layers, {segments} segments",
        "expected": f"about {segments} arrays like x",
        "got": f"{stored} arrays like x",
    }
    # A loop of Python leaves a copy of the layer for each of its rounds.
    copies = sum(each.primitive.name == "tanh" for _, each in jaxprs.walk(jax.make_jaxpr(run)(kernels, x)))
    if copies > segments:
        raise Failed(
            f"`layer` stands {copies} times in the program: loop with `jax.lax.scan`, inside of a segment, too."
        )
    if copies == segments:
        raise Failed(
            f"`layer` stands {copies} times in the program of {segments} segments: let `jax.lax.scan` go over the segments, too."
        )
    if 1 < stored < segments:
        raise Failed("Less is stored than one array for each segment: there are fewer of them.", **shown)
    if stored < segments:
        raise Failed(
            "All layers are one segment: the backward pass computes all of them again, and then holds what each layer stores at once. "
            "`jax.checkpoint` belongs around each segment.",
            **shown,
        )
    if stored <= segments + 2:
        return
    if stored >= 2 * layers:
        raise Failed(
            "The backward pass stores values of each layer: where is `jax.checkpoint`, and does it wrap a whole segment?",
            **shown,
        )
    if stored >= layers:
        raise Failed(
            "One array is stored for each layer. Either each layer is a segment of its own: wrap a function that scans over several. Or a "
            "policy keeps values of each layer.",
            **shown,
        )
    raise Failed("More is stored than one array for each segment.", **shown)


exercise = Exercise(
    title="A deep scan that stores little",
    stars=3,
    minutes=20,
    why="Between the segments one array each is stored, and within one segment its layers': with a square root of the layers as segments, memory grows as that root.",
    hints=(
        "Two loops: an outer `scan` over segments, and in its body a `scan` over the layers of one segment.",
        "`kernels.reshape(segments, -1, *kernels.shape[1:])` has the segments in front.",
        "`jax.checkpoint` belongs around the body of the outer loop: what goes into a segment is stored, and what happens in it is computed again.",
    ),
    solution=solution,
    check=check,
)
