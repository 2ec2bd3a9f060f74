"""What a row of the law table holds."""

import dataclasses

from mlax_tutorial import nn

# What the gradient of a bias may do in float32: its sum over the batch.
BIAS_SUM = frozenset({"convert_element_type", "broadcast_in_dim", "reduce_sum"})


@dataclasses.dataclass(frozen=True)
class LayerRow:
    """A layer with an example input, and how it departs from the plain laws.

    Attributes:
      layer: the layer.
      shape: of one example, without batch axes.
      draws: it draws random numbers in training, so batched laws need a key for each example.
      accumulates: primitives that may hold float32 for a half-precision input (a documented ``accum_dtype``).
      unlike: layers that must not equal it.
      same: makes an equal layer by other means.
    """

    layer: nn.Layer
    shape: tuple[int, ...]
    draws: bool = False
    accumulates: frozenset[str] = frozenset()
    unlike: tuple[nn.Layer, ...] = ()
    same: nn.Layer | None = None

    @property
    def id(self):
        return repr(self.layer)
