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
    x = jax.device_put(np.float32([1, -4]))
    state = _start()
    got = counter(state, x)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?")
    if not (isinstance(got, tuple) and len(got) == 2):
        raise Failed("Return two things, `return new_state, result`: the new state, and the result.", got=got)
    if isinstance(got[1], dict) and not isinstance(got[0], dict):
        raise Failed("The order is: first the new state, then the result.", got=got)
    if not isinstance(got[0], dict) or set(got[0]) != {"count", "largest"}:
        raise Failed('The new state is a dict like the old one, with "count" and "largest".', got=got[0])
    if got[0] is state:
        raise Failed(
            "You change the dict that the caller passed in. That is a side effect: make a new dict, and return it.",
            input={"state": _start(), "x": x},
            got=got[0],
        )
    for name, kind in (("count", "int32"), ("largest", "float32")):
        value = got[0][name]
        if not isinstance(value, jax.Array):
            raise Failed(f"`{name}` of the new state should be an array, as it was.", got=value)
        if value.dtype != kind or value.weak_type:
            raise Failed(
                f"`{name}` came as {kind} and goes as {'a weak ' * value.weak_type}{value.dtype}: the next call is traced again.",
                got=value,
            )
    recognise = [
        (
            lambda s, x: ({**solution(s, x)[0], "count": s["count"]}, solution(s, x)[1]),
            "The calls are not counted.",
        ),
        (
            lambda s, x: (solution(s, x)[0], x / s["largest"]),
            "The result is divided by the *new* largest value.",
        ),
        (without_abs, "The largest *absolute* value counts: that of [1, -4] is 4."),
        (
            lambda s, x: solution({**s, "largest": jnp.float32(0)}, x),
            "The largest value is that of all calls so far: take the larger of the state's and the new one.",
        ),
    ]
    states = [
        _start(),
        _state(3, 8.1),
        _state(1, 0.7),
    ]
    checks.values(counter, solution, examples=[(s, x) for s in states], recognise=recognise)
    for size in (1e-5, 1e-12, 1e-30):
        got = counter(_start(), jax.device_put(np.float32([size, -4 * size])))[1]
        if not np.allclose(got, [0.25, -1.0], rtol=1e-3):
            raise Failed(
                "Small numbers are scaled, too: only a largest value of 0 is treated apart, and nothing is added to it. "
                f"For x = [{size:g}, {-4 * size:g}] the result is [0.25, -1].",
                got=got,
            )
    try:
        checks.values(
            counter,
            solution,
            examples=[(_start(), zeros) for zeros in (0 * x, jax.device_put(np.zeros(5, np.float32)))],
        )
    except Failed as failure:
        failure.message = f"As long as the largest value is 0, the result is 0.\n{failure.message}"
        raise
    strategies = inputs.one_of(*states), inputs.arrays("n", sizes=(2, 5))
    checks.values(counter, solution, *strategies, recognise=recognise)
    checks.pure(counter, states[1], x)
    later = counter(_start(), x)[0]
    checks.traces(counter, (_start(), x), (later, x), (states[2], 2 * x), exactly=1)


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
