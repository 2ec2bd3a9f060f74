"""Models of research, written as a user would: with public names alone, trained for a few steps, and decoded where they decode."""

import functools

import jax

from mlax_tutorial import training

QUICK_TO_COMPILE = True


def infer(model, x, variables, **inputs):
    """What a model gives in inference: jitted, since a single program is compiled sooner than its parts."""
    return jax.jit(functools.partial(model.fwd, inference_mode=True))(x, *variables, **inputs)[0]


def train(model, loss, optimizer, x, targets, steps, **inputs):
    """Train on one batch; return what was learned and the losses by step."""
    trainables, non_trainables = model.init(jax.random.key(0), x, **inputs)
    step, key = training.make_step(model, loss), jax.random.key(1)
    state, losses = training.State(trainables, non_trainables, optimizer.init(trainables)), []
    for step_key in jax.random.split(key, steps):
        step_key = step_key if model.needs_key else None
        state, value = step(optimizer, state, step_key, x, targets, **inputs)
        losses.append(float(value))
    return state, losses
