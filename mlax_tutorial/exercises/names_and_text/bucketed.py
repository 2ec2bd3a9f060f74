"""One epoch of batches from buckets."""

import jax
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(key, lengths, bounds, batch_size):
    order_key, *keys = jax.random.split(key, len(bounds) + 1)
    bucket, batches = np.searchsorted(bounds, lengths), []
    for number, (bound, bucket_key) in enumerate(zip(bounds, keys)):
        rows = np.flatnonzero(bucket == number)
        rows = rows[np.asarray(jax.random.permutation(bucket_key, len(rows)))]
        whole = len(rows) - len(rows) % batch_size
        batches += [(part, bound) for part in rows[:whole].reshape(-1, batch_size)]
    order = np.asarray(jax.random.permutation(order_key, len(batches)))
    return [batches[i] for i in order]


# Eight for each bound: each new size compiles a permutation anew.
LENGTHS = np.array([2, 9, 4, 5, 1, 8, 4, 7, 10, 5, 2, 6, 7, 4, 8, 9, 6, 3, 10, 5, 8, 2, 7, 9], np.int64)
BOUNDS, SIZE = (4, 7, 10), 3


def check(bucketed):
    key = jax.random.key(3)
    given = {"lengths": LENGTHS, "bounds": BOUNDS, "batch_size": SIZE}
    batches = _read(bucketed(key, LENGTHS, BOUNDS, SIZE), given)
    bucket = np.asarray(BOUNDS)[np.searchsorted(BOUNDS, LENGTHS)]
    for rows, time in batches:
        if time not in BOUNDS:
            raise Failed(
                f"A batch is padded to {time}, which is none of the bounds.", input=given, got=(rows, time)
            )
        if LENGTHS[rows].max() > time:
            raise Failed(
                f"A sequence of length {LENGTHS[rows].max()} is in a batch of length {time}: it would be cut.",
                input=given,
                got=(rows, time),
            )
        if (bucket[rows] != time).any():
            raise Failed(
                f"A sequence of length {LENGTHS[rows].min()} is in a batch of length {time}, though it fits into a smaller bound: that is padding.",
                input=given, got=(rows, time),
            )  # fmt: skip
    seen = np.concatenate([rows for rows, _ in batches])
    if len(set(seen.tolist())) < len(seen):
        raise Failed("An example comes twice in one epoch.", input=given, got=batches)
    for bound in BOUNDS:
        wanted, found = int((bucket == bound).sum()) // SIZE, sum(time == bound for _, time in batches)
        if found != wanted:
            raise Failed(
                f"There are {(bucket == bound).sum()} examples for the bound {bound}, so {wanted} batches of {SIZE}; you have {found}.",
                input=given, got=batches,
            )  # fmt: skip
    _shuffled(bucketed, key, batches, given)
    _each_key_once(bucketed, jax.random.key(4), given)
    _more(bucketed)


def _read(batches, given):
    """The batches as pairs of NumPy rows and a number."""
    checks.returned(batches)
    batches = list(batches)
    for batch in batches:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise Failed("Each batch is a pair `(rows, time)`.", got=batch)
        if np.shape(batch[0]) != (given["batch_size"],):
            raise Failed(
                f"Each batch has {given['batch_size']} rows, so that it has one shape; this one has the shape {np.shape(batch[0])}.",
                input=given,
                got=batch,
            )
        if not np.issubdtype(np.asarray(batch[0]).dtype, np.integer):
            raise Failed("The rows are indices, so integers.", got=batch)
    return [(np.asarray(rows), int(time)) for rows, time in batches]


def _numbers(batches):
    return np.array([[*np.asarray(rows), int(time)] for rows, time in batches])


