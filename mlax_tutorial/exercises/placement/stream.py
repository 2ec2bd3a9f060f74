"""A network whose weights come in one layer ahead."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(put, layer, weights, x):
    coming = put(weights[0]) if weights else None
    for i in range(len(weights)):
        w = coming
        if i + 1 < len(weights):
            coming = put(weights[i + 1])
        x = layer(w, x)
    return x


def check(stream):
    for count in (5, 1, 0):
        _check(stream, count)


def _check(stream, count):
    draw = np.random.default_rng(count)
    weights = [draw.normal(size=(3, 3)).astype(np.float32) for _ in range(count)]
    given = [w.copy() for w in weights]
    alive, events, most = {}, [], [0]

    def number_of(array):
        return next((i for i, w in enumerate(given) if np.array_equal(w, np.asarray(array))), None)

    def put(w):
        placed = jnp.array(w)
        number = number_of(w)
        events.append(("put", number))
        alive[number] = weakref.ref(placed)
        living = sum(ref() is not None for ref in alive.values())
        if living > 2:
            gc.collect()  # cycles are no fault of the reader's
            living = sum(ref() is not None for ref in alive.values())
        most[0] = max(most[0], living)
        return placed

    def layer(w, x):
        if not isinstance(w, jax.Array):
            raise Failed("`layer` gets a weight that still waits on the host: pass what `put` returned.")
        events.append(("layer", number_of(w)))
        return jnp.tanh(x @ w)

    x = jnp.full((2, 3), 0.5)
    expected = x
    for w in given:
        expected = jnp.tanh(expected @ w)
    got = stream(put, layer, weights, x)
    where = f"{count} layers"
    checks.same(got, expected, input=where, rtol=1e-5, atol=1e-5)
    order = [i for what, i in events if what == "layer"]
    puts = [i for what, i in events if what == "put"]
    if order != list(range(count)) or sorted(puts) != list(range(count)):
        raise Failed(
            "Each weight is to be put once, and each layer computed once, in order.",
            input=where,
            got=events,
        )
    if most[0] > 2:
        raise Failed(
            f"{most[0]} weights are on the device at a time. What still refers to those that were used: a list, or a variable that the loop has not let go of?",
            input=where,
        )
    for i in range(1, count):
        if events.index(("put", i)) > events.index(("layer", i - 1)):
            raise Failed(
                f"The copy of weight {i} begins only after layer {i - 1} has been called, so the device waits for it. Begin it before.",
                input=where,
                got=events[:4],
            )


exercise = Exercise(
    title="Stream weights one layer ahead",
    stars=3,
    minutes=20,
    why="Two layers' room is enough for a model of any depth, and while one computes the next one comes in.",
    hints=(
        "Put the first weight before the loop. In the loop: take it over, put the next one, compute.",
        "A list of all that `put` returned keeps them all alive. Two variables are enough: the weight in use, and the one that is coming.",
        "The last layer has no next one, and there may be no weights at all.",
    ),
    solution=solution,
    check=check,
)
