"""*Shapes, memory, compiling ahead*: padded or not, the server answers alike; what the chapter says of donation, on either end of the versions."""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions("book/compiling.ipynb", "smooth", "smooth_padded", "pad", "bucket")


@pytest.mark.parametrize("length", [1, 511, 512, 513, 2000])
def test_padding_changes_nothing(code, length):
    times, values = np.random.default_rng(length).random((2, length), dtype=np.float32)
    size = code["bucket"](length)
    assert length <= size and (size < 2 * length or size == 512)
    padded = code["pad"](times, size), code["pad"](values, size)
    with jax.default_matmul_precision("highest"):
        got = code["smooth_padded"](*padded, 0.1, length)
    np.testing.assert_allclose(got, code["smooth"](times, values, 0.1), atol=1e-4)


def donated(function, *args, **options):
    """Whether the first array of the arguments is gone after the call, and whether JAX warned."""
    kwargs = options.pop("kwargs", {})
    array = next(leaf for leaf in jax.tree.leaves((args, kwargs)) if isinstance(leaf, jax.Array))
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        jax.jit(function, **options)(*args, **kwargs)
    return array.is_deleted(), any("not usable" in str(each.message) for each in heard)


NEW = jax.__version_info__ >= (0, 12)


@pytest.mark.parametrize(
    "function, gone, warned",
    [
        (lambda x: 2 * x, True, False),
        (lambda x: x.astype(jnp.int32), NEW, not NEW),  # as many elements, and as many bytes
        (lambda x: jnp.sum(x), False, True),
        (lambda x: x > 0, False, not NEW),  # as many elements, fewer bytes
        (lambda x: x.astype(jnp.float16), False, not NEW),
        (lambda x: jnp.tile(x.astype(jnp.int16), 2), False, True),  # as many bytes, more elements
    ],
    ids=["alike", "another dtype", "smaller", "bool", "half precision", "twice as many"],
)
def test_where_a_donated_array_goes(function, gone, warned):
    assert donated(function, jnp.ones((4, 4)), donate_argnums=0) == (gone, warned)


def test_donation_by_position_and_by_name():
    def update(state, factor):
        return state * factor

    @functools.wraps(update)
    def with_a_signature(*args, **kwargs):
        return update(*args, **kwargs)

    def any_arguments(*args, **kwargs):
        return update(*args, **kwargs)

    def gone(function, by_name, **options):
        x = jnp.ones(4)
        given = {"kwargs": {"state": x, "factor": 2.0}} if by_name else {}
        return donated(function, *(() if by_name else (x, 2.0)), **given, **options)[0]

    for options in ({"donate_argnums": 0}, {"donate_argnames": "state"}):
        assert all(gone(update, by_name, **options) for by_name in (False, True))
    assert gone(any_arguments, False, donate_argnums=0) and not gone(any_arguments, True, donate_argnums=0)
    assert gone(any_arguments, True, donate_argnames="state")
    assert not gone(any_arguments, False, donate_argnames="state")
