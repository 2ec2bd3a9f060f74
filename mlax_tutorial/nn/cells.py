"""Cells: one step of a recurrent layer. :class:`Recurrent` repeats it over time.

The products with the kernels stand inside the step. To multiply the whole sequence by the
input kernel first, outside of the loop, is one large product instead of many small ones,
and yet slower on a CPU: all gates of all steps go out to memory and back, where those of
one step stay in the cache.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.linear import affine, lecun_normal, multiply
from mlax_tutorial.nn.rules import Dtype, Function, Initializer, Precision, Size

orthogonal = jax.nn.initializers.orthogonal()


class Cell(Layer):
    """Base of cells: what a recurrent layer does at one time, ``(carry, x) -> (carry, y)``.

    A subclass lists its hyperparameters as fields and writes three pure functions:
    ``init``, which makes the trainables that fit one step's input, ``init_carry`` and
    ``step``. :class:`Recurrent` also takes a cell that is no subclass, if it is hashable
    and has these three. A cell has no non-trainables and draws no random numbers.

    Attributes:
      accum_dtype: in which the gradients of the trainables are summed over time; ``None``
        is float32 for half precision, otherwise the input's.

    Example: a leaky average, whose rate is learned.
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> class Leaky(nn.Cell):
      ...     initial: float = 0.5
      ...     def init(self, key, x):
      ...         return {"rate": jnp.full(x.shape[-1:], self.initial, x.dtype)}, ()
      ...     def init_carry(self, x):
      ...         return jax.lax.full_like(x, 0, dtype=jnp.promote_types(x.dtype, jnp.float32))
      ...     def step(self, carry, x, trainables):
      ...         carry = carry + trainables["rate"] * (x - carry)
      ...         return carry, carry.astype(x.dtype)
      >>> layer, x = nn.Recurrent(Leaky()), jnp.ones((3, 1))
      >>> layer.fwd(x, *layer.init(jax.random.key(0), x))[0].tolist()
      [[0.5], [0.75], [0.875]]
    """

    accum_dtype = None

    def init(self, key, x) -> tuple[Any, Any]:
        """Make ``(trainables, ())`` for one step's input, ``(..., in)``."""
        return (), ()

    def init_carry(self, x) -> Any:
        """Make the state before the first step.

        Args:
          x: one step's input, ``(..., in)``, or a ``jax.ShapeDtypeStruct`` of it. Made by
            ``jax.lax.full_like(x, …)``, the state is spread over devices as the input is,
            which ``jax.shard_map`` demands.

        Returns:
          A pytree of arrays, each with the batch axes of ``x`` in front, in the dtype of ``x``;
          in float32 what adds up over many steps, since half precision would lose what is added.
        """
        raise NotImplementedError(f"{type(self).__name__} must define init_carry")

    def step(self, carry, x, trainables) -> tuple[Any, Any]:
        """Read one more input.

        Args:
          carry: the state, as ``init_carry`` or an earlier step made it.
          x: one step's input, ``(..., in)``.
          trainables: the variables, which the step converts to the dtype of ``x``.

        Returns:
          ``(carry, y)``: the new state, of the same shapes and dtypes as the old one, and
          the output.
        """
        raise NotImplementedError(f"{type(self).__name__} must define step")

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        self.refuse("is one step of a loop over time: wrap it in nn.Recurrent(cell).")


