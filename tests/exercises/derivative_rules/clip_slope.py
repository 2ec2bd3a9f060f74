"""Answers to the exercise derivative_rules.clip_slope."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.derivative_rules.clip_slope import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("On the way forward")
def forward(x, bound):
    return x * jnp.minimum(1.0, bound / jnp.linalg.norm(x))


@answers.wrong("Each entry is clipped")
def entries(x, bound):
    same = jax.custom_vjp(lambda x, bound: x)
    same.defvjp(
        lambda x, bound: (x, bound), lambda bound, c: (jnp.clip(c, -bound, bound), jnp.zeros_like(bound))
    )
    return same(x, bound)


def clipping(factor, forward=lambda x: x):
    def clip_slope(x, bound):
        same = jax.custom_vjp(lambda x, bound: forward(x))
        same.defvjp(
            lambda x, bound: (forward(x), bound),
            lambda bound, c: ((c * factor(c, bound)).astype(c.dtype), jnp.zeros_like(bound)),
        )
        return same(x, bound)

    return clip_slope


rows = clipping(
    lambda c, bound: jnp.minimum(
        1.0, bound / jnp.maximum(jnp.sqrt(jnp.sum(c * c, axis=-1, keepdims=c.ndim > 1)), 1e-6)
    )
)


answers.wrong("Each row is clipped")(rows)


@answers.wrong("goes through unclipped")
def identity(x, bound):
    return x


@answers.wrong("Nothing goes back")
def stopped(x, bound):
    return lax.stop_gradient(x)


def norm(c):
    return jnp.sqrt(jnp.sum(c * c))


nan = clipping(lambda c, bound: jnp.where(norm(c) > bound, bound / norm(c), norm(c) / norm(c)))


answers.wrong("0 / 0 is NaN")(nan)


always = clipping(lambda c, bound: bound / jnp.maximum(norm(c), 1e-6))


answers.wrong("is made longer")(always)


to_one = clipping(lambda c, bound: jnp.minimum(1.0, 1 / jnp.maximum(norm(c), 1e-6)))


answers.wrong("The bound is missing")(to_one)


squares = clipping(lambda c, bound: jnp.minimum(1.0, bound / jnp.maximum(jnp.sum(c * c), 1e-6)))


answers.wrong("the root is missing")(squares)


@answers.wrong("Custom VJP bwd rule")
def one_cotangent(x, bound):
    same = jax.custom_vjp(lambda x, bound: x)
    same.defvjp(lambda x, bound: (x, bound), lambda bound, c: (c * jnp.minimum(1.0, bound / norm(c)),))
    return same(x, bound)


@answers.wrong("has to be linear in the tangent")
def forward_rule(x, bound):
    same = jax.custom_jvp(lambda x: x)
    same.defjvp(lambda p, t: (p[0], t[0] * jnp.minimum(1.0, bound / norm(t[0]))))
    return same(x)


@answers.wrong("is for what is never traced")
def not_traced(x, bound):
    same = jax.custom_vjp(lambda x, bound: x, nondiff_argnums=(1,))
    same.defvjp(
        lambda x, bound: (x, None),
        lambda bound, _, c: (c * jnp.minimum(1.0, bound / jnp.maximum(norm(c), 1e-9)),),
    )
    return same(x, bound)


@answers.wrong("an `if`, `while` or `and`")
def python_if(x, bound):
    same = jax.custom_vjp(lambda x, bound: x)

    def backward(bound, c):
        return (c * bound / norm(c) if norm(c) > bound else c), jnp.zeros_like(bound)

    same.defvjp(lambda x, bound: (x, bound), backward)
    return same(x, bound)


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.custom_vjp
def decorated_with_none(x, bound):
    return x


def _backward(bound, c):
    power = 2.0 ** jnp.floor(jnp.log2(jnp.maximum(jnp.max(jnp.abs(c.astype(jnp.float32))), 1.0)))
    squares = jnp.sum(jnp.square(c.astype(jnp.float32) / power))
    factor = bound * lax.rsqrt(jnp.maximum(squares, jnp.square(bound / power)))
    return (c / power * jnp.minimum(factor, power)).astype(c.dtype), None


decorated_with_none.defvjp(lambda x, bound: (x, bound), _backward)


@answers.right
def by_a_closure(x, bound):
    @jax.custom_vjp
    def same(x, bound):
        return x

    def backward(bound, c):
        largest = jnp.max(jnp.abs(c)) + jnp.finfo(c.dtype).tiny
        norm = jnp.linalg.norm(c.ravel() / largest)
        return lax.cond(
            norm > bound / largest, lambda c: (c / largest * (bound / norm)).astype(c.dtype), lambda c: c, c
        ), 0.0 * bound

    same.defvjp(lambda x, bound: (x, bound), backward)
    return same(x, jnp.asarray(bound, jnp.float32))


@answers.wrong("overflows to infinity")
@jax.custom_vjp
def squares_that_overflow(x, bound):
    return x


squares_that_overflow.defvjp(
    lambda x, bound: (x, (bound,)),
    lambda kept, c: (c * jnp.minimum(1, kept[0] / jnp.sqrt(jnp.vdot(c, c) + 1e-12)).astype(c.dtype), 0.0),
)


def _entries_clipped_first(kept, c):
    (bound,) = kept
    largest = jnp.maximum(jnp.max(jnp.abs(c)), bound)
    unit = c / largest
    return (unit * jnp.minimum(largest, bound / jnp.sqrt(jnp.vdot(unit, unit) + 1e-20))).astype(c.dtype), 0.0


@answers.right
@jax.custom_vjp
def a_number_for_the_bound(x, bound):
    return x


a_number_for_the_bound.defvjp(lambda x, bound: (x, (bound,)), _entries_clipped_first)


@answers.wrong()
def slope_of_the_bound(x, bound):
    same = jax.custom_vjp(lambda x, bound: x)
    same.defvjp(
        lambda x, bound: (x, bound),
        lambda bound, c: (
            (c * jnp.minimum(1.0, bound / jnp.maximum(jnp.linalg.norm(c.ravel()), 1e-9))).astype(c.dtype),
            jnp.ones_like(bound),
        ),
    )
    return same(x, bound)


def by_parts(
    largest=lambda c: jnp.max(jnp.abs(c)), least=0.0, size=jnp.multiply, cast=True, forward=lambda x: x
):
    """With an outer `where`, and a part that is changed."""

    @jax.custom_vjp
    def clip_slope(x, bound):
        return x

    def backward(bound, c):
        most = largest(c)
        unit = c / jnp.where(most > least, most, 1)
        norm = jnp.sqrt(jnp.sum(unit * unit))
        clipped = jnp.where(size(most, norm) > bound, unit * (bound / jnp.maximum(norm, 1)), c)
        return clipped.astype(c.dtype) if cast else clipped, jnp.zeros_like(bound)

    clip_slope.defvjp(lambda x, bound: (forward(x), bound), backward)
    return clip_slope


answers.right(by_parts())
answers.wrong("the largest *absolute* value counts")(by_parts(largest=jnp.max))
answers.wrong("Long ones are clipped, but not this one")(by_parts(least=1.0))
answers.wrong("Long ones are clipped, but not this one")(by_parts(size=jnp.divide))
answers.wrong("what the forward *pass* returns")(by_parts(forward=jnp.zeros_like))
answers.wrong("what the forward *pass* returns")(by_parts(forward=lambda x: x + 1))
answers.wrong("the bound a float32 array")(by_parts(cast=False))
answers.wrong("On the way forward")(lambda x, bound: by_parts()(x.astype(jnp.float16).astype(x.dtype), bound))

answers.equivalent(
    "jnp.where(largest > 0, largest, 1) -> jnp.where(largest > 0, largest, 2)",
    because="it divides zeros only",
)
