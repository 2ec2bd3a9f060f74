"""Wrong answers are many, and each is graded once: what they wait for is mostly the compiler."""

import pytest

from tests.settings import configured


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile(quick_to_compile):
    with configured(jax_disable_most_optimizations=True):
        yield
