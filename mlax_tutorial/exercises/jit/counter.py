"""State by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs


def solution(state, x):
    largest = jnp.maximum(state["largest"], jnp.max(jnp.abs(x)))
    result = x / jnp.where(largest > 0, largest, 1.0)  # as long as it is 0, so is x
    return {"count": state["count"] + 1, "largest": largest}, result


def _state(count, largest):
    return jax.device_put({"count": np.int32(count), "largest": np.float32(largest)})


def _start():
    return _state(0, 0.0)


def check(counter):
    x, zeros = jax.device_put((np.float32([1, -4]), np.zeros(5, np.float32)))
    given, states = _start(), [_start(), _state(3, 8.1), _state(1, 0.7)]
    new, _ = checks.returned(counter(given, x), "new state", "result", like=(_start(), x))
    if new is given:
        raise Failed(
            "You change the dict that the caller passed in. That is a side effect: make a new dict, and return it.",
            input={"state": _start(), "x": x},
            got=new,
        )
    for name, old in _start().items():
        value = new[name]
        if not isinstance(value, jax.Array):
            raise Failed(f"`{name}` of the new state should be an array, as it was.", got=value)
        if value.dtype != old.dtype or value.weak_type:
            kind = "a weak " * value.weak_type + str(value.dtype)
            raise Failed(
                f"`{name}` came as {old.dtype} and goes as {kind}: the next call is traced again.", got=value
            )
    wrong = [
        (not_counted, "The calls are not counted."),
        (by_the_old_largest, "The result is divided by the *new* largest value."),
        (without_abs, "The largest *absolute* value counts: that of [1, -4] is 4."),
        (
            this_call_alone,
            "The largest value is that of all calls so far: take the larger of the state's and the new one.",
        ),
    ]
    checks.values(counter, solution, examples=[(state, x) for state in states], recognise=wrong)
    for size in (1e-5, 1e-12, 1e-30):
        got = counter(_start(), jax.device_put(np.float32([size, -4 * size])))[1]
        with checks.says(
            "Small numbers are scaled, too: only a largest value of 0 is treated apart, and nothing is added to it. "
            f"For x = [{size:g}, {-4 * size:g}] the result is [0.25, -1]."
        ):
            checks.same(got, np.float32([0.25, -1]), rtol=1e-3)
    with checks.says("As long as the largest value is 0, the result is 0."):
        checks.values(counter, solution, examples=[(_start(), 0 * x), (_start(), zeros)])
    drawn = inputs.one_of(*states), inputs.arrays("n", sizes=(2, 5))
    checks.values(counter, solution, *drawn, recognise=wrong)
    checks.pure(counter, states[1], x)
    checks.traces(counter, (_start(), x), (counter(_start(), x)[0], x), (states[2], 2 * x), exactly=1)


def not_counted(state, x):
    new, result = solution(state, x)
    return {**new, "count": state["count"]}, result


def by_the_old_largest(state, x):
    return solution(state, x)[0], x / state["largest"]


def this_call_alone(state, x):
    return solution({**state, "largest": jnp.float32(0)}, x)


def without_abs(state, x):
    largest = jnp.maximum(state["largest"], jnp.max(x))
    result = jnp.where(largest > 0, x / jnp.where(largest > 0, largest, 1.0), 0.0)
    return {"count": state["count"] + 1, "largest": largest}, result


exercise = Exercise(
    title="State by hand",
    stars=1,
    minutes=10,
    why="A function whose memory goes in and comes out can be jitted, differentiated, batched, saved and put back.",
    hints=(
        "The state is read from `state` and written into a new dict: `return {...}, result`.",
        "`max` and `if` ask for values, which are not known while tracing: `jnp.maximum`, `jnp.max` and `jnp.where` do not.",
        "To divide safely: `x / jnp.where(largest > 0, largest, 1.0)`.",
    ),
    solution=solution,
    check=check,
)
