"""Lookahead: slow weights that follow fast ones."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import optim
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.optimizers._chapter import Tunable, zeros
from mlax_tutorial.exercises.optimizers._walk import (
    MANY,
    STEPS,
    WEIGHTS,
    Inner,
    alike,
    arrays,
    by_formula,
    compare,
    keeps_defaults,
    walk,
)


class Lookahead(Tunable):
    optimizer: Tunable
    pull: float = 0.5
    every: float = 5

    def init(self, weights):
        slow = jax.tree.map(jnp.add, zeros(weights), weights)  # arrays of their own
        return jnp.int32(0), slow, self.optimizer.init(weights)

    def step(self, gradients, state, weights):
        count, slow, inner = state
        updates, inner = self.optimizer.step(gradients, inner, weights)
        count = count + 1
        jumps = count % self.every == 0

        def follow(slow, w, u):
            return jnp.where(jumps, slow + self.pull * (w + u - slow), slow)

        slow = jax.tree.map(follow, slow, weights, updates)
        updates = jax.tree.map(lambda u, s, w: jnp.where(jumps, s - w, u), updates, slow, weights)
        return updates, (count, slow, inner)


RATE, DECAY, SHRINK, PULL, EVERY = 0.1, 0.5, 0.4, 0.3, 3
GRADIENTS = STEPS * MANY  # seven jumps


def _formula(*, pull=PULL, first=0, every=EVERY, kind=""):
    def formula(g, memory, w, t):
        slow = memory.setdefault("slow", np.array(w))
        memory["v"] = DECAY * memory.get("v", 0 * g) + g
        u = -RATE * (memory["v"] + SHRINK * (slow if kind == "inner slow" else w))
        if (t + first) % every or t + first <= 0 and kind != "at once":
            return u
        if kind == "old":  # of the fast weights before their step
            new = slow + pull * (w - slow)
        else:
            new = slow + pull * (w + u - slow)
        if kind != "stays":
            memory["slow"] = new
        if kind == "reset":
            memory["v"] = 0 * g
        if kind == "fast goes on":
            return u
        if kind == "sum":
            return u + new - w
        return new if kind == "slow itself" else new - w

    return by_formula(formula, WEIGHTS, GRADIENTS)


def check(Lookahead):
    inner = Inner(RATE, DECAY, SHRINK)
    found = walk(checks.make(Lookahead, inner, PULL, EVERY), WEIGHTS, GRADIENTS)
    compare(
        found,
        _formula(),
        [
            (
                _formula(first=1),
                "The slow weights move one step too early: count the step that is being done, so that they move after `every` steps.",
            ),
            (
                _formula(first=-1),
                "The slow weights move one step too late: count the step that is being done, so that they move after `every` steps.",
            ),
            (
                _formula(first=-1, kind="at once"),
                "The first jump comes at the very first step: count the step that is being done, so that they move after `every` steps.",
            ),
            (
                _formula(kind="inner slow"),
                "The inner optimizer is given the slow weights. It moves the fast ones, and its decay must act on them: hand `weights` on.",
            ),
            (
                _formula(kind="fast goes on"),
                "The updates are always those of the inner optimizer: the fast weights never jump to the slow ones, or these go all the way "
                "to the fast ones before.",
            ),
            (_formula(pull=1 - PULL), "The slow weights go the share 1 - pull of the way: they should go the share `pull`."),
            (
                _formula(kind="slow itself"),
                "The update is the slow weights themselves. Updates are added, so it must be slow minus what the weights are now.",
            ),
            (_formula(kind="old"), "The slow weights follow the fast ones from *before* their step: take weights + updates."),
            (_formula(kind="stays"), "The first jump is right, and then the slow weights are where they began: return the new ones."),
            (_formula(kind="reset"), "The state of the inner optimizer is made anew at each jump. It should go on."),
            (_formula(kind="sum"), "At a jump the inner updates are added as well: the jump replaces them."),
            (_formula(every=5), "The number of steps between jumps is always 5: read it from the field."),
        ],
        GRADIENTS,
    )  # fmt: skip
    for every in (1, 2):
        others = [checks.make(Lookahead, inner, PULL, every)] * len(GRADIENTS)
        if not alike(found.again(others), _formula(every=every)):
            raise Failed(
                f"Right for every={EVERY}, wrong for every={every}: the weights jump {'at each step' if every == 1 else 'at every second step'}."
            )
    _half(Lookahead)
    keeps_defaults(Lookahead, exercise.answer)
    checks.obeys_optimizer_laws(
        lambda rate: Lookahead(optim.SGD(rate), 0.5, 2),
        double=False,
        but={"no weights", "gradients through a step", "ensemble by vmap", "equals Optax", "sums keep growing", "state is sharded", "numbers are cast", "one trace"},
    )  # fmt: skip


def _half(Lookahead):
    """The slow weights of half-precision weights are float32, when they begin and after a step."""
    made = Lookahead(optim.SGD(0.1), 0.5, 2)
    weights = arrays(WEIGHTS, jnp.bfloat16)
    first = made.init(weights)
    for when, state in (("`init`", first), ("a step", made.step(weights, first, weights)[1])):
        if any(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(state)):
            raise Failed(
                f"For weights of bfloat16 the slow weights are bfloat16 after {when}, so a small pull is rounded away. Keep them in float32: "
                "`zeros(weights)` is."
            )
    _, after = made.step(weights, made.step(weights, first, weights)[1], weights)
    shapes = {leaf.shape for leaf in jax.tree.leaves(weights) if leaf.size > 1}
    slow = [leaf for leaf in jax.tree.leaves(after) if leaf.shape in shapes]
    if all((leaf == leaf.astype(jnp.bfloat16)).all() for leaf in slow):
        raise Failed(
            "For weights of bfloat16 the slow weights are rounded to bfloat16 when they move, so a small pull is rounded away."
        )


exercise = Exercise(
    title="Lookahead",
    stars=3,
    minutes=20,
    why="A wrapper that needs nothing but `init` and `step` of what it wraps improves every optimizer of this chapter at once.",
    hints=(
        "The state is three things: a count, the slow weights, and the state of the inner optimizer.",
        "The slow weights need arrays of their own, in float32, or a donated step would free them with the weights: "
        "`jax.tree.map(jnp.add, zeros(weights), weights)`.",
        "`jumps = count % self.every == 0` with the new count. Then `jnp.where(jumps, slow + self.pull * (w + u - slow), slow)` is the "
        "new slow weight, and `jnp.where(jumps, slow - w, u)` with it the update.",
    ),
    solution=Lookahead,
    check=check,
)
