"""Checks of what JAX makes of a function: transformations, gradients, traces, jaxprs."""

import contextlib
import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking.compare import named, same
from mlax_tutorial.checking.describe import describe, is_array, is_key
from mlax_tutorial.checking.guarding import Raised, describe_error, original, underlying
from mlax_tutorial.checking.outcome import Failed
from mlax_tutorial.inspection import gradients as slopes
from mlax_tutorial.inspection import jaxprs, retracing

# Primitives that only wrap others: not counted as equations.
_WRAPPERS = {
    "jit",
    "pjit",
    "closed_call",
    "core_call",
    "custom_jvp_call",
    "custom_vjp_call",
    "remat",
    "checkpoint",
}


@contextlib.contextmanager
def under(transformation):
    """Says in the report that it was under a transformation that the reader's code failed."""
    try:
        yield
    except Raised as raised:
        raised.say_first(f"Under {transformation}:")
        raise
    except (TypeError, ValueError, jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
        raise Failed(f"{transformation} refuses your function: {describe_error(error)}") from None


def works_under_jit(function, *arguments, static_argnums=()):
    """Under ``jax.jit`` the function gives what it gives without. Returns it jitted: its programs can serve again."""
    expected = function(*arguments)
    jitted = jax.jit(fresh(function), static_argnums=static_argnums)
    with under("`jax.jit`"):
        got = jitted(*arguments)
    same(got, expected, where="under `jax.jit`", input=named(function, arguments))
    return jitted


def works_under_vmap(function, *arguments, in_axes=0):
    """Under ``jax.vmap`` the function gives what a loop gives. The arguments are those of the batched call."""
    axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(arguments)
    with under("`jax.vmap`"):
        got = jax.vmap(fresh(function), in_axes=tuple(axes))(*arguments)
    size = next(jnp.shape(x)[axis] for x, axis in zip(arguments, axes, strict=True) if axis is not None)
    rows = []
    for i in range(size):
        row = [x if axis is None else _row(x, i, axis) for x, axis in zip(arguments, axes, strict=True)]
        rows.append(function(*row))
    same(got, jax.tree.map(_stacked, *rows), where="under `jax.vmap`", input=named(function, arguments))


def takes_batches(function, *arguments, batched=(0,), axes=1):
    """Leading batch axes are taken as they are: the result is that of a loop over them, stacked.

    Args:
      arguments: those of the batched call.
      batched: the positions of the arguments that have batch axes.
      axes: how many they have.
    """
    leading = jnp.shape(arguments[batched[0]])[:axes]
    results = []
    for place in np.ndindex(*leading):
        row = [_row(x, place) if i in batched else x for i, x in enumerate(arguments)]
        results.append(function(*row))
    expected = jax.tree.map(lambda *leaves: _stacked(*leaves, leading=leading), *results)
    got = function(*arguments)
    number = "a leading batch axis" if axes == 1 else f"{axes} leading batch axes"
    same(got, expected, where=f"for {number}", input=named(function, arguments))


# Rows are cut and stacked by NumPy: each shape would be a program otherwise.


def _row(x, place, axis=None):
    if is_key(x):
        return jnp.take(x, place, axis=axis) if axis is not None else x[place]
    x = np.asarray(x)
    return jax.device_put(x[place] if axis is None else np.take(x, place, axis))


def _stacked(*leaves, leading=None):
    if is_key(leaves[0]):
        return jnp.stack(leaves).reshape(leading or (len(leaves),))
    leaves = [np.asarray(leaf) for leaf in leaves]
    return jax.device_put(np.stack(leaves).reshape((leading or (len(leaves),)) + leaves[0].shape))


def gradients(function, reference=None, *arguments, argnums=0, finite_differences=True, jit=False):
    """The gradient equals the reference's, and the slope that finite differences measure.

    Results that are not scalars are summed with weights first. Finite differences are those of
    `mlax_tutorial.inspection.gradients`; they tell a wrong gradient from a right one, not a good one from a better.
    With ``jit`` each gradient is one program, and quickly compiled: for functions that have passed `works_under_jit`.
    An argument whose gradient is zero, though it counts, is named: a `stop_gradient` does not change what a function returns.
    """
    shown = {"input": named(reference or function, arguments)}
    run = jax.jit if jit else lambda function: function
    for leaf in jax.tree.leaves(result := function(*arguments)):
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise Failed("The result is not floating, so it has no gradient.", got=result, **shown)
    with under("`jax.grad`"):
        got = run(jax.grad(slopes.weighted_sum(fresh(function)), argnums))(*arguments)
    if reference is not None:
        expected = run(jax.grad(slopes.weighted_sum(reference), argnums))(*arguments)
        shown["expected"] = expected
        try:
            same(got, expected, rtol=1e-3, atol=1e-4 * (1 + _largest(expected)))
        except Failed:
            finite = _finite(got) or not _finite(expected)
            raise Failed(
                f"The gradient is {'wrong' if finite else 'not finite'}.", got=got, **shown
            ) from None
    elif not _finite(got):
        raise Failed("The gradient is not finite.", got=got, **shown)
    if finite_differences and _finite(got):
        found, places = (got, argnums) if isinstance(argnums, (tuple, list)) else ((got,), (argnums,))
        compiled = run(fresh(function))
        for place, tree in zip(places, found):
            if not any(map(np.any, jax.tree.leaves(tree))):
                direction = slopes.direction_of(arguments, place)
                measured, uncertainty, _ = slopes.slope(compiled, arguments, direction, place)
                if abs(measured) > 4 * uncertainty:
                    name = list(named(reference or function, arguments))[place]
                    raise Failed(
                        f"No gradient reaches `{name}`: is there a `stop_gradient` too many?", **shown
                    )
        for turn in (1, 2):
            direction = slopes.direction_of(arguments, argnums, turn)
            measured, uncertainty, _ = slopes.slope(compiled, arguments, direction, argnums)
            by_gradient = slopes.along(found, direction)
            if not abs(measured - by_gradient) <= 2e-2 * (1 + abs(measured)) + uncertainty:
                raise Failed(
                    "The gradient does not fit the function: a small step changes the result by another amount "
                    "than the gradient says.",
                    got=got,
                    shown=[("slope", f"measured {measured:.4g}, by the gradient {by_gradient:.4g}")],
                    **shown,
                )


def _finite(tree):
    return all(np.isfinite(np.asarray(leaf, np.float32)).all() for leaf in jax.tree.leaves(tree))


def _largest(tree):
    sizes = [float(np.max(np.abs(leaf))) for leaf in jax.tree.leaves(tree) if jnp.size(leaf)]
    return max([size for size in sizes if np.isfinite(size)], default=0.0)


def fresh(function):
    """The same function as a new object, so that JAX has nothing about it in a cache."""

    @functools.wraps(original(function), updated=())
    def again(*args, **kwargs):
        return function(*args, **kwargs)

    return again


# Traces


def is_jitted(function):
    """The reader has applied ``jax.jit`` to it."""
    if not hasattr(original(function), "lower"):
        raise Failed("Your function is not jitted: put `@jax.jit` above it, or hand in `jax.jit(f)`.")


def traces(function, *calls, exactly=None, at_most=None, static_argnums=()):
    """Over these calls (tuples of arguments) Python runs the body so many times.

    A function that is not jitted yet is jitted here. What is counted is the body itself, wherever it is wrapped.
    """
    jitted = original(function)
    forget(jitted)
    if not hasattr(jitted, "lower"):
        jitted = jax.jit(fresh(function), static_argnums=static_argnums)
    runs = []
    with _counted(function) as count:
        for arguments in calls:
            before = count()
            with under("`jax.jit`"):
                _call(function, jitted, arguments)
            runs.append(count() - before)
    total = sum(runs)
    wanted = exactly if exactly is not None else at_most
    if total == exactly or (at_most is not None and total <= at_most):
        return
    log = []
    for number, (arguments, run) in enumerate(zip(calls, runs, strict=True)):
        outcome = "traced" if run == 1 else f"traced {run} times" if run else "from the cache"
        why = _why_traced(jitted, arguments, calls[:number]) if run and number else ""
        log.append(f"{_signature_of(arguments)}: {outcome}{why}")
    bound = "at most " if exactly is None else ""
    raise Failed(
        f"Your function was traced {_times(total)} over {len(calls)} calls; it should be {bound}{_times(wanted)}.",
        shown=[("calls", "\n".join(log))],
    )


def _why_traced(jitted, arguments, before):
    keys = [retracing.key(jitted, earlier, {}) for earlier in before]
    found = retracing.nearest(retracing.key(jitted, arguments, {}), keys)
    return f" ({'; '.join(found)})" if found else ""


def forget(function):
    """Clears the caches of a jitted function, and of jitted functions that it wraps."""
    while function is not None:
        if hasattr(function, "clear_cache"):
            function.clear_cache()
        function = getattr(function, "__wrapped__", None) or getattr(function, "func", None)


def _call(function, jitted, arguments):
    """Calls the jitted function; where the reader jitted it, their errors still count as theirs."""
    return function(*arguments) if jitted is original(function) else jitted(*arguments)


def _times(number):
    return {0: "never", 1: "once", 2: "twice"}.get(number, f"{number} times")


def _signature_of(arguments):
    return ", ".join(
        jax.typeof(x).str_short() if is_array(x) or isinstance(x, (int, float)) else describe(x)
        for x in arguments
    )


@contextlib.contextmanager
def _counted(function):
    """As `retracing.counted`, for what a reader hands in."""
    if not inspect.isfunction(underlying(original(function))):
        raise Failed("The body of your function cannot be observed: hand in a plain `def`, jitted or not.")
    with retracing.counted(original(function)) as count:
        yield count


# Jaxprs


def jaxpr(
    function,
    *arguments,
    requires=(),
    forbids=(),
    counts=None,
    at_most=None,
    equations=None,
    static_argnums=(),
):
    """What the function's jaxpr holds, inner jaxprs included.

    Args:
      arguments: arrays or ``jax.ShapeDtypeStruct``.
      requires, forbids: names of primitives. A tuple among ``requires`` means one of them.
      counts: a dict from names to the exact number of times.
      at_most: a dict from names to the largest number of times.
      equations: the largest number of equations in all, wrappers such as ``jit`` not counted.
    """
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(fresh(function), static_argnums=static_argnums)(*arguments)
    names = [equation.primitive.name for _, equation in jaxprs.walk(program)]
    listed = [name for name in names if name not in _WRAPPERS]
    shown = [("equations", _listing(listed))]
    for name in requires:
        options = (name,) if isinstance(name, str) else name
        if not set(options) & set(names):
            wanted = " or ".join(f"`{option}`" for option in options)
            raise Failed(f"The jaxpr of your function holds no {wanted}.", shown=shown)
    for name in forbids:
        if name in names:
            raise Failed(
                f"The jaxpr of your function holds `{name}`, which it should do without.", shown=shown
            )
    for name, number in (counts or {}).items():
        if names.count(name) != number:
            raise Failed(
                f"The jaxpr of your function holds `{name}` {_times(names.count(name))}; expected: {_times(number)}.",
                shown=shown,
            )
    for name, number in (at_most or {}).items():
        if names.count(name) > number:
            raise Failed(
                f"The jaxpr of your function holds `{name}` {_times(names.count(name))}; at most: {_times(number)}.",
                shown=shown,
            )
    if equations is not None and len(listed) > equations:
        raise Failed(
            f"The jaxpr of your function has {len(listed)} equations; {equations} are enough.", shown=shown
        )


def _listing(names, most=24):
    runs = []
    for name in names:
        if runs and runs[-1][0] == name:
            runs[-1][1] += 1
        else:
            runs.append([name, 1])
    words = [name if number == 1 else f"{name} ({number} times)" for name, number in runs]
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "") if words else "none"
