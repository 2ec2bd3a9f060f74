"""Prompts of any length, in few shapes."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(read, ids, sizes):
    fits = [size for size in sizes if size >= len(ids)]
    if not fits:
        raise ValueError(f"a prompt of {len(ids)} tokens, at most {max(sizes)} fit")
    padded = np.zeros(min(fits), np.int32)
    padded[: len(ids)] = ids
    return read(padded, len(ids))


SIZES = (4, 16, 64)


def _read():
    """A stand-in for a model: what it gives tells what it got."""
    seen, dtypes = [], set()

    @jax.jit
    def run(ids, length):
        seen.append((ids.shape, ids.dtype))
        real = jnp.arange(len(ids)) < length
        total = jnp.sum(jnp.where(real, ids * (jnp.arange(len(ids)) + 1), 0))
        return total, length, jnp.sum(~real), jnp.sum(~real & (ids != 0))

    def read(ids, length):
        if np.ndim(ids) != 1 or np.ndim(length):
            raise Failed(
                "`read` gets one row of ids, then their number.", got=(np.shape(ids), np.shape(length))
            )
        dtypes.add(str(getattr(ids, "dtype", type(ids).__name__)))
        return run(ids, length)

    return read, seen, dtypes


def check(prefill):
    read, seen, dtypes = _read()
    for count in (3, 4, 5, 16, 17, 40, 64, 1, 9, 2):
        ids = [(7 * i) % 11 for i in range(count)]
        given = {"ids": f"a list of {count} ids", "sizes": SIZES}
        before = list(ids)
        got = prefill(read, ids, SIZES)
        if ids != before:
            raise Failed("Your function changes `ids`: the caller's list is another one now. Pad a copy.", input={"ids": before, "sizes": SIZES}, expected=before, got=ids)  # fmt: skip
        if got is None:
            raise Failed("Your function returned None: return what `read` returns.")
        if not isinstance(got, tuple) or len(got) != 4:
            raise Failed("Return what `read` returns, as it is.", input=given, got=got)
        total, length, padding, other = map(int, got)
        size = min(size for size in SIZES if size >= count)
        if length != count:
            raise Failed(
                f"`read` was told that {length} tokens count; there are {count}.",
                input=given,
                expected=count,
                got=length,
            )
        if length + padding not in SIZES:
            raise Failed(f"`read` got {length + padding} ids, which is none of the sizes: each new length is compiled again.", input=given)  # fmt: skip
        if length + padding != size:
            raise Failed(
                f"`read` got {length + padding} ids, where {size} are enough.",
                input=given,
                expected=size,
                got=length + padding,
            )
        if total != sum((i + 1) * one for i, one in enumerate(ids)):
            raise Failed(
                "The prompt is not at the beginning, or not in order: the padding goes to the end.",
                input=given,
            )
        if other:
            raise Failed("The padding should be zeros.", input=given)
    if len(seen) > 3:
        raise Failed(
            f"`read` was traced {len(seen)} times for three sizes. Is the length static, or does the dtype change?",
            expected=3,
            got=seen,
        )
    if dtypes != {"int32"}:
        raise Failed("`read` gets an int32 array.", expected="int32", got=", ".join(sorted(dtypes)))
    checks.refuses(prefill, read, [1] * 65, SIZES, error=ValueError)
    read, *_ = _read()
    got = prefill(read, [5, 2], (32, 8))
    if int(got[2]) != 6:
        raise Failed("The sizes may stand in any order; the smallest that fits is asked for.", input={"sizes": (32, 8)})  # fmt: skip


exercise = Exercise(
    title="Prefill in buckets",
    stars=2,
    minutes=10,
    why="Three programs serve prompts of every length, and none of them is compiled while a user waits.",
    hints=(
        "`min(size for size in sizes if size >= len(ids))` is the smallest that fits; without one, `min` raises a ValueError by itself.",
        "`np.zeros(size, np.int32)`, with the ids written into its beginning. The length goes to `read` as an argument, so it is traced.",
    ),
    solution=solution,
    check=check,
)
