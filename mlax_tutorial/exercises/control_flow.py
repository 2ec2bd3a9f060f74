"""The exercises of the chapter Control flow."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs
from mlax_tutorial.checking.programs import under
from mlax_tutorial.inspection import jaxprs

# recorded


def _python_loop(x):
    for _ in range(5):
        x = jnp.sin(x)
    return x


def _asks_for_the_rank(x):
    return jnp.sin(x) if x.ndim == 2 else jnp.cos(x)


def _switches(x):
    return lax.switch(1, [jnp.sin, jnp.cos, jnp.sin], x)


def _mapped_cond(x):
    return jax.vmap(lambda y: lax.cond(y > 0, jnp.sin, jnp.cos, y))(x)


def _fori(x):
    return lax.fori_loop(0, 5, lambda i, y: jnp.sin(y), x)


def _where(x):
    return jnp.where(x > 0, jnp.sin(x), jnp.sin(-x))


RECORDED = {
    "a": _python_loop,
    "b": _asks_for_the_rank,
    "c": _switches,
    "d": _mapped_cond,
    "e": _fori,
    "f": _where,
}

_recorded = {"a": 5, "b": 0, "c": 2, "d": 1, "e": 1, "f": 2}


def _check_recorded(given):
    x = jax.ShapeDtypeStruct((3,), jnp.float32)
    expected = {name: jaxprs.count(function, x)["sin"] for name, function in RECORDED.items()}
    per_element = "One equation works on the whole array, however many elements it has."
    why = {
        "a": {
            1: "The loop is Python's: it is run while tracing, and its body is recorded in each round.",
            15: per_element,
            0: "Python's loop leaves no loop behind, but what its body asks of JAX is recorded.",
        },
        "b": {
            1: "A shape is known while tracing, so Python takes one side, and here that is the cosine.",
            2: "An `if` of Python's leaves one of its sides in the program, and no trace of the other.",
            3: per_element,
        },
        "c": {
            0: "The program holds all sides of a switch, those that are not taken, too.",
            1: "All sides of a switch are traced, each by itself: the sine stands there twice.",
            3: "One of the three sides is a cosine.",
        },
        "d": {
            0: "Under vmap the cond is replaced by a select; what its sides computed is still computed.",
            3: "vmap makes no loop and no copies: its equations work on the whole batch.",
            2: "Only one of the two sides is a sine.",
        },
        "e": {
            5: "fori_loop stays a loop: its body is recorded once, however often it runs.",
            0: "The body of the loop is inside the loop's equation, and inner jaxprs count.",
        },
        "f": {
            0: "`where` is given two finished arrays: what computes them is in the program.",
            1: "The two inputs of a where are computed before it picks: two sines.",
            3: per_element,
            6: per_element,
        },
    }
    checks.answers(given, expected, why)


recorded = Exercise(
    title="How many sines?",
    stars=1,
    minutes=5,
    why="You can tell from the source what a program holds: what Python decides, what is copied, and what stays a loop.",
    hints=(
        "Ask of each `if` and each `for`: is it Python's? Then it is carried out while tracing.",
        "What JAX's own functions hold (sides, bodies) is recorded once each, whether and however often it runs.",
    ),
    solution=_recorded,
    check=_check_recorded,
    mistakes=(
        Mistake(_recorded | {"a": 1}, says="recorded in each round"),
        Mistake(_recorded | {"b": 1}, says="that is the cosine"),
        Mistake(_recorded | {"c": 1}, says="the sine stands there twice"),
        Mistake(_recorded | {"c": 0}, says="those that are not taken"),
        Mistake(_recorded | {"d": 0}, says="still computed"),
        Mistake(_recorded | {"d": 3}, says="no loop and no copies"),
        Mistake(_recorded | {"e": 5}, says="recorded once, however often"),
        Mistake(_recorded | {"f": 1}, says="before it picks"),
        Mistake(_recorded | {"a": 15, "f": 6}, says="however many elements"),
        Mistake(_recorded | {"a": "5"}, says="A number is asked for"),
        Mistake(list(_recorded.values()), says="a dict is asked for"),
    ),
)


# recurrent


def _recurrent(w, u, h, xs):
    def step(h, x):
        h = jnp.tanh(w @ h + u @ x)
        return h, h

    return lax.scan(step, h, xs)


def _check_recurrent(recurrent):
    def sequence(draw):
        n, m, time = draw(inputs.integers(1, 3)), 2, draw(inputs.one_of(1, 2, 4))
        small = {"low": -1, "high": 1}
        return (
            draw(inputs.arrays(n, n, **small)),
            draw(inputs.arrays(n, m, **small)),
            draw(inputs.arrays(n, **small)),
            draw(inputs.arrays(time, m, **small)),
        )

    def of_size(time):
        w = jnp.array([[0.5, -0.25], [0.75, 0.1]])
        u = jnp.array([[1.0, 0.5, 0.0], [-0.5, 0.25, 1.0]])
        return w, u, jnp.array([0.1, -0.2]), jnp.sin(jnp.arange(3.0 * time)).reshape(time, 3)

    telling = of_size(4)
    recognise = [
        (
            _recurrent_previous,
            "The state before the step is given out; the states asked for are those after each step.",
        ),
        (
            _recurrent_forgets,
            "Every step starts from the first state: the new one must be the carry that the body returns.",
        ),
        (
            lambda w, u, h, xs: _recurrent(w.T, u, h, xs),
            "`w @ h` is asked for, and `h @ w` is another product.",
        ),
        (
            lambda w, u, h, xs: lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x),) * 2, h, xs, reverse=True),
            "The sequence is read from its end.",
        ),
        (
            lambda w, u, h, xs: _recurrent(w, u, jnp.zeros_like(h), xs),
            "The loop starts at zero, not at `h`.",
        ),
        (
            lambda w, u, h, xs: _recurrent(w, jnp.zeros_like(u), h, xs),
            "The inputs have no effect: `u @ x` is missing.",
        ),
        (
            lambda w, u, h, xs: _recurrent(w, u, h, xs)[::-1],
            "The two results are in the wrong order: the last state comes first, then all states.",
        ),
        (
            lambda w, u, h, xs: _recurrent(w, u, h, xs)[1],
            "Two results are asked for: the last state, and all states.",
        ),
    ]
    checks.values(recurrent, _recurrent, examples=[telling], recognise=recognise)
    checks.values(recurrent, _recurrent, inputs.together(sequence), recognise=recognise, count=8)
    for time in (5, 20):
        checks.jaxpr(recurrent, *of_size(time), requires=(("scan", "while"),), counts={"tanh": 1})
    for _, equation in jaxprs.walk(jax.make_jaxpr(lambda *arguments: recurrent(*arguments))(*of_size(20))):
        if equation.primitive.name == "scan" and equation.params["unroll"] >= 20:
            raise Failed(
                "The jaxpr is right, but `unroll` copies the body for every step when it is compiled: the program grows "
                "with the sequence again."
            )
    try:
        empty = (*telling[:3], jnp.zeros((0, 3)))
        checks.same(recurrent(*empty), _recurrent(*empty), input="a sequence of no steps")
    except Failed as failure:
        failure.message = f"This is right, but not for an empty sequence.\n{failure.message}"
        raise
    checks.works_under_jit(recurrent, *telling)
    checks.gradients(recurrent, _recurrent, *telling, argnums=(0, 1, 2, 3), finite_differences=False)


def _recurrent_unrolled(w, u, h, xs):
    states = []
    for x in xs:
        h = jnp.tanh(w @ h + u @ x)
        states.append(h)
    return h, jnp.stack(states)


def _recurrent_previous(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x), h), h, xs)


def _recurrent_forgets(w, u, h, xs):
    last, states = lax.scan(lambda same, x: (same, jnp.tanh(w @ same + u @ x)), h, xs)
    return states[-1], states


def _recurrent_transposed(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(h @ w + u @ x),) * 2, h, xs)


def _recurrent_swapped(w, u, h, xs):
    last, states = _recurrent(w, u, h, xs)
    return states, last


def _recurrent_states_only(w, u, h, xs):
    return _recurrent(w, u, h, xs)[1]


def _recurrent_last_of_states(w, u, h, xs):
    states = _recurrent(w, u, h, xs)[1]
    return states[len(states) - 1] if len(states) else jnp.zeros_like(h), states


def _recurrent_one_result(w, u, h, xs):
    return lax.scan(lambda h, x: jnp.tanh(w @ h + u @ x), h, xs)


def _recurrent_from_zero(w, u, h, xs):
    return _recurrent(w, u, jnp.zeros_like(h), xs)


def _recurrent_backwards(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x),) * 2, h, xs, reverse=True)


def _recurrent_unrolled_later(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x),) * 2, h, xs, unroll=True)


def _recurrent_twice(w, u, h, xs):
    return lax.scan(lambda h, x: (jnp.tanh(w @ h + u @ x), jnp.tanh(w @ h + u @ x)), h, xs)


recurrent = Exercise(
    title="A recurrent loop as a scan",
    stars=2,
    minutes=15,
    why="The program no longer grows with the sequence: this is how every recurrent layer is written in JAX.",
    hints=(
        "The state is handed on, so it is the carry; the steps of the sequence are the inputs of the scan.",
        "The body is a function of `(h, x)` that returns two things: the new carry, and what is to be stacked.",
        "`lax.scan(step, h, xs)`, and `step` returns `h, h` with the new `h`.",
    ),
    solution=_recurrent,
    check=_check_recurrent,
    mistakes=(
        Mistake(_recurrent_unrolled, says="no `scan` or `while`"),
        Mistake(_recurrent_unrolled_later, says="copies the body for every step"),
        Mistake(_recurrent_previous, says="The state before the step"),
        Mistake(_recurrent_forgets, says="Every step starts from the first state"),
        Mistake(_recurrent_transposed, says="is another product"),
        Mistake(_recurrent_swapped, says="in the wrong order"),
        Mistake(_recurrent_states_only, says="Two results are asked for"),
        Mistake(_recurrent_last_of_states, says="not for an empty sequence"),
        Mistake(_recurrent_one_result, says="scan body output must be a pair"),
        Mistake(_recurrent_from_zero, says="starts at zero"),
        Mistake(_recurrent_backwards, says="from its end"),
        Mistake(_recurrent_twice, says="`tanh` twice"),
    ),
)


# newton


def _newton(f, x):
    def going(state):
        x, rounds = state
        return (jnp.abs(f(x)) > 1e-5) & (rounds < 50)

    def body(state):
        x, rounds = state
        return x - f(x) / jax.grad(f)(x), rounds + 1

    return lax.while_loop(going, body, (x, 0))


def _two(x):
    return x * x - 2.0


def _fixed_point(x):
    return jnp.cos(x) - x


def _no_zero(x):
    return jnp.abs(x) + 1.0


def _there_already(x):
    return jnp.sin(x)


def _tail(x):
    return jnp.exp(x)


def _check_newton(newton):
    advice = {
        _two: "",
        _fixed_point: "",
        _tail: "",
        _there_already: "Where the first `x` is a zero already, no step is taken: ask before you step.",
        _no_zero: "This function has no zero: after 50 rounds the loop must end.",
    }
    starts = [
        (_two, 5.0),
        (_two, 1.0),
        (_fixed_point, 1.0),
        (_tail, 1.0),
        (_there_already, 0.0),
        (_no_zero, 1.0),
    ]
    text = {
        _two: "x * x - 2",
        _fixed_point: "cos(x) - x",
        _tail: "exp(x)",
        _there_already: "sin(x)",
        _no_zero: "abs(x) + 1",
    }
    x = jnp.float32(1.0)
    try:
        got = newton(_two, x)
    except Failed as failure:
        if "TracerBool" in failure.message:
            failure.message = (
                "In the question and in the body all is traced. Two conditions are joined by `&` there, and not by "
                f"`and`, and a choice is made by `jnp.where`, not by `if`.\n{failure.message}"
            )
        raise
    if got is not None and (not isinstance(got, (tuple, list)) or len(got) != 2):
        raise Failed("A pair is asked for: the zero, and how many steps were taken.", got=got)
    if got is not None and not _whole(got[1]) and _whole(got[0]):
        raise Failed(
            "The two results are in the wrong order: first the zero, then the number of steps.", got=got
        )
    if got is not None and not _whole(got[1]):
        raise Failed("The number of rounds is a whole number: start counting at 0, not at 0.0.", got=got)
    for f, start in (*starts, (_two, 0.0)):
        shown = f"f(x) = {text[f]}, from x = {start}"
        try:
            got = newton(f, jnp.float32(start))
            expected = _newton(f, jnp.float32(start))
            if isinstance(got, list):
                got = tuple(got)
            checks.same(_arrays(got), _arrays(expected), input=shown, rtol=1e-5, atol=1e-5)
        except Failed as failure:
            reason = advice[f] or _why_not_newton(got, f, start)
            failure.message = f"{reason}\n{failure.message}" if reason else failure.message
            raise
    checks.works_under_jit(lambda x: _arrays(newton(_two, x)), jnp.float32(5.0))
    checks.jaxpr(lambda x: newton(_two, x), jnp.float32(5.0), requires=("while",), forbids=("scan",))
    checks.works_under_vmap(lambda x: _arrays(newton(_two, x)), jnp.array([1.0, 5.0, 40.0]))


def _whole(number):
    return jnp.issubdtype(jnp.result_type(number), jnp.integer)


def _arrays(pair):
    """As it is, with a whole number of any width as an int32, and tuple for list."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        return pair
    x, rounds = pair
    return x, jnp.asarray(rounds, jnp.int32) if _whole(rounds) else rounds


