"""Newton's method in a while_loop."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under


def solution(f, x):
    def going(state):
        x, rounds = state
        return (jnp.abs(f(x)) > 1e-5) & (rounds < 50)

    def body(state):
        x, rounds = state
        return x - f(x) / jax.grad(f)(x), rounds + 1

    return lax.while_loop(going, body, (x, 0))


def _two(x):
    return x * x - 2.0


def _fixed_point(x):
    return jnp.cos(x) - x


def _no_zero(x):
    return jnp.abs(x) + 1.0


def _there_already(x):
    return jnp.sin(x)


def _tail(x):
    return jnp.exp(x)


def check(newton):
    advice = {
        _two: "",
        _fixed_point: "",
        _tail: "",
        _there_already: "Where the first `x` is a zero already, no step is taken: ask before you step.",
        _no_zero: "This function has no zero: after 50 rounds the loop must end.",
    }
    starts = [
        (_two, 5.0),
        (_two, 1.0),
        (_fixed_point, 1.0),
        (_tail, 1.0),
        (_there_already, 0.0),
        (_no_zero, 1.0),
    ]
    text = {
        _two: "x * x - 2",
        _fixed_point: "cos(x) - x",
        _tail: "exp(x)",
        _there_already: "sin(x)",
        _no_zero: "abs(x) + 1",
    }
    x = jax.device_put(np.float32(1))
    with checks.says(
        "In the question and in the body all is traced. Two conditions are joined by `&` there, and not by "
        "`and`, and a choice is made by `jnp.where`, not by `if`.",
        about="TracerBool",
    ):
        got = newton(_two, x)
    if got is not None and (not isinstance(got, (tuple, list)) or len(got) != 2):
        raise Failed("A pair is asked for: the zero, and how many steps were taken.", got=got)
    if got is not None and not _whole(got[1]) and _whole(got[0]):
        raise Failed(
            "The two results are in the wrong order: first the zero, then the number of steps.", got=got
        )
    if got is not None and not _whole(got[1]):
        raise Failed("The number of rounds is a whole number: start counting at 0, not at 0.0.", got=got)
    checks.works_under_jit(lambda x: _arrays(newton(_two, x)), x)
    for f, start in (*starts, (_two, 0.0)):
        shown = f"f(x) = {text[f]}, from x = {start}"
        with checks.says(advice[f]):
            got = newton(f, jax.device_put(np.float32(start)))
        expected = _expected(f, start)
        if isinstance(got, list):
            got = tuple(got)
        with checks.says(advice[f] or functools.partial(_why_not_newton, got, f, start)):
            checks.same(_arrays(got), _arrays(expected), input=shown, rtol=1e-5, atol=1e-5)
    checks.jaxpr(lambda x: newton(_two, x), x, requires=("while",), forbids=("scan",))
    # A step of exp(x) is -1 from anywhere, so the zero moves with the start.
    with under("`jax.jvp`"):
        _, moved = jax.jvp(fresh(lambda x: newton(_tail, x)[0]), (x,), (np.float32(1),))
    if not np.allclose(moved, 1, rtol=1e-3):
        raise Failed(
            "The values are right, but no derivative comes through the loop: is there a `stop_gradient` on the way?",
            input="f(x) = exp(x), from x = 1: the derivative of the result in x",
            expected=np.float32(1),
            got=moved,
        )
    rows = jax.device_put(np.float32([1, 40]))
    checks.works_under_vmap(lambda x: _arrays(newton(_two, x)), rows)


_value_and_grad = functools.cache(lambda f: jax.jit(jax.value_and_grad(f)))


def _expected(f, x):
    """What the loop gives, by Python's own: a `while_loop` is compiled for each call."""
    both, x, rounds = _value_and_grad(f), np.float32(x), 0
    value, slope = map(np.float32, both(x))
    with np.errstate(all="ignore"):
        while abs(value) > 1e-5 and rounds < 50:
            x, rounds = x - value / slope, rounds + 1
            value, slope = map(np.float32, both(x))
    return jax.device_put((x, np.int32(rounds)))


def _whole(number):
    return jnp.issubdtype(jnp.result_type(number), jnp.integer)


def _arrays(pair):
    """As it is, with a whole number of any width as an int32, and tuple for list."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        return pair
    x, rounds = pair
    return x, jnp.asarray(rounds, jnp.int32) if _whole(rounds) else rounds


def _why_not_newton(got, f, start, failure):
    if not isinstance(got, tuple) or len(got) != 2:
        return ""
    if start == 0.0:
        return (
            "The derivative is 0 here: the step leads to infinity, the next one to NaN, and NaN is not larger than $10^{-5}$, "
            "so the loop ends. Nothing is to be done about it."
        )
    for wrong, reason in (
        (without_abs, "Without the absolute value a negative $f(x)$ ends the loop."),
        (uphill, "The step goes the wrong way: it is *minus* $f(x) / f'(x)$."),
        (
            newton_reversed,
            "The loop goes on while $|f(x)|$ is *large*: the question is when to go on, not when to stop.",
        ),
        (
            one_more,
            "One step is taken too many, or counted too many: the count starts at 0, and the loop ends as soon as "
            "$|f(x)|$ is no larger than $10^{-5}$.",
        ),
        (by_step, "The loop ends by the size of the step; asked for is the size of $f(x)$."),
        (upside_down, "The step is $f(x) / f'(x)$, not $f'(x) / f(x)$."),
    ):
        if checks.agrees(_arrays(got), _arrays(wrong(f, jnp.float32(start))), rtol=1e-5, atol=1e-5):
            return reason
    return ""


def loop_of_newton(going, body):
    def newton(f, x):
        return lax.while_loop(functools.partial(going, f), functools.partial(body, f), (x, 0))

    return newton


def goes_on(f, state):
    return (jnp.abs(f(state[0])) > 1e-5) & (state[1] < 50)


def steps(f, state):
    return state[0] - f(state[0]) / jax.grad(f)(state[0]), state[1] + 1


uphill = loop_of_newton(
    goes_on, lambda f, state: (state[0] + f(state[0]) / jax.grad(f)(state[0]), state[1] + 1)
)


upside_down = loop_of_newton(
    goes_on, lambda f, state: (state[0] - jax.grad(f)(state[0]) / f(state[0]), state[1] + 1)
)


newton_reversed = loop_of_newton(lambda f, state: (jnp.abs(f(state[0])) <= 1e-5) & (state[1] < 50), steps)


without_abs = loop_of_newton(lambda f, state: (f(state[0]) > 1e-5) & (state[1] < 50), steps)


def one_more(f, x):
    x, rounds = solution(f, x)
    return x, rounds + 1


def by_step(f, x):
    def going(state):
        return (jnp.abs(f(state[0]) / jax.grad(f)(state[0])) > 1e-5) & (state[1] < 50)

    return lax.while_loop(going, functools.partial(steps, f), (x, 0))


exercise = Exercise(
    title="Newton's method in a while_loop",
    stars=2,
    minutes=15,
    why="A solver that stops when it is done, inside one program: it can be jitted, mapped over and put into others.",
    hints=(
        "The carry is the pair `(x, rounds)`; the question and the body both get it whole.",
        "Two conditions on arrays are joined by `&`, each in brackets: Python's `and` would ask for a number.",
        "`jax.grad(f)(x)` is the derivative; the body returns `(x - f(x) / derivative, rounds + 1)`.",
    ),
    solution=solution,
    check=check,
)
