"""Monte Carlo pi, with error bars."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import bare
from mlax_tutorial.exercises.randomness._keys import correlation, numbers_drawn, over_keys, uses_keys_once


def solution(key, n):
    x_key, y_key = jax.random.split(key)
    x, y = jax.random.uniform(x_key, (n,)), jax.random.uniform(y_key, (n,))
    inside = (x**2 + y**2 < 1).mean()
    return 4 * inside, 4 * jnp.sqrt(inside * (1 - inside) / n)


def check(estimate_pi):
    key, n = jax.random.key(0), 1000
    got, names = estimate_pi(key, n), ("estimate", "standard error")
    asked = "Return two scalars: the estimate, and its standard error."
    checks.returned(got, *names, lists=True, asked=asked)
    for name, value in zip(names, got, strict=True):
        checks.returns(lambda key, value=value: value, key, shape=())
        if not jnp.issubdtype(value.dtype, jnp.floating):
            raise Failed(f"The {name} should be a floating number.", got=got)
    estimates, errors = (np.asarray(part, np.float64) for part in over_keys(estimate_pi, 400, n))
    shown = [
        (
            "400 keys, n = 1000",
            f"estimates {estimates.mean():.3f} on average, from {estimates.min():.3f} to {estimates.max():.3f}",
        )
    ]
    if not np.isfinite(estimates).all() or not np.isfinite(errors).all():
        raise Failed("An estimate or its error is not a finite number.", got=got)
    center, spread = estimates.mean(), estimates.std()
    if spread < 1e-6:
        own = bare(estimate_pi)
        checks.keys(lambda key: own(key, n), key)
        raise Failed("The estimates for different keys are all the same.", got=got)
    if abs(center - np.pi) > 0.02:
        for value, reason in (
            (
                4 * np.sqrt(0.5),
                "Both coordinates are the same number: all points lie on a diagonal. Draw them from two keys.",
            ),
            (np.pi / 4, "This is the share of points inside; it is to be multiplied by 4."),
            (4 * (1 - np.exp(-0.5)), "The points are normal; in a square they are uniform."),
            (4 * (1 - np.pi / 4), "This counts the points outside of the circle."),
            (2.0, "The coordinates are compared without being squared."),
            (np.pi / 2, "A factor is missing: the share of points inside is pi / 4."),
            (np.pi**2 / 4, "The radius of the circle is 1, and the square's side is 2."),
        ):
            if abs(center - value) < 0.03:
                raise Failed(reason, shown=shown)
        raise Failed("The estimates are not those of pi.", shown=shown)
    if not 0.75 < spread / 0.0519 < 1.3:
        raise Failed(
            "The estimates are right on average, but they scatter otherwise than those of n independent points.",
            shown=[*shown, ("they scatter by", f"{spread:.4f}; expected 0.052")],
        )
    ratio = errors.mean() / spread
    if not 0.8 < ratio < 1.25:
        for value, reason in (
            (
                np.sqrt(n),
                "This is the standard deviation of one throw. That of the mean of n is smaller: divide by the root of n.",
            ),
            (1 / 4, "The estimate is 4 times the share of points inside, and so is its error."),
            (
                np.sqrt(n) / 4,
                "This is the standard deviation of one throw. That of the mean of n is smaller: divide by the root of n.",
            ),
            (spread, "This is the variance: the standard error is its root."),
            (n * spread, "This is the variance of one throw: divide by n, then take the root."),
            (1 / np.sqrt(n), "This divides by n, where it should by the root of n."),
            (
                1 / (0.0519 * np.sqrt(n)),
                "This is 1 over the root of n: the standard deviation of one throw is missing.",
            ),
            (2.0, "These are two standard errors; one is asked for."),
            (1.96, "These are two standard errors; one is asked for."),
        ):
            if 0.85 < ratio / value < 1.15:
                raise Failed(
                    reason,
                    shown=[("error", f"{errors.mean():.4g}"), ("the estimates scatter by", f"{spread:.4g}")],
                )
        if abs(errors.mean() - np.abs(estimates - np.pi).mean()) < 1e-3:
            raise Failed(
                "This is the distance from pi itself, which nobody knows beforehand: estimate it from the throws."
            )
        raise Failed(
            "The standard error does not fit: over many keys the estimates scatter otherwise than it says.",
            shown=[("error", f"{errors.mean():.4g}"), ("the estimates scatter by", f"{spread:.4g}")],
        )
    if np.ptp(errors) < 1e-7:
        raise Failed(
            "The standard error is the same for each key: does it know pi beforehand? Estimate it from the throws.",
            shown=[("error", f"{errors.mean():.4g}, for 400 keys")],
        )
    if correlation(errors, np.abs(estimates - np.pi)) > 0.95:
        raise Failed(
            "This is the distance from pi itself, which nobody knows beforehand: estimate it from the throws."
        )
    share = estimates / 4
    if np.abs(errors / (4 * np.sqrt(share * (1 - share) / n)) - 1).max() > 0.01:
        raise Failed(
            "The standard error does not belong to the estimate: it is right on average, but not for each key. Compute "
            "both from the same throws.",
            shown=[("estimate and error", f"{estimates[0]:.3f} and {errors[0]:.4f}")],
        )
    uses_keys_once(estimate_pi, n)
    if (drawn := numbers_drawn(estimate_pi, n)) < 2 * n:
        raise Failed(
            "A point has two coordinates, and your function draws fewer numbers. A coin that falls with probability pi / 4 "
            "knows pi beforehand: draw the points, and count those inside.",
            shown=[(f"numbers drawn for n = {n}", f"{drawn}; expected {2 * n}")],
        )
    few = np.asarray(over_keys(estimate_pi, 400, 100)[1]).mean()
    if not 0.13 < few < 0.2:
        raise Failed(
            "For n = 100 the standard error is not right: it should be larger by the root of 10 than for n = 1000.",
            shown=[("error", f"{few:.4g}; expected about 0.164")],
        )


exercise = Exercise(
    title="Monte Carlo pi, with error bars",
    stars=2,
    minutes=10,
    why="An estimate from random numbers is worth as much as its error bar, and the same numbers give both.",
    hints=(
        "By symmetry a quarter will do: x and y uniform in [0, 1), and inside means x² + y² < 1.",
        "Throws are zeros and ones: where the share of ones is p, one throw has the variance p (1 - p).",
        "The standard error of the share is the root of p (1 - p) / n. The estimate is 4 p; what is its error?",
    ),
    solution=solution,
    check=check,
)
