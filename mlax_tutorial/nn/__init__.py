"""Layers and the containers that combine them. The contract, stated once:

Three kinds of things never mix.

* *Hyperparameters* (sizes, rates, functions, dtypes) live in the layer: a frozen, hashable dataclass, which
  JAX treats as static.
* *Trainables* are arrays that gradients flow to: a plain pytree, ``{"kernel": …}`` for a layer, a tuple for a
  ``Series``, ``()`` for nothing.
* *Non-trainables* are arrays that the forward pass updates, such as running statistics: a plain pytree, too.

A layer is two pure functions of them::

    trainables, non_trainables = layer.init(key, x)
    y, non_trainables = layer.fwd(x, trainables, non_trainables, key=None, inference_mode=False)

* ``x`` is an array or, for ``init``, a ``jax.ShapeDtypeStruct``. Sizes are inferred from it.
* Each layer says what its trailing axes mean and takes any leading ones: ``Linear: (..., in) -> (..., out)``.
* ``key`` is one typed key, wanted only where the layer draws random numbers in training (``needs_key``).
* ``inference_mode`` is a Python ``bool``.
* What goes in as one dtype is computed and comes out in that dtype, unless a hyperparameter says otherwise.

Whoever knows JAX knows the rest: ``jax.jit``, ``jax.grad``, ``jax.vmap`` and ``jax.tree.map`` need no wrappers.
"""

from mlax_tutorial.nn.call import Call
from mlax_tutorial.nn.capture import capture, notes
from mlax_tutorial.nn.cells import Cell, GRUCell, LSTMCell, RNNCell
from mlax_tutorial.nn.composite import Composite, entry
from mlax_tutorial.nn.conv import Conv, ConvTranspose
from mlax_tutorial.nn.dropout import Dropout
from mlax_tutorial.nn.embed import Embed
from mlax_tutorial.nn.errors import LayerError
from mlax_tutorial.nn.function import F, Flatten
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.linear import Bias, Linear, Scale
from mlax_tutorial.nn.linear_recurrence import linear_recurrence
from mlax_tutorial.nn.modulation import AdaptiveNorm, FiLM, TimeEmbedding
from mlax_tutorial.nn.multi_head_attention import MultiHeadAttention, with_place
from mlax_tutorial.nn.normalization import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from mlax_tutorial.nn.pooling import AvgPool, MaxPool, SumPool, Upsample
from mlax_tutorial.nn.recurrent import Bidirectional, Recurrent
from mlax_tutorial.nn.reparametrized import LoRA, SpectralNorm, WeightNorm, merge_lora
from mlax_tutorial.nn.series import Parallel, Residual, Series
from mlax_tutorial.nn.stack import Inference, Remat, Stack, Vmap
from mlax_tutorial.nn.summary import Summary, summary
from mlax_tutorial.nn.surgery import name_layers, replace
from mlax_tutorial.nn.transformer import TransformerBlock
from mlax_tutorial.nn.weights import Weights

__all__ = [
    "AdaptiveNorm", "AvgPool", "BatchNorm", "Bias", "Bidirectional", "Call", "Cell", "Composite", "Conv", "ConvTranspose",
    "Dropout", "Embed", "F", "FiLM", "Flatten", "GRUCell", "GroupNorm", "Inference", "LSTMCell", "Layer", "LayerError",
    "LayerNorm", "Linear", "LoRA", "MaxPool", "MultiHeadAttention", "Parallel", "RMSNorm", "RNNCell", "Recurrent", "Remat",
    "Residual", "Scale", "Series", "SpectralNorm", "Stack", "SumPool", "Summary", "TimeEmbedding", "TransformerBlock",
    "Upsample", "Vmap", "WeightNorm", "Weights", "capture", "entry", "linear_recurrence",
    "merge_lora", "name_layers", "notes", "replace", "summary", "with_place",
]  # fmt: skip
