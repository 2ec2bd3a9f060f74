"""No cache of compiled programs, and what happens where there is no TPU compiler."""

import pytest
from jax.experimental.compilation_cache import compilation_cache

from tests.settings import configured
from tests.tpu import compiling


@pytest.fixture(autouse=True, scope="session")
def compiler():
    reason = compiling.why_not()
    if reason and compiling.REQUIRED:
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with configured(jax_enable_compilation_cache=False):
        compilation_cache.reset_cache()  # else it stays as the first program of this process found it
        yield
