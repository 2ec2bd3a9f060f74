"""The exercises of the chapter Your own transformation."""

import math
import numbers

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend import core

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks
from mlax_tutorial.checking.outcome import NotAttempted
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.checking.reader import guard
from mlax_tutorial.inspection import costs, jaxprs
from mlax_tutorial.inspection.dtypes import strays

# reached


def _ten_rounds(x):
    for _ in range(10):
        x = jnp.sin(x)
    return x


_REACHED = {
    "a": lambda x: jnp.sin(jnp.cos(jnp.sin(x))),
    "b": lambda x: math.sin(2.0) * x,
    "c": lambda x: jnp.sin(2.0) * x,
    "d": lambda x: lax.fori_loop(0, 10, lambda i, y: jnp.sin(y), x),
    "e": _ten_rounds,
    "f": lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x),
    "g": lambda x: jax.vmap(jnp.sin)(jnp.full(5, x)),
    "h": jax.grad(jnp.cos),
}
_reached = {"a": 2, "b": 0, "c": 1, "d": 1, "e": 10, "f": 1, "g": 1, "h": 1}


def _check_reached(given):
    def count(function):
        calls = []

        def rule(bind, x, **params):
            calls.append(x)
            return bind(x, **params)

        jaxprs.interpret(fresh(function), {"sin": rule})(1.0)
        return len(calls)

    expected = {name: count(function) for name, function in _REACHED.items()}
    each_equation = "The interpreter comes past each equation, and two of the three are `sin`."
    body_once = "The body of the loop is one program, recorded once, and rewritten once."
    why = {
        "a": {1: each_equation, 3: "The rule is for `sin`; `cos` is left as it is."},
        "b": {1: "`math.sin` is Python's: it computes a number while tracing, and leaves no equation."},
        "c": {0: "`jnp.sin` was asked for, so it is recorded, whatever its input is."},
        "d": {10: body_once, 0: "The body is a program inside an equation; the interpreter goes inside."},
        "e": {1: "A loop of Python is recorded round by round: as many equations as rounds."},
        "f": {
            0: "Both branches are programs inside the equation, and both are rewritten, taken or not.",
            2: "Both branches are rewritten, but only one of them holds a `sin`.",
        },
        "g": {5: "Mapped over five numbers, `sin` is one equation on an array of five."},
        "h": {
            0: "The slope of the cosine is minus the sine, and the program of the gradient computes it.",
            2: "There is one `sin` in the program of the gradient, and one `cos`.",
        },
    }
    checks.answers(given, expected, why)


reached = Exercise(
    title="How often is the rule called?",
    stars=1,
    minutes=5,
    why="A rule runs once for each equation it replaces, while the program is rewritten: loops and batches do not count.",
    hints=(
        "Print the jaxpr of each, and count the equations that say `sin`, inner programs included.",
        "Python's own functions and loops run while tracing. `fori_loop` and `vmap` record one program for all rounds "
        "and all examples; `cond` records one for each branch.",
    ),
    solution=_reached,
    check=_check_reached,
    mistakes=(
        Mistake(_reached | {"a": 1}, says="two of the three are `sin`"),
        Mistake(_reached | {"b": 1}, says="`math.sin` is Python's"),
        Mistake(_reached | {"c": 0}, says="so it is recorded, whatever its input is"),
        Mistake(_reached | {"d": 10}, says="recorded once, and rewritten once"),
        Mistake(_reached | {"e": 1}, says="recorded round by round"),
        Mistake(_reached | {"f": 2}, says="only one of them holds a `sin`"),
        Mistake(_reached | {"f": 0}, says="taken or not"),
        Mistake(_reached | {"g": 5}, says="one equation on an array of five"),
        Mistake(_reached | {"h": 0}, says="minus the sine"),
        Mistake(list(_reached.values()), says="a dict is asked for"),
    ),
)


# rounded


def _rounded(function):
    def rule(bind, left, right, **params):
        if not jaxprs.asks_for_highest(params["precision"]):
            left, right = _to_bfloat16(left), _to_bfloat16(right)
        return bind(left, right, **params)

    return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})


def _to_bfloat16(x):
    return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7) if x.dtype == jnp.float32 else x


