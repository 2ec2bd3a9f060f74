"""The exercises of the chapter Errors: ten broken functions."""

import functools
import gc
import re

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import checkify

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks, inputs
from mlax_tutorial.checking.programs import forget, fresh, under
from mlax_tutorial.checking.reader import original
from mlax_tutorial.inspection import jaxprs


def _no_tracers(got, advice):
    """Fails where a result holds a tracer that outlived its trace."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(got)):
        raise Failed(f"A tracer got out of its trace, and stands in the result. {advice}")


def _explained(advice, check, *arguments, **options):
    """A check whose failure begins with what is behind it."""
    try:
        check(*arguments, **options)
    except Failed as failure:
        failure.message = f"{advice}\n{failure.message}"
        raise


# clip_total


def _clip_total(x, limit):
    return jnp.minimum(jnp.sum(x), limit)


def _check_clip_total(clip_total):
    recognise = [
        (lambda x, limit: jnp.maximum(jnp.sum(x), limit), "This is the larger of the two, not the smaller."),
        (
            lambda x, limit: jnp.sum(jnp.minimum(x, limit)),
            "Each element is clipped here; asked for is the clipped sum.",
        ),
    ]
    x = jnp.array([1.0, 2.5, -0.5])
    calls = [(x, jnp.float32(limit)) for limit in (10.0, 2.0, -1.0)]
    if hasattr(original(clip_total), "lower"):
        _explained(
            "Every limit makes a program of its own: what may change often should not be static.",
            checks.traces,
            clip_total,
            *[(x, float(limit)) for _, limit in calls],
            exactly=1,
        )
    checks.values(
        clip_total, _clip_total, inputs.arrays("n"), inputs.arrays(), examples=calls, recognise=recognise
    )
    for arguments in calls:
        checks.works_under_jit(clip_total, *arguments)
    checks.traces(clip_total, *calls, exactly=1)
    checks.works_under_vmap(clip_total, jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([2.0, 9.0]))
    for arguments in calls:
        checks.gradients(clip_total, _clip_total, *arguments, argnums=(0, 1))


def _clip_total_broken(x, limit):
    total = jnp.sum(x)
    if total > limit:
        return limit
    return total


def _clip_total_by_python(x, limit):
    return min(jnp.sum(x), limit)


def _clip_total_float(x, limit):
    total = float(jnp.sum(x))
    return jnp.where(total > limit, limit, total)


@functools.partial(jax.jit, static_argnums=1)
def _clip_total_static(x, limit):
    total = jnp.sum(x)
    return jnp.where(total > limit, limit, total)


def _clip_total_numpy(x, limit):
    return np.minimum(np.sum(x), limit)


def _clip_total_stopped(x, limit):
    return lax.stop_gradient(jnp.minimum(jnp.sum(x), limit))


clip_total = Exercise(
    title="A branch on a traced value",
    stars=1,
    minutes=5,
    why="A choice between two numbers belongs into the program: then it is traced once, batched and differentiated.",
    hints=(
        "The error names the line: it is the `if`, as it asks for a Boolean.",
        "`jnp.where(condition, one, other)` chooses in the program. For this very choice there is a shorter word.",
    ),
    solution=_clip_total,
    check=_check_clip_total,
    mistakes=(
        Mistake(_clip_total_broken, says="if total > limit:"),
        Mistake(_clip_total_by_python, says="return min("),
        Mistake(_clip_total_float, says="ConcretizationTypeError"),
        Mistake(_clip_total_static, says="should not be static"),
        Mistake(_clip_total_numpy, says="NumPy's functions compute"),
        Mistake(_clip_total_stopped, says="The gradient is wrong"),
        Mistake(lambda x, limit: jnp.maximum(jnp.sum(x), limit), says="the larger of the two"),
        Mistake(lambda x, limit: jnp.sum(jnp.minimum(x, limit)), says="Each element is clipped"),
    ),
)


# pick


def _pick(table, i):
    return jnp.asarray(table).at[i].get(mode="fill", fill_value=jnp.nan)


def _check_pick(pick):
    tables = np.array([0.5, 1.5, 4.0, 9.0, 16.0], np.float32), np.array([3.0, -1.0], np.float32)
    places = (
        jnp.int32(1),
        jnp.array([0, 1, 1]),
        jnp.array([[1], [0]]),
        jnp.int32(-1),
        jnp.array([-2, -1]),
        jnp.int32(7),
        jnp.array([0, 5, 100]),
        jnp.array([-1, -6, -100]),
    )
    advice = {
        3: "Inside the table this is right, but not for all negative indices: they count from the end, down to -n.",
        5: "Inside the table this is right, but not beyond its end: a missing element is NaN.",
        7: "This is right up to the end, but not before the beginning: a missing element is NaN there, too.",
    }
    for table in tables:
        for number, i in enumerate(places):
            where = next(
                (text for first, text in sorted(advice.items(), reverse=True) if number >= first), ""
            )
            shown = {"table": table, "i": i}
            forget(original(pick))
            with under("`jax.jit(lambda i: pick(table, i))`"):
                got = jax.jit(lambda i, table=table: pick(table, i))(i)
            try:
                checks.same(got, _pick(table, i), input=shown)
            except Failed as failure:
                failure.message = f"{where}\n{failure.message}".lstrip()
                raise
    table, i = tables[0], jnp.array([0, -1, 7])
    checks.same(pick(table, i), _pick(table, i), where="without `jit`", input={"table": table, "i": i})
    _explained(
        "A callback goes back to Python for each lookup: the table fits into the program.",
        checks.jaxpr,
        lambda i: pick(table, i),
        i,
        forbids=("pure_callback", "io_callback"),
    )


def _pick_broken(table, i):
    return table[i]


def _pick_from_a_list(table, i):
    return jnp.float32(list(table)[i])


def _pick_clamps(table, i):
    return jnp.asarray(table)[i]


def _pick_never_negative(table, i):
    inside = (i >= 0) & (i < len(table))
    return jnp.where(inside, jnp.asarray(table)[i], jnp.nan)


def _pick_clamps_below(table, i):
    return jnp.where(i < len(table), jnp.asarray(table)[i], jnp.nan)


def _pick_one_short(table, i):
    inside = (i > -len(table)) & (i < len(table))
    return jnp.where(inside, jnp.asarray(table)[i], jnp.nan)


def _pick_wraps(table, i):
    return jnp.asarray(table)[i % len(table)]


def _pick_fills_with_zero(table, i):
    return jnp.asarray(table).at[i].get(mode="fill", fill_value=0.0)


def _pick_callback(table, i):
    def look(i):
        i = np.asarray(i)
        inside = (i >= -len(table)) & (i < len(table))
        return np.where(inside, table[np.where(inside, i, 0)], np.nan).astype(np.float32)

    return jax.pure_callback(look, jax.ShapeDtypeStruct(i.shape, jnp.float32), i)


def _pick_raises(table, i):
    if i >= len(table):
        raise IndexError("no such element")
    return jnp.asarray(table)[i]


pick = Exercise(
    title="A NumPy table and a traced index",
    stars=1,
    minutes=10,
    why="Tables of NumPy become constants of the program, and an index that does not exist shows itself as NaN.",
    hints=(
        "The error names NumPy's `__array__()`: it is the table that has to change sides.",
        "Square brackets of a JAX array never complain; `x.at[i].get(...)` takes a `mode`.",
        "`mode='fill'` with `fill_value=jnp.nan`.",
    ),
    solution=_pick,
    check=_check_pick,
    mistakes=(
        Mistake(_pick_broken, says="TracerArrayConversionError"),
        Mistake(_pick_from_a_list, says="TracerIntegerConversionError"),
        Mistake(_pick_clamps, says="not beyond its end"),
        Mistake(_pick_wraps, says="not beyond its end"),
        Mistake(_pick_fills_with_zero, says="not beyond its end"),
        Mistake(_pick_never_negative, says="not for all negative indices"),
        Mistake(_pick_one_short, says="not for all negative indices"),
        Mistake(_pick_clamps_below, says="not before the beginning"),
        Mistake(_pick_callback, says="A callback goes back to Python"),
        Mistake(_pick_raises, says="TracerBoolConversionError"),
    ),
)


# mean_of_positive


def _mean_of_positive(x):
    positive = x > 0
    total = jnp.sum(jnp.where(positive, x, 0.0))
    return total / jnp.maximum(jnp.sum(positive), 1)


def _check_mean_of_positive(mean_of_positive):
    recognise = [
        (
            lambda x: jnp.mean(jnp.where(x > 0, x, 0.0)),
            "This divides by the number of all elements. Only the positive ones count.",
        ),
        (
            lambda x: jnp.sum(jnp.where(x > 0, x, 0.0)) / jnp.maximum(jnp.sum(x >= 0), 1),
            "A zero is not positive: it must not be counted.",
        ),
        (
            lambda x: x[jnp.nonzero(x > 0, size=x.size)[0]].mean(),
            "The missing indices are filled up with 0, so that the first element counts again and again.",
        ),
        (lambda x: jnp.sum(jnp.where(x > 0, x, 0.0)), "This is the sum; the mean is asked for."),
    ]
    mixed = jnp.array([1.0, -2.0, 4.0, 0.0, 1.0])
    none = jnp.array([-1.0, 0.0, -3.0])
    wild = jnp.array([jnp.nan, 2.0, -jnp.inf, 5.0])
    large = jnp.array([jnp.inf, 1.0, -1.0])
    with under("`jax.jit`"):
        jax.jit(lambda x: mean_of_positive(x))(mixed)
    for x, advice in (
        (mixed, ""),
        (none, "This is right, but not where nothing is positive: there the mean is 0."),
        (
            wild,
            "This is right, but not beside an infinity or a NaN: one gets through here. (Times zero it is NaN, and the maximum "
            "of NaN and zero is NaN.) Choose by `jnp.where` instead.",
        ),
        (large, "This is right for finite numbers. But infinity is positive, and counts."),
    ):
        if advice:
            _explained(advice, checks.same, mean_of_positive(x), _mean_of_positive(x), input={"x": x})
        else:
            checks.values(mean_of_positive, _mean_of_positive, examples=[(x,)], recognise=recognise)
    with jax.disable_jit():  # XLA may make a choice of a product with a mask; nobody should rest on that
        _explained(
            "This is right only if the compiler is kind: written out, an infinity or a NaN times zero is NaN. Choose by "
            "`jnp.where` instead.",
            checks.same,
            mean_of_positive(wild),
            _mean_of_positive(wild),
            input={"x": wild},
        )
    values = inputs.arrays("n", sizes=(1, 2, 3, 5), special=(np.nan, -np.inf))
    checks.values(mean_of_positive, _mean_of_positive, values, recognise=recognise)
    for x in (mixed, none, wild):
        checks.works_under_jit(mean_of_positive, x)
        checks.gradients(mean_of_positive, _mean_of_positive, x, finite_differences=False)
    checks.works_under_vmap(mean_of_positive, jnp.array([[1.0, -2.0], [-1.0, -1.0], [3.0, 4.0]]))


def _mean_of_positive_broken(x):
    return x[x > 0].mean()


def _mean_of_positive_all(x):
    return jnp.where(x > 0, x, 0.0).mean()


def _mean_of_positive_zeros(x):
    return jnp.where(x > 0, x, 0.0).sum() / jnp.maximum((x >= 0).sum(), 1)


def _mean_of_positive_product(x):
    positive = x > 0
    return (x * positive).sum() / jnp.maximum(positive.sum(), 1)


def _mean_of_positive_ones(x):
    ones = jnp.where(x > 0, 1.0, 0.0)
    return jnp.sum(x * ones) / jnp.maximum(jnp.sum(ones), 1)


def _mean_of_positive_relu(x):
    return jax.nn.relu(x).sum() / jnp.maximum((x > 0).sum(), 1)


def _mean_of_positive_nan_to_num(x):
    return jnp.nan_to_num(jnp.mean(x, where=x > 0))


def _mean_of_positive_of_none(x):
    positive = x > 0
    return jnp.where(positive, x, 0.0).sum() / positive.sum()


def _mean_of_positive_python(x):
    positive = x > 0
    return jnp.where(positive, x, 0.0).sum() / max(positive.sum(), 1)


def _mean_of_positive_stopped(x):
    return lax.stop_gradient(_mean_of_positive(x))


def _mean_of_positive_sized(x):
    return x[jnp.nonzero(x > 0, size=x.size)[0]].mean()


mean_of_positive = Exercise(
    title="A mask that decides a shape",
    stars=2,
    minutes=10,
    why="Most masks in JAX are written so: choose with a neutral element, and count the mask.",
    hints=(
        "A sum over the positive elements is a sum over all, with 0 in place of the others.",
        "How many there are is the sum of the mask. What if that is 0?",
        "Divide by `jnp.maximum(count, 1)`.",
    ),
    solution=_mean_of_positive,
    check=_check_mean_of_positive,
    mistakes=(
        Mistake(_mean_of_positive_broken, says="NonConcreteBooleanIndexError"),
        Mistake(_mean_of_positive_all, says="the number of all elements"),
        Mistake(_mean_of_positive_zeros, says="A zero is not positive"),
        Mistake(_mean_of_positive_product, says="if the compiler is kind"),
        Mistake(_mean_of_positive_ones, says="not beside an infinity"),
        Mistake(_mean_of_positive_relu, says="not beside an infinity"),
        Mistake(_mean_of_positive_nan_to_num, says="infinity is positive, and counts"),
        Mistake(_mean_of_positive_of_none, says="not where nothing is positive"),
        Mistake(_mean_of_positive_python, says="TracerBoolConversionError"),
        Mistake(_mean_of_positive_stopped, says="The gradient is wrong"),
        Mistake(_mean_of_positive_sized, says="filled up with 0"),
        Mistake(lambda x: jnp.where(x > 0, x, 0.0).sum(), says="This is the sum"),
    ),
)


# trajectory


def _leaks(function, *arguments):
    """Whether tracers are alive after the trace. (JAX's own check also looks for who holds them: that takes long.)"""

    def alive():
        gc.collect()
        return [thing for thing in gc.get_objects() if issubclass(type(thing), jax.core.Tracer)]

    before = alive()
    jax.jit(fresh(function))(*arguments)
    return len({id(tracer) for tracer in alive()} - {id(tracer) for tracer in before}) > 0


def _trajectory(x, rate):
    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        return x, x

    return lax.scan(step, x, length=10)


def _check_trajectory(trajectory):
    x, rate = jnp.array([1.0, -0.5, 0.25]), jnp.float32(0.05)

    def before(x, rate):
        last, way = _trajectory(x, rate)
        return last, jnp.concatenate([x[None], way[:-1]])

    def uphill(x, rate):
        return _trajectory(x, -rate)

    recognise = [
        (before, "The way holds the points before each step; those after each step are asked for."),
        (uphill, "The step goes uphill: it is *minus* the rate times the gradient."),
        (lambda x, rate: _trajectory(x, rate)[::-1], "The last point comes first, and then the way."),
        (lambda x, rate: _trajectory(x, rate)[1], "Two results are asked for: the last point, and the way."),
    ]
    try:
        got = trajectory(x, rate)
    except Failed as failure:
        if (
            "UnexpectedTracerError" in failure.message
            or "way" in failure.message
            and "stack" in failure.message
        ):
            failure.message = (
                "The body of a loop is traced, so a list in it gets tracers, which mean nothing outside. What is to be "
                f"kept of each round must be an output of the loop.\n{failure.message}"
            )
        raise
    _no_tracers(
        got,
        "A list that the body of the loop fills gets tracers. What is to be kept of each round must be an output of the loop.",
    )
    if isinstance(got, list):
        raise Failed("A pair is asked for, as a tuple: the last point, and the way.", got=got)
    if isinstance(got, tuple) and len(got) == 2 and getattr(got[1], "shape", None) == (11, 3):
        raise Failed("The way has 11 points: the first is where it began, and is not asked for.", got=got)
    checks.values(trajectory, _trajectory, examples=[(x, rate)], recognise=recognise)
    checks.values(
        trajectory,
        _trajectory,
        inputs.arrays("n", sizes=(1, 3), low=-1, high=1),
        inputs.one_of(jnp.float32(0.125), jnp.float32(0.0)),
        count=5,
        recognise=recognise,
    )
    checks.works_under_jit(trajectory, x, rate)
    if _leaks(trajectory, x, rate):
        raise Failed(
            "A tracer outlives its trace: your function keeps it somewhere outside. Return it instead.",
        )
    if jax.make_jaxpr(fresh(trajectory))(x, rate).effects:
        raise Failed(
            "The program has a side effect: it calls Python back, or prints. The way can be returned without."
        )
    _explained(
        "The loop is written out in the program; it should be one loop.",
        checks.jaxpr,
        trajectory,
        x,
        rate,
        requires=(("scan", "while"),),
    )
    checks.gradients(trajectory, _trajectory, x, rate, argnums=(0, 1), finite_differences=False)


def _trajectory_broken(x, rate):
    way = []

    def step(i, x):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        way.append(x)
        return x

    return lax.fori_loop(0, 10, step, x), jnp.stack(way)


def _trajectory_unrolled(x, rate):
    way = []
    for _ in range(10):
        x = x - rate * 4 * x**3
        way.append(x)
    return x, jnp.stack(way)


def _trajectory_before(x, rate):
    def step(x, _):
        return x - rate * jax.grad(lambda x: jnp.sum(x**4))(x), x

    return lax.scan(step, x, length=10)


def _trajectory_uphill(x, rate):
    def step(x, _):
        x = x + rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        return x, x

    return lax.scan(step, x, length=10)


def _trajectory_with_start(x, rate):
    last, way = _trajectory(x, rate)
    return last, jnp.concatenate([x[None], way])


def _trajectory_way_only(x, rate):
    return _trajectory(x, rate)[1]


def _trajectory_swapped(x, rate):
    return _trajectory(x, rate)[::-1]


def _trajectory_while(x, rate):
    def step(state):
        i, x, way = state
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        return i + 1, x, way.at[i].set(x)

    return lax.while_loop(lambda state: state[0] < 10, step, (0, x, jnp.zeros((10, len(x)))))[1:]


_kept = []


def _trajectory_leaks(x, rate):
    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        _kept[:] = [x]
        return x, x

    return lax.scan(step, x, length=10)


def _trajectory_calls_back(x, rate):
    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        jax.debug.callback(lambda x: None, x)
        return x, x

    return lax.scan(step, x, length=10)


def _trajectory_list(x, rate):
    way = []

    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        way.append(x)
        return x, None

    return lax.scan(step, x, length=10)[0], way


trajectory = Exercise(
    title="A list that keeps tracers",
    stars=2,
    minutes=10,
    why="What leaves a traced function leaves it by `return`, and out of a loop it leaves as a stacked output.",
    hints=(
        "`lax.scan` has a place for what is to be kept of each round: the second of the two things that its body returns.",
        "The body returns `x, x`: the new carry, and what is stacked.",
        "`lax.scan(step, x, length=10)` returns the last carry and the stack.",
    ),
    solution=_trajectory,
    check=_check_trajectory,
    mistakes=(
        Mistake(_trajectory_broken, says="a list in it gets tracers"),
        Mistake(_trajectory_unrolled, says="written out in the program"),
        Mistake(_trajectory_before, says="the points before each step"),
        Mistake(_trajectory_uphill, says="uphill"),
        Mistake(_trajectory_with_start, says="The way has 11 points"),
        Mistake(_trajectory_way_only, says="Two results are asked for"),
        Mistake(_trajectory_swapped, says="The last point comes first"),
        Mistake(_trajectory_while, says="Reverse-mode differentiation does not work"),
        Mistake(_trajectory_leaks, says="A tracer outlives its trace"),
        Mistake(_trajectory_calls_back, says="The program has a side effect"),
        Mistake(_trajectory_list, says="A tracer got out of its trace"),
    ),
)


# window


def _window(x, start):
    return lax.dynamic_slice_in_dim(x, start, 3)


def _check_window(window):
    def some_rows(draw):
        x = draw(inputs.arrays("n", 2, sizes=(3, 5, 8)))
        return x, int(draw(inputs.integers(0, len(x) - 3)))

    x = jnp.arange(16.0).reshape(8, 2)
    # Without jit numbers of Python only: `jax.ds` refuses arrays there.
    calls = [(x, start) for start in (0, 2, 5)]
    recognise = [
        (
            lambda x, start: lax.dynamic_slice_in_dim(x, start - 1, 3),
            "The window begins one row too early.",
        ),
        (lambda x, start: lax.dynamic_slice_in_dim(x, start + 1, 3), "The window begins one row too late."),
        (lambda x, start: x[:3], "This is the beginning of `x`, wherever `start` is."),
    ]
    if hasattr(original(window), "lower"):
        advice = "Every start makes a program of its own. Only the size has to be known while tracing."
        _explained(advice, checks.traces, window, *calls, exactly=1)
    checks.values(window, _window, inputs.together(some_rows), examples=calls, recognise=recognise, count=10)
    with under("`jax.jit`"):
        got = jax.jit(fresh(window))(x, jnp.int32(2))
    checks.same(got, x[2:5], where="under `jax.jit`", input={"x": x, "start": 2})
    checks.traces(window, *calls, exactly=1)
    starts = jnp.array([0, 3, 5])
    with under("`jax.vmap`"):
        got = jax.vmap(fresh(window), in_axes=(None, 0))(x, starts)
    expected = jnp.stack([x[:3], x[3:6], x[5:]])
    checks.same(got, expected, where="under `jax.vmap`", input={"x": x, "start": starts})
    checks.gradients(window, _window, *calls[1], finite_differences=False)


def _window_broken(x, start):
    return x[start : start + 3]


@functools.partial(jax.jit, static_argnums=1)
def _window_static(x, start):
    return x[start : start + 3]


def _window_python(x, start):
    start = int(start)
    return x[start : start + 3]


def _window_masked(x, start):
    rows = jnp.arange(len(x))[:, None]
    return jnp.where((rows >= start) & (rows < start + 3), x, 0.0)


def _window_of_two(x, start):
    return lax.dynamic_slice_in_dim(x, start, 2)


def _window_late(x, start):
    return lax.dynamic_slice_in_dim(x, start + 1, 3)


def _window_of_the_end(x, start):
    return x[:3]


@functools.lru_cache
def _window_of(start):
    return jax.jit(lambda x: x[start : start + 3])


def _window_cached(x, start):
    return _window_of(start)(x)


window = Exercise(
    title="A slice with a traced start",
    stars=1,
    minutes=5,
    why="A size is part of a type, and a start is not: `dynamic_slice` takes the first from Python, the second from the program.",
    hints=(
        "The message of the error names the function that can do it.",
        "`lax.dynamic_slice_in_dim(x, start, size)` slices along axis 0.",
    ),
    solution=_window,
    check=_check_window,
    mistakes=(
        Mistake(_window_broken, says="Array slice indices must have static"),
        Mistake(_window_static, says="Every start makes a program of its own"),
        Mistake(_window_python, says="ConcretizationTypeError"),
        Mistake(_window_masked, says="The shape is wrong: expected (3, 2), got (8, 2)"),
        Mistake(_window_of_two, says="got (2, 2)"),
        Mistake(_window_late, says="one row too late"),
        Mistake(_window_of_the_end, says="the beginning of `x`"),
        Mistake(_window_cached, says="unhashable type"),
    ),
)


# running_mean


def _size(function, *specs):
    return sum(jaxprs.count(lambda *arguments: function(*arguments), *specs).values())


def _running_mean(x):
    def step(carry, row):
        total, count = carry
        total, count = total + row, count + 1
        return (total, count), total / count

    first = jnp.zeros(x.shape[1:], x.dtype), jnp.zeros((), x.dtype)
    return lax.scan(step, first, x)[1]


def _check_running_mean(running_mean):
    def rows(x):
        return jnp.arange(1, len(x) + 1, dtype=x.dtype)[:, None]

    recognise = [
        (lambda x: jnp.cumsum(x, axis=0) / len(x), "Every row is divided by the number of all rows."),
        (lambda x: jnp.cumsum(x, axis=0) / (rows(x) + 1), "The count is one too large."),
        (lambda x: x / rows(x), "The total is not handed on: each row is divided by its number."),
        (lambda x: jnp.cumsum(x, axis=0), "These are the sums; the means are asked for."),
        (
            lambda x: jnp.cumsum(x, axis=1) / jnp.arange(1, x.shape[1] + 1, dtype=x.dtype),
            "This goes along the columns; the mean is over rows.",
        ),
    ]
    x = jnp.array([[2.0, 4.0, 0.5], [4.0, 0.0, 1.5], [0.0, 5.0, -2.0], [2.0, -1.0, 8.0]])
    checks.values(running_mean, _running_mean, examples=[(x,), (x[:1],), (x[:, :1],)], recognise=recognise)
    checks.values(
        running_mean,
        _running_mean,
        inputs.arrays("n", "d", sizes=(1, 3, 5)),
        count=6,
        recognise=recognise,
    )
    for dtype in (jnp.float16, jnp.bfloat16):
        half = x.astype(dtype)
        _explained(
            f"This is right for float32, but not for {jnp.dtype(dtype)}. The first carry, too, must be of the dtype of `x`.",
            checks.same,
            running_mean(half),
            _running_mean(half),
            input={"x": half},
        )
    checks.works_under_jit(running_mean, x)
    few, many = (_size(running_mean, jax.ShapeDtypeStruct((n, 3), jnp.float32)) for n in (8, 64))
    if many > 4 * few:  # a tree of sums grows with the logarithm
        raise Failed(
            "The program grows with the number of rows: Python's loop is written out. Keep it a loop, as it was.",
            shown=[("equations", f"{few} for 8 rows, {many} for 64 rows")],
        )
    checks.gradients(running_mean, _running_mean, x, finite_differences=False)


def _running_mean_broken(x):
    def step(carry, row):
        total, count = carry
        total, count = total + row, count + 1
        return (total, count), total / count

    return lax.scan(step, (jnp.zeros(()), 0), x)[1]


def _running_mean_float32(x):
    def step(carry, row):
        total, count = carry
        total, count = total + row, count + 1
        return (total, count), total / count

    return lax.scan(step, (jnp.zeros(x.shape[1]), 0), x)[1]


def _running_mean_unrolled(x):
    total, means = jnp.zeros_like(x[0]), []
    for i in range(len(x)):
        total = total + x[i]
        means.append(total / (i + 1))
    return jnp.stack(means)


def _running_mean_of_all(x):
    return jnp.cumsum(x, axis=0) / len(x)


def _running_mean_counts_from_one(x):
    def step(carry, row):
        total, count = carry
        total, count = total + row, count + 1
        return (total, count), total / count

    return lax.scan(step, (jnp.zeros_like(x[0]), 1), x)[1]


def _running_mean_forgets(x):
    def step(carry, row):
        total, count = carry
        count = count + 1
        return (total, count), (total + row) / count

    return lax.scan(step, (jnp.zeros_like(x[0]), 0), x)[1]


def _running_mean_numpy(x):
    return np.add.accumulate(x) / np.arange(1, len(x) + 1, dtype=np.float32)[:, None]


def _running_mean_last(x):
    return x.mean(axis=0)


running_mean = Exercise(
    title="A carry of the wrong type",
    stars=2,
    minutes=10,
    why="The first carry decides the type of the whole loop: make it of the input's shape and dtype.",
    hints=(
        "The message names the part of the carry, and its type before and after.",
        "`total + row` has the shape of a row, so the first total must have it, too.",
        "`jnp.zeros(x.shape[1:], x.dtype)`.",
    ),
    solution=_running_mean,
    check=_check_running_mean,
    mistakes=(
        Mistake(_running_mean_broken, says="carry input and carry output must have equal types"),
        Mistake(_running_mean_float32, says="not for float16"),
        Mistake(_running_mean_unrolled, says="grows with the number of rows"),
        Mistake(_running_mean_of_all, says="divided by the number of all rows"),
        Mistake(_running_mean_counts_from_one, says="one too large"),
        Mistake(_running_mean_forgets, says="The total is not handed on"),
        Mistake(_running_mean_numpy, says="NumPy's functions compute"),
        Mistake(_running_mean_last, says="The shape is wrong"),
        Mistake(lambda x: jnp.cumsum(x, axis=0), says="These are the sums"),
    ),
)


# entropy


def _entropy(p):
    harmless = jnp.where(p > 0, p, 1.0)  # its logarithm is 0
    return -jnp.sum(harmless * jnp.log(harmless))


def _check_entropy(entropy):
    recognise = [
        (lambda p: -_entropy(p), "The sign is wrong."),
        (lambda p: _entropy(p) / jnp.log(2.0), "This is in bits; the natural logarithm is asked for."),
        (lambda p: _entropy(p) / p.size, "This is the mean; the sum is asked for."),
    ]
    even, sure = jnp.full(4, 0.25), jnp.array([0.0, 1.0, 0.0])
    checks.values(
        entropy,
        _entropy,
        inputs.arrays("n", low=0, high=1),
        examples=[(even,), (jnp.array([0.5, 0.25, 0.25, 0.0]),), (sure,)],
        count=10,
        recognise=recognise,
    )
    for small in (1e-10, 1e-30):
        tiny = jnp.array([small, 0.0])
        expected = _entropy(tiny)
        got = entropy(tiny)
        if not abs(float(got) - float(expected)) <= 1e-4 * float(expected):
            raise Failed(
                "This is right for large probabilities, but not for small ones: nothing is to be added, and no bound is "
                "put on them.",
                input=f"p = [{small}, 0]",
                shown=[("expected", f"{float(expected):.4g}"), ("got", f"{float(got):.4g}")],
            )
    tiny = jnp.array([1e-30, 1e-3, 0.0])
    for p in (even, jnp.array([0.5, 0.25, 0.25, 0.0]), sure, jnp.zeros(3), tiny):
        with under("`jax.grad`"):
            got = jax.grad(lambda p: entropy(p))(p)
        expected = jax.grad(_entropy)(p)
        if not np.isfinite(np.asarray(got)).all():
            raise Failed(
                "The gradient is not finite where p is 0. A choice of the result, by a `where` or inside of a function such as "
                "`xlogy`, hides a bad value and not a bad slope: the function behind it must not see the 0.",
                input={"p": p},
                expected=expected,
                got=got,
            )
        if not np.allclose(got, expected, rtol=1e-4, atol=1e-5):
            shown = {"input": {"p": p}, "expected": expected, "got": got}
            if not np.any(np.asarray(got)):
                raise Failed("The gradient is 0 everywhere; it should be so only where p is 0.", **shown)
            if p is tiny:  # whose first element is printed as 0
                numbers = {"expected": expected, "got": got}
                raise Failed(
                    "The gradient is right for large probabilities, but not for small ones: nothing is to be added, and no "
                    "bound is put on them.",
                    input="p = [1e-30, 0.001, 0]",
                    shown=[(k, str([float(f"{n:.4g}") for n in np.asarray(v)])) for k, v in numbers.items()],
                )
            raise Failed("The gradient is finite, but wrong.", **shown)
    checks.works_under_jit(entropy, sure)
    checks.works_under_vmap(entropy, jnp.array([[0.5, 0.5], [1.0, 0.0]]))


def _entropy_broken(p):
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(p), 0.0))


