"""The Wilson interval of a proportion."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(right, count, z=1.96):
    share, spread = right / count, z**2 / count
    center = share + spread / 2
    reach = jnp.sqrt(spread * share * (1 - share) + spread**2 / 4)
    return (center - reach) / (1 + spread), (center + reach) / (1 + spread)


def _wald(right, count, z):
    share = right / count
    reach = z * np.sqrt(share * (1 - share) / count)
    return share - reach, share + reach


def _coverage(interval, p=0.99, count=50, sets=2000):
    """In which share of simulated test sets the interval holds the true proportion."""
    right = np.random.default_rng(0).binomial(count, p, sets).astype(np.float32)
    low, high = (np.asarray(bound) for bound in interval(jnp.asarray(right), count, 1.96))
    return np.mean((low <= p) & (p <= high))


def check(wilson):
    right, count = jnp.float32([90, 45, 1733]), jnp.float32([100, 50, 2000])
    got = wilson(right, count, 1.96)
    checks.returned(got, "lower", "upper", asked="Return a pair: the lower bound, then the upper one.")
    shown = {"input": {"right": right, "count": count, "z": 1.96}}
    expected = solution(right, count, 1.96)
    low, high = (np.asarray(bound) for bound in got)
    for wrong, said in [
        (_wald(np.asarray(right), np.asarray(count), 1.96), None),
        (expected[::-1], "The two bounds are swapped: the lower one comes first."),
        (tuple(1.96 * (np.asarray(e) - right / count) / 1.96**2 + right / count for e in expected), "`z` has no effect where it should, or too much of one: under the root of the formula it is squared."),
        (tuple(np.asarray(e) * (1 + 1.96**2 / np.asarray(count)) for e in expected), "The division by $1 + z^2/n$ is missing."),
    ]:  # fmt: skip
        if all(np.allclose(one, two, rtol=1e-5) for one, two in zip((low, high), wrong)):
            if said is None:
                said = (
                    f"That is `p ± z sqrt(p (1 - p) / n)`. On 2,000 simulated sets of 50 images, of which a model gets 99 % right in the long run, "
                    f"it holds the 99 % in {_coverage(wilson):.0%} of the sets, and not in 95 %: most sets are all right, and then its width is 0."
                )
            raise Failed(said, expected=expected, got=got, **shown)
    checks.same(got, expected, where="for the pair of bounds", rtol=1e-4, **shown)
    for edge, name in [(0.0, "none of 20 is right"), (20.0, "all of 20 are right")]:
        got = wilson(jnp.float32(edge), jnp.float32(20), 1.96)
        checks.same(got, solution(edge, jnp.float32(20)), where=f"where {name}", rtol=1e-4, atol=1e-6)
    at_99 = wilson(jnp.float32(90), jnp.float32(100), 2.576)
    if np.allclose(at_99[0], expected[0][0], rtol=1e-4):
        raise Failed(
            "`z` has no effect: with 2.576 the interval, of 99 %, must be wider.",
            expected=solution(90.0, jnp.float32(100), 2.576),
            got=at_99,
        )
    checks.same(
        at_99,
        solution(jnp.float32(90), jnp.float32(100), 2.576),
        where="for z = 2.576",
        rtol=1e-4,
    )
    checks.works_under_jit(wilson, *jnp.float32([90, 100, 1.96]))
    checks.works_under_vmap(wilson, right, count, 1.96, in_axes=(0, 0, None))


exercise = Exercise(
    title="The Wilson interval",
    stars=1,
    minutes=10,
    why="The interval holds for few images and for accuracies near 1, where the one of the textbooks has no width at all.",
    hints=(
        "Compute the center and the reach on their own, then subtract and add.",
        "With `share = right / count` and `spread = z**2 / count`, the center is `(share + spread / 2) / (1 + spread)`.",
        "The reach is `jnp.sqrt(spread * share * (1 - share) + spread**2 / 4) / (1 + spread)`.",
    ),
    solution=solution,
    check=check,
)
