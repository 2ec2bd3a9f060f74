"""Which picture has the largest gradient?"""

import functools
import itertools

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding
from mlax_tutorial.exercises.first_network._batch import no_loop_over_batch


def solution(loss_fn, params, batch):
    gradients = jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)

    def squares(leaf):  # (batch, ...) -> (batch,)
        return jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1)

    return jnp.sqrt(sum(squares(leaf) for leaf in jax.tree.leaves(gradients)))


@jax.jit
def _example_loss(params, example):
    x, y = example  # (3,), ()
    hidden = jnp.tanh(x @ params[0]["kernel"] + params[0]["bias"])
    return (hidden @ params[1]["kernel"] - y) ** 2


def _example_params():
    kernel, bias = [[1.0, -0.5], [0.25, 1.0], [-1.0, 0.5]], [0.5, -0.25]
    kernel, bias, last = (jax.device_put(np.array(a, np.float32)) for a in (kernel, bias, [1.0, -1.5]))
    return [{"kernel": kernel, "bias": bias}, {"kernel": last}]


def _wrong_norms(leaves):
    """What wrong formulas give for gradients (leaves of shape (batch, numbers)), and what is wrong with them."""
    squares = sum((leaf**2).sum(1) for leaf in leaves)
    yield squares, "These are the squares of the lengths: the root is missing."
    yield (
        sum(np.sqrt((leaf**2).sum(1)) for leaf in leaves),
        "You add the lengths of the parts. Lengths do not add up: add the squares, and take one root at the end.",
    )
    yield (
        sum(np.abs(leaf).sum(1) for leaf in leaves),
        "These are sums of absolute values: take squares and a root.",
    )
    yield (
        np.sqrt(sum((leaf**2).mean(1) for leaf in leaves)),
        "You average the squares of each part; the length wants their sum.",
    )
    for leaf in leaves:
        yield (
            np.sqrt((leaf**2).sum(1)),
            "Only one part of the tree of gradients is counted; the length goes over all.",
        )
    yield (
        np.sqrt(sum((leaf.mean(0) ** 2).sum() for leaf in leaves)),
        "This is the length of the *average* gradient, one number; one for each example is asked for.",
    )
    yield (
        np.sqrt(sum((leaf.sum(0) ** 2).sum() for leaf in leaves)),
        "This is the length of the *summed* gradient, one number; one for each example is asked for.",
    )
    yield np.sqrt(squares.sum()), "This is one number for the whole batch; one for each example is asked for."
    yield (
        np.sqrt(squares) / len(squares),
        "You divide by the number of examples, as a mean would; the length of each example's own gradient is asked for.",
    )


def _other_norms(params, batch):
    """What is measured in the place of the gradients by the weights."""
    losses = jax.vmap(_example_loss, (None, 0))(params, batch)
    yield losses, "These are the losses, not lengths of gradients."
    by_example = jax.vmap(jax.grad(_example_loss, argnums=1), (None, 0))(params, batch)
    by_example = [np.asarray(leaf).reshape(4, -1) for leaf in by_example]
    yield (
        np.sqrt(sum((leaf**2).sum(1) for leaf in by_example)),
        "This is the gradient by the example; the one by the weights is asked for.",
    )


def check(function):
    params = _example_params()

    def batch(n):
        x = np.sin(np.arange(3 * n)).reshape(n, 3)
        return jax.device_put((np.float32(x), np.float32(2 * np.cos(np.arange(n)))))

    gradients = jax.jit(jax.vmap(jax.grad(_example_loss), (None, 0)))(params, batch(4))
    leaves = [np.asarray(leaf).reshape(4, -1) for leaf in jax.tree.leaves(gradients)]
    expected = np.sqrt(sum((leaf**2).sum(1) for leaf in leaves))
    got = function(_example_loss, params, batch(4))
    recognise = itertools.chain(_wrong_norms(leaves), _other_norms(params, batch(4)))
    checks.same(got, expected, rtol=1e-4, recognise=recognise)
    inner = guarding.guard(functools.partial(guarding.original(function), _example_loss), "gradient_norms")
    alone = checks.works_under_jit(inner, params, batch(4))(params, batch(1))
    checks.same(alone, expected[:1], where="for a batch of one", rtol=1e-4)
    _other_trees(function)
    _full_rank(function)
    no_loop_over_batch(inner, lambda n: (params, batch(n)))


def _other_trees(function):
    """A batch that is no pair, and weights that are no list of layers."""

    @jax.jit
    def loss(params, example):
        return (example["x"] * params["slope"] + params["offset"] - example["wanted"]["y"]) ** 2

    x, y = np.float32([[0.0, 1.0, 2.0, -1.0], [1.0, -1.0, 0.5, 2.0]])
    params, batch = {"slope": np.float32(2), "offset": np.float32(-1)}, {"x": x, "wanted": {"y": y}}
    expected = np.float32(2 * np.abs(2 * x - 1 - y) * np.sqrt(x**2 + 1))
    with checks.says("For weights and a batch that are dicts:"):
        got = jax.jit(lambda *arguments: function(loss, *arguments))(params, batch)
        checks.same(got, expected, where="for a batch that is a dict", rtol=1e-4)


def _full_rank(function):
    """Gradients that are no outer products, as those of one example by a kernel are: there all norms of a matrix agree."""

    @jax.jit
    def linear(params, example):
        return jnp.sum(params["kernel"] * example)

    matrices = np.cos(np.arange(16, dtype=np.float32)).reshape(4, 2, 2)  # the gradients themselves
    got = jax.jit(lambda *arguments: function(linear, *arguments))({"kernel": matrices[0]}, matrices)
    expected = np.sqrt((matrices**2).sum((1, 2)))
    if checks.agrees(got, jnp.linalg.norm(matrices, ord=2, axis=(1, 2))):
        raise Failed(
            "`jnp.linalg.norm` with `ord=2` takes the largest singular value of a matrix, and not the root of the sum of its squares.",
            expected=expected,
            got=got,
        )
    checks.same(got, expected, where="for gradients that are matrices of full rank", rtol=1e-4)


exercise = Exercise(
    title="Which picture has the largest gradient?",
    stars=2,
    minutes=15,
    why=(
        "One program computes all gradients at once. Clipping each example's gradient, private training and the search for "
        "wrong labels all begin like this."
    ),
    hints=(
        "`jax.grad(loss_fn)` gives the gradient of one example. Which transformation gives all, and which of its two arguments "
        "is the same for every example?",
        "`jax.vmap(jax.grad(loss_fn), in_axes=(None, 0))(params, batch)` is a tree like `params`, each leaf with a leading "
        "batch axis. `jax.tree.leaves` makes a list of it.",
        "For each leaf, sum the squares over all axes but the first: `leaf.reshape(len(leaf), -1)` helps. Add up the leaves, "
        "then one root.",
    ),
    solution=solution,
    check=check,
)
