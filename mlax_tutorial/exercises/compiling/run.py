"""Donate safely."""

import functools
import gc
import warnings
from unittest import mock

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import original
from mlax_tutorial.checking.programs import forget


def solution(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


_ODD = (1237,)  # a shape that nothing else has, so that its arrays can be found among all that are alive


def check(run):
    traced = []

    def step(state, batch):
        traced.append(isinstance(batch, jax.core.Tracer))
        weights = state["weights"] - 0.1 * batch
        return {"weights": weights, "average": 0.9 * state["average"] + 0.1 * weights}

    def start(twice=False):
        weights = jnp.linspace(0.0, 1.0, _ODD[0])
        return {"weights": weights, "average": weights if twice else 2 * weights}

    def expected_of(state, batches):
        for batch in batches:
            state = step(state, batch)
        return state

    batches = [jnp.full(_ODD, float(i)) for i in range(5)]
    state = start()
    expected = expected_of(start(), batches)
    traced.clear()
    forget(original(run))
    watch = _Alive()
    with warnings.catch_warnings(record=True) as heard, mock.patch.object(jax, "jit", watch.jit(jax.jit)):
        warnings.simplefilter("always")
        got = run(step, state, watch.over(batches, traced))
    checks.returned(got)
    if not traced:
        raise Failed("Your function never calls `step`.")
    if not traced[0]:
        raise Failed("The step is run by Python with real arrays, at each call: it is not jitted.")
    gone = [name for name, leaf in state.items() if leaf.is_deleted()]
    if gone:
        raise Failed(
            "The caller's own state is deleted: the first step donated it. Donate a copy of it, and from then on what you made yourself.",
            input="a state of two arrays, five batches",
        )
    unusable = any("donated buffers were not usable" in str(warning.message) for warning in heard)
    if unusable or any(batch.is_deleted() for batch in batches):
        raise Failed(
            "You donate the batches, and they are the caller's. Where a result fits, they are deleted; where none does, JAX warns."
        )
    checks.same(got, expected, input="a state of two arrays, five batches")
    if len(traced) > 1:
        raise Failed(
            f"The step was traced {len(traced)} times over five batches of one shape: jit it once, before the loop."
        )
    if watch.jitted_later:
        raise Failed(
            "`jax.jit` is called again for each batch: here it finds the old trace, but with a lambda or a `functools.partial` it would "
            "compile each time. Jit the step once, before the loop."
        )
    if not watch.donated and watch.ahead:
        raise Failed(
            "You fetch all batches before the first step. In a training loop they would not fit: fetch one, run the step, fetch the next.",
        )
    if not watch.donated:
        raise Failed(
            "The state is not donated, or you keep a copy: arrays of the state before a step are still there after it. Where the batch came from, the checker held on to "
            "them, and `is_deleted()` says no.",
        )
    if watch.moved:
        raise Failed(
            "The arrays of the state before a step are gone, but their memory is not used again: during the step both states are "
            "there. Do not delete the old one, donate it."
        )
    if watch.most > 2:
        raise Failed(
            f"While a batch is fetched, {watch.most} arrays of the size of the weights are alive beside the caller's; two are enough, one state. Do not keep what you have "
            "donated or copied.",
        )
    twin = start(twice=True)
    with checks.says(
        'One array stands in the state under two names, `{"weights": w, "average": w}`, and it was donated twice: copy each leaf.',
        about="twice",
    ):
        got = run(step, twin, iter(batches))
    if twin["weights"].is_deleted():
        raise Failed("The caller's own state is deleted, where one array stands in it under two names.")
    checks.same(got, expected_of(start(twice=True), batches), input="one array under two names")
    empty = start()
    got = run(step, empty, iter([]))
    checks.same(got, empty, input="no batches at all")
    if empty["weights"].is_deleted():
        raise Failed("Without any batch the caller's state is deleted.")


class _Alive:
    """Looks at the arrays of a state each time the next batch is asked for."""

    def __init__(self):
        gc.collect()
        self.kept = self.alive()  # so that ids stay theirs
        self.known = {id(leaf) for leaf in self.kept}
        self.most, self.donated, self.ahead = 0, False, False
        self.places, self.moved = set(), False
        self.batches, self.jitted_later = 0, False

    def jit(self, usual):
        """`jax.jit`, with a note if it is called when the second batch was fetched already."""

        @functools.wraps(usual)
        def noted(*args, **kwargs):
            self.jitted_later |= self.batches > 1 and not self.ahead
            return usual(*args, **kwargs)

        return noted

    @staticmethod
    def alive():
        return [leaf for leaf in jax.live_arrays() if leaf.shape == _ODD]

    def over(self, batches, traced):
        held = []
        for number, batch in enumerate(batches):
            self.ahead = not traced
            self.batches = number + 1
            if held and all(leaf.is_deleted() for leaf in held):
                self.donated = True
            gc.collect()
            alive = [leaf for leaf in self.alive() if id(leaf) not in self.known]
            if number > 1:
                self.most = max(self.most, len(alive) - len([h for h in held if not h.is_deleted()]))
            if number in (2, 3):  # the new state is where the old one was
                self.moved = not self.places & _places(alive)
            held = alive if number in (1, 2) else []
            self.places = _places(held)
            yield batch


def _places(arrays):
    try:
        return {array.unsafe_buffer_pointer() for array in arrays if not array.is_deleted()}
    except (RuntimeError, NotImplementedError):  # a device that does not tell
        return {0}


exercise = Exercise(
    title="Donate safely",
    stars=3,
    minutes=15,
    why="Donation halves the memory of a state, and the one rule is: give away only what is yours.",
    hints=(
        "`jax.jit(step, donate_argnums=0)`, once, before the loop. In the loop the state is rebound: `state = fast_step(state, batch)`.",
        "The first state is the caller's. What you may donate is a copy of it.",
        "`jax.tree.map(jnp.copy, state)` copies each leaf by itself, so that two names get two arrays. `jnp.asarray` and `dict` copy no array.",
    ),
    solution=solution,
    check=check,
)