def _check_rounded(rounded):
    draw = np.random.default_rng(0)

    def random(*shape):
        return jnp.asarray(draw.normal(size=shape), jnp.float32)

    x, w, v = random(3, 4), random(4, 4), random(4, 2)
    images, kernels = random(1, 2, 6, 6), random(3, 2, 3, 3)

    def product(x, w):
        return x @ w

    def run(case, function, *arguments, why=()):
        """The reader's result of a case, compared with ours; or what is known to go wrong there."""
        with jax.default_matmul_precision(None):  # checks run at the highest precision: not here
            expected = _rounded(fresh(function))(*arguments)
            try:
                transformed = rounded(fresh(function))
                if transformed is None:
                    raise Failed("Your function returned None: is a `return` missing?")
                if not callable(transformed):
                    raise Failed(
                        "`rounded` takes a function and returns a function; the call comes later.",
                        got=transformed,
                    )
                got = guard(transformed, "rounded")(*arguments)
            except Failed as failure:
                if case:
                    failure.message = f"It happens with {case}.\n{failure.message}"
                raise
            for wrong, advice in why:
                alternative = wrong(*arguments)
                if _close(got, alternative) and not _close(expected, alternative):
                    raise Failed(advice, input=case, expected=expected, got=got)
        checks.same(got, expected, input=case or "a product", rtol=1e-4, atol=1e-5)

    def cut(x):
        bits = lax.bitcast_convert_type(x, jnp.uint32) & jnp.uint32(0xFFFF0000)
        return lax.bitcast_convert_type(bits, jnp.float32)

    low = _to_bfloat16
    run(
        "a product, x @ w",
        product,
        x,
        w,
        why=(
            (lambda x, w: x @ w, "Nothing is rounded."),
            (
                lambda x, w: low(low(x) @ low(w)),
                "The result is rounded, too. Products are added up in float32.",
            ),
            (lambda x, w: low(x @ w), "The result is rounded, and the inputs are not."),
            (lambda x, w: low(x) @ w, "Only the first input is rounded."),
            (lambda x, w: x @ low(w), "Only the second input is rounded."),
            (
                lambda x, w: cut(x) @ cut(w),
                "The bits behind the seventh are cut off. To round is to take the *nearest* number.",
            ),
            (
                lambda x, w: (x.astype(jnp.float16) @ w.astype(jnp.float16)).astype(jnp.float32),
                "This looks like float16, which has other digits than bfloat16.",
            ),
        ),
    )
    run(
        "two products, (x @ w) @ v",
        lambda x, w, v: (x @ w) @ v,
        x, w, v,
        why=(
            (lambda x, w, v: (low(x) @ low(w)) @ low(v), "What is rounded are the inputs of your function, not those of each product."),
        ),
    )  # fmt: skip
    run(
        "a product of two elements, x * w, which is no `dot_general`",
        lambda x, w: x * w,
        x,
        w[:3],
        why=((lambda x, w: low(x) * low(w), "Products of elements stay as they are: a TPU's matrix unit does not see them."),),
    )  # fmt: skip
    nothing_inside = "Inside, nothing is rounded: the product stands in a program that an equation holds."
    run("a jitted product", jax.jit(product), x, w, why=((product, nothing_inside),))

    def scanned(x, w):
        return lax.scan(lambda x, _: (jnp.tanh(x @ w), x @ w), x, None, length=3)

    run("products in a scan", scanned, x, w, why=((scanned, nothing_inside),))

    def convolve(images, kernels):
        return lax.conv_general_dilated(images, kernels, (1, 1), "SAME")

    run(
        "a convolution",
        convolve,
        images,
        kernels,
        why=((convolve, "Convolutions are products as well: `conv_general_dilated`."),),
    )

    def exact(x, w):
        return jnp.dot(x, w, precision="highest")

    run(
        'jnp.dot(x, w, precision="highest")',
        exact,
        x,
        w,
        why=((lambda x, w: exact(low(x), low(w)), "This product asks for the highest precision, and a TPU grants it: leave it alone."),),
    )  # fmt: skip
    whole = jnp.arange(1000, 1012).reshape(3, 4)
    run("a product of whole numbers", product, whole, whole.T)
    run("a product of bfloat16 arrays", product, x.astype(jnp.bfloat16), w.astype(jnp.bfloat16))

    def loss(params, x):
        return jnp.sum(jnp.tanh(x @ params["kernel"]) ** 2)

    run("jax.grad(loss), with a dict of params", jax.grad(loss), {"kernel": w}, x)
    with jax.default_matmul_precision(None):
        small, transformed = x[:2, :2], jax.jit(guard(rounded(fresh(product)), "rounded"))
        expected = _rounded(product)(small, small)
        with under("`jax.jit`"):
            got = transformed(small, small)
        if _close(got, product(small, small)) and not _close(product(small, small), expected):
            raise Failed(
                "Under `jax.jit` nothing is rounded any more: XLA may leave out the way to bfloat16 and back, as it "
                "loses digits. `lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)` says that this is meant.",
                got=got,
            )
        checks.same(got, expected, where="under `jax.jit`", rtol=1e-4, atol=1e-5)


def _close(one, two):
    try:
        checks.same(one, two, rtol=1e-5, atol=1e-6)
    except Failed:
        return False
    return True


def _rounding_by(rounding, names=("dot_general", "conv_general_dilated"), spare=True):
    """Wrong answers: another rounding, other primitives."""

    def wrong(function):
        def rule(bind, left, right, **params):
            if not (spare and jaxprs.asks_for_highest(params.get("precision"))):
                left, right = rounding(left, right)
            return bind(left, right, **params)

        return jaxprs.interpret(function, dict.fromkeys(names, rule))

    return wrong


def _both(rounding):
    return lambda left, right: (rounding(left), rounding(right))


def _cut_off(x):
    if x.dtype != jnp.float32:
        return x
    bits = lax.bitcast_convert_type(x, jnp.uint32) & jnp.uint32(0xFFFF0000)
    return lax.bitcast_convert_type(bits, jnp.float32)


def _rounded_results(function):
    def rule(bind, left, right, **params):
        return _to_bfloat16(bind(_to_bfloat16(left), _to_bfloat16(right), **params))

    return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})


def _rounded_arguments(function):
    return lambda *args: _rounding_by(lambda x, y: (x, y))(function)(*jax.tree.map(_to_bfloat16, args))


def _rounded_outside(function):
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


def _rounded_called(function):
    return _rounded(function)(jnp.ones((3, 4)), jnp.ones((4, 4)))


def _rounded_no_return(function):
    _rounded(function)


