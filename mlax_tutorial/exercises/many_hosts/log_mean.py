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
    written = []
    losses = jax.make_array_from_process_local_data(NamedSharding(_two.mesh(), P("data")), mine)
    log_mean(losses, written.append)
    jax.block_until_ready(jnp.sum(losses))  # training goes on
    return [float(each) if np.ndim(each) == 0 else np.shape(each) for each in written], [
        type(each).__name__ for each in written
    ]


def check(log_mean):
    first, second = _two.run(_program, log_mean)
    if second[0] and first[0]:
        raise Failed(
            "Both processes write. With a hundred hosts the log has each line a hundred times.",
            got=(first[0], second[0]),
        )
    if second[0]:
        raise Failed("Process 1 writes, and process 0 does not: the first one is asked for.")
    if not first[0]:
        raise Failed("Nobody has called `write`.")
    if len(first[0]) > 1:
        raise Failed(f"`write` is to be called once, not {len(first[0])} times.")
    (value,), (kind,) = first
    if value == 3.03125:
        raise Failed(
            "This is the mean over the part that process 0 holds, not over all hosts.",
            expected=8.03125,
            got=value,
        )
    if value != 8.03125:
        raise Failed("This is not the mean of all losses.", expected=8.03125, got=value)
    if kind not in ("float", "float64"):  # the latter is one, too
        raise Failed(f"`write` is to get a Python float, and got {kind}: convert it by `float`.")


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
