"""The exercises of the chapter jit."""

import functools
import gc
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs
from mlax_tutorial.checking.programs import forget
from mlax_tutorial.checking.reader import guard, original
from mlax_tutorial.inspection import retracing

# traces


_traces = {"a": 1, "b": 3, "c": 2, "d": 2, "e": 2, "f": 2, "g": 5, "h": 1}


def _check_traces(given):
    values = "The numbers are not in the key: all are weak floats."
    why = {
        "a": {3: values, 2: values},
        "b": {
            1: "Python's int, float and bool are three types to JAX: int32, float32 and bool.",
            2: "A bool is a type of its own, it is not the number 1: int32, float32 and bool.",
        },
        "c": {
            1: "A shape is more than the number of elements: (2,) and (1, 2) are two.",
            3: "A NumPy array of the same shape and dtype is the same type as a JAX array.",
        },
        "d": {
            1: "A longer list has more leaves: it is another structure.",
            3: "The third list has the structure and the types of the first.",
        },
        "e": {
            1: "A key that holds None is a part of the structure, though there is no leaf: the second dict has no such key.",
            3: "A dict's order does not count: the third has the structure of the first.",
        },
        "f": {
            1: "Which arguments come by name is a part of the key: `f(x=1.0)` is looked up apart from `f(1.0)`."
        },
        "g": {
            1: "`lambda` makes a new function each time it is run, and the function is the first part of the key.",
            0: "`jax.jit(...)(1.0)` calls the function, so it is traced.",
            6: "range(5) has five rounds.",
        },
        "h": {
            5: "The numbers are not in the key: five times a float32 without axes.",
            0: "The first call finds an empty cache.",
        },
    }
    checks.answers(given, _traces, why)


traces = Exercise(
    title="How many traces?",
    stars=1,
    minutes=5,
    why="Whoever can count traces by looking at the calls has half of all slow JAX programs explained.",
    hints=(
        "Write the key of each call: the structure, and for each leaf shape, dtype and whether it is weak. Then count the different ones.",
        "Python's `1`, `1.0` and `True` have three dtypes. A NumPy array has the type of a JAX array. None is structure, not a leaf.",
        "`g` makes a new function in each round.",
    ),
    solution=_traces,
    check=_check_traces,
    mistakes=(
        Mistake(_traces | {"a": 3}, says="all are weak floats"),
        Mistake(_traces | {"b": 1}, says="are three types to JAX"),
        Mistake(_traces | {"b": 2}, says="A bool is a type of its own"),
        Mistake(_traces | {"c": 1}, says="more than the number of elements"),
        Mistake(_traces | {"c": 3}, says="A NumPy array of the same shape"),
        Mistake(_traces | {"d": 3}, says="types of the first"),
        Mistake(_traces | {"e": 1}, says="the second dict has no such key"),
        Mistake(_traces | {"e": 3}, says="order does not count"),
        Mistake(_traces | {"f": 1}, says="looked up apart"),
        Mistake(_traces | {"g": 1}, says="makes a new function each time"),
        Mistake(_traces | {"h": 5}, says="five times a float32"),
        Mistake([1, 3, 2, 2, 2, 2, 5, 1], says="a dict is asked for"),
    ),
)


# counter


def _counter(state, x):
    largest = jnp.maximum(state["largest"], jnp.max(jnp.abs(x)))
    result = jnp.where(largest > 0, x / jnp.where(largest > 0, largest, 1.0), 0.0)
    return {"count": state["count"] + 1, "largest": largest}, result


def _start():
    return {"count": jnp.int32(0), "largest": jnp.float32(0.0)}


def _check_counter(counter):
    zero, x = jnp.zeros(2), jnp.array([1.0, -4.0])
    state = _start()
    got = counter(state, x)
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?")
    if not (isinstance(got, tuple) and len(got) == 2):
        raise Failed("Return two things, `return new_state, result`: the new state, and the result.", got=got)
    if isinstance(got[1], dict) and not isinstance(got[0], dict):
        raise Failed("The order is: first the new state, then the result.", got=got)
    if not isinstance(got[0], dict) or set(got[0]) != {"count", "largest"}:
        raise Failed('The new state is a dict like the old one, with "count" and "largest".', got=got[0])
    if got[0] is state:
        raise Failed(
            "You change the dict that the caller passed in. That is a side effect: make a new dict, and return it.",
            input={"state": _start(), "x": x},
            got=got[0],
        )
    for name, kind in (("count", "int32"), ("largest", "float32")):
        value = got[0][name]
        if not isinstance(value, jax.Array):
            raise Failed(f"`{name}` of the new state should be an array, as it was.", got=value)
        if value.dtype != kind or value.weak_type:
            raise Failed(
                f"`{name}` came as {kind} and goes as {'a weak ' * value.weak_type}{value.dtype}: the next call is traced again.",
                got=value,
            )
    recognise = [
        (
            lambda s, x: ({**_counter(s, x)[0], "count": s["count"]}, _counter(s, x)[1]),
            "The calls are not counted.",
        ),
        (
            lambda s, x: (_counter(s, x)[0], x / s["largest"]),
            "The result is divided by the *new* largest value.",
        ),
        (_without_abs, "The largest *absolute* value counts: that of [1, -4] is 4."),
        (
            lambda s, x: _counter({**s, "largest": jnp.float32(0)}, x),
            "The largest value is that of all calls so far: take the larger of the state's and the new one.",
        ),
    ]
    states = [
        _start(),
        {"count": jnp.int32(3), "largest": jnp.float32(8.1)},
        {"count": jnp.int32(1), "largest": jnp.float32(0.7)},
    ]
    checks.values(counter, _counter, examples=[(s, x) for s in states], recognise=recognise)
    try:
        checks.values(counter, _counter, examples=[(_start(), 1e-5 * x)])
    except Failed as failure:
        failure.message = (
            "Small numbers are scaled, too: only a largest value of 0 is treated apart, and nothing is added "
            f"to it.\n{failure.message}"
        )
        raise
    try:
        checks.values(counter, _counter, examples=[(_start(), zero), (_start(), zero[:1])])
    except Failed as failure:
        failure.message = f"As long as the largest value is 0, the result is 0.\n{failure.message}"
        raise
    strategies = inputs.one_of(*states), inputs.arrays("n", sizes=(1, 2, 5))
    checks.values(counter, _counter, *strategies, recognise=recognise)
    checks.pure(counter, states[1], x)
    later = counter(_start(), x)[0]
    checks.traces(counter, (_start(), x), (later, x), (states[2], 2 * x), exactly=1)


