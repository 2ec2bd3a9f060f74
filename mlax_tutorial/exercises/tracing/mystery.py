"""Read a jaxpr back into Python."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, checks, inputs


def solution(x, y):
    return y * x / jnp.sqrt(jnp.sum(x * x))


def mystery_jaxpr() -> str:
    """The jaxpr to be read back, as JAX prints it."""

    def mystery(x, y):  # with lax, so that it reads the same in each version of JAX
        b = jnp.sum(lax.mul(x, x))
        return lax.div(lax.mul(y, x), lax.broadcast_in_dim(lax.sqrt(b), (3,), ()))

    x = jnp.ones(3)
    text = jax.make_jaxpr(mystery)(x, x).pretty_print(use_color=False)
    return text.replace(" out_sharding=None", "")  # a parameter that not every version prints


def check(mystery):
    def pair(draw):
        x = draw(inputs.arrays("n", sizes=(2, 3, 5), low=1, high=3))
        return x, draw(inputs.arrays(*x.shape))

    telling = jax.device_put((np.float32([3, 4, -12]), np.float32([1, 2, -3])))
    recognise = [
        (
            lambda x, y: y * x / jnp.sum(x * x),
            "The square root is missing: it stands between the sum and the division.",
        ),
        (lambda x, y: y * x / jnp.sum(x), "The sum is over `mul a a`, the squares, not over the inputs."),
        (
            lambda x, y: y * x / jnp.sqrt(jnp.sum(x)),
            "The sum is over `mul a a`, the squares, not over the inputs.",
        ),
        (
            lambda x, y: y * x / jnp.sqrt(jnp.sum(y * y)),
            "`mul a a`: both factors are the first input, not the second.",
        ),
        (lambda x, y: y * x / jnp.sqrt(jnp.sum(x * y)), "`mul a a`: both factors are the first input."),
        (lambda x, y: y * x / jnp.sqrt(jnp.mean(x * x)), "This averages; `reduce_sum` adds up."),
        (
            lambda x, y: x / jnp.sqrt(jnp.sum(x * x)),
            "The second input, `b`, is used: look for it in a `mul`.",
        ),
        (lambda x, y: y / jnp.sqrt(jnp.sum(x * x)), "The numerator is a product of both inputs."),
        (lambda x, y: y * x / jnp.sum(jnp.sqrt(x * x)), "The order is: sum first, then the root."),
        (lambda x, y: y * x, "`div e g` is missing: the product is still to be divided."),
        (
            lambda x, y: jnp.sqrt(jnp.sum(x * x)) / (y * x),
            "`div e g` divides `e` by `g`, not the other way round.",
        ),
        (
            lambda x, y: jnp.dot(y, x) / jnp.sqrt(jnp.sum(x * x)),
            "`mul b a` multiplies element by element. Nothing adds up its result: look at what `reduce_sum` is given.",
        ),
        (
            lambda x, y: y * x / jnp.sqrt(x * x),
            "`reduce_sum` is missing: the squares are added up, and every element is divided by the same number.",
        ),
        (
            lambda x, y: x * x / jnp.sqrt(jnp.sum(x * x)),
            "The numerator is `mul b a`, a product of both inputs, not a square.",
        ),
        (lambda x, y: y * x * jnp.sqrt(jnp.sum(x * x)), "The last equation is a `div`: divide by the root."),
        (
            lambda x, y: y * x / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y)),
            "Only the first input goes into the root: there is one `reduce_sum`, and it is given `mul a a`.",
        ),
    ]
    checks.values(mystery, solution, examples=[telling], recognise=recognise)
    for n in (2, 5):
        arguments = jax.device_put((np.float32(range(1, n + 1)), np.float32(range(2, n + 2))))
        with checks.says(f"This is right for three numbers, but not for {n}: it should work for any length."):
            checks.same(
                mystery(*arguments), solution(*arguments), input=dict(zip("xy", arguments, strict=True))
            )
    checks.values(mystery, solution, inputs.together(pair), recognise=recognise)
    y = jax.device_put(np.float32([1, 2, 3]))
    for x, advice in (
        (
            [3e-9, 0.0, 4e-9],
            "This is right for large numbers, but not for small ones. The divisor is the root as it stands: "
            "nothing is added, and no bound is put on it.",
        ),
        (
            [0.0, 0.0, 0.0],
            "Where x is 0, the jaxpr divides 0 by 0, which is nan: there is no equation that looks out for it.",
        ),
    ):
        shown = f"x = {x}, y = {y.tolist()}"  # as an array, 3e-9 would be shown as 0
        with checks.says(advice):
            numbers = jax.device_put(np.float32(x))
            checks.same(mystery(numbers, y), solution(numbers, y), input=shown)
    checks.works_under_jit(mystery, *telling)


exercise = Exercise(
    title="Read a jaxpr back into Python",
    stars=1,
    minutes=10,
    why="A jaxpr is short and exact, and reading one is the surest way to see what a library really computes.",
    hints=(
        "Give names a person would choose: the first line squares, the second adds up the squares.",
        "`broadcast_in_dim` only repeats a scalar, so that the division finds two arrays of one shape; NumPy's rules "
        "do that by themselves.",
        "It scales x to length 1, and multiplies by y.",
    ),
    solution=solution,
    check=check,
)
