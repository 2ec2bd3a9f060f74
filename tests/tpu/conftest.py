"""Fast compiles, no cache of them; and what happens where there is no TPU compiler."""

import jax
import pytest

from tests.tpu import compiling


@pytest.fixture(autouse=True, scope="session")
def compiler():
    reason = compiling.why_not()
    if reason and compiling.REQUIRED:
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    before = jax.config.jax_optimization_level, jax.config.jax_enable_compilation_cache
    jax.config.update("jax_optimization_level", "O0")  # several times faster
    jax.config.update("jax_enable_compilation_cache", False)
    yield
    jax.config.update("jax_optimization_level", before[0])
    jax.config.update("jax_enable_compilation_cache", before[1])
