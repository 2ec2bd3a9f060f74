"""Checks of how a function behaves: keys, purity, leaks."""

import copy
import dis
import inspect
import types

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking.compare import agrees, named
from mlax_tutorial.checking.describe import describe, is_array, is_key
from mlax_tutorial.checking.guarding import as_theirs, lines_of, original, underlying
from mlax_tutorial.checking.outcome import Failed
from mlax_tutorial.checking.programs import forget, fresh, under

# Keys


def keys(function, *arguments, depends=True, eagerly=True):
    """No random key is used twice, neither under ``jax.jit`` nor, where asked for, eagerly; and the result depends on each key.

    Keys are new-style (``jax.random.key``): JAX cannot follow the old ones. ``fold_in`` is not followed either.
    """
    own = fresh(original(function))
    # Without the result XLA has next to nothing to compile; what is asked for is in the jaxpr all the same.
    under_jit = jax.jit(lambda *arguments: (own(*arguments), ())[1])
    for run in (original(function), under_jit) if eagerly else (under_jit,):
        try:
            with jax.debug_key_reuse(True):
                jax.block_until_ready(run(*[_copied_key(x) for x in arguments]))
        except jax.errors.KeyReuseError as error:
            raise Failed(
                "A random key is used twice. The second use gives the same numbers as the first, or numbers that "
                "depend on them: split the key, and use each of the new ones once.",
                shown=lines_of(error),
            ) from None
        except Exception as error:
            raise as_theirs(error) from None
    if depends:
        _depends_on_keys(function, arguments)


def _copied_key(x):
    """A key that is not marked as used, whatever was done with the original."""
    return jax.random.wrap_key_data(jax.random.key_data(x), impl=jax.random.key_impl(x)) if is_key(x) else x


def _depends_on_keys(function, arguments):
    first = function(*arguments)
    for i, argument in enumerate(arguments):
        if not is_key(argument):
            continue
        for turn in range(3):
            changed = list(arguments)
            changed[i] = (
                jax.random.key(1000 + turn)
                if argument.shape == ()
                else jax.random.split(jax.random.key(1000 + turn), argument.shape)
            )
            if not agrees(function(*changed), first, rtol=0, atol=0):
                break
        else:
            name = list(named(function, arguments))[i]
            raise Failed(
                f"The result does not depend on the key `{name}`: three other keys gave the same numbers.",
                got=first,
            )


# Purity


def pure(function, *arguments):
    """The same answer twice, and nothing changed: neither the inputs (NumPy arrays too) nor a global."""
    shown = {"input": named(function, arguments)}
    # They may be donated; `jnp.array` would compile a program for each shape.
    arguments = [
        jax.device_put(np.array(x)) if isinstance(x, jax.Array) and not is_key(x) else x for x in arguments
    ]
    if stored := _stored_globals(underlying(original(function))):
        raise Failed(
            f"Your function assigns the global `{stored[0]}`. Under `jax.jit` that would happen only while it is "
            "traced: return the new value instead."
        )
    surroundings = _surroundings(underlying(original(function)))
    before = copy.deepcopy(surroundings)
    first = _untouched(function, arguments, shown)
    for name, value in _surroundings(underlying(original(function))).items():
        if name in before and not _equal(before[name], value):
            raise Failed(
                f"Your function changes `{name}`, which lives outside of it. Under `jax.jit` that would happen only "
                "while it is traced: take it as an argument and return what is new.",
                shown=[("before", describe(before[name])), ("after", describe(value))],
            )
    second = function(*arguments)
    if not agrees(second, first, rtol=0, atol=0):
        raise Failed(
            "Your function gives another result when it is called again with the same inputs: it depends on "
            "something that is not among its arguments.",
            shown=[("first", describe(first)), ("second", describe(second))],
            **shown,
        )
    hosted = tuple(np.array(x) if isinstance(x, jax.Array) and not is_key(x) else x for x in arguments)
    if any(isinstance(x, np.ndarray) for x in hosted):
        try:
            _untouched(function, hosted, shown)
        except Failed as failure:
            if not hasattr(failure, "error"):  # what fails on NumPy arrays has not changed them either
                raise


def _untouched(function, arguments, shown):
    arrays = {id(x): x for x in jax.tree.leaves(arguments) if isinstance(x, jax.Array)}
    before = [
        copy.deepcopy(x, arrays.copy()) for x in arguments
    ]  # but jax.Arrays as they are: they cannot change
    result = function(*arguments)
    for name, old, new in zip(named(function, arguments), before, arguments, strict=False):
        if isinstance(new, jax.Array) and new.is_deleted():
            raise Failed(f"Your function deletes its input `{name}` (by donating it).")
        if not _equal(old, new):
            raise Failed(
                f"Your function changed its input `{name}` in place: the caller's own data is different afterwards. "
                "Return a new array instead.",
                input={name: old},
                shown=[("afterwards", describe(new))],
            )
    return result


def _equal(one, two):
    """Equality of the things that code keeps about: arrays, containers, numbers. What cannot be compared is equal."""
    if is_array(one) or is_array(two):
        if is_key(one):
            return True
        return (
            is_array(two)
            and np.shape(one) == np.shape(two)
            and bool(np.array_equal(one, two, equal_nan=False) or jnp.array_equal(one, two, equal_nan=True))
        )
    if type(one) is not type(two):
        return False
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(_equal(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(_equal, one, two))
    try:
        return bool(one == two)
    except Exception:
        return True


def _codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _stored_globals(function):
    if not inspect.isfunction(function):
        return []
    return [
        instruction.argval
        for code in _codes(function.__code__)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
    ]


def _surroundings(function):
    """Lists, dicts, sets and NumPy arrays that a function can reach by a global name or a closure."""
    if not inspect.isfunction(function):
        return {}
    names = {name for code in _codes(function.__code__) for name in code.co_names}
    found = {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not filled yet
            continue
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, (list, dict, set, np.ndarray, bytearray, int, float))
        and not isinstance(value, bool)
    }


def no_leaks(function, *arguments, static_argnums=()):
    """Under ``jax.jit`` no tracer is kept after the trace is over."""
    forget(original(function))  # what was traced before would not be looked at again
    try:
        with jax.check_tracer_leaks(True), under("`jax.jit`"):
            jax.jit(fresh(function), static_argnums=static_argnums)(*arguments)
    except Exception as error:
        # JAX 0.7 stumbles over its own report where a function keeps the tracer as its attribute.
        theirs = getattr(error, "error", error)
        stumbled = isinstance(theirs, IndexError) and not lines_of(theirs)
        if "leaked" not in str(getattr(error, "message", error)).lower() and not stumbled:
            raise
        raise Failed(
            "A tracer leaks: your function keeps a value that exists only while it is traced (in a global, a list, "
            "an attribute). It is of no use after the trace. Return it instead."
        ) from None
