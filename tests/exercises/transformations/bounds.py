"""Answers to the exercise transformations.bounds."""

import functools

import jax
import jax.numpy as jnp
from jax.extend import core

from mlax_tutorial.exercises.transformations.bounds import bounds_after, exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("Where the function falls, the ends change places")
def of_ends(function, low, high):
    return function(low), function(high)


@answers.wrong("the low end goes to the low end")
def swapped(function, low, high):
    return solution(function, low, high)[::-1]


def by(**rules):
    """Wrong answers: the solution with other rules for some primitives."""

    def after(equation, intervals):
        name, params = equation.primitive.name, equation.params
        lows, highs = zip(*intervals, strict=True)

        def bind(*inputs):
            return equation.primitive.bind(*map(jnp.asarray, inputs), **params)

        if name in rules:
            return [rules[name](bind, lows, highs)]
        inner = params.get("jaxpr", params.get("call_jaxpr"))
        return run(inner, intervals) if inner is not None else bounds_after(equation, intervals)

    def run(program, inputs):
        jaxpr = program.jaxpr
        known = {v: (c, c) for v, c in zip(jaxpr.constvars, program.consts, strict=True)}
        known.update(zip(jaxpr.invars, inputs, strict=True))
        read = lambda a: (a.val, a.val) if isinstance(a, core.Literal) else known[a]  # noqa: E731
        for equation in jaxpr.eqns:
            known.update(
                zip(equation.outvars, after(equation, [read(a) for a in equation.invars]), strict=True)
            )
        return [read(a) for a in jaxpr.outvars]

    def wrong(function, low, high):
        return run(jax.make_jaxpr(function)(low), [(low, high)])[0]

    return wrong


def ends(bind, lows, highs):
    return bind(*lows), bind(*highs)


answers.wrong("the lowest of the first minus the highest of the second")(by(sub=ends))
answers.wrong("each end with each")(by(mul=ends))


def sorted_ends(bind, lows, highs):
    one, two = bind(*lows), bind(*highs)
    return jnp.minimum(one, two), jnp.maximum(one, two)


answers.wrong("each end with each")(by(mul=sorted_ends))


@answers.wrong("each end with each")
def bounds_sorted(function, low, high):
    one, two = function(low), function(high)
    return jnp.minimum(one, two), jnp.maximum(one, two)


def three_products(bind, lows, highs):
    (a, c), (b, d) = lows, highs
    products = jnp.stack([bind(a, c), bind(a, d), bind(b, d)])
    return products.min(axis=0), products.max(axis=0)


answers.wrong("each end with each")(by(mul=three_products))


def loose(bind, lows, highs):
    size = bind(
        *[
            jnp.maximum(jnp.abs(jnp.asarray(low)), jnp.abs(jnp.asarray(high)))
            for low, high in zip(lows, highs, strict=True)
        ]
    )
    return -size, size


answers.wrong("wider than they need to be")(by(mul=loose))
answers.wrong("A column of the matrix may hold both signs")(by(dot_general=sorted_ends))


def plain_radius(bind, lows, highs):
    centres = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    radii = [(high - low) / 2 for low, high in zip(lows, highs, strict=True)]
    centre = bind(*centres)
    radius = abs(bind(centres[0], radii[1]) + bind(radii[0], centres[1]))
    return centre - radius, centre + radius


answers.wrong("A column of the matrix may hold both signs")(by(dot_general=plain_radius))


def takes_one_for_known(bind, lows, highs):
    first = bool(jnp.all(jnp.asarray(lows[0]) == highs[0]))
    known, low, high = (lows[0], lows[1], highs[1]) if first else (lows[1], lows[0], highs[0])
    product = lambda a, b: bind(a, b) if first else bind(b, a)  # noqa: E731
    centre, radius = product(known, (low + high) / 2), product(abs(known), (high - low) / 2)
    return centre - radius, centre + radius


answers.wrong("neither input of this `dot_general` is known exactly")(by(dot_general=takes_one_for_known))


@answers.wrong("A column of the matrix may hold both signs")
def sampled(function, low, high):
    steps = jnp.linspace(0, 1, 101).reshape(-1, *[1] * low.ndim)
    points = low + steps * (high - low)
    random = low + jax.random.uniform(jax.random.key(0), (200, *low.shape)) * (high - low)
    results = jax.vmap(function)(jnp.concatenate([points, random, jnp.stack([low, high])]))
    return results.min(axis=0), results.max(axis=0)


answers.wrong("must not be guessed")(by(sin=sorted_ends))


def without(primitive):
    def refuse(bind, lows, highs):
        raise NotImplementedError(primitive)

    return by(**{primitive: refuse})


answers.wrong("It happens with x as a column")(without("reshape"))
answers.wrong("It happens with x twice")(without("broadcast_in_dim"))


@answers.wrong("your code raises `NotImplementedError`")
def exp_only(function, low, high):
    for equation in jax.make_jaxpr(function)(low).jaxpr.eqns:
        if equation.primitive.name != "exp":
            raise NotImplementedError
        low, high = jnp.exp(low), jnp.exp(high)
    return low, high


@answers.wrong("A pair is asked for")
def width(function, low, high):
    bottom, top = solution(function, low, high)
    return top - bottom


@answers.wrong("bounds have the shape ()")
def total(function, low, high):
    bottom, top = solution(function, low, high)
    return bottom.min(), top.max()


@answers.wrong("`return` missing")
def no_return(function, low, high):
    solution(function, low, high)


