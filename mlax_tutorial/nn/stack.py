"""``Stack`` and ``Remat``: deep models in little code and little memory."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.nn.composite import Container, apply
from mlax_tutorial.nn.errors import describe, located
from mlax_tutorial.nn.kinds import Function, Size
from mlax_tutorial.nn.layer import abstract
from mlax_tutorial.nn.numeric import varying_like
from mlax_tutorial.nn.series import Child


class Wrapper(Container):
    """Base of layers that hold one other."""

    _place = ""
    _flat = property(lambda self: {self._place: self.layer})

    def _repeatable(self, key, inference_mode, *shape):
        """The bits of new keys, and for ``_key`` their kind. What is recomputed draws the same numbers once more, on
        purpose; JAX's check would take that for a reused key. It does see that ``key`` itself is used once."""
        if key is None or not self.needs_key or (inference_mode and self.needs_key != "always"):
            return None, None
        self.check_key(key)
        keys = jax.random.split(key, shape) if shape else key
        if not shape:
            jax.random.split(key)  # for JAX's check alone, which does not see that its bits are used
        return jax.random.key_data(keys), jax.random.key_impl(key)


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
            return apply(self.layer, "", "fwd", x, trainables, non_trainables, **options)

        return jax.checkpoint(fwd, policy=self.policy)(x, trainables, non_trainables, bits, inputs)

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        return self.layer.decode(x, trainables, non_trainables, cache, **inputs)

    def _outline(self, records, path, key, x, **inputs):
        return self.layer._outline(records, path, key, x, **inputs)

    def _build(self, records, path, key):
        return self.layer._build(records, path, key)

    def _build_cache(self, records, path, length):
        return self.layer._build_cache(records, path, length)


class Stack(Wrapper):
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
    _place = "[…]"

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        self._check_depth(trainables=trainables, non_trainables=non_trainables)
        self.check_inference_mode(inference_mode)
        bits, kind = self._repeatable(key, inference_mode, self.depth)
        return _repeat(self, bool(inference_mode), kind, x, (trainables, non_trainables, bits), inputs)

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        self._check_depth(trainables=trainables, non_trainables=non_trainables, cache=cache)
        return _repeat_decode(self, x, (trainables, non_trainables, cache), inputs)

    def _outline(self, records, path, key, x, **inputs):
        with located("[…]", self.layer):
            y, *variables = self.layer._outline(records, path + "[…]", key, x, **inputs)
        self._check_output(x, y)
        return y, *jax.eval_shape(functools.partial(jax.tree.map, self._repeated), variables)

    def _build(self, records, path, key):
        keys = jax.random.split(key, self.depth)
        return jax.vmap(lambda key: self.layer._build(records, path + "[…]", key))(keys)

    def _build_cache(self, records, path, length):
        with located("[…]", self.layer):
            cache = self.layer._build_cache(records, path + "[…]", length)
        return jax.tree.map(self._repeated, cache)

    def _repeated(self, leaf):
        return jnp.broadcast_to(leaf, (self.depth, *leaf.shape))

    def _check_depth(self, **trees):
        for path, leaf in jax.tree_util.tree_leaves_with_path(trees):
            if getattr(leaf, "shape", ())[:1] != (self.depth,):
                where = path[0].key + jax.tree_util.keystr(path[1:])
                wanted = f"a leading axis of size depth={self.depth}"
                self.expects(where, wanted, leaf, "pass what this model's own init made")

    def _check_output(self, x, y):
        if jax.tree.map(abstract, x) != jax.tree.map(abstract, y):
            got = f"got {describe(x)} and gave {describe(y)}: its output is the next one's input"
            self.refuse(f"the block must keep shape and dtype, {got}.")


def _key(bits, kind):
    return None if bits is None else jax.random.wrap_key_data(bits, impl=kind)


# Functions of their own, as in linear.py. Without them, a scan outside of jit would be compiled at every call.


@functools.partial(jax.jit, static_argnums=(0, 1, 2), inline=True)
def _repeat(stack, inference_mode, kind, x, every, inputs):
    def block(x, each):
        *variables, bits = each
        with located("[…]", stack.layer):
            options = {"key": _key(bits, kind), "inference_mode": inference_mode, **inputs}
            y, non_trainables = apply(stack.layer, "[…]", "fwd", x, *variables, **options)
        stack._check_output(x, y)
        return y, non_trainables

    x = varying_like(x, every, inputs)
    if stack.remat is not None:  # a scan's body needs no barrier against common subexpressions
        block = jax.checkpoint(block, policy=stack.remat, prevent_cse=False)
    return jax.lax.scan(block, x, every, length=stack.depth, unroll=min(stack.unroll, stack.depth))


@functools.partial(jax.jit, static_argnums=0, inline=True)
def _repeat_decode(stack, x, every, inputs):
    def block(x, each):
        with located("[…]", stack.layer):
            return stack.layer.decode(x, *each, **inputs)

    x = varying_like(x, every, inputs)
    return jax.lax.scan(block, x, every, length=stack.depth)
