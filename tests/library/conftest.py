"""The library's own code runs under JAX's strictest settings in all of these tests."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")  # so that fixtures of a module run under them, too
def strict():
    settings = {
        "jax_numpy_dtype_promotion": "strict",
        "jax_numpy_rank_promotion": "raise",
        "jax_debug_key_reuse": True,
    }
    before = {name: getattr(jax.config, name) for name in settings}
    for name, value in settings.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


@pytest.fixture
def x64():
    """Switch float64 on for one test."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
