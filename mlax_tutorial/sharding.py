"""Where arrays live on a mesh of devices: weights by rules, an optimizer's state beside them.

A *rule* is a pattern of paths and a ``PartitionSpec``; the first whose pattern fits a
weight's path places it. Fully sharded data parallelism (FSDP) over ``"data"`` with tensor
parallelism over ``"model"``, on eight devices::

    mesh = jax.make_mesh((4, 2), ("data", "model"))
    rules = [
        ("*['embed']", P("model", "data")),
        ("*['out_kernel']", P(..., "model", None, "data")),  # (depth, heads, head_dim, features)
        ("*['widen']['kernel']", P(..., "data", "model")),
        ("*['narrow']['kernel']", P(..., "model", "data")),
    ]
    trainables, non_trainables, state = sharding.init(model, optimizer, key, x, mesh, rules)

* Paths are as ``jax.tree_util.keystr`` writes them: ``['blocks'][1]['kernel']``. In a
  pattern, ``*`` stands for anything and all else for itself, but a ``*`` before an index must not reach
  layers of different kinds: ``*[4]['kernel']`` for that of an MLP might also be that of the
  head. A function from a path to ``bool`` is a pattern, too.
* A spec names, axis by axis, which axes of the mesh share it. ``...`` stands for as many
  axes as are left, as in an index: ``P(..., "data", "model")`` is for a kernel ``(in,
  out)`` and for those of a ``nn.Stack``, ``(depth, in, out)``. ``P("stage", ...)`` shares
  out the depth itself.
* What remains is plain JAX: ``jax.jit`` of the usual step sees where its arguments live and
  divides the work. Name the places of its outputs, too; XLA might choose others for them::

    places = jax.tree.map(lambda leaf: leaf.sharding, (trainables, non_trainables, state))
    step = training.make_step(model, loss, shardings=places)

* The types of the mesh's axes do not matter. What is made here lives on the mesh with Auto axes, over which XLA divides the work,
  as layers need it. Explicit axes, which ``jax.make_mesh`` gives in JAX 0.12 unless told otherwise, make each product say where its
  result lives, and JAX refuses (tried: 0.7.2 and 0.12) to compute with arrays of both kinds in one program. ``training`` moves
  what you put on an Explicit mesh, also through ``jax.set_mesh``, to its Auto twin, which copies nothing. In a function that
  you compile yourself, put the data where the weights are: ``NamedSharding(sharding.auto(mesh), P("data"))``.

References: Rajbhandari et al., *ZeRO: Memory Optimizations Toward Training Trillion Parameter
Models*, SC (2020); Shoeybi et al., *Megatron-LM: Training Multi-Billion Parameter Language Models
Using Model Parallelism* (2019); Xu et al., *GSPMD: General and Scalable Parallelization for ML
Computation Graphs* (2021), by which XLA divides the work.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, Mesh, NamedSharding, PartitionSpec

from mlax_tutorial.agreement import check_agreement  # noqa: F401
from mlax_tutorial.meshes import accept, auto, over_auto
from mlax_tutorial.nn import Layer
from mlax_tutorial.nn.arrays import is_array
from mlax_tutorial.nn.hyperparameters import show
from mlax_tutorial.nn.layer import check_layer
from mlax_tutorial.nn.paths import ambiguous, fits, flatten, refuse_layers, some
from mlax_tutorial.training.step import check_optimizer

Rule = tuple[str | Callable[[str], bool], PartitionSpec]


def shardings(tree: Any, mesh: Mesh, rules: Sequence[Rule], *, strict: bool = False) -> Any:
    """Find the sharding of each weight: that of the first rule whose pattern fits its path.

    Args:
      tree: the trainables, arrays or ``jax.ShapeDtypeStruct``.
      mesh: the devices, with named axes.
      rules: pairs of a pattern and a ``PartitionSpec``, as above.
      strict: refuse weights that no rule fits; otherwise each device holds all of them.

    Returns:
      A tree of ``NamedSharding``, for ``jax.device_put`` or the ``in_shardings`` and
      ``out_shardings`` of ``jax.jit``.

    Raises:
      ValueError: with everything that is wrong: a rule that fits no weight, or layers of different kinds, or is none; a
        spec that is too long for a weight, names an axis that the mesh lacks, or twice, or
        one that does not divide the size; a pattern such as ``*[4]['kernel']`` that places
        weights of different kinds of layers, since what stands fifth is seldom alike.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from jax.sharding import PartitionSpec as P
      >>> from mlax_tutorial import nn, sharding
      >>> mesh = jax.make_mesh((1, 1), ("data", "model"))
      >>> model = nn.Series(nn.Linear(4), nn.Bias())
      >>> trainables, _ = model.init(jax.random.key(0), jnp.ones((8, 2)))
      >>> rules = [("*['kernel']", P(..., "data", "model"))]
      >>> found = sharding.shardings(trainables, mesh, rules)
      >>> tuple(found[0]["kernel"].spec), tuple(found[1]["bias"].spec)
      (('data', 'model'), ())
    """
    mesh = _checked_mesh("shardings", mesh)
    refuse_layers("shardings", tree)
    paths, leaves, structure = flatten(tree)
    rules, problems = _read(rules), []
    found, unused, taken = [], dict.fromkeys(range(len(rules))), {}
    for path, leaf in zip(paths, leaves):
        if not hasattr(leaf, "shape"):
            problems.append(f"{path} expects an array or its ShapeDtypeStruct, got {type(leaf).__name__}.")
            continue
        fitting = [i for i, (pattern, _) in enumerate(rules) if fits(pattern, path)]
        for i in fitting:
            unused.pop(i, None)
        spec = ()
        if fitting:
            taken.setdefault(fitting[0], []).append(path)
            spec = _expand(rules[fitting[0]][1], leaf.ndim)
            where = f"{path} of shape {leaf.shape}, rules[{fitting[0]}]"
            problems += [f"{where}: {text}" for text in _mistakes(spec, leaf.shape, mesh)]
        elif strict:
            mend = "write one, such as ('*', PartitionSpec()) at the end, or leave out strict=True"
            problems.append(f"{path} of shape {leaf.shape} fits no rule: {mend}.")
        found.append(None if problems else NamedSharding(mesh, PartitionSpec(*spec)))
    if paths:  # a model without weights may have any rules
        for i in unused:
            mend = f"their paths are {some(paths)}; mend the pattern, or leave the rule out"
            problems.append(f"rules[{i}], {show(rules[i][0])}, fits no weight: {mend}.")
    for i, theirs in taken.items():
        if mistake := ambiguous(rules[i][0], theirs):
            problems.append(f"rules[{i}], {show(rules[i][0])}, {mistake}.")
    if problems:
        raise ValueError("\n  ".join(["shardings: the rules do not fit:", *problems]))
    return jax.tree.unflatten(structure, found)


def mirror(state: Any, trainables: Any, mesh: Mesh, shardings: Any) -> Any:
    """Find the sharding of an optimizer's state: each moment lives where its weight lives.

    It goes by structure, so it serves all of ``mlax_tutorial.optim`` and Optax, however
    they are wrapped: a part of the state that is built like the trainables, with nothing in
    place of weights that are frozen or masked, holds one array a weight. One of another
    shape than its weight, and all else, such as counts, is on each device.

    Args:
      state: from ``optimizer.init``, arrays or ``jax.ShapeDtypeStruct``.
      trainables: the weights, likewise.
      mesh: the devices, for what has no weight.
      shardings: of the trainables, from :func:`shardings`.

    Returns:
      A tree of ``NamedSharding`` with the structure of the state.

    Raises:
      ValueError: if ``shardings`` has not the structure of ``trainables``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from jax.sharding import PartitionSpec as P
      >>> from mlax_tutorial import optim, sharding
      >>> mesh = jax.make_mesh((1,), ("data",))
      >>> weights = {"kernel": jnp.ones((4, 2))}
      >>> found = sharding.shardings(weights, mesh, [("*", P("data"))])
      >>> state = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.Adam(1e-3)).init(weights)
      >>> found = sharding.mirror(state, weights, mesh, found).inner[1]
      >>> tuple(found.second_moment["kernel"].spec), tuple(found.count.spec)
      (('data',), ())
    """
    mesh = _checked_mesh("mirror", mesh)
    refuse_layers("mirror: trainables", trainables)
    weights, structure = jax.tree.flatten(trainables)
    places, other = jax.tree.flatten(shardings)
    if structure != other or not all(isinstance(place, jax.sharding.Sharding) for place in places):
        wanted = f"one sharding a weight, in the structure of the trainables, {structure}"
        mend = "make them with sharding.shardings(trainables, mesh, rules)"
        raise ValueError(f"mirror: shardings expects {wanted}, got {other}: {mend}.")
    everywhere = NamedSharding(mesh, PartitionSpec())

    def beside(part, weight, its):
        if not _is_leaf(part):
            return part  # nothing, in place of a frozen weight
        return its if jnp.shape(part) == weight.shape else everywhere

    def place(node):
        parts = _like(structure, node)
        if parts is not None:
            return jax.tree.unflatten(structure, map(beside, parts, weights, places))
        if _is_leaf(node):
            return everywhere
        return jax.tree.map(place, node, is_leaf=lambda child: child is not node)  # one level down

    return place(state)


@over_auto()
def init(
    model: Layer, optimizer: Any, key: jax.Array, x: Any, mesh: Mesh, rules: Sequence[Rule], *,
    strict: bool = False, non_trainables_rules: Sequence[Rule] = (), **inputs: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Make the variables of a model and the state of its optimizer, each array where it is to live.

    They are computed under ``jax.jit`` with ``out_shardings``, so that no device and no
    host ever holds a whole array that is to be shared out. The numbers are those of
    ``model.init``, whatever the mesh.

    Args:
      model: any layer.
      optimizer: one of ``mlax_tutorial.optim`` or of Optax.
      key: a typed key.
      x, **inputs: as for ``model.init``: arrays or ``jax.ShapeDtypeStruct``; only shapes
        and dtypes matter.
      mesh: the devices, with named axes. In several processes, all call this alike.
      rules, strict: as for :func:`shardings`.
      non_trainables_rules: likewise, for what the forward pass updates: the running statistics of channels that are shared
        out, say. By default it is on each device.

    Returns:
      ``(trainables, non_trainables, state)``.

    Raises:
      ValueError: as :func:`shardings`.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from jax.sharding import PartitionSpec as P
      >>> from mlax_tutorial import nn, optim, sharding
      >>> mesh = jax.make_mesh((1,), ("data",))
      >>> rules = [("*['kernel']", P("data"))]
      >>> x = jax.ShapeDtypeStruct((8, 2), jnp.float32)
      >>> model, optimizer, key = nn.Linear(4), optim.Adam(1e-3), jax.random.key(0)
      >>> trainables, _, state = sharding.init(model, optimizer, key, x, mesh, rules)
      >>> state.first_moment["kernel"].sharding == trainables["kernel"].sharding
      True
    """
    build, found = _plan(
        "init", model, optimizer, key, x, mesh, (rules, strict, non_trainables_rules), inputs
    )
    return jax.jit(build, out_shardings=jax.tree.map(lambda leaf: leaf.sharding, found))(accept(key))