class FusedCell(Cell):
    """Base of the cells below. The kernels of all gates are side by side, for one large product.

    Each gate's block is drawn by itself, as if it were alone.
    """

    features: Size
    kernel_initializer: Initializer = lecun_normal
    recurrent_initializer: Initializer = orthogonal
    bias_initializer: Initializer = jax.nn.initializers.zeros
    precision: Precision | None = None
    accum_dtype: Dtype | None = None
    param_dtype: Dtype | None = None

    _biases = ("bias_initializer",)  # one initializer a gate

    def init(self, key, x):
        self.check_init_key(key)
        x = self.check_floating(x, minimum_ndim=1)
        gates, dtype = len(self._biases), self.param_dtype or x.dtype
        keys = jax.random.split(key, 3)

        def draw(key, names, shape):
            named = zip(names, jax.random.split(key, gates))
            return jnp.concatenate([self.initialize(name, key, shape, dtype) for name, key in named], axis=-1)

        kernels = ["kernel_initializer"] * gates, ["recurrent_initializer"] * gates
        return {
            "input_kernel": draw(keys[0], kernels[0], (x.shape[-1], self.features)),
            "recurrent_kernel": draw(keys[1], kernels[1], (self.features, self.features)),
            "bias": draw(keys[2], self._biases, (self.features,)),
        }, ()

    def init_carry(self, x, dtype=None):
        return lax.full_like(x, 0, dtype, (*x.shape[:-1], self.features))

    def _wide(self, x):
        """The dtype of what adds up over time, in gradients and in a state."""
        return self.accum_dtype or accumulator(x.dtype)

    def _project(self, x, hidden, trainables, **further):
        """The products of input and state with their kernels, once all is checked; the first has the bias."""
        self.check_floating(x, minimum_ndim=1)
        wide = len(self._biases) * self.features
        kernels = {"input_kernel": (x.shape[-1], wide), "recurrent_kernel": (self.features, wide)}
        self.check_variables(trainables, kernels | {"bias": (wide,)} | further, x=x)
        projected, recurrent = (
            multiply(each, trainables[kernel], (0,), self.precision, self.accum_dtype)
            for each, kernel in zip((x, hidden), kernels)
        )
        return self._add_bias(projected, trainables["bias"]), recurrent

    def _add_bias(self, x, bias):
        return affine(x, self._wide(x), bias=bias)


class RNNCell(FusedCell):
    r"""The simple cell, whose state is its output: ``(..., in) -> (..., features)``.

    .. math:: h_t = \tanh(x_t W + h_{t-1} U + b)

    The trainables are ``input_kernel`` :math:`W` of shape ``(in, features)``,
    ``recurrent_kernel`` :math:`U` of shape ``(features, features)`` and ``bias``. The carry
    is :math:`h`, zeros at first. An orthogonal :math:`U` neither shrinks nor stretches what
    it carries through time (Saxe et al. 2014).

    Args:
      features: size of the state and of the output.
      kernel_initializer: ``(key, shape, dtype) -> array``, of the input kernel.
      recurrent_initializer: of the recurrent kernel.
      bias_initializer: of the bias.
      precision: of the products, see ``jax.lax.Precision``.
      accum_dtype: dtype of the products before they are rounded to the input's (``None``
        leaves it to XLA), and of the sums over batch and time that make the gradients
        (``None`` is float32 for half precision, otherwise the input's).
      param_dtype: of the trainables; by default the input's. ``step`` converts them to the
        input's dtype.
      activation: what to apply instead of the hyperbolic tangent, for instance
        ``jax.nn.relu``.

    Raises:
      LayerError: if ``x`` is not floating, or the trainables do not fit it.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> cell, x = nn.RNNCell(3), jnp.ones((2, 4))
      >>> trainables, _ = cell.init(jax.random.key(0), x)
      >>> carry, y = cell.step(cell.init_carry(x), x, trainables)
      >>> y.shape, carry is y
      ((2, 3), True)

    References: Elman, *Finding Structure in Time* (1990), with a logistic function; Saxe,
    McClelland and Ganguli, *Exact Solutions to the Nonlinear Dynamics of Learning in Deep
    Linear Neural Networks* (2014), for orthogonal kernels.
    """

    activation: Function = jnp.tanh

    def step(self, carry, x, trainables):
        projected, recurrent = self._project(x, carry, trainables)
        y = self.activation(projected + recurrent)
        return y, y


