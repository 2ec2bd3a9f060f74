"""Check a gradient by small steps."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(f, x, key):
    gradient, h = jax.grad(f)(x), 1e-2
    for each in jax.random.split(key, 3):
        t = jax.random.normal(each, x.shape)
        measured = (f(x + h * t) - f(x - h * t)) / (2 * h)
        if abs(measured - jnp.sum(gradient * t)) > 0.03:
            return False
    return True


@jax.jit
def _waves(x):
    return jnp.sum(jnp.sin(x) * x) / 10


@jax.jit
def _product(x):
    return jnp.mean(jnp.exp(x) * jnp.roll(x, 1))


def _with_rule(f, change):
    """`f` with a derivative that may be wrong, in both modes."""
    function = jax.custom_jvp(f)
    function.defjvp(lambda p, t: (f(*p), jnp.sum(change(jax.grad(f)(*p)) * t[0])))
    return function


def check(checked):
    x = jax.device_put(np.float32(1 + np.sin(np.arange(30)) / 2))
    exact = [
        ("exact gradients, values near 1", _waves),
        ("exact gradients, values near 1", _product),
        ("exact gradients by a rule", _with_rule(_product, lambda g: g)),
        ("exact gradients, values near 100", lambda x: 100 + _waves(x)),
    ]
    wrong = [
        ("the gradient times 2", _with_rule(_waves, lambda g: 2 * g)),
        ("a gradient of zeros", _with_rule(_waves, jnp.zeros_like)),
        *[
            (
                f"a gradient whose entry {i} is off by 0.5",
                _with_rule(_waves, lambda g, i=i: g + np.float32(0.5) * np.eye(30, dtype=np.float32)[i]),
            )
            for i in (0, 13, 29)
        ],
        (
            "a gradient whose entries are off by -0.5 to 0.5, which adds up to zero",
            _with_rule(_waves, lambda g: g + np.linspace(-0.5, 0.5, 30, dtype=np.float32)),
        ),
    ]
    for seed in range(3):
        for right, cases in ((True, exact), (False, wrong)):
            for case, f in cases:
                got = checked(f, x, jax.random.key(seed))
                checks.returned(got, input=case)
                if jnp.shape(got) != () or not jnp.issubdtype(jnp.result_type(got), jnp.bool_):
                    raise Failed("True or False is asked for.", input=case, got=got)
                if bool(got) == right:
                    continue
                if not right:
                    raise Failed(
                        "A wrong gradient passes. Is it compared with values of `f` alone, along directions that move every entry?",
                        input=case,
                    )
                noise = "100" in case
                raise Failed(
                    "An exact gradient is refused. "
                    + (
                        "The value is near 100, and rounding moves the measurement by about 1e-7 * 100 / h: take a larger step, or "
                        "tolerate that much."
                        if noise
                        else "Is the step to both sides, about a hundredth, and the tolerance a few hundredths?"
                    ),
                    input=case,
                )
    f = _with_rule(_waves, lambda g: -g)
    if bool(checked(f, x, jax.random.key(7))):
        raise Failed("A gradient with the wrong sign passes.")
    _three_directions(checked, x)


def _three_directions(checked, x):
    """The places at which the function is computed show along how many directions it is measured."""
    points = []

    def watched(y):  # mapped and jitted, too
        jax.debug.callback(lambda y: points.append(np.asarray(y, np.float64)), y)
        return _waves(y)

    f = jax.custom_jvp(watched)
    f.defjvp(lambda p, t: (_waves(*p), jnp.sum(jax.grad(_waves)(*p) * t[0])))
    found = []
    for seed in (0, 1):
        points.clear()
        checked(f, x, jax.random.key(seed))
        jax.effects_barrier()
        middle = np.asarray(x, np.float64)
        found.append(_lines(points, middle))
        steps = [point - middle for point in points if np.any(point != middle)]
        if any(_alone(step, steps) for step in steps):
            raise Failed(
                "A step is taken to one side only. A *central* difference takes the same step to both sides, and its error "
                "is far smaller."
            )
    first, second = found
    if len(first) < 3:
        raise Failed(
            "`f` is to be measured along three directions, each drawn by itself: with fewer, more wrong gradients pass.",
            shown=[("directions", str(len(first)))],
        )
    if len(_lines([*first, *second], 0)) < len(first) + 3:
        raise Failed("Another key does not give other directions: draw them from `key`.")


def _alone(step, steps):
    return all(np.linalg.norm(step + other) > 1e-2 * np.linalg.norm(step) for other in steps)


def _lines(points, middle):
    """Of points on lines through the middle one direction for each line."""
    found = []
    for point in points:
        away = point - middle
        length = np.linalg.norm(away)
        if length > 0 and all(abs(away @ other) < 0.99 * length for other in found):
            found.append(away / length)
    return found


exercise = Exercise(
    title="Check a gradient by small steps",
    stars=2,
    minutes=12,
    why="This check knows nothing about derivatives, so it finds the mistakes of those who do.",
    hints=(
        "Split the key into three, and draw a direction `t` of the shape of `x` from each.",
        "`(f(x + h * t) - f(x - h * t)) / (2 * h)`, with `h = 1e-2`, against `jnp.sum(jax.grad(f)(x) * t)`.",
        "Rounding and curvature stay below 0.01 here, and an entry off by 0.5 moves the result by `0.5 * t[i]`: tolerate 0.03.",
    ),
    solution=solution,
    check=check,
)
