"""Trees of arrays: count, print, compare, choose leaves by name, take apart, put together.

A tree is any pytree whose leaves are arrays: weights, gradients, the state of an optimizer.
Placeholders (``jax.ShapeDtypeStruct``) and typed random keys are leaves like any other, so
that ``describe(jax.eval_shape(model.init, key, x))`` tells the size of a model that fits
into no memory. Nothing is copied to the host, except where values are compared.

Three ways to say which leaves are meant, ``where``, everywhere:

* a pattern for the whole path, ``"*['kernel']"``, in which ``*`` stands for anything. Paths
  are as ``jax.tree_util.keystr`` writes them, and as ``nn.summary`` and errors show them;
* a function from the path to a ``bool`` (optimizers take these two);
* a tree of ``bool`` like the tree itself, which may look at the leaves, too:
  ``jax.tree.map(lambda leaf: leaf.ndim > 1, tree)``.

A pattern or a function that chooses nothing is refused: a misspelt name would do nothing,
without a word. So is a pattern whose index counts in layers of different kinds, as far as paths tell: blocks that are only
numbered look alike, so name what differs (``nn.name_layers``). A tree of ``bool`` may be all ``False``.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import meshes
from mlax_tutorial.nn.arrays import accumulator, is_array, is_key
from mlax_tutorial.nn.errors import describe as in_words
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.paths import check_like, choose, flatten, refuse_layers
from mlax_tutorial.optim import moments
from mlax_tutorial.optim.moments import cast
from mlax_tutorial.optim.tunable import fraction
from mlax_tutorial.tables import Table

__all__ = [
    "Description", "Leaf", "average", "combine", "count", "describe", "differences", "nbytes", "partition", "select", "update",
]  # fmt: skip


def count(tree: Any) -> int:
    """How many numbers a tree holds: the sizes of its leaves, added up. A random key counts as one.

    Raises:
      ValueError: if a leaf is no array.

    Example:
      >>> import jax.numpy as jnp
      >>> count({"kernel": jnp.ones((4, 3)), "bias": jnp.ones(3)})
      15
    """
    return sum(math.prod(leaf.shape) for leaf in arrays("count", tree).values())


def nbytes(tree: Any) -> int:
    """How many bytes the numbers of a tree take, counted once however many devices hold them.

    Raises:
      ValueError: if a leaf is no array.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> nbytes({"kernel": jax.ShapeDtypeStruct((4, 3), jnp.bfloat16), "bias": jnp.ones(3)})
      36
    """
    return sum(map(_bytes, arrays("nbytes", tree).values()))


def select(tree: Any, where: Any) -> dict[str, Any]:
    """The chosen leaves by their paths, in the order of the tree; pure.

    Args:
      tree: any pytree.
      where: a pattern, a function from a path to ``bool``, or a tree of ``bool``: see the top.

    Raises:
      ValueError: if ``where`` is nothing of the kind, or a pattern or a function that
        chooses nothing.

    Example:
      >>> import jax.numpy as jnp
      >>> weights = ({"kernel": jnp.ones((4, 3))}, {"bias": jnp.zeros(3)})
      >>> select(weights, "*['bias']")
      {"[1]['bias']": Array([0., 0., 0.], dtype=float32)}
    """
    paths, leaves, _ = flatten(tree)
    meant = _meant("select", tree, where)
    return {path: leaf for path, leaf, chosen in zip(paths, leaves, meant) if chosen}


def update(tree: Any, where: Any, function: Callable[[Any], Any]) -> Any:
    """The same tree with ``function`` applied to the chosen leaves; pure.

    Args:
      tree: any pytree.
      where: a pattern, a function from a path to ``bool``, or a tree of ``bool``: see the top.
      function: from a leaf to what shall take its place.

    Raises:
      ValueError: as :func:`select`, and if ``function`` is none.

    Example:
      >>> import jax.numpy as jnp
      >>> update({"kernel": jnp.ones(2), "bias": jnp.ones(2)}, "['bias']", jnp.zeros_like)
      {'bias': Array([0., 0.], dtype=float32), 'kernel': Array([1., 1.], dtype=float32)}
    """
    if not callable(function):
        raise ValueError(f"update: function must be one of a leaf, got {in_words(function)}.")
    _, leaves, structure = flatten(tree)
    meant = _meant("update", tree, where)
    leaves = [function(leaf) if chosen else leaf for leaf, chosen in zip(leaves, meant)]
    return jax.tree.unflatten(structure, leaves)


def average(old: Any, new: Any, decay: Any) -> Any:
    r"""Move ``old`` a little towards ``new``, :math:`\beta a + (1 - \beta) x`: for averages of weights, target networks; pure.

    Floating-point leaves are averaged in at least float32, and stored in the dtype of ``old``; integers and random keys are those of
    ``new``. Keep ``old`` in float32: in bfloat16, what a decay above 0.99 adds is rounded away, and the average stands still.

    Args:
      old: the average so far, any pytree of arrays.
      new: a tree like it; its dtypes may be wider or narrower.
      decay: :math:`\beta`, how much of ``old`` is kept, in [0, 1]; it may be traced.

    Raises:
      ValueError: if a leaf is no array, the trees differ in structure, shapes or kinds of numbers (floating-point, complex,
        integers, Booleans, keys), or the decay is out of range.

    Example:
      >>> import jax.numpy as jnp
      >>> average({"mean": jnp.zeros(2), "count": jnp.int32(1)}, {"mean": jnp.ones(2), "count": jnp.int32(2)}, 0.75)
      {'count': Array(2, dtype=int32), 'mean': Array([0.25, 0.25], dtype=float32)}
    """
    decay = checked("average: decay", fraction, decay)
    arrays("average", old)
    check_like("average: new", new, old, "old and new must come from one model.")
    check_like("average: new", new, old, "convert one of them; only the widths may differ.", of=_kind)
    return _average(old, new, decay)


def _kind(leaf):
    """What numbers a leaf holds, of any width."""
    kinds = jnp.floating, jnp.complexfloating, jnp.integer, jnp.bool_, jax.dtypes.prng_key
    return next((kind.__name__ for kind in kinds if jnp.issubdtype(leaf.dtype, kind)), str(leaf.dtype))


@meshes.door
def _average(old, new, decay):
    def one(old, new):
        if not jnp.issubdtype(old.dtype, jnp.inexact):
            return new
        return cast(moments.average(decay, old, cast(new, accumulator(old.dtype))), old.dtype)

    return jax.tree.map(one, old, new)


def partition(tree: Any, where: Any) -> tuple[Any, Any]:
    """Take a tree apart into ``(chosen, rest)``: each has holes where the other has leaves; pure.

    A hole is ``()``, a container with nothing in it, as for a layer without variables and a
    weight that :class:`optim.Freeze` keeps from its optimizer. JAX sees no leaf there, so
    either part is a tree for ``jax.grad``, ``jax.jit`` and any optimizer. (``None`` would be
    as empty, but means "not mapped" where JAX asks for axes and shardings.)

    Args:
      tree: any pytree.
      where: a pattern, a function from a path to ``bool``, or a tree of ``bool``: see the top.

    Raises:
      ValueError: as :func:`select`.

    Example: gradients of a part of the weights.
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, trees
      >>> model, x = nn.Series(nn.Linear(3), nn.Linear(1)), jnp.ones((2, 4))
      >>> trainables, _ = model.init(jax.random.key(0), x)
      >>> head, body = trees.partition(trainables, "[1]*")
      >>> def loss(head, body):
      ...     return jnp.sum(model.fwd(x, trees.combine(head, body), ())[0])
      >>> jax.tree.map(jnp.shape, jax.grad(loss)(head, body))
      ({'kernel': ()}, {'kernel': (3, 1)})
    """
    _, leaves, structure = flatten(tree)
    meant = _meant("partition", tree, where)

    def part(wanted):
        kept = [leaf if chosen is wanted else () for leaf, chosen in zip(leaves, meant)]
        return jax.tree.unflatten(structure, kept)

    return part(True), part(False)


def combine(*trees: Any) -> Any:
    """Put together what :func:`partition` took apart: at each place the leaf that is there; pure.

    Args:
      *trees: one or more trees that are alike except for their holes, ``()``.

    Raises:
      ValueError: if the trees are not alike, or several have a leaf at one place.

    Example:
      >>> combine({"kernel": 1.0, "bias": ()}, {"kernel": (), "bias": 2.0})
      {'bias': 2.0, 'kernel': 1.0}
    """
    if not trees:
        raise ValueError("combine: expects at least one tree, got none.")

    def fill(path, *candidates):
        found = [item for item in candidates if not _is_hole(item)]
        if len(found) > 1:
            where = jax.tree_util.keystr(path) or "the root"
            mend = "at each place, all trees but one must have a hole, ()"
            got = f"{len(found)} times, {', '.join(map(in_words, found))}"
            raise ValueError(f"combine: {where} is there {got}: {mend}.")
        if found and not jax.tree_util.all_leaves(found):
            raise ValueError(_unlike(trees))
        return found[0] if found else ()

    try:
        return jax.tree_util.tree_map_with_path(fill, *trees, is_leaf=_is_hole)
    except ValueError as error:
        if str(error).startswith("combine: "):
            raise
        raise ValueError(_unlike(trees)) from None


def differences(expected: Any, got: Any, *, rtol: float = 0.0, atol: float = 0.0) -> list[str]:
    """All in which two trees differ, a line each; an empty list if they do not.

    A leaf may be missing or unexpected, and differ in shape, dtype or values. Values are
    compared only where shapes agree and both have some: a ``jax.ShapeDtypeStruct`` has none.
    They differ where ``|expected - got| > atol + rtol * |expected|``; NaN equals NaN, and
    random keys are equal or not. (So not under ``jax.jit``, where arrays have no values yet.)

    Args:
      expected: what is wanted.
      got: what came.
      rtol, atol: how much values may differ.

    Raises:
      ValueError: if a leaf is no array, or a tolerance is negative.

    Example:
      >>> import jax.numpy as jnp
      >>> expected = {"kernel": jnp.ones((4, 3)), "bias": jnp.zeros(3)}
      >>> got = {"kernel": jnp.ones((4, 2)), "bias": jnp.array([0, 0.5, 0])}
      >>> for line in differences(expected, got):
      ...     print(line)
      values: ['bias'] in 1 of 3, by at most 0.5
      shape: ['kernel'] expects float32[4,3], got float32[4,2]
    """
    if not (rtol >= 0 and atol >= 0):  # also refuses NaN
        raise ValueError(f"differences: rtol and atol must be at least 0, got {rtol} and {atol}.")
    left, right = arrays("differences", expected), arrays("differences", got)
    lines = strangers(left, right)
    for path in left:
        if path in right:
            lines += mismatch(path, left[path], right[path])
            if difference := _values(left[path], right[path], rtol, atol):
                lines.append(f"values: {place(path)} {difference}")
    structures = jax.tree.structure(expected), jax.tree.structure(got)
    if left.keys() == right.keys() and structures[0] != structures[1]:
        lines.append("containers: expects {}, got {}".format(*structures))
    return lines


class Leaf(NamedTuple):
    """One leaf of a tree."""

    path: str
    shape: tuple[int, ...]
    dtype: str
    numbers: int
    bytes: int


class Description(Table):
    """The leaves of a tree, one :class:`Leaf` each; prints as a table, in a notebook as HTML."""

    _row, _caption, _style = Leaf, "Leaves of the tree", "trees-description"

    @property
    def numbers(self) -> int:
        """How many numbers the tree holds."""
        return sum(row.numbers for row in self.rows)


def describe(tree: Any) -> Description:
    """Tabulate the leaves of a tree: path, shape, dtype, how many numbers and bytes, and totals.

    Raises:
      ValueError: if a leaf is no array.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, trees
      >>> model = nn.Series(nn.Linear(3), nn.Bias())
      >>> x = jax.ShapeDtypeStruct((1, 4), jnp.bfloat16)
      >>> trees.describe(jax.eval_shape(model.init, jax.random.key(0), x)[0])
      path           shape   dtype     numbers  bytes
      -----------------------------------------------
      [0]['kernel']  (4, 3)  bfloat16       12     24
      [1]['bias']    (3,)    bfloat16        3      6
      -----------------------------------------------
      total                                 15     30
    """
    leaves = arrays("describe", tree).items()
    rows = (Leaf(path, x.shape, str(x.dtype), math.prod(x.shape), _bytes(x)) for path, x in leaves)
    return Description(tuple(rows))


def arrays(name: str, tree: Any) -> dict[str, Any]:
    """The leaves by path.

    Raises:
      ValueError: in the name of ``name``, if a leaf is no array or outline of one, or the tree holds a layer.
    """
    refuse_layers(name, tree)
    leaves = dict(zip(*flatten(tree)[:2]))
    for path, leaf in leaves.items():
        if not is_array(leaf):
            got = f"got {in_words(leaf)}: use jnp.asarray(…)"
            raise ValueError(f"{name}: {place(path)} expects an array, {got}.")
    return leaves


def place(path: str) -> str:
    """A path for an error; that of a tree which is a leaf itself is empty."""
    return path or "the root"


def strangers(expected: dict[str, Any], got: dict[str, Any]) -> list[str]:
    """Which leaves are in one of two dicts by path only, a line each."""
    lines = [f"missing: {place(path)}, {in_words(expected[path])}" for path in expected if path not in got]
    return lines + [f"unexpected: {place(p)}, {in_words(got[p])}" for p in got if p not in expected]


def mismatch(path: str, expected: Any, got: Any, came: str = "got") -> list[str]:
    """A line, if two leaves differ in shape or dtype.

    >>> import jax.numpy as jnp
    >>> mismatch("['bias']", jnp.ones(3), jnp.ones(2))
    ["shape: ['bias'] expects float32[3], got float32[2]"]
    """
    wanted, given = ((tuple(leaf.shape), str(leaf.dtype)) for leaf in (expected, got))
    kinds = " and ".join(kind for kind, w, g in zip(("shape", "dtype"), wanted, given) if w != g)
    return [f"{kinds}: {place(path)} expects {in_words(expected)}, {came} {in_words(got)}"] if kinds else []


def _bytes(leaf):
    return math.prod(leaf.shape) * leaf.dtype.itemsize


def _meant(name, tree, where):
    """For each leaf, whether ``where`` chooses it."""
    refuse_layers(name, tree)
    paths, leaves, structure = flatten(tree)
    if isinstance(where, str) or (callable(where) and not isinstance(where, Layer)):
        return choose(name, where, paths, "leaf")
    answers, answers_structure = jax.tree.flatten(where)
    are_bools = all(isinstance(item, (bool, np.bool_)) for item in answers)
    if answers_structure != structure or not are_bools:
        ways = "a pattern, a function from a path to a bool, or a tree of Python bools like the tree itself"
        raise ValueError(f"{name}: where must be {ways}, got {in_words(where)}.")
    return [bool(item) for item in answers]


def _is_hole(item):
    return type(item) is tuple and not item


def _unlike(trees):
    shown = "\n  ".join(str(jax.tree.structure(tree)) for tree in trees)
    return f"combine: the trees must be alike but for holes, and their structures are\n  {shown}"


def _values(expected, got, rtol, atol):
    """How the values of two leaves differ, if both have some and they can be compared."""
    both = expected, got
    if expected.shape != got.shape or any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in both):
        return ""
    if any(map(is_key, both)):
        same = expected.dtype != got.dtype or np.array_equal(*map(jax.random.key_data, both))
        return "" if same else "differs"
    left, right = _exact(expected), _exact(got)
    with np.errstate(invalid="ignore", over="ignore"):
        same = (left == right) | ((left != left) & (right != right))
        distance = np.where(same, 0, np.abs(left - right))
        # NaN or infinity on one side alone is never near.
        near = (distance < np.inf) & (distance <= atol + rtol * np.abs(left))
    if not (differ := ~same & ~near).any():
        return ""
    largest = float(np.max(distance[differ]))
    return f"in {differ.sum():,} of {differ.size:,}, by at most {largest:.3g}"


def _exact(leaf):
    """The numbers in NumPy, wide enough to subtract."""
    values = np.atleast_1d(np.asarray(leaf))
    if jnp.issubdtype(values.dtype, jnp.complexfloating):
        return values.astype(np.complex128)
    if jnp.issubdtype(values.dtype, jnp.integer):
        return values.astype(object)  # Python's, which neither wrap round nor lose digits
    return values.astype(np.float64)
