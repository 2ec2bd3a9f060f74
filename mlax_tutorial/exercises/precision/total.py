"""A sum that survives bfloat16."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.exercises.precision._dtypes import others, program
from mlax_tutorial.inspection import jaxprs

LEFT_TO_THE_COMPILER = {
    "reduce_sum",
    "reduce",
    "cumsum",
    "reduce_window_sum",
    "reduce_window",
    "dot_general",
    "conv_general_dilated",
    "scatter-add",
    "scatter_add",
}

MANY = 100_001  # more than a tree of 16 rounds can add


def solution(x):
    while len(x) > 1:
        if len(x) % 2:
            x = jnp.pad(x, (0, 1))
        x = x[0::2] + x[1::2]
    return x[0]


def _half(numbers):
    return jax.device_put(numbers.astype(jnp.bfloat16))


def check(total):
    draw = np.random.default_rng(0)
    jitted, three = jax.jit(fresh(total)), np.array([1.0, 2.0, 4.0])
    checks.returns(jitted, _half(three), shape=(), dtype=jnp.bfloat16)
    short = [_program(total, n) for n in (1001, 1000, 3, 2)]
    cases = {
        "three numbers": three,
        "a thousand ones": np.ones(1000),
        "1001 numbers between 0 and 1": draw.uniform(size=1001),
        "a thousand numbers of 0.001": np.full(1000, 1e-3),
        "1001 numbers between -1 and 0": -draw.uniform(size=1001),
        "one number": np.array([3.0]),
    }
    if len(short[0]) < 500:  # what grows with n would take a minute to trace and to compile
        _program(total, MANY)
        cases |= {"twenty thousand ones": np.ones(20_000), "a hundred thousand ones": np.ones(MANY)}
    for words, numbers in cases.items():
        x = _half(numbers)
        exact = float(np.asarray(x, np.float64).sum())
        with under("`jax.jit`"):
            got = jitted(x)
        _close(float(got), exact, words, x)


def _program(total, n):
    """The equations of the program for so many numbers, which holds nothing but additions of bfloat16."""
    jaxpr = program(total, _half(np.ones(n)))
    wide = others(jaxpr, jnp.bfloat16)
    if wide:
        primitive, name = wide[0]
        sums = any(primitive == "reduce_sum" for primitive, _ in wide)
        said = "`jnp.sum` has a float32 accumulator inside" if sums else f"there is {name} in your program"
        raise Failed(
            f"Nothing but bfloat16 was asked for, but {said}.",
            shown=[("equation", f"{primitive} gives {name}")],
        )
    equations = [equation for _, equation in jaxprs.walk(jaxpr)]
    for equation in equations:
        if equation.primitive.name in LEFT_TO_THE_COMPILER:
            raise Failed(
                f"Your program leaves the order of the additions to the compiler, which may also use a wider accumulator than it is "
                f"told: there is a `{equation.primitive.name}`. Add neighbors yourself, with `+`."
            )
    return equations


def _close(got, exact, words, x):
    if abs(got - exact) <= 0.01 * abs(exact):
        return
    shown = {
        "input": f"x: {words}",
        "shown": [("expected", f"{exact:.5g}, within one percent"), ("got", f"{got:.5g}")],
    }
    power = 1 << (
        len(x).bit_length() - 1
    )  # so many are left if a round drops the last of an odd count, or the last round is missing
    if power < len(x) and abs(got - float(np.asarray(x[:power], np.float64).sum())) <= 5e-3 * abs(exact):
        raise Failed(
            f"Only the first {power} numbers are in the sum. Either the last number is dropped where their count is odd (pad with a "
            "zero first), or there are too few rounds (go on until one number is left).",
            **shown,
        )
    if 0 <= got / exact < 0.6 and len(x) >= 1000:
        raise Failed(
            "The sum stops growing: once it is large, each single number is rounded away. Add numbers of about equal size.",
            **shown,
        )
    if len(x) >= 1000:
        raise Failed(
            "That is more than one percent off: somewhere in your program a large sum meets small numbers, many times.",
            **shown,
        )
    raise Failed("The sum is wrong.", **shown)


exercise = Exercise(
    title="A sum that survives bfloat16",
    stars=2,
    minutes=10,
    why="The order of a sum decides its error: in a tree of additions it grows with the logarithm of the count.",
    hints=(
        "After `x = x[0::2] + x[1::2]` half as many numbers are left, and their sum is the same. Repeat it until one is left.",
        "The shape of x is known while JAX traces, so a Python `while len(x) > 1:` will do. In each round, see to an odd "
        "count first.",
        "`if len(x) % 2: x = jnp.pad(x, (0, 1))`, then the sum of neighbors; after the loop, `return x[0]`.",
    ),
    solution=solution,
    check=check,
)