def _why_not_newton(got, f, start):
    if not isinstance(got, tuple) or len(got) != 2:
        return ""
    if start == 0.0:
        return (
            "The slope is 0 here: the step leads to infinity, the next one to NaN, and NaN is not larger than $10^{-5}$, "
            "so the loop ends. Nothing is to be done about it."
        )
    for wrong, reason in (
        (_newton_without_abs, "Without the absolute value a negative $f(x)$ ends the loop."),
        (_newton_uphill, "The step goes the wrong way: it is *minus* $f(x) / f'(x)$."),
        (
            _newton_reversed,
            "The loop goes on while $|f(x)|$ is *large*: the question is when to go on, not when to stop.",
        ),
        (
            _newton_one_more,
            "One step is taken too many, or counted too many: the count starts at 0, and the loop ends as soon as "
            "$|f(x)|$ is no larger than $10^{-5}$.",
        ),
        (_newton_by_step, "The loop ends by the size of the step; asked for is the size of $f(x)$."),
        (_newton_upside_down, "The step is $f(x) / f'(x)$, not $f'(x) / f(x)$."),
    ):
        try:
            checks.same(_arrays(got), _arrays(wrong(f, jnp.float32(start))), rtol=1e-5, atol=1e-5)
        except Failed:
            continue
        return reason
    return ""


