"""Layers around one layer: in inference, recomputed, side by side, repeated."""

import functools
import types

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.arrays import varying_like
from mlax_tutorial.nn.capture import apply
from mlax_tutorial.nn.composite import Container
from mlax_tutorial.nn.errors import describe, located
from mlax_tutorial.nn.layer import abstract, wants
from mlax_tutorial.nn.refusals import named_leaves
from mlax_tutorial.nn.rules import Axis, Function, Size, Switch
from mlax_tutorial.nn.series import Child


class Wrapper(Container):
    """Base of layers that hold one other, whose variables they share."""

    _place = ""
    _flat = property(lambda self: {self._place: self.layer})
    _enters = True  # whether further entries of the layer are entries of this one

    def __getattr__(self, name):
        """A further entry of the layer: what ``fwd`` does, with the entry in place of the layer's own."""
        if not hasattr(getattr(vars(self).get("layer"), name, None), "is_entry"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if not self._enters:
            why = "each layer in it goes on with the output of the one before"
            mend = f"call {name} of a layer outside of it"
            raise AttributeError(f"{type(self).__name__} has no entry {name!r}, for {why}: {mend}.")
        return types.MethodType(_entry(name), self)

    def with_children(self, function):
        return self._rebuilt(layer=function(self._place, self.layer))

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        return self._apply("decode", x, trainables, non_trainables, cache, **inputs)

    def _apply(self, method, x, *trees, **options):
        """Call the layer; what goes wrong in it has its place in front."""
        with located(self._place, self.layer):
            return apply(self.layer, self._place, method, x, *trees, **options)

    def _outline(self, records, path, key, x, **inputs):
        with located(self._place, self.layer):
            return self.layer._outline(records, path + self._place, key, x, **inputs)

    def _build(self, records, path, key):
        return self.layer._build(records, path + self._place, key)

    def _build_cache(self, records, path, length):
        with located(self._place, self.layer):
            return self.layer._build_cache(records, path + self._place, length)

    def _repeatable(self, key, inference_mode, *shape):
        """The bits of new keys, and for ``_key`` their kind. What is recomputed draws the same numbers once more, on
        purpose; JAX's check would take that for a reused key. It does see that ``key`` itself is used once."""
        if key is None or not wants(self.needs_key, inference_mode):
            return None, None
        self.check_key(key)
        keys = jax.random.split(key, shape) if shape else key
        if not shape:
            jax.random.split(key)  # for JAX's check alone, which does not see that its bits are used
        return jax.random.key_data(keys), jax.random.key_impl(key)


class Entered(Wrapper):
    """A layer whose ``fwd`` is a further entry of the one in it."""

    layer: Child
    name: str

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        options = {"key": key, "inference_mode": inference_mode, **inputs}
        return self._apply(self.name, x, trainables, non_trainables, **options)


@functools.cache  # so that jax.jit knows it again
def _entry(name):
    def method(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        options = {"key": key, "inference_mode": inference_mode, **inputs}
        entered = self._rebuilt(layer=Entered(self.layer, name))
        return entered.fwd(x, trainables, non_trainables, **options)

    method.__name__ = method.__qualname__ = name
    method.is_entry = True
    return method


class Inference(Wrapper):
    """Apply a layer in inference, in training, too: its batch norm uses and keeps its statistics, its dropout loses nothing.

    For a body that is frozen: ``optim.Freeze`` keeps its weights, but its statistics would go on. In the ``forward`` of a
    :class:`Composite`, ``call.teacher(x, inference_mode=True)`` does the same for one call. Shape, variables and errors are the
    layer's.

    Args:
      layer: any layer.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Series(nn.Inference(nn.Dropout(0.5)), nn.Linear(2)), jnp.ones((3, 4))
      >>> variables = model.init(jax.random.key(0), x)
      >>> model.fwd(x, *variables)[0].shape  # needs no key
      (3, 2)
    """

    layer: Child
    decodes = Container.decodes
    needs_key = property(lambda self: self.layer.needs_key == "always" and "always")

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        return self._apply("fwd", x, trainables, non_trainables, key=key, inference_mode=True, **inputs)


class Remat(Wrapper):
    """Compute what a layer did in the forward pass once more in the backward pass, instead of storing it.

    The same variables, outputs and gradients; less memory, more time. Shape, inputs and errors are the layer's.

    Args:
      layer: any layer.
      policy: what may be stored all the same, one of ``jax.checkpoint_policies``; by default nothing.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Remat(nn.Series(nn.Linear(8), nn.F(jnp.sin))), jnp.ones((5, 4))
      >>> trainables, _ = model.init(jax.random.key(0), x)
      >>> str(jax.make_jaxpr(jax.grad(lambda t: model.fwd(x, t, ())[0].sum()))(trainables)).count("sin ")
      1

    Reference: Chen, Xu, Zhang and Guestrin, *Training Deep Nets with Sublinear Memory Cost* (2016).
    """

    layer: Child
    policy: Function | None = None
    decodes = Container.decodes

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        self.check_inference_mode(inference_mode)
        bits, kind = self._repeatable(key, inference_mode)

        def fwd(x, trainables, non_trainables, bits, inputs):
            options = {"key": _key(bits, kind), "inference_mode": inference_mode, **inputs}
            return self._apply("fwd", x, trainables, non_trainables, **options)

        return jax.checkpoint(fwd, policy=self.policy)(x, trainables, non_trainables, bits, inputs)


class Repeated(Wrapper):
    """Base of layers that hold several copies of one, whose variables have one more leading axis."""

    _place = "[…]"
    _size = "count"  # the field that says how many
    size = property(lambda self: getattr(self, self._size))

    def _outline(self, records, path, key, x, **inputs):
        y, *variables = super()._outline(records, path, key, x, **inputs)
        more = self.size
        return y, *jax.tree.map(lambda one: jax.ShapeDtypeStruct((more, *one.shape), one.dtype), variables)

    def _build(self, records, path, key):
        keys = jax.random.split(key, self.size)
        return jax.vmap(lambda key: self.layer._build(records, path + "[…]", key))(keys)

    def _build_cache(self, records, path, length):
        cache = super()._build_cache(records, path, length)
        return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (self.size, *leaf.shape)), cache)

    def _check_sizes(self, axis=0, mend="pass what this model's own init made", **trees):
        where = f"axis {axis}" if axis else "a leading axis"
        for name, leaf in named_leaves(trees):
            if getattr(leaf, "shape", ())[axis:][:1] != (self.size,):
                self.expects(name, f"{where} of size {self._size}={self.size}", leaf, mend)


