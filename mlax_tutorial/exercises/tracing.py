"""The exercises of the chapter Tracing."""

import contextlib
import functools
import io
import numbers
import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs
from mlax_tutorial.inspection import jaxprs

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
    with contextlib.redirect_stdout(io.StringIO()):  # one of them prints, and the reader did not call it
        expected = {name: len(jax.make_jaxpr(function)(x).jaxpr.eqns) for name, function in RECORDED.items()}
    per_element = (
        "An operation works on the whole array: that is one equation, however many elements there are."
    )
    why = {
        "a": {
            1: "The loop is Python's, so it runs while tracing: JAX sees what its body does, three times.",
            4: "The loop itself is Python's and leaves nothing; only what its body asks of JAX is recorded.",
            9: per_element,
        },
        "b": {
            3: "A shape is known while tracing, so Python takes one branch, and JAX never sees the other.",
            2: "The shape of x is (3,), so Python takes the first branch, and to ask for a shape is no operation.",
            4: "A shape is known while tracing: the comparison is Python's, and JAX never sees the other branch.",
        },
        "c": {
            1: "Nothing is left out while recording, used or not. Leaving out comes later.",
            6: per_element,
        },
        "d": {
            0: "Python's sum leaves no trace, but the sine does.",
            2: "What Python computes by itself, and what it prints, is not recorded.",
            3: "Python's sum and Python's print: neither of the two is recorded.",
            100: "What Python computes by itself is not recorded.",
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
        Mistake(_recorded | {"a": 4}, says="leaves nothing"),
        Mistake(_recorded | {"a": 9, "c": 6}, says="however many elements"),
        Mistake(_recorded | {"b": 2}, says="to ask for a shape is no operation"),
        Mistake(_recorded | {"b": 3}, says="JAX never sees the other"),
        Mistake(_recorded | {"c": 1}, says="Leaving out comes later"),
        Mistake(_recorded | {"d": 2}, says="what it prints, is not recorded"),
        Mistake(_recorded | {"e": 1}, says="takes no equation"),
        Mistake({name: str(number) for name, number in _recorded.items()}, says="A number is asked for"),
        Mistake(list(_recorded.values()), says="a dict is asked for"),
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
            lambda x, y: y * x / jnp.sqrt(jnp.sum(x)),
            "The sum is over `mul a a`, the squares, not over the inputs.",
        ),
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
        (lambda x, y: y * x, "`div e g` is missing: the product is still to be divided."),
        (
            lambda x, y: jnp.sqrt(jnp.sum(x * x)) / (y * x),
            "`div e g` divides `e` by `g`, not the other way round.",
        ),
        (
            lambda x, y: jnp.dot(y, x) / jnp.sqrt(jnp.sum(x * x)),
            "`mul b a` multiplies element by element. Nothing adds up its result: look at what `reduce_sum` is given.",
        ),
        (
            lambda x, y: y * x / jnp.sqrt(x * x),
            "`reduce_sum` is missing: the squares are added up, and every element is divided by the same number.",
        ),
        (
            lambda x, y: x * x / jnp.sqrt(jnp.sum(x * x)),
            "The numerator is `mul b a`, a product of both inputs, not a square.",
        ),
        (lambda x, y: y * x * jnp.sqrt(jnp.sum(x * x)), "The last equation is a `div`: divide by the root."),
        (
            lambda x, y: y * x / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y)),
            "Only the first input goes into the root: there is one `reduce_sum`, and it is given `mul a a`.",
        ),
    ]
    checks.values(mystery, _mystery, examples=[telling], recognise=recognise)
    for n in (2, 5):
        arguments = jnp.arange(1.0, n + 1), jnp.arange(2.0, n + 2)
        try:
            checks.same(
                mystery(*arguments), _mystery(*arguments), input=dict(zip("xy", arguments, strict=True))
            )
        except Failed as failure:
            failure.message = f"This is right for three numbers, but not for {n}: it should work for any length.\n{failure.message}"
            raise
    checks.values(mystery, _mystery, inputs.together(pair), recognise=recognise)
    y = jnp.array([1.0, 2.0, 3.0])
    for x, advice in (
        (
            [3e-9, 0.0, 4e-9],
            "This is right for large numbers, but not for small ones. The divisor is the root as it stands: "
            "nothing is added, and no bound is put on it.",
        ),
        (
            [0.0, 0.0, 0.0],
            "Where x is 0, the jaxpr divides 0 by 0, which is nan: there is no equation that looks out for it.",
        ),
    ):
        shown = f"x = {x}, y = {y.tolist()}"  # as an array, 3e-9 would be shown as 0
        try:
            checks.same(mystery(jnp.array(x), y), _mystery(jnp.array(x), y), input=shown)
        except Failed as failure:
            failure.message = f"{advice}\n{failure.message}"
            raise
    checks.works_under_jit(mystery, *telling)


