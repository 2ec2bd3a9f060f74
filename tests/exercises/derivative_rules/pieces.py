"""Answers to the exercise derivative_rules.pieces."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.derivative_rules.pieces import all_layers, exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("is `jax.checkpoint` round what is run")
def plain(layer, weights, x):
    return all_layers(layer, weights, x)


@answers.wrong("is `jax.checkpoint` round what is run")
def scans(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    return lax.scan(piece, x, weights)[0]


@answers.wrong("not round each layer")
def each_layer(layer, weights, x):
    step = jax.checkpoint(lambda x, w: (layer(w, x), None))
    return lax.scan(lambda x, some: lax.scan(step, x, some), x, weights)[0]


@answers.wrong("too much comes back at once")
def whole(layer, weights, x):
    return jax.checkpoint(lambda weights, x: scans(layer, weights, x))(weights, x)


@answers.wrong("checkpoints inside of checkpoints")
def nested(layer, weights, x):
    step = jax.checkpoint(lambda x, w: (layer(w, x), None))
    piece = jax.checkpoint(lambda x, some: lax.scan(step, x, some))
    return lax.scan(piece, x, weights)[0]


@answers.wrong("leave `policy` out")
def everything(layer, weights, x):
    keep = jax.checkpoint_policies.everything_saveable
    piece = jax.checkpoint(lambda x, some: lax.scan(lambda x, w: (layer(w, x), None), x, some), policy=keep)
    return lax.scan(piece, x, weights)[0]


@answers.wrong("more than the inputs of the pieces")
def another_cut(layer, weights, x):
    return solution(layer, weights.reshape(weights.shape[1], weights.shape[0], *weights.shape[2:]), x)


@answers.wrong("in the wrong order")
def swapped(layer, weights, x):
    return solution(layer, jnp.swapaxes(weights, 0, 1), x)


@answers.wrong("from last to first")
def pieces_reversed(layer, weights, x):
    return solution(layer, weights[::-1, ::-1], x)


@answers.wrong("first layer of each piece")
def first_layers(layer, weights, x):
    return solution(layer, weights[:, :1], x)


@answers.wrong("returns a pair, the last carry")
def pair(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    return lax.scan(jax.checkpoint(piece), x, weights)


@answers.wrong("must be a pair")
def bare_body(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: layer(w, x), x, some)[0]

    return lax.scan(jax.checkpoint(piece), x, weights)[0]


@answers.wrong("Inside a piece")
def inner_pair(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some), None

    return lax.scan(jax.checkpoint(piece), x, weights)[0]


# Right ones of unusual style, and wrong ones that look right


@answers.right
def python_outside(layer, weights, x):
    @jax.checkpoint
    def piece(some, x):
        return lax.fori_loop(0, len(some), lambda i, x: layer(some[i], x), x)

    for some in weights:
        x = piece(some, x)
    return x


@answers.right
def python_inside(layer, weights, x):
    def piece(x, some):
        for w in some:
            x = layer(w, x)
        return x, None

    return lax.scan(jax.remat(piece, prevent_cse=False), x, weights)[0]


@answers.right
@functools.partial(jax.jit, static_argnums=0)
def nothing_saveable(layer, weights, x):
    policy = jax.checkpoint_policies.nothing_saveable

    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), ()), x, some)[0], ()

    x, _ = lax.scan(jax.checkpoint(piece, policy=policy), x, weights)
    return x


@answers.wrong("leave `policy` out")
def stores_products(layer, weights, x):
    policy = jax.checkpoint_policies.dots_saveable

    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    return lax.scan(jax.checkpoint(piece, policy=policy), x, weights)[0]


@answers.wrong()
def two_large_pieces(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    halves = weights.reshape(2, -1, *weights.shape[2:])
    return lax.scan(jax.checkpoint(piece), x, halves)[0]