def _loop_of_newton(going, body):
    def newton(f, x):
        return lax.while_loop(functools.partial(going, f), functools.partial(body, f), (x, 0))

    return newton


def _goes_on(f, state):
    return (jnp.abs(f(state[0])) > 1e-5) & (state[1] < 50)


def _steps(f, state):
    return state[0] - f(state[0]) / jax.grad(f)(state[0]), state[1] + 1


_newton_uphill = _loop_of_newton(
    _goes_on, lambda f, state: (state[0] + f(state[0]) / jax.grad(f)(state[0]), state[1] + 1)
)
_newton_upside_down = _loop_of_newton(
    _goes_on, lambda f, state: (state[0] - jax.grad(f)(state[0]) / f(state[0]), state[1] + 1)
)
_newton_reversed = _loop_of_newton(lambda f, state: (jnp.abs(f(state[0])) <= 1e-5) & (state[1] < 50), _steps)
_newton_endless = _loop_of_newton(lambda f, state: jnp.abs(f(state[0])) > 1e-5, _steps)
_newton_without_abs = _loop_of_newton(lambda f, state: (f(state[0]) > 1e-5) & (state[1] < 50), _steps)
_newton_with_and = _loop_of_newton(lambda f, state: jnp.abs(f(state[0])) > 1e-5 and state[1] < 50, _steps)
_newton_with_or = _loop_of_newton(lambda f, state: (jnp.abs(f(state[0])) > 1e-5) | (state[1] < 50), _steps)


