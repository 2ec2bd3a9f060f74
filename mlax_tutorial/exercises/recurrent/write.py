"""Write with a model: one scan that draws, and feeds back what it drew."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under


def solution(step, state, first, key, size, temperature):
    def one(carry, key):
        state, index = carry
        logits, state = step(state, index)
        index = jax.random.categorical(key, logits / temperature)
        index = index.astype(jnp.int32)
        return (state, index), index

    start = state, jnp.asarray(first, jnp.int32)
    _, indices = jax.lax.scan(one, start, jax.random.split(key, size))
    return indices


SIZE = 12


def _counts_up(state, index):
    """After i comes (i + 1) % 5, surely; the state counts the steps."""
    return 1e4 * jax.nn.one_hot((index + 1) % 5, 5), state + 1


def _by_state(state, index):
    """The state says what comes: 0, 1, 2, 3, 4, 0, …"""
    return 1e4 * jax.nn.one_hot(state % 5, 5), state + 1


def _by_both(state, index):
    """What comes depends on all indices that were read: a step that reads one twice is found out."""
    return 1e4 * jax.nn.one_hot((state + index) % 5, 5), 2 * state + index + 1


def _dice(state, index):
    return jnp.log(jnp.array([0.5, 0.3, 0.2])), state


def check(write):
    key, zero = jax.random.key(3), jnp.int32(0)
    given = {"step": "one after which i + 1 comes, modulo 5", "first": 1, "size": SIZE, "temperature": 1.0}
    got = write(_counts_up, zero, jnp.int32(1), key, SIZE, 1.0)
    checks.returned(got)
    if isinstance(got, tuple):
        raise Failed("Return the indices alone, not the pair that `scan` returns.", got=got)
    if getattr(got, "shape", None) != (SIZE,) or not jnp.issubdtype(got.dtype, jnp.integer):
        raise Failed(f"`{SIZE}` indices are asked for, in an array of integers of shape ({SIZE},).", got=got)
    wanted = (1 + np.arange(1, SIZE + 1)) % 5
    for wrong, said in [
        (np.full(SIZE, 2), "What is drawn is not fed back: each step got the first index again."),
        (wanted - 1, "The first index is returned, too: only what was drawn is asked for."),
        ((1 + np.arange(SIZE)) % 5, "The first index is returned, too: only what was drawn is asked for."),
    ]:
        if np.array_equal(got, wrong):
            raise Failed(said, input=given, expected=wanted, got=got)
    if not np.array_equal(got, wanted):
        raise Failed(
            "The indices are not those that this step makes all but certain.",
            input=given,
            expected=wanted,
            got=got,
        )
    got = np.asarray(write(_by_state, zero, jnp.int32(4), key, SIZE, 1.0))
    if not np.array_equal(got, np.arange(SIZE) % 5):
        said = (
            "The state is not handed on from step to step."
            if (got == got[0]).all()
            else "The state is wrong."
        )
        raise Failed(said, expected=np.arange(SIZE) % 5, got=got)
    got, state, wanted = np.asarray(write(_by_both, zero, jnp.int32(2), key, SIZE, 1.0)), 0, [2]
    for _ in range(SIZE):
        index = wanted[-1]
        wanted, state = [*wanted, (state + index) % 5], 2 * state + index + 1
    if not np.array_equal(got, wanted[1:]):
        raise Failed(
            "Where state and index both matter, the indices are wrong: call `step` once for each index, and hand on the state that this "
            "call returns.",
            expected=np.array(wanted[1:]),
            got=got,
        )
    programs = [
        str(jax.make_jaxpr(lambda key, n=n: write(_counts_up, zero, jnp.int32(1), key, n, 1.0))(key))
        for n in (4, 40)
    ]
    if len(programs[1]) > 1.5 * len(programs[0]) or "unroll=40" in programs[1]:
        raise Failed(
            "The program grows with `size`: the loop is unrolled. Use `jax.lax.scan` over the keys, without `unroll`."
        )

    _pair(write)
    _draws(write)
    _keys(write, zero)


def _keys(write, zero):
    """No key is used twice. JAX cannot see that a body that indexes an array of keys takes another one at each step; what goes wrong
    with one key for all steps has been looked at above."""
    try:
        checks.keys(lambda key: write(_dice, zero, zero, key, SIZE, 1.0), jax.random.key(4), depends=False)
    except Exception as error:
        if "key constants are repeated" not in f"{error} {error.__cause__}":
            raise


def _pair(write):
    """A state may be any pytree, as that of an LSTM."""
    state = {"h": jnp.full((2, 3), 5002.0), "c": (jnp.int32(4), jnp.zeros(3, jnp.bfloat16))}

    def step(state, index):
        h, (place, rest) = state["h"] + 0.5, state["c"]
        twice = jnp.int32(2 * h[0, 0])  # 10005, 10006, …, which half precision does not count
        return 1e4 * jax.nn.one_hot(twice % 5, 5), {"h": h, "c": (place + 1, rest)}

    with under("`jax.jit`, with a state that is a pytree"):
        got = jax.jit(lambda key: write(step, state, jnp.int32(0), key, 7, 1.0))(jax.random.key(2))
    if not np.array_equal(got, np.arange(5, 12) % 5):
        raise Failed(
            "With a state that is a pytree the indices are wrong: carry it from step to step as it is.",
            expected=np.arange(5, 12) % 5,
            got=got,
        )


def _draws(write):
    write = jax.jit(write, static_argnums=(0, 4))
    zero, size = jnp.int32(0), 3000
    shares, draws = {}, []
    for temperature, seed in [(1.0, 6), (1.0, 5), (0.5, 5), (2.0, 5)]:
        draws.append(np.asarray(write(_dice, zero, zero, jax.random.key(seed), size, temperature)))
        shares[temperature] = np.bincount(draws[-1], minlength=3) / size
    p = np.array([0.5, 0.3, 0.2])
    right = {t: p ** (1 / t) / np.sum(p ** (1 / t)) for t in shares}
    if any(share.max() == 1 for share in shares.values()):
        raise Failed(
            "The same index is drawn each time: either the likeliest is taken in place of a draw, or all steps have the same key.",
            expected=right[1.0],
            got=shares[1.0],
        )
    close = lambda a, b: np.abs(a - b).max() < 0.04  # noqa: E731
    if all(close(share, p) for share in shares.values()):
        raise Failed("The temperature has no effect.")
    if close(shares[0.5], right[2.0]) and close(shares[2.0], right[0.5]):
        raise Failed("The temperature works the wrong way round: divide the logits by it.")
    for temperature, share in shares.items():
        if not close(share, right[temperature]):
            raise Failed(
                f"At a temperature of {temperature} the indices are drawn with the wrong frequencies. Logits are divided by it, before the draw.",
                expected=right[temperature],
                got=share,
            )
    if np.array_equal(draws[0], draws[1]):
        raise Failed("The result does not depend on the key `key`: another key gave the same indices.")


exercise = Exercise(
    title="Write with temperature",
    stars=2,
    minutes=15,
    why="A loop that feeds back its own output is a scan whose carry holds the output, too; with a key for each step it is one program.",
    hints=(
        "The carry is the pair (state, index), the inputs of the scan are `jax.random.split(key, size)`.",
        "`index = jax.random.categorical(key, logits / temperature)`, and return `((state, index), index)`. The carry keeps its dtype: "
        "`first` may need `jnp.asarray(first, jnp.int32)`.",
    ),
    solution=solution,
    check=check,
)