def _without_abs(state, x):
    largest = jnp.maximum(state["largest"], jnp.max(x))
    result = jnp.where(largest > 0, x / jnp.where(largest > 0, largest, 1.0), 0.0)
    return {"count": state["count"] + 1, "largest": largest}, result


def _counter_in_place(state, x):
    state["count"] = state["count"] + 1
    state["largest"] = jnp.maximum(state["largest"], jnp.max(jnp.abs(x)))
    return state, x / state["largest"]


def _counter_python_if(state, x):
    new, _ = _counter(state, x)
    if new["largest"] > 0:
        return new, x / new["largest"]
    return new, 0 * x


def _counter_divides(state, x):
    new, _ = _counter(state, x)
    return new, x / new["largest"]


def _counter_result_only(state, x):
    return _counter(state, x)[1]


def _counter_other_order(state, x):
    return _counter(state, x)[::-1]


def _counter_floats(state, x):
    new, result = _counter(state, x)
    return {**new, "count": state["count"] + 1.0}, result


def _counter_python_numbers(state, x):
    new, result = _counter(state, x)
    return {"count": int(new["count"]), "largest": new["largest"]}, result


def _counter_this_call(state, x):
    return _counter({**state, "largest": jnp.float32(0)}, x)


def _counter_not_counted(state, x):
    new, result = _counter(state, x)
    return {**new, "count": state["count"]}, result


def _counter_with_a_floor(state, x):
    new, _ = _counter(state, x)
    return new, x / jnp.maximum(new["largest"], 1e-3)


counter = Exercise(
    title="State by hand",
    stars=1,
    minutes=10,
    why="A function whose memory goes in and comes out can be jitted, differentiated, batched, saved and put back.",
    hints=(
        "The state is read from `state` and written into a new dict: `return {...}, result`.",
        "`max` and `if` ask for values, which are not known while tracing: `jnp.maximum`, `jnp.max` and `jnp.where` do not.",
        "To divide safely: `x / jnp.where(largest > 0, largest, 1.0)`.",
    ),
    solution=_counter,
    check=_check_counter,
    mistakes=(
        Mistake(_counter_in_place, says="You change the dict"),
        Mistake(_counter_python_if, says="asks for the value of a traced array"),
        Mistake(_counter_with_a_floor, says="Small numbers are scaled, too"),
        Mistake(_counter_divides, says="As long as the largest value is 0"),
        Mistake(_counter_result_only, says="Return two things"),
        Mistake(_counter_other_order, says="The order is"),
        Mistake(_counter_floats, says="came as int32"),
        Mistake(_counter_python_numbers, says="should be an array, as it was"),
        Mistake(_counter_this_call, says="of all calls so far"),
        Mistake(_counter_not_counted, says="The calls are not counted"),
        Mistake(_without_abs, says="The largest *absolute* value"),
    ),
)


# steady


def _steady(step):
    @jax.jit
    def jitted(weights, gradient, rate):
        return step(weights, gradient, rate)

    def steadied(weights, gradient, rate):
        return jitted(weights, gradient, np.float32(rate))

    return steadied


def _check_steady(steady):
    seen = []

    def step(weights, gradient, rate):
        seen.append(rate)
        return jax.tree.map(lambda w, g: w - rate * g, weights, gradient)

    weights, gradient = {"a": jnp.ones(3)}, {"a": jnp.arange(3.0)}
    rates = [0.1, 1, np.float32(0.25), np.float64(0.5), jnp.float32(0.75), jnp.asarray(2), 0.1]
    steadied = steady(step)
    if steadied is None:
        raise Failed("Your function returned None: is a `return` missing?")
    if not callable(steadied):
        raise Failed("`steady` returns a function, of `(weights, gradient, rate)`.", got=steadied)
    steadied = guard(steadied, "steady(step)")
    log = []
    for rate in rates:
        known = len(seen)
        got = steadied(weights, gradient, rate)
        if weights["a"].is_deleted() or gradient["a"].is_deleted():
            raise Failed("You donate an argument, and the caller goes on to use it.")
        said = (
            f"{type(rate).__name__} {rate}"
            if not isinstance(rate, jax.Array)
            else f"{rate.dtype} of jax, {rate}"
        )
        log.append(f"{said}: {'traced' if len(seen) > known else 'from the cache'}")
        if len(seen) > known and not isinstance(seen[-1], jax.core.Tracer):
            _rate_is_known(seen[-1], seen, steadied, weights, gradient)
        expected = {"a": weights["a"] - float(rate) * gradient["a"]}
        checks.same(got, expected, input={"rate": rate})
    if len(seen) != 1:
        raise Failed(
            f"The step was traced {len(seen)} times over {len(rates)} calls; it should be once. A number of Python's, of NumPy's and of JAX's "
            "have three types: make one of them before the jitted function is called.",
            shown=[("calls", "\n".join(log))],
        )
    if jnp.shape(seen[0]) != ():
        raise Failed(
            f"To the step the rate is an array of shape {jnp.shape(seen[0])}; it should be a scalar, of shape ()."
        )
    kind = jax.typeof(seen[0])
    if kind.dtype != jnp.float32 or kind.weak_type:
        raise Failed(
            f"To the step the rate is a {'weak ' * kind.weak_type}{kind.dtype}; it should be a float32 that is not weak."
        )
    with retracing.compilations() as compiled:
        for rate in (0.3, 3, np.float64(0.7)):
            steadied(weights, gradient, rate)
    if compiled:
        raise Failed(
            f"Something is still compiled for a new kind of rate: {', '.join(sorted(set(compiled)))}.",
        )
    half = {"a": jnp.ones(3, jnp.bfloat16)}
    known = len(seen)
    steadied(half, half, 0.1)
    if len(seen) != known + 1:
        raise Failed(
            "Weights of another dtype should be traced once more, and no more.", input="bfloat16 weights"
        )
    checks.same(steadied(half, half, 0.5), step(half, half, jnp.float32(0.5)), input="bfloat16 weights")


