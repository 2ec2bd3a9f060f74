"""Optimizers. The contract, stated once:

An optimizer is a pytree: its numbers (a learning rate, say) are leaves, so they may change from step to step
without a new trace; its switches are static. It is two pure functions::

    state = optimizer.init(trainables)
    updates, state = optimizer.step(gradients, state, trainables)
    trainables = optim.apply_updates(trainables, updates)

* ``updates`` are *added* to the trainables, as in Optax, and have their structure.
* Each field of the state that holds one array a weight has the structure of the trainables: whoever shards
  the weights can shard the state in the same way. First moments have the dtype of the weights; second moments, sums
  and averages of weights are at least float32.
* Arithmetic on half-precision weights is done in float32 and rounded once.
* A *schedule* may stand for a learning rate, ours or Optax': a function of the number of steps done, which the state counts.
* A *transformation* changes gradients on their way to an optimizer: ``Chain(ClipByGlobalNorm(1.0), Adam(1e-3))``.
* Weights are chosen by path, as ``jax.tree_util.keystr`` writes it: by a pattern, ``where="*['embed']"``, or by a function,
  ``where=lambda path: "bias" not in path``. ``where=optim.kernels`` chooses all that enter products, as should decay.
"""

from mlax_tutorial.optim.adaptive import Adagrad, AdagradState, Adam, AdamState, AdamW, RMSProp, RMSPropState
from mlax_tutorial.optim.optimizer import Optimizer, Transformation, apply_updates
from mlax_tutorial.optim.packed import Packed, PackedState
from mlax_tutorial.optim.paths import kernels
from mlax_tutorial.optim.schedules import (
    Constant,
    CosineDecay,
    Function,
    LinearDecay,
    Schedule,
    StepDecay,
    WarmUp,
)
from mlax_tutorial.optim.sgd import SGD, Lion, LionState, SGDState
from mlax_tutorial.optim.transformations import Chain, ChainState, ClipByGlobalNorm, ClipByValue, WeightDecay
from mlax_tutorial.optim.tunable import OptimizerError
from mlax_tutorial.optim.wrappers import (
    Accumulate,
    AccumulateState,
    ExponentialMovingAverage,
    ExponentialMovingAverageState,
    Freeze,
    FreezeState,
    Groups,
    GroupsState,
    MasterWeights,
    MasterWeightsState,
)

__all__ = [
    "SGD", "Accumulate", "AccumulateState", "Adagrad", "AdagradState", "Adam", "AdamState", "AdamW", "Chain", "ChainState",
    "ClipByGlobalNorm", "ClipByValue", "Constant", "CosineDecay", "ExponentialMovingAverage",
    "ExponentialMovingAverageState", "Freeze", "FreezeState", "Function", "Groups", "GroupsState", "LinearDecay", "Lion", "LionState", "MasterWeights",
    "MasterWeightsState", "Optimizer", "OptimizerError", "Packed", "PackedState", "RMSProp", "RMSPropState", "SGDState",
    "Schedule", "StepDecay", "Transformation", "WarmUp", "WeightDecay", "apply_updates", "kernels",
]  # fmt: skip
