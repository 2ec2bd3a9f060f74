"""Pad a batch, keep its gradient."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.compare import named
from mlax_tutorial.checking.programs import fresh, under


def solution(logits, labels, mask):
    logits = jnp.where(mask[:, None], logits, 0.0)
    labels = jnp.where(mask, labels, 0)
    losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]
    return jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.maximum(jnp.sum(mask), 1)


def _alone(logits, labels, mask):
    """The loss of the rows that count, and its gradient, by NumPy: nothing is compiled."""
    keep = np.asarray(mask)
    gradient = np.zeros(logits.shape, np.float32)
    if not keep.any():
        return jax.device_put((np.float32(0.0), gradient))
    rows, labels = np.asarray(logits, np.float64)[keep], np.asarray(labels)[keep]
    rows -= rows.max(1, keepdims=True)
    weights = np.exp(rows)
    probabilities = weights / weights.sum(1, keepdims=True)
    each = np.arange(len(rows)), labels
    loss = (np.log(weights.sum(1)) - rows[each]).mean()
    probabilities[each] -= 1
    gradient[keep] = probabilities / len(rows)
    return jax.device_put((np.float32(loss), gradient))


def check(masked_loss):
    random = np.random.default_rng(1)

    def case(real, garbage=0.0, label=0, last=False, scale=3):
        mask = np.arange(4) < real
        mask = mask[::-1].copy() if last else mask
        logits = random.normal(size=(4, 3)).astype(np.float32) * scale
        labels = random.integers(0, 3, 4).astype(np.int32)
        logits[~mask], labels[~mask] = garbage, label
        return jax.device_put((logits, labels, mask))

    def reference(logits, labels, mask):
        return _alone(logits, labels, mask)[0]

    surprised = (
        np.tile(np.array([[300_000, 0, 0], [0, 1, -300_000]], np.float32), (2, 1)),
        np.array([1, 2, 1, 2], np.int32),
    )
    surprised = jax.device_put((*surprised, np.full(4, True)))
    ruled_out = np.tile(np.array([[-np.inf, 1, 2], [0, -np.inf, 1]], np.float32), (2, 1))
    ruled_out = jax.device_put((ruled_out, np.array([2, 0, 1, 2], np.int32), np.arange(4) != 3))
    cases = [
        ("all rows count", case(4)),
        ("large logits, whose exponentials are too large for float32", case(4, scale=90)),
        ("zeros in the rows that do not count", case(2)),
        ("a single row that counts", case(1)),
        ("the rows that count being the last ones", case(2, last=True)),
        ("label -1 in the rows that do not count", case(3, label=-1)),
        ("a label beyond the classes in the rows that do not count", case(3, label=7)),
        ("huge logits in the rows that do not count", case(2, garbage=1e30, label=1)),
        ("infinite logits in the rows that do not count", case(2, garbage=np.inf)),
        ("NaN in the rows that do not count", case(2, garbage=np.nan, label=-1)),
        ("a logit of 300,000 where the label is another class", surprised),
        ("a logit of minus infinity, for another class than the label, in a row that counts", ruled_out),
        ("no row that counts", case(0)),
        ("no row that counts, all being NaN", case(0, garbage=np.nan)),
    ]
    recognise = [
        (
            lambda *a: mean_of_all(*a),
            "You divide by the number of all rows. It is the mean of those that count: divide by the sum of the mask.",
        ),
        (
            lambda logits, labels, mask: reference(logits, labels, mask | True),
            "All rows count here: the mask is not used.",
        ),
        (
            lambda logits, labels, mask: reference(logits, labels, mask) * mask.sum(),
            "This is the sum; asked for is the mean.",
        ),
        (
            lambda logits, labels, mask: (
                -jnp.sum(jnp.where(mask, jnp.take_along_axis(logits, labels[:, None], 1)[:, 0], 0))
                / jnp.maximum(mask.sum(), 1)
            ),
            "The logits are no logarithms of probabilities yet: `jax.nn.log_softmax` makes them so.",
        ),
        (
            lambda logits, labels, mask: -reference(logits, labels, mask),
            "The sign: cross-entropy is *minus* the logarithm, and positive.",
        ),
    ]
    for text, arguments in cases:
        expected = reference(*arguments)
        got = masked_loss(*arguments)

        def said(_, got=got, text=text, arguments=arguments):
            if not isinstance(got, jax.Array) or got.shape != ():
                return ""
            known = (words for wrong, words in recognise if _same_number(got, wrong, arguments))
            return next(known, f"It happens with {text}.")

        with checks.says(said):
            checks.same(got, expected, input=named(reference, arguments), rtol=1e-4, atol=1e-5)
    slope = jax.jit(jax.grad(fresh(masked_loss)))
    for text, arguments in cases:
        gradient = _alone(*arguments)[1]
        with under("`jax.jit`"):
            given = slope(*arguments)
        if not np.allclose(given, gradient, rtol=1e-3, atol=1e-5):
            if not np.isfinite(given).all():
                reason = (
                    f"The value is right, and the gradient is not finite, with {text}. A mask on the *losses* does not protect the gradient: zero "
                    "times NaN is NaN. Make the *logits* of those rows harmless first, with another `jnp.where`."
                )
            else:
                reason = f"The value is right, and the gradient is not, with {text}."
            raise Failed(reason, input=named(reference, arguments), expected=gradient, got=given)
    logits, labels, mask = case(2)
    logits = np.array(logits)
    logits[1, 2] = np.nan  # in one of the two rows that count
    logits = jax.device_put(logits)
    got = masked_loss(logits, labels, mask)
    if not np.isnan(got):
        raise Failed(
            "A NaN in a row that counts disappears: the loss looks right, although the model has diverged. Make only the rows "
            "harmless for which the mask is false; `jnp.nansum` and `jnp.nan_to_num` hide every NaN.",
            input={"logits": logits, "labels": labels, "mask": mask},
            expected=np.float32(np.nan),
            got=got,
        )
    checks.works_under_jit(masked_loss, *cases[2][1])
    checks.traces(masked_loss, cases[2][1], case(3), case(1), case(0), exactly=1)


def _same_number(got, wrong, arguments):
    try:
        return bool(np.allclose(got, wrong(*arguments), rtol=1e-4))
    except Exception:
        return False


def example_losses(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1)[:, 0]


def mean_of_all(logits, labels, mask):
    return jnp.mean(jnp.where(mask, example_losses(logits, labels), 0.0))


exercise = Exercise(
    title="Pad a batch, keep its gradient",
    stars=3,
    minutes=20,
    why="With a mask in the right places the last batch of an epoch needs no program of its own, and no example counts twice.",
    hints=(
        "The mean of the rows that count: `jnp.sum(jnp.where(mask, losses, 0.0)) / jnp.sum(mask)`, and something for the case that this is 0.",
        "A label of -1 or 7 is no place in the logits: replace those labels before you look them up.",
        "The gradient goes back through both sides of a `where`. If the logits of a row are NaN, the derivative is NaN, and 0 times NaN is NaN. So replace the *logits* of those rows at the very "
        "beginning, too.",
    ),
    solution=solution,
    check=check,
)