def _rate_is_known(rate, seen, steadied, weights, gradient):
    known = len(seen)
    steadied(weights, gradient, rate)
    if len(seen) > known:
        raise Failed("The step is run by Python at each call: it is not jitted.")
    raise Failed(
        "The rate is static: it is a constant of the program, and each new rate is traced. It has to be an argument that is traced."
    )


def _steady_plain(step):
    return jax.jit(step)


def _steady_static(step):
    return jax.jit(step, static_argnums=2)


def _steady_not_jitted(step):
    return lambda weights, gradient, rate: step(weights, gradient, np.float32(rate))


def _steady_inside(step):
    return jax.jit(lambda weights, gradient, rate: step(weights, gradient, jnp.float32(rate)))


def _steady_each_time(step):
    return lambda weights, gradient, rate: jax.jit(lambda *a: step(*a))(weights, gradient, np.float32(rate))


def _steady_weak(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, float(rate))


def _steady_asarray(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, jnp.asarray(rate))


def _steady_half(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, jnp.bfloat16(rate))


def _steady_frozen(step):
    jitted = {}

    def steadied(weights, gradient, rate):
        if "it" not in jitted:
            jitted["it"] = jax.jit(lambda weights, gradient: step(weights, gradient, np.float32(rate)))
        return jitted["it"](weights, gradient)

    return steadied


def _steady_donates(step):
    jitted = jax.jit(step, donate_argnums=0)
    return lambda weights, gradient, rate: jitted(weights, gradient, np.float32(rate))


steady = Exercise(
    title="One trace for every learning rate",
    stars=2,
    minutes=10,
    why="A schedule that hands out floats, integers and arrays in turn makes a training loop compile in the middle of the night.",
    hints=(
        "What is done inside of the jitted function comes too late: the key is made of what is passed in.",
        "So there are two functions: an outer one, plain Python, that makes a float32 of the rate, and an inner one that is jitted, once.",
        "`np.float32(rate)` takes any of these numbers, is not weak, and compiles nothing. (Of an array it waits for the value; "
        "`jnp.asarray(rate, jnp.float32)` does not.)",
    ),
    solution=_steady,
    check=_check_steady,
    mistakes=(
        Mistake(_steady_plain, says="have three types"),
        Mistake(_steady_inside, says="have three types"),
        Mistake(_steady_asarray, says="have three types"),
        Mistake(_steady_static, says="The rate is static"),
        Mistake(_steady_not_jitted, says="it is not jitted"),
        Mistake(_steady_each_time, says="have three types"),
        Mistake(_steady_weak, says="the rate is a weak float32"),
        Mistake(_steady_half, says="The result is wrong"),
        Mistake(_steady_frozen, says="The rate is static"),
        Mistake(_steady_donates, says="You donate an argument"),
    ),
)


# jit_method


def _jit_method(method):
    @functools.partial(jax.jit, static_argnums=0)
    def pure(kind, attributes, arguments):
        copy = object.__new__(kind)
        vars(copy).update(attributes)
        return method(copy, *arguments)

    def jitted(self, *arguments):
        return pure(type(self), vars(self), arguments)

    return jitted


def _check_jit_method(jit_method):
    runs = []

    def at(self, x):
        runs.append((type(self), isinstance(x, jax.core.Tracer)))
        return self.slope * x + self.offset

    def mixed(self, x, y):
        runs.append((type(self), isinstance(x, jax.core.Tracer)))
        return self.slope * x + self.offset * y + self.extra()

    def pick(self, offsets):
        return self.table[self.row] + offsets["small"][self.row]

    begun = []

    class Line:
        def __init__(self, a, b):
            begun.append(1)
            self.slope, self.offset = jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)

        def extra(self):
            return 0.0

    class Shifted(Line):
        def extra(self):
            return 100.0

    class Rows:
        def __init__(self):
            self.table, self.row = jnp.arange(4.0), jnp.int32(2)

    for the_class, method in ((Line, at), (Line, mixed), (Rows, pick)):
        name = method.__name__
        made = jit_method(method)
        if made is None:
            raise Failed("Your function returned None: is a `return` missing?")
        if not callable(made):
            raise Failed("`jit_method` returns a function, the new method.", got=made)
        setattr(the_class, name, guard(made, name))

    x = jnp.float32(5.0)
    line = Line(2.0, 1.0)
    said = "line, with slope = 2 and offset = 1"
    try:
        got = line.at(x)
    except Failed as failure:
        if "Error interpreting argument" in failure.message:
            failure.message = (
                "The object itself is handed to a jitted function as an argument that is traced, and it is no array and no "
                "pytree. Its attributes are: `vars(self)`."
            )
        raise
    checks.same(got, jnp.float32(11.0), input=f"{said}; line.at(5)")
    if len(begun) > 1:
        raise Failed(
            "The call runs the `__init__` of the class. Make the copy with `object.__new__(the_class)`."
        )
    if not runs[-1][1]:
        raise Failed("The method is run with real arrays, by Python: it is not jitted.")
    line.slope = jnp.float32(3.0)
    got = line.at(x)
    if not np.allclose(got, 16.0):
        raise Failed(
            "The slope was changed, and the old one still counts: it is a constant of the program. "
            "Attributes have to be arguments that are traced.",
            input=f"{said}; line.at(5); line.slope = 3; line.at(5)",
            expected=jnp.float32(16.0),
            got=got,
        )
    other = Line(-1.0, 0.0)
    checks.same(other.at(x), jnp.float32(-5.0), input="another line, with slope = -1 and offset = 0, at(5)")
    line.slope = jnp.float32(4.0)
    line.at(x + 1)
    if len(runs) > 1:
        raise Failed(
            f"The method was traced {len(runs)} times over four calls with the same types; it should be once, whatever the values of "
            "the attributes are, and for all objects of the class.",
        )
    checks.same(line.mixed(x, jnp.float32(2.0)), jnp.float32(22.0), input="a method of two arguments")
    try:
        got = Shifted(1.0, 0.0).mixed(x, jnp.float32(2.0))
    except Failed:
        raise
    if not np.allclose(got, 105.0):
        raise Failed(
            "In the method of a derived class, `self` has to be of that class: `type(self)`. Here the base class's methods are called, or a "
            "program is used that was made for the base class.",
            expected=jnp.float32(105.0),
            got=got,
        )
    if vars(line).keys() != {"slope", "offset"} or isinstance(line.slope, jax.core.Tracer):
        raise Failed(
            "The object itself is changed by the call: leave it as it is, and give the method a copy."
        )
    slope = jax.grad(lambda slope: Line(slope, 1.0).at(x))(2.0)
    if not np.allclose(slope, 5.0):
        raise Failed(
            "The gradient with respect to an attribute is lost: it has to be an argument that is traced."
        )
    offsets = {"small": 0.5 * jnp.arange(4.0)}
    checks.same(
        Rows().pick(offsets),
        jnp.float32(3.0),
        input="an attribute that is an index, an argument that is a dict",
    )
    rows = Line(jnp.ones((2, 3)), 0.0).at(jnp.arange(3.0))
    checks.same(rows, jnp.tile(jnp.arange(3.0), (2, 1)), input="an attribute that is a matrix")


