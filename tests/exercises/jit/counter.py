"""Answers to the exercise jit.counter."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.jit.counter import exercise, solution, without_abs
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("You change the dict")
def in_place(state, x):
    state["count"] = state["count"] + 1
    state["largest"] = jnp.maximum(state["largest"], jnp.max(jnp.abs(x)))
    return state, x / state["largest"]


@answers.wrong("asks for the value of a traced array")
def python_if(state, x):
    new, _ = solution(state, x)
    if new["largest"] > 0:
        return new, x / new["largest"]
    return new, 0 * x


@answers.wrong("x = [1e-05, -4e-05]")
def with_a_floor(state, x):
    new, _ = solution(state, x)
    return new, x / jnp.maximum(new["largest"], 1e-3)


@answers.wrong("x = [1e-12, -4e-12]")
def with_a_floor_of_eps(state, x):
    new, _ = solution(state, x)
    return new, x / jnp.maximum(new["largest"], 1e-8)


@answers.wrong("x = [1e-30, -4e-30]")
def with_a_tiny_number_added(state, x):
    new, _ = solution(state, x)
    return new, x / (new["largest"] + 1e-20)


@answers.wrong("As long as the largest value is 0")
def divides(state, x):
    new, _ = solution(state, x)
    return new, x / new["largest"]


@answers.wrong("Return two things")
def result_only(state, x):
    return solution(state, x)[1]


@answers.wrong("The order is")
def other_order(state, x):
    return solution(state, x)[::-1]


@answers.wrong("came as int32")
def floats(state, x):
    new, result = solution(state, x)
    return {**new, "count": state["count"] + 1.0}, result


@answers.wrong("should be an array, as it was")
def python_numbers(state, x):
    new, result = solution(state, x)
    return {"count": int(new["count"]), "largest": new["largest"]}, result


@answers.wrong("of all calls so far")
def this_call(state, x):
    return solution({**state, "largest": jnp.float32(0)}, x)


@answers.wrong("The calls are not counted")
def not_counted(state, x):
    new, result = solution(state, x)
    return {**new, "count": state["count"]}, result


answers.wrong("The largest *absolute* value")(without_abs)


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.jit
def with_cond(state, x):
    largest = jnp.abs(jnp.append(x, state["largest"])).max()
    result = jax.lax.cond(largest == 0, jnp.zeros_like, lambda x: x / largest, x)
    return dict(count=state["count"] + 1, largest=largest), result


@answers.right
def by_nan_to_num(state, x):
    new = dict(state)
    new["count"] += 1
    new["largest"] = jnp.fmax(state["largest"], jnp.linalg.norm(x, ord=jnp.inf))
    return new, jnp.where(new["largest"] == 0, x, x / new["largest"])


@answers.right
def by_a_factor(state, x):
    largest = jax.lax.max(state["largest"], jnp.max(jnp.abs(x)))
    scale = jnp.where(largest > 0, 1 / largest, 0.0)
    return (state | {"count": state["count"] + jnp.int32(1), "largest": largest}, x * scale)


@answers.wrong()
def a_small_number_added(state, x):
    largest = jnp.maximum(state["largest"], jnp.max(jnp.abs(x)))
    return {"count": state["count"] + 1, "largest": largest}, x / (largest + 1e-2)


@answers.wrong()
def numpy_numbers(state, x):
    new, result = solution(state, x)
    return {"count": np.int32(new["count"]), "largest": new["largest"]}, result


_calls = {"count": 0}


@answers.wrong()
def counts_outside(state, x):
    _calls["count"] += 1
    new, result = solution(state, x)
    return {**new, "count": jnp.int32(_calls["count"])}, result


@answers.wrong()
def largest_is_weak(state, x):
    new, result = solution(state, x)
    return {**new, "largest": jnp.asarray(float(new["largest"]))}, result


answers.equivalent(
    "jnp.where(largest > 0, largest, 1.0) -> jnp.where(largest > 0, largest, 2.0)",
    because="it divides zeros only",
)
