"""Masked-language modeling: which tokens are hidden, and by what."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(key, ids, real, vocabulary, hidden):
    chosen_key, how_key, other_key = jax.random.split(key, 3)
    chosen = jax.random.bernoulli(chosen_key, 0.15, ids.shape) & real
    how = jax.random.uniform(how_key, ids.shape)
    other = jax.random.randint(other_key, ids.shape, 0, vocabulary, ids.dtype)
    replaced = jnp.where(how < 0.8, hidden, jnp.where(how < 0.9, other, ids))
    return jnp.where(chosen, replaced, ids), chosen


VOCABULARY, HIDDEN = 50, 53
SHAPE = 300, 100
INDEPENDENT = "each is chosen with probability 0.15, independently of the others, so their number varies"


def check(corrupt):
    random = np.random.default_rng(0)
    ids = random.integers(0, VOCABULARY, SHAPE).astype(np.int32)
    real = np.arange(SHAPE[1]) < random.integers(60, 101, SHAPE[0])[:, None]
    key = jax.random.key(0)
    given = {"ids": f"integers of shape {SHAPE}, below 50", "vocabulary": VOCABULARY, "hidden": HIDDEN}
    jitted = checks.works_under_jit(
        lambda key, ids, real: corrupt(key, ids, real, VOCABULARY, HIDDEN),
        key,
        jnp.asarray(ids),
        jnp.asarray(real),
    )
    got = jitted(key, jnp.asarray(ids), jnp.asarray(real))
    asked = "Return a pair, the inputs and which tokens were chosen."
    checks.returned(got, "inputs", "chosen", lists=True, asked=asked, input=given)
    inputs, chosen = map(np.asarray, got)
    if inputs.shape != SHAPE or inputs.dtype != ids.dtype:
        raise Failed(
            f"The inputs should have shape and dtype of `ids`, {SHAPE} and int32, got {inputs.shape} and {inputs.dtype}.",
            input=given,
        )
    if chosen.shape != SHAPE or chosen.dtype != bool:
        raise Failed(
            f"`chosen` should be Booleans of the shape {SHAPE}, got {chosen.dtype} of {chosen.shape}.",
            input=given,
        )
    _shares(inputs, chosen, ids, real, given)
    drawn, counts = set(), set()
    for seed in range(3):  # one draw of 360 tokens may well lack the first or the last, but not all three
        inputs, chosen = map(np.asarray, jitted(jax.random.key(seed), jnp.asarray(ids), jnp.asarray(real)))
        drawn |= set(inputs[inputs != ids].tolist())
        counts.add(int(chosen.sum()))
    for edge in (0, VOCABULARY - 1):
        if edge not in drawn:
            raise Failed(
                f"The token {edge} never takes another's place: all from 0 to `vocabulary - 1` do, and `randint` excludes its upper bound.",
                input=given,
            )
    if len(counts) == 1:
        raise Failed(f"With every key {counts.pop()} tokens are chosen: {INDEPENDENT}.", input=given)
    checks.keys(
        lambda key: corrupt(key, jnp.asarray(ids), jnp.asarray(real), VOCABULARY, HIDDEN),
        key,
        eagerly=False,
        depends=False,
    )
    two = jax.jit(lambda key, ids, real: corrupt(key, ids, real, 2, 2))
    short, chosen = two(key, jnp.zeros(SHAPE, jnp.int16), jnp.asarray(real))
    if short.dtype != jnp.int16:
        raise Failed(f"For `ids` of int16 the inputs should be int16, too, got {short.dtype}.", input=given)
    ones = np.mean(np.asarray(short)[np.asarray(chosen)] == 1)  # of some 3,600
    if abs(ones - 0.05) > 0.02:
        raise Failed(
            f"With a vocabulary of two, and `ids` of zeros, {ones:.0%} of the chosen tokens become 1, and 5 % should: a random token is any of the vocabulary, "
            "each with the same probability, and may be the old one."
        )


def _shares(inputs, chosen, ids, real, given):
    def share(part, of):
        return part[of].mean()

    changed = inputs != ids
    if (changed & ~chosen).any():
        raise Failed(
            "Some tokens change that `chosen` does not name: the loss would not ask for them.", input=given
        )
    if (chosen & ~real).any():
        raise Failed("Padding is chosen: there is nothing to guess there.", input=given)
    if (chosen == chosen[0])[real & real[0]].all():
        raise Failed("All rows have the same tokens chosen: draw with the shape of `ids`.", input=given)
    rate = share(chosen, real)
    if abs(rate - 0.15) > 0.015:
        counts = chosen.sum(axis=1)
        raise Failed(
            f"{rate:.1%} of the real tokens are chosen, and 15 % are asked for.",
            input=given,
            got=f"{counts[:5]} of a row",
        )
    lengths = real.sum(axis=1)
    deviations = (chosen.sum(axis=1) - rate * lengths) ** 2 / (rate * (1 - rate) * lengths)
    if deviations.mean() < 0.5:  # about 1, give or take 0.08
        raise Failed(
            f"All rows have about the same share of their tokens chosen: {INDEPENDENT}.", input=given
        )
    if deviations.mean() > 2:
        raise Failed(
            "Some rows have far more of their tokens chosen than others: each is chosen with probability 0.15, independently of the others. "
            "Draw with the shape of `ids`.",
            input=given,
        )
    masked = share(inputs == HIDDEN, chosen)
    kept = share(inputs == ids, chosen)
    other = 1 - masked - kept
    shown = {
        "input": given,
        "expected": "80 % hidden, 10 % another token, 10 % as they are",
        "got": f"{masked:.0%} hidden, {other:.0%} another token, {kept:.0%} as they are",
    }
    if masked > 0.99:
        raise Failed(
            "All chosen tokens are hidden. If you drew for both with one key, the two draws depend on each other.",
            **shown,
        )
    if abs(masked - 0.72) < 0.02 and kept > 0.12:
        raise Failed("The shares multiply: of the *chosen* tokens, 80 % are hidden.", **shown)
    if abs(masked - 0.8) > 0.025 or abs(other - 0.098) > 0.02:
        raise Failed("The chosen tokens are not divided into 80, 10 and 10 %.", **shown)
    new = inputs[chosen & changed & (inputs != HIDDEN)]
    if len(np.unique(new)) < 40:
        raise Failed(
            f"The other tokens are only {len(np.unique(new))} different ones: draw one for each place, from all of the vocabulary.",
            input=given,
        )
    if new.max() >= VOCABULARY or new.min() < 0:
        raise Failed(
            "A random token is outside the vocabulary: from 0 to `vocabulary - 1`.",
            input=given,
            got=new.max(),
        )


exercise = Exercise(
    title="Hide tokens, 80/10/10",
    stars=2,
    minutes=15,
    why="The loss asks for 15 % of the tokens only, and the input does not betray which of the visible ones are asked for.",
    hints=(
        "Three draws: which tokens are chosen, what happens to each, and another token for each place. Split the key into three.",
        "`how = jax.random.uniform(how_key, ids.shape)` decides: below 0.8 the hidden id, below 0.9 the other token, else the token itself.",
        "`jnp.where(chosen, jnp.where(how < 0.8, hidden, jnp.where(how < 0.9, other, ids)), ids)`.",
    ),
    solution=solution,
    check=check,
)