def _method_plain(method):
    return method


def _method_jitted(method):
    return jax.jit(method)


def _method_static(method):
    return jax.jit(method, static_argnums=0)


def _method_partial(method):
    def jitted(self, *arguments):
        return jax.jit(functools.partial(method, self))(*arguments)

    return jitted


def _method_kept(method):
    programs = {}

    def jitted(self, *arguments):
        if id(self) not in programs:
            programs[id(self)] = jax.jit(functools.partial(method, self))
        return programs[id(self)](*arguments)

    return jitted


def _method_writes(method):
    def jitted(self, *arguments):
        @jax.jit
        def pure(attributes, arguments):
            vars(self).update(attributes)
            return method(self, *arguments)

        return pure(vars(self), arguments)

    return jitted


def _method_one_class(method):
    kinds = []

    @jax.jit
    def pure(attributes, arguments):
        copy = object.__new__(kinds[0])
        vars(copy).update(attributes)
        return method(copy, *arguments)

    def jitted(self, *arguments):
        kinds.append(type(self))
        return pure(vars(self), arguments)

    return jitted


def _method_namespace(method):
    import types

    @jax.jit
    def pure(attributes, arguments):
        return method(types.SimpleNamespace(**attributes), *arguments)

    return lambda self, *arguments: pure(vars(self), arguments)


def _method_static_values(method):
    @functools.partial(jax.jit, static_argnums=(0, 1))
    def pure(kind, attributes, arguments):
        copy = object.__new__(kind)
        vars(copy).update(attributes)
        return method(copy, *arguments)

    return lambda self, *arguments: pure(
        type(self), tuple((name, float(value)) for name, value in vars(self).items()), arguments
    )


def _method_begins(method):
    @functools.partial(jax.jit, static_argnums=0)
    def pure(kind, attributes, arguments):
        return method(kind(attributes["slope"], attributes["offset"]), *arguments)

    return lambda self, *arguments: pure(type(self), vars(self), arguments)


def _method_floats(method):
    inner = _jit_method(method)

    def jitted(self, *arguments):
        copy = object.__new__(type(self))
        vars(copy).update({name: jnp.asarray(value, jnp.float32) for name, value in vars(self).items()})
        return inner(copy, *arguments)

    return jitted


def _method_called(method):
    return jax.jit(method)(None, 1.0)


jit_method = Exercise(
    title="A decorator for methods",
    stars=3,
    minutes=20,
    why="What changes from call to call goes in as an argument; what Python must know is static. That is all that there is to jit and objects.",
    hints=(
        "Inside there is a pure, jitted function of the attributes and the arguments. The method itself needs an object: make one while tracing.",
        "`copy = object.__new__(kind)` and `vars(copy).update(attributes)` make an object that holds tracers; `method(copy, *arguments)` does the rest.",
        "The class is not an array. It is hashable, and there are few of them: `static_argnums=0`.",
        "Make the jitted function once, in `jit_method`, not at each call.",
    ),
    solution=_jit_method,
    check=_check_jit_method,
    mistakes=(
        Mistake(_method_plain, says="it is not jitted"),
        Mistake(_method_jitted, says="it is no array and no pytree"),
        Mistake(_method_begins, says="runs the `__init__`"),
        Mistake(_method_floats, says="dexer must have integer"),
        Mistake(_method_static, says="the old one still counts"),
        Mistake(_method_kept, says="the old one still counts"),
        Mistake(_method_partial, says="over four calls with the same types"),
        Mistake(_method_writes, says="outlived"),
        Mistake(_method_one_class, says="has to be of that class"),
        Mistake(_method_namespace, says="has no attribute 'extra'"),
        Mistake(_method_static_values, says="over four calls with the same types"),
        Mistake(_method_called, says="'NoneType' object has no attribute"),
    ),
)


# bucketed


