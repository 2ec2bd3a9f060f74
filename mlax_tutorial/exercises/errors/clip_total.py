"""A branch on a traced value."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks, inputs
from mlax_tutorial.checking.guarding import original


def solution(x, limit):
    return jnp.minimum(jnp.sum(x), limit)


def check(clip_total):
    recognise = [
        (lambda x, limit: jnp.maximum(jnp.sum(x), limit), "This is the larger of the two, not the smaller."),
        (
            lambda x, limit: jnp.sum(jnp.minimum(x, limit)),
            "Each element is clipped here; asked for is the clipped sum.",
        ),
    ]
    x = jax.device_put(np.float32([1.0, 2.5, -0.5]))
    calls = [(x, jax.device_put(np.float32(limit))) for limit in (10.0, 2.0, -1.0)]
    if hasattr(original(clip_total), "lower"):
        with checks.says(
            "Every limit makes a program of its own: what may change often should not be static."
        ):
            checks.traces(clip_total, *[(x, float(limit)) for _, limit in calls], exactly=1)
    checks.values(
        clip_total,
        solution,
        inputs.arrays("n", sizes=(0, 1, 3)),
        inputs.arrays(),
        examples=[*calls, (jax.device_put(np.float32([[1.0, 2.5], [-0.5, 3.0]])), calls[0][1])],
        recognise=recognise,
    )
    checks.works_under_jit(clip_total, *calls[1])
    checks.traces(clip_total, *calls, exactly=1)
    both = np.float32([[1.0, 2.0, 0.0], [3.0, 4.0, -1.0]]), np.float32([2.0, 9.0])
    checks.works_under_vmap(clip_total, *jax.device_put(both))
    for arguments in calls:
        checks.gradients(clip_total, solution, *arguments, argnums=(0, 1))


exercise = Exercise(
    title="A branch on a traced value",
    stars=1,
    minutes=5,
    why="A choice between two numbers belongs into the program: then it is traced once, batched and differentiated.",
    hints=(
        "The error names the line: it is the `if`, as it asks for a Boolean.",
        "`jnp.where(condition, one, other)` chooses in the program. For this very choice there is a shorter word.",
    ),
    solution=solution,
    check=check,
)