def _newton_one_more(f, x):
    x, rounds = _newton(f, x)
    return x, rounds + 1


def _newton_finer(f, x):
    going = lambda state: (jnp.abs(f(state[0])) > 1e-6) & (state[1] < 50)  # noqa: E731
    return lax.while_loop(going, functools.partial(_steps, f), (x, 0))


def _newton_past_nan(f, x):
    going = lambda state: ~(jnp.abs(f(state[0])) <= 1e-5) & (state[1] < 50)  # noqa: E731
    return lax.while_loop(going, functools.partial(_steps, f), (x, 0))


def _newton_mended_slope(f, x):
    def body(state):
        slope = jax.grad(f)(state[0])
        return state[0] - f(state[0]) / jnp.where(slope == 0, 1.0, slope), state[1] + 1

    return lax.while_loop(functools.partial(_goes_on, f), body, (x, 0))


def _newton_swapped(f, x):
    return _newton(f, x)[::-1]


def _newton_by_step(f, x):
    def going(state):
        return (jnp.abs(f(state[0]) / jax.grad(f)(state[0])) > 1e-5) & (state[1] < 50)

    return lax.while_loop(going, functools.partial(_steps, f), (x, 0))


def _newton_at_least_one(f, x):
    return lax.while_loop(functools.partial(_goes_on, f), functools.partial(_steps, f), _steps(f, (x, 0)))


def _newton_python(f, x):
    rounds = 0
    while abs(f(x)) > 1e-5 and rounds < 50:
        x = x - f(x) / jax.grad(f)(x)
        rounds += 1
    return x, rounds


def _newton_all_rounds(f, x):
    def body(i, state):
        x, rounds = state
        on = jnp.abs(f(x)) > 1e-5
        return jnp.where(on, x - f(x) / jax.grad(f)(x), x), rounds + on

    return lax.fori_loop(0, 50, body, (x, 0))


def _newton_only_x(f, x):
    return _newton(f, x)[0]


def _newton_float_rounds(f, x):
    return lax.while_loop(functools.partial(_goes_on, f), functools.partial(_steps, f), (x, 0.0))


newton = Exercise(
    title="Newton's method in a while_loop",
    stars=2,
    minutes=15,
    why="A solver that stops when it is done, inside one program: it can be jitted, mapped over and put into others.",
    hints=(
        "The carry is the pair `(x, rounds)`; the question and the body both get it whole.",
        "Two conditions on arrays are joined by `&`, each in brackets: Python's `and` would ask for a number.",
        "`jax.grad(f)(x)` is the slope; the body returns `(x - f(x) / slope, rounds + 1)`.",
    ),
    solution=_newton,
    check=_check_newton,
    mistakes=(
        Mistake(_newton_uphill, says="The step goes the wrong way"),
        Mistake(_newton_upside_down, says="not $f'(x) / f(x)$"),
        Mistake(_newton_reversed, says="not when to stop"),
        Mistake(_newton_endless, says="iterations"),
        Mistake(_newton_without_abs, says="Without the absolute value"),
        Mistake(_newton_with_and, says="joined by `&` there"),
        Mistake(_newton_one_more, says="One step is taken too many"),
        Mistake(_newton_finer, says="One step is taken too many"),
        Mistake(_newton_past_nan, says="NaN is not larger"),
        Mistake(_newton_mended_slope, says="NaN is not larger"),
        Mistake(_newton_swapped, says="in the wrong order"),
        Mistake(_newton_by_step, says="by the size of the step"),
        Mistake(_newton_at_least_one, says="ask before you step"),
        Mistake(_newton_python, says="Under `jax.jit`"),
        Mistake(_newton_all_rounds, says="no `while`"),
        Mistake(_newton_only_x, says="A pair is asked for"),
        Mistake(_newton_float_rounds, says="not at 0.0"),
    ),
)


# cumulative


