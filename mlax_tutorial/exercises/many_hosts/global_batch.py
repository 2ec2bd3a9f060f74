"""A batch over all hosts, of which each reads its own rows."""

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.many_hosts import _two


def solution(read, size, sharding):
    mine = size // jax.process_count()
    first = jax.process_index() * mine
    rows = read(np.arange(first, first + mine))
    return jax.make_array_from_process_local_data(sharding, rows)


def _examples(rows, images):
    """Two numbers each; or images of three pixels, in eight bits."""
    if images:
        return np.stack([rows, rows + 100, 200 - rows], axis=-1)[:, None].astype("uint8")
    return np.stack([rows, 10 * rows], axis=-1).astype("float32")


def _program(global_batch, size, axis, images):
    asked, wrong = [], []

    def read(rows):
        if not isinstance(rows, (np.ndarray, jax.Array)):
            wrong.append(f"a {type(rows).__name__}")
        rows = np.asarray(rows)
        if rows.dtype.kind not in "iu" or rows.ndim != 1:
            wrong.append(f"{rows.dtype}, shape {rows.shape}")
            rows = rows.ravel().astype(int)
        asked.extend(rows.tolist())
        return _examples(rows, images)

    batch = global_batch(read, size, NamedSharding(_two.mesh(axis), P(axis)))
    if not isinstance(batch, jax.Array):
        return asked, wrong, type(batch).__name__, None, None, None
    parts = {shard.index[0].start or 0: np.asarray(shard.data) for shard in batch.addressable_shards}
    return (
        asked,
        wrong,
        batch.shape,
        str(batch.dtype),
        str(getattr(batch.sharding, "spec", batch.sharding)),
        parts,
    )


def check(global_batch):
    _look(global_batch, 8, 2, 2, "data", images=False)
    with checks.says(
        "Right for 8 rows of two numbers each in two processes, but not for 39 rows of eight-bit integers of shape (1, 3) in three, whose mesh "
        "calls its axis 'hosts'."
    ):
        _look(global_batch, 39, 3, 1, "hosts", images=True)


def _look(global_batch, size, processes, devices, axis, images):
    found = _two.run(_program, global_batch, size, axis, images, processes=processes, devices=devices)
    rows = _examples(np.arange(size), images)
    for process, (_, wrong, shape, dtype, spec, _) in enumerate(found):
        if isinstance(shape, str):
            raise Failed(f"A global `jax.Array` is asked for, and process {process} got {shape}.")
        if wrong:
            raise Failed(
                f"`read` takes an array of integers, with one axis, and was given another: {wrong[0]}."
            )
        if shape[:1] == (processes * size,):
            raise Failed(
                f"With `size` = {size} the batch has {processes * size} rows: each process handed in a whole batch, and they were put "
                "one behind the other. Read the rows of this process only."
            )
        if shape != rows.shape:
            count = f" `jax.process_count()` is {processes} here." if shape[0] != size else ""
            raise Failed(
                f"With `size` = {size} the global batch must have the shape {rows.shape}.{count}", got=shape
            )
        if dtype != str(rows.dtype):
            raise Failed(
                f"What `read` gives is {rows.dtype}, and the batch is {dtype}: leave the examples as they are."
            )
        if spec != str(P(axis)):
            raise Failed(f"The batch has another sharding than it was given: {spec}.")
    if sorted(found[0][0]) == sorted(found[1][0]) and len(found[0][0]) < size:
        raise Failed("Both processes read the same rows, so the batch holds them twice: let the first row depend on `jax.process_index()`.")  # fmt: skip
    for process, (asked, *_, parts) in enumerate(found):
        wrong = {
            first: part
            for first, part in parts.items()
            if not np.array_equal(part, rows[first : first + len(part)])
        }
        if wrong:
            first, part = next(iter(wrong.items()))
            raise Failed(
                f"Row {first} of the batch must be row {first} of the data: the parts lie in another order.",
                expected=rows[first : first + len(part)], got=part,
            )  # fmt: skip
        if len(set(asked)) > size // processes:
            raise Failed(
                f"The batch is right, but process {process} reads {len(set(asked))} rows for it, and {size // processes} are its own. "
                "With a hundred hosts each would read the data a hundred times."
            )


exercise = Exercise(
    title="A global batch from local parts",
    stars=1,
    minutes=10,
    seconds=_two.SECONDS,
    why="No host ever holds the batch: each reads its rows, and JAX joins the parts without sending a byte.",
    hints=(
        "`size` rows, `jax.process_count()` processes: how many are each one's, and where do those of process `i` begin?",
        "`read(np.arange(first, first + mine))` gives this process' rows, and `jax.make_array_from_process_local_data(sharding, rows)` the batch.",
    ),
    solution=solution,
    check=check,
)
