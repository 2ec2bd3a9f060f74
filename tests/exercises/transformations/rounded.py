"""Answers to the exercise transformations.rounded."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend import core

from mlax_tutorial.exercises.transformations.rounded import _to_bfloat16, exercise, solution
from mlax_tutorial.inspection import jaxprs
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("Nothing is rounded")(lambda function: lambda *args: function(*args))


@answers.wrong("The result is rounded, too")
def results(function):
    def rule(bind, left, right, **params):
        return _to_bfloat16(bind(_to_bfloat16(left), _to_bfloat16(right), **params))

    return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})


def rounding_by(rounding, names=("dot_general", "conv_general_dilated"), spare=True):
    """Wrong answers: another rounding, other primitives."""

    def wrong(function):
        def rule(bind, left, right, **params):
            if not (spare and jaxprs.asks_for_highest(params.get("precision"))):
                left, right = rounding(left, right)
            return bind(left, right, **params)

        return jaxprs.interpret(function, dict.fromkeys(names, rule))

    return wrong


answers.wrong("Only the first input")(rounding_by(lambda x, y: (_to_bfloat16(x), y)))


def both(rounding):
    return lambda left, right: (rounding(left), rounding(right))


def cut_off(x):
    if x.dtype != jnp.float32:
        return x
    bits = lax.bitcast_convert_type(x, jnp.uint32) & jnp.uint32(0xFFFF0000)
    return lax.bitcast_convert_type(bits, jnp.float32)


answers.wrong("take the *nearest* number")(rounding_by(both(cut_off)))
answers.wrong("Products of elements stay")(
    rounding_by(both(_to_bfloat16), ("dot_general", "conv_general_dilated", "mul"))
)


@answers.wrong("added up in bfloat16")
def left_in_bfloat16(function):
    def rule(bind, left, right, **params):
        if jaxprs.asks_for_highest(params["precision"]):
            return bind(left, right, **params)
        return bind(left.astype(jnp.bfloat16), right.astype(jnp.bfloat16), **params).astype(left.dtype)

    return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})


@answers.wrong("not those of each product")
def arguments(function):
    return lambda *args: rounding_by(lambda x, y: (x, y))(function)(*jax.tree.map(_to_bfloat16, args))


@answers.wrong("Inside, nothing is rounded")
def outside(function):
    def interpreted(*args):
        program, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        values = dict(zip(program.jaxpr.constvars, program.consts, strict=True))
        values.update(zip(program.jaxpr.invars, jax.tree.leaves(args), strict=True))
        for equation in program.jaxpr.eqns:
            ins = [atom.val if isinstance(atom, core.Literal) else values[atom] for atom in equation.invars]
            if equation.primitive.name == "dot_general":
                ins = [_to_bfloat16(x) for x in ins]
            outs = equation.primitive.bind(*ins, **equation.params)
            outs = outs if equation.primitive.multiple_results else [outs]
            values.update(zip(equation.outvars, outs, strict=True))
        leaves = [values[variable] for variable in program.jaxpr.outvars]
        return jax.tree.unflatten(jax.tree.structure(shapes), leaves)

    return interpreted


answers.wrong("Convolutions are products as well")(rounding_by(both(_to_bfloat16), ("dot_general",)))
answers.wrong("a TPU grants it")(rounding_by(both(_to_bfloat16), spare=False))
answers.wrong("It happens with a product of whole numbers")(
    rounding_by(both(lambda x: lax.reduce_precision(x, 8, 7)))
)


@answers.wrong("takes a function and returns a function")
def called(function):
    return solution(function)(jnp.ones((3, 4)), jnp.ones((4, 4)))


@answers.wrong("`return` missing")
def no_return(function):
    solution(function)


def where_float32(counts):
    """Wrong answers: the products are rounded that ``counts`` finds, by their precision and their inputs."""

    def wrong(function):
        def rule(bind, left, right, **params):
            if counts(params["precision"], left, right):
                left, right = _to_bfloat16(left), _to_bfloat16(right)
            return bind(left, right, **params)

        return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})

    return wrong


answers.wrong("A product that names a precision")(where_float32(lambda precision, *_: precision is None))
answers.wrong("of a float32 and a bfloat16 array")(
    where_float32(
        lambda precision, left, right: (
            not jaxprs.asks_for_highest(precision) and left.dtype == right.dtype == jnp.float32
        )
    )
)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def the_package_does_it(function):
    return jaxprs.round_products(function)


@answers.right
def by_casts_there_and_back(function):
    def rule(bind, *inputs, **params):
        if not jaxprs.asks_for_highest(params["precision"]):
            inputs = [x.astype(jnp.bfloat16).astype(x.dtype) if x.dtype == jnp.float32 else x for x in inputs]
        return bind(*inputs, **params)

    rules = {name: rule for name in ("dot_general", "conv_general_dilated")}
    return jax.jit(jaxprs.interpret(function, rules))


@answers.right
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


@answers.right
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


@answers.wrong()
def in_float16(function):
    def rule(bind, left, right, **params):
        return bind(lax.reduce_precision(left, 5, 10), lax.reduce_precision(right, 5, 10), **params)

    return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})


@answers.wrong()
def by_the_default_precision(function):  # which changes nothing on a CPU
    def low(*args):
        with jax.default_matmul_precision("bfloat16"):
            return function(*args)

    return low


@answers.wrong()
def gradient_of_what_is_rounded(function):  # right, but for what is not a product
    return solution(lambda *args: jax.tree.map(lambda x: lax.reduce_precision(x, 8, 7), function(*args)))  # fmt: skip
