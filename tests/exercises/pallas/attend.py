"""Answers to the exercise pallas.attend."""

import math

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.exercises.pallas.attend import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def online(query, key, value, interpret, *, start=lambda i, j: j == 0, lowest=-jnp.inf, subtract=True, scale=True, size=128, width=1, root=None, semantics=None):  # fmt: skip
    (queries, d), keys = query.shape, len(key)

    def kernel(q_ref, k_ref, v_ref, o_ref, total, normalizer, largest):
        @pl.when(start(pl.program_id(0), pl.program_id(1)))
        def _():
            total[...] = jnp.zeros_like(total)
            normalizer[...] = jnp.zeros_like(normalizer)
            largest[...] = jnp.full_like(largest, lowest)

        logits = jnp.dot(q_ref[...], k_ref[...].T) / ((root or math.sqrt(d)) if scale else 1)
        old = largest[..., :1]
        now = jnp.maximum(old, logits.max(axis=-1, keepdims=True)) if subtract else jnp.zeros_like(old)
        weights, rescale = jnp.exp(logits - now), jnp.exp(old - now) if subtract else 1.0
        total[...] = total[...] * rescale + jnp.dot(weights, v_ref[...])
        normalizer[...] = normalizer[...] * rescale + weights.sum(axis=-1, keepdims=True)
        largest[...] = jnp.broadcast_to(now, largest.shape)

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = total[...] / normalizer[..., :1]

    rows, piece = pl.BlockSpec((64, d), lambda i, j: (i, 0)), pl.BlockSpec((size, d), lambda i, j: (j, 0))
    return pl.pallas_call(
        kernel,
        out_shape=query,
        grid=(queries // 64, keys // size),
        in_specs=[rows, piece, piece],
        out_specs=rows,
        scratch_shapes=[pltpu.VMEM((64, each), jnp.float32) for each in (d, width, width)],
        compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
        interpret=interpret,
    )(query, key, value)


@answers.wrong("The result is NaN")
def never_set(query, key, value, interpret=True):
    return online(query, key, value, interpret, start=lambda i, j: j < 0)


@answers.wrong("Only the last piece of keys counts")
def always_set(query, key, value, interpret=True):
    return online(query, key, value, interpret, start=lambda i, j: j >= 0)


@answers.wrong("The result is wrong")
def set_once(query, key, value, interpret=True):
    return online(query, key, value, interpret, start=lambda i, j: (i == 0) & (j == 0))


@answers.wrong("The result is wrong")
def root_of_128(query, key, value, interpret=True):
    return online(query, key, value, interpret, root=math.sqrt(128))


@answers.wrong("A race")
def all_parallel(query, key, value, interpret=True):
    return online(query, key, value, interpret, semantics=("parallel", "parallel"))


@answers.wrong("square root of d is missing")
def unscaled(query, key, value, interpret=True):
    return online(query, key, value, interpret, scale=False)


@answers.wrong("largest logit so far before")
def without_maximum(query, key, value, interpret=True):
    return online(query, key, value, interpret, subtract=False)


@answers.wrong("begin with a largest logit")
def begins_at_zero(query, key, value, interpret=True):
    return online(query, key, value, interpret, lowest=0.0)


@answers.wrong("Is there a number where `d` belongs?")
def root_of_64(query, key, value, interpret=True):
    return online(query, key, value, interpret, root=8.0)


@answers.wrong("More keys than that are in VMEM")
def all_keys(query, key, value, interpret=True):
    return online(query, key, value, interpret, size=len(key))


@answers.wrong("does not lower for a TPU")
def small_pieces(query, key, value, interpret=True):
    return online(query, key, value, interpret, size=4)


@answers.wrong("divide once")
def separately(query, key, value, interpret=True):
    pieces = [online(query, key[i : i + 128], value[i : i + 128], interpret) for i in range(0, len(key), 128)]
    return sum(pieces) / len(pieces)


@answers.wrong("There is no Pallas kernel")
def by_xla(query, key, value, interpret=True):
    return jax.nn.softmax(query @ key.T / math.sqrt(query.shape[-1])) @ value


@answers.wrong("XLA does the work")
def logits_outside(query, key, value, interpret=True):
    """All logits are an array in HBM; the kernel gets pieces of it."""
    logits = query @ key.T / math.sqrt(query.shape[1])
    (queries, d), keys = query.shape, len(key)

    def kernel(logits_ref, v_ref, o_ref, total, normalizer, largest):
        @pl.when(pl.program_id(1) == 0)
        def _():
            total[...] = jnp.zeros_like(total)
            normalizer[...] = jnp.zeros_like(normalizer)
            largest[...] = jnp.full_like(largest, -jnp.inf)

        now = jnp.maximum(largest[...], logits_ref[...].max(axis=-1, keepdims=True))
        weights, rescale = jnp.exp(logits_ref[...] - now), jnp.exp(largest[...] - now)
        total[...] = total[...] * rescale + weights @ v_ref[...]
        normalizer[...] = normalizer[...] * rescale + weights.sum(axis=-1, keepdims=True)
        largest[...] = now

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = total[...] / normalizer[...]

    rows = pl.BlockSpec((64, d), lambda i, j: (i, 0))
    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((queries, d), jnp.float32),
        grid=(queries // 64, keys // 128),
        in_specs=[
            pl.BlockSpec((64, 128), lambda i, j: (i, j)),
            pl.BlockSpec((128, d), lambda i, j: (j, 0)),
        ],
        out_specs=rows,
        scratch_shapes=[pltpu.VMEM((64, each), jnp.float32) for each in (d, 1, 1)],
        interpret=interpret,
    )(logits, value)


@answers.right
def full_lanes(query, key, value, interpret=True):
    """Sums and maxima in all 128 lanes, as JAX's own kernel keeps them."""
    return online(query, key, value, interpret, width=128)


@answers.right
def queries_at_once(query, key, value, interpret=True):
    return online(query, key, value, interpret, semantics=("parallel", "arbitrary"))


@answers.right
def lowest_finite(query, key, value, interpret=True):
    return online(query, key, value, interpret, lowest=jnp.finfo(jnp.float32).min)


answers.equivalent("-1 -> 1", "-1 -> 1 (2)", because="logits have two axes, and the last one is axis 1")
