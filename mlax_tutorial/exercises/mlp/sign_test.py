"""The exact test of two models on the same images."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import betainc

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(right_a, right_b):
    only_a = jnp.sum(right_a & ~right_b)
    only_b = jnp.sum(right_b & ~right_a)
    n, k = only_a + only_b, jnp.minimum(only_a, only_b)
    tail = betainc(n - k, k + 1, 0.5)  # at most k heads in n tosses
    return jnp.where(n == 0, 1.0, jnp.minimum(2 * tail, 1.0))


def _images(only_a, only_b, both, neither):
    """Right answers of two models, in an order of no meaning."""
    a = np.repeat([True, False, True, False], [only_a, only_b, both, neither])
    b = np.repeat([False, True, True, False], [only_a, only_b, both, neither])
    order = np.random.default_rng(0).permutation(len(a))
    return jnp.asarray(a[order]), jnp.asarray(b[order])


def _tail(n, k):
    return float(betainc(float(n - k), k + 1.0, 0.5))


def _unpaired(a, b):
    p, q, n = float(a.mean()), float(b.mean()), len(a)
    pooled = (p + q) / 2
    z = abs(p - q) / np.sqrt(2 * pooled * (1 - pooled) / n)
    return float(jax.scipy.special.erfc(z / np.sqrt(2)))


def check(sign_test):
    cases = {"A alone is right 12 times, B 3 times": (12, 3, 30, 5), "A 4 times, B 9 times": (4, 9, 12, 3)}
    for where, counts in cases.items():
        a, b = _images(*counts)
        got, expected = sign_test(a, b), solution(a, b)
        checks.returned(got)
        only_a, only_b, both, neither = counts
        n, k, total = only_a + only_b, min(only_a, only_b), sum(counts)
        for wrong, said in [
            (_tail(n, k), "That is the probability of one side. B could as well have been ahead by as much: both sides count, so double it."),
            (2 * _tail(n, n - k), "That is the larger tail. Count the tosses of the model that is right *less* often."),
            (2 * _tail(n, k - 1), "That is the probability of *fewer* than `k` heads; `k` heads themselves belong to it."),
            (_unpaired(a, b), "That compares two accuracies as if they came from different images. Use the images on which the two differ."),
            (min(1.0, 2 * _tail(total, k)), "The tosses are the images on which exactly one of the two is right; the others say nothing about which is better."),
            (2 * _tail(n + neither, k), "Images on which both are wrong are no tosses: nobody wins them."),
            (float(jax.scipy.special.erfc(abs(only_a - only_b) / np.sqrt(2 * n))), "That is the normal approximation. For so few images take the exact probability, `betainc(n - k, k + 1, 0.5)`."),
        ]:  # fmt: skip
            if np.shape(got) == () and np.isclose(float(got), wrong, rtol=1e-3):
                raise Failed(said, input=where, expected=expected, got=got)
        checks.same(got, expected, input=where, rtol=1e-3)
    a, b = _images(7, 7, 20, 6)
    got = sign_test(a, b)
    if float(got) > 1:
        raise Failed("Where both win equally often the probability comes out above 1: the case in the middle is counted on both sides. Take the minimum with 1.", input="A 7 times, B 7 times", got=got)  # fmt: skip
    checks.same(got, solution(a, b), input="A 7 times, B 7 times", rtol=1e-3)
    a, _ = _images(0, 0, 15, 5)
    got = sign_test(a, a)
    if not float(got) == 1:
        raise Failed("Two models with the same right answers: there is no toss at all, and the probability is 1.", input="the two never differ", expected=1.0, got=got)  # fmt: skip
    a, b = _images(30, 0, 20, 0)
    checks.same(sign_test(a, b), solution(a, b), input="A 30 times, B never", rtol=1e-3)
    a, b = _images(12, 3, 30, 5)
    checks.works_under_jit(sign_test, a, b)


exercise = Exercise(
    title="An exact test of two models on the same images",
    stars=2,
    minutes=20,
    why="On the same images, only those count on which the two differ, so that small differences show which intervals side by side hide.",
    hints=(
        "`jnp.sum(right_a & ~right_b)` counts the images that A alone gets right.",
        "`n` is the number of images on which exactly one is right, `k` the smaller of the two counts. Twice the probability of at most `k` heads, but no more than 1.",
        "For `n = 0` nothing was tossed: `jnp.where(n == 0, 1.0, …)`, which also works under `jit`.",
    ),
    solution=solution,
    check=check,
)
