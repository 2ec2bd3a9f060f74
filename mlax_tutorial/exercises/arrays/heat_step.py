"""From in place to functional."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks, inputs


def solution(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    u = u.at[source].add(1.0)
    return u.at[jnp.array([0, -1])].set(0.0)


def check(heat_step):
    u = jax.device_put(np.float32([1, 4, 8, 2, 6, 3]))
    telling = [(u, jax.device_put(np.int32(source))) for source in (2, 0, 5)]
    recognise = [
        (
            lambda u, source: u,
            "The rod comes back as it was. `.at[…].add(…)` returns a new array and leaves the old one alone: give "
            "the new one a name (`u = u.at[…]…`).",
        ),
        (one_by_one, "A point is computed from a neighbor that has already been changed."),
        (heat_step_set, "The source sets the temperature to 1; it must add 1 to what is there."),
        (ends_first, "The ends are set to 0 before the source is added: the order matters."),
        (no_ends, "The two ends are not 0."),
        (lambda u, source: solution(u, source).at[-1].set(u[-1]), "The last point is not 0."),
        (lambda u, source: solution(u, source).at[0].set(u[0]), "The first point is not 0."),
        (
            sets_change,
            "The inner points are set to the change alone, which must be added to what is there: `.add`, not `.set`.",
        ),
        (
            lambda u, source: solution(u.at[source].add(1.0), 0),
            "The source is added before the heat spreads.",
        ),
        (lambda u, source: solution(u, 0), "The source adds no heat."),
        (
            ends_before,
            "The ends are set to 0 before the heat spreads: their neighbors have to feel what was there.",
        ),
        (
            source_of_before,
            "The source adds 1 to the temperature from before the heat spread: within one chain of `.at`, `u` is still "
            "the old rod. `.add(1.0)` adds to the new one.",
        ),
    ]
    source = inputs.integers(0, 2).map(np.int32).map(jax.device_put)
    checks.values(heat_step, solution, inputs.arrays(6), source, examples=telling, recognise=recognise)
    jitted = checks.works_under_jit(heat_step, *telling[0])
    short = inputs.arrays(3), source
    checks.values(jitted, jax.jit(solution), *short, recognise=recognise)


def one_by_one(u, source):
    for i in range(1, len(u) - 1):
        u = u.at[i].add(0.25 * (u[i - 1] - 2 * u[i] + u[i + 1]))
    return u.at[source].add(1.0).at[0].set(0.0).at[-1].set(0.0)


def heat_step_set(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[source].set(1.0).at[0].set(0.0).at[-1].set(0.0)


def sets_change(u, source):
    u = u.at[1:-1].set(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[source].add(1.0).at[0].set(0.0).at[-1].set(0.0)


def ends_first(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[0].set(0.0).at[-1].set(0.0).at[source].add(1.0)


def no_ends(u, source):
    u = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return u.at[source].add(1.0)


def source_of_before(u, source):
    spread = u.at[1:-1].add(0.25 * (u[:-2] - 2 * u[1:-1] + u[2:]))
    return spread.at[source].set(u[source] + 1.0).at[0].set(0.0).at[-1].set(0.0)


def ends_before(u, source):
    return solution(u.at[0].set(0.0).at[-1].set(0.0), source)


exercise = Exercise(
    title="From in place to functional",
    stars=2,
    minutes=10,
    why="Every line that wrote into an array became a line that returns one, so the function can be jitted, "
    "differentiated and batched.",
    hints=(
        "One line of NumPy becomes one line with `.at`: `u[i] += a` becomes `u = u.at[i].add(a)`.",
        "`.at` takes slices and traced indices, too: `u.at[1:-1].add(…)`, `u.at[source].add(1.0)`.",
        "Keep NumPy's order, and keep a name for each new array: a result that has no name is lost.",
    ),
    solution=solution,
    check=check,
)
