"""A Jacobian in the cheaper mode."""

import functools
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under
from mlax_tutorial.inspection import costs


def solution(f, x):
    result = jax.eval_shape(f, x)
    if x.size <= result.size:
        columns = jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1])(jnp.eye(x.size, dtype=x.dtype))
        return columns.T
    _, pullback = jax.vjp(f, x)
    return jax.vmap(lambda c: pullback(c)[0])(jnp.eye(result.size, dtype=result.dtype))


@functools.cache
def _function(n, m):
    matrix = np.float32(np.sin(np.arange(m * n)).reshape(m, n) / n)

    @jax.jit
    def f(x):
        for _ in range(3):
            x = jnp.sin(x) * 2
        return jnp.tanh(matrix @ x)

    def derivative(x):
        """By NumPy: nothing is compiled."""
        x, slopes = np.asarray(x), 1
        for _ in range(3):
            x, slopes = np.sin(x) * 2, slopes * np.cos(x) * 2
        return (1 - np.tanh(matrix @ x)[:, None] ** 2) * matrix * slopes

    return f, derivative


def _not_by_jaxs_own(f, *_, **__):
    raise Failed(
        "`jax.jacfwd`, `jax.jacrev` and `jax.jacobian` do the work here: make the runs yourself, with `jax.jvp` or `jax.vjp`."
    )


def check(jacobian):
    own = dict.fromkeys(("jacfwd", "jacrev", "jacobian", "hessian"), _not_by_jaxs_own)
    with mock.patch.multiple(jax, **own):
        _check(jacobian)


def _check(jacobian):
    with jax.default_matmul_precision("highest"):
        for n, m in [(2, 5), (5, 2), (3, 3), (1, 4), (4, 1)]:
            x = jax.device_put(np.linspace(0.5, 1.5, n, dtype=np.float32))
            f, derivative = _function(n, m)
            expected = derivative(x)
            wrong = [
                (expected.T, "This is the transpose: a row for each output, a column for each input."),
                (expected.sum(axis=0), "The rows are added up: one run with ones is no Jacobian."),
                (expected.sum(axis=1), "The columns are added up: one run with ones is no Jacobian."),
            ]
            if max(n, m) == 5:
                got = jacobian(f, x)
            else:
                with under("`jax.jit`"):
                    got = jax.jit(lambda x, f=f: jacobian(f, x))(x)
            said = f"a function of {n} numbers that returns {m}"
            checks.same(got, expected, recognise=wrong, rtol=1e-3, input=said)
    for n, m, needed in [
        (60, 2, "Two outputs need two runs of reverse"),
        (2, 60, "Two inputs need two runs of forward"),
        (8, 2, "Two outputs need two runs of reverse"),
        (10, 1, "One output needs one run of reverse"),
    ]:
        (f, _), x = _function(n, m), jax.device_put(np.ones(n, np.float32))
        with under("`jax.make_jaxpr`"):
            work = costs.cost(lambda x, f=f: jacobian(f, x), x).flops
        once = costs.cost(f, x).flops
        if work > 10 * once:
            raise Failed(
                f"{needed} mode. Your function does much more.",
                input=f"a function of {n} numbers that returns {m}",
                shown=[("operations", f"{work / once:.0f} times those of the function")],
            )
    (f, _), x = _function(5, 2), jax.device_put(np.ones(5, np.float32))
    checks.works_under_jit(lambda x: jacobian(f, x), x)


exercise = Exercise(
    title="A Jacobian in the cheaper mode",
    stars=2,
    minutes=12,
    why="A Jacobian is a batch of single products, and its shape decides which mode to take.",
    hints=(
        "`jax.eval_shape(f, x).size` is the number of outputs. With fewer inputs than outputs, forward mode needs fewer runs.",
        "Run the product over the rows of `jnp.eye(n)` with `jax.vmap`.",
        "`jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1])(jnp.eye(x.size))` stacks *columns* as rows: transpose it.",
    ),
    solution=solution,
    check=check,
)