rounded = Exercise(
    title="Round like a TPU",
    stars=2,
    minutes=15,
    why="A device that you do not have can be rehearsed: what its arithmetic does is one rule for two primitives.",
    hints=(
        "`jaxprs.interpret(function, rules)` does the work. Both names get the same rule.",
        "A rule: `def rule(bind, left, right, **params): ... return bind(left, right, **params)`.",
        "`lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)` rounds to bfloat16 and keeps the dtype. Apply it to "
        "float32 inputs alone, and only unless `jaxprs.asks_for_highest(params['precision'])`.",
    ),
    solution=_rounded,
    check=_check_rounded,
    mistakes=(
        Mistake(lambda function: lambda *args: function(*args), says="Nothing is rounded"),
        Mistake(_rounded_results, says="The result is rounded, too"),
        Mistake(_rounding_by(lambda x, y: (_to_bfloat16(x), y)), says="Only the first input"),
        Mistake(_rounding_by(_both(_cut_off)), says="take the *nearest* number"),
        Mistake(
            _rounding_by(_both(_to_bfloat16), ("dot_general", "conv_general_dilated", "mul")),
            says="Products of elements stay",
        ),
        Mistake(_rounded_arguments, says="not those of each product"),
        Mistake(_rounded_outside, says="Inside, nothing is rounded"),
        Mistake(
            _rounding_by(_both(_to_bfloat16), ("dot_general",)), says="Convolutions are products as well"
        ),
        Mistake(_rounding_by(_both(_to_bfloat16), spare=False), says="a TPU grants it"),
        Mistake(
            _rounding_by(_both(lambda x: lax.reduce_precision(x, 8, 7))),
            says="It happens with a product of whole numbers",
        ),
        Mistake(_rounded_called, says="takes a function and returns a function"),
        Mistake(_rounded_no_return, says="`return` missing"),
    ),
)


# inverse


def _inverse(function):
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


def _for_this_case(reason):
    return f" For this case: {reason}" if reason else ""


def _refused(name, reason):
    return f"It happens with {name}: your code raises `NotImplementedError`.{_for_this_case(reason)}"


def _refuses(call, *arguments):
    try:
        checks.refuses(call, *arguments, error=NotImplementedError)
    except NotAttempted:  # it was raised without a message, as stubs do
        pass


def _check_inverse(inverse):
    x = jnp.array([0.25, -0.5, 1.5])
    outside, shift = jnp.array([2.0, -4.0, 0.5]), jnp.array([1.0, 0.0, -1.0])
    positive = jnp.abs(x)
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
        "x / 4": (lambda x: x / 4, x, "From y = x / 4 follows x = y * 4."),
        "4 * x": (lambda x: 4 * x, x, "The unknown may be the second input as well."),
        "2 - x": (lambda x: 2 - x, x, swapped["2 - x"]),
        "3 / x": (lambda x: 3 / x, x, swapped["3 / x"]),
        "2 * x + 1": (lambda x: 2 * x + 1, x, several),
        "jnp.log(jnp.exp(x) / 2 + 1)": (lambda x: jnp.log(jnp.exp(x) / 2 + 1), x, several),
        "x": (lambda x: x, x, "A function without equations returns its argument."),
        "x * w + b, with arrays w and b from outside": (lambda x: x * outside + shift, x, from_outside),
        "1 - jnp.tanh(-x / 4) * 3": (lambda x: 1 - jnp.tanh(-x / 4) * 3, x, several),
        "x * jnp.exp(b), with an array b from outside": (lambda x: x * jnp.exp(shift), x, computed),
        "jnp.exp(x) - jnp.tanh(b) * b, with an array b from outside": (
            lambda x: jnp.exp(x) - jnp.tanh(shift) * shift,
            x,
            computed,
        ),
    }
    for name, (function, argument, reason) in cases.items():
        y = function(argument)
        shown = {"input": f"function: {name}, y = function(x) with x = {np.asarray(argument).tolist()}"}
        try:
            inverted = inverse(fresh(function))
            if inverted is None:
                raise Failed("Your function returned None: is a `return` missing?")
            if not callable(inverted):
                raise Failed("`inverse` takes a function and returns a function; the call comes later.")
            got = guard(inverted, "inverse")(y)
        except NotAttempted:
            raise Failed(_refused(name, reason)) from None
        except Failed as failure:
            failure.message = f"It happens with {name}.{_for_this_case(reason)}\n{failure.message}"
            raise
        if isinstance(got, (list, tuple)) and len(got) == 1:
            raise Failed("The array itself is asked for, not a list that holds it.", got=got, **shown)
        if got is None:
            raise Failed("What `inverse` returns, when it is called, returns None.", **shown)
        if name == "jnp.exp(x)":
            for wrong, advice in (
                (function(y), "The function is applied to y once more."),
                (1 / function(y), "This is one divided by the function: a reciprocal, not the inverse."),
                (1 / y, "This is one divided by y: a reciprocal, not the inverse."),
            ):
                if _close(got, wrong):
                    raise Failed(advice, expected=argument, got=got, **shown)
        if not _close(got, y) or name == "x":
            try:
                checks.same(got, argument, rtol=1e-3, atol=1e-4)
            except Failed as failure:
                failure.message = f"It happens with {name}.{_for_this_case(reason)} {failure.message}"
                raise Failed(failure.message, expected=argument, got=got, **shown) from None
            continue
        raise Failed(
            f"It happens with {name}: nothing is undone.{_for_this_case(reason)}",
            expected=argument,
            got=got,
            **shown,
        )

    y = jnp.ones(3) / 2
    for name, function in {"jnp.sin(x)": jnp.sin, "x * x": lambda x: x * x}.items():
        call = guard(inverse(fresh(function)), "inverse")
        try:
            _refuses(call, y)
        except Failed as failure:
            more = " Both inputs are unknown: neither can be found from the other." if "*" in name else ""
            failure.message = f"It happens with {name}.{more}\n{failure.message}"
            raise


def _inverse_by(one=None, first=None, second=None, forwards=True, order=reversed, refuse=True):
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


