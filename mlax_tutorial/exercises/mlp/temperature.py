"""The temperature at which probabilities fit best."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def _loss(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1))


def solution(logits, labels):
    def slope(log_t):
        return jax.grad(lambda log_t: _loss(logits / jnp.exp(log_t), labels))(log_t)

    def halve(_, bounds):
        low, high = bounds
        middle = (low + high) / 2
        too_cold = slope(middle) < 0  # a higher temperature still lowers the loss
        return jnp.where(too_cold, middle, low), jnp.where(too_cold, high, middle)

    low, high = jax.lax.fori_loop(0, 30, halve, (jnp.log(0.01), jnp.log(100.0)))
    return jnp.exp((low + high) / 2)


def _given(heat, n=500, classes=5, seed=0):
    """Logits that are ``heat`` times too large for labels drawn from them."""
    draw = np.random.default_rng(seed)
    logits = 2 * draw.normal(size=(n, classes))
    labels = (logits + draw.gumbel(size=logits.shape)).argmax(axis=-1)
    return jnp.float32(heat * logits), jnp.int32(labels)


_reference = jax.jit(solution)


def check(temperature):
    rising = 0
    for heat in (3.0, 0.5, 1.0):
        given = _given(heat, seed=int(10 * heat))
        got = temperature(*given)
        checks.returned(got)
        if np.shape(got) != ():
            raise Failed("One temperature is asked for, for all images: a scalar.", got=got)
        expected = _reference(*given)
        t, best = float(got), float(expected)
        shown = {
            "input": f"logits that are about {heat:g} times too large, 500 images",
            "expected": best,
            "got": t,
        }
        if not np.isfinite(t) or t <= 0:
            raise Failed("A temperature is a positive number. Searching for its logarithm keeps it positive.", **shown)  # fmt: skip
        if abs(t / best - 1) > 0.02:
            if abs(t * best - 1) < 0.02:
                raise Failed("That is one over the temperature: logits are *divided* by it.", **shown)
            if (
                abs(np.log(t) / np.log(best) - 1 if abs(np.log(best)) > 0.1 else 1) > 0.5
                and abs(t - 1) < 0.02
            ):
                raise Failed("The temperature stays at 1, where the search begins: does anything that it changes reach the loss? The accuracy has no slope: it is the same at every temperature.", **shown)  # fmt: skip
            if abs(t - np.exp(best)) < 0.05 or abs(t - np.log(best)) < 0.02:
                raise Failed("You search for the logarithm of the temperature, or for the temperature, and return the other one.", **shown)  # fmt: skip
            losses = [float(_loss(given[0] / one, given[1])) for one in (t, best)]
            raise Failed(f"At this temperature the loss is {losses[0]:.4f}, and {losses[1]:.4f} at the best one. Does the search end before it is there, or do its bounds not reach that far?", **shown)  # fmt: skip
        rising += 1
    checks.returns(temperature, *_given(1.0), shape=(), dtype="float32")
    for heat, said in ((30.0, "30 times too large"), (1 / 80, "80 times too small")):
        given = _given(heat)
        got, best = float(temperature(*given)), float(_reference(*given))
        if not abs(got / best - 1) < 0.05:
            raise Failed(f"For logits that are {said} the search does not arrive. Steps in the logarithm of the temperature, or halving an interval from 0.01 to 100, get there.", expected=best, got=got)  # fmt: skip
    checks.works_under_jit(temperature, *given)


exercise = Exercise(
    title="The temperature that makes a classifier honest",
    stars=3,
    minutes=20,
    why="One number, found on validation images, mends the confidence of a whole network and changes no answer.",
    hints=(
        "The loss over the logarithm of the temperature falls to one minimum and rises again, so its slope changes sign once: `jax.grad` of a function of one number.",
        "Halve an interval: where the slope is negative the minimum lies above. Thirty times, `jax.lax.fori_loop(0, 30, halve, (low, high))`.",
        "`jnp.where(slope < 0, middle, low), jnp.where(slope < 0, high, middle)` are the new bounds.",
    ),
    solution=solution,
    check=check,
)