class GRUCell(FusedCell):
    r"""The gated recurrent unit, whose state is its output: ``(..., in) -> (..., features)``.

    .. math::
        r_t &= \sigma(x_t W_r + h_{t-1} U_r + b_r) \\
        z_t &= \sigma(x_t W_z + h_{t-1} U_z + b_z) \\
        n_t &= \tanh(x_t W_n + b_n + r_t (h_{t-1} U_n + b'_n)) \\
        h_t &= (1 - z_t) n_t + z_t h_{t-1}

    with the logistic function :math:`\sigma`. The reset gate :math:`r` is applied after the
    product with :math:`U_n`, as in cuDNN, PyTorch and Flax, so that one product serves all
    three; Cho et al. apply it before, to :math:`h_{t-1}`.

    The trainables are ``input_kernel`` of shape ``(in, 3 features)``, ``recurrent_kernel``
    of shape ``(features, 3 features)``, ``bias`` of shape ``(3 features,)``, each with the
    gates in the order :math:`r, z, n`, and ``recurrent_bias`` :math:`b'_n` of shape
    ``(features,)``. The carry is :math:`h`, zeros at first, and as exact as the sums, by default
    float32 for half precision: in bfloat16, with :math:`z = 0.99`, it stops a fifth short.

    Args:
      features: size of the state and of the output.
      kernel_initializer: ``(key, shape, dtype) -> array``, of each gate's block of the
        input kernel.
      recurrent_initializer: of each gate's block of the recurrent kernel.
      bias_initializer: of each gate's block of the biases.
      precision, accum_dtype, param_dtype: as for :class:`RNNCell`; ``accum_dtype`` is also that
        of :math:`h` in the carry.
      update_bias_initializer: of the update gate's block, :math:`b_z`; by default
        ``bias_initializer``. Ones make the cell remember at first, as the forget gate of
        :class:`LSTMCell` does.

    Raises:
      LayerError: if ``x`` is not floating, or the trainables do not fit it.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.Recurrent(nn.GRUCell(3)), jnp.ones((2, 5, 4))
      >>> trainables, _ = layer.init(jax.random.key(0), x)
      >>> trainables["input_kernel"].shape, layer.fwd(x, trainables, ())[0].shape
      ((4, 9), (2, 5, 3))

    Reference: Cho et al., *Learning Phrase Representations using RNN Encoder-Decoder for
    Statistical Machine Translation* (2014).
    """

    update_bias_initializer: Initializer | None = None

    @property
    def _biases(self):
        update = "update_bias_initializer" if self.update_bias_initializer else "bias_initializer"
        return "bias_initializer", update, "bias_initializer"

    def init(self, key, x):
        self.check_init_key(key)
        key, bias_key = jax.random.split(key)
        trainables, non_trainables = super().init(key, x)
        shape, dtype = (self.features,), trainables["bias"].dtype
        bias = self.initialize("bias_initializer", bias_key, shape, dtype)
        return trainables | {"recurrent_bias": bias}, non_trainables

    def init_carry(self, x):
        return super().init_carry(x, self._wide(x))

    def step(self, carry, x, trainables):
        sizes = {"recurrent_bias": (self.features,)}
        projected, recurrent = self._project(x, carry.astype(x.dtype), trainables, **sizes)
        border = [2 * self.features]
        gates, candidate = jnp.split(projected, border, axis=-1)
        recurrent_gates, recurrent_candidate = jnp.split(recurrent, border, axis=-1)
        recurrent_candidate = self._add_bias(recurrent_candidate, trainables["recurrent_bias"])
        carry = _gru(gates + recurrent_gates, candidate, recurrent_candidate, carry)
        return carry, carry.astype(x.dtype)