def _inverse_without_consts(function):
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


def _inverse_reciprocal(function):
    return lambda y: 1 / function(y)


def _inverse_applies(function):
    return lambda y: function(y)


def _inverse_lists(function):
    return lambda y: [_inverse(function)(y)]


def _inverse_directly(function):
    return _inverse(function)(jnp.ones(3))


def _inverse_no_return(function):
    _inverse(function)


def _keep(y, c):
    return y


inverse = Exercise(
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
    solution=_inverse,
    check=_check_inverse,
    mistakes=(
        Mistake(_inverse_applies, says="applied to y once more"),
        Mistake(_inverse_reciprocal, says="a reciprocal, not the inverse"),
        Mistake(_inverse_by(one={"tanh": jnp.arctan}), says="`jnp.arctanh`"),
        Mistake(_inverse_by(first={"add": lambda y, c: y + c}), says="follows x = y - 2"),
        Mistake(_inverse_by(second={"mul": _keep}), says="The unknown may be the second input as well"),
        Mistake(_inverse_by(second={"sub": lambda y, c: y + c}), says="the *second* input of `sub`"),
        Mistake(_inverse_by(second={"div": lambda y, c: y * c}), says="the *second* input of `div`"),
        Mistake(_inverse_by(order=list), says="The last operation is undone first"),
        Mistake(_inverse_without_consts, says="`program.consts`"),
        Mistake(_inverse_by(forwards=False, refuse=False), says="The factor is computed from constants"),
        Mistake(_inverse_by(refuse=False), says="must refuse"),
        Mistake(_inverse_lists, says="not a list that holds it"),
        Mistake(_inverse_directly, says="takes a function and returns a function"),
        Mistake(_inverse_no_return, says="`return` missing"),
    ),
)


# bounds


def _bounds(function, low, high):
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
        known.update(zip(equation.outvars, _bounds_after(equation, intervals), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _bounds_after(equation, intervals):
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
        centre, radius = bind(c, d), bind(abs(c), s) + bind(r, abs(d)) + bind(r, s)
        return [(centre - radius, centre + radius)]
    raise NotImplementedError(f"no bounds for {name}")


_SIGNS = np.random.default_rng(1).choice(np.float32([-1, 1]), size=(16, 2))


def _check_bounds(bounds):
    draw = np.random.default_rng(0)

    def array(*entries):
        return jnp.array(entries, jnp.float32)

    low, high = array(-2.0, 0.5, -1.0), array(3.0, 1.5, -0.25)
    w = jnp.asarray(draw.normal(size=(3, 2)), jnp.float32)
    rows, b = w.T, array(0.5, -1.0)
    wide = jnp.asarray(_SIGNS)
    inner = jnp.asarray(draw.normal(size=(3, 4)), jnp.float32)
    outer = jnp.asarray(draw.normal(size=(4, 2)), jnp.float32)
    falling = "Where the function falls, the ends change places."
    four = "A product of two intervals lies between the smallest and the largest of four products: each end with each."
    matrix = (
        "A column of the matrix may hold both signs, so that neither end of the input gives the end of the result. "
        "Centre and radius: $cW$ and $r|W|$."
    )
    inside = "Go into the program that the equation holds, with the intervals of its inputs."
    three = (low, high)
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
        "x @ w of 16 inputs": (lambda x: x @ wide, -jnp.ones(16), jnp.ones(16), matrix),
        "a network, jnp.tanh(x @ w) @ v": (lambda x: jnp.tanh(x @ inner) @ outer, *three, matrix),
        "a network with relu": (lambda x: jax.nn.relu(x @ inner + 0.5) @ outer, *three, matrix),
        "x as a column, lax.reshape(x, (3, 1))": (lambda x: lax.reshape(x, (3, 1)), *three, ""),
        "x twice, lax.broadcast_in_dim(x, (2, 3), (1,))": (lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)), *three, ""),
        "an interval of width zero, x * x": (lambda x: x * x, low, low, ""),
    }  # fmt: skip
    for name, (function, lowest, highest, reason) in cases.items():
        shown = {
            "input": f"{name}, low = {np.asarray(lowest).tolist()}, high = {np.asarray(highest).tolist()}"
        }
        try:
            got = bounds(fresh(function), lowest, highest)
        except NotAttempted:
            raise Failed(_refused(name, reason)) from None
        except Failed as failure:
            failure.message = f"It happens with {name}.{_for_this_case(reason)}\n{failure.message}"
            raise
        if got is None:
            raise Failed("Your function returned None: is a `return` missing?", **shown)
        if not isinstance(got, (tuple, list)) or len(got) != 2:
            raise Failed("A pair is asked for: the lower bounds and the upper bounds.", got=got, **shown)
        expected = _bounds(function, lowest, highest)
        bottom, top = got
        for part, bound in (("lower", bottom), ("upper", top)):
            if np.shape(bound) != expected[0].shape:
                raise Failed(
                    f"The {part} bounds have the shape {np.shape(bound)}, the result of the function has "
                    f"{expected[0].shape}.",
                    **shown,
                )
        bottom, top = np.asarray(bottom), np.asarray(top)
        slack = 3e-5 * (1 + np.abs(np.asarray(expected)).max())
        if np.any(bottom > top + slack):
            raise Failed(
                f"A lower bound lies above the upper one.{_for_this_case(reason)}",
                expected=expected,
                got=got,
                **shown,
            )
        samples = _samples(draw, lowest, highest)
        results = np.asarray(jax.jit(jax.vmap(function))(samples))
        outside = np.any(
            (results < bottom - slack) | (results > top + slack), axis=tuple(range(1, results.ndim))
        )
        if outside.any():
            first = int(outside.argmax())
            raise Failed(
                f"The bounds do not hold.{_for_this_case(reason)}",
                got=got,
                shown=[
                    ("an input between", str(np.round(samples[first], 3).tolist())),
                    ("gives", str(np.round(results[first], 3).tolist())),
                ],
                **shown,
            )
        if np.any(top - bottom > np.asarray(expected[1] - expected[0]) + 3 * slack):
            raise Failed(
                "The bounds hold, but they are wider than they need to be: each rule should give the narrowest pair that "
                "holds for its own inputs.",
                expected=expected,
                got=got,
                **shown,
            )  # fmt: skip
    try:
        _refuses(lambda low, high: bounds(jnp.sin, low, high), *three)
    except Failed as failure:
        failure.message = (
            "It happens with jnp.sin(x). `sin` rises and falls, and ends alone do not bound it: what is not known "
            f"must not be guessed.\n{failure.message}"
        )
        raise


