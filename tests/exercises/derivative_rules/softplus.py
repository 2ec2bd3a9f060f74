"""Answers to the exercise derivative_rules.softplus."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.derivative_rules.softplus import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("The small values are lost")
def naive(x):
    return jnp.log(1 + jnp.exp(x))


@answers.wrong("no rule of its own")
def without_rule(x):
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


@answers.wrong("JAX's own function")
def theirs(x):
    return jax.nn.softplus(x)


def with_rule(value, slope, again=None):
    """With `again`, the rule computes the value by it, and not by the function."""

    def softplus(x):
        function = jax.custom_jvp(value)
        function.defjvp(lambda p, t: ((again or function)(*p), slope(p[0], t[0])))
        return function(x)

    return softplus


log = with_rule(
    lambda x: jnp.maximum(x, 0) + jnp.log(1 + jnp.exp(-jnp.abs(x))), lambda x, t: jax.nn.sigmoid(x) * t
)


answers.wrong("The small values are lost")(log)


def stable(x):
    return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))


overflowing_slope = with_rule(stable, lambda x, t: jnp.exp(x) / (1 + jnp.exp(x)) * t)


answers.wrong("The first derivative is not finite")(overflowing_slope)


no_tangent = with_rule(stable, lambda x, t: jax.nn.sigmoid(x) + 0 * t)


answers.wrong("does not multiply by the tangent")(no_tangent)


answers.wrong("does not multiply by the tangent")(with_rule(stable, lambda x, t: jax.nn.sigmoid(x)))


of_tanh = with_rule(stable, lambda x, t: jnp.tanh(x) * t)


answers.wrong("The first derivative is wrong")(of_tanh)


step = with_rule(stable, lambda x, t: jnp.where(x > 0, 1.0, 0.0) * t)


answers.wrong("The first derivative is wrong")(step)


cut = with_rule(stable, lambda x, t: jnp.where(x < -20, 0.0, jnp.where(x > 20, 1.0, jax.nn.sigmoid(x))) * t)


answers.wrong("The first derivative is wrong")(cut)


@answers.wrong("forward-mode")
def backward_only(x):
    function = jax.custom_vjp(stable)
    function.defvjp(lambda x: (stable(x), x), lambda x, c: (jax.nn.sigmoid(x) * c,))
    return function(x)


float32 = with_rule(
    lambda x: stable(jnp.asarray(x, jnp.float32)),
    lambda x, t: jax.nn.sigmoid(jnp.float32(x)) * jnp.float32(t),
)


answers.wrong("bfloat16")(float32)


@answers.wrong("no rule of its own")
def flat(x):
    return jnp.where(x > 20, x, jnp.log1p(jnp.exp(x)))


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.custom_jvp
def decorated(x):
    return jnp.where(x > 0, x, 0) + jnp.log1p(jnp.exp(-abs(x)))


@decorated.defjvp
def _decorated_rule(primals, tangents):
    return decorated(*primals), tangents[0] * jax.nn.sigmoid(primals[0])


@jax.custom_jvp
def _by_defjvps(x):
    return jax.nn.relu(x) + jnp.log1p(jnp.exp(-jnp.abs(x)))


_by_defjvps.defjvps(lambda t, value, x: t * jnp.exp(-_by_defjvps(-x)))
answers.right(jax.jit(_by_defjvps))


@answers.wrong()
def relu_with_a_rule(x):
    function = jax.custom_jvp(lambda x: jnp.maximum(x, 0) + 0.0 * x)
    function.defjvp(lambda p, t: (function(*p), jax.nn.sigmoid(p[0]) * t[0]))
    return function(x)


@answers.wrong()
def rule_without_a_second_derivative(x):
    function = jax.custom_jvp(lambda x: jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))))
    function.defjvp(lambda p, t: (function(*p), lax.stop_gradient(jax.nn.sigmoid(p[0])) * t[0]))
    return function(x)


@jax.custom_jvp
def constant(x):
    return x


constant.defjvp(lambda primals, tangents: (constant(*primals), jnp.zeros_like(tangents[0])))
constant_slope = with_rule(stable, lambda x, t: constant(jax.nn.sigmoid(x) * t))
answers.wrong("in forward mode twice")(constant_slope)


@answers.wrong("The first derivative is wrong")
def clipped_slope(x):
    @jax.custom_jvp
    def softplus(x):
        return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))

    @softplus.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return softplus(x), t / (1 + jnp.exp(-jnp.clip(x, -60, 60)))

    return softplus(x)


def logistic(x, t):
    return jax.nn.sigmoid(x) * t


answers.wrong("the value is the one that the *rule* returns")(with_rule(stable, logistic, jnp.zeros_like))
answers.wrong("the value is the one that the *rule* returns")(with_rule(stable, logistic, naive))
answers.right(with_rule(stable, logistic, stable))


def zero_below(least):
    return with_rule(lambda x: jnp.where(x < least, 0, stable(x)).astype(x.dtype), logistic)


answers.wrong("The small values are lost")(zero_below(-40))
answers.wrong("The small values are lost")(zero_below(-70))
