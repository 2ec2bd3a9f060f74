"""Answers to the exercise compiling.masked_loss."""

import jax
import jax.numpy as jnp
import optax

from mlax_tutorial.exercises.compiling.masked_loss import example_losses, exercise, mean_of_all, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


answers.wrong("You divide by the number of all rows")(mean_of_all)


@answers.wrong("the mask is not used")
def loss_no_labels(logits, labels, mask):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


@answers.wrong("not finite, with infinite logits")
def loss_multiplied(logits, labels, mask):
    return jnp.sum(mask * example_losses(logits, labels)) / jnp.maximum(jnp.sum(mask), 1)


@answers.wrong("not finite, with infinite logits")
def loss_one_where(logits, labels, mask):
    losses = example_losses(logits, jnp.where(mask, labels, 0))
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


@answers.wrong("not finite, with infinite logits")
def loss_nan_to_num(logits, labels, mask):
    losses = example_losses(logits, jnp.where(mask, labels, 0))
    return jnp.nansum(jnp.where(mask, losses, jnp.nan)) / jnp.maximum(jnp.sum(mask), 1)


@answers.wrong("It happens with no row that counts.")
def loss_of_mask(logits, labels, mask):
    return jnp.mean(example_losses(logits[mask], labels[mask]))


@answers.wrong("It happens with no row that counts.")
def loss_by_none(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    losses = example_losses(logits, jnp.where(mask, labels, 0))
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.sum(mask)


@answers.wrong("asked for is the mean")
def loss_sum(logits, labels, mask):
    return solution(logits, labels, mask) * jnp.sum(mask)


@answers.wrong("the gradient is not, with all rows count")
def loss_stopped(logits, labels, mask):
    count = jnp.maximum(jnp.sum(mask), 1)
    logits = jnp.where(mask[:, None], logits, jax.lax.stop_gradient(logits))
    losses = example_losses(jax.lax.stop_gradient(logits), jnp.where(mask, labels, 0))
    return jnp.sum(jnp.where(mask, losses, 0.0)) / count


@answers.wrong("being the last ones")
def loss_first_rows(logits, labels, mask):
    count = jnp.sum(mask)
    mask = jnp.arange(len(logits)) < count
    return solution(logits, labels, mask)


@answers.wrong("no logarithms of probabilities")
def loss_no_softmax(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    picked = jnp.take_along_axis(logits, jnp.where(mask, labels, 0)[:, None], 1)[:, 0]
    return -jnp.sum(jnp.where(mask, picked, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


@answers.wrong("The sign")
def loss_sign(logits, labels, mask):
    return -solution(logits, labels, mask)


@answers.wrong("a logit of 300,000")
def loss_clipped(logits, labels, mask):
    return solution(jnp.clip(logits, -100, 100), labels, mask)


@answers.wrong("The shape is wrong")
def loss_of_each(logits, labels, mask):
    return jnp.where(mask, solution(logits, labels, mask), 0.0)


@answers.wrong("too large for float32")
def loss_by_hand(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    picked = jnp.take_along_axis(logits, jnp.where(mask, labels, 0)[:, None], 1)[:, 0]
    losses = jnp.log(jnp.sum(jnp.exp(logits), axis=1)) - picked
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


@answers.wrong("hide every NaN")
def loss_nansum(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    losses = example_losses(logits, jnp.where(mask, labels, 0))
    return jnp.nansum(jnp.where(mask, losses, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


@answers.wrong("hide every NaN")
def loss_nanmean(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    losses = example_losses(logits, jnp.where(mask, labels, 0))
    return jnp.where(mask.any(), jnp.nanmean(jnp.where(mask, losses, jnp.nan)), 0.0)


# Right ones of unusual style, and wrong ones that look right


@answers.right
def by_optax(logits, labels, mask):
    logits, labels = jnp.where(mask[:, None], logits, 0), jnp.where(mask, labels, 0)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return jnp.vdot(losses, mask) / jnp.maximum(mask.sum(), 1)


@answers.wrong("a logit of minus infinity")
def by_a_product_with_one_hot(logits, labels, mask):  # 0 times minus infinity
    logits = jnp.where(mask[:, None], logits, 0.0)
    losses = -jnp.sum(jax.nn.one_hot(labels, logits.shape[-1]) * jax.nn.log_softmax(logits), axis=-1)
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


@answers.wrong("a logit of 300,000")
def widely_clipped(logits, labels, mask):
    return solution(jnp.clip(logits, -1e4, 1e4), labels, mask)


@answers.right
def by_one_hot(logits, labels, mask):
    logits = jax.lax.select(jnp.broadcast_to(mask[:, None], logits.shape), logits, jnp.zeros_like(logits))
    hot = jax.nn.one_hot(labels, logits.shape[-1], dtype=bool)  # all false for a label outside
    losses = jax.nn.logsumexp(logits, axis=-1) - jnp.sum(logits, axis=-1, where=hot)
    return jnp.where(mask.any(), jnp.sum(losses, where=mask) / jnp.clip(mask.sum(), 1), 0.0)


@answers.right
@jax.jit
def row_by_row(logits, labels, mask):
    def one(row, label, counts):
        row = jnp.where(counts, row, jnp.ones_like(row))
        return jnp.where(counts, -jax.nn.log_softmax(row)[label % row.size], 0.0)

    total = jnp.sum(jax.vmap(one)(logits, labels, mask))
    return total / (mask.sum() + (mask.sum() == 0))


@answers.wrong()
def clipped_logits(logits, labels, mask):
    return solution(jnp.clip(logits, -5, 5), labels, mask)


@answers.wrong()
def where_argument_only(logits, labels, mask):
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return jnp.mean(losses, where=mask)


@answers.wrong()
def a_small_number_in_the_divisor(logits, labels, mask):
    return solution(logits, labels, mask) * mask.sum() / (mask.sum() + 1e-2)


@answers.wrong("a single row that counts")
def divides_by_two_at_least(logits, labels, mask):
    return solution(logits, labels, mask) * jnp.minimum(1.0, jnp.sum(mask) / 2)


answers.equivalent(
    "jnp.where(mask, labels, 0) -> jnp.where(mask, labels, -1)",
    "jnp.where(mask, labels, 0) -> jnp.where(mask, labels, 1)",
    because="the loss of a row that does not count is replaced by 0, whatever its label",
)
answers.equivalent(
    "jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1) -> "
    "jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None])",
    because="the last axis is the default, and here it is axis 1",
)
answers.equivalent(
    "(:, 0) -> (:, -1)",
    "(:, 0) -> (:, 1)",
    because="there is one column, and an index beyond the end gives the last",
)
