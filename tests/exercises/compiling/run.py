"""Answers to the exercise compiling.run."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.compiling.run import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("The caller's own state is deleted: the first step")
def donates_theirs(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    for batch in batches:
        state = fast_step(state, batch)
    return state


@answers.wrong("The caller's own state is deleted: the first step")
def shallow(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = dict(state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


@answers.wrong("The caller's own state is deleted: the first step")
def asarray(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = jax.tree.map(jnp.asarray, state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


@answers.wrong("The caller's own state is deleted: the first step")
def copies_weights(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = state | {"weights": jnp.copy(state["weights"])}
    for batch in batches:
        state = fast_step(state, batch)
    return state


@answers.wrong("The state is not donated")
def keeps(step, state, batches):
    fast_step = jax.jit(step)
    for batch in batches:
        state = fast_step(state, batch)
    return state


@answers.wrong("The state is not donated")
def copies_each_time(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    for batch in batches:
        state = fast_step(jax.tree.map(jnp.copy, state), batch)
    return state


@answers.wrong("their memory is not used again")
def deletes(step, state, batches):
    fast_step = jax.jit(step)
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        new = fast_step(state, batch)
        jax.tree.map(lambda leaf: leaf.delete(), state)
        state = new
    return state


@answers.wrong("before the first step")
def lists(step, state, batches):
    return solution(step, state, list(batches))


@answers.wrong("it is not jitted")
def plain(step, state, batches):
    for batch in batches:
        state = step(state, batch)
    return state


@answers.wrong("jit it once, before the loop")
def jit_in_loop(step, state, batches):
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = jax.jit(lambda s, b: step(s, b), donate_argnums=0)(state, batch)
    return state


@answers.wrong("is called again for each batch")
def same_function_jitted_in_loop(step, state, batches):
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = jax.jit(step, donate_argnums=0)(state, batch)
    return state


@answers.wrong("jit it once, before the loop")
def first_apart(step, state, batches):
    first, later = jax.jit(lambda s, b: step(s, b)), jax.jit(lambda s, b: step(s, b), donate_argnums=0)
    for number, batch in enumerate(batches):
        state = later(state, batch) if number else first(state, batch)
    return state


@answers.wrong("they are the caller's")
def donates_batches(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=(0, 1))
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


@answers.wrong("is a `return` missing")
def no_return(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = fast_step(state, batch)


@answers.wrong("has been deleted")
def not_rebound(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    copy = jax.tree.map(jnp.copy, state)
    for batch in batches:
        new = fast_step(copy, batch)
    return new


@answers.wrong("they are the caller's")
def donates_batches_alone(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=1)
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_array(step, state, batches):
    state = {name: jnp.array(leaf) for name, leaf in state.items()}
    jitted = jax.jit(lambda state, batch: step(state, batch), donate_argnames="state")
    for batch in batches:
        state = jitted(state, batch)
    return state


@answers.right
def by_reduce(step, state, batches):
    first = jax.tree.map(lambda leaf: leaf.copy(), state)
    return functools.reduce(jax.jit(step, donate_argnums=(0,)), batches, first)


@answers.right
def by_next(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = jax.tree.map(jnp.copy, state)
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            return state
        state = fast_step(state, batch)


@answers.right
def copied_by_a_program(step, state, batches):
    state = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))(state)
    step = functools.partial(jax.jit, donate_argnums=0)(step)
    for batch in batches:
        new = step(state, batch)
        state = new
        del new
    return state


@answers.wrong()
def scanned(step, state, batches):  # one program, nothing donated, and all batches at once
    def body(state, batch):
        return step(state, batch), None

    batches = list(batches)
    if not batches:
        return state
    return jax.lax.scan(body, state, jnp.stack(batches))[0]


@answers.wrong()
def one_leaf_only(step, state, batches):
    jitted = jax.jit(
        lambda weights, average, batch: step({"weights": weights, "average": average}, batch),
        donate_argnums=0,
    )
    weights, average = jnp.copy(state["weights"]), state["average"]
    for batch in batches:
        state = jitted(weights, average, batch)
        weights, average = state["weights"], state["average"]
    return state


@answers.wrong()
def keeps_the_history(step, state, batches):
    jitted, history = jax.jit(step, donate_argnums=0), []
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = jitted(state, batch)
        history.append(jax.tree.map(jnp.copy, state))
    return state
