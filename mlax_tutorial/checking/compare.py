"""Checks of what an answer *is*: values, kinds, shapes, dtypes, predictions."""

import inspect
from numbers import Number

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking.describe import close, describe, is_array, is_key, kind
from mlax_tutorial.checking.guarding import Raised
from mlax_tutorial.checking.outcome import Failed, says
from mlax_tutorial.checking.search import search

# Values


def values(function, reference, *strategies, examples=(), count=20, recognise=(), rtol=None, atol=None):
    """The function gives what the reference gives: on examples, then on random inputs.

    Args:
      strategies: one for each argument, or one `inputs.together`; a plain value stands for itself.
      examples: tuples of arguments that are tried first.
      count: how many random inputs are tried. The smallest failing one found is shown.
      recognise: pairs ``(wrong, diagnosis)``. If a result is wrong, and the answer agrees with ``wrong`` on every input
        tried, the diagnosis leads the report.

    The result must be a `jax.Array` (or a tree of them) of the reference's shape and dtype.
    """
    tried, differing = [], []

    def attempt(arguments):
        expected = reference(*arguments)
        got = function(*arguments)  # may raise a `Failed` of its own: then there is no result to recognise
        tried.append((arguments, got))
        try:
            same(got, expected, input=named(reference, arguments), rtol=rtol, atol=atol)
        except Failed as failure:
            differing.append(failure)
            raise

    try:
        for arguments in examples:
            attempt(tuple(arguments))
        if strategies:
            search(attempt, strategies, count)
    except Failed as failure:
        known = recognise if any(failure is other for other in differing) else ()
        for wrong, diagnosis in known:
            if _agrees_everywhere(wrong, tried):
                failure.say_first(diagnosis)
                break
        raise


def _agrees_everywhere(wrong, tried):
    """What the reader's function gave is what ``wrong`` gives. (It is not called again: it may print.)"""
    try:
        return all(agrees(got, wrong(*arguments)) for arguments, got in tried[-20:])
    except Exception:
        return False


def agrees(one, two, rtol=None, atol=None):
    """Whether a result is this other one, but for rounding: as `same`, but it answers instead of failing.

    Where NumPy computed the other in 64 bits, its numbers count and not its dtype: no result of JAX has it here.

    >>> agrees(jnp.array([1.0, 2.0]), jnp.array([1.0, 2.000001]))
    True
    >>> agrees(jnp.array([1.0, 2.0]), np.array([1.0, 2.0]))  # float64
    True
    >>> agrees(jnp.array([1, 2]), jnp.array([1.0, 2.0]))
    False
    >>> agrees((jnp.ones(2), 3), [jnp.ones(2), 3])
    False
    """
    left, structure = jax.tree.flatten(one)
    right, other = jax.tree.flatten(two)
    return structure == other and all(_agree(a, b, rtol, atol) for a, b in zip(left, right, strict=True))


WIDE = (np.int64, np.uint64, np.float64, np.complex128)


def _agree(one, two, rtol, atol):
    if np.shape(one) != np.shape(two):
        return False
    if isinstance(two, np.ndarray):
        if not is_array(one) or is_key(one):
            return False
        if two.dtype not in WIDE and one.dtype != two.dtype:
            return False
        return bool(np.all(one == two if two.dtype.kind in "OSU" else close(two, one, rtol, atol)))
    try:
        _same_array(one, two, "", {}, rtol, atol)
    except Failed:
        return False
    return True


def same(got, expected, *, input="", where="", rtol=None, atol=None, recognise=()):
    """One result equals the expected one: in kind, structure, shape, dtype and value.

    Args:
      recognise: pairs ``(wrong, diagnosis)`` of a wrong result, or a function that makes it, and what is said first of who
        gives that.

    >>> same(jnp.array(6.0), jnp.array(3.0), recognise=[(jnp.array(6.0), "That is twice as much.")])
    Traceback (most recent call last):
    mlax_tutorial.checking.outcome.Failed: That is twice as much.
    The result is wrong.
    """

    def known(_):
        made = ((wrong() if callable(wrong) else wrong, diagnosis) for wrong, diagnosis in recognise)
        return next((diagnosis for wrong, diagnosis in made if agrees(got, wrong, rtol, atol)), "")

    with says(known):
        _same(got, expected, input, where, rtol, atol)


def _same(got, expected, input, where, rtol, atol):
    shown = {"expected": expected, "got": got} | ({"input": input} if input else {})
    where = f" {where}" if where else ""
    if got is None and expected is not None:
        raise Failed(f"Your function returned None{where}: is a `return` missing?", **shown)
    if is_array(expected) or np.isscalar(expected):
        _same_array(got, expected, where, shown, rtol, atol)
        return
    left, structure = jax.tree_util.tree_flatten_with_path(expected)
    right, other = jax.tree_util.tree_flatten_with_path(got)
    if structure != other:
        raise Failed(f"The result has another structure than expected{where}.", **shown)
    for (path, one), (_, two) in zip(left, right, strict=True):
        _same_array(two, one, f" in the part {jax.tree_util.keystr(path)}{where}", shown, rtol, atol)


