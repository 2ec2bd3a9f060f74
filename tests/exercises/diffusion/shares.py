"""Answers to the exercise diffusion.shares."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.diffusion.shares import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


def backwards(decays):
    return jnp.cumprod(decays[::-1])[::-1]


@answers.wrong("A step's own decay")
def with_its_own(decays):
    return (1 - decays) * backwards(decays)


@answers.wrong("by which a step enters, is missing")
def only_later(decays):
    return jnp.append(backwards(decays)[1:], 1.0)


@answers.wrong("what each step enters with")
def entering(decays):
    return 1 - decays


@answers.wrong("divides 0 by 0, and the result is made 0")
def no_nan(decays):
    before = jnp.cumprod(decays)
    return jnp.nan_to_num((1 - decays) * before[-1] / before)


@answers.wrong("The order is the other way round")
def reversed_(decays):
    return solution(decays)[::-1]


@answers.wrong("decays of earlier steps; it")
def earlier(decays):
    return (1 - decays) * jnp.append(1.0, jnp.cumprod(decays[:-1]))


@answers.wrong("decays of earlier steps, and its own")
def earlier_and_own(decays):
    return (1 - decays) * jnp.cumprod(decays)


@answers.wrong("this divides by 0")
def divides(decays):
    whole = jnp.cumprod(decays)
    return (1 - decays) * whole[-1] / whole


@answers.wrong("the share of the weights that the average began with")
def normalized(decays):
    shares = solution(decays)
    return shares / shares.sum()


@answers.wrong("would never be compiled")
def by_a_loop(decays):
    shares = []
    for s in range(len(decays)):
        share = 1 - decays[s]
        for t in range(s + 1, len(decays)):
            share = share * decays[t]
        shares.append(share)
    return jnp.stack(shares)


# Right ones of unusual style


@answers.right
def by_scan(decays):
    def step(kept, decay):
        return kept * decay, (1 - decay) * kept

    return jax.lax.scan(step, jnp.ones(()), decays, reverse=True)[1]


@answers.right
def by_associative_scan(decays):
    later = jax.lax.associative_scan(jnp.multiply, decays, reverse=True)
    return (1 - decays) * jnp.append(later, 1.0)[1:]


@answers.right
def by_differences(decays):
    """What is kept after a step, less what is kept before it."""
    kept = jnp.append(backwards(decays), 1.0)
    return kept[1:] - kept[:-1]


@answers.right
def by_gradient(decays):
    def average(weights):
        return jax.lax.scan(
            lambda a, now: (now[0] * a + (1 - now[0]) * now[1], None), 0.0, (decays, weights)
        )[0]

    return jax.grad(average)(jnp.zeros_like(decays))


def by_division(instead):
    def shares(decays):
        whole = jnp.cumprod(instead(decays))
        return (1 - decays) * whole[-1] / whole

    return shares


answers.wrong("a small number stands for the 0")(by_division(lambda decays: jnp.maximum(decays, 1e-6)))
answers.wrong("a small number stands for the 0")(
    by_division(lambda decays: jnp.where(decays == 0, 1e-7, decays))
)
answers.wrong("a small number stands for the 0")(by_division(lambda decays: decays + 1e-7))


@answers.right
def by_logarithms(decays):
    later = jnp.append(jnp.log(decays)[1:], 0.0)
    return (1 - decays) * jnp.exp(jnp.cumsum(later[::-1])[::-1])
