"""Answers to the exercise first_network.make_step."""

import functools

import jax
import jax.flatten_util

from mlax_tutorial.exercises.first_network.make_step import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("Python runs your loss again at each call")
def step_not_jitted(loss_fn):
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, loss

    return step


@answers.wrong("is traced again")
def step_static_rate(loss_fn):
    return jax.jit(
        step_not_jitted(loss_fn), static_argnames="learning_rate", donate_argnames=("params", "velocity")
    )


@answers.wrong("still there after the step")
def step_not_donated(loss_fn):
    return jax.jit(step_not_jitted(loss_fn))


@answers.wrong("the old velocity is not")
def step_donates_half(loss_fn):
    return jax.jit(step_not_jitted(loss_fn), donate_argnums=0)


@answers.wrong("The batch is donated")
def step_donates_all(loss_fn):
    return jax.jit(step_not_jitted(loss_fn), donate_argnums=(0, 1, 2))


@answers.wrong("inside your velocity")
def step_rate_inside(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v - learning_rate * g, velocity, gradients)
        return jax.tree.map(lambda p, v: p + v, params, velocity), velocity, loss

    return step


@answers.wrong("plain gradient descent")
def step_without_momentum(loss_fn):
    @jax.jit
    def step(params, velocity, batch, learning_rate):
        loss, velocity = jax.value_and_grad(loss_fn)(params, batch)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, loss

    return step


@answers.wrong("you return the old velocity")
def step_old_velocity(loss_fn):
    @jax.jit
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        new = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, new), velocity, loss

    return step


@answers.wrong("up the slope")
def step_uphill(loss_fn):
    @jax.jit
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p + learning_rate * v, params, velocity), velocity, loss

    return step


@answers.wrong("Your code raised TypeError")
def step_whole_tree(loss_fn):
    @jax.jit
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = 0.9 * velocity + gradients
        return params - learning_rate * velocity, velocity, loss

    return step


@answers.wrong("Python runs your loss again at each call")
def step_jitted_inside(loss_fn):
    def step(params, velocity, batch, learning_rate):
        run = jax.jit(step_not_jitted(loss_fn), donate_argnums=(0, 1))
        return run(params, velocity, batch, learning_rate)

    return step


@answers.wrong("not all of it")
def step_jitted_gradient(loss_fn):
    value_and_grad = jax.jit(jax.value_and_grad(loss_fn))

    def step(params, velocity, batch, learning_rate):
        loss, gradients = value_and_grad(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, loss

    return step


step_jitted_outside = jax.jit(step_not_jitted)


answers.wrong("You jitted `make_step`")(step_jitted_outside)


@answers.wrong("does your step keep something")
def step_own_velocity(loss_fn):
    kept = {}

    def step(params, velocity, batch, learning_rate):
        results = step_not_jitted(loss_fn)(
            params, kept.setdefault("velocity", velocity), batch, learning_rate
        )
        return results

    return step


@answers.wrong("moves by the same learning rate")
def step_fixed_rate(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        return step_not_jitted(loss_fn)(params, velocity, batch, 0.1)

    return step


@answers.wrong("points down the slope")
def step_downhill_velocity(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v - g, velocity, gradients)
        return jax.tree.map(lambda p, v: p + learning_rate * v, params, velocity), velocity, loss

    return step


@answers.wrong("Your momentum is 0.99")
def step_other_momentum(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.99 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, loss

    return step


@answers.wrong("in this order")
def step_loss_first(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        params, velocity, loss = step_not_jitted(loss_fn)(params, velocity, batch, learning_rate)
        return loss, params, velocity

    return step


@answers.wrong("that of the new weights")
def step_loss_after(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        params, velocity, _ = step_not_jitted(loss_fn)(params, velocity, batch, learning_rate)
        return params, velocity, loss_fn(params, batch)

    return step


@answers.wrong("you return the gradients")
def step_gradients_third(loss_fn):
    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(params, velocity, batch, learning_rate):
        gradients = jax.grad(loss_fn)(params, batch)
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, velocity, gradients)
        return jax.tree.map(lambda p, v: p - learning_rate * v, params, velocity), velocity, gradients

    return step