def _samples(draw, low, high):
    """Inputs in between: corners (all of a small box, and those that make a column of `_SIGNS` extreme), random ones."""
    low, high = np.asarray(low), np.asarray(high)
    if low.size <= 4:
        up = np.array(list(np.ndindex(*[2] * low.size)), bool)
    else:
        up = np.concatenate([_SIGNS.T > 0, _SIGNS.T < 0, [np.ones(low.size, bool), np.zeros(low.size, bool)]])
    at = np.concatenate([up, draw.uniform(size=(12, low.size))]).astype(np.float32)
    return low + at * (high - low)


def _bounds_by(**rules):
    """Wrong answers: the solution with other rules for some primitives."""

    def after(equation, intervals):
        name, params = equation.primitive.name, equation.params
        lows, highs = zip(*intervals, strict=True)

        def bind(*inputs):
            return equation.primitive.bind(*map(jnp.asarray, inputs), **params)

        if name in rules:
            return [rules[name](bind, lows, highs)]
        inner = params.get("jaxpr", params.get("call_jaxpr"))
        return run(inner, intervals) if inner is not None else _bounds_after(equation, intervals)

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


def _ends(bind, lows, highs):
    return bind(*lows), bind(*highs)


def _sorted_ends(bind, lows, highs):
    one, two = bind(*lows), bind(*highs)
    return jnp.minimum(one, two), jnp.maximum(one, two)


def _plain_radius(bind, lows, highs):
    centres = [(low + high) / 2 for low, high in zip(lows, highs, strict=True)]
    radii = [(high - low) / 2 for low, high in zip(lows, highs, strict=True)]
    centre = bind(*centres)
    radius = abs(bind(centres[0], radii[1]) + bind(radii[0], centres[1]))
    return centre - radius, centre + radius


def _loose(bind, lows, highs):
    size = bind(
        *[
            jnp.maximum(jnp.abs(jnp.asarray(low)), jnp.abs(jnp.asarray(high)))
            for low, high in zip(lows, highs, strict=True)
        ]
    )
    return -size, size


def _bounds_of_ends(function, low, high):
    return function(low), function(high)


def _bounds_sorted(function, low, high):
    one, two = function(low), function(high)
    return jnp.minimum(one, two), jnp.maximum(one, two)


def _bounds_sampled(function, low, high):
    steps = jnp.linspace(0, 1, 101).reshape(-1, *[1] * low.ndim)
    points = low + steps * (high - low)
    random = low + jax.random.uniform(jax.random.key(0), (200, *low.shape)) * (high - low)
    results = jax.vmap(function)(jnp.concatenate([points, random, jnp.stack([low, high])]))
    return results.min(axis=0), results.max(axis=0)


def _bounds_swapped(function, low, high):
    return _bounds(function, low, high)[::-1]


def _bounds_width(function, low, high):
    bottom, top = _bounds(function, low, high)
    return top - bottom


def _bounds_without(primitive):
    def refuse(bind, lows, highs):
        raise NotImplementedError(primitive)

    return _bounds_by(**{primitive: refuse})


def _bounds_exp_only(function, low, high):
    for equation in jax.make_jaxpr(function)(low).jaxpr.eqns:
        if equation.primitive.name != "exp":
            raise NotImplementedError
        low, high = jnp.exp(low), jnp.exp(high)
    return low, high


def _bounds_total(function, low, high):
    bottom, top = _bounds(function, low, high)
    return bottom.min(), top.max()


def _bounds_no_return(function, low, high):
    _bounds(function, low, high)


bounds = Exercise(
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
        "`dot_general`, with centre c = (low + high) / 2 and radius r = (high - low) / 2 of each input: the centre is "
        "c₁·c₂, and the radius |c₁|·r₂ + r₁·|c₂| + r₁·r₂.",
    ),
    solution=_bounds,
    check=_check_bounds,
    mistakes=(
        Mistake(_bounds_of_ends, says="Where the function falls, the ends change places"),
        Mistake(_bounds_swapped, says="the low end goes to the low end"),
        Mistake(_bounds_by(sub=_ends), says="the lowest of the first minus the highest of the second"),
        Mistake(_bounds_by(mul=_ends), says="each end with each"),
        Mistake(_bounds_by(mul=_sorted_ends), says="each end with each"),
        Mistake(_bounds_sorted, says="each end with each"),
        Mistake(_bounds_by(mul=_loose), says="wider than they need to be"),
        Mistake(_bounds_by(dot_general=_sorted_ends), says="A column of the matrix may hold both signs"),
        Mistake(_bounds_by(dot_general=_plain_radius), says="A column of the matrix may hold both signs"),
        Mistake(_bounds_sampled, says="A column of the matrix may hold both signs"),
        Mistake(_bounds_by(sin=_sorted_ends), says="must not be guessed"),
        Mistake(_bounds_without("reshape"), says="It happens with x as a column"),
        Mistake(_bounds_without("broadcast_in_dim"), says="It happens with x twice"),
        Mistake(_bounds_exp_only, says="your code raises `NotImplementedError`"),
        Mistake(_bounds_width, says="A pair is asked for"),
        Mistake(_bounds_total, says="bounds have the shape ()"),
        Mistake(_bounds_no_return, says="`return` missing"),
    ),
)


