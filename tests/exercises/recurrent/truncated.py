"""Answers to the exercise recurrent.truncated."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.recurrent.truncated import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def cut(tree):
    return jax.tree.map(lax.stop_gradient, tree)


@answers.wrong("this is plain `scan`")
def plain(step, carry, xs, every):
    return lax.scan(step, carry, xs)


@answers.wrong("The very first carry loses its gradient")
def cuts_the_first(step, carry, xs, every):
    chunks = xs.reshape(-1, every)
    carry, ys = lax.scan(lambda c, part: lax.scan(step, cut(c), part), carry, chunks)
    return carry, ys.reshape(-1)


@answers.wrong("cut at every step, and at the first carry as well")
def cuts_each_step(step, carry, xs, every):
    return lax.scan(lambda c, x: step(cut(c), x), carry, xs)


@answers.wrong("still cut into chunks")
def forgets_to_join(step, carry, xs, every):
    return lax.scan(lambda c, part: lax.scan(step, cut(c), part), carry, xs.reshape(-1, every))


@answers.wrong("is the number of steps, not of chunks")
def counts_chunks(step, carry, xs, every):
    chunks = xs.reshape(every, -1)
    carry, ys = lax.scan(step, carry, chunks[0])
    all_ys = [ys]
    for part in chunks[1:]:
        carry, ys = lax.scan(step, cut(carry), part)
        all_ys.append(ys)
    return carry, jnp.concatenate(all_ys)


@answers.wrong("The program grows with the length")
def unrolls(step, carry, xs, every):
    ys = []
    for start in range(0, len(xs), every):
        carry, y = lax.scan(step, cut(carry) if start else carry, xs[start : start + every])
        ys.append(y)
    return carry, jnp.concatenate(ys)


@answers.wrong("Return the pair")
def only_outputs(step, carry, xs, every):
    return lax.scan(step, carry, xs)[1]


@answers.wrong()
def cuts_the_last(step, carry, xs, every):
    def chunk(carry, part):
        carry, ys = lax.scan(step, carry, part)
        return cut(carry), ys

    carry, ys = lax.scan(chunk, carry, xs.reshape(-1, every))
    return carry, ys.reshape(-1)


@answers.wrong()
def starts_anew(step, carry, xs, every):
    last, ys = jax.vmap(lambda part: lax.scan(step, carry, part))(xs.reshape(-1, every))
    return jax.tree.map(lambda leaf: leaf[-1], last), ys.reshape(-1)


@answers.wrong("The program grows with `every`")
def unrolls_a_chunk(step, carry, xs, every):
    def chunk(carry, part):
        number, part = part
        carry = jax.tree.map(lambda c: jnp.where(number > 0, jax.lax.stop_gradient(c), c), carry)
        ys = []
        for x in part:
            carry, y = step(carry, x)
            ys.append(y)
        return carry, jnp.stack(ys)

    chunks = xs.reshape(-1, every, *xs.shape[1:])
    carry, ys = jax.lax.scan(chunk, carry, (jnp.arange(len(chunks)), chunks))
    return carry, ys.reshape(-1, *ys.shape[2:])


def by_chunks(step, carry, chunks):
    """The solution's scan over chunks; their outputs are not joined."""

    def chunk(carry, each):
        number, part = each
        carry = jax.tree.map(lambda c: jnp.where(number > 0, lax.stop_gradient(c), c), carry)
        return lax.scan(step, carry, part)

    return lax.scan(chunk, carry, (jnp.arange(len(chunks)), chunks))


@answers.wrong("may have more than one axis")
def flattens_xs(step, carry, xs, every):
    carry, ys = by_chunks(step, carry, xs.reshape(-1, every))
    return carry, jax.tree.map(lambda y: y.reshape(-1, *y.shape[2:]), ys)


@answers.wrong("a step whose output is the pair")
def joins_one_array(step, carry, xs, every):
    carry, ys = by_chunks(step, carry, xs.reshape(-1, every, *xs.shape[1:]))
    return carry, ys.reshape(-1)


@answers.wrong("a step whose output is the pair")
def flattens_ys(step, carry, xs, every):
    carry, ys = by_chunks(step, carry, xs.reshape(-1, every, *xs.shape[1:]))
    return carry, jax.tree.map(jnp.ravel, ys)


@answers.wrong()
def mixes(step, carry, xs, every):
    """A state of integers becomes one of floats."""

    def chunk(carry, each):
        first, part = each
        carry = jax.tree.map(lambda c: first * c + (1 - first) * lax.stop_gradient(c), carry)
        return lax.scan(step, carry, part)

    chunks = xs.reshape(-1, every, *xs.shape[1:])
    first = (jnp.arange(len(chunks)) == 0).astype(jnp.float32)
    carry, ys = lax.scan(chunk, carry, (first, chunks))
    return carry, jax.tree.map(lambda y: y.reshape(-1, *y.shape[2:]), ys)


@answers.wrong("may have more than one axis")
def flattens_both(step, carry, xs, every):
    carry, ys = by_chunks(step, carry, xs.reshape(-1, every))
    return carry, ys.reshape(-1)


# Right ones of unusual style


@answers.wrong()
def cuts_plain_trees(step, carry, xs, every):
    def stop(tree):
        if isinstance(tree, dict):
            return {name: stop(part) for name, part in tree.items()}
        if isinstance(tree, (list, tuple)):
            return type(tree)([stop(part) for part in tree])
        return lax.stop_gradient(tree)

    def one(carry, each):
        i, x = each
        kept = jax.tree.map(lambda c, old: jnp.where((i > 0) & (i % every == 0), c, old), stop(carry), carry)
        return step(kept, x)

    return lax.scan(one, carry, (jnp.arange(len(xs)), xs))


@answers.right
def first_apart(step, carry, xs, every):
    chunks = xs.reshape(-1, every, *xs.shape[1:])
    carry, first = lax.scan(step, carry, chunks[0])
    carry, rest = lax.scan(lambda c, part: lax.scan(step, cut(c), part), carry, chunks[1:])
    join = lambda one, many: jnp.concatenate([one[None], many]).reshape(-1, *one.shape[1:])  # noqa: E731
    return carry, jax.tree.map(join, first, rest)


@answers.right
def by_the_step(step, carry, xs, every):
    def one(carry, each):
        i, x = each
        border = (i > 0) & (i % every == 0)
        carry = jax.tree.map(lambda c: jnp.where(border, lax.stop_gradient(c), c), carry)
        return step(carry, x)

    return lax.scan(one, carry, (jnp.arange(len(xs)), xs))


@answers.right
def by_cond(step, carry, xs, every):
    def one(carry, each):
        i, x = each
        border = (i > 0) & (i % every == 0)
        return step(lax.cond(border, cut, lambda c: c, carry), x)

    return lax.scan(one, carry, (jnp.arange(len(xs)), xs))
