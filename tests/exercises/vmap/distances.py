"""Answers to the exercise vmap.distances."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.vmap.distances import all_differences, exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("coordinate by coordinate")(all_differences)


@answers.wrong("coordinate by coordinate")
def by_maps(x, y):
    def one(x, y):
        return jnp.sum((x - y) ** 2)

    return jax.vmap(jax.vmap(one, (None, 0)), (0, None))(x, y)


@answers.wrong("Squares need no product of matrices")
def norms_by_products(x, y):
    squares = jnp.einsum("nd,nd->n", x, x)[:, None] + jnp.einsum("md,md->m", y, y)
    return jnp.maximum(squares - 2 * x @ y.T, 0)


@answers.wrong("Rows need not be taken one by one")
def row_by_row(x, y):
    rows = [jnp.sum(a * a) + jnp.sum(y * y, axis=1) - 2 * y @ a for a in x]
    return jnp.maximum(jnp.stack(rows), 0)


@answers.wrong("grows with the number of coordinates")
def by_coordinates(x, y):
    total = 0 * (x @ y.T)
    for k in range(x.shape[1]):
        total += (x[:, k][:, None] - y[:, k]) ** 2
    return total


@answers.wrong("points of 60 coordinates")
def capped(x, y):
    return jnp.clip(solution(x, y), 0, 1e4)


@answers.wrong("below zero")
def unclipped(x, y):
    return jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1) - 2 * x @ y.T


@answers.wrong("Keep it in a variable")
def twice(x, y):
    return jnp.where(unclipped(x, y) < 0, 0, unclipped(x, y))


@answers.wrong("There is a loop in the jaxpr")
def scanned(x, y):
    return lax.map(lambda a: jnp.maximum(jnp.sum(a * a) + jnp.sum(y * y, axis=1) - 2 * y @ a, 0), x)


@answers.wrong("their squares are asked for")
def rooted(x, y):
    return jnp.sqrt(solution(x, y))


@answers.wrong("The product counts twice")
def once(x, y):
    return jnp.maximum(jnp.sum(x * x, axis=1)[:, None] + jnp.sum(y * y, axis=1) - x @ y.T, 0)


answers.wrong("the transposed table")(lambda x, y: solution(y, x))
answers.wrong("this is $|x + y|^2$")(lambda x, y: solution(x, -y))
answers.wrong("squares of both lengths are missing")(lambda x, y: -2 * x @ y.T)


@answers.wrong("`return` missing")
def no_return(x, y):
    solution(x, y)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def mapped_products(x, y):
    products = jax.vmap(jax.vmap(jnp.dot, (None, 0)), (0, None))(x, y)
    squares = jax.vmap(lambda row: jnp.sum(row**2))
    return jnp.clip(squares(x)[:, None] - 2 * products + squares(y)[None], 0)


@answers.right
@jax.jit
def one_product_of_extended_rows(x, y):
    ones, twos = jnp.ones((len(x), 1)), jnp.ones((len(y), 1))
    left = jnp.concatenate([-2 * x, jnp.sum(x * x, 1, keepdims=True), ones], axis=1)
    right = jnp.concatenate([y, twos, jnp.sum(y * y, 1, keepdims=True)], axis=1)
    return jax.nn.relu(left @ right.T)


@answers.right
def by_einsum_and_norm(x, y):
    norms = jnp.linalg.norm(x, axis=1)[:, None] ** 2 + jnp.linalg.norm(y, axis=1) ** 2
    return jnp.maximum(norms - 2 * jnp.einsum("nd,md->nm", x, y), 0)


@answers.wrong()
def absolute_value(x, y):  # not below zero, but by the table of all differences
    return jnp.sum(jnp.abs(x[:, None] - y) ** 2, -1)


@answers.wrong()
def norms_of_differences(x, y):
    return jnp.linalg.norm(x[:, None, :] - y[None, :, :], axis=-1) ** 2


@answers.wrong()
def gram_of_both(x, y):  # one product, of more than is needed, then the diagonal: right values, below zero
    both = jnp.concatenate([x, y])
    gram = both @ both.T
    diagonal = jnp.diagonal(gram)
    return (diagonal[:, None] + diagonal - 2 * gram)[: len(x), len(x) :] - 1e-3 * (len(x) > 20)


# Not below zero, and yet not the distances


@answers.wrong("no more than the formula does")
def root_of_less_than_nothing(x, y):
    return jnp.sqrt(unclipped(x, y)) ** 2


@answers.wrong("no more than the formula does")
def nan_below_zero(x, y):
    squares = unclipped(x, y)
    return jnp.where(squares < 0, jnp.nan, squares)


@answers.wrong("no more than the formula does")
def one_number_far_away(x, y):
    return jnp.where(jnp.sum(x * x, axis=1)[:, None] > 1e5, 3.0, solution(x, y))


@answers.wrong("Small distances are distances")
def zero_if_small(x, y):
    squares = solution(x, y)
    return jnp.where(squares < 0.1, 0.0, squares)


@answers.right
def around_the_mean(x, y):
    return solution(x - x.mean(axis=0), y - x.mean(axis=0))


@answers.right
def absolute_values(x, y):
    return jnp.abs(unclipped(x, y))
