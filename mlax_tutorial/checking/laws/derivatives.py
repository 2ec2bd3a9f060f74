"""Derivatives against finite differences, to the second order.

``jax.test_util.check_grads`` compares the same, but compiles a dozen programs for it; here it is one.
"""

import jax
import numpy as np

from mlax_tutorial.checking.outcome import Failed


class Disagreement(Exception):
    """A derivative that finite differences do not confirm.

    Attributes:
      name: which derivative.
      reason: a sentence about it.
      wanted, got: two numbers that should be equal.
    """

    def __init__(self, name, wanted, got, where=None):
        self.name, self.wanted, self.got = name, float(wanted), float(got)
        derivative = f"gradient by {where}" if where else f"derivative ({name})"
        self.reason = f"The {derivative} does not fit the function."
        if name.startswith("primal"):
            self.reason = f"The function gives another value while it is differentiated ({name})."
        elif not np.isfinite(self.got):
            self.reason = f"The {derivative} is not finite."
        super().__init__(f"{name}: wanted {self.wanted:g}, got {self.got:g}")


def check_derivatives(function, args, order=2, step=5e-5, tolerance=1e-5, names=None):
    """Compare forward and reverse derivatives, and the derivative of each in the other mode, in random directions.

    Args:
      function: takes the ``args``; all arrays in and out are float64.
      args: trees of arrays.
      order: 1, or 2. Of the first order, a function whose rule is for reverse mode alone is judged by that.
      step: of the differences, which are of the fourth order: they look one and two steps ahead and behind. What they neglect,
        ``step**4 / 30`` times the fifth derivative, and the rounding, about ``1e-16 / step``, would be smallest together at 1e-3.
        But no kink, of a ``relu`` say, may lie among the four points, so they stand closer: rounding is then 1e-11, which is
        little beside the tolerance, and the fifth derivative may be 1e13.
      tolerance: relative and absolute.
      names: of the args; then the first leaf whose gradient is wrong is named.

    Raises:
      Disagreement: where two numbers differ that should not.
    """
    args = jax.tree.map(np.asarray, tuple(args))
    draw = np.random.default_rng(0).normal
    towards, along = (jax.tree.map(lambda a: draw(size=a.shape), args) for _ in range(2))
    weights = jax.tree.map(lambda y: draw(size=y.shape), jax.eval_shape(function, *args))
    two_ways = True

    # Tangent and cotangent depend on the arguments, so that the second derivative goes through them, too.
    def backward(args):
        y, back = jax.vjp(function, *args)
        return back(jax.tree.map(lambda w, y: w * y, weights, y)), y

    def forward(args):
        y, tangent = jax.jvp(function, args, _add(towards, args))
        return tangent, y

    def both(args):
        slopes, again = backward(args)
        derivatives, primal = {"reverse": slopes}, again
        if two_ways:
            derivatives["forward"], primal = forward(args)
        return derivatives, (function(*args), primal, again)

    def second(args):
        _, back, _ = jax.vjp(forward, args, has_aux=True)
        return jax.jvp(lambda args: backward(args)[0], (args,), (along,))[1], back(weights)[0]

    if order > 1:
        # One program for all, since compiling takes nearly all of the time.
        whole = jax.jit(lambda args: (both(args), second(args)))
        first, (of_reverse, of_forward) = whole(args)

        def run(args):
            return whole(args)[0]
    else:
        run = jax.jit(both)
        try:
            first = run(args)
        except (TypeError, Failed):  # as JAX raises it, or through the guard of a reader's function
            two_ways, run = False, jax.jit(lambda args: both(args))
            first = run(args)

    def difference(direction):
        def slope(*values):
            one, back, two, twice = map(np.asarray, values)
            return (8 * (one - back) - (two - twice)) / (12 * step)

        return jax.tree.map(slope, *(run(_add(args, direction, steps * step)) for steps in (1, -1, 2, -2)))

    got, (value, primal, again) = jax.tree.map(np.asarray, first)
    slopes, (slope, *_) = difference(along)
    cotangent = jax.tree.map(lambda w, y: w * y, weights, value)
    pairs = [("primal of forward", primal, value), ("primal of reverse", again, value)]
    if two_ways:
        pairs.append(("forward", got["forward"], difference(_add(towards, args))[1][0]))
    pairs.append(("reverse", _dot(got["reverse"], along), _dot(cotangent, slope)))
    if order > 1:
        pairs += [
            ("forward of reverse", of_reverse, slopes["reverse"]),
            ("reverse of forward", _dot(of_forward, along), _dot(weights, slopes["forward"])),
        ]
    try:
        for name, found, wanted in pairs:
            for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
                _same(name, a, b, tolerance)
    except Disagreement:
        # Which of the arguments is it? Then a reader knows where to look.
        for index, (path, _) in enumerate(jax.tree_util.tree_leaves_with_path(args) if names else ()):
            alone = _only(along, index)
            _, (slope, *_) = difference(alone)
            where = names[path[0].idx] + jax.tree_util.keystr(path[1:])
            _same("reverse", _dot(got["reverse"], alone), _dot(cotangent, slope), tolerance, where)
        raise


def _same(name, got, wanted, tolerance, where=None):
    got, wanted = np.asarray(got), np.asarray(wanted)
    wrong = ~(np.isfinite(got) & np.isclose(got, wanted, rtol=tolerance, atol=tolerance))
    if wrong.any():
        place = tuple(np.argwhere(wrong)[0])
        raise Disagreement(name, wanted[place], got[place], where)


def _only(tree, index):
    """The tree, with zeros in all leaves but one."""
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(
        structure, [leaf if i == index else np.zeros_like(leaf) for i, leaf in enumerate(leaves)]
    )


def _add(tree, other, scale=1.0):
    return jax.tree.map(lambda a, b: a + scale * b, tree, other)


def _dot(tree, other):
    return sum(np.vdot(a, b) for a, b in zip(jax.tree.leaves(tree), jax.tree.leaves(other), strict=True))
