"""No cache of compiled programs, and what happens where there is no TPU compiler."""

import pytest

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
        yield
