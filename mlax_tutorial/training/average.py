"""A slow average of weights and statistics, with which a model is evaluated."""

import functools
from typing import Any

import jax

from mlax_tutorial import meshes, trees
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.optim.tunable import fraction
from mlax_tutorial.training.state import State


def follow(average: tuple[Any, Any], state: State, decay: float = 0.999) -> tuple[Any, Any]:
    """Move a slow average of the weights, and of what the forward pass updates, towards a :class:`State`.

    Running statistics, as of ``BatchNorm``, belong to the weights by which they were gathered, so they are averaged alike; counts
    and keys are those of the state. The average may live anywhere, is saved like any tree, and takes the place of the pair
    ``(trainables, non_trainables)`` in :func:`make_evaluation`. (``optim.ExponentialMovingAverage`` averages the weights alone.)

    Args:
      average: by now, ``(trainables, non_trainables)``. It is donated. Begin with a copy of the state's, in float32, since the
        step donates the state: ``jax.tree.map(jnp.copy, (state.trainables, state.non_trainables))``.
      state: what the step returned.
      decay: how much of the average is kept, in [0, 1]: 0.999 averages over the last 1,000 steps or so. It may differ from step
        to step, for instance ``min(0.999, (1 + n) / (10 + n))``, by which the beginning is soon forgotten.

    Returns:
      The average after this step.

    Raises:
      ValueError: if the trees differ, or the decay is out of range, where it is no array.

    Reference: Polyak and Juditsky, *Acceleration of stochastic approximation by averaging*, SIAM (1992).

    Example:
      >>> import jax.numpy as jnp
      >>> from mlax_tutorial import training
      >>> state = training.State({"bias": jnp.ones(2)}, {"mean": jnp.ones(2)}, ())
      >>> average = {"bias": jnp.zeros(2)}, {"mean": jnp.zeros(2)}
      >>> training.follow(average, state, 0.75)
      ({'bias': Array([0.25, 0.25], dtype=float32)}, {'mean': Array([0.25, 0.25], dtype=float32)})
    """
    if not isinstance(decay, jax.Array):  # to look at one would wait for the device
        decay = checked("follow: decay", fraction, decay)
    return _follow(average, state, decay)


@meshes.door
@functools.partial(jax.jit, donate_argnums=0)
def _follow(average, state, decay):
    return trees.average(average, (state.trainables, state.non_trainables), decay)
