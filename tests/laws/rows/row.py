"""What a row of the law table holds."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from mlax_tutorial import nn
from mlax_tutorial.checking import laws
from tests.variables import any_variables

# What the gradient of a bias may do in float32: its sum over the batch.
BIAS_SUM = frozenset({"convert_element_type", "broadcast_in_dim", "reduce_sum"})
# What dropout may: its factor, which is rounded once.
DROPOUT = frozenset({"convert_element_type", "mul"})


@dataclasses.dataclass(frozen=True)
class LayerRow:
    """A layer with an example input, and how it departs from the plain laws.

    Attributes:
      layer: the layer.
      shape: of one example, without batch axes.
      draws: it draws random numbers in training, so batched laws need a key for each example.
      accumulates: primitives that may hold float32 for a half-precision input (a documented ``accum_dtype``).
      ids: the input holds integers below this number; the dtype laws then vary ``param_dtype``.
      averages: it mixes the examples of a training batch, so there only ``vmap`` equals a loop; and its non_trainables
        are running averages, held in the dtype of the sums (float32 for a half-precision input).
      of_dtype: makes the layer that works in a dtype throughout, where a policy says so and not the input; the
        output of ``layer`` then has the policy's dtype, whatever comes in.
      unlike: layers that must not equal it.
      same: makes an equal layer by other means.
    """

    layer: nn.Layer
    shape: tuple[int, ...]
    draws: bool = False
    accumulates: frozenset[str] = frozenset()
    ids: int | None = None
    averages: bool = False
    of_dtype: Callable[[Any], nn.Layer] | None = None
    unlike: tuple[nn.Layer, ...] = ()
    same: nn.Layer | None = None

    @property
    def id(self):
        return repr(self.layer)

    @functools.cached_property
    def subject(self) -> laws.LayerSubject:
        """What is held against the laws."""
        return laws.LayerSubject(
            self.layer,
            self.shape,
            draws=self.draws,
            averages=self.averages,
            accumulates=self.accumulates,
            ids=self.ids,
            of_dtype=self.of_dtype,
            unlike=self.unlike,
            same=self.same,
            thorough=True,
            deterministic=self.layer == nn.Dropout(1.0),
        )

    @functools.cached_property
    def arrays(self):
        """Variables for the example, of no particular numbers."""
        return any_variables(self.layer, self.subject.outline())

    def declared(self, dtype) -> nn.Layer:
        """The layer, set to ``dtype`` where its input, being integers, does not, or a policy stands against it."""
        return self.subject.declared(dtype).layer