class Vmap(Repeated):
    """Apply ``count`` copies of a layer side by side, each with variables of its own: experts, ensembles, heads.

    Shape ``(..., count, features) -> (..., count, features)``, the first of ``x`` for the first copy; or, if they share their
    input, ``(..., features) -> (..., count, features)``. The variables are those of one layer with one more leading axis, of size
    ``count``; each copy has a key of its own. Traced and compiled once, by ``jax.vmap``. Further inputs go to every copy.

    Args:
      layer: any layer.
      count: how many copies.
      shared: whether all get the same ``x``.
      axis: where the copies lie in the output, and in ``x``, counted from the end: ``-3`` for sequences ``(..., count, length,
        features)``, which may then ``decode``.

    Raises:
      LayerError: if ``x`` is not shared and its ``axis`` is not of size ``count``, if the variables have another count, or if an
        output of the layer has too few axes for ``axis``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> ensemble, x = nn.Vmap(nn.Series(nn.Linear(3), nn.Bias()), count=4, shared=True), jnp.ones((5, 2))
      >>> variables = ensemble.init(jax.random.key(0), x)
      >>> jax.tree.map(jnp.shape, variables[0]), ensemble.fwd(x, *variables)[0].shape
      (({'kernel': (4, 2, 3)}, {'bias': (4, 3)}), (5, 4, 3))
    """

    layer: Child
    count: Size
    shared: Switch = False
    axis: Axis = -2
    decodes = property(lambda self: self.axis < -2 and self.layer.decodes)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        self._check(x, trainables=trainables, non_trainables=non_trainables)
        keys = None
        if key is not None and wants(self.needs_key, inference_mode):
            self.check_key(key)
            keys = jax.random.split(key, self.count)

        def one(x, trainables, non_trainables, key):
            options = {"key": key, "inference_mode": inference_mode, **inputs}
            y, updated = self._apply("fwd", x, trainables, non_trainables, **options)
            self._check_axes(y)
            return y, updated

        return self._vmap(one, x, trainables, non_trainables, keys)

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        self._check(x, trainables=trainables, non_trainables=non_trainables, cache=cache)
        one = functools.partial(self._apply, "decode", **inputs)
        return self._vmap(one, x, trainables, non_trainables, cache)

    def check_decodes(self):
        if not self.axis < -2:
            why = f"its copies lie on axis {self.axis}, that of the steps"
            self.refuse(f"does not decode, for {why}: say axis=-3.")
        super().check_decodes()

    def _vmap(self, one, *every):
        axes = None if self.shared else self.axis, 0, 0, 0
        return jax.vmap(one, axes, (self.axis, 0), axis_size=self.count)(*every)

    def _outline(self, records, path, key, x, **inputs):
        self._check(x)
        if not self.shared:
            x = jax.tree.map(lambda leaf: jax.lax.index_in_dim(leaf, 0, self.axis, keepdims=False), x)
        y, *variables = super()._outline(records, path, key, x, **inputs)
        self._check_axes(y)
        return jax.tree.map(lambda leaf: jnp.stack([leaf] * self.count, self.axis), y), *variables

    def _check_axes(self, y):
        """Refuse the output of one copy, if it has no room for the axis of the copies."""
        least = -self.axis - 1
        for leaf in jax.tree.leaves(y):
            if jnp.ndim(leaf) < least:
                axes = "1 axis" if least == 1 else f"{least} axes"
                mend = f"let it keep more axes, or say axis={-jnp.ndim(leaf) - 1}"
                self.refuse(
                    f"axis={self.axis} expects outputs of at least {axes}, the layer gave {describe(leaf)}: {mend}."
                )

    def _check(self, x, **trees):
        if not self.shared:
            self._check_sizes(self.axis, "give each copy its own, or say shared=True", x=x)
        self._check_sizes(**trees)