def _cumulative(x, way):
    one = jnp.ones((), x.dtype)
    if way == "scan":
        return lax.scan(lambda product, value: (product * value,) * 2, one, x)[1]
    if way == "fori_loop":

        def body(i, state):
            product, products = state
            product = product * x[i]
            return product, products.at[i].set(product)

        return lax.fori_loop(0, len(x), body, (one, jnp.zeros_like(x)))[1]
    return lax.associative_scan(jnp.multiply, x)


WAYS = ("scan", "fori_loop", "associative_scan")


def _check_cumulative(cumulative):
    telling = jnp.array([2.0, 3.0, -1.0, 0.5, 4.0])
    for way in WAYS:
        by_way = functools.partial(_in_a_way, cumulative, way)
        reference = functools.partial(_in_a_way, _cumulative, way)
        recognise = [
            (lambda x: jnp.cumsum(x), "These are running sums, not products."),
            (
                lambda x: jnp.cumprod(jnp.concatenate([jnp.ones(1, x.dtype), x[:-1]])),
                "Element `i` leaves `x[i]` itself out: the product goes up to it, and includes it.",
            ),
            (lambda x: jnp.cumprod(x[::-1])[::-1], "These products run from the end."),
            (lambda x: jnp.prod(x), "This is the product of all; the running ones are asked for."),
            (
                lambda x: jnp.zeros_like(x),
                "All products are zero: where does the first one start? At 1, not at 0.",
            ),
        ]
        try:
            checks.values(by_way, reference, examples=[(telling,)], recognise=recognise)
            drawn = inputs.arrays("n", sizes=(1, 3, 5), low=-2, high=2)
            checks.values(by_way, reference, drawn, recognise=recognise, count=6)
            _not_unrolled(by_way, way)
            whole = jnp.array([3, 1, 2], jnp.int32)
            try:
                checks.same(by_way(whole), reference(whole), input={"x": whole})
            except Failed as failure:
                failure.message = f"The dtype must stay, that of whole numbers, too.\n{failure.message}"
                raise
            checks.works_under_jit(by_way, telling)
        except Failed as failure:
            failure.message = f'With way = "{way}": {failure.message}'
            raise


def _in_a_way(function, way, x):
    return function(x, way)


def _not_unrolled(by_way, way):
    short, long = (jax.make_jaxpr(by_way)(jnp.ones(n)) for n in (8, 64))
    names = [e.primitive.name for _, e in jaxprs.walk(long)]
    loops = [e for _, e in jaxprs.walk(long) if e.primitive.name in ("scan", "while")]
    if any(name.startswith(("cumprod", "cumsum", "cumlogsumexp")) for name in names):
        raise Failed("JAX's own running product does the work; here the loop is to be yours.")
    if way == "associative_scan":
        if loops:
            raise Failed(
                "The jaxpr holds a loop, so the products are made one after the other: `lax.associative_scan` makes a tree."
            )
        if names.count("mul") > 20:
            raise Failed(
                f"The jaxpr holds {names.count('mul')} products for 64 elements; a tree needs two for each of its levels."
            )
        if names.count("mul") <= 2:
            raise Failed(
                "The jaxpr holds no tree of products, and no call of `lax.associative_scan` looks like this."
            )
        return
    if not loops:
        count = names.count("mul")
        raise Failed(
            f"The jaxpr holds no loop, but {count} products for 64 elements: is it Python that loops?"
            if count > 30
            else f"The jaxpr holds no loop: use `lax.{way}`."
        )
    if len(names) != len(list(jaxprs.walk(short))):
        raise Failed("The jaxpr grows with the vector: something is still unrolled.")
    with_tape = [e for e in loops if e.primitive.name == "scan" and _tape(e)]
    if way == "scan" and not with_tape:
        raise Failed(
            "The loop has neither inputs nor outputs for its rounds: `lax.scan` can slice `x` for you and stack the results."
        )
    if way == "fori_loop" and len(with_tape) == len(loops):
        raise Failed(
            "The jaxpr holds a scan that slices or stacks; a `fori_loop` has only its carry and a counter."
        )


def _tape(equation):
    """Whether a scan slices inputs or stacks outputs: then they have an axis more outside than inside."""
    body = equation.params["jaxpr"]
    outside = [variable.aval.shape for variable in (*equation.invars, *equation.outvars)]
    return outside != [aval.shape for aval in (*body.in_avals, *body.out_avals)]


def _cumulative_library(x, way):
    return jnp.cumprod(x)


def _cumulative_python(x, way):
    if way != "scan":
        return _cumulative(x, way)
    products = [jnp.ones((), x.dtype)]
    for i in range(len(x)):
        products.append(products[-1] * x[i])
    return jnp.stack(products[1:]) if len(x) else x


def _cumulative_exclusive(x, way):
    return lax.scan(lambda product, value: (product * value, product), jnp.ones((), x.dtype), x)[1]


def _cumulative_all(x, way):
    return lax.scan(lambda product, value: (product * value,) * 2, jnp.ones((), x.dtype), x)[0]


def _cumulative_from_zero(x, way):
    return lax.scan(lambda product, value: (product * value,) * 2, jnp.zeros((), x.dtype), x)[1]


