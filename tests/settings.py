"""Settings of JAX, for a block of a test."""

import contextlib

import jax


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