class LSTMCell(FusedCell):
    r"""Long short-term memory with a forget gate: ``(..., in) -> (..., features)``.

    .. math::
        i_t &= \sigma(x_t W_i + h_{t-1} U_i + b_i) \\
        f_t &= \sigma(x_t W_f + h_{t-1} U_f + b_f) \\
        g_t &= \tanh(x_t W_g + h_{t-1} U_g + b_g) \\
        o_t &= \sigma(x_t W_o + h_{t-1} U_o + b_o) \\
        c_t &= f_t c_{t-1} + i_t g_t \\
        h_t &= o_t \tanh(c_t)

    with the logistic function :math:`\sigma`. The trainables are ``input_kernel`` of shape
    ``(in, 4 features)``, ``recurrent_kernel`` of shape ``(features, 4 features)`` and
    ``bias`` of shape ``(4 features,)``, each with the gates in the order :math:`i, f, g,
    o`. The carry is the pair :math:`(h, c)`, zeros at first; the output is :math:`h`. The cell
    :math:`c` is as exact as the sums, by default float32 for half precision: in bfloat16, with
    :math:`f = 0.99`, it stops at two thirds.

    The bias of the forget gate starts at 1, so that at first the cell remembers: at 0 it
    would lose half of its content at every step, and with it the gradient (Gers et al.
    2000; Jozefowicz et al. 2015 found no cheaper gain).

    Args:
      features: size of the output, and of each half of the state.
      kernel_initializer: ``(key, shape, dtype) -> array``, of each gate's block of the
        input kernel.
      recurrent_initializer: of each gate's block of the recurrent kernel.
      bias_initializer: of each gate's block of the bias, but that of the forget gate.
      precision, accum_dtype, param_dtype: as for :class:`RNNCell`; ``accum_dtype`` is also that
        of :math:`c`.
      forget_bias_initializer: of the forget gate's block of the bias.

    Raises:
      LayerError: if ``x`` is not floating, or the trainables do not fit it.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> layer, x = nn.Recurrent(nn.LSTMCell(2)), jnp.ones((2, 5, 4))
      >>> trainables, _ = layer.init(jax.random.key(0), x)
      >>> trainables["bias"].tolist(), layer.fwd(x, trainables, ())[0].shape
      ([0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0], (2, 5, 2))

    References: Hochreiter and Schmidhuber, *Long Short-Term Memory* (1997); Gers,
    Schmidhuber and Cummins, *Learning to Forget* (2000); Jozefowicz, Zaremba and Sutskever,
    *An Empirical Exploration of Recurrent Network Architectures* (2015).
    """

    forget_bias_initializer: Initializer = jax.nn.initializers.ones

    _biases = ("bias_initializer", "forget_bias_initializer", *["bias_initializer"] * 2)

    def init_carry(self, x):
        return super().init_carry(x), super().init_carry(x, self._wide(x))

    def step(self, carry, x, trainables):
        hidden, cell = carry
        projected, recurrent = self._project(x, hidden, trainables)
        hidden, cell = _lstm(projected + recurrent, cell)
        return (hidden, cell), hidden


def _once_more(function):
    """The gates of all steps would be most of what the backward pass keeps. From their sums they are quickly computed once
    more: on a CPU that takes no longer, and little more than half of the memory."""
    return jax.jit(jax.checkpoint(function, prevent_cse=False), inline=True)  # a scan needs no barrier


@_once_more
def _lstm(gates, cell):
    i, f, g, o = jnp.split(gates.astype(cell.dtype), 4, axis=-1)
    cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
    return (jax.nn.sigmoid(o) * jnp.tanh(cell)).astype(gates.dtype), cell


@_once_more
def _gru(gates, candidate, recurrent_candidate, hidden):
    gates, candidate, recurrent_candidate = (
        part.astype(hidden.dtype) for part in (gates, candidate, recurrent_candidate)
    )
    r, z = jnp.split(jax.nn.sigmoid(gates), 2, axis=-1)
    candidate = jnp.tanh(candidate + r * recurrent_candidate)
    return candidate + z * (hidden - candidate)
