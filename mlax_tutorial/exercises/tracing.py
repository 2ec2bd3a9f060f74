"""The exercises of the chapter Tracing."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial import jaxprs
from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs

# recorded


def _python_loop(x):
    for _ in range(3):
        x = lax.sin(x)
    return x


def _asks_for_the_shape(x):
    return lax.sin(x) if x.shape == (3,) else lax.cos(lax.cos(x))


def _unused(x):
    lax.cos(x)
    return lax.sin(x)


def _prints_and_counts(x):
    total = sum(range(100))
    print(f"total: {total}")
    return lax.sin(x)


def _nothing(x):
    return x


RECORDED = {
    "a": _python_loop,
    "b": _asks_for_the_shape,
    "c": _unused,
    "d": _prints_and_counts,
    "e": _nothing,
}

_recorded = {"a": 3, "b": 1, "c": 2, "d": 1, "e": 0}


def _check_recorded(given):
    x = jax.ShapeDtypeStruct((3,), jnp.float32)
    expected = {name: len(jax.make_jaxpr(function)(x).jaxpr.eqns) for name, function in RECORDED.items()}
    why = {
        "a": {1: "The loop is Python's, so it runs while tracing: JAX sees what its body does, three times."},
        "b": {
            3: "A shape is known while tracing, so Python takes one branch, and JAX never sees the other.",
            2: "The shape of x is (3,), so Python takes the first branch.",
        },
        "c": {1: "Nothing is left out while recording, used or not. Leaving out comes later."},
        "d": {
            0: "Python's sum leaves no trace, but the sine does.",
            2: "What Python computes by itself, and what it prints, is not recorded.",
            101: "What Python computes by itself is not recorded.",
        },
        "e": {1: "To return an input takes no equation: the jaxpr's output is its input."},
    }
    checks.answers(given, expected, why)


recorded = Exercise(
    title="How many equations?",
    stars=1,
    minutes=5,
    why="You know what JAX sees of a function and what it does not: most surprises under jit come from this line.",
    hints=(
        "Play Python: go through the lines with x of shape (3,), and make a mark for each operation on x.",
        "Loops, prints and questions about shapes belong to Python. Nobody has yet looked at what is used.",
    ),
    solution=_recorded,
    check=_check_recorded,
    mistakes=(
        Mistake(_recorded | {"a": 1}, says="three times"),
        Mistake(_recorded | {"b": 3}, says="JAX never sees the other"),
        Mistake(_recorded | {"c": 1}, says="Leaving out comes later"),
        Mistake(_recorded | {"d": 2}, says="what it prints, is not recorded"),
        Mistake(_recorded | {"e": 1}, says="takes no equation"),
    ),
)


# mystery


def _mystery(x, y):
    return y * x / jnp.sqrt(jnp.sum(x * x))


def mystery_jaxpr() -> str:
    """The jaxpr to be read back, as JAX prints it."""

    def mystery(x, y):  # with lax, so that it reads the same in each version of JAX
        b = jnp.sum(lax.mul(x, x))
        return lax.div(lax.mul(y, x), lax.broadcast_in_dim(lax.sqrt(b), (3,), ()))

    x = jnp.ones(3)
    text = jax.make_jaxpr(mystery)(x, x).pretty_print(use_color=False)
    return text.replace(" out_sharding=None", "")  # a parameter that not every version prints


def _check_mystery(mystery):
    def pair(draw):
        x = draw(inputs.arrays("n", sizes=(1, 2, 3, 5), low=1, high=3))
        return x, draw(inputs.arrays(*x.shape))

    telling = (jnp.array([3.0, 4.0, -12.0]), jnp.array([1.0, 2.0, -3.0]))
    recognise = [
        (
            lambda x, y: y * x / jnp.sum(x * x),
            "The square root is missing: it stands between the sum and the division.",
        ),
        (lambda x, y: y * x / jnp.sum(x), "The sum is over `mul a a`, the squares, not over the inputs."),
        (
            lambda x, y: y * x / jnp.sqrt(jnp.sum(y * y)),
            "`mul a a`: both factors are the first input, not the second.",
        ),
        (lambda x, y: y * x / jnp.sqrt(jnp.sum(x * y)), "`mul a a`: both factors are the first input."),
        (lambda x, y: y * x / jnp.sqrt(jnp.mean(x * x)), "This averages; `reduce_sum` adds up."),
        (
            lambda x, y: x / jnp.sqrt(jnp.sum(x * x)),
            "The second input, `b`, is used: look for it in a `mul`.",
        ),
        (lambda x, y: y / jnp.sqrt(jnp.sum(x * x)), "The numerator is a product of both inputs."),
        (lambda x, y: y * x / jnp.sum(jnp.sqrt(x * x)), "The order is: sum first, then the root."),
    ]
    checks.values(mystery, _mystery, inputs.together(pair), examples=[telling], recognise=recognise)
    checks.works_under_jit(mystery, *telling)


mystery = Exercise(
    title="Read a jaxpr back into Python",
    stars=1,
    minutes=10,
    why="A jaxpr is short and exact, and reading one is the surest way to see what a library really computes.",
    hints=(
        "Give names a person would choose: the first line squares, the second adds up the squares.",
        "`broadcast_in_dim` only repeats a scalar, so that the division finds two arrays of one shape; NumPy's rules "
        "do that by themselves.",
        "It scales x to length 1, and multiplies by y.",
    ),
    solution=_mystery,
    check=_check_mystery,
    mistakes=(
        Mistake(lambda x, y: y * x / jnp.sum(x * x), says="square root is missing"),
        Mistake(lambda x, y: x / jnp.sqrt(jnp.sum(x * x)), says="second input"),
        Mistake(lambda x, y: y * x / jnp.sqrt(jnp.mean(x * x)), says="`reduce_sum` adds up"),
        Mistake(lambda x, y: y * x / jnp.sqrt(jnp.sum(y * y)), says="not the second"),
        Mistake(lambda x, y: y * x / jnp.sum(jnp.sqrt(x * x)), says="sum first, then the root"),
    ),
)


# shapes


def _shapes(function, *specs):
    return jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(function, *specs))


def _check_shapes(shapes):
    def layer(x, w):
        return {"out": jnp.tanh(x @ w), "norm": jnp.sum(x * x)}

    small = jax.ShapeDtypeStruct((2, 3), jnp.float32), jax.ShapeDtypeStruct((3, 5), jnp.float32)
    expected = _shapes(layer, *small)
    got = shapes(layer, *small)
    if got != expected:
        if isinstance(got, dict) and any(hasattr(leaf, "dtype") for leaf in jax.tree.leaves(got)):
            raise Failed(
                "You return whole results; only their shapes are asked for: `leaf.shape` for each leaf.",
                input="a layer of x:(2, 3) and w:(3, 5)", expected=expected, got=got,
            )  # fmt: skip
        raise Failed(
            "The shapes are not right.", input="a layer of x:(2, 3) and w:(3, 5)", expected=expected, got=got
        )
    if shapes(lambda x: x.T, small[0]) != (3, 2):
        raise Failed(
            "The function may return anything, a bare array too: go through the leaves with `jax.tree.map`.",
            input="a transposition of x:(2, 3)", expected=(3, 2), got=shapes(lambda x: x.T, small[0]),
        )  # fmt: skip
    # A million times a million float32 is 4 TB: whoever computes it, does not come back.
    huge = jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)
    got = shapes(lambda x: x @ x, huge)
    if got != (10**6, 10**6):
        raise Failed(
            "The shape of a product of huge matrices is not right.", expected=(10**6, 10**6), got=got
        )


def _shapes_computed(function, *specs):
    return jax.tree.map(
        lambda leaf: leaf.shape, function(*[jnp.zeros(spec.shape, spec.dtype) for spec in specs])
    )


def _shapes_one_array(function, *specs):
    return jax.eval_shape(function, *specs)["out"].shape


def _shapes_whole(function, *specs):
    return jax.eval_shape(function, *specs)


def _shapes_of_inputs(function, *specs):
    return [spec.shape for spec in specs]


shapes = Exercise(
    title="Shapes for nothing",
    stars=1,
    minutes=5,
    why="Libraries size their weights this way: run the model on abstract inputs, and allocate nothing.",
    hints=(
        "`jax.eval_shape(function, *specs)` traces the function and returns a tree of `ShapeDtypeStruct`.",
        "A tree of results becomes a tree of shapes by `jax.tree.map`.",
    ),
    solution=_shapes,
    check=_check_shapes,
    mistakes=(
        Mistake(_shapes_whole, says="only their shapes are asked for"),
        Mistake(_shapes_of_inputs, says="The shapes are not right"),
        Mistake(_shapes_one_array, says="The shapes are not right"),
        Mistake(_shapes_computed, says="memory"),
    ),
)


# remember


def _remember(x):
    y = jnp.sin(x)
    return 2 * y, y


def _check_remember(remember):
    x = jnp.arange(3.0)
    checks.is_jitted(remember)
    got = remember(x)
    if not isinstance(got, tuple) or len(got) != 2:
        raise Failed(
            "Return a tuple of two, the result and the value to be kept: `return result, y`. What a jitted "
            "function does not return is lost, or leaks.",
            input={"x": x}, expected=_remember(x), got=got,
        )  # fmt: skip
    checks.no_leaks(remember, x)
    checks.values(remember, _remember, inputs.arrays("n"), recognise=[
        (lambda x: (jnp.sin(x), 2 * jnp.sin(x)), "The order is: first the result, 2 sin(x), then what is kept, sin(x)."),
        (lambda x: (2 * jnp.sin(x), x), "The value to keep is y = sin(x), not x."),
    ])  # fmt: skip


_kept = []


@jax.jit
def _remember_leaks(x):
    y = jnp.sin(x)
    _kept.append(y)
    return 2 * y


@jax.jit
def _remember_leaks_and_returns(x):
    y = jnp.sin(x)
    _kept.append(y)
    return 2 * y, y


@jax.jit
def _remember_swapped(x):
    y = jnp.sin(x)
    return y, 2 * y


remember = Exercise(
    title="Mend a leak",
    stars=1,
    minutes=5,
    why="What leaves a traced function through its return value is an array; through any other door it is a tracer.",
    hints=(
        "The list outlives the trace; the tracer in it does not. Which door is left for y to get out by?",
        "Return both: `return 2 * y, y`, and let the caller keep the list.",
    ),
    solution=jax.jit(_remember),
    check=_check_remember,
    mistakes=(
        Mistake(_remember_leaks, says="Return a tuple of two"),
        Mistake(_remember_leaks_and_returns, says="A tracer leaks"),
        Mistake(_remember, says="not jitted"),
        Mistake(_remember_swapped, says="first the result"),
    ),
)


# flops


def _flops(jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            left = equation.invars[0].aval.shape
            depth = 1
            for axis in contracted:
                depth *= left[axis]
            total += 2 * depth * equation.outvars[0].aval.size
        times = equation.params["length"] if equation.primitive.name == "scan" else 1
        for _, inner in jaxprs.subjaxprs(equation):
            total += times * _flops(getattr(inner, "jaxpr", inner))
    return total


def _check_flops(flops):
    def spec(*shape):
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    def count(function, *specs):
        jaxpr = jax.make_jaxpr(function)(*specs).jaxpr
        return flops(jaxpr), _flops(jaxpr)

    def scanned(x, w):
        return lax.scan(lambda x, _: (jnp.tanh(x @ w), None), x, None, length=5)[0]

    cases = {
        "x:(2, 3) @ w:(3, 5)": (jnp.dot, spec(2, 3), spec(3, 5)),
        "two products, one after the other": (lambda x, w: (x @ w) @ w, spec(2, 3), spec(3, 3)),
        "a batch of products, x:(4, 2, 3) @ w:(4, 3, 5)": (jnp.matmul, spec(4, 2, 3), spec(4, 3, 5)),
        "a sum, no product": (jnp.sum, spec(4)),
        "a product inside jit": (jax.jit(jnp.dot), spec(2, 3), spec(3, 5)),
        "a product in a scan of 5 rounds": (scanned, spec(2, 3), spec(3, 3)),
    }
    for name, (function, *specs) in cases.items():
        got, expected = count(function, *specs)
        if not isinstance(got, int) or isinstance(got, bool):
            raise Failed("Return a whole number, a Python `int`.", input=name, expected=expected, got=got)
        if got == expected:
            continue
        reason = "The number is not right."
        if 2 * got == expected and "scan" not in name:
            reason = "A product of m x k by k x n takes m·n·k multiplications and as many additions: twice what you say."
        elif "jit" in name and got == 0:
            reason = "You look at the outer equations only. A `jit` equation holds a jaxpr: go into it."
        elif "scan" in name and 5 * got == expected:
            reason = "The body of a scan is recorded once, but runs `length` times."
        elif "scan" in name and got == 0:
            reason = "A scan holds its body as a jaxpr: go into it, and count it `length` times."
        elif "batch" in name and 4 * got == expected:
            reason = "Each product of the batch counts: the number of results is that of `equation.outvars[0].aval.size`."
        elif "sum" in name:
            reason = "Only `dot_general` counts here."
        raise Failed(reason, input=name, expected=expected, got=got)


def _flops_without_additions(jaxpr):
    return _flops(jaxpr) // 2


def _flops_outer(jaxpr):
    total = 0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            total += 2 * equation.invars[0].aval.shape[-1] * equation.outvars[0].aval.size
    return total


def _flops_each_body_once(jaxpr):
    return sum(_flops_outer_of(equation) for _, equation in jaxprs.walk(jaxpr))


def _flops_outer_of(equation):
    if equation.primitive.name != "dot_general":
        return 0
    return 2 * equation.invars[0].aval.shape[-1] * equation.outvars[0].aval.size


def _flops_per_equation(jaxpr):
    return len(jaxpr.eqns)


flops = Exercise(
    title="Count FLOPs by walking a jaxpr",
    stars=3,
    minutes=20,
    why="Every profiler's estimate begins like this: the program is data, and you can compute with it.",
    hints=(
        "Start with one `dot_general`: two operations, a multiplication and an addition, for each element of the result "
        "and each element that is summed over.",
        "What is summed over stands in `equation.params['dimension_numbers']`: `((left_axes, right_axes), batch_axes)`.",
        "For inner jaxprs call yourself: `for _, inner in jaxprs.subjaxprs(equation)`. An inner jaxpr may be closed: "
        "`getattr(inner, 'jaxpr', inner)` opens it.",
        "The body of a `scan` runs `equation.params['length']` times.",
    ),
    solution=_flops,
    check=_check_flops,
    mistakes=(
        Mistake(_flops_without_additions, says="as many additions"),
        Mistake(_flops_outer, says="go into it"),
        Mistake(_flops_each_body_once, says="runs `length` times"),
        Mistake(_flops_per_equation, says="not right"),
    ),
)


# dead


def _dead(jaxpr):
    needed = {variable for variable in jaxpr.outvars if not hasattr(variable, "val")}
    unused = []
    for number, equation in reversed(list(enumerate(jaxpr.eqns))):
        if needed.isdisjoint(equation.outvars):
            unused.append(number)
        else:
            needed.update(variable for variable in equation.invars if not hasattr(variable, "val"))
    return sorted(unused)


def _check_dead(dead):
    def chain(x):
        a = lax.sin(x)
        b = lax.cos(a)  # needed by c alone
        lax.exp(b)  # needed by nobody
        return lax.mul(a, lax.tanh(x)), a

    def all_used(x):
        return lax.sin(lax.cos(x))

    def one_dead(x):
        lax.cos(x)
        return lax.sin(x)

    def all_dead(x):
        lax.sin(lax.cos(x))
        return x

    def literals(x):
        lax.mul(x, 3.0)
        return lax.mul(x, 2.0)

    def several_outputs(x):
        values, _ = lax.top_k(x, 2)
        return values

    cases = {
        "lax.cos(x); return lax.sin(x)": one_dead,
        "return lax.sin(lax.cos(x))": all_used,
        "a = sin(x); b = cos(a); exp(b); return a * tanh(x), a": chain,
        "lax.sin(lax.cos(x)); return x": all_dead,
        "lax.mul(x, 3.0); return lax.mul(x, 2.0)": literals,
        "values, indices = lax.top_k(x, 2); return values": several_outputs,
    }
    for text, function in cases.items():
        jaxpr = jax.make_jaxpr(function)(jnp.ones(3)).jaxpr
        got, expected = dead(jaxpr), _dead(jaxpr)
        try:
            numbers = sorted(int(number) for number in got)
        except (TypeError, ValueError):
            raise Failed(
                "Return a list of numbers, the positions in `jaxpr.eqns`.", input=text, got=got
            ) from None
        if numbers == expected:
            continue
        missed, wrong = sorted(set(expected) - set(numbers)), sorted(set(numbers) - set(expected))
        reason = "The list is not right."
        if wrong:
            name = jaxpr.eqns[wrong[0]].primitive.name if wrong[0] < len(jaxpr.eqns) else "?"
            reason = (
                f"Equation {wrong[0]} (`{name}`) is needed: follow where its results go, up to the outputs."
            )
            if function is several_outputs:
                reason = "An equation is needed if *any* of its outputs is; here one of two is."
        elif missed:
            reason = (
                f"Equation {missed[0]} (`{jaxpr.eqns[missed[0]].primitive.name}`) is dead, too: what uses its result is "
                "itself not used. Go through the equations from the last to the first."
            )
            if not numbers:
                reason = f"Equation {missed[0]} (`{jaxpr.eqns[missed[0]].primitive.name}`) is dead, and you do not list it."
        raise Failed(reason, input=text, expected=expected, got=got)


def _dead_one_level(jaxpr):
    used = {v for e in jaxpr.eqns for v in e.invars if not hasattr(v, "val")}
    used |= {v for v in jaxpr.outvars if not hasattr(v, "val")}
    return [number for number, e in enumerate(jaxpr.eqns) if used.isdisjoint(e.outvars)]


def _dead_all_outputs(jaxpr):
    needed, unused = set(jaxpr.outvars), []
    for number in reversed(range(len(jaxpr.eqns))):
        equation = jaxpr.eqns[number]
        if needed.issuperset(equation.outvars):
            needed.update(v for v in equation.invars if not hasattr(v, "val"))
        else:
            unused.append(number)
    return unused


def _dead_only_last(jaxpr):
    return [number for number, e in enumerate(jaxpr.eqns) if not set(e.outvars) & set(jaxpr.outvars)]


def _dead_none(jaxpr):
    return []


dead = Exercise(
    title="Find dead code",
    stars=2,
    minutes=15,
    why="This is the first thing that is done to your program: what no output needs is dropped before it runs.",
    hints=(
        "Which variables are needed at the very end? Those in `jaxpr.outvars`. Which equation makes them?",
        "Go backwards with a set of needed variables: an equation that makes one of them needs all its inputs.",
        "Literals, such as 2.0, have a `val` and cannot stand in a set: leave them out.",
    ),
    solution=_dead,
    check=_check_dead,
    mistakes=(
        Mistake(_dead_none, says="you do not list it"),
        Mistake(_dead_one_level, says="itself not used"),
        Mistake(_dead_only_last, says="follow where its results go"),
        Mistake(_dead_all_outputs, says="*any* of its outputs"),
    ),
)
