"""JAX's strictest settings, for all tests of this folder."""

from tests.settings import strict  # noqa: F401
