"""Bounds that hold for every input between."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.outcome import NotAttempted
from mlax_tutorial.checking.programs import fresh
from mlax_tutorial.exercises.transformations._cases import for_this_case, refused, refuses


def solution(function, low, high):
    program = jax.make_jaxpr(function)(low)
    (result,) = _bounds_of(program, [(low, high)])
    return result


def _bounds_of(program, inputs):
    jaxpr = program.jaxpr
    known = {v: (c, c) for v, c in zip(jaxpr.constvars, program.consts, strict=True)}
    known.update(zip(jaxpr.invars, inputs, strict=True))

    def read(atom):
        return (atom.val, atom.val) if isinstance(atom, core.Literal) else known[atom]

    for equation in jaxpr.eqns:
        intervals = [read(atom) for atom in equation.invars]
        known.update(zip(equation.outvars, bounds_after(equation, intervals), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def bounds_after(equation, intervals):
    name, params = equation.primitive.name, equation.params

    def bind(*inputs):
        return equation.primitive.bind(*map(jnp.asarray, inputs), **params)

    if name in ("jit", "pjit", "custom_jvp_call"):
        return _bounds_of(params["jaxpr" if "jaxpr" in params else "call_jaxpr"], intervals)
    lows, highs = zip(*intervals, strict=True)
    if name in ("add", "max", "exp", "tanh", "broadcast_in_dim", "reshape"):  # these rise with each input
        return [(bind(*lows), bind(*highs))]
    if name == "neg":
        return [(bind(*highs), bind(*lows))]
    if name == "sub":
        return [(bind(lows[0], highs[1]), bind(highs[0], lows[1]))]
    if name == "mul":
        products = jnp.stack(jnp.broadcast_arrays(*[bind(a, b) for a in intervals[0] for b in intervals[1]]))
        return [(products.min(axis=0), products.max(axis=0))]
    if name == "dot_general":
        (c, d), (r, s) = [[(high + sign * low) / 2 for low, high in intervals] for sign in (1, -1)]
        center, radius = bind(c, d), bind(abs(c), s) + bind(r, abs(d)) + bind(r, s)
        return [(center - radius, center + radius)]
    raise NotImplementedError(f"no bounds for {name}")


_SIGNS = np.random.default_rng(1).choice(np.float32([-1, 1]), size=(16, 2))


def check(bounds):
    draw = np.random.default_rng(0)

    def array(*entries):
        return jax.device_put(np.float32(entries))

    low, high = array(-2.0, 0.5, -1.0), array(3.0, 1.5, -0.25)
    w, b = array(*draw.normal(size=(3, 2))), array(0.5, -1.0)
    rows, wide, ones = array(*np.asarray(w).T), jax.device_put(_SIGNS), np.ones(16)
    inner, outer = array(*draw.normal(size=(3, 3))), array(*draw.normal(size=(3, 2)))
    falling = "Where the function falls, the ends change places."
    four = "A product of two intervals lies between the smallest and the largest of four products: each end with each."
    matrix = (
        "A column of the matrix may hold both signs, so that neither end of the input gives the end of the result. "
        "Center and radius: $cW$ and $r|W|$."
    )
    inside = "Go into the program that the equation holds, with the intervals of its inputs."
    known = "Whether a matrix is known, its interval tells: of width zero, wherever it comes from."
    computed = f"A matrix that is computed from constants is known, too. {known}"
    handed = f"Inside of a program the matrix may be an input, and still be known. {known}"
    three = (low, high)

    def column(x):
        return lax.broadcast_in_dim(x, (3, 3), (0,))

    def row(x):
        return lax.broadcast_in_dim(x, (3, 3), (1,))

    cases = {
        "jnp.exp(x)": (jnp.exp, *three, "`exp` rises: the low end goes to the low end."),
        "jnp.tanh(x)": (jnp.tanh, *three, ""),
        "-x": (lambda x: -x, *three, falling),
        "x + 1": (lambda x: x + 1, *three, ""),
        "1 - x": (lambda x: 1 - x, *three, "The lowest of a difference is the lowest of the first minus the highest of the second."),
        "x - 1": (lambda x: x - 1, *three, ""),
        "-2 * x": (lambda x: -2 * x, *three, four),
        "x * (x - 1)": (lambda x: x * (x - 1), *three, four),
        "(1 - x) * (x + 2)": (lambda x: (1 - x) * (x + 2), *three, four),
        "jnp.maximum(x, 0.75)": (lambda x: jnp.maximum(x, 0.75), *three, ""),
        "jnp.exp(-x) + jnp.exp(x)": (lambda x: jnp.exp(-x) + jnp.exp(x), *three, "Each value has bounds of its own: note them for each variable."),
        "jax.nn.relu(x - 1)": (lambda x: jax.nn.relu(x - 1), *three, inside),
        "jax.jit(jnp.negative)(x)": (lambda x: jax.jit(jnp.negative)(x), *three, inside),
        "x @ w + b": (lambda x: x @ w + b, *three, matrix),
        "rows @ x, with the matrix first": (lambda x: jnp.dot(rows, x), *three, matrix),
        "x @ w of 16 inputs": (lambda x: x @ wide, array(*-ones), array(*ones), matrix),
        "a network, jnp.tanh(x @ w) @ v": (lambda x: jnp.tanh(x @ inner) @ outer, *three, matrix),
        "a network with relu": (lambda x: jax.nn.relu(x @ inner + 0.5) @ outer, *three, matrix),
        "x @ jnp.exp(w), a matrix that is computed": (lambda x: x @ jnp.exp(w), *three, computed),
        "(w.T - 1) @ x, a matrix that is computed": (lambda x: jnp.dot(rows - 1, x), *three, computed),
        "a jitted function of x and w, x @ w": (lambda x: jax.jit(jnp.dot)(x, w), *three, handed),
        "a jitted function of w.T and x, with the matrix first": (lambda x: jax.jit(jnp.dot)(rows, x), *three, handed),
        "a jitted function of x and w, x @ -w": (lambda x: jax.jit(lambda x, w: x @ -w)(x, w), *three, computed),
        "x as a column, lax.reshape(x, (3, 1))": (lambda x: lax.reshape(x, (3, 1)), *three, ""),
        "x twice, lax.broadcast_in_dim(x, (2, 3), (1,))": (lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)), *three, ""),
        "a column times a row, each broadcast from x": (lambda x: column(x) * row(x), *three, four),
        "an interval of width zero, x * x": (lambda x: x * x, low, low, ""),
    }  # fmt: skip
    samples = {name: _samples(draw, low, high) for name, (_, low, high, _) in cases.items()}
    within = jax.jit(lambda samples: {name: jax.vmap(cases[name][0])(x) for name, x in samples.items()})(
        samples
    )
    for name, (function, lowest, highest, reason) in cases.items():
        shown = {
            "input": f"{name}, low = {np.asarray(lowest).tolist()}, high = {np.asarray(highest).tolist()}"
        }
        try:
            with checks.says(f"It happens with {name}.{for_this_case(reason)}"):
                got = bounds(fresh(function), lowest, highest)
        except NotAttempted:
            raise Failed(refused(name, reason)) from None
        pair = "A pair is asked for: the lower bounds and the upper bounds."
        bottom, top = checks.returned(got, "lower bounds", "upper bounds", lists=True, asked=pair, **shown)
        expected = solution(function, lowest, highest)
        for part, bound in (("lower", bottom), ("upper", top)):
            if np.shape(bound) != expected[0].shape:
                raise Failed(
                    f"The {part} bounds have the shape {np.shape(bound)}, the result of the function has "
                    f"{expected[0].shape}.",
                    **shown,
                )
        bottom, top = np.asarray(bottom), np.asarray(top)
        if np.isnan(bottom).any() or np.isnan(top).any():
            raise Failed(f"A bound is NaN.{for_this_case(reason)}", expected=expected, got=got, **shown)
        slack = 3e-5 * (1 + np.abs(np.asarray(expected)).max())
        if np.any(bottom > top + slack):
            raise Failed(
                f"A lower bound lies above the upper one.{for_this_case(reason)}",
                expected=expected,
                got=got,
                **shown,
            )
        results = np.asarray(within[name])
        outside = np.any(
            (results < bottom - slack) | (results > top + slack), axis=tuple(range(1, results.ndim))
        )
        if outside.any():
            first = int(outside.argmax())
            raise Failed(
                f"The bounds do not hold.{for_this_case(reason)}",
                got=got,
                shown=[
                    ("an input between", str(np.round(samples[name][first], 3).tolist())),
                    ("gives", str(np.round(results[first], 3).tolist())),
                ],
                **shown,
            )
        if np.any(top - bottom > np.asarray(expected[1]) - np.asarray(expected[0]) + 3 * slack):
            raise Failed(
                "The bounds hold, but they are wider than they need to be: each rule should give the narrowest pair that "
                "holds for its own inputs.",
                expected=expected,
                got=got,
                **shown,
            )  # fmt: skip
    with checks.says(
        "It happens with jnp.sin(x). `sin` rises and falls, and ends alone do not bound it: what is not known must not be guessed."
    ):
        refuses(lambda low, high: bounds(jnp.sin, low, high), *three)
    _two_unknown(bounds, low, high)


def _two_unknown(bounds, low, high):
    """A product of which neither input is known may be refused; bounds of it have to hold."""
    shown = {"input": f"jnp.dot(x, x), low = {np.asarray(low).tolist()}, high = {np.asarray(high).tolist()}"}
    try:
        bottom, top = map(np.asarray, bounds(lambda x: jnp.dot(x, x), low, high))
    except NotAttempted:
        return
    except Failed as failure:
        if isinstance(getattr(failure, "error", None), NotImplementedError):
            return
        failure.say_first("It happens with jnp.dot(x, x).")
        raise
    ends = np.asarray([low, high], np.float64)
    if bottom.shape or top.shape or bottom > 0.3126 or top < (ends**2).max(axis=0).sum() - 1e-3:
        raise Failed(
            "The bounds do not hold, since neither input of this `dot_general` is known exactly: raise `NotImplementedError`.",
            got=(bottom, top),
            **shown,
        )


def _samples(draw, low, high):
    """Inputs in between: corners (all of a small box, and those that make a column of `_SIGNS` extreme), random ones."""
    low, high = np.asarray(low), np.asarray(high)
    if low.size <= 4:
        up = np.array(list(np.ndindex(*[2] * low.size)), bool)
    else:
        up = np.concatenate([_SIGNS.T > 0, _SIGNS.T < 0, [np.ones(low.size, bool), np.zeros(low.size, bool)]])
    at = np.concatenate([up, draw.uniform(size=(12, low.size))]).astype(np.float32)
    return low + at * (high - low)


exercise = Exercise(
    title="Bounds that hold for every input between",
    stars=3,
    minutes=30,
    why="No sample can prove what an interval proves; networks are certified against small changes in this way.",
    hints=(
        "The loop of `evaluate`, with a pair (low, high) for each variable. A literal or constant c is (c, c).",
        "`add`, `max`, `exp`, `tanh`, `broadcast_in_dim` and `reshape` rise with each input: low ends to low ends, high to "
        "high. `neg` swaps them; `sub` is low minus high, and high minus low.",
        "`mul`: minimum and maximum of the four products of ends. Products of ends may differ in shape where one is a "
        "literal: `jnp.broadcast_arrays`.",
        "`dot_general`, with center c = (low + high) / 2 and radius r = (high - low) / 2 of each input: the center is "
        "c₁·c₂, and the radius |c₁|·r₂ + r₁·|c₂| + r₁·r₂.",
    ),
    solution=solution,
    check=check,
)
