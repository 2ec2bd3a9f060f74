"""Derivatives against finite differences, to the second order.

``jax.test_util.check_grads`` compares the same, but compiles a dozen programs for it; here they are two.
"""

import jax
import numpy as np


def check_derivatives(function, args, step=1e-4, tolerance=1e-5):
    """Compare forward and reverse derivatives, and the forward and reverse derivatives of both, in random directions.

    Args:
      function: takes the ``args``; all arrays in and out are float64.
      args: trees of arrays.
      step: of the central differences.
      tolerance: relative and absolute.
    """
    args = jax.tree.map(np.asarray, tuple(args))
    draw = np.random.default_rng(0).normal
    towards, along = (jax.tree.map(lambda a: draw(size=a.shape), args) for _ in range(2))
    weights = jax.tree.map(lambda y: draw(size=y.shape), jax.eval_shape(function, *args))

    def both(args):
        # Tangent and cotangent depend on the arguments, so that the second derivative goes through them, too.
        primal, tangent = jax.jvp(function, args, _add(towards, args))
        again, back = jax.vjp(function, *args)
        cotangent = jax.tree.map(lambda w, y: w * y, weights, again)
        return {"forward": tangent, "reverse": back(cotangent)}, (function(*args), primal, again)

    def second(args, cotangents):
        def first(args):
            return both(args)[0]

        _, back = jax.vjp(first, args)
        return jax.jvp(first, (args,), (along,))[1], back(cotangents)[0]

    run = jax.jit(both)

    def difference(direction):
        ahead, behind = (run(_add(args, direction, sign * step)) for sign in (1, -1))
        return jax.tree.map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * step), ahead, behind)

    got, (value, primal, again) = jax.tree.map(np.asarray, run(args))
    cotangents = jax.tree.map(lambda y: draw(size=y.shape), got)
    forward, reverse = jax.jit(second)(args, cotangents)
    slopes, (slope, *_) = difference(along)
    cotangent = jax.tree.map(lambda w, y: w * y, weights, value)
    for name, found, wanted in [
        ("primal of forward", primal, value),
        ("primal of reverse", again, value),
        ("forward", got["forward"], difference(_add(towards, args))[1][0]),
        ("reverse", _dot(got["reverse"], along), _dot(cotangent, slope)),
        ("forward of forward", forward["forward"], slopes["forward"]),
        ("forward of reverse", forward["reverse"], slopes["reverse"]),
        ("reverse of both", _dot(reverse, along), _dot(cotangents, slopes)),
    ]:
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            assert np.isfinite(a).all(), name
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=name)


def _add(tree, other, scale=1.0):
    return jax.tree.map(lambda a, b: a + scale * b, tree, other)


def _dot(tree, other):
    return sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True))
