"""A NaN behind a where."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.checking.programs import fresh, under


def solution(p):
    harmless = jnp.where(p > 0, p, 1.0)  # its logarithm is 0
    return -jnp.sum(harmless * jnp.log(harmless))


def _by_numpy(p):
    p = np.asarray(p, np.float64)
    p = p[p > 0]
    return jax.device_put(np.float32(-np.sum(p * np.log(p))))


def check(entropy):
    recognise = [
        (lambda p: -solution(p), "The sign is wrong."),
        (lambda p: solution(p) / jnp.log(2.0), "This is in bits; the natural logarithm is asked for."),
        (lambda p: solution(p) / p.size, "This is the mean; the sum is asked for."),
    ]

    def probabilities(*entries):
        return jax.device_put(np.array(entries, np.float32))

    even, sure = probabilities(0.25, 0.25, 0.25, 0.25), probabilities(0, 1, 0, 0)
    zeros, uneven = probabilities(0, 0, 0, 0), probabilities(0.5, 0.25, 0.25, 0)
    checks.values(
        entropy,
        _by_numpy,
        examples=[(even,), (uneven,), (sure,)],
        recognise=recognise,
    )
    jitted = checks.works_under_jit(entropy, sure)
    checks.values(
        jitted, _by_numpy, inputs.arrays("n", sizes=(0, 1, 4), low=0, high=1), count=10, recognise=recognise
    )
    for small in (1e-10, 1e-30):
        tiny = probabilities(small, 0, 0, 0)
        expected = _by_numpy(tiny)
        got = entropy(tiny)
        if not abs(float(got) - float(expected)) <= 1e-4 * float(expected):
            raise Failed(
                "This is right for large probabilities, but not for small ones: nothing is to be added, and no bound is "
                "put on them.",
                input=f"p = [{small}, 0, 0, 0]",
                shown=[("expected", f"{float(expected):.4g}"), ("got", f"{float(got):.4g}")],
            )
    tiny = probabilities(1e-30, 1e-3, 0, 0)
    found, slope = jax.jit(jax.grad(fresh(entropy))), jax.jit(jax.grad(solution))
    for p in (even, uneven, sure, zeros, tiny):
        with under("`jax.grad`"):
            got = found(p)
        expected = slope(p)
        if not np.isfinite(np.asarray(got)).all():
            raise Failed(
                "The gradient is not finite where p is 0. A choice of the result, by a `where` or inside of a function such as "
                "`xlogy`, hides a bad value and not a bad derivative: the function behind it must not see the 0.",
                input={"p": p},
                expected=expected,
                got=got,
            )
        if not np.allclose(got, expected, rtol=1e-4, atol=1e-5):
            shown = {"input": {"p": p}, "expected": expected, "got": got}
            if not np.any(np.asarray(got)):
                raise Failed("The gradient is 0 everywhere; it should be so only where p is 0.", **shown)
            if p is tiny:  # whose first element is printed as 0
                numbers = {"expected": expected, "got": got}
                raise Failed(
                    "The gradient is right for large probabilities, but not for small ones: nothing is to be added, and no "
                    "bound is put on them.",
                    input="p = [1e-30, 0.001, 0, 0]",
                    shown=[(k, str([float(f"{n:.4g}") for n in np.asarray(v)])) for k, v in numbers.items()],
                )
            raise Failed("The gradient is finite, but wrong.", **shown)
    checks.works_under_vmap(jitted, jax.device_put(np.array([uneven, sure])))


exercise = Exercise(
    title="A NaN behind a where",
    stars=2,
    minutes=10,
    why="One `where` for the input, one for the result: the double `where` is the fix for most NaN gradients.",
    hints=(
        "Which function has no finite derivative at 0? Make sure that it never gets a 0.",
        "Before the logarithm: `jnp.where(p > 0, p, 1.0)`.",
        "What is the gradient of `p * log(1.0)` with respect to `p`, and is it what is asked for?",
    ),
    solution=solution,
    check=check,
)
