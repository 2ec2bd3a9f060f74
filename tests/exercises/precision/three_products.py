"""Answers to the exercise precision.three_products."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.precision.three_products import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def halves(x):
    high = x.astype(jnp.bfloat16)
    return high, (x - high.astype(jnp.float32)).astype(jnp.bfloat16)


def product(a, b):
    return jax.lax.dot(a, b, preferred_element_type=jnp.float32)


@answers.wrong("two bfloat16 matrices")
def in_float32(a, b):
    return a @ b


@answers.wrong("A product is rounded to bfloat16")
def rounded_results(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    return (a @ b + a @ b_low + a_low @ b).astype(jnp.float32)


@answers.wrong("The low parts add nothing")
def lost_before_subtracting(a, b):
    a, b = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    a_low, b_low = a - a.astype(jnp.bfloat16), b - b.astype(jnp.bfloat16)
    return product(a, b) + product(a, b_low) + product(a_low, b)


@answers.wrong("The correction has the wrong sign")
def wrong_sign(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    return product(a, b) - product(a, b_low) - product(a_low, b)


@answers.wrong("it takes the work of 4 products")
def all_four(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    return product(a, b) + product(a, b_low) + product(a_low, b) + product(a_low, b_low)


@answers.wrong("Two of the terms are the same one")
def the_same_twice(a, b):
    (a, _), (b, b_low) = halves(a), halves(b)
    return product(a, b) + product(a, b_low) + product(a, b_low)


@answers.wrong("a term that is not the smallest")
def low_times_low(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    return product(a, b) + product(a, b_low) + product(a_low, b_low)


@answers.wrong("The dtype is wrong")
def returns_bfloat16(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    return (product(a, b) + product(a, b_low) + product(a_low, b)).astype(jnp.bfloat16)


# Right ones of unusual style, and wrong ones that look right


@answers.right
@jax.jit
def by_einsum(a, b):
    def times(a, b):
        return jnp.einsum("ij,jk->ik", a, b, preferred_element_type=jnp.float32)

    def split(x):
        high = jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)
        return high.astype(jnp.bfloat16), (x - high).astype(jnp.bfloat16)

    (a, a_low), (b, b_low) = split(a), split(b)
    return times(a, b) + (times(a, b_low) + times(a_low, b))


@answers.right
def by_matmul(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    terms = [(a, b), (a, b_low), (a_low, b)]
    return sum(jnp.matmul(*term, preferred_element_type=jnp.float32) for term in terms)


@answers.right
def by_vmap(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    return jax.vmap(product)(jnp.stack([a, a, a_low]), jnp.stack([b, b_low, b])).sum(0)


@answers.right
def by_one_longer_product(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    return product(jnp.concatenate([a, a, a_low], axis=1), jnp.concatenate([b, b_low, b]))


@answers.wrong("it takes the work of 4 products")
def four_by_vmap(a, b):
    (a, a_low), (b, b_low) = halves(a), halves(b)
    return jax.vmap(product)(jnp.stack([a, a, a_low, a_low]), jnp.stack([b, b_low, b, b_low])).sum(0)


@answers.right
def smallest_first(a, b):
    parts_a, parts_b = halves(a), halves(b)
    result = jnp.zeros((a.shape[0], b.shape[1]))
    for i, j in [(1, 0), (0, 1), (0, 0)]:
        result += product(parts_a[i], parts_b[j])
    return result


@answers.wrong()
def one_side_only(a, b):
    (a, a_low), b = halves(a), b.astype(jnp.bfloat16)
    return product(a, b) + product(a_low, b)


@answers.wrong()
def by_the_precision(a, b):
    return jax.lax.dot(a, b, precision="high")


def parts(x):
    high = x.astype(jnp.bfloat16)
    return high, (x - high.astype(jnp.float32)).astype(jnp.bfloat16)


def wide_product(a, b):
    return jax.lax.dot(a, b, preferred_element_type=jnp.float32)


@answers.wrong("it takes the work of 4 products")
def four_in_a_scan(a, b):
    (a, a_low), (b, b_low) = parts(a), parts(b)
    pairs = jnp.stack([a, a, a_low, a_low]), jnp.stack([b, b_low, b, b_low])
    start = jnp.zeros((a.shape[0], b.shape[1]))
    return jax.lax.scan(lambda carry, pair: (carry + wide_product(*pair), None), start, pairs)[0]


@answers.right
def three_in_a_scan(a, b):
    (a, a_low), (b, b_low) = parts(a), parts(b)
    pairs = jnp.stack([a_low, a, a]), jnp.stack([b, b_low, b])
    start = jnp.zeros((a.shape[0], b.shape[1]))
    return jax.lax.scan(lambda carry, pair: (carry + wide_product(*pair), None), start, pairs)[0]


@answers.wrong("a loop of unknown length")
def four_in_a_while(a, b):
    (a, a_low), (b, b_low) = parts(a), parts(b)
    left, right = jnp.stack([a, a, a_low, a_low]), jnp.stack([b, b_low, b, b_low])

    def body(carry):
        i, total = carry
        return i + 1, total + wide_product(left[i], right[i])

    return jax.lax.while_loop(lambda c: c[0] < 4, body, (0, jnp.zeros((a.shape[0], b.shape[1]))))[1]


@answers.wrong("multiplies as much as a product")
def corrected_elementwise(a, b):
    high, other = parts(a)[0], parts(b)[0]
    rest = (a[:, :, None] * b - high.astype(jnp.float32)[:, :, None] * other.astype(jnp.float32)).sum(1)
    return wide_product(high, other) + rest


@answers.wrong("multiplies as much as a product")
def by_convolution(a, b):
    kernel = b[None]
    whole = jax.lax.conv_general_dilated(
        a[None], kernel, (1,), "VALID", dimension_numbers=("NWC", "WIO", "NWC")
    )
    return whole[0] + 0 * wide_product(parts(a)[0], parts(b)[0])


@answers.wrong()
def the_shape_built_in(a, b):
    return exercise.answer(a, b).reshape(8, 4)


@answers.wrong("bfloat16 has the range of float32")
def through_float16(a, b):
    def split(x):
        return [part.astype(jnp.float16).astype(jnp.bfloat16) for part in halves(x)]

    (a, a_low), (b, b_low) = split(a), split(b)
    return product(a, b) + product(a, b_low) + product(a_low, b)


answers.equivalent(
    "high.astype(jnp.float32) -> high",
    because="a bfloat16 that meets a float32 is widened by itself",
)
