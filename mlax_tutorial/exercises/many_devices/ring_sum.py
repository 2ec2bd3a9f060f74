"""The sum over all devices, passed round a ring."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.many_devices import _eight
from mlax_tutorial.inspection import collectives


def solution(x, axis_name):
    size = jax.lax.axis_size(axis_name)
    ring = [(i, (i + 1) % size) for i in range(size)]
    total = x
    for _ in range(size - 1):
        x = jax.lax.ppermute(x, axis_name, ring)
        total = total + x
    return total


def check(ring_sum):
    for size in (8, 6):
        x = _eight.numbers(size, size, 3)
        function = _eight.each(lambda part: ring_sum(part[0], "ring"), P("ring"), name="ring", size=size)
        got, right = function(x), x.sum(0)
        if got.shape != (size, 3):
            raise Failed(f"On each device the result has the shape of `x`, (3,), not {got.shape[1:]}.")
        if not all(_eight.close(row, right) for row in got):
            if _eight.close(got[0], right):
                raise Failed("Only the first device has the sum: pass the numbers round, so that all have it.", expected=right, got=got)  # fmt: skip
            if all(_eight.close(row, 2 * right) for row in got):
                raise Failed(f"It is twice the sum: {size - 1} steps bring everything to everyone.", expected=right, got=got[0])  # fmt: skip
            if all(_eight.close(row, right + own) for row, own in zip(got, x)):
                raise Failed(
                    f"Each device has added its own part twice: after {size} steps round the ring it is back. {size - 1} are enough.",
                    expected=right, got=got[0],
                )  # fmt: skip
            raise Failed(
                f"On {size} devices this is not the sum of their parts.", input={"x on each device": x}, expected=right, got=got[0]
            )  # fmt: skip
        counts = collectives.count(function, x)
        others = [kind for kind in counts if kind != "collective-permute"]
        if others:
            raise Failed(f"The sum is right, but it is made by an {others[0]}. Use nothing but `ppermute`.")
        steps, moved = counts["collective-permute"]
        if moved > (size - 1) * x[0].nbytes:  # more steps with smaller pieces are welcome
            raise Failed(
                f"The sum is right. On {size} devices it sends {moved} bytes from each, in {steps} steps; "
                f"{size - 1} steps of {x[0].nbytes} bytes do."
            )
    whole = function(jnp.arange(18).reshape(6, 3))
    if whole.dtype != jnp.int32:
        raise Failed(f"The sum of integers is made of integers, as that of `psum`, not of {whole.dtype}.")


exercise = Exercise(
    title="psum, by a ring of ppermute",
    stars=2,
    minutes=15,
    why="What XLA calls an all-reduce is such a ring, in two rounds with an eighth of the numbers each: the links between chips form one.",
    hints=(
        "A permutation is a list of pairs (from, to). The ring of `n` devices is `[(i, (i + 1) % n) for i in range(n)]`, and `jax.lax.axis_size(axis_name)` is `n`.",
        "Pass on what just came, and add it to your total. What you pass on is not the total.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