def _entropy_added(p):
    return -jnp.sum(p * jnp.log(p + 1e-7))


def _entropy_bounded(p):
    return -jnp.sum(p * jnp.log(jnp.maximum(p, 1e-20)))


def _entropy_bounded_inside(p):
    return -jnp.sum(jnp.where(p > 0, p * jnp.log(jnp.maximum(p, 1e-25)), 0.0))


def _entropy_nan_to_num(p):
    return -jnp.sum(jnp.nan_to_num(p * jnp.log(p)))


def _entropy_half_mended(p):
    return -jnp.sum(p * jnp.log(jnp.where(p > 0, p, 1e-37)))


def _entropy_scipy(p):
    return jnp.sum(jax.scipy.special.entr(p))


def _entropy_stopped(p):
    return lax.stop_gradient(_entropy(p))


def _entropy_bits(p):
    return _entropy(p) / jnp.log(2.0)


def _entropy_python(p):
    return -sum(value * jnp.log(value) for value in p if value > 0) + jnp.float32(0.0)


entropy = Exercise(
    title="A NaN behind a where",
    stars=2,
    minutes=10,
    why="One `where` for the input, one for the result: the double `where` is the mend for most NaN gradients.",
    hints=(
        "Which function has no finite slope at 0? See to it that it is never given a 0.",
        "Before the logarithm: `jnp.where(p > 0, p, 1.0)`.",
        "What is the gradient of `p * log(1.0)` with respect to `p`, and is it what is asked for?",
    ),
    solution=_entropy,
    check=_check_entropy,
    mistakes=(
        Mistake(_entropy_broken, says="hides a bad value and not a bad slope"),
        Mistake(_entropy_scipy, says="hides a bad value and not a bad slope"),
        Mistake(_entropy_nan_to_num, says="hides a bad value and not a bad slope"),
        Mistake(_entropy_added, says="nothing is to be added"),
        Mistake(_entropy_bounded, says="nothing is to be added"),
        Mistake(_entropy_bounded_inside, says="nothing is to be added"),
        Mistake(_entropy_half_mended, says="finite, but wrong"),
        Mistake(_entropy_stopped, says="0 everywhere"),
        Mistake(_entropy_bits, says="in bits"),
        Mistake(_entropy_python, says="TracerBoolConversionError"),
        Mistake(lambda p: -_entropy(p), says="The sign is wrong"),
    ),
)