@over_auto()
def abstract(
    model: Layer, optimizer: Any, key: jax.Array, x: Any, mesh: Mesh, rules: Sequence[Rule], *,
    strict: bool = False, non_trainables_rules: Sequence[Rule] = (), **inputs: Any,
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Describe what :func:`init` would make: the target into which a checkpoint is restored.

    Args:
      model, optimizer, key, x, mesh, rules, strict, non_trainables_rules, **inputs: as for :func:`init`.

    Returns:
      ``(trainables, non_trainables, state)`` of ``jax.ShapeDtypeStruct`` with their
      shardings.

    Raises:
      ValueError: as :func:`shardings`.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from jax.sharding import PartitionSpec as P
      >>> from mlax_tutorial import nn, optim, sharding
      >>> mesh = jax.make_mesh((1,), ("data",))
      >>> model, optimizer, key = nn.Linear(4), optim.SGD(0.1), jax.random.key(0)
      >>> x, rules = jnp.ones((8, 2)), [("*", P("data"))]
      >>> trainables, _, _ = sharding.abstract(model, optimizer, key, x, mesh, rules)
      >>> kernel = trainables["kernel"]
      >>> kernel.shape, tuple(kernel.sharding.spec)
      ((2, 4), ('data',))
    """
    return _plan("abstract", model, optimizer, key, x, mesh, (rules, strict, non_trainables_rules), inputs)[1]


def _plan(name, model, optimizer, key, x, mesh, rules, inputs):
    """The function that makes the variables, and what it will return, with shardings."""
    mesh = _checked_mesh(name, mesh)
    check_layer(name, model)
    check_optimizer(name, optimizer)
    key, optimizer = accept((key, optimizer))
    # Only shapes and dtypes enter the program, so x itself is not sent to the devices.
    x, inputs = jax.tree.map(_outline, (x, inputs))

    def build(key):
        trainables, non_trainables = model.init(key, x, **inputs)
        return trainables, non_trainables, optimizer.init(trainables)

    trainables, non_trainables, state = found = jax.eval_shape(build, key)
    rules, strict, others = rules
    weights = shardings(trainables, mesh, rules, strict=strict)
    others = shardings(non_trainables, mesh, others)
    places = weights, others, mirror(state, trainables, mesh, weights)

    def locate(leaf, place):
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=place)

    return build, jax.tree.map(locate, found, places)


def _read(rules):
    """The rules, each a pair of a pattern and a tuple."""
    if not isinstance(rules, Sequence) or isinstance(rules, str):
        raise ValueError(f"shardings: rules must be a list of pairs (pattern, spec), got {show(rules)}.")
    for i, rule in enumerate(rules):
        if not isinstance(rule, Sequence) or isinstance(rule, str) or len(rule) != 2:
            wanted, got = " must be a pair (pattern, PartitionSpec)", rule
        elif not (isinstance(rule[0], str) or callable(rule[0])):
            wanted, got = ": the pattern must be text (\"*['kernel']\") or a function of a path", rule[0]
        elif not isinstance(rule[1], (PartitionSpec, tuple)) or sum(axes is ... for axes in rule[1]) > 1:
            wanted, got = ": the spec must be a PartitionSpec with at most one '...'", rule[1]
        else:
            continue
        raise ValueError(f"shardings: rules[{i}]{wanted}, got {show(got)}.")
    return [(pattern, tuple(spec)) for pattern, spec in rules]


def _expand(spec, ndim):
    """The spec of an array with ``ndim`` axes: ``...`` becomes ``None`` for each that is left."""
    if ... in spec:
        place = spec.index(...)
        left = ndim - (len(spec) - 1)
        return *spec[:place], *[None] * left, *spec[place + 1 :]
    return spec


def _mistakes(spec, shape, mesh):
    if len(spec) > len(shape):
        mend = "shorten the spec, or write a rule for this path before"
        yield f"the spec {spec} is for {len(spec)} axes, but it has {len(shape)}: {mend}."
        return
    sizes, used = dict(mesh.shape), set()
    for i, axes in enumerate(spec):
        axes = () if axes is None else tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        unknown = [axis for axis in axes if axis not in sizes]
        if unknown:
            yield f"the mesh has no axis {unknown[0]!r}: its axes are {sizes}."
            continue
        for axis in axes:
            if axis in used:
                yield f"the mesh axis {axis!r} is named twice: it can share out one axis only."
            used.add(axis)
        parts = math.prod(sizes[axis] for axis in axes)
        if shape[i] % parts:
            got = f"{parts} devices, the size of {' x '.join(map(repr, axes))} in the mesh"
            mend = "choose another axis or size, or None there"
            yield f"axis {i} of size {shape[i]} cannot be shared out evenly over {got}: {mend}."


def _like(structure, node):
    """What the node holds in place of each weight, if it is built like the trainables."""
    try:
        parts = structure.flatten_up_to(node)
    except ValueError:
        return None
    holds = [_is_leaf(part) for part in parts]
    built = all(leaf or not jax.tree.leaves(part) for leaf, part in zip(holds, parts))
    return parts if any(holds) and built else None


def _is_leaf(node):
    return jax.tree_util.all_leaves([node])


def _outline(leaf):
    # Of what is no array, model.init says what is wrong with it.
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) if is_array(leaf) else leaf


def _checked_mesh(name, mesh):
    """The mesh with Auto axes."""
    if not isinstance(mesh, (Mesh, AbstractMesh)):
        wanted = "a jax.sharding.Mesh, as from jax.make_mesh"
        raise ValueError(f"{name}: mesh must be {wanted}, got {show(mesh)}.")
    return auto(mesh)
