"""Answers to the exercise autodiff.trace."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.autodiff.trace import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("the Hessian itself")
def by_hessian(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)
    hessian = jax.hessian(f)(x)
    return jnp.mean(jax.vmap(lambda v: v @ hessian @ v)(signs))


def samples_along(vectors, f, x):
    return jax.vmap(lambda v: v @ jax.jvp(jax.grad(f), (x,), (v,))[1])(vectors)


@answers.wrong("are the entries of yours -1 and 1")
def normal(key, f, x, samples):
    vectors = jax.random.normal(key, (samples, x.size), x.dtype)
    return jnp.mean(samples_along(vectors, f, x))


@answers.wrong("a draw of its own")
def same_draw(key, f, x, samples):
    v = jax.random.rademacher(key, x.shape, x.dtype)
    return jnp.mean(jnp.stack([v @ jax.jvp(jax.grad(f), (x,), (v,))[1]] * samples))


@answers.wrong("are added up")
def trace_sum(key, f, x, samples):
    return samples * solution(key, f, x, samples)


@answers.wrong("over the entries")
def mean_of_entries(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)
    return jnp.mean(jax.vmap(lambda v: v * jax.jvp(jax.grad(f), (x,), (v,))[1])(signs))


@answers.wrong("first derivatives")
def first_derivatives(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)
    return jnp.mean(jax.vmap(lambda v: jnp.sum(v * v * jax.grad(f)(x)))(signs))


def hutchinson_samples(key, f, x, samples):
    return samples_along(jax.random.rademacher(key, (samples, x.size), x.dtype), f, x)


@answers.wrong("The mean of the samples is asked for")
def median(key, f, x, samples):
    return jnp.median(hutchinson_samples(key, f, x, samples))


@answers.wrong("diagonal and negative")
def absolute(key, f, x, samples):
    return jnp.mean(jnp.abs(hutchinson_samples(key, f, x, samples)))


@answers.wrong("a draw of its own")
def twins(key, f, x, samples):
    half = jax.random.rademacher(key, ((samples + 1) // 2, x.size), x.dtype)
    signs = jnp.concatenate([half, -half])[:samples]
    return jnp.mean(samples_along(signs, f, x))


@answers.wrong("does not depend on the key")
def fixed_key(key, f, x, samples):
    return solution(jax.random.key(1), f, x, samples)


@answers.wrong("are the entries of yours -1 and 1")
def without_v(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)
    return jnp.mean(jax.vmap(lambda v: jnp.sum(jax.jvp(jax.grad(f), (x,), (v,))[1]))(signs))


@answers.wrong("are the entries of yours -1 and 1")
def of_zeros_and_ones(key, f, x, samples):
    bits = jax.random.bernoulli(key, 0.5, (samples, x.size)).astype(x.dtype)
    return jnp.mean(samples_along(bits, f, x))


@answers.wrong("expected tangent dtype float32")
def integers(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size))
    return jnp.mean(samples_along(signs, f, x))


@answers.wrong("a draw of its own")
def reuses(key, f, x, samples):
    total = 0.0
    for _ in range(samples):
        v = jax.random.rademacher(key, x.shape, x.dtype)
        total = total + v @ jax.jvp(jax.grad(f), (x,), (v,))[1]
    return total / samples


# Right ones of unusual style, and wrong ones that look right


@answers.right
def one_after_the_other(key, f, x, samples):
    def body(total, key):
        v = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 1.0, -1.0).astype(x.dtype)
        _, times = jax.linearize(jax.grad(f), x)
        return total + jnp.vdot(v, times(v)), None

    return lax.scan(body, 0.0, jax.random.split(key, samples))[0] / samples


@answers.right
def reverse_over_reverse(key, f, x, samples):
    signs = 2.0 * jax.random.randint(key, (samples, len(x)), 0, 2) - 1.0

    def one(v):
        return jnp.dot(v, jax.grad(lambda x: jnp.vdot(jax.grad(f)(x), v))(x))

    return jax.vmap(one)(signs).mean()


@answers.right
def second_derivative_along_a_line(key, f, x, samples):
    def one(key):
        v = jax.random.rademacher(key, x.shape, x.dtype)
        return jax.grad(jax.grad(lambda s: f(x + s * v)))(0.0)

    return jnp.mean(lax.map(one, jax.random.split(key, samples)))


@answers.wrong()
def the_diagonal(key, f, x, samples):
    v = jax.random.rademacher(key, x.shape, x.dtype)
    return jnp.trace(jax.hessian(f)(x)) * (v[0] ** 2)


@answers.wrong()
def one_sign_for_all(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, 1), x.dtype) * jnp.ones_like(x)
    return jnp.mean(jax.vmap(lambda v: v @ jax.jvp(jax.grad(f), (x,), (v,))[1])(signs))


@answers.wrong("go together")
def half_repeated(key, f, x, samples):
    half = jax.random.rademacher(key, (samples, (x.size + 1) // 2), x.dtype)
    signs = jnp.concatenate([half, half], axis=1)[:, : x.size]
    return jnp.mean(samples_along(signs, f, x))


@answers.wrong()
def neighbors_alike(key, f, x, samples):
    half = jax.random.rademacher(key, (samples, (x.size + 1) // 2), x.dtype)
    return jnp.mean(samples_along(jnp.repeat(half, 2, axis=1)[:, : x.size], f, x))


@answers.wrong("go together")
def half_turned_round(key, f, x, samples):
    half = jax.random.rademacher(key, (samples, (x.size + 1) // 2), x.dtype)
    signs = jnp.concatenate([half, -half], axis=1)[:, : x.size]
    return jnp.mean(samples_along(signs, f, x))


answers.wrong("One number is asked for")(hutchinson_samples)


@answers.wrong("where `x` is bfloat16")
def always_float32(key, f, x, samples):
    return jnp.mean(samples_along(jax.random.rademacher(key, (samples, x.size), jnp.float32), f, x))


@answers.right
def a_loop_over_samples(key, f, x, samples):
    total = 0.0
    for each in jax.random.split(key, samples):
        v = jax.random.rademacher(each, x.shape, x.dtype)
        total += v @ jax.jvp(jax.grad(f), (x,), (v,))[1]
    return total / samples