# clean


def _decay(x):
    n, d = x.shape
    ages = jnp.arange(n) / n
    weights = jnp.exp(-ages)[:, None]
    scaled = x * weights / np.sqrt(d)
    return jnp.where(scaled > 0, scaled, jnp.zeros((n, d))).astype(x.dtype)


def _clean(x):
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)  # shapes are known: NumPy may do it
    scaled = x * weights[:, None] / math.sqrt(d)
    return jnp.where(scaled > 0, scaled, jnp.zeros_like(x))


def _check_clean(clean):
    entries = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -4.0], [3.0, 1.0, -0.5], [-2.0, 4.0, 8.0]], np.float32)
    reference = _decay(jnp.asarray(entries))
    for dtype in ("float32", "bfloat16", "float16"):
        x = jnp.asarray(entries, dtype)
        shown = {"input": f"x of dtype {dtype} and shape (4, 3)"}
        got = clean(x)
        if got is None:
            raise Failed("Your function returned None: is a `return` missing?", **shown)
        if isinstance(got, jax.Array) and got.dtype != x.dtype:
            raise Failed(f"The result is {got.dtype}, and the input is {dtype}.", **shown)
        if dtype == "float32":
            for wrong, advice in (
                (x * jnp.exp(-jnp.arange(4) / 4)[:, None] / math.sqrt(3), "What is not above zero becomes zero."),
                (jax.nn.relu(x) / math.sqrt(3), "The weights are missing: each row fades with its age."),
                (jax.nn.relu(x) * jnp.exp(-jnp.arange(4) / 4)[:, None], "The division by the root of d is missing."),
                (jax.nn.relu(x) * jnp.exp(jnp.arange(4) / 4)[:, None] / math.sqrt(3), "The weights grow: the sign is missing."),
            ):  # fmt: skip
                if _close(got, wrong):
                    raise Failed(advice, expected=reference, got=got, **shown)
        if {"pure_callback", "io_callback"} & set(jaxprs.count(fresh(clean), x)):
            raise Failed(
                "Python does the work, through a callback. It is to be done in the program.", **shown
            )
        tolerance = 1e-5 if dtype == "float32" else 3e-2
        checks.same(got, reference.astype(dtype), rtol=tolerance, atol=tolerance, **shown)
        found = _found(clean, x, dtype)
        if found:
            many = f"There are {len(found)} values" if len(found) > 1 else "There is one value"
            first = found[0]
            raise Failed(f"{many} inside that are not {dtype}. {_why_stray(clean, first, x)}", shown=[("strays", "\n".join(found))], **shown)  # fmt: skip


def _found(clean, x, dtype):
    with under("`jax.make_jaxpr`"):
        return strays(jax.make_jaxpr(fresh(clean))(x), dtype)


def _why_stray(clean, stray, x):
    kind = stray.partition(" gives ")[0].rpartition("/")[2]
    if "[4, 3]" not in stray:
        return (
            "The first has a row's age or weight: a quotient of whole numbers is float32. What depends on shapes alone "
            "NumPy can compute while tracing; `jnp.asarray(…, x.dtype)` then makes an array of the right dtype."
        )
    if kind == "broadcast_in_dim":
        return "`jnp.zeros` makes float32 unless it is told a dtype; `jnp.zeros_like(x)` has that of x."
    program = jaxprs._equations(jax.make_jaxpr(fresh(clean))(x))
    first = next((e.primitive.name for e in program), "")
    if kind == "convert_element_type" and first == kind:
        return "`x` itself is made float32. The work is to be done in its own dtype."
    return (
        "A NumPy number, such as `np.sqrt(d)`, is strongly typed and pulls `x` up to float32. A Python number is weak: "
        "`math.sqrt(d)`."
    )


def _clean_wide(x):
    return _decay(x.astype(jnp.float32)).astype(x.dtype)


def _clean_hard_coded(x):
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), jnp.bfloat16)
    return jax.nn.relu(x.astype(jnp.bfloat16) * weights[:, None] / math.sqrt(d))


def _clean_ages_cast(x):
    n, d = x.shape
    ages = (jnp.arange(n) / n).astype(x.dtype)
    scaled = x * jnp.exp(-ages)[:, None] / math.sqrt(d)
    return jnp.where(scaled > 0, scaled, jnp.zeros_like(x))


def _clean_root_left(x):
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)
    scaled = (x * weights[:, None] / np.sqrt(d)).astype(x.dtype)
    return jnp.where(scaled > 0, scaled, jnp.zeros_like(x))


def _clean_zeros_left(x):
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)
    scaled = x * weights[:, None] / math.sqrt(d)
    return jnp.where(scaled > 0, scaled, jnp.zeros((n, d)).astype(x.dtype))


def _clean_without_weights(x):
    return jax.nn.relu(x / math.sqrt(x.shape[1]))


def _clean_without_root(x):
    n, _ = x.shape
    return jax.nn.relu(x * jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)[:, None])