def _mystery_of_three(x, y):
    return y * x / jnp.sqrt(x[0] ** 2 + x[1] ** 2 + x[2] ** 2)


def _mystery_guarded(x, y):
    length = jnp.linalg.norm(x)
    return jnp.where(length > 0, y * x / length, 0.0)


def _mystery_broadcast_to_three(x, y):
    return y * x / jnp.broadcast_to(jnp.sqrt(jnp.sum(x * x)), (3,))


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
        Mistake(lambda x, y: y * x / jnp.sqrt(jnp.sum(x)), says="not over the inputs"),
        Mistake(lambda x, y: y * x, says="still to be divided"),
        Mistake(lambda x, y: jnp.sqrt(jnp.sum(x * x)) / (y * x), says="the other way round"),
        Mistake(lambda x, y: jnp.dot(y, x) / jnp.sqrt(jnp.sum(x * x)), says="element by element"),
        Mistake(lambda x, y: y * x / jnp.sqrt(x * x), says="`reduce_sum` is missing"),
        Mistake(lambda x, y: x * x / jnp.linalg.norm(x), says="not a square"),
        Mistake(lambda x, y: y * x * jnp.linalg.norm(x), says="divide by the root"),
        Mistake(
            lambda x, y: y * x / (jnp.linalg.norm(x) * jnp.linalg.norm(y)), says="there is one `reduce_sum`"
        ),
        Mistake(lambda x, y: y * x / (jnp.linalg.norm(x) + 1e-8), says="not for small ones"),
        Mistake(lambda x, y: y * x / jnp.sqrt(jnp.sum(x * x) + 1e-5), says="not for small ones"),
        Mistake(_mystery_guarded, says="divides 0 by 0"),
        Mistake(_mystery_of_three, says="right for three numbers"),
        Mistake(_mystery_broadcast_to_three, says="right for three numbers"),
        Mistake(lambda x, y: (_mystery(x, y),), says="returned a tuple"),
        Mistake(lambda x, y: y * x / np.linalg.norm(x), says="given to NumPy"),
    ),
)


# shapes


def _shapes(function, *specs):
    return jax.tree.map(lambda leaf: leaf.shape, jax.eval_shape(function, *specs))


def _check_shapes(shapes):
    traced = []

    def layer(x, w):
        traced.append(isinstance(x, jax.core.Tracer))
        return {"out": jnp.tanh(x @ w), "norm": jnp.sum(x * x)}

    def nested(x, w):
        return {"layers": [(x @ w, x)], "state": None}

    def lookup(table, rows):
        return table[rows]

    def spec(*shape, dtype=jnp.float32):
        return jax.ShapeDtypeStruct(shape, dtype)

    small = spec(2, 3), spec(3, 5)
    try:
        _right_shapes(shapes, layer, small, "a layer that returns a dict, of x:(2, 3) and w:(3, 5)")
    except Failed as failure:
        for symptom, advice in (
            (
                "missing 1 required positional",
                "Each spec stands for one argument: hand on `*specs`, all of them.",
            ),
            (
                "'ShapeDtypeStruct' and",
                "A spec is the type of an array, and cannot be computed with: let `jax.eval_shape` call the function.",
            ),
            (
                "has no attribute 'shape'",
                "What the function returns is a tree, here a dict: `jax.tree.map` visits the arrays in it.",
            ),
        ):
            if symptom in failure.message:
                failure.message = f"{advice}\n{failure.message}"
                break
        raise
    if not all(traced):
        raise Failed(
            "You call the function with real arrays, so it computes. Let `jax.eval_shape` call it: it hands in tracers."
        )
    advice = "The function may return anything, a bare array or trees in trees: `jax.tree.map` goes through all leaves."
    _right_shapes(shapes, lambda x: x.T, small[:1], "a transposition of x:(2, 3)", advice)
    advice = "Containers in containers stay what they are, a tuple a tuple, None None: `jax.tree.map` sees to that."
    _right_shapes(
        shapes, nested, small, "a function that returns {'layers': [(x @ w, x)], 'state': None}", advice
    )
    advice = "A spec has a dtype, too, and here it matters: hand on the specs as they are."
    rows = spec(10, 4), spec(7, dtype=jnp.int32)
    text = "table[rows], of table:(10, 4) and rows:(7,), which are int32"
    _right_shapes(shapes, lookup, rows, text, advice)
    # Too large for any memory, even where the system promises more than it has.
    side = 10**9
    advice = "This should work for arrays that fit into no memory, so make none: the types are all that tracing needs."
    _right_shapes(shapes, lambda x: x @ x, [spec(side, side)], "x @ x, of a billion rows and columns", advice)


