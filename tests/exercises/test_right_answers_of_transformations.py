"""Right answers of unusual style to the exercises of Your own transformation pass; wrong ones that look right do not."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from mlax_tutorial.exercises import transformations
from mlax_tutorial.inspection import jaxprs
from tests.exercises.right_answers import FAILED, PASSED, Answers

right, wrong = Answers(PASSED), Answers(FAILED)

# reached

right(transformations.reached)({name: np.int64(n) for name, n in transformations.reached.answer.items()})
wrong(transformations.reached)(dict.fromkeys(transformations.reached.answer, 1))
wrong(transformations.reached)({name: str(n) for name, n in transformations.reached.answer.items()})

# rounded


@right(transformations.rounded)
def the_package_does_it(function):
    return jaxprs.round_products(function)


@right(transformations.rounded)
def by_casts_there_and_back(function):
    def rule(bind, *inputs, **params):
        if not jaxprs.asks_for_highest(params["precision"]):
            inputs = [x.astype(jnp.bfloat16).astype(x.dtype) if x.dtype == jnp.float32 else x for x in inputs]
        return bind(*inputs, **params)

    rules = {name: rule for name in ("dot_general", "conv_general_dilated")}
    return jax.jit(jaxprs.interpret(function, rules))


@right(transformations.rounded)
def by_bits(function):
    def nearest(x):
        if x.dtype != jnp.float32:
            return x
        bits = lax.bitcast_convert_type(x, jnp.uint32)
        even = (bits >> 16) & 1
        return lax.bitcast_convert_type((bits + 0x7FFF + even) & jnp.uint32(0xFFFF0000), jnp.float32)

    def rule(bind, left, right, precision, **params):
        if not jaxprs.asks_for_highest(precision):
            left, right = nearest(left), nearest(right)
        return bind(left, right, precision=precision, **params)

    return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})


@right(transformations.rounded)
def with_the_chapters_interpreter(function):
    """The forty lines of the chapter, and a rule."""

    def rule(bind, *inputs, **params):
        if not jaxprs.asks_for_highest(params["precision"]):
            inputs = [lax.reduce_precision(x, 8, 7) if x.dtype == jnp.float32 else x for x in inputs]
        return bind(*inputs, **params)

    rules = {"dot_general": rule, "conv_general_dilated": rule}

    def run(program, inputs):
        values = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
        values.update(zip(program.jaxpr.invars, inputs, strict=True))
        read = lambda atom: atom.val if isinstance(atom, core.Literal) else values[atom]  # noqa: E731
        for equation in program.jaxpr.eqns:
            values.update(zip(equation.outvars, apply(equation, map(read, equation.invars)), strict=True))
        return [read(atom) for atom in program.jaxpr.outvars]

    def apply(equation, inputs):
        primitive, params = equation.primitive, equation.params
        if "call_jaxpr" in params:
            return run(params["call_jaxpr"], inputs)
        params = {name: rewrite(value) for name, value in params.items()}
        bind = (
            functools.partial(rules[primitive.name], primitive.bind)
            if primitive.name in rules
            else primitive.bind
        )
        outputs = bind(*inputs, **params)
        return outputs if primitive.multiple_results else [outputs]

    def rewrite(value):
        if isinstance(value, core.ClosedJaxpr):
            types = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in value.jaxpr.invars]
            return jax.make_jaxpr(lambda *inputs: run(value, inputs))(*types)
        return tuple(map(rewrite, value)) if type(value) is tuple else value

    def interpreted(*args):
        program, out = jax.make_jaxpr(function, return_shape=True)(*args)
        return jax.tree.unflatten(jax.tree.structure(out), run(program, jax.tree.leaves(args)))

    return interpreted


@wrong(transformations.rounded)
def in_float16(function):
    def rule(bind, left, right, **params):
        return bind(lax.reduce_precision(left, 5, 10), lax.reduce_precision(right, 5, 10), **params)

    return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})


@wrong(transformations.rounded)
def by_the_default_precision(function):  # which changes nothing on a CPU
    def low(*args):
        with jax.default_matmul_precision("bfloat16"):
            return function(*args)

    return low


@wrong(transformations.rounded)
def gradient_of_what_is_rounded(function):  # right, but for what is not a product
    return transformations.rounded.answer(lambda *args: jax.tree.map(lambda x: lax.reduce_precision(x, 8, 7), function(*args)))  # fmt: skip


# inverse


@right(transformations.inverse)
def by_recursion(function):
    def invert(y):
        closed = jax.make_jaxpr(function)(y)
        made_by = {e.outvars[0]: e for e in closed.jaxpr.eqns}
        constants = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
        (argument,) = closed.jaxpr.invars

        def depends(atom):
            if isinstance(atom, core.Literal) or atom in constants:
                return False
            return atom is argument or any(map(depends, made_by[atom].invars))

        def value(atom):
            if isinstance(atom, core.Literal):
                return jnp.asarray(atom.val)
            if atom in constants:
                return constants[atom]
            equation = made_by[atom]
            return equation.primitive.bind(*map(value, equation.invars), **equation.params)

        def back(atom, y):
            if atom is argument:
                return y
            equation = made_by[atom]
            match equation.primitive.name, [depends(a) for a in equation.invars]:
                case "exp", _:
                    x, place = jnp.log(y), 0
                case "log", _:
                    x, place = jnp.exp(y), 0
                case "tanh", _:
                    x, place = 0.5 * jnp.log((1 + y) / (1 - y)), 0
                case "neg", _:
                    x, place = -y, 0
                case "add", [True, False]:
                    x, place = y - value(equation.invars[1]), 0
                case "add", [False, True]:
                    x, place = y - value(equation.invars[0]), 1
                case "sub", [True, False]:
                    x, place = y + value(equation.invars[1]), 0
                case "sub", [False, True]:
                    x, place = value(equation.invars[0]) - y, 1
                case "mul", [True, False]:
                    x, place = y / value(equation.invars[1]), 0
                case "mul", [False, True]:
                    x, place = y / value(equation.invars[0]), 1
                case "div", [True, False]:
                    x, place = y * value(equation.invars[1]), 0
                case "div", [False, True]:
                    x, place = value(equation.invars[0]) / y, 1
                case other:
                    raise NotImplementedError(other)
            return back(equation.invars[place], x)

        return back(closed.jaxpr.outvars[0], y)

    return invert


@right(transformations.inverse)
def jitted(function):
    return jax.jit(transformations.inverse.answer(function))


@wrong(transformations.inverse)
def by_newtons_method(function):  # finds some of them, undoes sin and x * x, which it should refuse
    def inverted(y):
        x = y
        for _ in range(20):
            value, slope = jax.jvp(function, (x,), (jnp.ones_like(x),))
            x = x - (value - y) / slope
        return x

    return inverted


@wrong(transformations.inverse)
def squares_are_halved(function):
    def inverted(y):
        names = [e.primitive.name for e in jax.make_jaxpr(function)(y).jaxpr.eqns]
        return jnp.sqrt(y) if names == ["mul"] and "x * x" in str(function) else transformations.inverse.answer(function)(y * 1.01)  # fmt: skip

    return inverted


@right(transformations.inverse)
def refusing_without_a_word(function):
    def back(y):
        try:
            return transformations.inverse.answer(function)(y)
        except NotImplementedError:
            pass
        raise NotImplementedError

    return back


# bounds


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
            place = 0 if lows[0] is highs[0] or bool(jnp.all(lows[0] == highs[0])) else 1
            w = lows[place]
            plus, minus = jnp.maximum(w, 0), jnp.minimum(w, 0)
            other, rest = (lows[1 - place], highs[1 - place])
            both = lambda w, x: bind(w, x) if place == 0 else bind(x, w)  # noqa: E731
            return both(plus, other) + both(minus, rest), both(plus, rest) + both(minus, other)
    raise NotImplementedError(equation.primitive.name)


right(transformations.bounds)(_merge(_by_signs))
right(transformations.bounds)(
    lambda function, low, high: list(transformations.bounds.answer(function, low, high))
)


@wrong(transformations.bounds)
def by_all_corners(function, low, high):  # a product of falling and rising has its extremes inside
    corners = [low, high, *(jnp.where(jnp.arange(low.size) == i, low, high) for i in range(low.size))]
    results = jnp.stack([function(x) for x in corners])
    return results.min(axis=0), results.max(axis=0)


@wrong(transformations.bounds)
def by_the_slope(function, low, high):  # first order: right for straight functions
    centre, radius = (low + high) / 2, (high - low) / 2
    slope = jnp.abs(jax.jacobian(function)(centre)) @ radius
    return function(centre) - slope, function(centre) + slope


@wrong(transformations.bounds)
def infinite(function, low, high):
    y = function(low)
    return jnp.full_like(y, -jnp.inf), jnp.full_like(y, jnp.inf)


@right(transformations.bounds)
def bounds_or_a_bare_refusal(function, low, high):
    try:
        return transformations.bounds.answer(function, low, high)
    except NotImplementedError:
        pass
    raise NotImplementedError


@wrong(transformations.bounds)
def a_little_too_tight(function, low, high):
    bottom, top = transformations.bounds.answer(function, low, high)
    return bottom + 2e-4, top - 2e-4


# clean


@right(transformations.clean)
def all_of_x(x):
    n, d = x.shape
    ages = jnp.arange(n, dtype=x.dtype) / n
    return jnp.maximum(x * jnp.exp(-ages)[:, None] * d**-0.5, 0)


@right(transformations.clean)
@jax.jit
def by_vmap(x):
    n, d = x.shape
    weights = jnp.array([math.exp(-i / n) / math.sqrt(d) for i in range(n)], x.dtype)
    return jax.vmap(lambda row, weight: jax.nn.relu(row * weight))(x, weights)


@wrong(transformations.clean)
def in_float32_behind_a_jit(x):
    return jax.jit(lambda x: transformations.clean.mistakes[0].answer(x))(x)


@wrong(transformations.clean)
def in_float32_row_by_row(x):
    n, d = x.shape
    rows = [jnp.float32(math.exp(-i / n) / math.sqrt(d)) * x[i] for i in range(n)]
    return jax.nn.relu(jnp.stack(rows)).astype(x.dtype)


# draws


@right(transformations.draws)
def with_paths(function, *args):
    def total(jaxpr, times=1):
        found = 0
        for equation in jaxpr.eqns:
            inside = [getattr(inner, "jaxpr", inner) for _, inner in jaxprs.subjaxprs(equation)]
            match equation.primitive.name:
                case "random_bits":
                    found += times * math.prod(equation.outvars[0].aval.shape)
                case "cond":
                    found += max(total(inner, times) for inner in inside)
                case "scan":
                    found += total(inside[0], times * equation.params["length"])
                case _:
                    found += sum(total(inner, times) for inner in inside)
        return found

    return total(jax.make_jaxpr(function)(*args).jaxpr)


@wrong(transformations.draws)
def by_walking(function, *args):
    jaxpr = jax.make_jaxpr(function)(*args)
    return sum(e.outvars[0].aval.size for _, e in jaxprs.walk(jaxpr) if e.primitive.name == "random_bits")


@wrong(transformations.draws)
def by_interpreting(function, *args):
    drawn = []

    def rule(bind, *inputs, **params):
        bits = bind(*inputs, **params)
        drawn.append(bits.size)
        return bits

    jax.eval_shape(jaxprs.interpret(function, {"random_bits": rule}), *args)
    return sum(drawn)


test_right_answers_pass, test_wrong_answers_fail = right.test(), wrong.test()
