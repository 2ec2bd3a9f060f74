"""The library's own code runs under JAX's strictest settings in all of these tests."""

import pytest

from tests.settings import configured


@pytest.fixture(autouse=True, scope="module")  # so that fixtures of a module run under them, too
def strict():
    with configured(
        jax_numpy_dtype_promotion="strict", jax_numpy_rank_promotion="raise", jax_debug_key_reuse=True
    ):
        yield
