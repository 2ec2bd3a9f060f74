"""Answers to the exercise control_flow.cumulative."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.control_flow.cumulative import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("JAX's own running product")
def library(x, way):
    return jnp.cumprod(x)


@answers.wrong("is it Python that loops?")
def python(x, way):
    if way != "scan":
        return solution(x, way)
    products = [jnp.ones((), x.dtype)]
    for i in range(len(x)):
        products.append(products[-1] * x[i])
    return jnp.stack(products[1:]) if len(x) else x


@answers.wrong("leaves `x[i]` itself out")
def exclusive(x, way):
    return lax.scan(lambda product, value: (product * value, product), jnp.ones((), x.dtype), x)[1]


@answers.wrong("the product of all")
def cumulative_all(x, way):
    return lax.scan(lambda product, value: (product * value,) * 2, jnp.ones((), x.dtype), x)[0]


@answers.wrong("At 1, not at 0")
def from_zero(x, way):
    return lax.scan(lambda product, value: (product * value,) * 2, jnp.zeros((), x.dtype), x)[1]


@answers.wrong("The dtype must stay")
def cumulative_float(x, way):
    return lax.scan(lambda product, value: (product * value,) * 2, jnp.float32(1), x)[1]


@answers.wrong("running sums, not products")
def sums(x, way):
    return lax.scan(lambda total, value: (total + value,) * 2, jnp.zeros((), x.dtype), x)[1]


@answers.wrong("a scan that slices or stacks")
def always_scan(x, way):
    return solution(x, "scan")


@answers.wrong("makes a tree")
def no_tree(x, way):
    return solution(x, "scan" if way == "associative_scan" else way)


@answers.wrong("use `lax.scan`")
def tree_everywhere(x, way):
    return lax.associative_scan(jnp.multiply, x)


@answers.wrong("run from the end")
def backwards(x, way):
    return lax.associative_scan(jnp.multiply, x, reverse=True)


@answers.wrong("the product of all")
def last_only(x, way):
    return lax.fori_loop(0, len(x), lambda i, product: product * x[i], jnp.ones((), x.dtype))


# Right ones of unusual style, and wrong ones that look right


@answers.right
def in_a_match(x, way):
    match way:
        case "scan":
            first = x[0]
            rest = lax.scan(lambda p, v: (p * v, p * v), first, x[1:])[1]
            return jnp.concatenate([x[:1], rest])
        case "fori_loop":
            return lax.fori_loop(1, x.shape[0], lambda i, y: y.at[i].set(y[i - 1] * x[i]), x)
        case _:
            return lax.associative_scan(lambda a, b: b * a, x)


@answers.right
def from_a_table(x, way):
    return {
        "scan": lambda: lax.scan(lambda p, v: (v * p,) * 2, jnp.ones_like(x[0]), x)[1],
        "fori_loop": lambda: lax.fori_loop(1, len(x), lambda i, y: y.at[i].multiply(y[i - 1]), x),
        "associative_scan": lambda: jax.jit(lax.associative_scan, static_argnums=0)(lax.mul, x),
    }[way]()


@answers.wrong()
def always_the_tree(x, way):
    return lax.associative_scan(jnp.multiply, x)


@answers.wrong('With way = "associative_scan": The result is wrong')
def a_tree_in_half_precision(x, way):
    if way != "associative_scan":
        return solution(x, way)
    return lax.associative_scan(jnp.multiply, x.astype(jnp.float16)).astype(x.dtype)
