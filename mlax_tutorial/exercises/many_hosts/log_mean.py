"""The mean over all hosts, logged by one of them."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.many_hosts import _two


def solution(losses, write):
    mean = jnp.mean(losses)  # all processes compute it
    if jax.process_index() == 0:
        write(float(mean))


def _program(log_mean):
    mine = np.float32([1, 2, 3, 6.125]) + 10 * jax.process_index()
    table = np.float32([[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 108.0]]) + 2 * jax.process_index()
    found = []
    for part, spec in ((mine, P("data")), (table, P(None, "data"))):
        written = []
        losses = jax.make_array_from_process_local_data(NamedSharding(_two.mesh(), spec), part)
        log_mean(losses, written.append)
        jax.block_until_ready(jnp.sum(losses))  # training goes on
        values = [float(each) if np.ndim(each) == 0 else np.shape(each) for each in written]
        found.append((values, [type(each).__name__ for each in written]))
    return found


def check(log_mean):
    (first, table), (second, _), (third, _) = _two.run(_program, log_mean, processes=3)
    if first[0] and not second[0] and third[0]:
        raise Failed("Process 2 writes as well: only process 0 is asked for.")
    if second[0] and first[0]:
        raise Failed(
            "All processes write. With a hundred hosts the log has each line a hundred times.",
            got=(first[0], second[0], third[0]),
        )
    if second[0] or (third[0] and not first[0]):
        raise Failed(
            f"Process {1 if second[0] else 2} writes, and process 0 does not: the first one is asked for."
        )
    if not first[0]:
        raise Failed("Nobody has called `write`.")
    if len(first[0]) > 1:
        raise Failed(f"`write` is to be called once, not {len(first[0])} times.")
    (value,), (kind,) = first
    if value == 3.03125:
        raise Failed(
            "This is the mean over the part that process 0 holds, not over all hosts.",
            expected=13.03125,
            got=value,
        )
    if value != 13.03125:
        raise Failed("This is not the mean of all losses.", expected=13.03125, got=value)
    if kind not in ("float", "float64"):  # the latter is one, too
        raise Failed(f"`write` is to get a Python float, and got {kind}: convert it by `float`.")
    if table[0] != [16.5]:
        raise Failed(
            "Right for losses along one axis, but not for those of shape (3, 12), of which each device holds two columns: the mean is that of all "
            "numbers, of which there are `losses.size`.",
            expected=16.5, got=table[0][0] if len(table[0]) == 1 else table[0],
        )  # fmt: skip


exercise = Exercise(
    title="Only process 0 logs",
    stars=2,
    minutes=10,
    seconds=_two.SECONDS,
    why="Compute together, write alone: a computation over all devices inside of `if jax.process_index() == 0` waits for ever.",
    hints=(
        "The mean is a computation over the devices of all processes, so all of them must ask for it. Only the writing is for one.",
        "First `mean = jnp.mean(losses)`, then the `if`. A mean is a scalar on all devices, so `float` works in each process.",
    ),
    solution=solution,
    check=check,
)
