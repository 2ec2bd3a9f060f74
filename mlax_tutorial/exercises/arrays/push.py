"""Write one row in place."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, Failed, checks, guarding


@functools.partial(jax.jit, donate_argnums=0)
def solution(buffer, count, row):
    return buffer.at[count % len(buffer)].set(row)


def check(push):
    def fresh(rows=3):
        return jnp.arange(2.0 * rows).reshape(rows, 2)

    row = jnp.array([70.0, 80.0])
    for rows, count in ((3, 0), (3, 2), (3, 3), (3, 7), (5, 4), (5, 6)):
        expected = solution(fresh(rows), jnp.int32(count), row)
        shown = {"input": {"buffer": fresh(rows), "count": count, "row": row}}
        got = push(fresh(rows), jnp.int32(count), row)
        checks.same(got, expected, recognise=_wrong_pushes(fresh(rows), count, row), **shown)
    checks.is_jitted(push)
    calls = [(fresh(), jnp.int32(count), row) for count in (0, 1, 5)]
    checks.traces(push, *calls, exactly=1)
    buffer = fresh(1000)
    lowered = guarding.original(push).lower(buffer, jnp.int32(5), row)
    given = [info.donated for info in jax.tree.leaves(lowered.args_info)]
    if any(given[1:]):
        raise Failed(
            "You donate more than the buffer. The caller may want `count` and `row` again, and their memory is of no "
            "use for the result."
        )
    big = lowered.compile()
    push(buffer, jnp.int32(5), row)
    if not buffer.is_deleted():
        raise Failed(
            "The buffer is not donated: it is still there after the call, so XLA had to copy all of it to write one "
            "row. Tell `jax.jit` with `donate_argnums`.",
            shown=_bytes(big, buffer),
        )
    if _accessed(big) > 0.5 * buffer.nbytes:
        raise Failed(
            "The buffer is donated, but the program still goes over all of it to write one row: use `.at[…].set`, "
            "which writes the row alone.",
            shown=_bytes(big, buffer),
        )


def _wrong_pushes(buffer, count, row):
    """What wrong ways to push make of the buffer, and what is wrong with each."""
    rows = len(buffer)
    if count < rows:
        yield buffer, "The buffer comes back as it was. `.at[…].set(…)` returns a new array: return that one."
        yield buffer.at[count].add(row), "The row is added to what stands there; it should replace it."
    if count == 0:
        yield (
            buffer.at[1].set(row),
            "The row lands one place too far: `count` starts at 0, and 0 means place 0.",
        )
    if count == 2:
        why = f"there are {rows} rows, of {len(row)} numbers each."
        yield buffer.at[0].set(row), f"The row starts again from the top too early: {why}"
    if count == rows:
        why = "the index is out of bounds, so the write is dropped. The buffer has to start again from its first row."
        yield buffer, f"Once the buffer is full, nothing is written: {why}"
    if count > rows:
        why = "the index is out of bounds. The buffer starts again each time that it is full, not once."
        yield buffer, f"With `count` {count} nothing is written: {why}"
    if count >= rows:
        why = "The buffer has to start again from its first row."
        yield buffer.at[-1].set(row), f"Once the buffer is full, every row lands in the last place. {why}"
    if rows == 5:
        why = "but this buffer has 5 rows: ask the buffer for its length."
        yield buffer.at[count % 3].set(row), f"The row goes to place `count % 3`, {why}"
    yield (
        jnp.roll(buffer, -1, axis=0).at[-1].set(row),
        "All rows move up by one; the row must go to place `count % len(buffer)`.",
    )


def _accessed(compiled):
    analysis = compiled.cost_analysis() or {}
    return (analysis[0] if isinstance(analysis, list) else analysis).get("bytes accessed", 0.0)


def _bytes(compiled, buffer):
    return [("the buffer", f"{buffer.nbytes} bytes"), ("read or written", f"{_accessed(compiled):.0f} bytes")]


exercise = Exercise(
    title="Write one row in place",
    stars=3,
    minutes=15,
    why="The code says that a new array is returned, and the machine writes one row: that is how caches, buffers and "
    "parameters are updated in this book.",
    hints=(
        "First make it right: `.at[…].set`, and `%` for the place. `len(buffer)` is a plain number, even under `jit`.",
        "Then let XLA have the memory: `functools.partial(jax.jit, donate_argnums=…)` above the function.",
        "The argument to donate is the first: `donate_argnums=0`.",
    ),
    solution=solution,
    check=check,
)