def _clean_not_clipped(x):
    n, d = x.shape
    return x * jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)[:, None] / math.sqrt(d)


def _clean_growing(x):
    n, d = x.shape
    return jax.nn.relu(x * jnp.asarray(np.exp(np.arange(n) / n), x.dtype)[:, None] / math.sqrt(d))


def _clean_calls_back(x):
    return jax.pure_callback(lambda x: np.asarray(_decay(x)), jax.typeof(x), x)


def _clean_no_return(x):
    _clean(x)


clean = Exercise(
    title="Mend what leaves its dtype",
    stars=2,
    minutes=10,
    why="Half of the memory traffic of a half-precision model is easily lost to one NumPy scalar; the audit finds it.",
    hints=(
        "`dtypes.strays(jax.make_jaxpr(decay)(jnp.ones((4, 3), jnp.bfloat16)), 'bfloat16')` names the lines.",
        "Three sources: a quotient of whole numbers, a NumPy scalar, an array made without a dtype.",
        "`math.sqrt(d)` is a Python number; `jnp.zeros_like(x)` has the dtype of x; what depends on `n` alone NumPy can "
        "compute, before `jnp.asarray(…, x.dtype)`.",
    ),
    solution=_clean,
    check=_check_clean,
    mistakes=(
        Mistake(_decay, says="a quotient of whole numbers is float32"),
        Mistake(_clean_ages_cast, says="a quotient of whole numbers is float32"),
        Mistake(_clean_wide, says="`x` itself is made float32"),
        Mistake(_clean_root_left, says="is strongly typed"),
        Mistake(_clean_zeros_left, says="unless it is told a dtype"),
        Mistake(_clean_hard_coded, says="The result is bfloat16, and the input is float32"),
        Mistake(_clean_without_weights, says="The weights are missing"),
        Mistake(_clean_without_root, says="The division by the root of d is missing"),
        Mistake(_clean_not_clipped, says="What is not above zero becomes zero"),
        Mistake(_clean_growing, says="The weights grow"),
        Mistake(_clean_calls_back, says="through a callback"),
        Mistake(_clean_no_return, says="`return` missing"),
    ),
)


# draws


def _draws(function, *args):
    def count(jaxpr):
        total = 0
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            if name == "random_bits":
                total += equation.outvars[0].aval.size
            inner = [count(getattr(program, "jaxpr", program)) for _, program in jaxprs.subjaxprs(equation)]
            if name == "scan":
                total += equation.params["length"] * sum(inner)
            elif name == "cond":
                total += max(inner)
            else:
                total += sum(inner)
        return total

    return count(jax.make_jaxpr(function)(*args).jaxpr)


def _check_draws(draws):
    key = jax.eval_shape(lambda: jax.random.key(0))
    x = jax.ShapeDtypeStruct((4,), jnp.float32)

    def both(key):
        one, two = jax.random.split(key)
        return jax.random.normal(one, (3,)), jax.random.uniform(two, (2, 2))

    def walk(key):
        def step(position, key):
            return position + jax.random.normal(key, (3,)), None

        return lax.scan(step, jnp.zeros(3), jax.random.split(key, 5))[0]

    def walks(key):
        return lax.scan(lambda total, key: (total + walk(key), None), jnp.zeros(3), jax.random.split(key, 4))[
            0
        ]

    def branches(key, x):
        return lax.cond(
            x[0] > 0,
            lambda: jax.random.normal(key, (6,)).sum(),
            lambda: jax.random.normal(key, (2,)).sum(),
        )

    def python_loop(key):
        return [jax.random.normal(k, (2,)) for k in jax.random.split(key, 3)]

    def dear(key, x):
        def none(key):
            return (jnp.ones((50, 50)) @ jnp.ones((50, 50)))[0, :2]

        return lax.cond(x[0] > 0, lambda key: jax.random.normal(key, (2,)), none, key)

    @jax.custom_jvp
    def noisy(key):
        return jax.random.normal(key, (4,))

    noisy.defjvp(lambda keys, _: (noisy(*keys), jnp.zeros(4)))
    scan = "The body of a scan is recorded once, and runs `length` times."
    any_depth = (
        "Go into whatever equation holds a program; `jaxprs.subjaxprs` finds them by their kind, not by name."
    )
    cases = {
        "jax.random.normal(key, (3,))": (lambda key: jax.random.normal(key, (3,)), (key,), "Each element of the result of `random_bits` is a draw."),
        "jax.random.bits(key, (2, 5))": (lambda key: jax.random.bits(key, (2, 5)), (key,), "Each element of the result of `random_bits` is a draw."),
        "jax.random.split(key, 7)": (lambda key: jax.random.split(key, 7), (key,), "To split a key draws nothing."),
        "x + 1, without a key": (lambda x: x + 1, (x,), "Nothing random happens here."),
        "normal of 3 and uniform of 4, with two keys": (both, (key,), "All draws count."),
        "a mask of x, jax.random.bernoulli(key, 0.5, x.shape)": (lambda key, x: jax.random.bernoulli(key, 0.5, x.shape) * x, (key, x), "A mask of four is four draws, whatever becomes of them."),
        "jax.jit(f)(key), f drawing 3": (jax.jit(lambda key: jax.random.normal(key, (3,))), (key,), "Go into the programs that equations hold."),
        "vmap over 5 keys, 3 draws each": (lambda key: jax.vmap(lambda k: jax.random.normal(k, (3,)))(jax.random.split(key, 5)), (key,), "Under `vmap` the parameter `shape` is still that of one example; the result of the equation has all of them."),
        "a Python loop of 3 rounds, 2 draws each": (python_loop, (key,), "All draws count."),
        "a scan of 5 rounds, 3 draws each": (walk, (key,), scan),
        "a scan of 4 rounds over a scan of 5": (walks, (key,), "The rounds multiply: five in each of four."),
        "a cond with 6 draws in one branch, 2 in the other": (branches, (key, x), "Only one branch runs: count the one that draws most."),
        "a cond with 2 draws in one branch, a large product in the other": (dear, (key, x), "What counts is which branch draws most, not which has most work."),
        "jax.checkpoint(f)(key), f drawing 4": (jax.checkpoint(lambda key: jax.random.normal(key, (4,))), (key,), any_depth),
        "a function with a custom_jvp, drawing 4": (lambda key: noisy(key), (key,), any_depth),
    }  # fmt: skip
    for name, (function, arguments, reason) in cases.items():
        expected = _draws(fresh(function), *arguments)
        try:
            got = draws(fresh(function), *arguments)
        except Failed as failure:
            failure.message = f"It happens with {name}, and arguments of which only shape and dtype are known.\n{failure.message}"
            raise
        if got is None:
            raise Failed("Your function returned None: is a `return` missing?", input=name, expected=expected)
        if isinstance(got, (jax.Array, np.ndarray)) or not isinstance(got, numbers.Real):
            raise Failed(
                "Return a Python number: how many draws there are.", input=name, expected=expected, got=got
            )
        if got != expected:
            if got == 0 and name.startswith("jax.random.normal"):
                reason = "None was found: `random_bits` stands in a program that an equation holds, `jit` here. Go inside."
            raise Failed(f"The number is not right. {reason}", input=name, expected=expected, got=got)


