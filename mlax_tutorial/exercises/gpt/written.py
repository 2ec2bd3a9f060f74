"""Tokens one after the other, each drawn with a key of its own."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(key, next_logits, token, length):
    def step(token, key):
        token = jax.random.categorical(key, next_logits(token))
        return token, token

    return jax.lax.scan(step, token, jax.random.split(key, length))[1]


CHANCES = np.array([[0.2, 0.5, 0.3], [0.6, 0.1, 0.3], [0.25, 0.25, 0.5]])
LENGTH = 1500


def _next(token):
    return jnp.log(jnp.asarray(CHANCES, jnp.float32))[token]


def _count(token):
    return jnp.where(jnp.arange(9) == token + 1, 0.0, -1e9)


def _chi_square(counts, chances):
    expected = chances * counts.sum(axis=-1, keepdims=True)
    return float(((counts - expected) ** 2 / np.maximum(expected, 1e-9)).sum())


def check(written):
    key, first = jax.random.key(0), jnp.int32(1)
    calls = []

    def noting(token):
        calls.append(token)
        return _next(token)

    jax.jit(lambda key: written(key, noting, first, 40)).lower(key)
    if len(calls) > 4:
        raise Failed(
            f"`next_logits` is traced {len(calls)} times for 40 tokens: a Python loop is unrolled. Use `jax.lax.scan`."
        )
    got = written(key, _next, first, LENGTH)
    checks.returned(got)
    given = {"next_logits": "of three tokens, from a table", "token": 1, "length": LENGTH}
    if isinstance(got, tuple):
        raise Failed("An array is asked for, not a tuple. `jax.lax.scan` returns two things.", input=given)
    if np.shape(got) != (LENGTH,):
        raise Failed(
            f"An array of {LENGTH} tokens is asked for, without the first one, which was given.",
            input=given,
            got=got,
        )
    tokens = np.asarray(got)
    if not np.issubdtype(tokens.dtype, np.integer) or tokens.min() < 0 or tokens.max() > 2:
        raise Failed("These are no tokens: integers from 0 to 2 are asked for.", input=given, got=got)
    before, counts = np.append(1, tokens[:-1]), np.zeros((3, 3))
    np.add.at(counts, (before, tokens), 1)
    if (counts.max(axis=1) == counts.sum(axis=1)).all():
        again = np.asarray(written(jax.random.key(7), _next, first, LENGTH))
        if (again == tokens).all():
            raise Failed(
                "This always takes the most probable token. Draw with `jax.random.categorical`.",
                input=given,
                got=got,
            )
        raise Failed("After a token always comes the same one: steps draw with the same key. Each needs a key of its own.", input=given, got=got)  # fmt: skip
    if _chi_square(counts, CHANCES) > 22.5:  # of 6 degrees of freedom, 1 in 1,000
        stationary = np.broadcast_to(CHANCES[1], (3, 3))
        if _chi_square(counts, stationary) < 22.5:
            raise Failed(
                "All tokens are drawn as if the one before were the first: hand the new token on.",
                input=given,
                got=got,
            )
        raise Failed(
            f"The frequencies do not fit: a chi-square of {_chi_square(counts, CHANCES):.0f} over {LENGTH} draws, where 22.5 is exceeded once in a thousand times.",
            input=given, expected=CHANCES, got=counts / counts.sum(axis=1, keepdims=True),
        )  # fmt: skip
    steps = np.bincount(tokens[:-1] * 3 + tokens[1:], minlength=9)
    if steps.max() > LENGTH / 2:
        raise Failed("The tokens repeat each other.", input=given, got=got)
    got = written(key, _count, first, 5)
    if np.asarray(got).tolist() != [2, 3, 4, 5, 6]:
        raise Failed(
            "The first token is drawn after `token`, and each other one after that which stands before it.",
            input={"next_logits": "token + 1 is certain", "token": 1, "length": 5},
            expected=[2, 3, 4, 5, 6],
            got=got,
        )
    few = written(key, _next, first, 7)
    checks.returns(written, key, _next, first, 7, shape=(7,))
    another = [np.asarray(written(jax.random.key(i), _next, first, 7)) for i in range(4)]
    if all((row == np.asarray(few)).all() for row in another):
        raise Failed("Every key writes the same text: draw with the keys that come from `key`.", got=few)
    checks.keys(lambda key: written(key, _next, first, 5), key)


exercise = Exercise(
    title="One key a token",
    stars=1,
    minutes=10,
    why="With one key for all tokens a text falls into a loop; nothing warns you, and the loss never sees it.",
    hints=(
        "`jax.random.split(key, length)` makes a key for each token; `jax.lax.scan` hands one to each step.",
        "`step(token, key)` draws the next token, and returns it twice: as the carry, and as what is collected.",
    ),
    solution=solution,
    check=check,
)
