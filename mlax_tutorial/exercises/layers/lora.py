"""Low-rank adaptation: a frozen kernel, and two thin matrices that learn."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.layers._layers import MATRIX, compare, drawn, outlines, subject, variables
from mlax_tutorial.inspection import jaxprs


class LowRank(nn.Layer):
    out_features: int
    rank: int

    def init(self, key, x):
        draw = jax.nn.initializers.lecun_normal()
        key_kernel, key_a = jax.random.split(key)
        size = x.shape[-1]
        kernel = draw(key_kernel, (size, self.out_features)).astype(x.dtype)
        a = draw(key_a, (size, self.rank)).astype(x.dtype)
        b = jnp.zeros((self.rank, self.out_features), x.dtype)
        return {"a": a, "b": b}, {"kernel": kernel}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        kernel, a, b = (
            leaf.astype(x.dtype) for leaf in (non_trainables["kernel"], trainables["a"], trainables["b"])
        )
        return x @ kernel + (x @ a) @ b / self.rank, non_trainables


def check(LowRank):
    layer = checks.make(LowRank, 3, 2)
    many = np.ones((1, 400), np.float32)  # so many inputs that the kernels show how they were drawn
    shapes = {"a": (400, 2), "b": (2, 3)}, {"kernel": (400, 3)}
    variables(layer, many, *shapes, made=outlines(layer, many))
    few = {"a": (4, 2), "b": (2, 3)}, {"kernel": (4, 3)}
    variables(layer, MATRIX, *few, made=outlines(layer, MATRIX))
    even = checks.make(LowRank, 2, 2)  # kernel and `a` of one shape, so that less is compiled
    trainables, non_trainables = variables(even, many, {"a": (400, 2), "b": (2, 2)}, {"kernel": (400, 2)})
    kernel, a, b = non_trainables["kernel"], trainables["a"], trainables["b"]
    if np.any(np.asarray(b)):
        raise Failed(
            '`trainables["b"]` should begin at zero, so that training starts from the frozen kernel.', got=b
        )
    alike = np.array_equal(kernel, a)  # they have one shape
    if not np.any(np.asarray(a)):
        raise Failed(
            '`trainables["a"]` is zero. With both `a` and `b` at zero each has a gradient of zero, and nothing would ever learn.'
        )
    for name, leaf in [('trainables["a"]', a), ('non_trainables["kernel"]', kernel)]:
        drawn(leaf, name, 0.05, f"draw by `lecun_normal` with the shape {leaf.shape}, whose fan-in is 400")
    a, b = np.sin(np.arange(8.0)).reshape(4, 2), np.cos(np.arange(6.0)).reshape(2, 3)
    kernel = np.cos(np.arange(12.0)).reshape(4, 3)
    given = {"a": a, "b": b}, {"kernel": kernel}
    plain, low = MATRIX @ kernel, MATRIX @ a @ b
    recognise = [
        (plain + low, "The low-rank part should be divided by the rank, so that another rank needs no other learning rate."),
        (plain, "The low-rank part is missing: this is the frozen kernel alone."),
        (low / 2, "The frozen kernel is missing: this is the low-rank part alone."),
        (plain + 2 * low, "The low-rank part is multiplied by the rank: divide by it."),
    ]  # fmt: skip
    compare(layer, MATRIX, *given, plain + low / 2, recognise)
    _another_rank(checks.make(LowRank, 3, 3), kernel)
    _, updated = subject(layer).fwd(MATRIX, *given)
    if jax.tree.structure(updated) != jax.tree.structure(given[1]) or not np.array_equal(
        jax.tree.leaves(updated)[0], kernel
    ):
        raise Failed(
            "`fwd` should return the non_trainables as they came: the kernel is frozen.", got=updated
        )
    _passes_the_gradient_on(layer, *given)
    _cheap(layer)
    costly = {"finite in half precision", "gradients", "init sharded"}
    checks.obeys_laws(even, many, but=costly)
    if alike:
        raise Failed(
            "The kernel and `a` begin with the same numbers: each needs a key of its own, by `jax.random.split`.",
            input="LowRank(2, 2), and x of shape (1, 400)",
        )


def _another_rank(layer, kernel):
    a, b = np.cos(np.arange(12.0)).reshape(4, 3), np.sin(np.arange(9.0)).reshape(3, 3)
    plain, low = MATRIX @ kernel, MATRIX @ a @ b
    always_two = "The low-rank part is divided by 2, whatever the rank: divide by `self.rank`."
    recognise = [(plain + low / 2, always_two)]
    compare(layer, MATRIX, {"a": a, "b": b}, {"kernel": kernel}, plain + low / 3, recognise)


def _passes_the_gradient_on(layer, trainables, non_trainables):
    """The kernel is frozen, but what stands in front of the layer learns through it."""

    def total(x):
        return jnp.sum(subject(layer).fwd(x, trainables, non_trainables)[0])

    got = np.asarray(jax.jit(jax.grad(total))(MATRIX))
    low = trainables["a"] @ trainables["b"] / 2
    expected = np.broadcast_to((non_trainables["kernel"] + low).sum(1), got.shape).astype(np.float32)
    if np.allclose(got, expected, atol=1e-4):
        return
    said = "The gradient with respect to x is wrong."
    if np.allclose(got, low.sum(1), atol=1e-4):
        said = (
            "No gradient reaches x by way of `x @ kernel`. Frozen means that the kernel is not updated; the layers in front of this "
            "one still learn through it. A non-trainable needs no `stop_gradient`."
        )
    raise Failed(said, expected=expected, got=got)


def _cheap(layer):
    """Nothing of the size of the kernel may be made: that is what the thin matrices are for."""
    big = (
        {
            "a": jax.ShapeDtypeStruct((512, 2), jnp.float32),
            "b": jax.ShapeDtypeStruct((2, 3), jnp.float32),
        },
        {"kernel": jax.ShapeDtypeStruct((512, 3), jnp.float32)},
    )
    x = jax.ShapeDtypeStruct((1, 512), jnp.float32)
    program = jax.make_jaxpr(subject(layer).fwd)(x, *big)
    kernel = next(variable for variable in program.jaxpr.invars if variable.aval.shape == (512, 3))
    for shape in _large(program.jaxpr, {kernel}):
        if shape == (512, 5):
            raise Failed(
                "Your `fwd` joins `a` to the kernel, which copies the kernel at each call: multiply x by each of the two."
            )
        raise Failed(
            f"Your `fwd` multiplies `a` by `b` first, which makes an array of shape {shape}, as large as the kernel or larger: "
            "multiply x by `a`, and what comes out by `b`."
        )


def _large(jaxpr, of_kernel):
    """Shapes of what is made, at any depth, that are as large as the kernel, and not made of the kernel alone."""
    of_kernel = set(of_kernel)
    for equation in jaxpr.eqns:
        given = [isinstance(x, Literal) or x in of_kernel for x in equation.invars]
        if any(not isinstance(x, Literal) for x in equation.invars) and all(given):
            of_kernel.update(equation.outvars)
            continue
        inside = [inner for _, inner in jaxprs.subjaxprs(equation)]
        for inner in inside:
            same = len(inner.invars) == len(equation.invars)
            yield from _large(inner, {v for v, known in zip(inner.invars, given) if known} if same else ())
        if not inside:
            shapes = [variable.aval.shape for variable in equation.outvars]
            yield from (shape for shape in shapes if math.prod(shape) >= 512 * 3)


exercise = Exercise(
    title="Low-rank adaptation",
    stars=3,
    minutes=15,
    why="What is frozen is a non-trainable: the optimizer never sees it, its gradient is never computed, and its state is never stored.",
    hints=(
        'init needs two keys: `key_kernel, key_a = jax.random.split(key)`. It returns `{"a": …, "b": …}` and `{"kernel": …}`.',
        "`x @ kernel + (x @ a) @ b / self.rank`, each leaf in the dtype of x; return non_trainables as they came.",
    ),
    solution=LowRank,
    check=check,
)
