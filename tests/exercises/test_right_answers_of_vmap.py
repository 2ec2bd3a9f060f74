"""Right answers of unusual style to the exercises of vmap pass, and wrong ones that look right do not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from mlax_tutorial.exercises import vmap

from .right_answers import FAILED, PASSED, Answers

right, wrong = Answers(PASSED), Answers(FAILED)


# shapes

SHAPES = vmap.shapes.answer
right(vmap.shapes)({name: list(x) if isinstance(x, tuple) else "Error" for name, x in SHAPES.items()})
wrong(vmap.shapes)({name: str(x) for name, x in SHAPES.items()})
wrong(vmap.shapes)({name: "error" for name in SHAPES})


# distances


@right(vmap.distances)
def mapped_products(x, y):
    products = jax.vmap(jax.vmap(jnp.dot, (None, 0)), (0, None))(x, y)
    squares = jax.vmap(lambda row: jnp.sum(row**2))
    return jnp.clip(squares(x)[:, None] - 2 * products + squares(y)[None], 0)


@right(vmap.distances)
@jax.jit
def one_product_of_extended_rows(x, y):
    ones, twos = jnp.ones((len(x), 1)), jnp.ones((len(y), 1))
    left = jnp.concatenate([-2 * x, jnp.sum(x * x, 1, keepdims=True), ones], axis=1)
    right = jnp.concatenate([y, twos, jnp.sum(y * y, 1, keepdims=True)], axis=1)
    return jax.nn.relu(left @ right.T)


@right(vmap.distances)
def by_einsum_and_norm(x, y):
    norms = jnp.linalg.norm(x, axis=1)[:, None] ** 2 + jnp.linalg.norm(y, axis=1) ** 2
    return jnp.maximum(norms - 2 * jnp.einsum("nd,md->nm", x, y), 0)


@wrong(vmap.distances)
def absolute_value(x, y):  # not below zero, but by the table of all differences
    return jnp.sum(jnp.abs(x[:, None] - y) ** 2, -1)


@wrong(vmap.distances)
def norms_of_differences(x, y):
    return jnp.linalg.norm(x[:, None, :] - y[None, :, :], axis=-1) ** 2


@wrong(vmap.distances)
def gram_of_both(x, y):  # one product, of more than is needed, then the diagonal: right values, below zero
    both = jnp.concatenate([x, y])
    gram = both @ both.T
    diagonal = jnp.diagonal(gram)
    return (diagonal[:, None] + diagonal - 2 * gram)[: len(x), len(x) :] - 1e-3 * (len(x) > 20)


# powers


@right(vmap.powers)
def bits_in_a_scan(matrices, exponents):
    def power(matrix, exponent):
        def round(state, bit):
            result, square = state
            return (jnp.where((exponent >> bit) & 1, result @ square, result), square @ square), None

        start = jnp.eye(len(matrix)), matrix
        return lax.scan(round, start, jnp.arange(31))[0][0]

    return jax.vmap(power)(matrices, exponents)


@right(vmap.powers)
@jax.jit
def one_loop_for_the_batch(matrices, exponents):
    def body(state):
        result, square, rest = state
        odd = (rest % 2 == 1)[:, None, None]
        return jnp.where(odd, result @ square, result), square @ square, rest // 2

    start = jnp.broadcast_to(jnp.eye(matrices.shape[-1]), matrices.shape), matrices, exponents
    return lax.while_loop(lambda state: jnp.any(state[2] > 0), body, start)[0]


@right(vmap.powers)
def with_cond(matrices, exponents):
    @jax.vmap
    def power(matrix, exponent):
        def body(state):
            result, square, rest = state
            result = lax.cond(rest % 2 == 1, lambda: result @ square, lambda: result)
            return result, square @ square, rest >> 1

        return lax.while_loop(lambda s: s[2] != 0, body, (jnp.eye(len(matrix)), matrix, exponent))[0]

    return power(matrices, exponents)


@wrong(vmap.powers)
def too_few_bits(matrices, exponents):
    return vmap.powers.answer(matrices, exponents % 2**20)


@wrong(vmap.powers)
def through_numpy(matrices, exponents):
    powers = [np.linalg.matrix_power(m, int(e)) for m, e in zip(np.asarray(matrices), exponents, strict=True)]
    return jnp.asarray(np.stack(powers))


# clipped


@right(vmap.clipped)
def by_optax(loss, params, x, labels, bound):
    gradients = jax.vmap(jax.grad(loss), (None, 0, 0))(params, x, labels)
    norms = jax.vmap(optax.tree.norm)(gradients)
    scale = jnp.where(norms > bound, bound / jnp.where(norms > 0, norms, 1.0), 1.0)
    return jax.tree.map(lambda g: jnp.einsum("b,b...->...", scale, g) / len(x), gradients)


@right(vmap.clipped)
def without_care_for_zero(loss, params, x, labels, bound):  # 1 is less than infinity
    def one(x, label):
        gradient = jax.grad(loss)(params, x, label)
        norm = jnp.sqrt(sum(jnp.vdot(leaf, leaf) for leaf in jax.tree.leaves(gradient)))
        return jax.tree.map(lambda leaf: jnp.minimum(1.0, bound / norm) * leaf, gradient)

    return jax.tree.map(functools.partial(jnp.mean, axis=0), jax.vmap(one)(x, labels))


@right(vmap.clipped)
def scanned(loss, params, x, labels, bound):
    def one(example):
        return vmap.clipped.answer(loss, params, example[0][None], example[1][None], bound)

    return jax.tree.map(lambda leaf: leaf.mean(0), lax.map(one, (x, labels)))


@right(vmap.clipped)
def divided_by_the_larger(loss, params, x, labels, bound):
    def one(x, label):
        gradient = jax.grad(loss)(params, x, label)
        divisor = jnp.maximum(1.0, optax.tree.norm(gradient) / bound)
        return jax.tree.map(lambda leaf: leaf / divisor, gradient)

    return jax.tree.map(lambda leaf: jnp.average(leaf, axis=0), jax.vmap(one)(x, labels))


@wrong(vmap.clipped)
def for_this_tree_only(loss, params, x, labels, bound):
    if not isinstance(params, dict):
        return params
    return vmap.clipped.answer(loss, params, x, labels, bound)


@wrong(vmap.clipped)
def clipped_losses(loss, params, x, labels, bound):
    def total(params):
        losses = jax.vmap(loss, (None, 0, 0))(params, x, labels)
        return jnp.mean(jnp.minimum(losses, bound))

    return jax.grad(total)(params)


# contrast


@right(vmap.contrast)
def by_logsumexp(query, key):
    scores = jax.vmap(jnp.dot, (0, None))(lax.all_gather(key, "batch"), query)
    return jax.nn.logsumexp(scores) - query @ key


@right(vmap.contrast)
@jax.jit
def by_optax_loss(query, key):
    scores = lax.all_gather(key, "batch") @ query
    return optax.softmax_cross_entropy_with_integer_labels(scores, lax.axis_index("batch"))


@wrong(vmap.contrast)
def without_the_own_key(query, key):
    scores = lax.all_gather(key, "batch") @ query
    others = jnp.where(jnp.arange(len(scores)) == lax.axis_index("batch"), -jnp.inf, scores)
    return jax.nn.logsumexp(others) - query @ key


@wrong(vmap.contrast)
def no_gradient_to_the_keys(query, key):
    return vmap.contrast.answer(query, lax.stop_gradient(key))


# sweep


@right(vmap.sweep)
def the_other_way_round(train, keys, rates):
    return jax.vmap(jax.vmap(train, (None, 0)), (0, None), out_axes=1)(keys, rates)


@right(vmap.sweep)
@functools.partial(jax.jit, static_argnums=0)
def jitted(train, keys, rates):
    return jax.vmap(lambda rate: jax.vmap(lambda key: train(key, rate))(keys))(rates)


@right(vmap.sweep)
def flat_and_reshaped(train, keys, rates):
    n, m = len(rates), len(keys)
    flat = jax.vmap(train)(jnp.tile(keys, n), jnp.repeat(rates, m))
    return jax.tree.map(lambda leaf: leaf.reshape(n, m, *leaf.shape[1:]), flat)


@wrong(vmap.sweep)
def new_keys_for_each_rate(train, keys, rates):
    def run(i, rate):
        return jax.vmap(lambda key: train(jax.random.fold_in(key, i), rate))(keys)

    return jax.vmap(run)(jnp.arange(len(rates)), rates)


test_right_answers_pass, test_wrong_answers_fail = right.test(), wrong.test()
