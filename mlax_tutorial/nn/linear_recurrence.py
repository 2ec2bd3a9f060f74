"""A recurrence that is linear in its state, so that it may also be computed as a tree: state-space models, gated averages."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.arrays import accumulator, is_array, varying_like
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.rules import axis_from_the_end, boolean


@functools.partial(jax.jit, static_argnames=("associative", "axis"), inline=True)
def linear_recurrence(a, b, initial=None, *, associative: bool = False, axis: int = -2):
    r"""All states of :math:`h_t = a_t h_{t-1} + b_t`, elementwise: ``(..., time, features) -> (..., time, features)``.

    Args:
      a, b: of one shape, floating or complex.
      initial: the state before the first step, ``(..., features)``, complex only if ``a`` or ``b`` is; zeros by default.
      associative: by ``lax.associative_scan``, in ``log(time)`` rounds, with about twice the combinations and three times the arithmetic: faster
        where the device has room for all steps at once. By default step by step.
      axis: of the time, counted from the end.

    Returns:
      ``(h, last)``: the states in the dtype of ``b``, or complex if ``a`` is; and the last one, ``(..., features)``, in float32 for
      half precision, which is also how states are computed. Handed on as ``initial``, it goes on from there.

    Raises:
      ValueError: if shapes or dtypes do not fit, or ``axis`` is no negative integer, or none of theirs.

    Example:
      >>> import jax.numpy as jnp
      >>> h, last = linear_recurrence(jnp.full((3, 1), 0.5), jnp.ones((3, 1)))
      >>> h[:, 0].tolist(), last.tolist()
      ([1.0, 1.5, 1.75], [1.75])

    References: Blelloch, *Prefix Sums and Their Applications* (1990); Martin and Cundy, *Parallelizing Linear Recurrent Neural Nets
    Over Sequence Length* (2018).
    """
    checked("linear_recurrence: associative", boolean, associative)
    checked("linear_recurrence: axis", axis_from_the_end, axis)
    _check(a, b, initial, axis)
    dtype = a.dtype if jnp.iscomplexobj(a) and not jnp.iscomplexobj(b) else b.dtype
    wide = accumulator(dtype)
    a, b = (jnp.moveaxis(x.astype(wide), axis, 0) for x in (a, b))
    # The sum, for its shape: there may be no step whose shape to take.
    state = jnp.zeros_like(b.sum(axis=0)) if initial is None else initial.astype(wide)
    if associative:
        factors, sums = lax.associative_scan(lambda x, y: (x[0] * y[0], y[0] * x[1] + y[1]), (a, b))
        h = factors * state[None] + sums
    else:
        state = varying_like(state, a, b)
        _, h = lax.scan(lambda h, each: (each[0] * h + each[1],) * 2, state, (a, b))
    return jnp.moveaxis(h, 0, axis).astype(dtype), h[-1] if len(h) else state


def _check(a, b, initial, axis):
    for name, array in (("a", a), ("b", b)) + (() if initial is None else (("initial", initial),)):
        if not is_array(array) or not jnp.issubdtype(array.dtype, jnp.inexact):
            wanted = "an array of floating-point or complex numbers"
            raise ValueError(
                f"linear_recurrence: {name} must be {wanted}, got {describe(array)}: convert it."
            )
    if a.shape != b.shape:
        mend = "jnp.broadcast_to makes them so"
        raise ValueError(
            f"linear_recurrence: a and b must be of one shape, got {describe(a)} and {describe(b)}: {mend}."
        )
    if a.ndim < -axis:
        raise ValueError(f"linear_recurrence: axis {axis} must be one of a and b, got {describe(a)}.")
    if initial is None:
        return
    state = a.shape[:axis] + a.shape[axis:][1:]
    if initial.shape != state:
        wanted = f"of shape {state}, that of one step of {describe(b)}"
        raise ValueError(f"linear_recurrence: initial must be {wanted}, got {describe(initial)}.")
    if jnp.iscomplexobj(initial) and not jnp.iscomplexobj(a) and not jnp.iscomplexobj(b):
        mend = "make b complex"
        raise ValueError(
            f"linear_recurrence: initial must be real, as a and b are, got {describe(initial)}: {mend}."
        )
