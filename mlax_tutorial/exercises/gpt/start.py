"""Prompts of different lengths, read at once, each ready to go on from its own end."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks


def solution(model, trainables, prompts, lengths, size):
    cache = model.init_cache(prompts[:, :1], length=size)
    logits, cache = model.decode(prompts, trainables, (), cache)
    last = jnp.take_along_axis(logits, lengths[:, None, None] - 1, axis=1)
    return last[:, 0], nn.with_place(cache, lengths)


_BODY = nn.Residual(nn.MultiHeadAttention(2, causal=True, rotary_base=100))
MODEL = nn.Series(nn.Embed(7, 8), _BODY, nn.Linear(7))
IDS = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 0, 0], [5, 3, 5, 0, 0]], np.int32)
LENGTHS, GOES_ON, SIZE = np.array([5, 2, 3], np.int32), np.array([[2, 4], [1, 1], [6, 0]], np.int32), 9


def check(start):
    ids, lengths = jnp.asarray(IDS), jnp.asarray(LENGTHS)
    trainables, _ = jax.jit(MODEL.init)(jax.random.key(0), ids)
    run = jax.jit(lambda ids: MODEL.fwd(ids, trainables, ())[0])
    given = {"prompts": IDS, "lengths": LENGTHS, "size": SIZE}
    made = start(MODEL, trainables, ids, lengths, SIZE)
    got, cache = checks.returned(made, "logits", "cache", asked="A pair is asked for: logits and a cache.")
    if not isinstance(got, (jax.Array, np.ndarray)):
        raise Failed("The first of the pair should be the logits, an array.", input=given)
    whole = np.asarray(run(ids))
    wanted = whole[np.arange(3), LENGTHS - 1]
    if np.shape(got) != wanted.shape:
        raise Failed(
            f"The logits that follow each prompt have the shape {wanted.shape}, one row for each prompt; yours have {np.shape(got)}.",
            input=given,
        )
    if not np.allclose(got, wanted, atol=1e-4):
        for place, said in ((-1, "These are the logits after the padding. Each prompt ends at its own length."), (LENGTHS % 5, "These are the logits one place too late: the last token of a prompt stands at `lengths - 1`.")):  # fmt: skip
            if np.allclose(got, whole[np.arange(3), place], atol=1e-4):
                raise Failed(said, input=given, expected=wanted, got=got)
        raise Failed(
            "The logits after the prompts are wrong.", input=given, expected=wanted, got=np.asarray(got)
        )
    room = {leaf.shape[-3] for leaf in jax.tree.leaves(cache) if jnp.ndim(leaf) == 4}
    if room != {SIZE}:
        raise Failed(f"The cache has room for {max(room, default=0)} tokens; `size` is {SIZE}.", input=given)
    places = [leaf for leaf in jax.tree.leaves(cache) if jnp.ndim(leaf) < 2]
    if any(np.shape(place) != (3,) or (np.asarray(place) != LENGTHS).any() for place in places):
        if all((np.asarray(place) == 5).all() for place in places):
            raise Failed("Every row of the cache goes on from place 5, behind the padding. `nn.with_place(cache, …)` sets a place for each row.", input=given)  # fmt: skip
        raise Failed(
            "The rows of the cache are at wrong places: row i goes on where its prompt ended.",
            input=given,
            expected=LENGTHS,
            got=places,
        )
    step = jax.jit(lambda ids, cache: MODEL.decode(ids, trainables, (), cache))
    for turn in range(2):
        found, cache = step(jnp.asarray(GOES_ON[:, turn : turn + 1]), cache)
        for row in range(3):
            alone = np.zeros(
                (3, 5), np.int32
            )  # of the shape that is compiled already; what comes later is not seen
            text = np.concatenate([IDS[row, : LENGTHS[row]], GOES_ON[row, : turn + 1]])
            if len(text) > 5:
                continue
            alone[0, : len(text)] = text
            expected = np.asarray(run(jnp.asarray(alone)))[0, len(text) - 1]
            if not np.allclose(found[row, 0], expected, atol=1e-4):
                raise Failed(
                    f"Row {row} goes on differently from its prompt alone: the cache holds something else than that prompt.",
                    input=given, expected=expected, got=np.asarray(found[row, 0]),
                )  # fmt: skip
    found, _ = start(MODEL, trainables, ids, jnp.array([1, 5, 4]), SIZE)
    if not np.allclose(found, whole[np.arange(3), [0, 4, 3]], atol=1e-4):
        raise Failed("For other lengths the logits are wrong.", input={"lengths": np.array([1, 5, 4])})


exercise = Exercise(
    title="Prompts of different lengths in one batch",
    stars=2,
    minutes=12,
    why="One pass reads all prompts, and a place for each row lets them go on together: what the padding wrote is overwritten before it is looked at.",
    hints=(
        "`model.init_cache(prompts[:, :1], length=size)` makes the cache, and `model.decode(prompts, trainables, (), cache)` reads all tokens at once.",
        "`jnp.take_along_axis(logits, lengths[:, None, None] - 1, axis=1)` has the logits at each row's last token.",
        "`nn.with_place(cache, lengths)` is the same cache, with each row at its own place.",
    ),
    solution=solution,
    check=check,
)
