"""One step of gradient descent."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under


def solution(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    params = jax.tree.map(lambda p, slope: (p - rate * slope).astype(p.dtype), params, slopes)
    return params, value, extras


@jax.jit
def _line(params, batch):
    x, y = batch
    error = x @ params["w"] + params["b"].astype(x.dtype) - y
    return jnp.mean(error**2), {"worst": jnp.max(jnp.abs(error)), "rows": jnp.float32(len(y))}


class Line(NamedTuple):
    slope: jax.Array
    offset: jax.Array


def check(step):
    params = jax.device_put({"w": np.float32([1, -0.5]), "b": np.array(0.25, jnp.bfloat16)})
    batch = jax.device_put((np.float32([[1, 2], [0.5, -1], [3, 1]]), np.float32([0, 1, 2])))
    calls = []

    def loss(params, batch):
        calls.append(1)
        return _line(params, batch)

    shown = {"input": "a `loss` of two parameters, `w` in float32 and `b` in bfloat16, and rate = 0.1"}
    _, value, extras = expected = solution(_line, params, batch, 0.1)
    got = step(loss, params, batch, 0.1)
    asked = "Three things are asked for: `(params, value, extras)`."
    checks.returned(got, "params", "value", "extras", lists=True, asked=asked, **shown)
    if not calls:
        raise Failed("Your function does not call `loss`.")
    if len(calls) > 1:
        raise Failed(
            f"`loss` was run {len(calls)} times for one step. `jax.value_and_grad` gives the value, and with "
            "`has_aux=True` the extras, in the run that it needs for the gradient.",
            **shown,
        )
    got = tuple(got)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(got)):
        raise Failed(
            "A traced value has left `loss` by a side effect, so it has no numbers. With `has_aux=True` the extras come "
            "back as numbers.",
            **shown,
        )
    if jax.tree.structure(got[0]) == jax.tree.structure(params) and got[0]["b"].dtype != jnp.bfloat16:
        raise Failed(
            f"The parameter `b` came as bfloat16 and goes back as {got[0]['b'].dtype}. With the next step the program "
            "would be another one, and be traced again: cast to the parameter's own dtype.",
            **shown,
        )

    def slopes():
        return jax.grad(lambda p: _line(p, batch)[0])(params)

    def moved(by):
        return jax.tree.map(lambda p, g: (p + by * g).astype(p.dtype), params, slopes())

    wrong = [
        (lambda: (moved(0.1), value, extras), "This goes uphill: subtract the gradient."),
        (lambda: (moved(-1.0), value, extras), "The learning rate is missing."),
        ((params, value, extras), "The parameters are the old ones."),
        (lambda: (slopes(), value, extras), "This is the gradient, not the new parameters."),
        ((expected[0], extras, value), "Value and extras are in the wrong order."),
        (lambda: (expected[0], *_line(expected[0], batch)), "The value is that of the new parameters."),
    ]
    checks.same(got, expected, recognise=wrong, rtol=2e-3, atol=1e-4, **shown)
    other = step(_line, params, batch, jax.device_put(np.float32(0.1)))
    if other[0]["b"].dtype != jnp.bfloat16:
        raise Failed(
            "With a `rate` that is an array (float32), the parameter `b` comes back as float32. A Python number is "
            "weak, an array is not: cast to the parameter's own dtype.",
        )
    ones = np.ones(2, np.float32)
    nested = jax.device_put({"layers": [ones, (ones,)], "line": Line(ones, ones)})

    @jax.jit
    def of_a_tree(params, batch):
        return sum(jnp.sum(p**3) for p in jax.tree.leaves(params)) * batch, (batch, None)

    with_tree = {
        "input": "parameters in nested dicts, lists, tuples and a named tuple, and extras in a tuple"
    }
    checks.same(
        step(of_a_tree, nested, 200.0, 0.5)[0], solution(of_a_tree, nested, 200.0, 0.5)[0], **with_tree
    )
    with under("`jax.jit`"):
        jitted = jax.jit(fresh(step), static_argnums=0)(_line, params, batch, 0.1)
    checks.same(tuple(jitted), expected, where="under `jax.jit`", rtol=1e-2, atol=1e-4)


exercise = Exercise(
    title="One step of gradient descent",
    stars=2,
    minutes=10,
    why="Value, extras and gradient from one run of the loss: this is the inner part of every training loop of the book.",
    hints=(
        "One transformation gives value and gradient together; one of its options lets extras through.",
        "`(value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)`",
        "`jax.tree.map` over parameters and slopes; `.astype(p.dtype)` keeps a bfloat16 what it is.",
    ),
    solution=solution,
    check=check,
)