def _cumulative_float(x, way):
    return lax.scan(lambda product, value: (product * value,) * 2, jnp.float32(1), x)[1]


def _cumulative_sums(x, way):
    return lax.scan(lambda total, value: (total + value,) * 2, jnp.zeros((), x.dtype), x)[1]


def _cumulative_always_scan(x, way):
    return _cumulative(x, "scan")


def _cumulative_no_tree(x, way):
    return _cumulative(x, "scan" if way == "associative_scan" else way)


def _cumulative_tree_everywhere(x, way):
    return lax.associative_scan(jnp.multiply, x)


def _cumulative_backwards(x, way):
    return lax.associative_scan(jnp.multiply, x, reverse=True)


def _cumulative_last_only(x, way):
    return lax.fori_loop(0, len(x), lambda i, product: product * x[i], jnp.ones((), x.dtype))


cumulative = Exercise(
    title="A running product in three ways",
    stars=2,
    minutes=15,
    why="You know what each loop is for: a tape, an array that is written into, and a tree of a logarithmic depth.",
    hints=(
        'Python chooses: `if way == "scan": …`. The carry of the scan is the product so far, and its output as well.',
        "A `fori_loop` has no outputs: let it carry an array of the full size, and write with `.at[i].set`.",
        "`lax.associative_scan(jnp.multiply, x)` is the third. For the others: in which dtype does the product start?",
    ),
    solution=_cumulative,
    check=_check_cumulative,
    mistakes=(
        Mistake(_cumulative_library, says="JAX's own running product"),
        Mistake(_cumulative_python, says="is it Python that loops?"),
        Mistake(_cumulative_exclusive, says="leaves `x[i]` itself out"),
        Mistake(_cumulative_all, says="the product of all"),
        Mistake(_cumulative_from_zero, says="At 1, not at 0"),
        Mistake(_cumulative_float, says="The dtype must stay"),
        Mistake(_cumulative_sums, says="running sums, not products"),
        Mistake(_cumulative_always_scan, says="a scan that slices or stacks"),
        Mistake(_cumulative_no_tree, says="makes a tree"),
        Mistake(_cumulative_tree_everywhere, says="use `lax.scan`"),
        Mistake(_cumulative_backwards, says="run from the end"),
        Mistake(_cumulative_last_only, says="the product of all"),
    ),
)


# settle


def _settle(a):
    def body(x, _):
        going = jnp.abs(x * x - a) > 1e-4 * a
        return jnp.where(going, 0.5 * (x + a / x), x), None

    return lax.scan(body, a, length=20)[0]


def _check_settle(settle):
    recognise = [
        (
            _settle_always,
            "This is closer to the root than the loop comes. It stops as soon as it may: a round that is no longer "
            "needed changes nothing, and whether it is needed is asked of the old `x`.",
        ),
        (
            _settle_absolute,
            "The rounds end by another measure: the error is compared with `1e-4 * a`, so it is a relative one.",
        ),
        (_settle_short, "The loop may take up to 20 rounds; here it ends too early."),
        (lambda a: a, "`a` comes back as it was: is the new `x` carried on?"),
    ]
    examples = [(jnp.float32(a),) for a in (2.0, 10.0, 0.01, 1.0, 5000.0, 3.0, 7.5, 0.3)]
    checks.values(settle, _settle, examples=examples, recognise=recognise, rtol=2e-6, atol=1e-9)
    for a in (2.0, 10.0, 0.01):
        checks.gradients(settle, _settle, jnp.float32(a), finite_differences=False)
    try:
        checks.gradients(settle, _settle, jnp.float32(1.0), finite_differences=False)
    except Failed as failure:
        failure.message = (
            "At 1 no round is needed, so the result is `a` itself, with slope 1: the loop starts from `a`, for the "
            f"gradient, too.\n{failure.message}"
        )
        raise
    checks.works_under_jit(settle, jnp.float32(2.0))
    with under("`jax.jit(jax.grad(…))`"):
        jax.jit(jax.grad(lambda a: settle(a)))(jnp.float32(2.0))
    checks.jaxpr(settle, jnp.float32(2.0), requires=("scan",), forbids=("while",), at_most={"div": 3})
    far = jnp.float32(1e12)
    try:
        checks.same(settle(far), _settle(far), input={"a": far})
    except Failed as failure:
        if reason := _too_many_or_too_few(float(settle(far)), float(far)):
            failure.message = f"{reason}\n{failure.message}"
        raise
    checks.works_under_vmap(settle, jnp.array([2.0, 1.0, 30.0]))


def _too_many_or_too_few(got, a):
    """The loop halves so large a number again and again; 20 rounds are not enough for it to settle."""
    x = a
    for taken in range(30):
        if np.isclose(x, got, rtol=1e-3) and taken != 20:
            return (
                f"From a = {a:g} the root is not reached in 20 rounds, and the loop ends there; yours takes "
                + ("fewer." if taken < 20 else "more.")
            )
        x = 0.5 * (x + a / x)
    return ""


def _settle_refused(a):
    def going(x):
        return jnp.abs(x * x - a) > 1e-4 * a

    return lax.while_loop(going, lambda x: 0.5 * (x + a / x), a)


