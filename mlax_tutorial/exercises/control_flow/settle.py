"""A loop that can be differentiated."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.exercises.control_flow.recurrent import unrolled


def solution(a):
    def body(x, _):
        going = jnp.abs(x * x - a) > 1e-4 * a
        return jnp.where(going, 0.5 * (x + a / x), x), None

    return lax.scan(body, a, length=20)[0]


def check(settle):
    recognise = [
        (
            always,
            "This is closer to the root than the loop comes. It stops as soon as it may: a round that is no longer "
            "needed changes nothing, and whether it is needed is asked of the old `x`.",
        ),
        *(
            (functools.partial(shorter, rounds), "The loop may take up to 20 rounds; here it ends too early.")
            for rounds in range(1, 10)
        ),
        (
            absolute,
            "The rounds end by another measure: the error is compared with `1e-4 * a`, so it is a relative one.",
        ),
        (lambda a: a, "`a` comes back as it was: is the new `x` carried on?"),
    ]
    examples = [(jax.device_put(np.float32(a)),) for a in (2.0, 10.0, 5000.0, 0.01, 1.0, 3.0, 7.5, 0.3)]
    right, jitted = jax.jit(solution), jax.jit(fresh(settle))
    known = {"recognise": recognise, "rtol": 2e-6, "atol": 1e-9}
    checks.values(settle, right, examples=examples[:1], **known)
    checks.values(jitted, right, examples=examples, **known)
    two = examples[0][0]
    checks.gradients(settle, right, two, finite_differences=False)
    with under("`jax.jit(jax.grad(…))`"):
        jax.jit(jax.grad(lambda a: settle(a)))(two)
    for a in (10.0, 0.01):
        checks.gradients(jitted, right, jax.device_put(np.float32(a)), finite_differences=False)
    with checks.says(
        "At 1 no round is needed, so the result is `a` itself, with derivative 1: the loop starts from `a`, for the "
        "gradient, too."
    ):
        checks.gradients(jitted, right, jax.device_put(np.float32(1)), finite_differences=False)
    with checks.says(
        "The rounds are copies of the body in the program. Make them one loop: a `lax.scan`, or a `lax.fori_loop` "
        "whose bounds are plain numbers, which becomes one.",
        about="holds no `scan`",
    ):
        checks.jaxpr(settle, two, requires=("scan",), forbids=("while",), at_most={"div": 3})
    if unrolled(settle, (two,)) >= 20:
        raise Failed(
            "The jaxpr holds one loop, but `unroll` copies its body twenty times when it is compiled. A small constant, such as "
            "`unroll=4`, is fine."
        )
    far = jax.device_put(np.float32(1e12))
    with checks.says(lambda _: _too_many_or_too_few(float(settle(far)), float(far))):
        checks.same(jitted(far), right(far), input={"a": far})
    checks.works_under_vmap(jitted, jax.device_put(np.float32([2, 1, 30])))


def _too_many_or_too_few(got, a):
    """The loop halves so large a number again and again; 20 rounds are not enough for it to settle."""
    x = a
    for taken in range(30):
        if np.isclose(x, got, rtol=1e-3) and taken != 20:
            return (
                f"From a = {a:g} the root is not reached in 20 rounds, and the loop ends there; yours takes "
                + ("fewer." if taken < 20 else "more.")
            )
        x = 0.5 * (x + a / x)
    return ""


def always(a):
    return lax.fori_loop(0, 20, lambda i, x: 0.5 * (x + a / x), a)


def settle_from(x, a, rounds=20, bound=1e-4, relative=True):
    def body(x, _):
        going = jnp.abs(x * x - a) > (bound * a if relative else bound)
        return jnp.where(going, 0.5 * (x + a / x), x), None

    return lax.scan(body, x, length=rounds)[0]


def absolute(a):
    return settle_from(a, a, relative=False)


def shorter(rounds, a):
    return settle_from(a, a, rounds=rounds)


exercise = Exercise(
    title="A loop that can be differentiated",
    stars=3,
    minutes=20,
    why="With a bound and a select a loop of unknown length gets a gradient: vmap does to a while_loop what you did here.",
    hints=(
        "A number of rounds that is known while tracing: `lax.scan(body, a, length=20)`.",
        "Each round asks whether it is still needed, and `jnp.where` keeps the old `x` if not.",
        "`going = jnp.abs(x * x - a) > 1e-4 * a`, asked of the old `x`; then `jnp.where(going, new, x)`.",
    ),
    solution=solution,
    check=check,
)
