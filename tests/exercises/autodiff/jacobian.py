"""Answers to the exercise autodiff.jacobian."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.autodiff.jacobian import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("This is the transpose")
def transposed(f, x):
    return jax.vmap(lambda t: jax.jvp(f, (x,), (t,))[1])(jnp.eye(x.size))


@answers.wrong("Two outputs need two runs")
def always_forward(f, x):
    return transposed(f, x).T


@answers.wrong("Two inputs need two runs")
def always_reverse(f, x):
    value, pullback = jax.vjp(f, x)
    return jax.vmap(lambda c: pullback(c)[0])(jnp.eye(value.size))


@answers.wrong("Two outputs need two runs")
def the_wrong_way_round(f, x):
    if x.size > jax.eval_shape(f, x).size:
        return always_forward(f, x)
    return always_reverse(f, x)


@answers.wrong("Two outputs need two runs")
def forward_for_few_inputs(f, x):
    return always_forward(f, x) if x.size <= 10 else always_reverse(f, x)


@answers.wrong("The rows are added up")
def one_run_back(f, x):
    value, pullback = jax.vjp(f, x)
    return pullback(jnp.ones_like(value))[0]


@answers.wrong("The columns are added up")
def one_run_forward(f, x):
    return jax.jvp(f, (x,), (jnp.ones_like(x),))[1]


@answers.wrong("Gradient only defined for scalar-output")
def by_grad(f, x):
    return jax.grad(f)(x)


# Right ones of unusual style, and wrong ones that look right


@answers.wrong("make the runs yourself")
def by_jaxs_own(f, x):
    return (jax.jacfwd if x.size < jax.eval_shape(f, x).size else jax.jacrev)(f)(x)


@answers.right
def by_linearize(f, x):
    value, pushforward = jax.linearize(f, x)
    if x.size <= value.size:
        return jax.vmap(pushforward, out_axes=1)(jnp.eye(x.size))
    return lax.map(lambda c: jax.linear_transpose(pushforward, x)(c)[0], jnp.eye(value.size))


@answers.right
def by_a_loop(f, x):
    if len(x) <= len(jax.eval_shape(f, x)):
        return jnp.stack([jax.jvp(f, (x,), (t,))[1] for t in jnp.eye(len(x))], axis=1)
    return jnp.stack([jax.grad(lambda x, i=i: f(x)[i])(x) for i in range(len(f(x)))])


@answers.wrong()
def by_differences(f, x):
    h = 1e-3
    return jnp.stack([(f(x + h * t) - f(x)) / h for t in jnp.eye(len(x))], axis=1)


answers.equivalent(
    "x.size <= result.size -> x.size < result.size",
    because="a square Jacobian needs as many runs in either mode",
)
answers.equivalent(
    "jnp.eye(result.size, dtype=result.dtype) -> jnp.eye(result.size)",
    "jnp.eye(x.size, dtype=x.dtype) -> jnp.eye(x.size)",
    because="the task names no dtype, so vectors have the default one, and `jnp.eye` has it, too",
)
answers.equivalent(
    "pullback(c)[0] -> pullback(c)[-1]",
    because="a function of one argument has one cotangent",
)
