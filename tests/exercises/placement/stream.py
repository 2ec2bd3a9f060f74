"""Answers to the exercise placement.stream."""

import collections

from mlax_tutorial.exercises.placement.stream import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("weights are on the device at a time")
def all_at_once(put, layer, weights, x):
    for w in [put(w) for w in weights]:
        x = layer(w, x)
    return x


@answers.wrong("so the device waits for it")
def one_by_one(put, layer, weights, x):
    for w in weights:
        x = layer(put(w), x)
    return x


@answers.wrong("still waits on the host")
def never_put(put, layer, weights, x):
    for w in weights:
        x = layer(w, x)
    return x


@answers.wrong("weights are on the device at a time")
def two_ahead(put, layer, weights, x):
    queue = collections.deque(put(w) for w in weights[:2])
    for i in range(len(weights)):
        if i + 2 < len(weights):
            queue.append(put(weights[i + 2]))
        x = layer(queue.popleft(), x)
    return x


@answers.wrong("weights are on the device at a time")
def keeps_them(put, layer, weights, x):
    placed = []
    if weights:
        placed.append(put(weights[0]))
    for i in range(len(weights)):
        if i + 1 < len(weights):
            placed.append(put(weights[i + 1]))
        x = layer(placed[i], x)
    return x


@answers.wrong("Each weight is to be put once")
def puts_twice(put, layer, weights, x):
    for i in range(len(weights)):
        w = put(weights[i])
        if i + 1 < len(weights):
            put(weights[i + 1])
        x = layer(w, x)
    return x


@answers.wrong("IndexError")
def no_last(put, layer, weights, x):
    coming = put(weights[0])
    for i in range(len(weights)):
        w, coming = coming, put(weights[i + 1])
        x = layer(w, x)
    return x


@answers.wrong("`return` missing")
def nothing(put, layer, weights, x):
    with_a_queue(put, layer, weights, x)


# Right ones of unusual style


@answers.wrong("weights are on the device at a time")
def a_generator_and_its_loop(put, layer, weights, x):
    def placed():
        coming = None
        for w in weights:
            now, coming = coming, put(w)
            if now is not None:
                yield now
        if coming is not None:
            yield coming

    for w in placed():
        x = layer(w, x)
    return x


@answers.right
def by_pairs(put, layer, weights, x):
    held = [put(w) for w in weights[:1]]
    for i in range(len(weights)):
        held += [put(w) for w in weights[i + 1 : i + 2]]
        x = layer(held[0], x)
        del held[0]
    return x


@answers.right
def with_a_queue(put, layer, weights, x):
    queue = collections.deque([put(w) for w in weights[:1]])
    for w in weights[1:]:
        queue.append(put(w))
        x = layer(queue.popleft(), x)
    return layer(queue.popleft(), x) if queue else x
