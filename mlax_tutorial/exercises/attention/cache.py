"""A cache that rolls."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.attention._chapter import attend, empty_cache
from mlax_tutorial.exercises.attention._compare import array, close, same

STEPS, HEADS, DIM = 7, 2, 4


def solution(query, key, value, cache):
    place = cache["place"]
    size = len(cache["key"])
    keys = cache["key"].at[place % size].set(key[0])
    values = cache["value"].at[place % size].set(value[0])
    allowed = jnp.arange(size)[None] <= place  # after the first round, all
    y = attend(query, keys, values, allowed)
    return y, {"key": keys, "value": values, "place": place + 1}


def windowed(q, k, v, window, seen=0):
    """Attention within a window, by NumPy, a row for each step; ``seen`` zeros stand beside the keys that are there."""
    rows = []
    for i in range(len(q)):
        start = max(0, i - window + 1)
        empty = max(0, window - i - 1) if seen else 0
        keys, values = (np.concatenate([x[start : i + 1], np.zeros((empty, HEADS, DIM))]) for x in (k, v))
        logits = np.einsum("hd,khd->hk", q[i], keys) / np.sqrt(DIM)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        rows.append(np.einsum("hk,khd->hd", weights / weights.sum(-1, keepdims=True), values))
    return np.stack(rows)


def clamped(q, k, v, window):
    """The last place is overwritten again and again."""
    rows = []
    for i in range(len(q)):
        order = list(range(min(i + 1, window)))
        order[-1] = i
        logits = np.einsum("hd,khd->hk", q[i], k[order]) / np.sqrt(DIM)
        weights = np.exp(logits - logits.max(-1, keepdims=True))
        rows.append(np.einsum("hk,khd->hd", weights / weights.sum(-1, keepdims=True), v[order]))
    return np.stack(rows)


def this_round(q, k, v, window):
    """What was written since row 0 was last overwritten."""
    return np.stack([windowed(q[: i + 1], k[: i + 1], v[: i + 1], i % window + 1)[-1] for i in range(len(q))])


def check(rolling):
    q, k, v = np.sin(np.arange(3 * STEPS * HEADS * DIM)).reshape(3, STEPS, HEADS, DIM).astype(np.float32) * 2
    k[1] = v[1] = 0  # a key may be zero, and its place is filled all the same
    window = 3

    @jax.jit
    def step(query, key, value, cache):
        given = dict(cache)
        returned = rolling(query, key, value, cache)
        if cache.keys() != given.keys() or any(cache[name] is not given[name] for name in given):
            raise Failed("The cache that came in was changed: leave it as it is, and return a new dict.")
        return returned

    cache, rows = empty_cache(window, HEADS, DIM), []
    for i in range(STEPS):
        before = jax.tree.map(lambda leaf: np.array(leaf), cache)
        returned = step(*(jnp.asarray(x[i : i + 1]) for x in (q, k, v)), cache)
        if not isinstance(returned, tuple) or len(returned) != 2 or not isinstance(returned[1], dict):
            raise Failed("`rolling` should return the result and the new cache, in this order.")
        y, cache = returned
        array(y, (1, HEADS, DIM), name=f"result of step {i}")
        _check_cache(cache, before, i)
        rows.append(np.asarray(y)[0])
    got = np.stack(rows)
    recognise = [
        (windowed(q, k, v, window, seen=1), "The first steps look at places that are not filled yet: their zeros get weight. Allow the places up to `place`."),
        (clamped(q, k, v, window), "From step 3 on, the last place is overwritten again and again: `place` must be taken modulo the size of the cache."),
        (this_round(q, k, v, window), "After a full round the rows behind `place % w` hold older keys, which are still within the window: allow them."),
        (windowed(q, k, v, window - 1), "Each query sees one key too few: it sees itself, and `w - 1` before it."),
    ]  # fmt: skip
    expected = windowed(q, k, v, window)
    for i in range(STEPS):
        if not close(got[i], expected[i]):
            same(
                got, expected, recognise, name=f"result of step {i} (the first that is wrong)", window=window
            )
    _other_window(step, q, k, v)


def _other_window(step, q, k, v):
    """A cache of another size. The answer fills it, since the order of the rows is its own."""
    w, cache = 4, empty_cache(4, HEADS, DIM)
    expected = windowed(q, k, v, w).astype(np.float32)
    for i in range(STEPS):
        with under("`jax.jit`, with a cache of 4 places"):
            y, cache = step(*(jnp.asarray(x[i : i + 1]) for x in (q, k, v)), cache)
        array(y, (1, HEADS, DIM), name="result with a cache of 4 places")
        if not close(y[0], expected[i]):
            raise Failed(
                f"With a cache of 4 places the result of step {i} is wrong: step 4 overwrites row 4 % 4, and from step 3 on all rows are "
                'allowed. Take the size from the cache, `len(cache["key"])`.',
                expected=expected[i : i + 1],
                got=y,
            )


def _check_cache(cache, before, i):
    if cache.keys() != {"key", "value", "place"}:
        raise Failed(
            f"The cache should have the entries key, place and value, got {sorted(map(str, cache))}."
        )
    for name in ("key", "value"):
        array(cache[name], before[name].shape, np.float32, f'cache["{name}"] after step {i}')
    if int(cache["place"]) != i + 1:
        raise Failed(
            f'After step {i}, `cache["place"]` should be {i + 1}: it counts the steps, also beyond the size of the cache.',
            got=cache["place"],
        )


exercise = Exercise(
    title="A cache that rolls",
    stars=3,
    minutes=15,
    why="With a window, the memory of a text generator is bounded, however long it goes on.",
    hints=(
        "Softmax does not care about the order of the keys, so it does not matter that newer keys stand before older ones. Which "
        "places hold something? At first those up to `place`; after one round, all.",
        '`cache["key"].at[place % size].set(key[0])`, likewise the values; `allowed = jnp.arange(size)[None] <= place`; then '
        "`attend(query, keys, values, allowed)`, and `place + 1` into the new cache.",
    ),
    solution=solution,
    check=check,
)
