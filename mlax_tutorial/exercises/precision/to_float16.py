"""Round to float16 by chance."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks

MANY = 4000  # copies of each number


def solution(key, x):
    near = x.astype(jnp.float16)
    error = x - near.astype(jnp.float32)
    beyond = jnp.where(error > 0, jnp.inf, -jnp.inf).astype(jnp.float16)
    other = jnp.nextafter(near, beyond)
    gap = jnp.abs(other.astype(jnp.float32) - near.astype(jnp.float32))
    moves = jax.random.uniform(key, x.shape) * gap < jnp.abs(error)
    return jnp.where(moves, other, near)


def check(to_float16):
    key, other = jax.random.split(jax.random.key(0))
    normal = [
        1.0002,
        1.0005,
        1.0005,
        1.0008,
        -3.1415927,
        1234.567,
        -0.1,
        6.201e-5,
        1.1013e-4,
        3.0004e-4,
        7.0013e-4,
        5.0017e-3,
        0.0400117,
    ]
    subnormal = [1e-8, 4e-8, -1.3e-6, 3.0000001e-5]
    exact = [0.0, 1.0, -2.5, 65504.0]
    barely = [1 + 2.0**-23] * 16  # goes up in one of 8192 cases
    numbers = np.array(normal + subnormal + exact + barely, np.float32)
    x = jax.device_put(np.repeat(numbers[:, None], MANY, axis=1))
    checks.returns(to_float16, key, x, shape=x.shape, dtype=jnp.float16)
    got = np.asarray(to_float16(key, x), np.float64)
    if np.isnan(got).any():
        raise Failed("Some of the results are NaN, and none of the numbers is.")
    low, high = _neighbors(numbers)
    near = numbers.astype(np.float16).astype(np.float32)
    stays = [i for i in range(len(normal)) if np.all(got[i] == near[i])]
    one_sided = 0 < len(stays) < len(normal) and len({bool(near[i] > numbers[i]) for i in stays}) == 1
    pairs = [(got[1, i : MANY - 1 : 2], got[1, i + 1 :: 2]) for i in (0, 1)]
    if len(set(got[1])) > 1 and any(np.array_equal(*pair) for pair in pairs):
        raise Failed("Each two neighbors are rounded by the same random number: draw one for each element.")
    if len(set(got[1])) > 1 and any(np.array_equal(got[1, i:], got[1, :-i]) for i in range(1, MANY // 2)):
        raise Failed("The same random numbers come again along a row: draw one for each element, `x.shape`.")
    for i, number in enumerate(numbers[: -len(barely)]):
        stuck_at = near[i] if one_sided and i in stays else None
        _one(number, got[i], low[i], high[i], i >= len(normal), stuck_at)
    _barely(got[-len(barely) :])
    if np.array_equal(got[1], got[2]):  # two rows of 1.0005
        raise Failed(
            "All rows of x are rounded by the same random numbers: draw one for each element, `x.shape`."
        )
    for shape in ((), (5,), (2, 3, 4)):
        few = jnp.full(shape, 1.0005, jnp.float32)
        checks.returns(to_float16, key, few, shape=shape, dtype=jnp.float16)
    again = np.asarray(to_float16(other, x), np.float64)
    if np.array_equal(got, again):
        raise Failed("Another key gives the same result.")
    checks.keys(to_float16, key, x, depends=False)


def _neighbors(numbers):
    """The float16 numbers below and above, by NumPy."""
    near = numbers.astype(np.float16)
    with np.errstate(over="ignore"):  # above the largest is infinity
        down, up = np.nextafter(near, np.float16(-np.inf)), np.nextafter(near, np.float16(np.inf))
    wide = near.astype(np.float64)
    low, high = np.where(wide > numbers, down, near), np.where(wide < numbers, up, near)
    return low.astype(np.float64), high.astype(np.float64)


def _barely(got):
    """Random numbers of few digits cannot be smaller than a small probability."""
    up = int(np.sum(got != 1))
    if up > 30:  # 8 are expected
        raise Failed(
            "A number just above 1 is rounded up too often: the random numbers are too coarse to be smaller than a small probability. "
            "Draw them in float32 (in float16 `jax.random.uniform` has about a thousand values).",
            input="x = 1.00000012",
            shown=[
                ("expected", f"{1 + 2.0**-10:.8g} in about {got.size / 8192:.0f} of {got.size} cases"),
                ("got", f"in {up}"),
            ],
        )


def _one(number, got, low, high, is_small, stuck_at):
    number = float(number)
    shown = {"input": f"x = {number:.8g}"}
    between = f"{low:.8g} or {high:.8g}" if low != high else f"{low:.8g}"
    if not np.isin(got, (low, high)).all():
        odd = got[~np.isin(got, (low, high))][0]
        shown["shown"] = [("expected", between), ("got", f"{odd:.8g}")]
        if low == high:
            raise Failed("A number of float16 should stay as it is.", **shown)
        if is_small:
            raise Failed(
                "Right for ordinary numbers, wrong below 6e-5, where the distances of float16 no longer shrink.",
                **shown,
            )
        raise Failed("The result is none of the two neighbors.", **shown)
    if low == high:
        return
    wanted, share = (number - low) / (high - low), float(np.mean(got == high))
    shown["shown"] = [("expected", f"{high:.4g} in {wanted:.0%} of the cases"), ("got", f"in {share:.0%}")]
    if abs(share - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / MANY):
        return
    if is_small:
        raise Failed(
            "Right for ordinary numbers, wrong below 6e-5, where the distances of float16 no longer shrink.",
            **shown,
        )
    if stuck_at is not None:
        side = "above" if stuck_at > number else "below"
        raise Failed(
            f"Only numbers on one side are rounded by chance: where the nearest float16 lies {side} x, it is always taken. The error has "
            "a sign, which says where the other neighbor lies; the probability is its size over the gap.",
            **shown,
        )
    if share in (0.0, 1.0):
        raise Failed("All copies of a number are rounded to the same neighbor: where is the chance?", **shown)
    if abs(share - 0.5) < 0.04:
        raise Failed("Both neighbors are equally likely; the nearer one should be more likely.", **shown)
    if abs(share - (1 - wanted)) < 0.04:
        raise Failed("The probabilities are swapped: the farther neighbor is chosen more often.", **shown)
    raise Failed("The upper neighbor comes with the wrong probability, so the mean is wrong.", **shown)


exercise = Exercise(
    title="Round to float16 by chance",
    stars=3,
    minutes=15,
    why="A rounding that is right on average loses nothing, however small the updates and however many of them.",
    hints=(
        "`near = x.astype(jnp.float16)`, and `error = x - near.astype(jnp.float32)` says in which direction x lies from there.",
        "The other neighbor is `jnp.nextafter(near, …)`, toward plus or minus infinity, a float16 as well. The distance of the "
        "two, in float32, is `gap`.",
        "Go to the other neighbor with the probability |error| / gap: where `jax.random.uniform(key, x.shape) * gap < jnp.abs(error)`.",
    ),
    solution=solution,
    check=check,
    differentiable=False,
)