def _shuffled(bucketed, key, batches, given):
    again = _numbers(bucketed(key, LENGTHS, BOUNDS, SIZE))
    if not np.array_equal(again, _numbers(batches)):
        raise Failed("The same key gives other batches: all randomness should come from the key.")
    epochs = [_numbers(bucketed(jax.random.fold_in(key, i), LENGTHS, BOUNDS, SIZE)) for i in range(6)]
    if all(np.array_equal(epoch, epochs[0]) for epoch in epochs):
        raise Failed("Every key gives the same batches: nothing is shuffled by it.", input=given)
    groups = [frozenset(map(frozenset, epoch[:, :-1].tolist())) for epoch in epochs]
    if len(set(groups)) > 1 and all(map(_alike, epochs)):
        raise Failed(
            "A random key is used twice: all buckets are shuffled alike. Split the key, and use each of the new ones once.",
            input=given,
        )
    if len({tuple(epoch[:, -1]) for epoch in epochs}) == 1:
        raise Failed(
            "Within the buckets it is shuffled, but the buckets come in the same order for every key. If that is short ones first, training ends on long ones.",
            input=given,
        )
    if all(sum(epoch[1:, -1] != epoch[:-1, -1]) < len(BOUNDS) for epoch in epochs):
        raise Failed(
            "In every epoch all batches of a bucket come in a row: the buckets are shuffled, and not the batches. Put those of all buckets into one list, and shuffle that.",
            input=given,
        )
    if len(set(groups)) == 1:
        raise Failed(
            "The batches come in a new order, but each holds the same examples in every epoch: shuffle the examples of a bucket, too.",
            input=given,
        )


def _alike(epoch):
    """Whether all buckets, which are of one size here, were shuffled and cut alike: by the same key."""
    bucket, found = np.searchsorted(BOUNDS, LENGTHS), set()
    for number, bound in enumerate(BOUNDS):
        places = {row: place for place, row in enumerate(np.flatnonzero(bucket == number))}
        found.add(
            frozenset(frozenset(places[row] for row in rows[:-1]) for rows in epoch if rows[-1] == bound)
        )
    return len(found) == 1


def _each_key_once(bucketed, key, given):
    try:
        with jax.debug_key_reuse(True):
            bucketed(key, LENGTHS, BOUNDS, SIZE)
    except Exception as error:
        if not isinstance(getattr(error, "error", error), jax.errors.KeyReuseError):
            raise
        raise Failed("A random key is used twice. A key that was split is used up, too: take one of the new ones.", input=given) from None  # fmt: skip


def _more(bucketed):
    """Other sizes, a bucket that is empty and one that is smaller than a batch."""
    lengths, bounds = np.array([1, 1, 6, 6, 6, 2, 2, 1, 2, 1, 1, *[9] * 8]), (2, 4, 6, 9)
    given = {"lengths": lengths, "bounds": bounds, "batch_size": 8}
    found = _read(bucketed(jax.random.key(0), lengths, bounds, 8), given)
    rows = {time: sorted(rows.tolist()) for rows, time in found}
    if len(found) != 2 or rows != {2: [0, 1, 5, 6, 7, 8, 9, 10], 9: [*range(11, 19)]}:
        raise Failed(
            "Here one bucket is empty, and one has fewer examples than a batch: two batches are left, of the shortest and of the longest ones.",
            input=given,
            got=found,
        )


exercise = Exercise(
    title="Batches from buckets",
    stars=3,
    minutes=20,
    why="Every batch of a bucket has one shape, so a jitted step is compiled once for each bucket, and little of its work is padding.",
    hints=(
        "`np.searchsorted(bounds, lengths)` gives each example the number of its bucket; `np.flatnonzero(bucket == number)` its rows.",
        "Split the key once: one for each bucket, and one for the order of the batches. `jax.random.permutation(key, n)` is an order of n things.",
        "Cut what does not fill a batch, `rows[: len(rows) - len(rows) % batch_size]`, and reshape to `(-1, batch_size)`. At the end permute the list of all batches.",
    ),
    solution=solution,
    check=check,
)