class Stack(Repeated):
    """Apply a layer ``depth`` times, each time with variables of its own; shape ``(…) -> (…)``.

    Like a :class:`Series` of equal layers, but traced and compiled once, as the body of a ``scan``: compile time
    and program size do not grow with the depth. The variables are those of one layer with one more leading axis, of
    size ``depth``.

    Args:
      layer: the block, whose output has the shape and dtype of its input. Further inputs go to every block.
      depth: how many.
      remat: which values of a block may be stored for the backward pass, one of ``jax.checkpoint_policies``
        (``jax.checkpoint_policies.nothing_saveable`` stores only each block's input); by default all are.
      unroll: how many blocks to put into one round of the loop.

    Raises:
      LayerError: if the block changes shape or dtype of its input, or the variables have another depth.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> block = nn.Residual(nn.Series(nn.Linear(4), nn.F(jnp.tanh)))
      >>> model, x = nn.Stack(block, depth=8), jnp.ones((5, 4))
      >>> trainables, _ = model.init(jax.random.key(0), x)
      >>> jax.tree.map(jnp.shape, trainables)
      {'layer': ({'kernel': (8, 4, 4)}, ())}
    """

    layer: Child
    depth: Size
    remat: Function | None = None
    unroll: Size = 1
    decodes = Container.decodes
    _size = "depth"
    _enters = False

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        self._check_sizes(trainables=trainables, non_trainables=non_trainables)
        self.check_inference_mode(inference_mode)
        bits, kind = self._repeatable(key, inference_mode, self.depth)
        return _repeat(self, "fwd", kind, bool(inference_mode), x, (trainables, non_trainables), inputs, bits)

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        self._check_sizes(trainables=trainables, non_trainables=non_trainables, cache=cache)
        return _repeat(self, "decode", None, True, x, (trainables, non_trainables, cache), inputs)

    def _outline(self, records, path, key, x, **inputs):
        y, *variables = super()._outline(records, path, key, x, **inputs)
        self._check_output(x, y)
        return y, *variables

    def _check_output(self, x, y):
        if jax.tree.map(abstract, x) != jax.tree.map(abstract, y):
            got = f"got {describe(x)} and gave {describe(y)}: its output is the next one's input"
            self.refuse(f"the block must keep shape and dtype, {got}.")


def _key(bits, kind):
    return None if bits is None else jax.random.wrap_key_data(bits, impl=kind)


# A function of its own, as in linear.py. Without it, a scan outside of jit would be compiled at every call.


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3), inline=True)
def _repeat(stack, method, kind, inference_mode, x, every, inputs, bits=None):
    def block(x, each):
        trees, bits = each
        options = {"key": _key(bits, kind), "inference_mode": inference_mode} if method == "fwd" else {}
        y, updated = stack._apply(method, x, *trees, **options, **inputs)
        stack._check_output(x, y)
        return y, updated

    x = varying_like(x, every, inputs, bits)
    if stack.remat is not None:  # a scan's body needs no barrier against common subexpressions
        block = jax.checkpoint(block, policy=stack.remat, prevent_cse=False)
    return jax.lax.scan(block, x, (every, bits), length=stack.depth, unroll=min(stack.unroll, stack.depth))
