"""A float32 product out of three bfloat16 products."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.precision._dtypes import program
from mlax_tutorial.inspection import costs


def solution(a, b):
    def split(x):
        high = x.astype(jnp.bfloat16)
        return high, (x - high.astype(jnp.float32)).astype(jnp.bfloat16)

    def product(a, b):
        return jax.lax.dot(a, b, preferred_element_type=jnp.float32)

    (a, a_low), (b, b_low) = split(a), split(b)
    return product(a, b) + product(a, b_low) + product(a_low, b)


def check(three_products):
    draw = np.random.default_rng(0)
    a, b = (jnp.asarray(draw.normal(size=size), jnp.float32) for size in ((8, 64), (64, 4)))
    checks.returns(three_products, a, b, shape=(8, 4), dtype=jnp.float32)
    items = [*costs.itemize(program(three_products, a, b))]
    if any(item.equation.primitive.name == "while" for item in items):
        raise Failed("There is a loop of unknown length in your program: three products are three lines.")
    counted = [(item.times, item.equation) for item in items]
    dots = [e for _, e in counted if e.primitive.name == "dot_general"]
    _others(counted)
    _bfloat16(dots)
    exact = np.asarray(a, np.float64) @ np.asarray(b, np.float64)
    got = np.asarray(three_products(a, b), np.float64)

    def error(of):
        return float(np.linalg.norm(of - exact) / np.linalg.norm(exact))

    shown = {"expected": "an error of 1e-5, relative to the product", "got": f"{error(got):.1e}"}
    high = [np.asarray(x.astype(jnp.bfloat16), np.float64) for x in (a, b)]
    low = [np.asarray(x, np.float64) - h for x, h in zip((a, b), high, strict=True)]
    one = high[0] @ high[1]
    known = {
        "The correction has the wrong sign: what rounding lost is `x - rounded`.": one
        - high[0] @ low[1]
        - low[0] @ high[1],
        "Two of the terms are the same one. The three are high times high, high times low and low times high.": one
        + 2 * high[0] @ low[1],
        "You left out a term that is not the smallest: each of the two low parts has to meet the other's high part.": one
        + high[0] @ low[1]
        + low[0] @ low[1],
        "The low parts add nothing: are they zero? Subtract the rounded matrix from the one that was not rounded, in float32.": one,
    }
    if error(got) < 2e-5:
        # By the multiplications, so that three products may be one call of `vmap`, or one product of longer matrices.
        work = sum(
            times * dot.outvars[0].aval.size * _summed(dot)
            for times, dot in counted
            if dot.primitive.name == "dot_general"
        ) / (8 * 64 * 4)
        if work > 3:
            raise Failed(
                f"The result is right, but it takes the work of {work:g} products, and three are enough."
            )
        got = np.asarray(three_products(a * 2.0**20, b * 2.0**-18), np.float64) / 4
        if not error(got) < 2e-5:
            raise Failed(
                "Right for numbers near 1, wrong where those of a are a million times as large, and those of b a million times as small: "
                "is a part of them float16 on the way? bfloat16 has the range of float32.",
                **shown | {"got": f"{error(got):.1e}"},
            )
        a, b = (jnp.asarray(draw.normal(size=size), jnp.float32) for size in ((3, 40), (40, 7)))
        checks.same(
            jnp.asarray(three_products(a, b)),
            solution(a, b),
            rtol=1e-3,
            atol=1e-3,
            where="for (3, 40) times (40, 7)",
        )
        return
    for diagnosis, wrong in known.items():
        if np.linalg.norm(got - wrong) < 3e-5 * np.linalg.norm(exact):
            raise Failed(diagnosis, **shown)
    raise Failed("The result is not precise enough.", **shown)


def _others(counted):
    """Fail where something else than a product of matrices multiplies."""
    for times, equation in counted:
        name = equation.primitive.name
        size = max((times * getattr(variable.aval, "size", 0) for variable in equation.outvars), default=0)
        if name == "conv_general_dilated" or (name == "mul" and size >= 8 * 64 * 4):
            raise Failed(
                f"There is a `{name}` in your program that multiplies as much as a product of the matrices. Only products of bfloat16 "
                "matrices were asked for: `jax.lax.dot`."
            )


def _summed(dot):
    """The length of the sums in a product."""
    (axes, _), _ = dot.params["dimension_numbers"]
    return int(np.prod([dot.invars[0].aval.shape[axis] for axis in axes]))


def _bfloat16(dots):
    if not dots:
        raise Failed("There is no product of matrices in your program.")
    for dot in dots:
        dtypes = [variable.aval.dtype for variable in dot.invars]
        if any(dtype != jnp.bfloat16 for dtype in dtypes):
            raise Failed(
                "Each product should have two bfloat16 matrices: that is what the matrix unit multiplies.",
                got=" and ".join(dtype.name for dtype in dtypes),
            )
        if dot.outvars[0].aval.dtype != jnp.float32:
            raise Failed(
                "A product is rounded to bfloat16 before it is added. Ask for float32: `preferred_element_type=jnp.float32`."
            )


exercise = Exercise(
    title="A float32 product out of three bfloat16 products",
    stars=2,
    minutes=15,
    why='That is what a TPU does for precision="high": two bfloat16 numbers hold 16 of the 24 bits of a float32.',
    hints=(
        "`high = x.astype(jnp.bfloat16)` is the first part. What did the rounding lose, as a float32 matrix?",
        "`low = (x - high.astype(jnp.float32)).astype(jnp.bfloat16)`. Do it for both matrices, and multiply out "
        "(a + a_low) (b + b_low).",
        "a b + a b_low + a_low b, each by `jax.lax.dot(…, preferred_element_type=jnp.float32)`. The fourth term is as small as "
        "the error that is left.",
    ),
    solution=solution,
    check=check,
)
