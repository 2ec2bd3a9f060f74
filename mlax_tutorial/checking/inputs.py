"""Random inputs for checks: hypothesis strategies whose values are small, readable and quick to compile.

Call these inside a check, not at import: hypothesis is imported late. Any hypothesis strategy can be used in
their place. Sizes come from a small pool, as each new shape compiles every operation anew.
"""

import numpy as np

SIZES = (0, 1, 2, 3, 5, 8)


class MissingPackage(ImportError):
    """A package that the checks need is not installed."""


def strategies():
    """``hypothesis.strategies``, or an error that says how to get it."""
    try:
        from hypothesis import strategies
    except ImportError as error:
        raise MissingPackage(
            "The exercises draw random inputs with hypothesis, which is not installed. "
            'Install it with: pip install "hypothesis>=6.130"'
        ) from error
    return strategies


def arrays(*shape, dtype="float32", sizes=SIZES, low=-8, high=8, special=()):
    """`jax.Array` s of quarters between ``low`` and ``high`` (integers, where the dtype is one).

    Args:
      shape: for each axis an int, or a letter: the same letter has the same size, drawn from ``sizes``.
        ``arrays("n")`` draws vectors, ``arrays("n", 3)`` matrices of three columns.
      special: values mixed in, such as ``(np.nan, np.inf)``.

    Quarters are exact in every floating dtype, and so are their sums and small products: a counterexample
    reads well, and a comparison is fair.
    """
    st = strategies()
    kind = np.dtype(dtype).kind if dtype != "bfloat16" else "f"

    @st.composite
    def draw_array(draw):
        letters = {}
        for axis in shape:
            if isinstance(axis, str) and axis not in letters:
                letters[axis] = draw(st.sampled_from(sizes))
        sizes_now = tuple(letters.get(axis, axis) for axis in shape)
        return draw(_filled(sizes_now, dtype, kind, low, high, special))

    return draw_array()


def _filled(shape, dtype, kind, low, high, special):
    import jax
    import jax.numpy as jnp

    st = strategies()
    if kind == "b":
        values = [False, True]
    elif kind in "iu":
        values = list(range(0 if kind == "u" else low, high + 1))
    else:
        values = [q / 4 for q in range(4 * low, 4 * high + 1)]
    values = sorted(values, key=lambda value: (abs(value) != int(abs(value)), abs(value), value < 0))
    size = int(np.prod(shape, dtype=int))
    entry = st.sampled_from(values)
    if special:
        entry = st.one_of(entry, entry, st.sampled_from(tuple(special)))
    # `jnp.asarray` would compile a program for each shape.
    return st.lists(entry, min_size=size, max_size=size).map(
        lambda entries: jax.device_put(np.array(entries, jnp.dtype(dtype)).reshape(shape))
    )


def integers(low, high):
    """Integers from ``low`` to ``high``, both included."""
    return strategies().sampled_from(range(low, high + 1))


def one_of(*values):
    """One of these values."""
    return strategies().sampled_from(values)


def keys():
    """Random keys (``jax.random.key``)."""
    import jax

    return strategies().sampled_from(range(16)).map(jax.random.key)


def together(function):
    """Arguments that depend on each other: ``function(draw)`` returns all of them, as a tuple.

    ``inputs.together(lambda draw: (x := draw(inputs.arrays("n", sizes=(3, 5))), draw(inputs.integers(1, len(x)))))``
    """
    return strategies().composite(function)().map(_Together)


class _Together(tuple):
    """All arguments of a call."""
