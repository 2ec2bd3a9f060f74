"""Answers to the exercise measuring.in_segments."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.measuring.in_segments import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("where is `jax.checkpoint`")
def plain(layer, kernels, x, segments):
    return jax.lax.scan(lambda x, kernel: (layer(kernel, x), None), x, kernels)[0]


@answers.wrong("each layer is a segment of its own")
def each_layer(layer, kernels, x, segments):
    return jax.lax.scan(jax.checkpoint(lambda x, kernel: (layer(kernel, x), None)), x, kernels)[0]


@answers.wrong("loop with `jax.lax.scan`")
def in_python(layer, kernels, x, segments):
    @jax.checkpoint
    def segment(x, kernels):
        for kernel in kernels:
            x = layer(kernel, x)
        return x

    for part in kernels.reshape(segments, -1, *kernels.shape[1:]):
        x = segment(x, part)
    return x


@answers.wrong("loop with `jax.lax.scan`")
def traced_again(layer, kernels, x, segments):
    for part in kernels.reshape(segments, -1, *kernels.shape[1:]):

        @jax.checkpoint
        def segment(x, kernels):
            for kernel in kernels:
                x = layer(kernel, x)
            return x

        x = segment(x, part)
    return x


@answers.wrong("each layer is a segment of its own")
def checkpoint_inside(layer, kernels, x, segments):
    @jax.checkpoint
    def one(x, kernel):
        return layer(kernel, x), None

    def segment(x, kernels):
        return jax.lax.scan(one, x, kernels)[0], None

    return jax.lax.scan(segment, x, kernels.reshape(segments, -1, *kernels.shape[1:]))[0]


@answers.wrong("differs")
def mixed_up(layer, kernels, x, segments):
    parts = kernels.reshape(-1, segments, *kernels.shape[1:]).swapaxes(0, 1)

    @jax.checkpoint
    def segment(x, kernels):
        return jax.lax.scan(lambda x, kernel: (layer(kernel, x), None), x, kernels)[0], None

    return jax.lax.scan(segment, x, parts)[0]


@answers.wrong("`return` missing")
def nothing(layer, kernels, x, segments):
    plain(layer, kernels, x, segments)


# Right ones of unusual style


@answers.right
def everything_again(layer, kernels, x, segments):
    def one(x, kernel):
        return layer(kernel, x), None

    def segment(x, kernels):
        return jax.lax.scan(jax.checkpoint(one), x, kernels)

    x, _ = jax.lax.scan(jax.remat(segment), x, kernels.reshape(segments, -1, *kernels.shape[1:]))
    return x


@answers.wrong("More is stored")
def so_many_layers_each(layer, kernels, x, segments):
    return solution(layer, kernels, x, len(kernels) // segments)


@answers.wrong("there are fewer of them")
def two_segments(layer, kernels, x, segments):
    return solution(layer, kernels, x, 2)


@answers.wrong("over the segments, too")
def scan_inside_only(layer, kernels, x, segments):
    segment = jax.checkpoint(
        lambda x, part: jax.lax.scan(lambda x, kernel: (layer(kernel, x), None), x, part)[0]
    )
    for part in kernels.reshape(segments, -1, *kernels.shape[1:]):
        x = segment(x, part)
    return x


@answers.wrong("loop with `jax.lax.scan`")
def scan_outside_only(layer, kernels, x, segments):
    @jax.checkpoint
    def segment(x, part):
        for kernel in part:
            x = layer(kernel, x)
        return x, None

    return jax.lax.scan(segment, x, kernels.reshape(segments, -1, *kernels.shape[1:]))[0]


@answers.wrong("each layer is a segment of its own")
def keeps_products(layer, kernels, x, segments):
    policy = jax.checkpoint_policies.dots_saveable
    segment = jax.checkpoint(
        lambda x, part: jax.lax.scan(lambda x, kernel: (layer(kernel, x), None), x, part), policy=policy
    )
    return jax.lax.scan(segment, x, kernels.reshape(segments, -1, *kernels.shape[1:]))[0]


@answers.wrong("All layers are one segment")
def around_everything(layer, kernels, x, segments):
    return jax.checkpoint(lambda kernels, x: solution(layer, kernels, x, segments))(kernels, x)


@answers.wrong("over the segments, too")
def segment_by_segment(layer, kernels, x, segments):
    for part in jnp.split(kernels, segments):
        x = solution(layer, part, x, 1)
    return x