def _bucketed(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        rows = np.zeros(size, x.dtype)
        rows[: len(x)] = x
        return padded(rows, np.int32(len(x)), np.float32(initial))

    return call


def _check_bucketed(bucketed):
    seen = []

    def watched(function):
        def reduce(x, where=None, initial=None):
            seen.append((jnp.shape(x), isinstance(x, jax.core.Tracer)))
            keywords = {} if where is None else {"where": where}
            return function(x, initial=initial, **keywords)

        return reduce

    lengths = sorted(
        {max(1, 2**i + d) for i in range(10) for d in (-1, 0, 1)}
        | {100, 200, 300, 400, 600, 700, 800, 900, 1000}
    )
    random = np.random.default_rng(0)
    few = [1, 3, 6, 100, 101]
    for function, in_numpy, initial in (
        (jnp.sum, np.sum, 0.5),
        (jnp.max, np.max, -9.0),
        (jnp.prod, np.prod, 2.1),
        (jnp.min, np.min, 9.0),
    ):
        seen.clear()
        call = bucketed(watched(function))
        if call is None:
            raise Failed("Your function returned None: is a `return` missing?")
        if not callable(call):
            raise Failed("`bucketed` returns a function, of `(x, initial)`.", got=call)
        call = guard(call, "bucketed(function)")
        for length in lengths if function is jnp.sum else few:
            x = random.uniform(0.9, 1.1, length).astype(np.float32)
            if function is jnp.max:
                x -= 5  # so that a zero would be larger
            elif function is jnp.min:
                x += 5
            before, known = x.copy(), len(seen)
            got = call(x, initial)
            if not np.array_equal(x, before):
                raise Failed("Your function changes the array that the caller passed in.")
            if len(seen) > known and not seen[-1][1]:
                raise Failed("The function is called with real arrays, by Python: it is not jitted.")
            expected = jnp.float32(in_numpy(x.astype(np.float64), initial=initial))
            shown = f"{function.__name__} of {length} numbers, initial={initial}"
            try:
                checks.same(got, expected, input=shown, rtol=1e-4)
            except Failed as failure:
                failure.message = f"{_why_not_bucketed(function, x, initial, got)}{failure.message}"
                raise
        if len(seen) > 11:
            said = ", ".join(str(shape[0]) for shape, _ in seen[:12] if shape)
            raise Failed(
                f"The function was traced {len(seen)} times for {len(lengths)} lengths; eleven are enough. "
                "Round the length up to a power of two, pad to that, and let the length itself be traced.",
                shown=[("traced for lengths", said + ", ...")],
            )
        if function is not jnp.sum:
            continue
        shortest = seen[0][0]  # what a vector of one number became
        with retracing.compilations() as compiled:
            for length, initial in ((6, 1.0), (90, 3.0), (130, 0.25), (600, 2.0), (601, 2.5)):
                call(np.ones(length, np.float32), initial)
        if compiled:
            break
        with retracing.compilations() as for_whole:
            call(np.ones(90, np.float32), 3)
        if for_whole:
            raise Failed(
                "For `initial=3` something is still compiled: to JAX a whole number of Python's is of another type than a "
                "float. Make one type of both, with NumPy.",
            )
    if compiled:
        raise Failed(
            f"For a new length something is still compiled: {', '.join(sorted(set(compiled)))}. Outside of `jit` the functions of "
            "`jnp` compile for each shape: prepare the inputs with NumPy.",
        )
    if shortest and shortest[0] > 64:
        raise Failed(
            f"A vector of one number is padded to {shortest[0]}; 64 is the most here. The short ones should not pay for the long ones: "
            "take the next power of two.",
        )
    for function, first, expected in ((jnp.prod, 0.0, 0.0), (jnp.max, 0.0, 0.0), (jnp.sum, np.nan, np.nan)):
        x = np.array([first, -2.0, -3.0], np.float32)
        start = -9.0 if function is jnp.max else 1.0
        got = guard(bucketed(function), "bucketed(function)")(x, start)
        if not np.array_equal(got, expected, equal_nan=True):
            raise Failed(
                "A number of the vector is taken for padding: the mask has to go by the position, not by the value.",
                input=f"{function.__name__} of {x}, initial={start}",
                expected=jnp.float32(expected),
                got=got,
            )


def _why_not_bucketed(function, x, initial, got):
    if not (isinstance(got, jax.Array) and got.shape == ()):
        return ""
    if np.allclose(got, initial):
        return "Nothing takes part in the result: your mask is false for all numbers.\n"
    if function is jnp.sum and np.allclose(got, x.sum(), rtol=1e-4):
        return "`initial` does not count: hand it on to the function.\n"
    if np.allclose(got, getattr(np, function.__name__)(x, initial=initial), rtol=1e-2):
        return "Nearly: is something rounded to a smaller dtype?\n"
    if function is jnp.sum and got < x.sum() + initial:
        return "Not all numbers take part: pad to a size that is larger than the length, or equal to it.\n"
    return "What was padded takes part in the result: hand `where=` to the function, a mask that is true for what counts.\n"


def _bucketed_jit(function):
    return jax.jit(lambda x, initial: function(x, initial=initial))


def _bucketed_no_mask(function):
    padded = jax.jit(lambda x, initial: function(x, initial=initial))

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(np.pad(x, (0, size - len(x))), np.float32(initial))

    return call


def _bucketed_by_jnp(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(jnp.pad(x, (0, size - len(x))), len(x), np.float32(initial))

    return call


def _bucketed_static_length(function):
    @functools.partial(jax.jit, static_argnames="length")
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(np.pad(x, (0, size - len(x))), length=len(x), initial=np.float32(initial))

    return call


def _bucketed_to_the_longest(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    return lambda x, initial: padded(np.pad(x, (0, 1000 - len(x))), np.int32(len(x)), np.float32(initial))


def _bucketed_by_tens(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    return lambda x, initial: padded(np.pad(x, (0, -len(x) % 32)), np.int32(len(x)), np.float32(initial))


def _bucketed_mask_by_value(function):
    padded = jax.jit(lambda x, initial: function(x, where=x < 0, initial=initial))

    def call(x, initial):
        return padded(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.float32(initial))

    return call


def _bucketed_without_zeros(function):
    padded = jax.jit(lambda x, initial: function(x, where=x != 0, initial=initial))

    def call(x, initial):
        return padded(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.float32(initial))

    return call


def _bucketed_without_nans(function):
    padded = jax.jit(lambda x, initial: function(x, where=~jnp.isnan(x), initial=initial))

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return padded(np.pad(x, (0, size - len(x)), constant_values=np.nan), np.float32(initial))

    return call


def _bucketed_initial_as_it_is(function):
    padded = jax.jit(lambda x, n, initial: function(x, where=jnp.arange(len(x)) < n, initial=initial))

    def call(x, initial):
        return padded(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.int32(len(x)), initial)

    return call


def _bucketed_half(function):
    inner = _bucketed(function)
    return lambda x, initial: inner(x, np.float16(initial))


def _bucketed_not_jitted(function):
    return lambda x, initial: function(x, initial=initial)


def _bucketed_cuts(function):
    @jax.jit
    def padded(x, initial):
        return function(x, initial=initial)

    return lambda x, initial: padded(x[: 1 << (len(x).bit_length() - 1)], np.float32(initial))


def _bucketed_forgets_initial(function):
    @jax.jit
    def padded(x, length):
        return function(x, where=jnp.arange(len(x)) < length, initial=0.0)

    def call(x, initial):
        return padded(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.int32(len(x)))

    return call


bucketed = Exercise(
    title="Few programs for many lengths",
    stars=2,
    minutes=15,
    why="Sequences, batches, images: whatever comes in many sizes is served by a handful of programs, if a mask says what counts.",
    hints=(
        "`1 << (length - 1).bit_length()` is the next power of two. From 1 to 1,024 there are eleven of them.",
        "The jitted function gets the padded vector and the length, as an array, and makes the mask: `jnp.arange(len(x)) < length`.",
        "Pad with NumPy, and hand over `np.int32(length)` and `np.float32(initial)`: one type, and nothing is compiled on the way.",
    ),
    solution=_bucketed,
    check=_check_bucketed,
    mistakes=(
        Mistake(_bucketed_jit, says="eleven are enough"),
        Mistake(_bucketed_static_length, says="eleven are enough"),
        Mistake(_bucketed_by_tens, says="eleven are enough"),
        Mistake(_bucketed_no_mask, says="What was padded takes part"),
        Mistake(_bucketed_mask_by_value, says="Nothing takes part"),
        Mistake(_bucketed_by_jnp, says="For a new length something is still compiled"),
        Mistake(_bucketed_to_the_longest, says="should not pay for the long ones"),
        Mistake(_bucketed_without_zeros, says="is taken for padding"),
        Mistake(_bucketed_without_nans, says="is taken for padding"),
        Mistake(_bucketed_initial_as_it_is, says="For `initial=3`"),
        Mistake(_bucketed_half, says="Nearly"),
        Mistake(_bucketed_not_jitted, says="it is not jitted"),
        Mistake(_bucketed_cuts, says="Not all numbers take part"),
        Mistake(_bucketed_forgets_initial, says="`initial` does not count"),
    ),
)


# masked_loss


def _masked_loss(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    labels = jnp.where(mask, labels, 0)
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


def _alone(logits, labels, mask):
    """The loss of the rows that count, and its gradient, by NumPy: nothing is compiled."""
    keep = np.asarray(mask)
    gradient = np.zeros(logits.shape, np.float32)
    if not keep.any():
        return jnp.float32(0.0), jnp.asarray(gradient)
    rows, labels = np.asarray(logits, np.float64)[keep], np.asarray(labels)[keep]
    weights = np.exp(rows - rows.max(1, keepdims=True))
    probabilities = weights / weights.sum(1, keepdims=True)
    each = np.arange(len(rows)), labels
    loss = -np.log(probabilities[each]).mean()
    probabilities[each] -= 1
    gradient[keep] = probabilities / len(rows)
    return jnp.float32(loss), jnp.asarray(gradient)


def _check_masked_loss(masked_loss):
    random = np.random.default_rng(1)

    def case(real, garbage=0.0, label=0, last=False, scale=3):
        mask = np.arange(4) < real
        mask = mask[::-1].copy() if last else mask
        logits = random.normal(size=(4, 3)).astype(np.float32) * scale
        labels = random.integers(0, 3, 4).astype(np.int32)
        logits[~mask], labels[~mask] = garbage, label
        return jnp.asarray(logits), jnp.asarray(labels), jnp.asarray(mask)

    def reference(logits, labels, mask):
        return _alone(logits, labels, mask)[0]

    surprised = jnp.array([[300.0, 0.0, 0.0], [0.0, 1.0, -300.0]]), jnp.array([1, 2]), jnp.array([True, True])
    cases = [
        ("all rows count", case(4)),
        ("large logits, whose exponentials are too large for float32", case(4, scale=90)),
        ("zeros in the rows that do not count", case(2)),
        ("the rows that count being the last ones", case(2, last=True)),
        ("label -1 in the rows that do not count", case(3, label=-1)),
        ("a label beyond the classes in the rows that do not count", case(3, label=7)),
        ("huge logits in the rows that do not count", case(2, garbage=1e30, label=1)),
        ("infinite logits in the rows that do not count", case(2, garbage=np.inf)),
        ("NaN in the rows that do not count", case(2, garbage=np.nan, label=-1)),
        ("a logit of 300 where the label is another class", surprised),
        ("no row that counts", case(0)),
        ("no row that counts, all being NaN", case(0, garbage=np.nan)),
    ]
    recognise = [
        (
            lambda *a: _mean_of_all(*a),
            "You divide by the number of all rows. It is the mean of those that count: divide by the sum of the mask.",
        ),
        (
            lambda logits, labels, mask: reference(logits, labels, mask | True),
            "All rows count here: the mask is not used.",
        ),
        (
            lambda logits, labels, mask: reference(logits, labels, mask) * mask.sum(),
            "This is the sum; asked for is the mean.",
        ),
        (
            lambda logits, labels, mask: (
                -jnp.sum(jnp.where(mask, jnp.take_along_axis(logits, labels[:, None], 1)[:, 0], 0))
                / jnp.maximum(mask.sum(), 1)
            ),
            "The logits are no logarithms of probabilities yet: `jax.nn.log_softmax` makes them so.",
        ),
        (
            lambda logits, labels, mask: -reference(logits, labels, mask),
            "The sign: cross-entropy is *minus* the logarithm, and positive.",
        ),
    ]
    for text, arguments in cases:
        logits, labels, mask = arguments
        expected = reference(*arguments)
        got = masked_loss(*arguments)
        shown = {"logits": logits, "labels": labels, "mask": mask}
        try:
            checks.same(got, expected, input=shown, rtol=1e-4, atol=1e-5)
        except Failed as failure:
            if isinstance(got, jax.Array) and got.shape == ():
                said = next((words for wrong, words in recognise if _same_number(got, wrong, arguments)), "")
                failure.message = f"{said or f'It happens with {text}.'}\n{failure.message}"
            raise
        gradient = _alone(*arguments)[1]
        given = jax.grad(masked_loss)(*arguments)
        if not np.allclose(given, gradient, rtol=1e-3, atol=1e-5):
            if not np.isfinite(given).all():
                reason = (
                    f"The value is right, and the gradient is not finite, with {text}. A mask on the *losses* does not protect the gradient: zero "
                    "times NaN is NaN. Make the *logits* of those rows harmless first, with another `jnp.where`."
                )
            else:
                reason = f"The value is right, and the gradient is not, with {text}."
            raise Failed(reason, input=shown, expected=gradient, got=given)
    checks.works_under_jit(masked_loss, *cases[2][1])
    checks.traces(masked_loss, cases[2][1], case(3), case(1), case(0), exactly=1)


def _same_number(got, wrong, arguments):
    try:
        return bool(np.allclose(got, wrong(*arguments), rtol=1e-4))
    except Exception:
        return False


def _losses(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]


def _mean_of_all(logits, labels, mask):
    return jnp.mean(jnp.where(mask, _losses(logits, labels), 0.0))


def _loss_multiplied(logits, labels, mask):
    return jnp.sum(mask * _losses(logits, labels)) / jnp.maximum(jnp.sum(mask), 1)


def _loss_one_where(logits, labels, mask):
    losses = _losses(logits, jnp.where(mask, labels, 0))
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


def _loss_no_labels(logits, labels, mask):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def _loss_of_mask(logits, labels, mask):
    return jnp.mean(_losses(logits[mask], labels[mask]))


def _loss_by_none(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    losses = _losses(logits, jnp.where(mask, labels, 0))
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.sum(mask)


def _loss_sum(logits, labels, mask):
    return _masked_loss(logits, labels, mask) * jnp.sum(mask)


def _loss_stopped(logits, labels, mask):
    count = jnp.maximum(jnp.sum(mask), 1)
    logits = jnp.where(mask[:, None], logits, jax.lax.stop_gradient(logits))
    losses = _losses(jax.lax.stop_gradient(logits), jnp.where(mask, labels, 0))
    return jnp.sum(jnp.where(mask, losses, 0.0)) / count


def _loss_nan_to_num(logits, labels, mask):
    losses = _losses(logits, jnp.where(mask, labels, 0))
    return jnp.nansum(jnp.where(mask, losses, jnp.nan)) / jnp.maximum(jnp.sum(mask), 1)


def _loss_first_rows(logits, labels, mask):
    count = jnp.sum(mask)
    mask = jnp.arange(len(logits)) < count
    return _masked_loss(logits, labels, mask)


def _loss_by_hand(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    picked = jnp.take_along_axis(logits, jnp.where(mask, labels, 0)[:, None], 1)[:, 0]
    losses = jnp.log(jnp.sum(jnp.exp(logits), axis=1)) - picked
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


def _loss_clipped(logits, labels, mask):
    return _masked_loss(jnp.clip(logits, -100, 100), labels, mask)


def _loss_of_each(logits, labels, mask):
    return jnp.where(mask, _masked_loss(logits, labels, mask), 0.0)


def _loss_no_softmax(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    picked = jnp.take_along_axis(logits, jnp.where(mask, labels, 0)[:, None], 1)[:, 0]
    return -jnp.sum(jnp.where(mask, picked, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


def _loss_sign(logits, labels, mask):
    return -_masked_loss(logits, labels, mask)


masked_loss = Exercise(
    title="Pad a batch, keep its gradient",
    stars=3,
    minutes=20,
    why="With a mask in the right places the last batch of an epoch needs no program of its own, and no example counts twice.",
    hints=(
        "The mean of the rows that count: `jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.sum(mask)`, and something for the case that this is 0.",
        "A label of -1 or 7 is no place in the logits: replace those labels before you look them up.",
        "The gradient goes back through both sides of a `where`. If the logits of a row are NaN, the slope is NaN, and 0 times NaN is NaN. So replace the *logits* of those rows at the very "
        "beginning, too.",
    ),
    solution=_masked_loss,
    check=_check_masked_loss,
    mistakes=(
        Mistake(_mean_of_all, says="You divide by the number of all rows"),
        Mistake(_loss_no_labels, says="the mask is not used"),
        Mistake(_loss_multiplied, says="not finite, with infinite logits"),
        Mistake(_loss_one_where, says="not finite, with infinite logits"),
        Mistake(_loss_nan_to_num, says="not finite, with infinite logits"),
        Mistake(_loss_of_mask, says="It happens with no row that counts."),
        Mistake(_loss_by_none, says="It happens with no row that counts."),
        Mistake(_loss_sum, says="asked for is the mean"),
        Mistake(_loss_stopped, says="the gradient is not, with all rows count"),
        Mistake(_loss_first_rows, says="being the last ones"),
        Mistake(_loss_no_softmax, says="no logarithms of probabilities"),
        Mistake(_loss_sign, says="The sign"),
        Mistake(_loss_clipped, says="a logit of 300"),
        Mistake(_loss_of_each, says="The shape is wrong"),
        Mistake(_loss_by_hand, says="too large for float32"),
    ),
)


# run


def _run(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


_ODD = (1237,)  # a shape that nothing else has, so that its arrays can be found among all that are alive


def _check_run(run):
    traced = []

    def step(state, batch):
        traced.append(isinstance(batch, jax.core.Tracer))
        weights = state["weights"] - 0.1 * batch
        return {"weights": weights, "average": 0.9 * state["average"] + 0.1 * weights}

    def start(twice=False):
        weights = jnp.linspace(0.0, 1.0, _ODD[0])
        return {"weights": weights, "average": weights if twice else 2 * weights}

    def expected_of(state, batches):
        for batch in batches:
            state = step(state, batch)
        return state

    batches = [jnp.full(_ODD, float(i)) for i in range(5)]
    state = start()
    expected = expected_of(start(), batches)
    traced.clear()
    forget(original(run))
    watch = _Alive()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        got = run(step, state, watch.over(batches, traced))
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?")
    if not traced:
        raise Failed("Your function never calls `step`.")
    if not traced[0]:
        raise Failed("The step is run by Python with real arrays, at each call: it is not jitted.")
    gone = [name for name, leaf in state.items() if leaf.is_deleted()]
    if gone:
        raise Failed(
            "The caller's own state is deleted: the first step donated it. Donate a copy of it, and from then on what you made yourself.",
            input="a state of two arrays, five batches",
        )
    unusable = any("donated buffers were not usable" in str(warning.message) for warning in heard)
    if unusable or any(batch.is_deleted() for batch in batches):
        raise Failed(
            "You donate the batches as well, and they are the caller's. Where a result fits, they are deleted; where none does, JAX warns."
        )
    checks.same(got, expected, input="a state of two arrays, five batches")
    if len(traced) > 1:
        raise Failed(
            f"The step was traced {len(traced)} times over five batches of one shape: jit it once, before the loop."
        )
    if not watch.donated and watch.ahead:
        raise Failed(
            "You fetch all batches before the first step. In a training loop they would not fit: fetch one, run the step, fetch the next.",
        )
    if not watch.donated:
        raise Failed(
            "The state is not donated, or you keep a copy: arrays of the state before a step are still there after it. Where the batch came from, the checker held on to "
            "them, and `is_deleted()` says no.",
        )
    if watch.moved:
        raise Failed(
            "The arrays of the state before a step are gone, but their memory is not used again: during the step both states are "
            "there. Do not delete the old one, donate it."
        )
    if watch.most > 2:
        raise Failed(
            f"While a batch is fetched, {watch.most} arrays of the size of the weights are alive beside the caller's; two are enough, one state. Do not keep what you have "
            "donated or copied.",
        )
    twin = start(twice=True)
    try:
        got = run(step, twin, batches)
    except Failed as failure:
        if "twice" in failure.message:
            failure.message = (
                'One array stands in the state under two names, `{"weights": w, "average": w}`, and it was donated twice: copy each leaf.'
                f"\n{failure.message}"
            )
        raise
    if twin["weights"].is_deleted():
        raise Failed("The caller's own state is deleted, where one array stands in it under two names.")
    checks.same(got, expected_of(start(twice=True), batches), input="one array under two names")
    empty = start()
    got = run(step, empty, [])
    checks.same(got, empty, input="no batches at all")
    if empty["weights"].is_deleted():
        raise Failed("Without any batch the caller's state is deleted.")


class _Alive:
    """Looks at the arrays of a state each time the next batch is asked for."""

    def __init__(self):
        gc.collect()
        self.kept = self.alive()  # so that ids stay theirs
        self.known = {id(leaf) for leaf in self.kept}
        self.most, self.donated, self.ahead = 0, False, False
        self.places, self.moved = set(), False

    @staticmethod
    def alive():
        return [leaf for leaf in jax.live_arrays() if leaf.shape == _ODD]

    def over(self, batches, traced):
        held = []
        for number, batch in enumerate(batches):
            self.ahead = not traced
            if held and all(leaf.is_deleted() for leaf in held):
                self.donated = True
            gc.collect()
            alive = [leaf for leaf in self.alive() if id(leaf) not in self.known]
            if number > 1:
                self.most = max(self.most, len(alive) - len([h for h in held if not h.is_deleted()]))
            if number in (2, 3):  # the new state is where the old one was
                self.moved = not self.places & _places(alive)
            held = alive if number in (1, 2) else []
            self.places = _places(held)
            yield batch


def _places(arrays):
    try:
        return {array.unsafe_buffer_pointer() for array in arrays if not array.is_deleted()}
    except (RuntimeError, NotImplementedError):  # a device that does not tell
        return {0}


def _run_deletes(step, state, batches):
    fast_step = jax.jit(step)
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        new = fast_step(state, batch)
        jax.tree.map(lambda leaf: leaf.delete(), state)
        state = new
    return state


def _run_donates_theirs(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    for batch in batches:
        state = fast_step(state, batch)
    return state


def _run_keeps(step, state, batches):
    fast_step = jax.jit(step)
    for batch in batches:
        state = fast_step(state, batch)
    return state


def _run_plain(step, state, batches):
    for batch in batches:
        state = step(state, batch)
    return state


def _run_jit_in_loop(step, state, batches):
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = jax.jit(lambda s, b: step(s, b), donate_argnums=0)(state, batch)
    return state


def _run_donates_batches(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=(0, 1))
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


def _run_first_apart(step, state, batches):
    first, later = jax.jit(lambda s, b: step(s, b)), jax.jit(lambda s, b: step(s, b), donate_argnums=0)
    for number, batch in enumerate(batches):
        state = later(state, batch) if number else first(state, batch)
    return state


def _run_shallow(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = dict(state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


def _run_asarray(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = jax.tree.map(jnp.asarray, state)
    for batch in batches:
        state = fast_step(state, batch)
    return state


def _run_no_return(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = fast_step(state, batch)


def _run_not_rebound(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    copy = jax.tree.map(jnp.copy, state)
    for batch in batches:
        new = fast_step(copy, batch)
    return new


def _run_lists(step, state, batches):
    return _run(step, state, list(batches))


def _run_copies_each_time(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    for batch in batches:
        state = fast_step(jax.tree.map(jnp.copy, state), batch)
    return state


def _run_copies_weights(step, state, batches):
    fast_step = jax.jit(step, donate_argnums=0)
    state = state | {"weights": jnp.copy(state["weights"])}
    for batch in batches:
        state = fast_step(state, batch)
    return state


run = Exercise(
    title="Donate safely",
    stars=3,
    minutes=15,
    why="Donation halves the memory of a state, and the one rule is: give away only what is yours.",
    hints=(
        "`jax.jit(step, donate_argnums=0)`, once, before the loop. In the loop the state is rebound: `state = fast_step(state, batch)`.",
        "The first state is the caller's. What you may donate is a copy of it.",
        "`jax.tree.map(jnp.copy, state)` copies each leaf by itself, so that two names get two arrays. `jnp.asarray` and `dict` copy no array.",
    ),
    solution=_run,
    check=_check_run,
    mistakes=(
        Mistake(_run_donates_theirs, says="The caller's own state is deleted: the first step"),
        Mistake(_run_shallow, says="The caller's own state is deleted: the first step"),
        Mistake(_run_asarray, says="The caller's own state is deleted: the first step"),
        Mistake(_run_copies_weights, says="The caller's own state is deleted: the first step"),
        Mistake(_run_keeps, says="The state is not donated"),
        Mistake(_run_copies_each_time, says="The state is not donated"),
        Mistake(_run_deletes, says="their memory is not used again"),
        Mistake(_run_lists, says="before the first step"),
        Mistake(_run_plain, says="it is not jitted"),
        Mistake(_run_jit_in_loop, says="jit it once, before the loop"),
        Mistake(_run_first_apart, says="jit it once, before the loop"),
        Mistake(_run_donates_batches, says="they are the caller's"),
        Mistake(_run_no_return, says="is a `return` missing"),
        Mistake(_run_not_rebound, says="has been deleted"),
    ),
)
