"""Settings of JAX, for a block of a test."""

import contextlib

import jax
import pytest


@contextlib.contextmanager
def configured(**settings):
    """In the block, JAX has these settings; after it those of before."""
    before = {name: jax.config.values[name] for name in settings}
    try:
        for name, value in settings.items():
            jax.config.update(name, value)
        yield
    finally:
        for name, value in before.items():
            jax.config.update(name, value)


@pytest.fixture(autouse=True, scope="module")  # so that fixtures of a module run under them, too
def strict():
    """The library's own code runs under JAX's strictest settings: whose `conftest.py` imports this, all tests beside it."""
    with configured(
        jax_numpy_dtype_promotion="strict", jax_numpy_rank_promotion="raise", jax_debug_key_reuse=True
    ):
        yield
