"""Rows of the law table: optimizers, and schedules."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from mlax_tutorial import optim, packing
from mlax_tutorial.checking import laws

RATE = 0.1


@dataclasses.dataclass(frozen=True)
class OptimizerRow:
    """An optimizer, and how it departs from the plain laws.

    Attributes:
      make: the optimizer from one of its numbers, usually the learning rate.
      peer: the optimizer of Optax that equals ``make(RATE)``.
      arithmetic: primitives, beyond sums and products, that may hold float32 for half-precision weights.
      frozen: the paths that it leaves out of its state.
      packed: whether its state is of vectors, one for each dtype, not of one array a weight.
    """

    make: Callable[[Any], optim.Optimizer]
    peer: Any
    arithmetic: frozenset[str] = frozenset()
    frozen: Callable[[str], bool] = lambda path: False
    packed: bool = False

    @property
    def optimizer(self):
        return self.make(RATE)

    @property
    def id(self):
        return repr(self.optimizer)

    @functools.cached_property
    def subject(self) -> laws.OptimizerSubject:
        """What is held against the laws."""
        return laws.OptimizerSubject(
            self.make,
            peer=self.peer,
            rate=RATE,
            wide=True,
            arithmetic=self.arithmetic,
            frozen=self.frozen,
            packed=self.packed,
            declared={"first_moment": "float32"} if "float32" in self.id else None,
            thorough=True,
        )


def is_kernel(path):
    return "kernel" in path


def is_bias(path):
    return "bias" in path


def optax_paths(predicate):
    """The mask of Optax for a predicate on paths."""
    return lambda weights: jax.tree_util.tree_map_with_path(
        lambda path, _: predicate(jax.tree_util.keystr(path)), weights
    )


def cosine(count):
    """A plain function of the count: that of ``optax.cosine_decay_schedule(RATE, 30)``."""
    return RATE * 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(count, 30) / 30))


NORM = frozenset({"abs", "reduce_max", "max", "reduce_sum", "select_n"})
ROOT = frozenset({"square", "integer_pow", "sqrt", "div", "broadcast_in_dim"})

BY_THEMSELVES = [
    OptimizerRow(optim.SGD, optax.sgd(RATE)),
    OptimizerRow(lambda rate: optim.SGD(rate, momentum=0.9), optax.sgd(RATE, momentum=0.9)),
    OptimizerRow(
        lambda rate: optim.SGD(rate, momentum=0.9, nesterov=True),
        optax.sgd(RATE, momentum=0.9, nesterov=True),
    ),
    OptimizerRow(
        lambda rate: optim.SGD(optim.WarmUp(optim.CosineDecay(rate, steps=30), steps=5, start=rate)),
        optax.sgd(
            optax.join_schedules([optax.constant_schedule(RATE), optax.cosine_decay_schedule(RATE, 30)], [5])
        ),
    ),
    OptimizerRow(
        lambda rate: optim.SGD(optim.WarmUp(cosine, steps=5, start=rate), momentum=0.5),
        optax.sgd(optax.join_schedules([optax.constant_schedule(RATE), cosine], [5]), momentum=0.5),
    ),
    OptimizerRow(optim.RMSProp, optax.rmsprop(RATE, eps_in_sqrt=False), ROOT),
    OptimizerRow(
        lambda rate: optim.RMSProp(rate, decay=0.95, epsilon=1e-3, momentum=0.8, epsilon_inside=True),
        optax.rmsprop(RATE, decay=0.95, eps=1e-3, momentum=0.8),
        ROOT,
    ),
    OptimizerRow(
        lambda rate: optim.RMSProp(optim.LinearDecay(rate, steps=30)),
        optax.rmsprop(optax.linear_schedule(RATE, 0.0, 30), eps_in_sqrt=False),
        ROOT,
    ),
    OptimizerRow(
        lambda rate: optim.Adagrad(rate, epsilon=1e-3, epsilon_inside=True),
        optax.adagrad(RATE, eps=1e-3),
        ROOT,
    ),
    OptimizerRow(
        lambda rate: optim.Adagrad(optim.StepDecay(rate, every=7, factor=0.5), epsilon_inside=True),
        optax.adagrad(optax.exponential_decay(RATE, 7, 0.5, staircase=True)),
        ROOT,
    ),
    OptimizerRow(optim.Adam, optax.adam(RATE), ROOT),
    OptimizerRow(
        lambda rate: optim.Adam(
            rate, first_decay=0.8, second_decay=0.99, epsilon=1e-3, epsilon_inside=True, nesterov=True
        ),
        optax.adam(RATE, b1=0.8, b2=0.99, eps=0.0, eps_root=1e-3, nesterov=True),
        ROOT,
    ),
    OptimizerRow(
        lambda rate: optim.Adam(
            optim.WarmUp(rate, steps=3, start=0.05), epsilon=1e-2, first_moment_dtype="float32"
        ),
        optax.adam(optax.linear_schedule(0.05, RATE, 3), eps=1e-2),
        ROOT,
    ),
    OptimizerRow(
        lambda rate: optim.AdamW(rate, weight_decay=0.3, where=is_kernel),
        optax.adamw(RATE, weight_decay=0.3, mask=optax_paths(is_kernel)),
        ROOT,
    ),
    OptimizerRow(
        lambda rate: optim.AdamW(rate, nesterov=True),
        optax.nadamw(RATE, weight_decay=0.01),
        ROOT,
    ),
    OptimizerRow(optim.Lion, optax.lion(RATE, weight_decay=0.0), frozenset({"sign"})),
    OptimizerRow(
        lambda rate: optim.Lion(
            optim.CosineDecay(rate, 40), first_decay=0.95, second_decay=0.98, weight_decay=0.1, where=is_bias
        ),
        optax.lion(
            optax.cosine_decay_schedule(RATE, 40), 0.95, 0.98, weight_decay=0.1, mask=optax_paths(is_bias)
        ),
        frozenset({"sign"}),
    ),
]
AROUND_OTHERS = [
    OptimizerRow(
        lambda rate: optim.Chain(
            optim.ClipByGlobalNorm(0.5), optim.WeightDecay(0.1, where=is_kernel), optim.Adam(rate)
        ),
        optax.chain(
            optax.clip_by_global_norm(0.5),
            optax.add_decayed_weights(0.1, optax_paths(is_kernel)),
            optax.adam(RATE),
        ),
        ROOT | NORM,
    ),
    OptimizerRow(
        lambda rate: optim.Chain(
            optim.WeightDecay(0.2), optim.ClipByValue(0.2), optim.SGD(rate, momentum=0.5)
        ),
        optax.chain(optax.add_decayed_weights(0.2), optax.clip(0.2), optax.sgd(RATE, momentum=0.5)),
        frozenset({"clamp", "max", "min"}),
    ),
    OptimizerRow(
        lambda rate: optim.Chain(
            optim.AdamW(1.0, epsilon_inside=True), optim.ScaleByTrustRatio(), optim.Scale(rate)
        ),
        None,
        ROOT | NORM | {"gt", "and", "min"},
    ),
    OptimizerRow(
        lambda rate: optim.Accumulate(optim.Adam(optim.LinearDecay(rate, steps=100)), steps=2),
        optax.MultiSteps(optax.adam(optax.linear_schedule(RATE, 0.0, 100)), 2),
        ROOT | {"select_n"},
    ),
    OptimizerRow(
        lambda rate: optim.ExponentialMovingAverage(optim.SGD(rate), decay=0.9),
        optax.sgd(RATE),
        frozenset({"copy", "copy_p", "select_n"}),
    ),
    OptimizerRow(
        lambda rate: optim.ExponentialMovingAverage(optim.SGD(rate), decay=0.9, bias_correction=True),
        optax.sgd(RATE),
        frozenset({"copy", "copy_p", "expm1", "log1p", "div"}),
    ),
    OptimizerRow(
        lambda rate: optim.ExponentialMovingAverage(optim.SGD(rate), decay=optim.LinearDecay(0.9, steps=9)),
        optax.sgd(RATE),
        frozenset({"copy", "copy_p", "clamp", "max", "min", "div"}),
    ),
    OptimizerRow(
        lambda rate: optim.Groups(
            {is_bias: optim.SGD(rate), optim.kernels: optim.AdamW(rate, weight_decay=0.2)}
        ),
        optax.partition(
            {True: optax.sgd(RATE), False: optax.adamw(RATE, weight_decay=0.2)}, optax_paths(is_bias)
        ),
        ROOT,
        is_bias,
    ),
    OptimizerRow(
        lambda rate: optim.MasterWeights(optim.AdamW(rate)),
        optax.adamw(RATE, weight_decay=0.01),
        ROOT,
    ),
    OptimizerRow(
        lambda rate: optim.Freeze(optim.AdamW(rate, weight_decay=0.2), where=is_bias),
        optax.partition(
            {False: optax.adamw(RATE, weight_decay=0.2), True: optax.set_to_zero()}, optax_paths(is_bias)
        ),
        ROOT,
        is_bias,
    ),
    OptimizerRow(
        lambda rate: packing.Packed(optim.Chain(optim.ClipByGlobalNorm(0.5), optim.AdamW(rate))),
        optax.flatten(optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(RATE, weight_decay=0.01))),
        ROOT | NORM | {"concatenate", "dynamic_slice", "reshape"},
        packed=True,
    ),
]
OPTIMIZERS = [row.optimizer for row in (*BY_THEMSELVES, *AROUND_OTHERS)]

# A schedule and its peer in Optax.
SCHEDULES = [
    (optim.Function(cosine), optax.cosine_decay_schedule(RATE, 30)),
    (optim.LinearDecay(0.3, steps=20), optax.linear_schedule(0.3, 0.0, 20)),
    (optim.LinearDecay(0.1, steps=7, end=0.4), optax.linear_schedule(0.1, 0.4, 7)),
    (optim.CosineDecay(0.3, steps=20), optax.cosine_decay_schedule(0.3, 20)),
    (optim.CosineDecay(0.3, steps=33, end=0.06), optax.cosine_decay_schedule(0.3, 33, alpha=0.2)),
    (
        optim.StepDecay(0.3, every=6, factor=0.5),
        optax.exponential_decay(0.3, 6, 0.5, staircase=True),
    ),
    (
        optim.StepDecay(0.3, every=15),
        optax.piecewise_constant_schedule(0.3, {15: 0.1, 30: 0.1, 45: 0.1}),
    ),
    (optim.WarmUp(0.3, steps=8), optax.linear_schedule(0.0, 0.3, 8)),
    (
        optim.WarmUp(optim.CosineDecay(0.3, steps=30, end=0.03), steps=10, start=0.01),
        optax.warmup_cosine_decay_schedule(0.01, 0.3, 10, 40, 0.03),
    ),
    (
        optim.WarmUp(optim.WarmUp(optim.LinearDecay(0.3, 10), 5, start=0.2), 10),
        optax.join_schedules(
            [
                optax.linear_schedule(0.0, 0.2, 10),
                optax.linear_schedule(0.2, 0.3, 5),
                optax.linear_schedule(0.3, 0.0, 10),
            ],
            [10, 15],
        ),
    ),
]
