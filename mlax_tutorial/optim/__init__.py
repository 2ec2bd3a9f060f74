"""Optimizers. The contract, stated once:

An optimizer is a pytree: its numbers (a learning rate, say) are leaves, so they may change from step to step
without a new trace; its switches are static. It is two pure functions::

    state = optimizer.init(trainables)
    updates, state = optimizer.step(gradients, state, trainables)
    trainables = optim.apply_updates(trainables, updates)

* ``updates`` are *added* to the trainables, as in Optax, and have their structure.
* Each field of the state that holds one array a weight has the structure of the trainables: whoever shards
  the weights can shard the state in the same way. What accumulates (velocities, moments, sums, averages of weights) is at least
  float32, unless an option such as ``first_moment_dtype`` says otherwise.
* Arithmetic on half-precision weights is done in float32 and rounded once.
* A *schedule* may stand for a learning rate or a weight decay, ours or Optax': a function of the number of steps done, which the state counts.
* Options are given by name: ``AdamW(1e-3, weight_decay=0.1)``.
* A *transformation* changes gradients on their way to an optimizer, ``Chain(ClipByGlobalNorm(1.0), Adam(1e-3))``, or its updates,
  ``Chain(AdamW(1.0), ScaleByTrustRatio(), Scale(1e-3))``.
* Weights are chosen by path, as ``jax.tree_util.keystr`` writes it: by a pattern, ``where="*['embed']"``, or by a function,
  ``where=lambda path: "bias" not in path``. ``where=optim.kernels`` chooses all that enter products, as should decay.
"""

from mlax_tutorial.optim import descent, optimizer, schedules, transformations, tunable, where, wrappers
from mlax_tutorial.optim.descent import *
from mlax_tutorial.optim.optimizer import *
from mlax_tutorial.optim.schedules import *
from mlax_tutorial.optim.transformations import *
from mlax_tutorial.optim.tunable import *
from mlax_tutorial.optim.where import *
from mlax_tutorial.optim.wrappers import *

__all__ = descent.__all__ + optimizer.__all__ + schedules.__all__
__all__ += transformations.__all__ + tunable.__all__ + where.__all__ + wrappers.__all__
