"""A cross-entropy in which each class counts alike."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(logits, labels, counts):
    counts = jnp.asarray(counts)
    per_class = jnp.where(counts > 0, 1 / jnp.maximum(counts, 1), 0)
    weights = per_class[labels]
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=-1)[:, 0]
    return jnp.sum(weights * losses) / jnp.sum(weights)


LOGITS = np.array([[2, 0, -1], [0.5, 1, 0], [-1, 0, 2], [1, 1, -2], [0, 3, 1]], np.float32)
LABELS, COUNTS = np.array([0, 1, 1, 2, 0]), np.array([40, 10, 1])


def _losses(logits, labels):
    return -np.asarray(jax.nn.log_softmax(jnp.asarray(logits)))[np.arange(len(labels)), labels]


def check(weighted):
    losses, weights = _losses(LOGITS, LABELS), (1 / COUNTS)[LABELS]
    given = {"logits": LOGITS, "labels": LABELS, "counts": COUNTS}
    got = weighted(*map(jax.device_put, (LOGITS, LABELS, COUNTS)))
    checks.returned(got)
    wrong = [
        (losses.mean(), "This is the plain mean: the counts have no effect."),
        ((weights * losses).mean(), "Divide by the sum of the weights, not by the number of examples: otherwise the loss, and the gradient, shrink with the counts."),
        ((weights * losses).sum(), "Divide by the sum of the weights."),
        ((COUNTS[LABELS] * losses).sum() / COUNTS[LABELS].sum(), "Each example is weighted with its count, not with one over it: frequent classes count even more."),
        ((weights * losses).sum() / (1 / COUNTS).sum(), "Divide by the sum of the weights of the *examples*, not of the classes."),
        (-(weights * losses).sum() / weights.sum(), "The sign is wrong: a cross-entropy is the negative logarithm."),
    ]  # fmt: skip
    checks.same(got, solution(*map(jax.device_put, (LOGITS, LABELS, COUNTS))), input=given, recognise=wrong)
    empty = jax.device_put(np.array([40, 10, 0]))
    present = np.array([0, 1, 1, 1, 0])
    function = jax.jit(jax.value_and_grad(lambda logits, labels, counts: weighted(logits, labels, counts)))
    value, gradient = function(LOGITS, present, empty)
    if not (np.isfinite(value) and np.isfinite(gradient).all()):
        raise Failed(
            "A class that no training example has, of count 0, makes a NaN or an infinity. Its weight should be 0.",
            input={"counts": empty},
            got=value,
        )
    # The case that catches an infinite weight: the class is in the batch.
    value, gradient = function(LOGITS, LABELS, empty)
    wanted = solution(jnp.asarray(LOGITS), jnp.asarray(LABELS), empty)
    if not np.allclose(value, wanted, rtol=1e-4) or not np.isfinite(gradient).all():
        raise Failed(
            "An example whose class has the count 0 should have the weight 0.",
            input={"labels": LABELS, "counts": empty},
            expected=wanted,
            got=value,
        )
    equal = weighted(jnp.asarray(LOGITS), jnp.asarray(LABELS), jnp.full(3, 7))
    if not np.allclose(equal, losses.mean(), rtol=1e-4):
        raise Failed("With equal counts this should be the plain mean.", expected=losses.mean(), got=equal)
    large = jnp.asarray(1000 * LOGITS)
    if not np.isfinite(weighted(large, jnp.asarray(LABELS), jnp.asarray(COUNTS))):
        raise Failed(
            "For large logits the result is not finite: use `jax.nn.log_softmax`, or Optax's loss, not the logarithm of a softmax.",
            input={"logits": large},
        )


exercise = Exercise(
    title="A loss in which each class counts alike",
    stars=2,
    minutes=12,
    why="Divided by the sum of its weights, a weighted loss keeps its scale, and so does the learning rate that suits it.",
    hints=(
        "One loss for each example first, without a mean: `optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels)`.",
        "`per_class[labels]` gives each example its weight. Where a count is 0, divide by something else and choose 0: `jnp.where(counts > 0, 1 / jnp.maximum(counts, 1), 0)`.",
    ),
    solution=solution,
    check=check,
)
