"""The library's own code runs under JAX's strictest settings in all of these tests."""

import jax
import pytest


@pytest.fixture(autouse=True, scope="module")  # so that fixtures of a module run under them, too
def strict(request):
    settings = {
        "jax_numpy_dtype_promotion": "strict",
        "jax_numpy_rank_promotion": "raise",
        "jax_debug_key_reuse": True,
        # Thousands of small programs that run once: what a module that says so waits for is mostly the compiler.
        "jax_disable_most_optimizations": getattr(request.module, "QUICK_TO_COMPILE", False),
    }
    before = {name: jax.config.values[name] for name in settings}
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


@pytest.fixture
def optimized():
    """Compile as for a user, for one test of a module that is quick to compile."""
    before = jax.config.values["jax_disable_most_optimizations"]
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", before)
