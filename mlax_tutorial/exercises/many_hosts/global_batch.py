"""A batch over all hosts, of which each reads its own rows."""

import jax
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.many_hosts import _two


def solution(read, size, sharding):
    mine = size // jax.process_count()
    first = jax.process_index() * mine
    rows = read(np.arange(first, first + mine))
    return jax.make_array_from_process_local_data(sharding, rows)


def _program(global_batch, size):
    asked = []

    def read(rows):
        rows = np.asarray(rows)
        asked.extend(rows.ravel().tolist())
        return np.stack([rows, 10 * rows], axis=-1).astype("float32")

    batch = global_batch(read, size, NamedSharding(_two.mesh(), P("data")))
    if not isinstance(batch, jax.Array):
        return asked, type(batch).__name__, None, None
    parts = {shard.index[0].start or 0: np.asarray(shard.data) for shard in batch.addressable_shards}
    return asked, batch.shape, str(getattr(batch.sharding, "spec", batch.sharding)), parts


def check(global_batch):
    for size in (8, 16):
        found = _two.run(_program, global_batch, size)
        for process, (_, shape, spec, _) in enumerate(found):
            if isinstance(shape, str):
                raise Failed(f"A global `jax.Array` is asked for, and process {process} got {shape}.")
            if shape == (2 * size, 2):
                raise Failed(
                    f"With `size` = {size} the batch has {2 * size} rows: each process handed in a whole batch, and they were put "
                    "one behind the other. Read the rows of this process only."
                )
            if shape != (size, 2):
                raise Failed(
                    f"With `size` = {size} the global batch must have the shape ({size}, 2).", got=shape
                )
            if spec != str(P("data")):
                raise Failed(f"The batch has another sharding than it was given: {spec}.")
        rows = np.stack([np.arange(size), 10 * np.arange(size)], axis=-1).astype("float32")
        if sorted(found[0][0]) == sorted(found[1][0]) and len(found[0][0]) < size:
            raise Failed("Both processes read the same rows, so the batch holds them twice: let the first row depend on `jax.process_index()`.")  # fmt: skip
        for process, (asked, _, _, parts) in enumerate(found):
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
            if len(set(asked)) > size // 2:
                raise Failed(
                    f"The batch is right, but process {process} reads {len(set(asked))} rows for it, and {size // 2} are its own. "
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
