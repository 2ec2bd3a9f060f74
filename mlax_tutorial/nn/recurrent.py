"""``Recurrent`` and ``Bidirectional``: a cell, step by step over time."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.arrays import accumulator, canonical, is_array, is_floating, varying_like
from mlax_tutorial.nn.composite import Composite
from mlax_tutorial.nn.errors import describe, located
from mlax_tutorial.nn.hyperparameters import hyperparameter, show
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.rules import Size, Switch, choice


def cell(value) -> Any:
    """A :class:`Cell`, or what is like one."""
    has_methods = all(callable(getattr(value, name, None)) for name in ("init", "init_carry", "step"))
    if isinstance(value, type) or not has_methods:
        raise ValueError("must be a cell, such as nn.LSTMCell(3), with init, init_carry and step")
    return value


class Recurrent(Layer):
    """Read a sequence with a cell: ``(..., time, in) -> (..., time, features)``.

    The cell's state starts at zeros and goes from each step to the next, in a
    ``jax.lax.scan``: program and compile time do not grow with the length. Trainables are
    the cell's own. Training and inference are the same.

    A further input ``lengths``, integers of the batch's shape, says how many steps of each
    sequence are real, where shorter ones are padded at the end. Beyond its length the state
    of a sequence stands still, its outputs are zero, and what the padding holds has no
    influence, not even NaN. A length outside of ``[0, time]`` counts as the nearest one
    inside. ``jax.grad`` of all this is right, too.

    A further input ``initial_state`` is the state to start from: a pytree like what the
    cell's ``init_carry`` makes. With ``return_state``, the output is the pair ``(y, state)``,
    with the state after the last step (each sequence's own, given ``lengths``), from which
    another sequence, or another layer with an equal cell, may go on: a decoder from what its
    encoder has read, say. ``decode`` keeps the state in its cache, instead.

    Args:
      cell: what to do at each step, such as :class:`LSTMCell`, or a :class:`Cell` of your
        own.
      reverse: whether to read from the end, which is each sequence's own if there are
        ``lengths``. The outputs stand where the inputs stood.
      output: ``"sequence"`` for the output of every step, ``"last"`` for that of the step
        which is read last, ``(..., features)``: to classify a sequence, say. It is zero for
        a length of 0.
      unroll: how many steps to put into one round of the loop.
      return_state: whether to return the last state beside the output.

    Raises:
      LayerError: if ``x`` is not floating or has no time axis or no step, if ``lengths``
        are no integers or not of the batch's shape, if a state is of another model, if it
        should decode backwards, and whatever the cell finds wrong, with its place in
        front: ``model[1].cell.LSTMCell: …``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.Recurrent(nn.LSTMCell(3)), jnp.ones((2, 5, 4))
      >>> trainables, _ = layer.init(jax.random.key(0), x)
      >>> y, _ = layer.fwd(x, trainables, (), lengths=jnp.array([5, 2]))
      >>> (y != 0).all(axis=-1).astype(int)
      Array([[1, 1, 1, 1, 1],
             [1, 1, 0, 0, 0]], dtype=int32)

    In two parts, the state carried over by hand:

      >>> whole, _ = layer.fwd(x, trainables, ())
      >>> part = nn.Recurrent(nn.LSTMCell(3), return_state=True)
      >>> (_, state), _ = part.fwd(x[:, :3], trainables, ())
      >>> (y, state), _ = part.fwd(x[:, 3:], trainables, (), initial_state=state)
      >>> bool(jnp.allclose(y, whole[:, 3:], atol=1e-6))
      True

    Reference: Elman, *Finding Structure in Time* (1990).
    """

    cell: Any = hyperparameter(cell)
    reverse: Switch = False
    output: str = hyperparameter(choice("sequence", "last"), default="sequence")
    unroll: Size = 1
    return_state: Switch = False
    decodes = property(lambda self: not (self.reverse or self.return_state))

    def init(self, key, x, *, lengths=None, initial_state=None):
        self.check_init_key(key)
        self._check(x, lengths)
        with located(".cell", self.cell):
            trainables, non_trainables = self.check_pair("init", self.cell.init(key, _step_of(x)))
        if jax.tree.leaves(non_trainables):
            got = f"{describe(non_trainables)} as the second: what is updated belongs to its carry"
            self.refuse(f"the cell's init must return (trainables, ()), got {got}.")
        return trainables, ()

    def fwd(
        self, x, trainables, non_trainables, *, lengths=None, initial_state=None, key=None, inference_mode=False
    ):  # fmt: skip
        x = canonical(x)
        state = self._check(x, lengths, initial_state)
        with located(".cell", self.cell):
            if state is None:
                state = self.cell.init_carry(lax.index_in_dim(x, 0, x.ndim - 2, keepdims=False))
            y, state = _read(self, x, trainables, state, lengths)
        return (y, state) if self.return_state else y, non_trainables

    def decode(self, x, trainables, non_trainables, cache, *, lengths=None, initial_state=None):
        self.check_decodes()
        x, state = canonical(x), cache if initial_state is None else initial_state
        state = self._check(x, lengths, state, "cache" if initial_state is None else "initial_state")
        with located(".cell", self.cell):
            return _read(self, x, trainables, state, lengths)

    def build_cache(self, x, length, **inputs):
        return self.cell.init_carry(_step_of(x))

    def _check(self, x, lengths, state=None, name="initial_state"):
        self.check_floating(x, minimum_ndim=2)
        if x.shape[-2] == 0:
            mend = "leave empty sequences out, or pad them and give lengths"
            self.expects("x", "a step at least on the axis before the last", x, mend)
        if lengths is not None:
            integers = is_array(lengths) and jnp.issubdtype(lengths.dtype, jnp.integer)
            if not integers or lengths.shape != x.shape[:-2]:
                wanted = f"an array of integers, one for each sequence, shape {x.shape[:-2]}"
                mend = "count the steps, for instance with present.sum(axis=-1)"
                self.refuse(f"lengths expect {wanted}, got {describe(lengths)}: {mend}.")
        if state is not None or name == "cache":
            outline, state = jax.eval_shape(self.cell.init_carry, _step_of(x)), canonical(state)
            if jax.tree.structure(state) == jax.tree.structure(outline):
                state = jax.tree.map(functools.partial(_unrounded, x.dtype), state, outline)
            wanted, got = (jax.tree.map(describe, tree) for tree in (outline, state))
            if got != wanted:
                mend = "take what init_cache, or return_state=True, gives for this batch and dtype"
                self.refuse(f"{name} expects {_tree(wanted)} for this x, got {_tree(got)}: {mend}.")
        return state


class Bidirectional(Composite):
    """Read a sequence from both ends: ``(..., time, in) -> (..., time, 2 features)``.

    Two :class:`Recurrent` layers, each with trainables of its own, ``{"forward": …,
    "backward": …}``, and their outputs side by side on the last axis, that of the forward
    one first. ``lengths`` are as for :class:`Recurrent`; ``initial_state``, and the state that
    ``return_state`` asks for, are pairs ``(forward, backward)``. For different cells, or another
    way to join the two, put :class:`Recurrent` layers into a :class:`Parallel`.

    Args:
      cell: of both directions.
      output: ``"sequence"`` for the outputs of every step, ``"last"`` for those of the
        steps that each direction reads last, ``(..., 2 features)``: the last step's of the
        forward one beside the first step's of the backward one.
      unroll, return_state: as for :class:`Recurrent`.

    Raises:
      LayerError: as :class:`Recurrent` does; and it cannot ``decode``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model = nn.Series(nn.Bidirectional(nn.LSTMCell(8), output="last"), nn.Linear(3))
      >>> x, lengths = jnp.ones((2, 5, 4)), jnp.array([5, 2])
      >>> variables = model.init(jax.random.key(0), x, lengths=lengths)
      >>> model.fwd(x, *variables, lengths=lengths)[0].shape
      (2, 3)

    References: Schuster and Paliwal, *Bidirectional Recurrent Neural Networks* (1997);
    Graves and Schmidhuber, *Framewise Phoneme Classification with Bidirectional LSTM*
    (2005).
    """

    cell: Any = hyperparameter(cell)
    output: str = hyperparameter(choice("sequence", "last"), default="sequence")
    unroll: Size = 1
    return_state: Switch = False

    def _children(self):
        one = Recurrent(self.cell, output=self.output, unroll=self.unroll, return_state=self.return_state)
        return {"forward": one, "backward": dataclasses.replace(one, reverse=True)}

    def forward(self, call, x, *, lengths=None, initial_state=None):
        starts = (None, None) if initial_state is None else initial_state
        children = zip((call.forward, call.backward), starts)
        ys = [child(x, lengths=lengths, initial_state=start) for child, start in children]
        if self.return_state:
            ys, states = zip(*ys)
        y = jnp.concatenate(ys, axis=-1)
        return (y, states) if self.return_state else y


@functools.partial(jax.jit, static_argnums=0, inline=True)
def _read(layer, x, trainables, carry, lengths):
    """Return ``(y, carry)``; ``scan`` wants the time in front."""
    cell, time, sequence = layer.cell, x.shape[-2], layer.output == "sequence"
    unroll = min(layer.unroll, time) if isinstance(time, int) else 1  # symbolic, in an export
    lengths = None if lengths is None else lengths.astype(jnp.int32)
    # What does not change in the loop gets its gradient as a sum over the steps, in the
    # dtype that it has out here.
    wide = getattr(cell, "accum_dtype", None) or accumulator(x.dtype)
    trainables = jax.tree.map(lambda leaf: _widen(leaf, wide), trainables)

    def step(carry, each):
        (state, last), (index, x) = carry, each
        if lengths is None:
            state, y = cell.step(state, x, trainables)
        else:
            real = index < lengths
            # The padding is hidden from the cell, too: where() alone would let a NaN of its
            # gradient through. Beyond its length, a sequence's state stands still.
            new, y = cell.step(state, _where(real, x, jnp.zeros_like(x)), trainables)
            state = jax.tree.map(functools.partial(_where, real), new, state)
            y = _where(real, y, jnp.zeros_like(y) if sequence else last)
        return ((state, ()), y) if sequence else ((state, y), ())

    steps, last = (jnp.arange(time, dtype=jnp.int32), jnp.moveaxis(x, -2, 0)), ()
    if not sequence:
        y = jax.eval_shape(cell.step, carry, steps[1][0], trainables)[1]
        last = lax.full_like(x, 0, y.dtype, y.shape)
    carry = varying_like((carry, last), x, trainables, lengths)
    # From the end, the state stands still until a sequence's own last step: reversal within
    # the lengths needs no more.
    (carry, last), ys = lax.scan(step, carry, steps, reverse=layer.reverse, unroll=unroll)
    return jnp.moveaxis(ys, 0, -2) if sequence else last, carry


def _where(real, first, second):
    """Choose by sequence; ``real`` has the batch axes only."""
    real = real.reshape(*real.shape, *(1,) * (first.ndim - real.ndim))
    return jnp.where(real, first, second)


def _unrounded(dtype, leaf, like):
    """What adds up in a wider dtype than the input's, of that of the input, as a policy makes all inputs."""
    return leaf.astype(like.dtype) if is_floating(like) and getattr(leaf, "dtype", None) == dtype else leaf


def _widen(leaf, dtype):
    return leaf.astype(dtype) if is_floating(leaf) and leaf.dtype.itemsize < dtype.itemsize else leaf


def _step_of(x):
    """The shape and dtype of one step of the sequence ``x``."""
    return jax.ShapeDtypeStruct((*x.shape[:-2], x.shape[-1]), x.dtype)


def _tree(shown):
    return shown if isinstance(shown, str) else show(shown).replace("'", "")