# Right ones of unusual style, and wrong ones that look right


def _merge(rule):
    """A way to write it with a class: an interval that knows its arithmetic."""

    class Interval:
        def __init__(self, low, high):
            self.low, self.high = jnp.asarray(low), jnp.asarray(high)

    def bounds(function, low, high):
        closed = jax.make_jaxpr(function)(high)

        def run(closed, inputs):
            known = {v: Interval(c, c) for v, c in zip(closed.jaxpr.constvars, closed.consts, strict=True)}
            known.update(zip(closed.jaxpr.invars, inputs, strict=True))
            read = lambda a: Interval(a.val, a.val) if isinstance(a, core.Literal) else known[a]  # noqa: E731
            for e in closed.jaxpr.eqns:
                inner = e.params.get("jaxpr", e.params.get("call_jaxpr"))
                inputs = [read(a) for a in e.invars]
                outputs = run(inner, inputs) if inner is not None else [Interval(*rule(e, inputs))]
                known.update(zip(e.outvars, outputs, strict=True))
            return [read(a) for a in closed.jaxpr.outvars]

        (result,) = run(closed, [Interval(low, high)])
        return [result.low, result.high]

    return bounds


def _by_signs(equation, inputs):
    bind = functools.partial(equation.primitive.bind, **equation.params)
    lows, highs = [x.low for x in inputs], [x.high for x in inputs]
    match equation.primitive.name:
        case "exp" | "tanh" | "max" | "add" | "reshape" | "broadcast_in_dim":
            return bind(*lows), bind(*highs)
        case "neg":
            return bind(*highs), bind(*lows)
        case "sub":
            return lows[0] - highs[1], highs[0] - lows[1]
        case "mul":
            (a, b), (c, d) = zip(lows, highs, strict=True)
            products = [a * c, a * d, b * c, b * d]
            return functools.reduce(jnp.minimum, products), functools.reduce(jnp.maximum, products)
        case "dot_general":  # the known one in its positive and its negative part
            known = [bool(jnp.all(jnp.asarray(low) == high)) for low, high in zip(lows, highs, strict=True)]
            if not any(known):
                raise NotImplementedError("neither input is known")
            place = known.index(True)
            w = lows[place]
            plus, minus = jnp.maximum(w, 0), jnp.minimum(w, 0)
            other, rest = (lows[1 - place], highs[1 - place])
            both = lambda w, x: bind(w, x) if place == 0 else bind(x, w)  # noqa: E731
            return both(plus, other) + both(minus, rest), both(plus, rest) + both(minus, other)
    raise NotImplementedError(equation.primitive.name)


answers.right(_merge(_by_signs))
answers.right(lambda function, low, high: list(solution(function, low, high)))


@answers.wrong()
def by_all_corners(function, low, high):  # a product of falling and rising has its extremes inside
    corners = [low, high, *(jnp.where(jnp.arange(low.size) == i, low, high) for i in range(low.size))]
    results = jnp.stack([function(x) for x in corners])
    return results.min(axis=0), results.max(axis=0)


@answers.wrong()
def by_the_slope(function, low, high):  # first order: right for straight functions
    centre, radius = (low + high) / 2, (high - low) / 2
    slope = jnp.abs(jax.jacobian(function)(centre)) @ radius
    return function(centre) - slope, function(centre) + slope


@answers.wrong()
def infinite(function, low, high):
    y = function(low)
    return jnp.full_like(y, -jnp.inf), jnp.full_like(y, jnp.inf)


@answers.right
def bounds_or_a_bare_refusal(function, low, high):
    try:
        return solution(function, low, high)
    except NotImplementedError:
        pass
    raise NotImplementedError


@answers.wrong("A bound is NaN.")
def zero_by_zero(function, low, high):
    bottom, top = solution(function, low, high)
    return bottom * (top - bottom) / (top - bottom), top


@answers.wrong()
def a_little_too_tight(function, low, high):
    bottom, top = solution(function, low, high)
    return bottom + 2e-4, top - 2e-4


def constants_alone(inner):
    """The matrix must be a constant of its program; with `inner`, inputs of inner programs count as well."""

    def run(closed, inputs, fixed):
        jaxpr = closed.jaxpr
        values = {v: (c, c) for v, c in zip(jaxpr.constvars, closed.consts, strict=True)}
        values.update(zip(jaxpr.invars, inputs, strict=True))
        constants = {
            *jaxpr.constvars,
            *(v for v, is_fixed in zip(jaxpr.invars, fixed, strict=True) if is_fixed),
        }
        read = lambda a: (a.val, a.val) if isinstance(a, core.Literal) else values[a]  # noqa: E731
        for e in jaxpr.eqns:
            is_fixed = [isinstance(a, core.Literal) or a in constants for a in e.invars]
            given, program = [read(a) for a in e.invars], e.params.get("jaxpr", e.params.get("call_jaxpr"))
            if e.primitive.name == "dot_general" and not any(is_fixed):
                raise NotImplementedError("neither is a constant")
            if program is not None:
                results = run(program, given, is_fixed if inner else [False] * len(given))
            else:
                results = bounds_after(e, given)
            values.update(zip(e.outvars, results, strict=True))
        return [read(a) for a in jaxpr.outvars]

    return lambda function, low, high: run(jax.make_jaxpr(function)(low), [(low, high)], [False])[0]


answers.wrong("A matrix that is computed from constants is known")(constants_alone(inner=False))
answers.wrong("A matrix that is computed from constants is known")(constants_alone(inner=True))
