"""Answers to the exercise training_loop.rate_finder."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.training_loop.rate_finder import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def moved(params, gradients, rate):
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients)


@answers.wrong("The program grows with the number of rates")
def python_loop(loss_fn, params, batch, rates):
    losses = []
    for rate in rates:
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        params = moved(params, gradients, rate)
        losses.append(loss)
    return jnp.stack(losses)


@answers.wrong("the losses after each step")
def after(loss_fn, params, batch, rates):
    def body(params, rate):
        params = moved(params, jax.grad(loss_fn)(params, batch), rate)
        return params, loss_fn(params, batch)

    return jax.lax.scan(body, params, rates)[1]


@answers.wrong("The program holds 0 loops")
def by_vmap(loss_fn, params, batch, rates):
    gradients = jax.grad(loss_fn)(params, batch)
    return jax.vmap(lambda rate: loss_fn(moved(params, gradients, rate), batch))(rates)


@answers.wrong("begins again from the first weights")
def from_the_start(loss_fn, params, batch, rates):
    def body(_, rate):
        return None, loss_fn(moved(params, jax.grad(loss_fn)(params, batch), rate), batch)

    return jax.lax.scan(body, None, rates)[1]


@answers.wrong("not carried on")
def carries_nothing(loss_fn, params, batch, rates):
    def body(params, rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        moved(params, gradients, rate)
        return params, loss

    return jax.lax.scan(body, params, rates)[1]


@answers.wrong("up the slope")
def uphill(loss_fn, params, batch, rates):
    return exercise.answer(loss_fn, params, batch, -rates)


@answers.wrong("the second part")
def both(loss_fn, params, batch, rates):
    def body(params, rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        return moved(params, gradients, rate), loss

    return jax.lax.scan(body, params, rates)


@answers.wrong("Every step takes the first rate")
def first_rate(loss_fn, params, batch, rates):
    return exercise.answer(loss_fn, params, batch, jnp.full_like(rates, rates[0]))


@answers.wrong("reverse order")
def reversed_losses(loss_fn, params, batch, rates):
    return exercise.answer(loss_fn, params, batch, rates)[::-1]


@answers.wrong("and you hide it")
def clipped(loss_fn, params, batch, rates):
    return jnp.clip(exercise.answer(loss_fn, params, batch, rates), 0, 1e6)


@answers.wrong("and you hide it")
def without_nan(loss_fn, params, batch, rates):
    return jnp.nan_to_num(exercise.answer(loss_fn, params, batch, rates))


@answers.wrong("and you hide it")
def only_finite(loss_fn, params, batch, rates):
    losses = exercise.answer(loss_fn, params, batch, rates)
    return jnp.where(jnp.isfinite(losses), losses, 0)


# Wrong ones that look right


@answers.wrong()
def with_momentum(loss_fn, params, batch, rates):
    def body(carry, rate):
        params, velocity = carry
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return (moved(params, velocity, rate), velocity), loss

    return jax.lax.scan(body, (params, jax.tree.map(jnp.zeros_like, params)), rates)[1]


@answers.wrong()
def stops_early(loss_fn, params, batch, rates):
    """Once the loss is large, the weights stay: what explodes is not shown."""

    def body(params, rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        return moved(params, gradients, jnp.where(loss > 10, 0.0, rate)), loss

    return jax.lax.scan(body, params, rates)[1]


# Right ones of unusual style


@answers.right
def counted(loss_fn, params, batch, rates):
    def body(i, carry):
        params, losses = carry
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        return moved(params, gradients, rates[i]), losses.at[i].set(loss)

    return jax.lax.fori_loop(0, len(rates), body, (params, jnp.zeros(len(rates))))[1]


@answers.right
@jax.tree_util.Partial
def plain(loss_fn, params, batch, rates):
    return exercise.answer(loss_fn, params, batch, rates)


@answers.right
def with_optax(loss_fn, params, batch, rates):
    import optax

    def body(params, rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        updates = jax.tree.map(lambda g: -rate * g, gradients)
        return optax.apply_updates(params, updates), loss

    _, losses = jax.lax.scan(body, params, jnp.asarray(rates))
    return losses


@answers.right
def by_dict(loss_fn, params, batch, rates):
    def body(carry, rate):
        loss, gradients = jax.value_and_grad(lambda p: loss_fn(p, batch))(carry["params"])
        return {"params": moved(carry["params"], gradients, rate)}, {"loss": loss}

    return jax.lax.scan(body, {"params": params}, rates)[1]["loss"]


@answers.wrong("go through any tree")
def names_built_in(loss_fn, params, batch, rates):
    def body(params, rate):
        loss, g = jax.value_and_grad(loss_fn)(params, batch)
        return {name: params[name] - rate * g[name] for name in ("w", "b")}, loss

    return jax.lax.scan(body, params, rates)[1]


@answers.wrong("go through any tree")
def a_batch_is_a_pair(loss_fn, params, batch, rates):
    x, y = batch

    def body(params, rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, (x, y))
        return jax.tree.map(lambda p, g: p - rate * g, params, gradients), loss

    return jax.lax.scan(body, params, rates)[1]


@answers.wrong()
def dicts_alone(loss_fn, params, batch, rates):
    def over(function, one, two):
        if isinstance(one, dict):
            return {name: over(function, one[name], two[name]) for name in one}
        return function(one, two) if not isinstance(one, (list, tuple)) else one

    def body(params, rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        return over(lambda p, g: p - rate * g, params, gradients), loss

    return jax.lax.scan(body, params, rates)[1]