def _same_array(got, expected, where, shown, rtol, atol):
    if is_array(expected):
        _is_jax_array(got, where, shown)
        if is_key(expected) != is_key(got):
            raise Failed(f"Expected {describe(expected)}, but got {describe(got)}{where}.", **shown)
        if is_key(expected):
            got, expected = jax.random.key_data(got), jax.random.key_data(expected)
        if got.shape != expected.shape:
            raise Failed(f"The shape is wrong{where}: expected {expected.shape}, got {got.shape}.", **shown)
        if got.dtype != expected.dtype:
            raise Failed(f"The dtype is wrong{where}: expected {expected.dtype}, got {got.dtype}.", **shown)
    elif not (np.isscalar(got) or is_array(got)):
        raise Failed(f"Expected {kind(expected)}, but got {kind(got)}{where}.", **shown)
    if not (isinstance(got, str) or isinstance(expected, str)):
        if not np.all(close(expected, got, rtol, atol)):
            raise Failed(f"The result is wrong{where}.", **shown)
    elif got != expected:
        raise Failed(f"The result is wrong{where}.", **shown)


def _is_jax_array(got, where, shown):
    if isinstance(got, jax.Array):
        return
    if isinstance(got, (np.ndarray, np.generic)):
        raise Failed(
            f"Your function returned {kind(got)}{where}, but a jax.Array is asked for. NumPy's functions compute on "
            "the host, and JAX cannot trace them: use those of `jnp`.",
            **shown,
        )
    if isinstance(got, (list, tuple)):
        raise Failed(
            f"Your function returned {kind(got)}{where}, but one jax.Array is asked for. JAX keeps the numbers "
            "together in an array, and so should you.",
            **shown,
        )
    raise Failed(f"Your function returned {kind(got)}{where}, but a jax.Array is asked for.", **shown)


def named(function, arguments):
    """Arguments by the names that the function's signature gives them."""
    try:
        return dict(inspect.signature(function).bind(*arguments).arguments)
    except (TypeError, ValueError):
        return {f"argument {i}": argument for i, argument in enumerate(arguments)}


def returned(got, /, *names, like=None, lists=False, asked="", by="Your function", **shown):
    """Something was returned; where parts are named, a tuple of so many. Gives it back.

    Args:
      names: what the parts are called, in their order.
      like: trees, one for each part, that it is built like: so parts in another order are told from wrong ones.
      lists: whether a list is as good as a tuple.
      asked: what to say of another number of parts, instead of a sentence with the names.
      by: who returned it.
      shown: what `Failed` takes besides: ``input``, ``expected``.

    >>> mean, deviation = returned((1.5, 0.5), "mean", "deviation")
    >>> returned(None)
    Traceback (most recent call last):
    mlax_tutorial.checking.outcome.Failed: Your function returned None: is a `return` missing?
    >>> returned(1.5, "mean", "deviation")
    Traceback (most recent call last):
    mlax_tutorial.checking.outcome.Failed: Return two things, in this order: the mean, the deviation.
    """
    if got is None:
        raise Failed(f"{by} returned None: is a `return` missing?", **shown)
    if not names:
        return got
    shown = {"got": got} | shown
    if not isinstance(got, (tuple, list) if lists else tuple) or len(got) != len(names):
        count = {2: "two", 3: "three", 4: "four"}.get(len(names), str(len(names)))
        listed = ", ".join(f"the {name}" for name in names)
        raise Failed(asked or f"Return {count} things, in this order: {listed}.", **shown)
    if like is not None:
        wanted, found = [[jax.tree.structure(part) for part in parts] for parts in (like, got)]
        if found != wanted and found == wanted[::-1]:
            raise Failed(f"The order is: first the {', then the '.join(names)}.", **shown)
        for name, one, two in zip(names, found, wanted, strict=True):
            if one != two:
                raise Failed(f"The {name} should be built like the one that came in: {two}.", **shown)
    return got


def returns(function, *arguments, shape=None, dtype=None):
    """The function returns a `jax.Array` of this shape and exactly this dtype; its values are not looked at."""
    got = function(*arguments)
    shown = {"input": named(function, arguments), "got": got}
    returned(got, **shown)
    _is_jax_array(got, "", shown)
    if shape is not None and got.shape != tuple(shape):
        raise Failed(f"The shape is wrong: expected {tuple(shape)}, got {got.shape}.", **shown)
    if dtype is not None and got.dtype != dtype:
        raise Failed(f"The dtype is wrong: expected {jnp.dtype(dtype)}, got {got.dtype}.", **shown)


