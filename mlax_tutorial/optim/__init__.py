"""Optimizers. The contract, stated once:

An optimizer is a pytree: its numbers (a learning rate, say) are leaves, so they may change from step to step
without a new trace; its switches are static. It is two pure functions::

    state = optimizer.init(trainables)
    updates, state = optimizer.step(gradients, state, trainables)
    trainables = optim.apply_updates(trainables, updates)

* ``updates`` are *added* to the trainables, as in Optax, and have their structure.
* Each field of the state that holds one array a weight has the structure, and by default the dtype, of the
  trainables: whoever shards the weights can shard the state in the same way.
* Arithmetic on half-precision weights is done in float32 and rounded once.
"""

from mlax_tutorial.optim.optimizer import Optimizer, OptimizerError
from mlax_tutorial.optim.sgd import SGD, SGDState
from mlax_tutorial.optim.updates import apply_updates

__all__ = ["SGD", "Optimizer", "OptimizerError", "SGDState", "apply_updates"]
