"""Answers to the exercise many_devices.pipeline."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.many_devices.pipeline import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("say how many there are")
def always_six(stage, kernel, micro, axis_name):
    size, me = jax.lax.axis_size(axis_name), jax.lax.axis_index(axis_name)

    def tick(arriving, t):
        out = stage(kernel, jnp.where(me == 0, micro[jnp.minimum(t, 5)], arriving))
        return jax.lax.ppermute(out, axis_name, [(i, i + 1) for i in range(size - 1)]), out

    start = jnp.zeros_like(micro[0]) + 0 * kernel[0, 0]
    return jax.lax.scan(tick, start, jnp.arange(6 + size - 1))[1][size - 1 :]


def run(stage, kernel, micro, axis_name, ticks, take=jnp.minimum):
    me = jax.lax.axis_index(axis_name)
    ahead = [(i, i + 1) for i in range(jax.lax.axis_size(axis_name) - 1)]

    def tick(arriving, t):
        out = stage(kernel, jnp.where(me == 0, micro[take(t, len(micro) - 1)], arriving))
        return jax.lax.ppermute(out, axis_name, ahead), out

    start = jnp.zeros_like(micro[0]) + 0 * kernel[0, 0]
    return jax.lax.scan(tick, start, jnp.arange(ticks))[1]


@answers.wrong("the others take what the one before made")
def each_for_itself(stage, kernel, micro, axis_name):
    return stage(kernel, micro)


@answers.wrong("3 places too late")
def from_the_beginning(stage, kernel, micro, axis_name):
    return jnp.roll(run(stage, kernel, micro, axis_name, 9)[3:], 3, axis=0)


@answers.wrong("at place 3 is the first that is wrong")
def stops_early(stage, kernel, micro, axis_name):
    outs = run(stage, kernel, micro, axis_name, 6)
    return jnp.concatenate([outs[3:], outs[:3]])


@answers.wrong("has the shape of `micro`")
def every_tick(stage, kernel, micro, axis_name):
    return run(stage, kernel, micro, axis_name, 9)


@answers.wrong("in 24 ticks")
def one_after_the_other(stage, kernel, micro, axis_name):
    size = jax.lax.axis_size(axis_name)
    return jnp.stack([run(stage, kernel, each[None], axis_name, size)[-1] for each in micro])


@answers.wrong("go to the next stage at once")
def all_at_once(stage, kernel, micro, axis_name):
    size = jax.lax.axis_size(axis_name)
    for _ in range(size - 1):
        micro = jax.lax.ppermute(stage(kernel, micro), axis_name, [(i, i + 1) for i in range(size - 1)])
    return stage(kernel, micro)


@answers.wrong("say how many there are")
def always_four(stage, kernel, micro, axis_name):
    return run(stage, kernel, micro, axis_name, len(micro) + 3)[3:]


@answers.wrong("there is an all-gather in it")
def gathers_the_kernels(stage, kernel, micro, axis_name):
    for each in jax.lax.all_gather(kernel, axis_name):
        micro = stage(each, micro)
    return micro


@answers.wrong("those of one microbatch")
def takes_the_first_only(stage, kernel, micro, axis_name):
    return run(stage, kernel, micro, axis_name, 9, take=lambda t, last: 0)[3:]


@answers.wrong("at place 5 is the first that is wrong")
def never_the_last(stage, kernel, micro, axis_name):
    return run(stage, kernel, micro, axis_name, 9, take=lambda t, last: jnp.minimum(t, last - 1))[3:]


@answers.wrong("at place 1 is the first that is wrong")
def each_twice(stage, kernel, micro, axis_name):
    return run(stage, kernel, micro, axis_name, 9, take=lambda t, last: t // 2)[3:]


@answers.wrong("a place too late")
def the_first_twice(stage, kernel, micro, axis_name):
    return run(stage, kernel, micro, axis_name, 9, take=lambda t, last: jnp.clip(t - 1, 0, last))[3:]


@answers.wrong("no axis of the name")
def another_name(stage, kernel, micro, axis_name):
    return run(stage, kernel, micro, "data", 9)[3:]


@answers.right
def a_loop_of_python(stage, kernel, micro, axis_name):
    me, size, outs = jax.lax.axis_index(axis_name), jax.lax.axis_size(axis_name), []
    arriving = jnp.zeros_like(micro[0])
    for t in range(len(micro) + size - 1):
        first = micro[t] if t < len(micro) else jnp.zeros_like(micro[0])
        out = stage(kernel, jnp.where(me == 0, first, arriving))
        arriving = jax.lax.ppermute(out, axis_name, [(i, i + 1) for i in range(size - 1)])
        outs.append(out)
    return jnp.stack(outs[size - 1 :])


def in_a_ring(stage, kernel, micro, axis_name, padding):
    """What comes back to the first stage is not looked at."""
    me, size = jax.lax.axis_index(axis_name), jax.lax.axis_size(axis_name)
    padded = jnp.concatenate([micro, padding((size - 1, *micro.shape[1:]))])

    def tick(arriving, first):
        out = stage(kernel, jnp.where(me == 0, first, arriving))
        return jax.lax.ppermute(out, axis_name, [(i, (i + 1) % size) for i in range(size)]), out

    start = jnp.zeros_like(padded[0]) + 0 * kernel[0, 0]
    return jax.lax.scan(tick, start, padded)[1][size - 1 :]


@answers.wrong("zeros have the dtype of `micro`")
def padded_with_float32(stage, kernel, micro, axis_name):
    return in_a_ring(stage, kernel, micro, axis_name, jnp.zeros)


@answers.right
def padded_with_zeros(stage, kernel, micro, axis_name):
    return in_a_ring(stage, kernel, micro, axis_name, lambda shape: jnp.zeros(shape, micro.dtype))


@answers.right
def padded_with_nans(stage, kernel, micro, axis_name):
    return in_a_ring(stage, kernel, micro, axis_name, lambda shape: jnp.full(shape, jnp.nan, micro.dtype))


def in_python(stage, kernel, micro, axis_name, choose, start=jnp.zeros_like, keep=jnp.stack):
    me, size, outs = jax.lax.axis_index(axis_name), jax.lax.axis_size(axis_name), []
    arriving = start(micro[0])
    for t in range(len(micro) + size - 1):
        out = stage(kernel, choose(me, micro[min(t, len(micro) - 1)], arriving))
        arriving = jax.lax.ppermute(out, axis_name, [(i, i + 1) for i in range(size - 1)])
        outs.append(out)
    return keep(outs[size - 1 :])


def where(me, first, arriving):
    return jnp.where(me == 0, first, arriving)


@answers.wrong("instead of multiplying by 0 or 1")
def sum_with_a_mask(stage, kernel, micro, axis_name):
    return in_python(
        stage, kernel, micro, axis_name, lambda me, first, arriving: (me == 0) * first + (me > 0) * arriving
    )


@answers.wrong("instead of multiplying by 0 or 1")
def only_the_first_has_inputs(stage, kernel, micro, axis_name):
    def choose(me, first, arriving):
        return arriving + (me == 0).astype(first.dtype) * first  # zeros arrive at the first

    return in_python(stage, kernel, micro, axis_name, choose)


@answers.wrong("instead of multiplying by 0 or 1")
def from_one_to_the_other(stage, kernel, micro, axis_name):
    def choose(me, first, arriving):
        return first + jnp.minimum(me, 1).astype(first.dtype) * (arriving - first)

    return in_python(stage, kernel, micro, axis_name, choose)


@answers.wrong("instead of multiplying by 0 or 1")
def inputs_masked_at_once(stage, kernel, micro, axis_name):
    mine = micro * (jax.lax.axis_index(axis_name) == 0)
    return in_python(stage, kernel, mine, axis_name, lambda me, first, arriving: first + arriving)


@answers.wrong("instead of multiplying by 0 or 1")
def one_hot(stage, kernel, micro, axis_name):
    def choose(me, first, arriving):
        return jnp.einsum(
            "i,irf->rf",
            jax.nn.one_hot(jnp.minimum(me, 1), 2, dtype=first.dtype),
            jnp.stack([first, arriving]),
        )

    return in_python(stage, kernel, micro, axis_name, choose)


@answers.wrong("instead of multiplying by 0 or 1")
def collected_by_one_hot(stage, kernel, micro, axis_name):
    def keep(outs):
        places = jax.nn.one_hot(jnp.arange(len(micro)), len(micro), dtype=micro.dtype)
        return sum(place[:, None, None] * out for place, out in zip(places, outs))

    return in_python(stage, kernel, micro, axis_name, where, keep=keep)


@answers.wrong("zeros have the dtype of `micro`")
def always_float32(stage, kernel, micro, axis_name):
    return in_python(stage, kernel, micro, axis_name, where).astype(jnp.float32)


@answers.wrong("zeros have the dtype of `micro`")
def start_in_float32(stage, kernel, micro, axis_name):
    return in_python(stage, kernel, micro, axis_name, where, start=lambda x: jnp.zeros(x.shape))


@answers.wrong("zeros have the dtype of `micro`")
def into_an_array_of_float32(stage, kernel, micro, axis_name):
    def keep(outs):
        result = jnp.zeros(micro.shape)
        for i, out in enumerate(outs):
            result = result.at[i].set(out)
        return result

    return in_python(stage, kernel, micro, axis_name, where, keep=keep)


@answers.wrong("zeros have the dtype of `micro`")
def computed_in_float32(stage, kernel, micro, axis_name):
    return in_python(stage, kernel.astype(jnp.float32), micro.astype(jnp.float32), axis_name, where)


@answers.wrong("say how many there are")
def takes_one_of_six(stage, kernel, micro, axis_name):
    size = jax.lax.axis_size(axis_name)
    ticks = len(micro) + size - 1
    return run(stage, kernel, micro, axis_name, ticks, take=lambda t, last: jnp.minimum(t, 5))[size - 1 :]


@answers.right
def into_an_array(stage, kernel, micro, axis_name):
    def keep(outs):
        result = jnp.zeros_like(micro)
        for i, out in enumerate(outs):
            result = result.at[i].set(out)
        return result

    return in_python(stage, kernel, micro, axis_name, where, keep=keep)


@answers.right
def chosen_by_select(stage, kernel, micro, axis_name):
    def choose(me, first, arriving):
        return jax.lax.select(
            jnp.broadcast_to(me == 0, first.shape),
            jax.lax.pcast(first, axis_name, to="varying")
            if hasattr(jax.lax, "pcast")
            else jax.lax.pvary(first, axis_name),
            arriving,
        )

    return in_python(
        stage, kernel, micro, axis_name, choose, start=lambda x: jnp.zeros_like(x) + 0 * kernel[0, 0]
    )


START = "jnp.zeros_like(micro[0]) + 0 * kernel[0, 0]"
answers.equivalent(
    f"{START} -> jnp.zeros_like(micro[0]) - 0 * kernel[0, 0]",
    "0 * kernel[0, 0] -> 0 / kernel[0, 0]",
    "0 * kernel[0, 0] -> -1 * kernel[0, 0]",
    "0 * kernel[0, 0] -> 1 * kernel[0, 0]",
    *(f"(0, 0) -> {place}" for place in ("(-1, 0)", "(1, 0)", "(0, -1)", "(0, 1)")),
    because="what arrives in the first ticks is never a part of the results",
)
answers.equivalent("micro[0] -> micro[-1]", "micro[0] -> micro[1]", because="only the shape is used")
answers.equivalent(
    "jnp.minimum(t, len(micro) - 1) -> t",
    "len(micro) - 1 -> len(micro) + 1",
    "len(micro) - 1 -> len(micro) - 0",
    because="JAX takes the last microbatch for an index outside, and what it makes then comes too late to count",
)