def refuses(function, *arguments, error=ValueError, says=""):
    """The function raises this error, with these words in its message."""
    shown = {"input": named(function, arguments)}
    kinds = error if isinstance(error, tuple) else (error,)
    name = " or ".join(f"`{kind.__name__}`" for kind in kinds)
    try:
        got = function(*arguments)
    except Raised as raised:
        if not isinstance(raised.error, kinds):
            raise Failed(
                f"Your function must refuse this input with {name}, but: {raised.message}", **shown
            ) from None
        if says.lower() not in str(raised.error).lower():
            raise Failed(
                f"Your function refuses this input with {name}, as it should, but the message does not say "
                f"`{says}`.",
                shown=[("message", str(raised.error))],
                **shown,
            ) from None
        return
    raise Failed(
        f"Your function must refuse this input with {name}, but it returned a result.", got=got, **shown
    )


def equals(given, expected, why=None):
    """An answer that is a value: ``why`` maps wrong answers to what is behind them. The right one is not shown."""
    if not _same_answer(given, expected):
        reason = next((text for other, text in (why or {}).items() if _same_answer(given, other)), "")
        raise Failed(f"{describe(given)} is not the answer. {reason}".strip())


def answers(given, expected, why=None):
    """A dict of predictions: each is right, or the report names it, without giving the right one away.

    Args:
      why: for a question, a dict from wrong answers to what is behind them: ``{"a": {"int32": "…"}}``.
    """
    if not isinstance(given, dict):
        raise Failed(f"You gave {kind(given)}, but a dict is asked for, with the keys {_names(expected)}.")
    if missing := [key for key in expected if key not in given]:
        raise Failed(f"No answer for {_names(missing)}.")
    if extra := [key for key in given if key not in expected]:
        raise Failed(f"There is no question {_names(extra)}: the questions are {_names(expected)}.")
    still_open = [key for key in expected if given[key] is ...]
    wrong = [key for key in expected if key not in still_open and not _same_answer(given[key], expected[key])]
    if still_open and not wrong:
        raise Failed(f"No answer yet for {_names(still_open)}; the others are right.")
    if wrong:
        said = [(str(key), "no answer yet.") for key in still_open]
        for key in wrong:
            reasons = (why or {}).get(key, {})
            reason = next((text for other, text in reasons.items() if _same_answer(given[key], other)), "")
            reason = reason or _another_kind(given[key], expected[key])
            said.append((str(key), f"not {given[key]!r}. {reason}".strip()))
        count = f"{len(wrong)} of {len(expected)} answers are" if len(wrong) > 1 else f"{_names(wrong)} is"
        raise Failed(f"{count} not right yet.", shown=said)


def _another_kind(given, expected):
    """Says what is asked for, where what is given is not even of that kind."""
    if isinstance(expected, np.dtype):
        if _dtype(given) is not None:
            return ""
        return 'The name of one dtype, with its width, is asked for, such as "int8".'
    if isinstance(expected, str):
        return f"One string is asked for, not {kind(given)}." if isinstance(given, (list, tuple, set)) else ""
    if isinstance(expected, bool):
        return "" if isinstance(given, (bool, np.bool_)) else "`True` or `False` is asked for."
    if isinstance(expected, (int, float)):
        number = isinstance(given, (Number, jax.Array)) and np.ndim(given) == 0
        number = number and not isinstance(given, bool)
        return "" if number else f"A number is asked for, not {kind(given)}."
    return ""


def _dtype(given):
    """The dtype that is meant by ``"int8"``, ``"jnp.int8"``, ``"i1"``, ``jnp.int8`` or the dtype itself, else None.

    ``float`` and its like do not count: how many bits it has is what such questions are about.
    """
    try:
        if isinstance(given, str):
            name = given.strip().rpartition(".")[2].lower()
            return jnp.dtype(name) if name == "bool" or not name.isalpha() else None
        if isinstance(given, type):
            dtype = jnp.dtype(
                given.__name__
            )  # by name: NumPy warns of a class without a dtype, like np.floating
            return dtype if dtype.name == given.__name__ else None
        return given if isinstance(given, np.dtype) else None
    except (TypeError, ValueError):
        return None


def _same_answer(given, expected):
    if isinstance(expected, np.dtype):
        meant = _dtype(given)
        return meant is not None and meant == expected  # NumPy takes None for float64
    if isinstance(expected, str):
        name = getattr(given, "__name__", None) or str(given)  # jnp.float32 and "float32" alike
        return name.strip().lower() == expected.lower()
    if isinstance(given, (np.bool_, jax.Array)) and given.ndim == 0 and given.dtype == bool:
        given = bool(given)
    if isinstance(expected, bool) or isinstance(given, bool):
        return given is expected
    try:
        return bool(given == expected)
    except Exception:
        return False


def _names(keys):
    return ", ".join(f"`{key}`" for key in keys)