def _right_shapes(shapes, function, specs, text, advice=""):
    try:
        got = shapes(function, *specs)
    except Failed as failure:
        if advice:
            failure.message = f"{advice}\n{failure.message}"
        raise
    results = jax.eval_shape(function, *specs)
    expected = jax.tree.map(lambda leaf: leaf.shape, results)
    if _equal_trees(got, expected):
        return
    reason = advice or "The shapes are not right."
    if got is None:
        reason = "Your function returned None: is a `return` missing?"
    for instead, diagnosis in (
        (
            lambda leaf: leaf,
            "You return whole results; only their shapes are asked for: `leaf.shape` for each leaf.",
        ),
        (
            lambda leaf: list(leaf.shape),
            "A shape is a tuple, here it is a list: `leaf.shape` is one already.",
        ),
        (
            lambda leaf: str(leaf.shape),
            "A shape is a tuple of numbers, here it is a string: leave `leaf.shape` as it is.",
        ),
        (lambda leaf: leaf.size, "This is how many elements there are, not the shape: `leaf.shape`."),
        (lambda leaf: leaf.ndim, "This is how many axes there are, not how long each is: `leaf.shape`."),
        (lambda leaf: (leaf.shape, leaf.dtype), "Only the shape is asked for, without the dtype."),
        (jax.typeof, "These are types, a shape and a dtype; only the shape is asked for, `leaf.shape`."),
    ):
        if _equal_trees(got, jax.tree.map(instead, results)):
            reason = diagnosis
    flat = [leaf.shape for leaf in jax.tree.leaves(results)]
    if isinstance(got, (list, tuple)) and _equal_trees(list(got), flat):
        reason = "These are the right shapes, but the tree is gone. Put each where its array stood, with `jax.tree.map`."
    elif isinstance(got, (list, tuple)) and _equal_trees(list(got), [spec.shape for spec in specs]):
        reason = "These are the shapes of what goes in. Asked for are those of what the function returns."
    elif any(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree.leaves(got)):
        reason = "A shape is a tuple of numbers, not an array: `leaf.shape` is one already."
    raise Failed(reason, input=text, expected=expected, got=got)


def _equal_trees(one, two):
    if any(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree.leaves(one)):
        return False  # arrays and tuples do not like to be compared
    return type(one) is type(two) and bool(one == two)


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


def _shapes_of_zeros(function, *specs):
    zeros = jax.tree.map(lambda spec: jnp.zeros(spec.shape, spec.dtype), specs)
    return jax.tree.map(jnp.shape, jax.jit(function)(*zeros))


def _shapes_all_float(function, *specs):
    return _shapes(function, *[jax.ShapeDtypeStruct(spec.shape, jnp.float32) for spec in specs])


def _shapes_specs_in_one(function, *specs):
    return _shapes(function, specs)


def _shapes_called(function, *specs):
    return jax.tree.map(lambda leaf: leaf.shape, function(*specs))


def _shapes_without_tree(function, *specs):
    return jax.eval_shape(function, *specs).shape


def _shapes_flat(function, *specs):
    return [variable.aval.shape for variable in jax.make_jaxpr(function)(*specs).jaxpr.outvars]


def _shapes_one_level(function, *specs):
    result = jax.eval_shape(function, *specs)
    return (
        {name: leaf.shape for name, leaf in result.items()} if isinstance(result, dict) else result[0].shape
    )


def _shapes_all_lists(function, *specs):
    def shapes_of(tree):
        if isinstance(tree, dict):
            return {name: shapes_of(item) for name, item in tree.items()}
        return (
            [shapes_of(item) for item in tree]
            if isinstance(tree, (list, tuple))
            else getattr(tree, "shape", None)
        )

    return shapes_of(jax.eval_shape(function, *specs))


