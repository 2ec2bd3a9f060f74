"""What holds for every exercise whose answer is a function, so that no check has to ask for it: see `look`."""

import inspect
import math

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval

from mlax_tutorial.checking.describe import is_array
from mlax_tutorial.checking.guarding import original
from mlax_tutorial.checking.outcome import Failed
from mlax_tutorial.inspection import jaxprs

MOST = 4  # kinds of calls that are looked at


class Calls:
    """The calls that a check made: their arguments, arrays by shape and dtype; of each kind (`_kind`) the first."""

    def __init__(self):
        self.kinds, self.arguments = set(), []

    def note(self, args, kwargs):
        if len(self.arguments) == MOST:
            return
        leaves, structure = jax.tree.flatten((args, kwargs))
        shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype) if is_array(x) else x for x in leaves]
        kind = str(structure), tuple(_kind(x) for x in leaves)
        if kind not in self.kinds:
            self.kinds.add(kind)
            self.arguments.append(jax.tree.unflatten(structure, shapes))


def look(function, reference, calls, differentiable=True):
    """The derivative depends on the arguments that the reference's depends on, and no number is rounded that the reference does not round.

    Both are only traced, on the arguments of the check's calls; a function that cannot be traced on some is not looked at there.
    """
    for args, kwargs in calls.arguments:
        try:
            wanted = _Traced(reference, args, kwargs)
            got = _Traced(original(function), args, kwargs)
        except Exception:
            continue
        lost = [place for place in wanted.slopes if place not in got.slopes]
        if differentiable and lost:
            raise Failed(
                f"The values are right, but no gradient reaches `{_name(reference, args, lost[0])}`: for `jax.grad` your function does not depend on it. "
                "Is there a `stop_gradient`, a rounding or a cast to integers on the way?"
            )
        if got.bits < min(wanted.bits, got.least) < math.inf:
            raise Failed(
                f"The values are right for the numbers tried here, but your function goes through `{got.narrowest}` on the way, "
                "which rounds other numbers: convert only where it is asked for."
            )


class _Traced:
    """What a function is when it is traced: the arguments that its derivative depends on, and its narrowest floats."""

    def __init__(self, function, args, kwargs):
        found, structure = jax.tree_util.tree_flatten_with_path((args, kwargs))
        places, leaves = [_place(path) for path, _ in found], [leaf for _, leaf in found]
        traced = [i for i, x in enumerate(leaves) if isinstance(x, jax.ShapeDtypeStruct)]
        moving = [i for i in traced if jnp.issubdtype(leaves[i].dtype, jnp.inexact)]
        still = [i for i in traced if i not in moving]

        def call(moved, stayed):
            new = dict(enumerate(leaves)) | dict(zip(moving, moved)) | dict(zip(still, stayed))
            args, kwargs = jax.tree.unflatten(structure, new.values())
            return function(*args, **kwargs)

        def both(moved, tangents, stayed):
            return jax.jvp(lambda *moved: call(moved, stayed), moved, tangents)

        of_moving, of_still = tuple(leaves[i] for i in moving), tuple(leaves[i] for i in still)
        program = jax.make_jaxpr(both)(of_moving, of_moving, of_still)
        half = len(program.out_avals) // 2
        _, used = partial_eval.dce_jaxpr(program.jaxpr, [False] * half + [True] * half)
        self.slopes = {places[i]: True for i, is_used in zip(moving, used[len(moving) :]) if is_used}
        self.least = min(map(_bits, program.in_avals + program.out_avals))
        inside = [variable.aval for _, equation in jaxprs.walk(program) for variable in equation.outvars]
        narrowest = min(inside, key=_bits, default=None)
        self.bits = _bits(narrowest)
        self.narrowest = getattr(narrowest, "dtype", None)


def _kind(leaf):
    """What decides about the program: a word chooses a way, a number may be any."""
    if is_array(leaf):
        return leaf.shape, leaf.dtype
    return leaf if isinstance(leaf, str) else type(leaf)


def _place(path):
    """The argument that a leaf belongs to: its position, or its keyword."""
    return path[1].idx if path[0].idx == 0 else path[1].key


def _bits(aval):
    """How many bits a float has for its digits; of all else, infinitely many."""
    dtype = getattr(aval, "dtype", None)
    floating = dtype is not None and jnp.issubdtype(dtype, jnp.floating)
    return jnp.finfo(dtype).nmant if floating else math.inf


def _name(function, args, place):
    if isinstance(place, str):
        return place
    names = list(inspect.signature(function).bind_partial(*args).arguments)
    return names[min(place, len(names) - 1)]  # the last may be all that are left, as in `*trees`
