"""JAX's settings while an answer is judged: the same everywhere, whatever the notebook has switched on or off."""

import contextlib

import jax


@contextlib.contextmanager
def fixed():
    """The same verdict everywhere: JAX's own settings, whatever the notebook has switched on or off."""
    x64 = getattr(jax, "enable_x64", None)
    if not callable(x64):
        from jax.experimental import enable_x64 as x64
    with contextlib.ExitStack() as stack:
        for setting in (
            jax.default_matmul_precision("highest"),
            jax.debug_key_reuse(False),
            jax.check_tracer_leaks(False),
            jax.debug_nans(False),
            jax.disable_jit(False),
            jax.numpy_dtype_promotion("standard"),
            jax.numpy_rank_promotion("allow"),
            x64(False),
        ):
            stack.enter_context(setting)
        stack.enter_context(_quick_to_compile())
        yield


@contextlib.contextmanager
def _quick_to_compile():
    """Nearly all of a check's time is XLA's; a program that runs once on a few numbers is not worth optimizing.

    On a CPU only, where this is tested. What the reader jitted is compiled anew when it is next called, as it should be.
    """
    before = jax.config.values["jax_disable_most_optimizations"]
    if before or jax.default_backend() != "cpu":
        yield
        return
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
