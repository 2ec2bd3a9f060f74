"""Attention with an online softmax, as a kernel."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.pallas import _twice


def solution(query, key, value, interpret=True):
    (queries, d), keys = query.shape, len(key)

    def kernel(q_ref, k_ref, v_ref, o_ref, total, normalizer, largest):
        @pl.when(pl.program_id(1) == 0)
        def _():
            total[...] = jnp.zeros_like(total)
            normalizer[...] = jnp.zeros_like(normalizer)
            largest[...] = jnp.full_like(largest, -jnp.inf)

        logits = jnp.dot(q_ref[...], k_ref[...].T) / math.sqrt(d)
        now = jnp.maximum(largest[...], logits.max(axis=-1, keepdims=True))
        weights, rescale = jnp.exp(logits - now), jnp.exp(largest[...] - now)
        total[...] = total[...] * rescale + jnp.dot(weights, v_ref[...])
        normalizer[...] = normalizer[...] * rescale + weights.sum(axis=-1, keepdims=True)
        largest[...] = now

        @pl.when(pl.program_id(1) == pl.num_programs(1) - 1)
        def _():
            o_ref[...] = total[...] / normalizer[...]

    rows = pl.BlockSpec((64, d), lambda i, j: (i, 0))
    piece = pl.BlockSpec((128, d), lambda i, j: (j, 0))
    return pl.pallas_call(
        kernel,
        out_shape=query,
        grid=(queries // 64, keys // 128),
        in_specs=[rows, piece, piece],
        out_specs=rows,
        scratch_shapes=[pltpu.VMEM((64, size), jnp.float32) for size in (d, 1, 1)],
        interpret=interpret,
    )(query, key, value)


def plain(q, k, v, scale=True):
    logits = np.float64(q) @ np.float64(k).T / (np.sqrt(q.shape[-1]) if scale else 1)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def pieces(q, k, v):
    """Each piece of 128 keys has a softmax of its own."""
    return [plain(q, k[i : i + 128], v[i : i + 128]) for i in range(0, len(k), 128)]


def check(attend):
    q, k, v = _twice.normal(0, 192, 64), _twice.normal(1, 256, 64), _twice.normal(2, 256, 64)
    k = k * np.linspace(0.5, 2, 256, dtype=np.float32)[:, None]
    given = {"query": q, "key": k, "value": v}
    function = jax.jit(functools.partial(attend, interpret=True))
    got = function(q, k, v)
    _twice.array(got, q.shape, jnp.float32, **given)
    wanted = plain(q, k, v)
    if _twice.nans(got):
        raise Failed("The result is NaN. At the first piece of keys the sums are set to zeros and the largest logit to minus infinity; later, `exp(old - new)` scales what is there.", input=given)  # fmt: skip
    if not _twice.close(got, wanted):
        first, last = pieces(q, k, v)
        if _twice.close(got, last):
            raise Failed("Only the last piece of keys counts: the scratch arrays are set anew at each step, or the largest logit is not kept.", input=given)  # fmt: skip
        if _twice.close(got, first + last) or _twice.close(got, (first + last) / 2):
            raise Failed("Each piece has a softmax of its own: divide once, by the sum over all pieces, at the last step.", input=given)  # fmt: skip
        if _twice.close(got, plain(q, k, v, scale=False)):
            raise Failed("The division by the square root of d is missing.", input=given)
        raise Failed("The result is wrong.", input=given, expected=wanted, got=got)
    wide = _twice.normal(3, 64, 128), _twice.normal(4, 128, 128), _twice.normal(5, 128, 128)
    if not _twice.close(got := function(*wide), plain(*wide)):
        raise Failed("The result is right for d = 64, and wrong for d = 128. Is there a number where `d` belongs?", expected=plain(*wide), got=got)  # fmt: skip
    large = function(q * 300, k, v)
    if not np.isfinite(np.asarray(large)).all():
        raise Failed("For logits of about 1,000 the result is not finite: subtract each query's largest logit so far before `exp`.", got=large)  # fmt: skip
    low = np.abs(q) * 300, -np.abs(k), v
    if not _twice.close(function(*low), plain(*low), 1e-2):
        raise Failed("For logits that are all far below zero the result is wrong: begin with a largest logit of minus infinity.", got=function(*low))  # fmt: skip
    _twice.legal(attend, q, k, v)
    _twice.at_work(attend, q, k, v)
    call, *_ = _twice.calls(attend, q, k, v)
    _twice.no_race(call)
    _twice.stays(call)
    # So many that a division by 63, or by 127, gives one step more.
    queries, keys = 63 * 64, 127 * 128
    long = [jax.ShapeDtypeStruct((rows, 128), jnp.float32) for rows in (queries, keys, keys)]
    call, *_ = _twice.calls(attend, *long)
    _twice.inside(call)
    if np.prod(_twice.grid(call), dtype=int) < 63 * 127:
        raise Failed(f"Right, but for {queries:,} queries and {keys:,} keys the grid is {_twice.grid(call)}: in pieces of 64 queries and 128 keys there are 63 times 127 steps. More keys than that are in VMEM at once.")  # fmt: skip


exercise = Exercise(
    title="Online softmax as a kernel",
    stars=3,
    minutes=20,
    why="This is FlashAttention's forward pass: the logits of a block live and die in VMEM, and never reach the chip's main memory.",
    hints=(
        "The grid is (queries // 64, keys // 128), and the second axis runs fastest. The scratch arrays hold the weighted sum of values, "
        "(64, d), the sum of weights, (64, 1), and the largest logit so far, (64, 1).",
        "A step: `now = jnp.maximum(largest[...], logits.max(axis=-1, keepdims=True))`, `rescale = jnp.exp(largest[...] - now)`, and "
        "both sums are `old * rescale + new`, as in `chunked` of chapter 22.",
        "Set the scratch arrays where `pl.program_id(1) == 0`, and write `total[...] / normalizer[...]` where it is "
        "`pl.num_programs(1) - 1`.",
    ),
    solution=solution,
    check=check,
)
