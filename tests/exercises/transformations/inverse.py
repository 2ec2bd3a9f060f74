"""Answers to the exercise transformations.inverse."""

import jax
import jax.numpy as jnp
from jax.extend import core

from mlax_tutorial.exercises.transformations.inverse import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("applied to y once more")
def applies(function):
    return lambda y: function(y)


@answers.wrong("a reciprocal, not the inverse")
def reciprocal(function):
    return lambda y: 1 / function(y)


def by(one=None, first=None, second=None, forwards=True, order=reversed, refuse=True):
    """Wrong answers: with other tables, without the first loop, in the wrong order."""
    one = {"neg": jnp.negative, "exp": jnp.log, "log": jnp.exp, "tanh": jnp.arctanh} | (one or {})
    first = {
        "add": lambda y, c: y - c,
        "sub": lambda y, c: y + c,
        "mul": lambda y, c: y / c,
        "div": lambda y, c: y * c,
    } | (first or {})
    second = (first | {"sub": lambda y, c: c - y, "div": lambda y, c: c / y}) | (second or {})

    def wrong(function):
        def inverted(y):
            program = jax.make_jaxpr(function)(y)
            known = dict(zip(program.jaxpr.constvars, program.consts, strict=True))

            def value(atom):
                return atom.val if isinstance(atom, core.Literal) else known.get(atom)

            for equation in program.jaxpr.eqns if forwards else ():
                if all(value(atom) is not None for atom in equation.invars):
                    output = equation.primitive.bind(*map(value, equation.invars), **equation.params)
                    known[equation.outvars[0]] = output
            result = y
            for equation in order(program.jaxpr.eqns):
                name, inputs = equation.primitive.name, [value(atom) for atom in equation.invars]
                if equation.outvars[0] in known:
                    continue
                if name in one:
                    result = one[name](result)
                elif name in first and inputs[0] is None and inputs[1] is not None:
                    result = first[name](result, inputs[1])
                elif name in second and inputs[1] is None and inputs[0] is not None:
                    result = second[name](result, inputs[0])
                elif refuse:
                    raise NotImplementedError(name)
            return result

        return inverted

    return wrong


answers.wrong("`jnp.arctanh`")(by(one={"tanh": jnp.arctan}))
answers.wrong("follows x = y - 2")(by(first={"add": lambda y, c: y + c}))


def keep(y, c):
    return y


answers.wrong("The unknown may be the second input as well")(by(second={"mul": keep}))
answers.wrong("the *second* input of `sub`")(by(second={"sub": lambda y, c: y + c}))
answers.wrong("the *second* input of `div`")(by(second={"div": lambda y, c: y * c}))
answers.wrong("The last operation is undone first")(by(order=list))


@answers.wrong("`program.consts`")
def without_consts(function):
    def inverted(y):
        jaxpr, known, result = jax.make_jaxpr(function)(y).jaxpr, {}, y
        for equation in reversed(jaxpr.eqns):
            atoms = equation.invars
            values = [atom.val if isinstance(atom, core.Literal) else known.get(atom) for atom in atoms]
            name = equation.primitive.name
            if len(values) == 1:
                undo = {"neg": jnp.negative, "exp": jnp.log, "log": jnp.exp, "tanh": jnp.arctanh}
                result = undo[name](result)
            else:
                c = next(value for value in values if value is not None)
                result = {
                    "add": lambda y, c=c: y - c,
                    "sub": lambda y, c=c, left=values[0] is None: y + c if left else c - y,
                    "mul": lambda y, c=c: y / c,
                    "div": lambda y, c=c, left=values[0] is None: y * c if left else c / y,
                }[name](result)
        return result

    return inverted


answers.wrong("The factor is computed from constants")(by(forwards=False, refuse=False))
answers.wrong("must refuse")(by(refuse=False))


@answers.wrong("not a list that holds it")
def lists(function):
    return lambda y: [solution(function)(y)]


@answers.wrong("takes a function and returns a function")
def directly(function):
    return solution(function)(jnp.ones(3))


@answers.wrong("`return` missing")
def no_return(function):
    solution(function)


# Right ones of unusual style, and wrong ones that look right


@answers.right
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


@answers.right
def jitted(function):
    return jax.jit(solution(function))


@answers.wrong()
def by_newtons_method(function):  # finds some of them, undoes sin and x * x, which it should refuse
    def inverted(y):
        x = y
        for _ in range(20):
            value, slope = jax.jvp(function, (x,), (jnp.ones_like(x),))
            x = x - (value - y) / slope
        return x

    return inverted


@answers.wrong()
def squares_are_halved(function):
    def inverted(y):
        names = [e.primitive.name for e in jax.make_jaxpr(function)(y).jaxpr.eqns]
        return jnp.sqrt(y) if names == ["mul"] and "x * x" in str(function) else solution(function)(y * 1.01)  # fmt: skip

    return inverted


@answers.right
def refusing_without_a_word(function):
    def back(y):
        try:
            return solution(function)(y)
        except NotImplementedError:
            pass
        raise NotImplementedError

    return back


@answers.wrong("It happens with x / 4.")
def in_half_precision(function):
    return lambda y: solution(function)(y).astype(jnp.float16).astype(y.dtype)


answers.equivalent(
    "zip(jaxpr.constvars, program.consts, strict=True) -> zip(jaxpr.constvars, program.consts)",
    "zip(equation.outvars, outputs, strict=True) -> zip(equation.outvars, outputs)",
    because="there are as many values as variables",
)
answers.equivalent(
    "jaxpr.outvars[0] -> jaxpr.outvars[-1]",
    because="the function has one result",
)
answers.equivalent(
    "unknown[0] -> unknown[-1]",
    because="one input is unknown, or the equation was refused",
)