def _settle_always(a):
    return lax.fori_loop(0, 20, lambda i, x: 0.5 * (x + a / x), a)


def _settle_from(x, a, rounds=20, bound=1e-4, relative=True):
    def body(x, _):
        going = jnp.abs(x * x - a) > (bound * a if relative else bound)
        return jnp.where(going, 0.5 * (x + a / x), x), None

    return lax.scan(body, x, length=rounds)[0]


def _settle_absolute(a):
    return _settle_from(a, a, relative=False)


def _settle_short(a):
    return _settle_from(a, a, rounds=4)


def _settle_ten(a):
    return _settle_from(a, a, rounds=10)


def _settle_nineteen(a):
    return _settle_from(a, a, rounds=19)


def _settle_hundred(a):
    return _settle_from(a, a, rounds=100)


def _settle_from_one(a):
    return _settle_from(jnp.ones_like(a), a)


def _settle_start_stopped(a):
    return _settle_from(lax.stop_gradient(a), a)


def _settle_one_late(a):
    def body(x, _):
        new = 0.5 * (x + a / x)
        return new, None

    x = _settle(a)
    return body(x, None)[0]


def _settle_unrolled(a):
    x = a
    for _ in range(20):
        x = jnp.where(jnp.abs(x * x - a) > 1e-4 * a, 0.5 * (x + a / x), x)
    return x


def _settle_python(a):
    x = a
    while abs(x * x - a) > 1e-4 * a:
        x = 0.5 * (x + a / x)
    return x


def _settle_root(a):
    return jnp.sqrt(a)


def _settle_stopped(a):
    return _settle(lax.stop_gradient(a)) + 0.0 * a


def _settle_not_carried(a):
    return lax.scan(lambda x, _: (x, jnp.where(x * x > a, 0.5 * (x + a / x), x)), a, length=20)[0]


def _settle_dynamic(a):
    def going(state):
        return jnp.abs(state[0] ** 2 - a) > 1e-4 * a

    rounds = lax.while_loop(going, lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1), (a, 0))[1]
    return lax.fori_loop(0, lax.stop_gradient(rounds), lambda i, x: 0.5 * (x + a / x), a)


settle = Exercise(
    title="A loop that can be differentiated",
    stars=3,
    minutes=20,
    why="With a bound and a select a loop of unknown length gets a gradient: vmap does to a while_loop what you did here.",
    hints=(
        "A number of rounds that is known while tracing: `lax.scan(body, a, length=20)`.",
        "Each round asks whether it is still needed, and `jnp.where` keeps the old `x` if not.",
        "`going = jnp.abs(x * x - a) > 1e-4 * a`, asked of the old `x`; then `jnp.where(going, new, x)`.",
    ),
    solution=_settle,
    check=_check_settle,
    mistakes=(
        Mistake(_settle_refused, says="`jax.grad` refuses"),
        Mistake(_settle_dynamic, says="jax.jit(jax.grad(…))` refuses"),
        Mistake(_settle_always, says="closer to the root"),
        Mistake(_settle_absolute, says="by another measure"),
        Mistake(_settle_short, says="it ends too early"),
        Mistake(_settle_ten, says="yours takes fewer"),
        Mistake(_settle_nineteen, says="yours takes fewer"),
        Mistake(_settle_hundred, says="yours takes more"),
        Mistake(_settle_from_one, says="starts from `a`, for the gradient, too"),
        Mistake(_settle_start_stopped, says="starts from `a`, for the gradient, too"),
        Mistake(_settle_one_late, says="closer to the root"),
        Mistake(_settle_unrolled, says="no `scan`"),
        Mistake(_settle_python, says="TracerBoolConversionError"),
        Mistake(_settle_root, says="closer to the root"),
        Mistake(_settle_stopped, says="right\nThe gradient is wrong"),
        Mistake(_settle_not_carried, says="is the new `x` carried on?"),
    ),
)


# norm


def _norm(x):
    squares = jnp.sum(x * x)
    harmless = jnp.where(squares > 0, squares, 1.0)
    return jnp.where(squares > 0, jnp.sqrt(harmless), 0.0)


