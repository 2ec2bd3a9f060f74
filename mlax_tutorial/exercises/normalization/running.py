"""Running averages as PyTorch keeps them."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.normalization._compare import close, drawn


def solution(averages, x, momentum):
    x = jax.lax.stop_gradient(x)
    mean = jnp.mean(x, axis=0)
    variance = jnp.sum((x - mean) ** 2, axis=0) / (len(x) - 1)
    return {
        "mean": (1 - momentum) * averages["mean"] + momentum * mean,
        "variance": (1 - momentum) * averages["variance"] + momentum * variance,
    }


def check(running):
    x, momentum = drawn(4, 3), 0.25
    old = {
        "mean": np.array([1.0, -2.0, 0.5], np.float32),
        "variance": np.array([2.0, 1.0, 3.0], np.float32),
    }
    given = {"averages": old, "x": x, "momentum": momentum}
    averages = jax.device_put(old)
    before = dict(averages)
    got = running(averages, jax.device_put(x), momentum)
    if any(averages.get(name) is not value for name, value in before.items()):
        raise Failed(
            "Your function changes the dict that it is given: return a new one.", input=given, got=got
        )
    if not isinstance(got, dict) or set(got) != {"mean", "variance"}:
        raise Failed('Return the new averages, a dict of "mean" and "variance".', input=given, got=got)
    for name, value in got.items():
        if np.shape(value) != (3,):
            raise Failed(
                f'`"{name}"` should have the shape (3,), one number for each feature, got {np.shape(value)}.',
                input=given,
                got=value,
            )

    def after(new, name, momentum=momentum):
        return (1 - momentum) * old[name] + momentum * new

    mean, variance = x.mean(0), x.var(0, ddof=1)
    total = np.full(3, x.mean())
    wrong = {
        "mean": [
            (after(mean, "mean", 1 - momentum), "The momentum is the other way round: in PyTorch it is the weight of the new value."),
            (after(total, "mean"), "The mean is taken over features, too: each feature has its own, over axis 0."),
            (after(total, "mean", 1 - momentum), "The mean is taken over features, too: each feature has its own, over axis 0."),
            (mean, "This is the mean of the batch alone: the average should move to it by a quarter of the way."),
        ],
        "variance": [
            (after(variance, "variance", 1 - momentum), "The momentum is the other way round for the variance: it is the weight of the new value."),
            (after(x.var(0), "variance"), "The variance is biased: PyTorch's running variance is divided by n - 1."),
            (after(x.var(0, ddof=0) * 3 / 4, "variance"), "The correction is upside down: n / (n - 1) makes the variance larger."),
            (after(((x - old["mean"]) ** 2).mean(0), "variance"), "The variance is measured from the running mean: it belongs to the batch, so measure it from the batch's own mean."),
            (after(((x - old["mean"]) ** 2).sum(0) / 3, "variance"), "The variance is measured from the running mean: it belongs to the batch, so measure it from the batch's own mean."),
            (after(((x - after(mean, "mean")) ** 2).sum(0) / 3, "variance"), "The variance is measured from the new running mean: it belongs to the batch, so measure it from the batch's own mean."),
            (after(((x - after(mean, "mean")) ** 2).mean(0), "variance"), "The variance is measured from the new running mean: it belongs to the batch, so measure it from the batch's own mean."),
            (after(np.sqrt(variance), "variance"), "This averages the standard deviation, and the variance is asked for."),
            (after(np.full(3, x.var(ddof=1)), "variance"), "The variance is taken over features, too: each feature has its own, over axis 0."),
        ],
    }  # fmt: skip
    for name, new in (("mean", mean), ("variance", variance)):
        if close(got[name], after(new, name)):
            continue
        said = next((text for value, text in wrong[name] if close(got[name], value)), f"The {name} is wrong.")
        raise Failed(said, input=given, expected=after(new, name), got=got[name])

    def total_of(x):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(running(old, x, momentum)))

    if np.any(np.asarray(jax.grad(total_of)(jax.device_put(x))) != 0):
        raise Failed(
            "A gradient passes through the averages into x: take `jax.lax.stop_gradient(x)`, or of what is computed from it.",
            input=given,
        )
    _other_batches(running, old)


def _other_batches(running, old):
    """More rows, another momentum, under jit; and numbers far from zero."""
    old, momentum = jax.device_put(old), 0.1
    with under("`jax.jit`"):
        compiled = jax.jit(lambda averages, x, momentum: running(averages, x, momentum))
        for offset, said in [(0, "For a batch of 7 examples"), (1000, "For numbers far from zero")]:
            x = drawn(7, 3, seed=1) + np.float32(offset)
            got = compiled(old, jax.device_put(x), jnp.float32(momentum))
            for name, new in (("mean", x.mean(0)), ("variance", x.var(0, ddof=1))):
                expected = (1 - momentum) * np.asarray(old[name]) + momentum * new
                if not close(got[name], expected):
                    why = ": subtract the mean before you square, as `jnp.var` does" if offset else ""
                    raise Failed(
                        f"{said} the {name} is wrong{why}.",
                        input={"averages": old, "x": x, "momentum": momentum},
                        expected=np.asarray(expected, np.float32),
                        got=got[name],
                    )


exercise = Exercise(
    title="Running averages, corrected",
    stars=2,
    minutes=12,
    why="None of these bugs raises, none shows in the training loss, and each one spoils the evaluation.",
    hints=(
        "Compare shapes: what has the mean of all of x to do with feature 2? Then ask of each average where it is measured from, and "
        "which of the two numbers is new.",
        "The variance of a batch is measured from the batch's own mean, and divided by `len(x) - 1`.",
        "`(1 - momentum) * old + momentum * new`, for both, with `x = jax.lax.stop_gradient(x)` in the first line.",
    ),
    solution=solution,
    check=check,
    differentiable=False,
)
