"""Run a function backwards."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import core

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import guard
from mlax_tutorial.checking.outcome import NotAttempted
from mlax_tutorial.checking.programs import fresh
from mlax_tutorial.exercises.transformations._cases import for_this_case, refused, refuses


def solution(function):
    one = {"neg": jnp.negative, "exp": jnp.log, "log": jnp.exp, "tanh": jnp.arctanh}
    first = {  # the first input is unknown, the second is c
        "add": lambda y, c: y - c,
        "sub": lambda y, c: y + c,
        "mul": lambda y, c: y / c,
        "div": lambda y, c: y * c,
    }
    second = first | {"sub": lambda y, c: c - y, "div": lambda y, c: c / y}

    def inverted(y):
        program = jax.make_jaxpr(function)(y)
        jaxpr = program.jaxpr
        known = dict(zip(jaxpr.constvars, program.consts, strict=True))

        def value(atom):  # None if it depends on the argument
            return atom.val if isinstance(atom, core.Literal) else known.get(atom)

        for equation in jaxpr.eqns:  # forwards: what does not depend on the argument
            inputs = [value(atom) for atom in equation.invars]
            if all(x is not None for x in inputs):
                outputs = equation.primitive.bind(*inputs, **equation.params)
                outputs = outputs if equation.primitive.multiple_results else [outputs]
                known.update(zip(equation.outvars, outputs, strict=True))

        wanted, result = jaxpr.outvars[0], y
        for equation in reversed(jaxpr.eqns):  # backwards: from the result to the argument
            if wanted not in equation.outvars:
                continue
            name, inputs = equation.primitive.name, equation.invars
            unknown = [i for i, atom in enumerate(inputs) if value(atom) is None]
            if unknown == [0] and len(inputs) == 1 and name in one:
                result = one[name](result)
            elif unknown == [0] and name in first:
                result = first[name](result, value(inputs[1]))
            elif unknown == [1] and name in second:
                result = second[name](result, value(inputs[0]))
            else:
                raise NotImplementedError(f"cannot undo {name}")
            wanted = inputs[unknown[0]]
        return result

    return inverted


def check(inverse):
    numbers = np.float32([[0.25, -0.5, 1.5], [0.25, 0.5, 1.5], [2.0, -4.0, 0.5], [1.0, 0.0, -1.0]])
    x, positive, outside, shift = jax.device_put(list(numbers))
    large = jax.device_put(np.float32([1e5, -3e5, 7e6]))  # too large for float16
    several = "The last operation is undone first. Go through `jaxpr.eqns` from the end."
    from_outside = "Arrays found outside stand in `program.consts`, for the variables `jaxpr.constvars`."
    computed = (
        "The factor is computed from constants, by an equation of its own. It does not depend on the argument, so "
        "compute it, forwards, before you go backwards."
    )
    swapped = {
        "2 - x": "The unknown is the *second* input of `sub`: from y = 2 - x follows x = 2 - y.",
        "3 / x": "The unknown is the *second* input of `div`: from y = 3 / x follows x = 3 / y.",
    }
    cases = {
        "jnp.exp(x)": (jnp.exp, x, ""),
        "jnp.log(x)": (jnp.log, positive, ""),
        "jnp.tanh(x)": (jnp.tanh, x, "What undoes `tanh` is `jnp.arctanh`."),
        "-x": (lambda x: -x, x, ""),
        "x + 2": (lambda x: x + 2, x, "From y = x + 2 follows x = y - 2."),
        "x - 2": (lambda x: x - 2, x, "From y = x - 2 follows x = y + 2."),
        "x * 4": (lambda x: x * 4, x, "From y = x * 4 follows x = y / 4."),
        "x / 4": (lambda x: x / 4, large, "From y = x / 4 follows x = y * 4."),
        "4 * x": (lambda x: 4 * x, x, "The unknown may be the second input as well."),
        "2 - x": (lambda x: 2 - x, x, swapped["2 - x"]),
        "3 / x": (lambda x: 3 / x, x, swapped["3 / x"]),
        "2 * x + 1": (lambda x: 2 * x + 1, x, several),
        "jnp.log(jnp.exp(x) / 2 + 1)": (lambda x: jnp.log(jnp.exp(x) / 2 + 1), x, several),
        "x": (lambda x: x, x, "A function without equations returns its argument."),
        "x * w + b, with arrays w and b from outside": (lambda x: x * outside + shift, x, from_outside),
        "x / w, with an array w from outside": (lambda x: x / large, x, from_outside),
        "1 - jnp.tanh(-x / 4) * 3": (lambda x: 1 - jnp.tanh(-x / 4) * 3, x, several),
        "x * jnp.exp(b), with an array b from outside": (lambda x: x * jnp.exp(shift), x, computed),
        "jnp.exp(x) - jnp.tanh(b) * b, with an array b from outside": (
            lambda x: jnp.exp(x) - jnp.tanh(shift) * shift,
            x,
            computed,
        ),
    }
    values = jax.jit(lambda: {name: function(x) for name, (function, x, _) in cases.items()})()
    for name, (function, argument, reason) in cases.items():
        y = values[name]
        shown = {"input": f"function: {name}, y = function(x) with x = {np.asarray(argument).tolist()}"}
        here = f"It happens with {name}.{for_this_case(reason)}"
        try:
            with checks.says(here):
                inverted = checks.returned(inverse(fresh(function)))
                if not callable(inverted):
                    raise Failed("`inverse` takes a function and returns a function; the call comes later.")
                got = guard(inverted, "inverse")(y)
        except NotAttempted:
            raise Failed(refused(name, reason)) from None
        if isinstance(got, (list, tuple)) and len(got) == 1:
            raise Failed("The array itself is asked for, not a list that holds it.", got=got, **shown)
        if got is None:
            raise Failed("What `inverse` returns, when it is called, returns None.", **shown)
        if name == "jnp.exp(x)" and not checks.agrees(got, argument):
            for wrong, advice in (
                (function(y), "The function is applied to y once more."),
                (1 / function(y), "This is one divided by the function: a reciprocal, not the inverse."),
                (1 / y, "This is one divided by y: a reciprocal, not the inverse."),
            ):
                if checks.agrees(got, wrong):
                    raise Failed(advice, expected=argument, got=got, **shown)
        if not checks.agrees(got, y) or name == "x":
            with checks.says(here):
                checks.same(got, argument, rtol=1e-3, atol=1e-4, **shown)
            continue
        raise Failed(
            f"It happens with {name}: nothing is undone.{for_this_case(reason)}",
            expected=argument,
            got=got,
            **shown,
        )

    y = jax.device_put(np.full(3, 0.5, np.float32))
    for name, function in {"jnp.sin(x)": jnp.sin, "x * x": lambda x: x * x}.items():
        call = guard(inverse(fresh(function)), "inverse")
        more = " Both inputs are unknown: neither can be found from the other." if "*" in name else ""
        with checks.says(f"It happens with {name}.{more}"):
            refuses(call, y)


exercise = Exercise(
    title="Run a function backwards",
    stars=2,
    minutes=20,
    why="A program is data: it can be read from its end. Normalizing flows and reversible layers live on it.",
    hints=(
        "Two loops. Forwards: compute every equation whose inputs are all known. Backwards: follow the one unknown "
        "from `jaxpr.outvars[0]` to the argument.",
        "A table of functions for the first input (`'sub': lambda y, c: y + c`), and another for the second "
        "(`'sub': lambda y, c: c - y`).",
        "A literal has `.val`; the values of `jaxpr.constvars` are `program.consts`. Count the unknown inputs: "
        "none or two cannot be undone.",
    ),
    solution=solution,
    check=check,
)