def _check_norm(norm):
    recognise = [
        (lambda x: jnp.sum(x * x), "This is the square of the length: the root is missing."),
        (lambda x: jnp.sum(jnp.abs(x)), "This is the sum of the sizes, which is another length."),
        (lambda x: jnp.sqrt(jnp.mean(x * x)), "You average the squares; they should be added up."),
    ]
    short = jnp.array([3e-13, 0.0, -4e-13])
    examples = [(jnp.array([3.0, 0.0, -4.0]),), (jnp.array([-2.0]),)]
    checks.values(norm, _norm, examples=examples, recognise=recognise)
    zero, small = norm(jnp.zeros(3)), norm(short)
    checks.returns(lambda x: zero, jnp.zeros(3), shape=(), dtype=jnp.float32)
    try:
        checks.same(zero, jnp.float32(0.0), input="x = [0, 0, 0]", rtol=0, atol=0)
        checks.same(small, _norm(short), input=f"x = {short.tolist()}", rtol=1e-4, atol=0)
    except Failed as failure:
        advice = (
            "This is wrong for short vectors: add nothing, and put no bound on anything."
            if zero == 0
            else "The length of a zero vector is 0, exactly: add nothing to its square, and put no bound on it."
            if zero < 1e-3
            else "The length of a zero vector is 0."
        )
        failure.message = f"{advice}\n{failure.message}"
        raise
    checks.values(norm, _norm, inputs.arrays("n", sizes=(1, 2, 3)), recognise=recognise, count=8)
    checks.gradients(norm, _norm, jnp.array([3.0, 0.0, -4.0]))
    for x, advice in (
        (
            jnp.zeros(3),
            "At zero the gradient should be zero. The slope of the root is infinite there, and a "
            "`where` behind it comes too late: see to it that the root never sees a 0.",
        ),
        (short, "A short vector has a gradient of length 1, as any other."),
    ):
        try:
            checks.gradients(norm, _norm, x, finite_differences=False)
        except Failed as failure:
            failure.message = f"{advice}\n{failure.message}"
            raise
    rows = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    checks.works_under_jit(norm, rows[1])
    checks.works_under_vmap(norm, rows)
    batched = jax.grad(lambda rows: jax.vmap(norm)(rows).sum())
    expected = jnp.array([[0.0, 0.0], [0.6, 0.8]])
    checks.same(batched(rows), expected, where="in the gradient of a batch", input={"rows": rows})


def _norm_naive(x):
    return jnp.sqrt(jnp.sum(x * x))


def _norm_where_behind(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(squares), 0.0)


def _norm_epsilon(x):
    return jnp.sqrt(jnp.sum(x * x) + 1e-8)


def _norm_smallest(x):
    return jnp.sqrt(jnp.sum(x * x) + jnp.finfo(x.dtype).tiny)


def _norm_at_least_smallest(x):
    return jnp.sqrt(jnp.maximum(jnp.sum(x * x), jnp.finfo(x.dtype).tiny))


def _norm_one_at_zero(x):
    squares = jnp.sum(x * x)
    return jnp.sqrt(jnp.where(squares > 0, squares, 1.0))


def _norm_epsilon_mended(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(squares + 1e-12), 0.0)


def _norm_bound(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(jnp.maximum(squares, 1e-12)), 0.0)


def _norm_nan_to_num(x):
    return jnp.nan_to_num(jnp.sqrt(jnp.sum(x * x)))


def _norm_python(x):
    if jnp.sum(x * x) == 0:
        return 0.0 * jnp.sum(x)
    return jnp.sqrt(jnp.sum(x * x))


def _norm_square(x):
    return jnp.sum(x * x)


def _norm_mean(x):
    return jnp.sqrt(jnp.mean(x * x))


def _norm_sizes(x):
    return jnp.abs(x).sum()


def _norm_stopped(x):
    squares = jnp.sum(x * x)
    return jnp.where(squares > 0, jnp.sqrt(lax.stop_gradient(squares)), 0.0)


def _norm_numpy(x):
    return np.linalg.norm(x)


def _norm_threshold(x):
    squares = jnp.sum(x * x)
    safe = jnp.where(squares > 1e-12, squares, 1.0)
    return jnp.where(squares > 1e-12, jnp.sqrt(safe), 0.0)


def _norm_low_threshold(x):
    squares = jnp.sum(x * x)
    return jnp.sqrt(jnp.where(squares > 1e-20, squares, 1.0)) * (squares > 1e-20)


norm = Exercise(
    title="A length whose gradient is no NaN",
    stars=2,
    minutes=10,
    why="One zero vector in a batch turns all parameters to NaN in the next update: the double where keeps it from that.",
    hints=(
        "Where does the NaN come from? The slope of the root at 0 is infinite, and `where` multiplies it by zero.",
        "Two `where`s: one so that the root gets something harmless instead of 0, one to pick the result.",
        "`harmless = jnp.where(squares > 0, squares, 1.0)`",
    ),
    solution=_norm,
    check=_check_norm,
    mistakes=(
        Mistake(_norm_naive, says="comes too late"),
        Mistake(_norm_where_behind, says="comes too late"),
        Mistake(_norm_nan_to_num, says="comes too late"),
        Mistake(_norm_epsilon, says="a zero vector is 0, exactly"),
        Mistake(_norm_smallest, says="a zero vector is 0, exactly"),
        Mistake(_norm_at_least_smallest, says="a zero vector is 0, exactly"),
        Mistake(_norm_one_at_zero, says="The length of a zero vector is 0.\n"),
        Mistake(_norm_epsilon_mended, says="wrong for short vectors"),
        Mistake(_norm_bound, says="wrong for short vectors"),
        Mistake(_norm_threshold, says="wrong for short vectors"),
        Mistake(_norm_low_threshold, says="wrong for short vectors"),
        Mistake(_norm_python, says="TracerBoolConversionError"),
        Mistake(_norm_square, says="the root is missing"),
        Mistake(_norm_mean, says="You average the squares"),
        Mistake(_norm_sizes, says="another length"),
        Mistake(_norm_stopped, says="The gradient is wrong"),
        Mistake(_norm_numpy, says="NumPy's functions"),
    ),
)
