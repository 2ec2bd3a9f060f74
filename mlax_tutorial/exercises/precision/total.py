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
}


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
    jaxpr = program(total, _half(np.ones(1001)))
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
    cases = {
        "three numbers": three,
        "a thousand ones": np.ones(1000),
        "1001 numbers between 0 and 1": draw.uniform(size=1001),
        "one number": np.array([3.0]),
    }
    if len(equations) < 500:  # what grows with n would take a minute to compile
        cases["twenty thousand ones"] = np.ones(20_000)
    for words, numbers in cases.items():
        x = _half(numbers)
        exact = float(np.asarray(x, np.float64).sum())
        with under("`jax.jit`"):
            got = jitted(x)
        _close(float(got), exact, words, x)


def _close(got, exact, words, x):
    if abs(got - exact) <= 0.01 * exact:
        return
    shown = {
        "input": f"x: {words}",
        "shown": [("expected", f"{exact:.5g}, within one percent"), ("got", f"{got:.5g}")],
    }
    power = 1 << (
        len(x).bit_length() - 1
    )  # so many are left if a round drops the last of an odd count, or the last round is missing
    if power < len(x) and abs(got - float(np.asarray(x[:power], np.float64).sum())) <= 5e-3 * exact:
        raise Failed(
            f"Only the first {power} numbers are in the sum. Either the last number is dropped where their count is odd (pad with a "
            "zero first), or there are too few rounds (go on until one number is left).",
            **shown,
        )
    if got < 0.6 * exact and len(x) >= 1000:
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
