"""Truncated backpropagation: the state goes on, the gradient does not."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under


def solution(step, carry, xs, every):
    chunks = xs.reshape(-1, every, *xs.shape[1:])

    def chunk(carry, each):
        number, part = each
        # The very first carry keeps its gradient.
        cut = jax.tree.map(jax.lax.stop_gradient, carry)
        carry = jax.tree.map(lambda c, old: jnp.where(number > 0, c, old), cut, carry)
        return jax.lax.scan(step, carry, part)

    carry, ys = jax.lax.scan(chunk, carry, (jnp.arange(len(chunks)), chunks))
    return carry, jax.tree.map(lambda y: y.reshape(-1, *y.shape[2:]), ys)


def _step(carry, x):
    a, b = carry["a"], carry["b"]
    new = {"a": 0.9 * a + x, "b": jnp.sin(b) + a}
    return new, new["a"] * new["b"]


CARRY = {"a": 0.5, "b": -0.25}
XS = np.array([1.0, -0.5, 2.0, 0.25, -1.0, 0.75], np.float32)


def _by_hand(carry, xs, every, cut=True, first=False):
    ys = []
    for i, x in enumerate(xs):
        if cut and i % every == 0 and (i or first):
            carry = jax.tree.map(jax.lax.stop_gradient, carry)
        carry, y = _step(carry, x)
        ys.append(y)
    return carry, jnp.stack(ys)


def check(truncated):
    carry, xs = jax.device_put((jax.tree.map(np.float32, CARRY), XS))
    given = {"carry": CARRY, "xs": XS, "every": 2}
    result = truncated(_step, carry, xs, 2)
    asked = "Return the pair `(carry, ys)`, as `jax.lax.scan` does."
    checks.returned(result, "carry", "ys", asked=asked)
    expected = jax.jit(lambda carry, xs: _by_hand(carry, xs, 2))(carry, xs)
    if getattr(result[1], "shape", None) == (3, 2):
        raise Failed("The outputs are still cut into chunks: `ys` should have the shape (6,).", got=result[1])
    checks.same(result, expected, input=given, rtol=1e-4, atol=1e-5)
    _gradients(truncated, carry, xs, given)
    _size(truncated, carry)
    _pair(truncated)


def _gradients(truncated, carry, xs, given):
    def slopes(read):
        def loss(carry, xs):
            last, ys = read(carry, xs)
            return jnp.sum(ys * jnp.arange(1.0, 7.0)) + last["a"] + last["b"]

        return jax.jit(jax.grad(loss, (0, 1)))(carry, xs)

    got = slopes(lambda carry, xs: truncated(_step, carry, xs, 2))
    close = lambda tree: all(  # noqa: E731
        jax.tree.leaves(jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-3, atol=1e-4), got, tree))
    )
    expected = slopes(lambda carry, xs: _by_hand(carry, xs, 2))
    if close(expected):
        return
    said = "The values are right, and the gradients are not those of chunks of `every` steps."
    for read, text in [
        (dict(cut=False), "The gradient crosses the borders between chunks: this is plain `scan`."),
        (dict(first=True), "The very first carry loses its gradient, too: only what goes from chunk to chunk should."),
        (dict(every=1), "The gradient is cut at every step, not once in a chunk: then nothing is learned over time."),
        (dict(every=3), "The chunks have the wrong length: `every` is the number of steps, not of chunks."),
        (dict(every=1, first=True), "The gradient is cut at every step, and at the first carry as well."),
    ]:  # fmt: skip
        if close(slopes(lambda carry, xs, read=read: _by_hand(carry, xs, **({"every": 2} | read)))):
            said = text
    raise Failed(said, input=given, expected=expected, got=got)


def _size(truncated, carry):
    def size(length, every):
        program = jax.make_jaxpr(lambda carry, xs: truncated(_step, carry, xs, every))
        return len(str(program(carry, np.zeros(length, np.float32))))

    small = size(8, 4)
    if size(40, 4) > 1.5 * small:
        raise Failed(
            "The program grows with the length: a Python loop over the chunks is unrolled. Put a `scan` over the chunks around the `scan` "
            "over their steps."
        )
    if size(40, 20) > 1.5 * small:
        raise Failed(
            "The program grows with `every`: a Python loop over the steps of a chunk is unrolled. Use `scan` there, too."
        )


class Sum(NamedTuple):
    so_far: jax.Array
    count: jax.Array


def _pair(truncated):
    """A step may take a vector and give a pair; its state may be of any class that JAX knows as a tree, and hold an integer."""
    carry, xs = Sum(np.zeros(2, np.float32), np.int32(0)), np.arange(1, 13, dtype=np.float32).reshape(6, 2)

    def step(carry, x):
        if x.shape != (2,):
            raise Failed(
                f"For `xs` of shape (6, 2), `step` should get an x of shape (2,), got {x.shape}: `xs` may have more than one axis, "
                "so keep those behind the first, `xs.reshape(-1, every, *xs.shape[1:])`."
            )
        return Sum(carry.so_far + x, carry.count + 1), (carry.so_far, x[0])

    where = "for a step whose output is the pair of a vector and a number, and whose state, a named tuple, counts in integers"
    with under(f"`jax.jit`, {where} (so `ys` is a pair, too: use `jax.tree.map`)"):
        got = jax.jit(lambda carry, xs: truncated(step, carry, xs, 3))(carry, xs)
    sums = np.cumsum(xs, axis=0)
    expected = jax.device_put((Sum(sums[-1], np.int32(6)), (sums - xs, xs[:, 0])))
    checks.same(got, expected, input={"xs": xs, "every": 3}, where=where)


exercise = Exercise(
    title="Truncated backpropagation",
    stars=3,
    minutes=15,
    why="The state says what is remembered, the gradient what is learned: `stop_gradient` cuts the second without the first.",
    hints=(
        "Reshape `xs` to (chunks, every, …), and scan over chunks; the step of that scan is itself a scan over one chunk.",
        "Cut what a chunk *hands on*: `jax.tree.map(jax.lax.stop_gradient, carry)` behind the inner scan. But the last chunk's carry is "
        "returned with its gradient, and the first one came from outside.",
        "One way: give the outer scan the number of the chunk, and choose by `jnp.where(number > 0, cut, carry)` before the inner scan.",
    ),
    solution=solution,
    check=check,
)
