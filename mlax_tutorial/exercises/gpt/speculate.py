"""Speculative decoding: what a small model proposes, a large one accepts or corrects."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(key, drafts, q, p):
    accept_key, draw_key = jax.random.split(key)
    rows = jnp.arange(len(drafts))
    ratio = p[rows, drafts] / q[rows, drafts]
    accepted = jax.random.uniform(accept_key, drafts.shape) < ratio
    count = jnp.sum(jnp.cumprod(accepted))  # up to the first that is refused
    rest = jnp.maximum(p[:-1] - q, 0)
    rest = jnp.concatenate([rest, p[-1:]])[count]
    last = jax.random.categorical(draw_key, jnp.log(rest))
    tokens = jnp.append(drafts, 0).at[count].set(last)
    return tokens, count + 1


Q = np.array([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], np.float32)
P = np.array([[0.2, 0.3, 0.5], [0.5, 0.4, 0.1], [0.1, 0.6, 0.3]], np.float32)
DRAWS = 4000


def _chi_square(counts, chances):
    expected = chances * counts.sum()
    some = expected > 0
    return float(((counts - expected) ** 2)[some] @ (1 / expected[some])) + 1e9 * float(counts[~some].sum())


def _first_by(rest):
    """Frequencies of the first token, if a refused draft is replaced by a draw from ``rest``."""
    accepted = np.minimum(Q[0], P[0])
    return accepted + (1 - accepted.sum()) * rest / rest.sum()


def check(speculate):
    drafts = jax.random.categorical(jax.random.key(1), jnp.log(jnp.asarray(Q)), shape=(DRAWS, 2))
    keys, q, p = jax.random.split(jax.random.key(0), DRAWS), jnp.asarray(Q), jnp.asarray(P)
    one = jax.eval_shape(speculate, keys[0], drafts[0], q, p)
    checks.returned(one)
    if not isinstance(one, tuple) or len(one) != 2 or np.shape(one[0]) != (3,) or np.shape(one[1]) != ():
        raise Failed("For two drafts a pair is asked for: three tokens, and how many of them count.", got=one)
    three, rows = (
        jax.ShapeDtypeStruct((3,), drafts.dtype),
        [jax.ShapeDtypeStruct((n, 3), q.dtype) for n in (3, 4)],
    )
    if (shape := np.shape(jax.eval_shape(speculate, keys[0], three, *rows)[0])) != (4,):
        raise Failed(f"For three drafts four tokens are asked for, got the shape {shape}.")
    checks.keys(lambda key: speculate(key, drafts[0], q, p), jax.random.key(5), depends=False, eagerly=False)
    tokens, count = jax.jit(jax.vmap(speculate, (0, 0, None, None)))(keys, drafts, q, p)
    tokens, count, drafts = np.asarray(tokens), np.asarray(count), np.asarray(drafts)
    given = {"q": Q, "p": P, "drafts": f"drawn from `q`, {DRAWS} times"}
    if count.min() < 1 or count.max() > 3:
        low = "The token that is drawn last counts, too: from 1 to 3." if count.min() == 0 else "At most the two drafts and one more count."  # fmt: skip
        raise Failed(low, input=given, got=f"from {count.min()} to {count.max()}")
    kept = np.arange(2) < count[:, None] - 1
    if (tokens[:, :2] != drafts)[kept].any():
        raise Failed(
            "All tokens before the last one that counts are drafts, as they were proposed.", input=given
        )
    first = np.bincount(tokens[:, 0], minlength=3)
    shown = {"input": given, "expected": P[0], "got": first / DRAWS}
    if _chi_square(first, P[0]) > 13.8:  # of 2 degrees of freedom, 1 in 1,000
        if count.min() == 3:
            raise Failed("Drafts are never refused.", **shown)
        if (P[0] > Q[0])[drafts[count == 1, 0]].any():
            raise Failed("A draft is refused that the large model gives more probability than the small one: accept it with the probability `min(1, p / q)`.", **shown)  # fmt: skip
        if (tokens[:, 0] == drafts[:, 0]).all():
            raise Failed("The first token is the draft, even where that is refused. What replaces it stands in its place, and is drawn from `max(p - q, 0)`, not from `max(q - p, 0)`.", **shown)  # fmt: skip
        for wrong, said in (
            (_first_by(P[0]), "After a refusal you draw from `p`. What was refused was already too frequent: draw from what is missing, `max(p - q, 0)`."),
            (_first_by(Q[0]), "After a refusal you draw from `q` once more."),
        ):  # fmt: skip
            if _chi_square(first, wrong) < 13.8:
                raise Failed(said, **shown)
        raise Failed("The first token does not have the distribution of the large model.", **shown)
    accepted = np.minimum(Q, P[:2]).sum(axis=1)
    wanted = np.array([1 - accepted[0], accepted[0] * (1 - accepted[1]), accepted[0] * accepted[1]])
    found = np.bincount(count - 1, minlength=3)
    if _chi_square(found, wanted) > 13.8:
        raise Failed(
            "The distribution is right, but too few or too many drafts are accepted: accept a draft with the probability `min(1, p / q)`, and no other after the first refusal.",
            input=given, expected=wanted, got=found / DRAWS,
        )  # fmt: skip
    for place, least in ((1, 2), (2, 3)):
        some = tokens[count >= least][:, place]
        counts = np.bincount(some, minlength=3)
        if _chi_square(counts, P[place]) > 13.8:
            raise Failed(
                f"Token {place} does not have the distribution of the large model, where it counts.",
                input=given, expected=P[place], got=counts / counts.sum(),
            )  # fmt: skip
    firsts, all_three = tokens[count == 3][:, 0], tokens[count == 3][:, 2]
    table = np.zeros((3, 3))
    np.add.at(table, (firsts, all_three), 1)
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    if (((table - expected) ** 2) / np.maximum(expected, 1e-9)).sum() > 18.5:
        raise Failed("The last token depends on the first: is one random number used for both?", input=given)


exercise = Exercise(
    title="Speculative decoding",
    stars=3,
    minutes=20,
    why="The large model reads several tokens in one pass, and what comes out has exactly its distribution, whatever the small one proposes.",
    hints=(
        "A draft is accepted if a uniform number is below `p / q` at its token. `p[jnp.arange(n), drafts]` has them all.",
        "`jnp.cumprod(accepted)` is 1 up to the first refusal; its sum says how many drafts stay.",
        "The last token comes from `max(p - q, 0)` in the row of the first refusal; if there is none, from the last row of `p`. Put both into one array of `n + 1` rows, and take row `count`. `jnp.log` of zero is minus infinity, which `jax.random.categorical` never draws.",
    ),
    solution=solution,
    check=check,
)