def _draws_by(size=None, names=("random_bits",), loops=True, branch=max, enters=lambda name: True):
    """Wrong answers: something else is counted, or not everything."""
    size = size or (lambda equation: equation.outvars[0].aval.size)

    def wrong(function, *args):
        def count(jaxpr):
            total = 0
            for equation in jaxpr.eqns:
                name = equation.primitive.name
                if name in names:
                    total += size(equation)
                programs = [program for _, program in jaxprs.subjaxprs(equation)] if enters(name) else []
                inner = [count(getattr(program, "jaxpr", program)) for program in programs]
                times = equation.params.get("length", 1) if loops else 1
                total += branch(inner) if name == "cond" and inner else times * sum(inner)
            return total

        return count(jax.make_jaxpr(function)(*args).jaxpr)

    return wrong


def _draws_by_work(function, *args):
    return sum(
        item.times * item.equation.outvars[0].aval.size
        for item in costs.itemize(jax.make_jaxpr(function)(*args))
        if item.equation.primitive.name == "random_bits"
    )


def _draws_results(function, *args):
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(function, *args)))


def _draws_rounds_of_the_last(function, *args):
    def count(jaxpr, times):
        total = 0
        for equation in jaxpr.eqns:
            if equation.primitive.name == "random_bits":
                total += times * equation.outvars[0].aval.size
            inner = [
                count(getattr(p, "jaxpr", p), equation.params.get("length", times))
                for _, p in jaxprs.subjaxprs(equation)
            ]
            total += max(inner) if equation.primitive.name == "cond" else sum(inner)
        return total

    return count(jax.make_jaxpr(function)(*args).jaxpr, 1)


def _draws_computed(function, *args):
    drawn = []

    def rule(bind, *inputs, **params):
        drawn.append(bind(*inputs, **params))
        return drawn[-1]

    jaxprs.interpret(function, {"random_bits": rule})(*args)
    return sum(bits.size for bits in drawn)


def _draws_array(function, *args):
    return jnp.asarray(_draws(function, *args))


def _draws_no_return(function, *args):
    _draws(function, *args)


draws = Exercise(
    title="Count the random draws of a function",
    stars=2,
    minutes=15,
    why="Random bits are paid for; a program that tells how many it draws tells what its dropout costs.",
    hints=(
        "A function that takes a jaxpr and calls itself for each program inside: `for _, inner in "
        "jaxprs.subjaxprs(equation)`; `getattr(inner, 'jaxpr', inner)` opens it.",
        "`equation.outvars[0].aval.size` is how many elements a result has.",
        "A `scan` counts `equation.params['length']` times what its body does, a `cond` the `max` of its branches, all "
        "else the sum.",
    ),
    solution=_draws,
    check=_check_draws,
    mistakes=(
        Mistake(_draws_by(lambda equation: 1), says="Each element of the result of `random_bits` is a draw"),
        Mistake(
            _draws_by(names=("random_bits", "random_split")),
            says="To split a key draws nothing",
        ),
        Mistake(_draws_results, says="To split a key draws nothing"),
        Mistake(_draws_by(enters=lambda name: False), says="None was found"),
        Mistake(_draws_by_work, says="not which has most work"),
        Mistake(
            _draws_by(enters=lambda name: name in ("jit", "pjit", "scan", "cond")),
            says="whatever equation holds a program",
        ),
        Mistake(
            _draws_by(lambda equation: math.prod(equation.params["shape"])),
            says="the parameter `shape` is still that of one example",
        ),
        Mistake(_draws_by(loops=False), says="recorded once, and runs `length` times"),
        Mistake(_draws_rounds_of_the_last, says="The rounds multiply"),
        Mistake(_draws_by(branch=sum), says="Only one branch runs"),
        Mistake(_draws_by(branch=min), says="Only one branch runs"),
        Mistake(_draws_computed, says="only shape and dtype are known"),
        Mistake(_draws_array, says="Return a Python number"),
        Mistake(_draws_no_return, says="`return` missing"),
    ),
)
