"""A schedule that rises, falls and never traces again."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding
from mlax_tutorial.exercises.optimizers._chapter import Tunable
from mlax_tutorial.exercises.optimizers._walk import known


class WarmUp(Tunable):
    rise: float
    steps: float

    def __call__(self, count):
        up = count / self.rise
        down = (self.steps - count) / (self.steps - self.rise)
        return jnp.maximum(jnp.minimum(up, down), 0.0)


COUNTS = np.arange(13)
# A schedule as long as a training, numbers that are not whole, and a rise that is longer than the fall.
OTHERS = {
    (1000, 100_000): np.array([0, 257, 999, 1001, 12_345, 70_001, 99_999, 100_000, 1_000_000]),
    (2.5, 9.5): COUNTS,
    (8, 12): COUNTS,
}


def _values(
    rise,
    steps,
    up=lambda t, a: t / a,
    down=lambda t, a, b: (b - t) / (b - a),
    low=0.0,
    rises=np.less_equal,
    counts=COUNTS,
):
    t = counts.astype(float)
    return np.where(rises(t, rise), up(t, rise), np.maximum(down(t, rise, steps), low))


def check(WarmUp):
    rise, steps = 4.0, 10.0
    schedule = checks.make(WarmUp, rise, steps)
    if not callable(schedule):
        raise Failed("A schedule is called with the count: your class has no `__call__`.")
    known(schedule)
    traced = []

    @jax.jit
    def factor(schedule, count):
        traced.append(True)
        return guarding.guard(schedule, "__call__")(count)

    found = [factor(schedule, jnp.int32(t)) for t in COUNTS]
    for one in found:
        checks.returned(one, by="`__call__`")
    if np.shape(found[0]) != ():
        raise Failed("For one count the schedule should return one number.", got=found[0])
    found, expected = np.array(found, float), _values(rise, steps)
    for wrong, words in (
        (_values(rise, steps, low=-9.0), "After `steps` the factor goes on falling below zero: it should stay at 0."),
        (
            _values(rise, steps, down=lambda t, a, b: (b - t) / b),
            "The fall does not begin at 1: it starts at count `rise`, so its length is `steps - rise`.",
        ),
        (
            _values(rise, steps, down=lambda t, a, b: (b - t) / b, rises=np.less),
            "The fall does not begin at 1, so the factor jumps at the peak: the fall starts at count `rise`, so its length is "
            "`steps - rise`.",
        ),
        (
            _values(rise, steps, up=lambda t, a: t // a),
            "The rise is no straight line: `//` rounds down. Divide with `/`.",
        ),
        (
            _values(rise, steps, up=lambda t, a: t // a, down=lambda t, a, b: (b - t) // (b - a)),
            "The factor is 0 or 1, and nothing between: `//` rounds down. Divide with `/`.",
        ),
        (
            _values(rise, steps, down=lambda t, a, b: 1 - (t - a) / b),
            "The fall is too flat: it takes `steps - rise` counts, and ends at count `steps`.",
        ),
        (
            _values(rise, steps, up=lambda t, a: np.minimum((t + 1) / a, 1)),
            "The rise begins above zero: at count 0 the factor should be 0, at count `rise` 1.",
        ),
        (np.clip(COUNTS / rise, 0, 1), "The factor rises and then stays at 1: the fall is missing."),
        (np.clip((steps - COUNTS) / (steps - rise), 0, 1), "The rise is missing: the factor begins at 1."),
        (
            np.clip(COUNTS / rise, 0, 1) * np.clip(1 - COUNTS / steps, 0, 1),
            "The rise is multiplied by a fall that has begun at count 0, so the factor never reaches 1.",
        ),
    ):  # fmt: skip
        if np.allclose(found, wrong, atol=1e-5) and not np.allclose(found, expected, atol=1e-5):
            raise Failed(
                words, expected=jnp.asarray(expected, jnp.float32), got=jnp.asarray(found, jnp.float32)
            )
    checks.same(
        jnp.asarray(found, jnp.float32),
        jnp.asarray(expected, jnp.float32),
        input=f"WarmUp({rise}, {steps}) at the counts 0 to 12",
        atol=1e-5,
        rtol=1e-4,
    )
    other = checks.make(WarmUp, 2, 12)
    again = np.array([factor(other, jnp.int32(t)) for t in COUNTS], float)
    if len(traced) > 1:
        raise Failed(
            "The schedule was traced again for another `rise`, other `steps` or another count: all of them must be leaves, so derive "
            "the class from `Tunable` and keep no Python number of your own."
        )
    if np.allclose(again, expected, atol=1e-5):
        raise Failed(
            "WarmUp(2, 12) gives what WarmUp(4, 10) gave: the numbers of the first one are built in.",
            expected=jnp.asarray(_values(2.0, 12.0), jnp.float32),
            got=jnp.asarray(again, jnp.float32),
        )
    checks.same(
        jnp.asarray(again, jnp.float32),
        jnp.asarray(_values(2.0, 12.0), jnp.float32),
        input="WarmUp(2, 12) at the counts 0 to 12",
        atol=1e-5,
        rtol=1e-4,
    )
    for (rise, steps), counts in OTHERS.items():
        made = checks.make(WarmUp, rise, steps)
        got = np.array([factor(made, jnp.int32(t)) for t in counts], float)
        checks.same(
            jnp.asarray(got, jnp.float32),
            jnp.asarray(_values(rise, steps, counts=counts), jnp.float32),
            input=f"WarmUp({rise}, {steps}) at the counts {', '.join(map(str, counts))}",
            atol=1e-5,
            rtol=1e-4,
        )


exercise = Exercise(
    title="A warm-up that does not retrace",
    stars=2,
    minutes=10,
    why="A schedule whose numbers are leaves can be searched over, lengthened or stopped early without compiling anything again.",
    hints=(
        "The count is traced, so a Python `if count < self.rise` raises. Write down both lines, and choose between them with numbers.",
        "The rise is `count / rise`, the fall `(steps - count) / (steps - rise)`. Before their meeting the first is the smaller one, "
        "after it the second.",
        "`jnp.maximum(jnp.minimum(up, down), 0.0)`.",
    ),
    solution=WarmUp,
    check=check,
)