def _shapes_mapped(what, function, *specs):
    return jax.tree.map(what, jax.eval_shape(function, *specs))


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
        Mistake(_shapes_of_inputs, says="what goes in"),
        Mistake(_shapes_one_array, says="The shapes are not right"),
        Mistake(_shapes_computed, says="real arrays"),
        Mistake(_shapes_of_zeros, says="fit into no memory"),
        Mistake(_shapes_all_float, says="A spec has a dtype, too"),
        Mistake(_shapes_specs_in_one, says="Each spec stands for one argument"),
        Mistake(_shapes_called, says="cannot be computed with"),
        Mistake(_shapes_without_tree, says="is a tree, here a dict"),
        Mistake(functools.partial(_shapes_mapped, jax.typeof), says="These are types"),
        Mistake(_shapes_flat, says="the tree is gone"),
        Mistake(_shapes_one_level, says="trees in trees"),
        Mistake(_shapes_all_lists, says="stay what they are"),
        Mistake(functools.partial(_shapes_mapped, lambda leaf: list(leaf.shape)), says="here it is a list"),
        Mistake(functools.partial(_shapes_mapped, lambda leaf: str(leaf.shape)), says="here it is a string"),
        Mistake(functools.partial(_shapes_mapped, lambda leaf: np.array(leaf.shape)), says="not an array"),
        Mistake(functools.partial(_shapes_mapped, lambda leaf: jnp.array(leaf.shape)), says="not an array"),
        Mistake(functools.partial(_shapes_mapped, lambda leaf: leaf.size), says="how many elements"),
        Mistake(functools.partial(_shapes_mapped, lambda leaf: leaf.ndim), says="how many axes"),
        Mistake(
            functools.partial(_shapes_mapped, lambda leaf: (leaf.shape, leaf.dtype)), says="without the dtype"
        ),
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
    both_in = None
    if isinstance(got, jax.Array) and got.shape == (2, *x.shape):
        both_in = "one array"
    elif isinstance(got, (list, dict)) and len(got) == 2:
        both_in = f"a {type(got).__name__}"
    if both_in:
        raise Failed(
            f"You return both in {both_in}, but a tuple is asked for: `return 2 * y, y`.",
            input={"x": x}, expected=_remember(x), got=got,
        )  # fmt: skip
    if not isinstance(got, tuple) or len(got) != 2:
        raise Failed(
            "Return a tuple of two, the result and the value to be kept: `return result, y`. What a jitted "
            "function does not return is lost, or leaks.",
            input={"x": x}, expected=_remember(x), got=got,
        )  # fmt: skip
    checks.no_leaks(remember, x)

    def as_plain_tuple(x):  # a named tuple is one, too
        return tuple(remember(x))

    checks.values(as_plain_tuple, _remember, inputs.arrays("n"), examples=[(x,)], recognise=[
        (lambda x: (jnp.sin(x), 2 * jnp.sin(x)), "The order is: first the result, 2 sin(x), then what is kept, sin(x)."),
        (lambda x: (2 * jnp.sin(x), x), "The value to keep is y = sin(x), not x."),
        (lambda x: (2 * x, x), "The sine is missing: y = sin(x)."),
        (lambda x: (2 * x, jnp.sin(x)), "The first is twice y, the sine, not twice x."),
        (lambda x: (2 * jnp.sin(x), 2 * jnp.sin(x)), "What is kept is y itself, before it is doubled."),
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


@jax.jit
def _remember_list(x):
    y = jnp.sin(x)
    return [2 * y, y]


@jax.jit
def _remember_stacked(x):
    y = jnp.sin(x)
    return jnp.stack([2 * y, y])


@jax.jit
def _remember_dict(x):
    y = jnp.sin(x)
    return {"result": 2 * y, "y": y}


@jax.jit
def _remember_doubled_input(x):
    y = jnp.sin(x)
    return 2 * x, y


@jax.jit
def _remember_doubled_twice(x):
    y = 2 * jnp.sin(x)
    return y, y


@jax.jit
def _remember_without_sine(x):
    return 2 * x, x


@jax.jit
def _remember_numpy(x):
    y = np.sin(x)
    return 2 * y, y


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
        Mistake(_remember_list, says="both in a list"),
        Mistake(_remember_stacked, says="both in one array"),
        Mistake(_remember_dict, says="both in a dict"),
        Mistake(_remember_doubled_input, says="not twice x"),
        Mistake(_remember_doubled_twice, says="before it is doubled"),
        Mistake(_remember_without_sine, says="The sine is missing"),
        Mistake(_remember_numpy, says="given to NumPy"),
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

    def scanned_twice(x, w):
        return lax.scan(lambda x, _: (scanned(x, w), None), x, None, length=3)[0]

    def nested(x, w):
        return jax.jit(
            lambda x, w: lax.scan(lambda x, _: (jax.jit(jnp.dot)(x, w), None), x, None, length=4)[0]
        )(x, w)

    def over(left, right):
        return functools.partial(lax.dot_general, dimension_numbers=((left, right), ((), ())))

    dot = jax.jit(jnp.dot)
    two, rounds = "two products, one after the other", "a product in a scan of 5 rounds"
    twice = "a jitted product, called twice"
    cases = {
        "x:(2, 3) @ w:(3, 5)": (jnp.dot, spec(2, 3), spec(3, 5)),
        two: (lambda x, w: (x @ w) @ w, spec(2, 3), spec(3, 3)),
        "a batch of products, x:(4, 2, 3) @ w:(4, 3, 5)": (jnp.matmul, spec(4, 2, 3), spec(4, 3, 5)),
        "a sum, no product": (jnp.sum, spec(4)),
        "a product and a sum, x:(2, 3) @ w:(3, 5) + b:(5,)": (
            lambda x, w, b: x @ w + b,
            spec(2, 3),
            spec(3, 5),
            spec(5),
        ),
        "x:(3, 2) and w:(3, 5), summed over their first axes": (over((0,), (0,)), spec(3, 2), spec(3, 5)),
        "x:(2, 3, 4) and w:(3, 4, 5), summed over two axes": (
            over((1, 2), (0, 1)),
            spec(2, 3, 4),
            spec(3, 4, 5),
        ),
        "a product inside jit": (jax.jit(jnp.dot), spec(2, 3), spec(3, 5)),
        twice: (lambda x, w: dot(dot(x, w), w), spec(2, 3), spec(3, 3)),
        rounds: (scanned, spec(2, 3), spec(3, 3)),
        "the same scan in another of 3 rounds": (scanned_twice, spec(2, 3), spec(3, 3)),
        "a product in a jit, in a scan of 4 rounds, in a jit": (nested, spec(2, 3), spec(3, 3)),
    }
    so_far = 0
    for name, (function, *specs) in cases.items():
        try:
            got, expected = count(function, *specs)
        except Failed as failure:
            failure.message = f"It happens with {name}.\n{failure.message}"
            raise
        if got is None:
            raise Failed("Your function returned None: is a `return` missing?", input=name, expected=expected)
        if isinstance(got, jax.Array):
            raise Failed(
                "Return a Python number. JAX's int32 ends at 2147483647, and a program soon takes more operations.",
                input=name, expected=expected, got=got,
            )  # fmt: skip
        if not isinstance(got, numbers.Real) or isinstance(got, bool):
            raise Failed(
                "Return a number: the sum over all products.", input=name, expected=expected, got=got
            )
        before, so_far = so_far, so_far + expected
        if got == expected:
            continue
        reason = "The number is not right."
        if before and got == so_far:
            reason = "The count goes on from the last jaxpr's. Begin at 0 in each call."
        elif name == two and 2 * got == expected:
            reason = "There are two products here, and you count one. Does your function return too early?"
        elif before == 0 and 2 * got == expected:
            reason = "A product of m x k by k x n takes m·n·k multiplications and as many additions: twice what you say."
        elif before == 0 and got == 0:
            reason = "You find no product. `equation.primitive.name` of a product is 'dot_general'."
        elif before == 0 and got == 1:
            reason = "This counts products. Asked for are the operations in each: 2·m·n·k."
        elif before == 0 and got == 2 * 2 * 5:
            reason = "k is missing: each element of the result is a sum of k products."
        elif before == 0 and got == 3 * expected:
            reason = "k counts twice: both inputs have that axis, but it is summed over once."
        elif "inside jit" in name and got == 0:
            reason = "The product stands inside a `jit` equation, which holds a jaxpr: go into it."
        elif name == rounds and 5 * got == expected:
            reason = "The body of a scan is recorded once, but runs `length` times."
        elif name == rounds and got == 0:
            reason = "A scan holds its body as a jaxpr: go into it, and count it `length` times."
        elif name == twice and 2 * got == expected:
            reason = "Two equations hold the same jaxpr, and it runs for each of them: both count."
        elif "another" in name and 3 * got == expected:
            reason = "The rounds multiply: the inner scan's 5 are run in each of the outer's 3."
        elif "another" in name or "in a jit," in name:
            reason = "What is inside may hold further jaxprs and further scans: the function has to call itself for it."
        elif "batch" in name and 4 * got == expected:
            reason = "Each product of the batch counts: the number of results is that of `equation.outvars[0].aval.size`."
        elif "batch" in name and got == 4 * expected:
            reason = "The axis of the batch counts twice: both inputs have it, and the result has it once."
        elif "summed over" in name or "batch" in name:
            reason = (
                "Which axes are summed over, and how many, is not always the same. It stands in "
                "`equation.params['dimension_numbers']`; k is the product of their lengths."
            )
        elif "a sum" in name:
            reason = "Only `dot_general` counts here."
        raise Failed(reason, input=name, expected=expected, got=got)


def _flops_without_additions(jaxpr):
    return _flops(jaxpr) // 2


def _flops_outer(jaxpr):
    return sum(_flops_of(equation) for equation in jaxpr.eqns)


def _flops_of(equation):
    if equation.primitive.name != "dot_general":
        return 0
    (contracted, _), _ = equation.params["dimension_numbers"]
    left = equation.invars[0].aval.shape
    return 2 * int(np.prod([left[axis] for axis in contracted])) * equation.outvars[0].aval.size


def _flops_each_body_once(jaxpr):
    return sum(_flops_of(equation) for _, equation in jaxprs.walk(jaxpr))


def _flops_one_level(jaxpr):
    total = _flops_outer(jaxpr)
    for equation in jaxpr.eqns:
        times = equation.params["length"] if equation.primitive.name == "scan" else 1
        for _, inner in jaxprs.subjaxprs(equation):
            total += times * _flops_each_body_once(inner)
    return total


def _flops_all_equations(jaxpr):
    additions = sum(e.outvars[0].aval.size for e in jaxpr.eqns if e.primitive.name == "add")
    return _flops(jaxpr) + additions


def _flops_each_jaxpr_once(jaxpr):
    total, seen = _flops_outer(jaxpr), []
    for equation in jaxpr.eqns:
        times = equation.params.get("length", 1)
        for _, inner in jaxprs.subjaxprs(equation):
            if not any(inner is other for other in seen):
                seen.append(inner)
                total += times * _flops_each_jaxpr_once(inner)
    return total


def _flops_rounds_of_the_last(jaxpr, times=1):
    total = times * _flops_outer(jaxpr)
    for equation in jaxpr.eqns:
        for _, inner in jaxprs.subjaxprs(equation):
            total += _flops_rounds_of_the_last(inner, equation.params.get("length", 1))
    return total


def _flops_of_matrices(equation):
    (m, k), (_, n) = (variable.aval.shape for variable in equation.invars)
    return 2 * m * k * n


def _flops_batch_twice(equation):
    ((left_axes, right_axes), _) = equation.params["dimension_numbers"]
    left, right = (variable.aval.shape for variable in equation.invars)
    return (
        2 * int(np.prod(left)) * int(np.prod([n for axis, n in enumerate(right) if axis not in right_axes]))
    )


def _flops_of_scans_alone(jaxpr):
    total = _flops_outer(jaxpr)
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            total += equation.params["length"] * _flops_of_scans_alone(equation.params["jaxpr"].jaxpr)
    return total


def _products(cost):
    def count(jaxpr):
        return sum(cost(equation) for equation in jaxpr.eqns if equation.primitive.name == "dot_general")

    return count


def _flops_early(jaxpr):
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            return _flops_of(equation)
    return 0


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
        Mistake(_flops_of_scans_alone, says="go into it"),
        Mistake(_flops_each_body_once, says="runs `length` times"),
        Mistake(_flops_one_level, says="has to call itself"),
        Mistake(_flops_rounds_of_the_last, says="The rounds multiply"),
        Mistake(_flops_each_jaxpr_once, says="hold the same jaxpr"),
        Mistake(_flops_all_equations, says="Only `dot_general` counts"),
        Mistake(_products(_flops_of_matrices), says="It happens with a batch of products"),
        Mistake(_products(_flops_batch_twice), says="counts twice: both inputs have it, and the result"),
        Mistake(_flops_per_equation, says="This counts products"),
        Mistake(_flops_early, says="return too early"),
        Mistake(_products(lambda e: 2 * e.outvars[0].aval.size), says="k is missing"),
        Mistake(
            _products(lambda e: 2 * e.invars[0].aval.size * e.invars[1].aval.size), says="k counts twice"
        ),
        Mistake(
            _products(lambda e: 2 * e.outvars[0].aval.size * e.invars[0].aval.shape[-1]),
            says="axes are summed over",
        ),
        Mistake(
            _products(lambda e: 2 * e.outvars[0].aval.size * e.invars[1].aval.shape[0]),
            says="axes are summed over",
        ),
        Mistake(lambda jaxpr: 0, says="You find no product"),
        Mistake(lambda jaxpr: jnp.int32(_flops(jaxpr)), says="int32 ends"),
        Mistake(lambda jaxpr: [_flops(jaxpr)], says="Return a number"),
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

    def first(x):
        lax.cos(x)
        return lax.exp(lax.sin(x))

    def all_used(x):
        return lax.sin(lax.cos(x))

    def all_dead(x):
        lax.sin(lax.cos(x))
        return x

    def long_chain(x):
        lax.exp(lax.tanh(lax.cos(lax.exp(lax.sin(x)))))
        return lax.sin(x)

    def literals(x):
        lax.mul(x, 3.0)
        return lax.mul(x, 2.0)

    def first_output(x):
        values, _ = lax.top_k(x, 2)
        return values

    def second_output(x):
        _, indices = lax.top_k(x, 2)
        return indices

    def two_outputs(x):
        lax.tanh(x)
        return lax.sin(x), lax.cos(x)

    def literal_output(x):
        lax.exp(x)
        return lax.sin(x), 2.0

    cases = {
        "lax.cos(x); return lax.exp(lax.sin(x))": first,
        "return lax.sin(lax.cos(x))": all_used,
        "a = sin(x); b = cos(a); exp(b); return a * tanh(x), a": chain,
        "exp(tanh(cos(exp(sin(x))))); return sin(x)": long_chain,
        "lax.sin(lax.cos(x)); return x": all_dead,
        "lax.mul(x, 3.0); return lax.mul(x, 2.0)": literals,
        "values, indices = lax.top_k(x, 2); return values": first_output,
        "values, indices = lax.top_k(x, 2); return indices": second_output,
        "lax.tanh(x); return lax.sin(x), lax.cos(x)": two_outputs,
        "lax.exp(x); return lax.sin(x), 2.0": literal_output,
    }
    for text, function in cases.items():
        jaxpr = jax.make_jaxpr(function)(jnp.ones(3)).jaxpr
        equations, expected = list(jaxpr.eqns), _dead(jaxpr)
        try:
            got = dead(jaxpr)
        except Failed as failure:
            if function is literals and "Literal" in failure.message:
                failure.message = (
                    f"Among the inputs stand literals, too: here 3.0 and 2.0.\n{failure.message}"
                )
            if function is literal_output:
                failure.message = f"An output may be a literal, too: here 2.0 is one.\n{failure.message}"
            raise
        if list(jaxpr.eqns) != equations:
            raise Failed(
                "Your function changes the jaxpr that it is given. Leave it as it is, and return the positions.",
                input=text,
            )
        positions = _positions(got, text, expected)
        if positions != expected:
            several = function in (first_output, second_output)
            reason = _why_not_dead(equations, positions, expected, function is first, several)
            if function is two_outputs and set(positions) in ({0, 1}, {0, 2}):
                reason = (
                    "The program has two outputs, and both are asked for: look at all of `jaxpr.outvars`."
                )
            raise Failed(reason, input=text, expected=expected, got=got)


def _positions(got, text, expected):
    shown = {"input": text, "expected": expected, "got": got}
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", **shown)
    try:
        found = list(got)
        if found and all(isinstance(item, (bool, np.bool_)) for item in found):
            raise Failed("Return the positions of the dead equations, not True or False for each.", **shown)
        return sorted(operator.index(item) for item in found)
    except TypeError:
        raise Failed(
            "Return a list of whole numbers, of type `int`: the positions in `jaxpr.eqns`.", **shown
        ) from None


def _why_not_dead(equations, positions, expected, is_first, several):
    count = len(equations)
    if is_first and positions == [n for n in range(count) if n not in expected]:
        return "You list the equations that are needed. Asked for are the others."
    if is_first and positions == [n + 1 for n in expected]:
        return "Positions are counted from 0: `jaxpr.eqns[0]` is the first equation."
    if is_first and positions == sorted(count - 1 - n for n in expected):
        return "You count from the end. Position 0 is that of the first equation, `jaxpr.eqns[0]`."
    if outside := [n for n in positions if not 0 <= n < count]:
        return f"There is no position {outside[0]}: here they go from 0 to {count - 1}."
    if len(set(positions)) < len(positions):
        return "A position stands in your list more than once."
    if wrong := sorted(set(positions) - set(expected)):
        if several:
            return "An equation is needed if *any* of its outputs is; here one of two is."
        name = equations[wrong[0]].primitive.name
        return f"Equation {wrong[0]} (`{name}`) is needed: follow where its results go, up to the outputs."
    number = min(set(expected) - set(positions))
    name = equations[number].primitive.name
    if any(made is used for made in equations[number].outvars for e in equations for used in e.invars):
        return (
            f"Equation {number} (`{name}`) is dead, too: what uses its result is itself not needed. "
            "Go through the equations from the last to the first."
        )
    return f"Equation {number} (`{name}`) is dead, and you do not list it."


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


def _dead_two_levels(jaxpr):
    live = jaxpr.eqns
    for _ in range(2):
        used = {v for v in jaxpr.outvars if not hasattr(v, "val")}
        used |= {v for e in live for v in e.invars if not hasattr(v, "val")}
        live = [e for e in live if not used.isdisjoint(e.outvars)]
    return [number for number, e in enumerate(jaxpr.eqns) if not any(e is other for other in live)]


def _dead_first_output(jaxpr):
    needed, unused = {v for v in jaxpr.outvars if not hasattr(v, "val")}, []
    for number in reversed(range(len(jaxpr.eqns))):
        if jaxpr.eqns[number].outvars[0] in needed:
            needed.update(v for v in jaxpr.eqns[number].invars if not hasattr(v, "val"))
        else:
            unused.append(number)
    return unused


def _dead_with_outputs(outputs, jaxpr):
    needed, unused = outputs(jaxpr), []
    for number in reversed(range(len(jaxpr.eqns))):
        if needed.isdisjoint(jaxpr.eqns[number].outvars):
            unused.append(number)
        else:
            needed.update(v for v in jaxpr.eqns[number].invars if not hasattr(v, "val"))
    return unused


def _dead_literal_inputs(jaxpr):
    needed, unused = {v for v in jaxpr.outvars if not hasattr(v, "val")}, []
    for number in reversed(range(len(jaxpr.eqns))):
        if needed.isdisjoint(jaxpr.eqns[number].outvars):
            unused.append(number)
        else:
            needed.update(jaxpr.eqns[number].invars)
    return unused


def _dead_forwards(jaxpr):
    needed, unused = {v for v in jaxpr.outvars if not hasattr(v, "val")}, []
    for number, equation in enumerate(jaxpr.eqns):
        if needed.isdisjoint(equation.outvars):
            unused.append(number)
        else:
            needed.update(v for v in equation.invars if not hasattr(v, "val"))
    return unused


def _dead_removed(jaxpr):
    unused = _dead(jaxpr)
    for number in reversed(unused):
        del jaxpr.eqns[number]
    return unused


def _live(jaxpr):
    return [number for number in range(len(jaxpr.eqns)) if number not in _dead(jaxpr)]


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
        Mistake(_dead_one_level, says="itself not needed"),
        Mistake(_dead_only_last, says="follow where its results go"),
        Mistake(_dead_all_outputs, says="*any* of its outputs"),
        Mistake(_dead_first_output, says="*any* of its outputs"),
        Mistake(_dead_two_levels, says="itself not needed"),
        Mistake(_dead_forwards, says="follow where its results go"),
        Mistake(_dead_literal_inputs, says="Among the inputs stand literals"),
        Mistake(
            functools.partial(_dead_with_outputs, lambda jaxpr: set(jaxpr.outvars)), says="may be a literal"
        ),
        Mistake(
            functools.partial(_dead_with_outputs, lambda jaxpr: {jaxpr.outvars[0]}),
            says="two outputs, and both",
        ),
        Mistake(
            functools.partial(_dead_with_outputs, lambda jaxpr: {*jaxpr.outvars[-1:]}),
            says="follow where its results go",
        ),
        Mistake(_dead_removed, says="changes the jaxpr"),
        Mistake(_live, says="You list the equations that are needed"),
        Mistake(lambda jaxpr: [number + 1 for number in _dead(jaxpr)], says="counted from 0"),
        Mistake(
            lambda jaxpr: [len(jaxpr.eqns) - 1 - number for number in _dead(jaxpr)], says="count from the end"
        ),
        Mistake(
            lambda jaxpr: [number - len(jaxpr.eqns) for number in _dead(jaxpr)], says="There is no position"
        ),
        Mistake(lambda jaxpr: 2 * _dead(jaxpr), says="more than once"),
        Mistake(lambda jaxpr: [n in _dead(jaxpr) for n in range(len(jaxpr.eqns))], says="not True or False"),
        Mistake(
            lambda jaxpr: [jaxpr.eqns[number] for number in _dead(jaxpr)],
            says="Return a list of whole numbers",
        ),
        Mistake(lambda jaxpr: len(_dead(jaxpr)), says="Return a list of whole numbers"),
    ),
)
