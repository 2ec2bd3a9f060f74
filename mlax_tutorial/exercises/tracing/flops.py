"""Count FLOPs by walking a jaxpr."""

import functools
import numbers

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.inspection import jaxprs


def solution(jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            depth = 1
            for axis in contracted:
                depth *= left[axis]
            total += 2 * depth * equation.outvars[0].aval.size
        times = equation.params["length"] if equation.primitive.name == "scan" else 1
        for _, inner in jaxprs.subjaxprs(equation):
            total += times * solution(getattr(inner, "jaxpr", inner))
    return total


def check(flops):
    def spec(*shape):
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    def count(function, *specs):
        jaxpr = jax.make_jaxpr(function)(*specs).jaxpr
        return flops(jaxpr), solution(jaxpr)

    def scanned(x, w):
        return lax.scan(lambda x, _: (jnp.tanh(x @ w), None), x, None, length=5)[0]

    def scanned_twice(x, w):
        return lax.scan(lambda x, _: (scanned(x, w), None), x, None, length=3)[0]

    def nested(x, w):
        return jax.jit(
            lambda x, w: lax.scan(lambda x, _: (jax.jit(jnp.dot)(x, w), None), x, None, length=4)[0]
        )(x, w)

    def over(left, right):
        return functools.partial(lax.dot_general, dimension_numbers=((left, right), ((), ())))

    dot = jax.jit(jnp.dot)
    two, rounds = "two products, one after the other", "a product in a scan of 5 rounds"
    twice = "a jitted product, called twice"
    cases = {
        "x:(2, 3) @ w:(3, 5)": (jnp.dot, spec(2, 3), spec(3, 5)),
        two: (lambda x, w: (x @ w) @ w, spec(2, 3), spec(3, 3)),
        "a batch of products, x:(4, 2, 3) @ w:(4, 3, 5)": (jnp.matmul, spec(4, 2, 3), spec(4, 3, 5)),
        "a sum, no product": (jnp.sum, spec(4)),
        "a product and a sum, x:(2, 3) @ w:(3, 5) + b:(5,)": (
            lambda x, w, b: x @ w + b,
            spec(2, 3),
            spec(3, 5),
            spec(5),
        ),
        "x:(3, 2) and w:(3, 5), summed over their first axes": (over((0,), (0,)), spec(3, 2), spec(3, 5)),
        "x:(2, 3, 4) and w:(3, 4, 5), summed over two axes": (
            over((1, 2), (0, 1)),
            spec(2, 3, 4),
            spec(3, 4, 5),
        ),
        "x:(2, 3) and w:(5, 3), over the last axis of both": (over((1,), (1,)), spec(2, 3), spec(5, 3)),
        "a matrix and a vector, x:(2, 3) @ v:(3,)": (jnp.matmul, spec(2, 3), spec(3)),
        "scores of attention, q:(2, 4, 3, 5) and k:(2, 6, 3, 5)": (
            lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k),
            spec(2, 4, 3, 5),
            spec(2, 6, 3, 5),
        ),
        "a product inside jit": (jax.jit(jnp.dot), spec(2, 3), spec(3, 5)),
        twice: (lambda x, w: dot(dot(x, w), w), spec(2, 3), spec(3, 3)),
        rounds: (scanned, spec(2, 3), spec(3, 3)),
        "the same scan in another of 3 rounds": (scanned_twice, spec(2, 3), spec(3, 3)),
        "a product in a jit, in a scan of 4 rounds, in a jit": (nested, spec(2, 3), spec(3, 3)),
    }
    so_far = 0
    for name, (function, *specs) in cases.items():
        with checks.says(f"It happens with {name}."):
            got, expected = count(function, *specs)
        checks.returned(got, input=name, expected=expected)
        if isinstance(got, jax.Array):
            raise Failed(
                "Return a Python number. JAX's int32 ends at 2147483647, and a program soon takes more operations.",
                input=name, expected=expected, got=got,
            )  # fmt: skip
        if not isinstance(got, numbers.Real) or isinstance(got, bool):
            raise Failed(
                "Return a number: the sum over all products.", input=name, expected=expected, got=got
            )
        before, so_far = so_far, so_far + expected
        if got == expected:
            continue
        reason = "The number is not right."
        if before and got == so_far:
            reason = "The count goes on from the last jaxpr's. Begin at 0 in each call."
        elif name == two and 2 * got == expected:
            reason = "There are two products here, and you count one. Does your function return too early?"
        elif before == 0 and 2 * got == expected:
            reason = "A product of m x k by k x n takes m·n·k multiplications and as many additions: twice what you say."
        elif before == 0 and got == 0:
            reason = "You find no product. `equation.primitive.name` of a product is 'dot_general'."
        elif before == 0 and got == 1:
            reason = "This counts products. Asked for are the operations in each: 2·m·n·k."
        elif before == 0 and got == 2 * 2 * 5:
            reason = "k is missing: each element of the result is a sum of k products."
        elif before == 0 and got == 3 * expected:
            reason = "k counts twice: both inputs have that axis, but it is summed over once."
        elif "inside jit" in name and got == 0:
            reason = "The product stands inside a `jit` equation, which holds a jaxpr: go into it."
        elif name == rounds and 5 * got == expected:
            reason = "The body of a scan is recorded once, but runs `length` times."
        elif name == rounds and got == 0:
            reason = "A scan holds its body as a jaxpr: go into it, and count it `length` times."
        elif name == twice and 2 * got == expected:
            reason = "Two equations hold the same jaxpr, and it runs for each of them: both count."
        elif "another" in name and 3 * got == expected:
            reason = "The rounds multiply: the inner scan's 5 are run in each of the outer's 3."
        elif "another" in name or "in a jit," in name:
            reason = "What is inside may hold further jaxprs and further scans: the function has to call itself for it."
        elif "batch" in name and 4 * got == expected:
            reason = "Each product of the batch counts: the number of results is that of `equation.outvars[0].aval.size`."
        elif "batch" in name and got == 4 * expected:
            reason = "The axis of the batch counts twice: both inputs have it, and the result has it once."
        elif "of both" in name or "a vector" in name or "scores" in name:
            reason = (
                "The axes that are left are not always the first of the left input and the last of the right. "
                "`equation.outvars[0].aval.size` is the number of results, whatever they are."
            )
        elif "summed over" in name or "batch" in name:
            reason = (
                "Which axes are summed over, and how many, is not always the same. It stands in "
                "`equation.params['dimension_numbers']`; k is the product of their lengths."
            )
        elif "a sum" in name:
            reason = "Only `dot_general` counts here."
        raise Failed(reason, input=name, expected=expected, got=got)


exercise = Exercise(
    title="Count FLOPs by walking a jaxpr",
    stars=3,
    minutes=20,
    why="Every profiler's estimate begins like this: the program is data, and you can compute with it.",
    hints=(
        "Start with one `dot_general`: two operations, a multiplication and an addition, for each element of the result "
        "and each element that is summed over.",
        "What is summed over stands in `equation.params['dimension_numbers']`: `((left_axes, right_axes), batch_axes)`.",
        "For inner jaxprs call yourself: `for _, inner in jaxprs.subjaxprs(equation)`. An inner jaxpr may be closed: "
        "`getattr(inner, 'jaxpr', inner)` opens it.",
        "The body of a `scan` runs `equation.params['length']` times.",
    ),
    solution=solution,
    check=check,
)
