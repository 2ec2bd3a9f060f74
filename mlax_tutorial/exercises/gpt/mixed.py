"""The logarithm of a mixture, from logarithms."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(log_p, log_q, gate):
    return jnp.logaddexp(jax.nn.log_sigmoid(gate) + log_p, jax.nn.log_sigmoid(-gate) + log_q)


P, Q = np.array([0.5, 0.01, 0.2, 0.9], np.float32), np.array([0.1, 0.6, 0.2, 0.3], np.float32)
GATE = np.array([0.0, -2.0, 3.0, 1.0], np.float32)
# log_p, log_q, gate: where a probability is too small for float32, one is zero, or the gate is nearly shut.
EDGES = {
    "both probabilities too small for float32": (-200.0, -150.0, 0.5),
    "the counts give nothing": (-3.0, -np.inf, 1.0),
    "a gate of 200": (-300.0, -1.0, 200.0),
    "a gate of -200": (-1.0, -300.0, -200.0),
}


def check(mixed):
    given = {"log_p": np.log(P), "log_q": np.log(Q), "gate": GATE}
    arrays = [jnp.asarray(array) for array in given.values()]
    got, wanted = mixed(*arrays), np.asarray(solution(*arrays))
    share = 1 / (1 + np.exp(-GATE))
    wrong = (
        (np.log(share * Q + (1 - share) * P), "The gate is the wrong way round: its sigmoid is the share of `p`."),
        (share * P + (1 - share) * Q, "This is the probability; its logarithm is asked for."),
        (share * np.log(P) + (1 - share) * np.log(Q), "This mixes the logarithms. The mean of logarithms is no logarithm of a mean: what comes out are no probabilities."),
        (np.log(GATE * P + (1 - GATE) * Q + 0j).real, "The gate is any number: its sigmoid lies between 0 and 1."),
        (-wanted, "The sign is wrong: the logarithm of a probability is negative."),
    )  # fmt: skip
    checks.same(got, jnp.asarray(wanted), input=given, atol=1e-4, recognise=wrong)
    for name, edge in EDGES.items():
        each = [jnp.float32(number) for number in edge]
        got, wanted = mixed(*each), solution(*each)
        shown = {"input": dict(zip(given, edge)), "expected": float(wanted), "got": got}
        if not np.allclose(got, wanted, atol=1e-3):
            raise Failed(f"It is wrong where numbers are extreme ({name}): stay with logarithms, `jnp.logaddexp` and `jax.nn.log_sigmoid`.", **shown)  # fmt: skip
        slopes = jax.grad(lambda *each: mixed(*each), argnums=(0, 2))(*each)
        expected = jax.grad(lambda *each: solution(*each), argnums=(0, 2))(*each)
        if not np.allclose(slopes, expected, atol=1e-3):
            raise Failed(f"The value is right, but its gradient is not ({name}).", input=shown["input"], expected=expected, got=slopes)  # fmt: skip
    together = [jnp.asarray(numbers, jnp.float32) for numbers in zip(*EDGES.values())]
    got, wanted = mixed(*together), solution(*together)
    if not checks.agrees(got, wanted, atol=1e-4):
        raise Failed("Each of these elements is right alone, but not in one array with the others. Does a maximum, say, go over all of them?", input=dict(zip(given, together)), expected=wanted, got=got)  # fmt: skip
    checks.works_under_jit(mixed, *arrays)


exercise = Exercise(
    title="Mix in logarithms",
    stars=2,
    minutes=10,
    why="In logarithms nothing underflows, so the loss and its gradient are right even where both models are very sure or very wrong.",
    hints=(
        "The logarithm of a product is a sum: the first part has the logarithm `log_p` plus that of the sigmoid of the gate, `jax.nn.log_sigmoid(gate)`.",
        "1 minus the sigmoid of the gate is the sigmoid of minus the gate. `jnp.logaddexp(a, b)` is `log(exp(a) + exp(b))`, without overflow.",
    ),
    solution=solution,
    check=check,
)
