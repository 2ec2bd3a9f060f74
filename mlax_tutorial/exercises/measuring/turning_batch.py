"""The batch from which on a decode step is bound by arithmetic."""

import math

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(weights, itemsize, cache, rate, bandwidth):
    gained = 2 * weights / rate - cache / bandwidth
    if gained <= 0:
        return math.inf
    return math.ceil(weights * itemsize / bandwidth / gained)


# weights, bytes of a weight, bytes of a sequence's cache, FLOP/s, bytes/s
CASES = [
    ((10**9, 2, 0, 811e12, 3.0e12), "no cache"),
    ((10**9, 2, 10**6, 811e12, 3.0e12), "a short cache"),
    ((10**9, 4, 10**6, 60e12, 3.0e12), "float32"),
    ((10**9, 1, 10**6, 811e12, 3.0e12), "a byte a weight"),
    ((10**9, 2, 10**8, 811e12, 3.0e12), "a long cache"),
    ((10**6, 2, 10, 1e9, 1e12), "a slow processor"),
    ((2**20, 2, 2**11 - 2**8, 2.0**30, 2.0**20), "a large batch, at which both take equally long"),
    ((10**6, 2, 0, 1.1000005e15, 1e9), "a batch of more than a million"),
    (
        (2**20, 2, 2**11, 2.0**30, 2.0**20),
        "a cache that takes as long to read as a sequence takes to compute",
    ),
]


def _is_number(got):
    try:
        float(got)
    except (TypeError, ValueError):
        return False
    return not isinstance(got, str)


def check(turning_batch):
    for case, _ in CASES:
        weights, itemsize, cache, rate, bandwidth = case
        got, expected = turning_batch(*case), solution(*case)
        shown = {
            "input": dict(zip(("weights", "itemsize", "cache", "rate", "bandwidth"), case)),
            "expected": expected,
            "got": got,
        }
        checks.returned(got, **shown)
        if not _is_number(got):
            raise Failed("Return one number: the batch.", **shown)
        if math.isinf(expected):
            if not math.isinf(got):
                raise Failed(
                    "With this cache it never turns: to read the cache of a further sequence takes at least as long as its arithmetic. Return `math.inf`.",
                    **shown,
                )
            continue
        if math.isinf(got):
            raise Failed(
                "Here a further sequence takes longer to compute than its cache takes to read, so it does turn.",
                **shown,
            )
        if got == expected and float(got).is_integer():
            continue
        without = weights * itemsize / bandwidth / (2 * weights / rate)
        if cache and round(got) in (math.ceil(without), math.floor(without)):
            raise Failed(
                "The weights are read once a step, but the cache once for each sequence: it grows with the batch.",
                **shown,
            )
        if abs(got - expected) <= 1:
            raise Failed(
                "Return the smallest whole batch whose arithmetic takes at least as long as its memory.",
                **shown,
            )
        if math.isclose(got, 2 * expected, rel_tol=0.02):
            raise Failed(
                "Twice too many: a weight is multiplied and added for each sequence, which is 2 FLOPs.",
                **shown,
            )
        if math.isclose(got * itemsize, expected, rel_tol=0.05):
            raise Failed("Weights have bytes: multiply them by `itemsize`.", **shown)
        raise Failed(
            "For a batch, compare 2 FLOPs a weight and sequence at `rate` with all weights, and a cache for each sequence, at `bandwidth`.",
            **shown,
        )


exercise = Exercise(
    title="At which batch does a decode step turn compute-bound?",
    stars=2,
    minutes=15,
    why="Below that batch, further sequences are nearly free, since the weights have to be read anyway; with long caches it never comes.",
    hints=(
        "Arithmetic takes `2 * weights * batch / rate`, memory `(weights * itemsize + batch * cache) / bandwidth`. When are they equal?",
        "Collect the terms with the batch on one side. If their factor is not positive, the answer is `math.inf`.",
        "Round up with `math.ceil`.",
    ),
    solution=solution,
    check=check,
)