# train_step


def _train_step(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    (value, predictions), gradient = jax.value_and_grad(loss, has_aux=True)(w)
    return w - rate * gradient, value, predictions


def _check_train_step(train_step):
    w = jnp.array([[0.5, -0.25], [1.0, 0.75], [-0.5, 0.0]])
    x = jnp.array([[1.0, 0.5, -1.0], [0.0, 2.0, 1.0], [-1.5, 0.25, 0.5], [0.5, 0.5, 0.5]])
    y = jnp.array([[1.0, 0.0], [0.5, -0.5], [0.0, 0.25], [-1.0, 0.0]])
    rate = jnp.float32(0.5)

    def afterwards(w, x, y, rate):
        new, _, _ = _train_step(w, x, y, rate)
        return new, *_train_step(new, x, y, rate)[1:]

    def uphill(w, x, y, rate):
        return _train_step(w, x, y, -rate)

    def gradient_only(w, x, y, rate):
        new, value, predictions = _train_step(w, x, y, rate)
        return (w - new) / rate, value, predictions

    def swapped(w, x, y, rate):
        new, value, predictions = _train_step(w, x, y, rate)
        return new, predictions, value

    recognise = [
        (afterwards, "Loss and predictions are those of the new weights; asked for are those of the step."),
        (uphill, "The step goes uphill: minus the rate times the gradient."),
        (gradient_only, "The gradient is returned in place of the new weights."),
        (swapped, "The order is: new weights, loss, predictions."),
        (lambda *a: _train_step(*a)[:2], "The predictions are missing."),
    ]
    example = w, x, y, rate
    _no_tracers(train_step(*example), "What `grad` is not asked for, `has_aux` hands through.")
    checks.values(train_step, _train_step, examples=[example], recognise=recognise)
    checks.values(
        train_step,
        _train_step,
        inputs.arrays(2, 1, low=-1, high=1),
        inputs.arrays(3, 2, low=-1, high=1),
        inputs.arrays(3, 1, low=-1, high=1),
        inputs.one_of(jnp.float32(0.25)),
        count=5,
        recognise=recognise,
    )
    _explained(
        "Something is computed twice. `has_aux` hands the predictions through, and `value_and_grad` gives the loss as well.",
        checks.jaxpr,
        train_step,
        *example,
        counts={"tanh": 1, "dot_general": 2},
    )
    checks.works_under_jit(train_step, *example)


def _train_step_broken(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    gradient = jax.grad(loss)(w)
    return w - rate * gradient, loss(w)[0], loss(w)[1]


def _train_step_vector(w, x, y, rate):
    predictions = jnp.tanh(x @ w)
    gradient = jax.grad(lambda w: (jnp.tanh(x @ w) - y) ** 2)(w)
    return w - rate * gradient, jnp.mean((predictions - y) ** 2), predictions


def _train_step_twice(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    gradient, predictions = jax.grad(loss, has_aux=True)(w)
    return w - rate * gradient, loss(w)[0], predictions


def _train_step_afterwards(w, x, y, rate):
    new, _, _ = _train_step(w, x, y, rate)
    _, value, predictions = _train_step(new, x, y, rate)
    return new, value, predictions


def _train_step_uphill(w, x, y, rate):
    return _train_step(w, x, y, -rate)


def _train_step_swapped(w, x, y, rate):
    w, value, predictions = _train_step(w, x, y, rate)
    return w, predictions, value


def _train_step_without_predictions(w, x, y, rate):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
    return w - rate * gradient, value


def _train_step_leaks(w, x, y, rate):
    kept = []

    def loss(w):
        kept.append(jnp.tanh(x @ w))
        return jnp.mean((kept[0] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - rate * gradient, value, kept[0] + 0.0


def _train_step_keeps(w, x, y, rate):
    kept = {}

    def loss(w):
        kept["predictions"] = jnp.tanh(x @ w)
        return jnp.mean((kept["predictions"] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(w)
    return w - rate * gradient, value, kept["predictions"]


def _train_step_gradient(w, x, y, rate):
    def loss(w):
        predictions = jnp.tanh(x @ w)
        return jnp.mean((predictions - y) ** 2), predictions

    (value, predictions), gradient = jax.value_and_grad(loss, has_aux=True)(w)
    return gradient, value, predictions


train_step = Exercise(
    title="A gradient of two results",
    stars=3,
    minutes=15,
    why="One forward pass, one backward pass, and all that is wanted from both: every training step is written so.",
    hints=(
        "`jax.grad(f, has_aux=True)` takes an `f` that returns a pair: the number, and what else is wanted.",
        "`jax.value_and_grad` returns the value beside the gradient, and takes `has_aux` as well.",
        "`(value, predictions), gradient = jax.value_and_grad(loss, has_aux=True)(w)`.",
    ),
    solution=_train_step,
    check=_check_train_step,
    mistakes=(
        Mistake(_train_step_broken, says="Output was ("),
        Mistake(_train_step_vector, says="Output had shape"),
        Mistake(_train_step_twice, says="Something is computed twice"),
        Mistake(_train_step_afterwards, says="those of the new weights"),
        Mistake(_train_step_uphill, says="uphill"),
        Mistake(_train_step_swapped, says="The order is: new weights"),
        Mistake(_train_step_without_predictions, says="The predictions are missing"),
        Mistake(_train_step_leaks, says="outlived its trace"),
        Mistake(_train_step_keeps, says="A tracer got out of its trace"),
        Mistake(_train_step_gradient, says="in place of the new weights"),
    ),
)


# features


def _features(x, activation, powers):
    return _features_of(x, activation, tuple(powers))


@functools.partial(jax.jit, static_argnames=("activation", "powers"))
def _features_of(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


def _check_features(features):
    x, runs = jnp.array([0.5, -1.0, 2.0]), []

    def squash(x):
        runs.append("squash")
        return jnp.tanh(x)

    def shift(x):
        runs.append("shift")
        return x + 1.0

    def attempt(x, activation, powers, advice=""):
        before, given = len(runs), list(powers)
        got = features(x, activation, powers)
        now = len(runs) - before
        name = activation.__name__
        shown = {"x": x, "activation": f"<function {name}>", "powers": given}
        expected = jnp.stack([activation(x) ** n for n in given])
        del runs[before + now :]
        if list(powers) != given:
            raise Failed("Your function changes the caller's list.", input=f"powers = {given}", got=powers)
        try:
            checks.same(got, expected, input=f"x = {x}, activation = {name}, powers = {given}")
        except Failed as failure:
            failure.message = f"{advice}\n{failure.message}".lstrip()
            raise
        del shown
        return now

    if attempt(x, squash, [1, 2, 3]) == 0:
        raise Failed("The activation was never called, so these are not its features.")
    again = attempt(2 * x, squash, [1, 2, 3])
    if again:
        raise Failed(
            "Python ran the activation again, for an equal list and an array of the same shape: it is not compiled, or "
            "compiled anew at each call. The cache of `jit` belongs to one function object, and its key must be equal "
            "the next time.",
            input="powers = [1, 2, 3], and then another list [1, 2, 3]",
        )
    attempt(x, squash, [2, 5, 7], "Another list of the same length gets the results of the first.")
    attempt(x, squash, [3, 2, 1], "The order of the powers is the order of the results.")
    attempt(x, squash, [2, 2], "A power that stands twice in the list stands twice in the result.")
    attempt(x, shift, [1, 2, 3], "Another activation gets the results of the first.")
    growing = [1, 2]
    attempt(x, squash, growing)
    growing.append(4)
    attempt(
        x,
        squash,
        growing,
        "The list was longer at the second call: look at what is in it, not at which list it is.",
    )
    attempt(x, squash, (2, 1))
    if attempt(3 * x, squash, [1, 2, 3]):
        raise Failed("After other lists, the first one is compiled anew.", input="powers = [1, 2, 3]")
    with under("`jax.jit`"):
        inside = jax.jit(lambda x: features(x, squash, [1, 2]))(x)
    checks.same(inside, jnp.stack([jnp.tanh(x), jnp.tanh(x) ** 2]), where="inside of `jax.jit`")
    asked = _depending(lambda x: features(x, squash, [1, 2]), x)
    if len(asked) > 1:
        raise Failed(
            "Only parts of it are compiled: powers and stack belong into the same program as the activation.",
            shown=[("asked for one by one", ", ".join(asked))],
        )


def _depending(function, x):
    """The primitives at the top of a program whose inputs depend on its argument."""
    program = jax.make_jaxpr(function)(x).jaxpr
    known, names = set(program.invars), []
    for equation in program.eqns:
        if any(not hasattr(atom, "val") and atom in known for atom in equation.invars):
            known.update(equation.outvars)
            names.append(equation.primitive.name)
    return names


@functools.partial(jax.jit, static_argnames=("activation", "powers"))
def _features_broken(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


def _features_not_jitted(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


def _features_jit_inside(x, activation, powers):
    return jax.jit(lambda x: jnp.stack([activation(x) ** n for n in powers]))(x)


_features_programs = {}  # by the activation and the number of powers


def _features_by_length(x, activation, powers):
    key = activation, len(powers)
    if key not in _features_programs:
        fixed = tuple(powers)
        _features_programs[key] = jax.jit(lambda x: jnp.stack([activation(x) ** n for n in fixed]))
    return _features_programs[key](x)


def _features_sorted(x, activation, powers):
    return _features_of(x, activation, tuple(sorted(powers)))


def _features_as_a_set(x, activation, powers):
    return _features_of(x, activation, tuple(dict.fromkeys(powers)))


@functools.partial(jax.jit, static_argnames="powers")
def _features_traced_function(x, activation, powers):
    return jnp.stack([activation(x) ** n for n in powers])


def _features_function_not_static(x, activation, powers):
    return _features_traced_function(x, activation, tuple(powers))


@functools.lru_cache
def _features_program(powers):
    return {}


def _features_by_powers(x, activation, powers):
    powers = tuple(powers)
    programs = _features_program(powers)
    if not programs:
        programs["first"] = jax.jit(lambda x: jnp.stack([activation(x) ** n for n in powers]))
    return programs["first"](x)


class _ById:
    def __init__(self, powers):
        self.powers = powers


@functools.partial(jax.jit, static_argnames=("activation", "box"))
def _features_boxed(x, activation, box):
    return jnp.stack([activation(x) ** n for n in box.powers])


def _features_by_id(x, activation, powers):
    return _features_boxed(x, activation, _ById(powers))


def _features_activation_only(x, activation, powers):
    y = jax.jit(activation)(x)
    return jnp.stack([y**n for n in powers])


@functools.partial(jax.jit, static_argnames=("activation", "n"))
def _feature(x, activation, n):
    return activation(x) ** n


def _features_piece_by_piece(x, activation, powers):
    return jnp.stack([_feature(x, activation, n) for n in powers])


features = Exercise(
    title="A static argument that is a list",
    stars=3,
    minutes=15,
    why="A thin function that makes its static arguments hashable, around a jitted one that is made once: a pattern to keep.",
    hints=(
        "A tuple can be the key of a cache, a list cannot. Who can turn one into the other?",
        "Two functions: the one that is called makes a tuple, and calls the one that is jitted.",
        "The jitted one must be made once, outside, not at each call.",
    ),
    solution=_features,
    check=_check_features,
    mistakes=(
        Mistake(_features_broken, says="unhashable type: 'list'"),
        Mistake(_features_not_jitted, says="it is not compiled, or compiled anew"),
        Mistake(_features_jit_inside, says="it is not compiled, or compiled anew"),
        Mistake(_features_activation_only, says="Only parts of it are compiled"),
        Mistake(_features_piece_by_piece, says="Only parts of it are compiled"),
        Mistake(_features_by_id, says="it is not compiled, or compiled anew"),
        Mistake(_features_by_length, says="Another list of the same length"),
        Mistake(_features_by_powers, says="Another activation gets"),
        Mistake(_features_sorted, says="The order of the powers"),
        Mistake(_features_as_a_set, says="stands twice in the result"),
        Mistake(_features_function_not_static, says="abstract array"),
    ),
)


# mean_log


@jax.jit
def _mean_log(x):
    def checked(x):
        bad = jnp.sum(x <= 0)
        checkify.check(bad == 0, "{bad} elements are not positive", bad=bad)
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


def _check_mean_log(mean_log):
    good, bad = jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, -2.0, -4.0])
    got = mean_log(good)
    if not isinstance(got, tuple) or len(got) != 2:
        raise Failed("A pair is asked for: what `checkify` noted, and the mean.", input={"x": good}, got=got)
    error, value = got
    if not hasattr(error, "get") and hasattr(value, "get"):
        raise Failed("The pair is in the wrong order: first what `checkify` noted, then the mean.")
    if not isinstance(error, checkify.Error):
        raise Failed(
            "The first of the two is not an error of `checkify`: return what the function returns that "
            "`checkify.checkify(f)` makes.",
            got=error,
        )
    checks.same(value, jnp.mean(jnp.log(good)), input={"x": good})
    if error.get() is not None:
        raise Failed(
            "All elements are positive, and yet there is a note.", input={"x": good}, got=error.get()
        )
    checks.is_jitted(mean_log)
    for x, number in (
        (bad, 2),
        (jnp.array([1.0, -1.0, 3.0]), 1),
        (jnp.array([-5.0, -1.0, -3.0]), 3),
        (jnp.array([0.0, 1.0, 0.0]), 2),
    ):
        error, _ = mean_log(x)
        note = error.get() or ""
        if re.search(rf"(?<!\d){number} elements are not positive", note):
            continue
        shown = {"input": {"x": x}, "expected": f"{number} elements are not positive", "got": note or None}
        if not note and not (np.asarray(x) < 0).any():
            raise Failed("A zero is not positive either, and it is not noted.", **shown)
        if not note:
            raise Failed("Nothing is noted, though there are bad elements.", **shown)
        if "elements are not positive" in note:
            if "Tracer" in note or "Traced" in note:
                raise Failed(
                    "The note holds a tracer: an f-string is filled in while tracing. Give `checkify.check` a template, and "
                    "the value by name.",
                    **shown,
                )
            raise Failed("The number in the note is not that of the bad elements.", **shown)
        raise Failed("There is a note, but not with these words.", **shown)
    _explained(
        "Every call should find the same program.",
        checks.traces,
        mean_log,
        (good,),
        (bad,),
        (jnp.array([3.0, 1.0, 1.0]),),
        exactly=1,
    )
    for x in (jnp.array([2.0]), jnp.array([[1.0, 2.0], [3.0, 4.0]])):
        error, value = mean_log(x)
        checks.same(value, jnp.mean(jnp.log(x)), input={"x": x})


@jax.jit
def _mean_log_broken(x):
    bad = jnp.sum(x <= 0)
    assert bad == 0, f"{bad} elements are not positive"
    return jnp.mean(jnp.log(x))


@jax.jit
def _mean_log_not_functionalized(x):
    bad = jnp.sum(x <= 0)
    checkify.check(bad == 0, "{bad} elements are not positive", bad=bad)
    return jnp.mean(jnp.log(x))


def _mean_log_not_jitted(x):
    return _mean_log.__wrapped__(x)


@jax.jit
def _mean_log_swapped(x):
    error, value = _mean_log.__wrapped__(x)
    return value, error


def _mean_log_throws(x):
    error, value = _mean_log(x)
    error.throw()
    return value


@jax.jit
def _mean_log_below_zero(x):
    def checked(x):
        bad = jnp.sum(x < 0)
        checkify.check(bad == 0, "{bad} elements are not positive", bad=bad)
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


@jax.jit
def _mean_log_f_string(x):
    def checked(x):
        bad = jnp.sum(x <= 0)
        checkify.check(bad == 0, f"{bad} elements are not positive")
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


@jax.jit
def _mean_log_only_floats(x):
    return checkify.checkify(lambda x: jnp.mean(jnp.log(x)), errors=checkify.float_checks)(x)


@jax.jit
def _mean_log_counts_all(x):
    def checked(x):
        checkify.check(jnp.all(x > 0), "{bad} elements are not positive", bad=jnp.int32(x.size))
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


@jax.jit
def _mean_log_wrong_way_round(x):
    def checked(x):
        bad = jnp.sum(x <= 0)
        checkify.check(bad > 0, "{bad} elements are not positive", bad=bad)
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


@jax.jit
def _mean_log_never(x):
    return checkify.checkify(lambda x: jnp.mean(jnp.log(x)))(x)


mean_log = Exercise(
    title="An assert that the program can keep",
    stars=3,
    minutes=15,
    why="A compiled program cannot raise, but it can hand back a note: the caller decides when to look.",
    hints=(
        "`checkify.check(condition, template, name=value)` stands where the `assert` stood.",
        "`checkify.checkify(f)` makes a function of `f` that returns two things: the note, and the result.",
        "Write the checked function inside of the jitted one, and return `checkify.checkify(checked)(x)`.",
    ),
    solution=_mean_log,
    check=_check_mean_log,
    mistakes=(
        Mistake(_mean_log_broken, says="TracerBoolConversionError"),
        Mistake(_mean_log_not_functionalized, says="functionaliz"),
        Mistake(_mean_log_not_jitted, says="not jitted"),
        Mistake(_mean_log_swapped, says="in the wrong order"),
        Mistake(_mean_log_throws, says="A pair is asked for"),
        Mistake(_mean_log_below_zero, says="A zero is not positive either"),
        Mistake(_mean_log_f_string, says="an f-string is filled in while tracing"),
        Mistake(_mean_log_only_floats, says="not with these words"),
        Mistake(_mean_log_counts_all, says="The number in the note"),
        Mistake(_mean_log_wrong_way_round, says="and yet there is a note"),
        Mistake(_mean_log_never, says="Nothing is noted"),
    ),
)
