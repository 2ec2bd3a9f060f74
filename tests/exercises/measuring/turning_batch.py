"""Answers to the exercise measuring.turning_batch."""

import math

from mlax_tutorial.exercises.measuring.turning_batch import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("it grows with the batch")
def no_cache(weights, itemsize, cache, rate, bandwidth):
    return math.ceil(itemsize * rate / bandwidth / 2)


@answers.wrong("it grows with the batch")
def one_cache(weights, itemsize, cache, rate, bandwidth):
    return math.ceil((weights * itemsize + cache) * rate / bandwidth / 2 / weights)


@answers.wrong("Return `math.inf`")
def never_none(weights, itemsize, cache, rate, bandwidth):
    gained = 2 * weights / rate - cache / bandwidth
    return math.ceil(weights * itemsize / bandwidth / gained)


@answers.wrong("ZeroDivisionError")
def never_none_but_one(weights, itemsize, cache, rate, bandwidth):
    gained = 2 * weights / rate - cache / bandwidth
    if gained < 0:
        return math.inf
    return math.ceil(weights * itemsize / bandwidth / gained)


@answers.wrong("smallest whole batch")
def rounded_down(*case):
    batch = solution(*case)
    return batch - 1


@answers.wrong("which is 2 FLOPs")
def one_flop(weights, itemsize, cache, rate, bandwidth):
    return (
        solution(weights, itemsize, cache / 2, rate * 2, bandwidth)
        if cache
        else math.ceil(itemsize * rate / bandwidth)
    )


@answers.wrong("multiply them by `itemsize`")
def without_bytes(weights, itemsize, cache, rate, bandwidth):
    return solution(weights, 1, cache, rate, bandwidth)


@answers.wrong("so it does turn")
def always_none(*case):
    return math.inf


@answers.wrong("so it does turn")
def searches_not_far(weights, itemsize, cache, rate, bandwidth):
    for batch in range(1, 10_000):
        if 2 * weights * batch / rate >= (weights * itemsize + batch * cache) / bandwidth:
            return batch
    return math.inf


@answers.wrong("`return` missing")
def none_if_never(*case):
    batch = solution(*case)
    if batch < math.inf:
        return batch


@answers.wrong("Return one number")
def in_words(*case):
    batch = solution(*case)
    return batch if batch < math.inf else "never"


# Right ones of unusual style


@answers.right
def by_search(weights, itemsize, cache, rate, bandwidth):
    if 2 * weights / rate <= cache / bandwidth:
        return math.inf
    batch = 1
    while 2 * weights * batch / rate < (weights * itemsize + batch * cache) / bandwidth:
        batch += 1
    return batch


@answers.right
def by_float(*case):
    batch = solution(*case)
    return float(batch)


@answers.wrong("smallest whole batch")
def always_one_more(weights, itemsize, cache, rate, bandwidth):
    gained = 2 * weights / rate - cache / bandwidth
    return math.floor(weights * itemsize / bandwidth / gained) + 1 if gained > 0 else math.inf
