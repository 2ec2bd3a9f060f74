"""Mend the loss."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs


def solution(preds, targets):
    return jnp.mean((preds - targets) ** 2)


def _by_numpy(preds, targets):
    return jax.device_put(np.float32(np.mean((np.asarray(preds) - np.asarray(targets)) ** 2)))


def check(mse):
    def pair(*shape):
        def draw_both(draw):
            preds = draw(inputs.arrays(*shape, sizes=(1, 3)))
            return preds, draw(inputs.arrays(*preds.shape))

        return inputs.together(draw_both)

    # All the wrong formulas below give different numbers here, so that none is taken for another.
    telling = jax.device_put((np.float32([3.0, -1.0, 2.5]), np.float32([1.0, 0.5, -2.0])))
    recognise = [
        (
            lambda p, t: jnp.sum(p - t) ** 2,
            "You sum first and square after, as the notes did: errors of opposite sign cancel.",
        ),
        (
            lambda p, t: jnp.mean(p - t) ** 2,
            "You average first and square after: errors of opposite sign cancel.",
        ),
        (
            lambda p, t: jnp.sum((p - t) ** 2),
            "This is the sum of the squares, not their mean: it grows with the number of predictions.",
        ),
        (lambda p, t: jnp.mean(p - t), "The differences are not squared, so errors of opposite sign cancel."),
        (
            lambda p, t: jnp.mean(jnp.abs(p - t)),
            "This is the mean of the absolute differences, not of their squares.",
        ),
        (
            lambda p, t: jnp.sqrt(solution(p, t)),
            "This is the root of the mean squared error: one root too many.",
        ),
        (
            lambda p, t: solution(p, t) / 2,
            "This is half of the mean squared error. Some textbooks write it so, to tidy up the gradient; here the "
            "plain mean is asked for.",
        ),
        (
            lambda p, t: jnp.mean(p - t**2),
            "`**` binds tighter than `-`, so this squares the targets only: put the difference in parentheses.",
        ),
        (
            lambda p, t: jnp.mean(p**2 - t**2),
            "These are differences of squares: subtract first, then square.",
        ),
        (
            lambda p, t: jnp.mean(p**2),
            "The targets are not used. (In the chapter's example they were all 0.)",
        ),
    ]
    by_rows = [
        (
            lambda p, t: jnp.sum((p - t) ** 2) / len(p),
            "You divide by the number of rows, `len(preds)`, not by the number of all predictions.",
        ),
        (
            lambda p, t: jnp.mean((p - t) ** 2, axis=0),
            "This averages over the first axis only; one number is asked for, whatever the shape.",
        ),
        (
            lambda p, t: jnp.mean((p - t) ** 2, axis=-1),
            "This averages over the last axis only; one number is asked for, whatever the shape.",
        ),
    ]
    table = jax.device_put(
        (
            np.float32([[3.0, -1.0], [2.0, 0.5], [1.0, 4.0]]),
            np.float32([[1.0, 1.0], [-2.0, 0.0], [1.0, 1.0]]),
        )
    )
    checks.values(mse, _by_numpy, examples=[telling], recognise=recognise)
    jitted = checks.works_under_jit(mse, *telling)
    checks.values(jitted, _by_numpy, pair("n"), recognise=recognise)
    checks.values(jitted, _by_numpy, pair("n", 2), examples=[table], recognise=by_rows)
    block = np.sin(np.arange(12, dtype=np.float32)).reshape(2, 3, 2)
    number = np.float32(1.5), np.float32(-1.0)
    checks.values(jitted, _by_numpy, examples=[jax.device_put((block, block[::-1])), jax.device_put(number)])
    checks.gradients(mse, solution, *telling, jit=True)
    _rests_at_perfection(mse)
    _hides_nothing(jitted)


def _rests_at_perfection(mse):
    """Where every prediction is right the gradient is 0: a square root on the way would make it NaN."""
    preds = jax.device_put(np.float32([3.0, -1.0]))
    got = jax.jit(jax.grad(mse))(preds, preds)
    if not np.isfinite(got).all():
        raise Failed(
            "At perfect predictions the loss is 0, but its gradient is not finite: the slope of a root at 0 is infinite, and "
            "squaring what comes out of it makes NaN of that. Square the differences, without a root.",
            input={"preds": preds, "targets": preds},
            expected=jax.device_put(np.zeros(2, np.float32)),
            got=got,
        )


def _hides_nothing(mse):
    """A loss that leaves out what is NaN, or caps what is large, tells nobody that training went wrong."""
    preds, targets = jax.device_put((np.float32([np.nan, 1.0]), np.float32([0.0, 0.0])))
    if not np.isnan(got := mse(preds, targets)):
        raise Failed(
            "One prediction is NaN, and your loss is a number: it hides the one thing that you would want to know.",
            input={"preds": preds, "targets": targets},
            got=got,
        )
    preds, targets = jax.device_put((np.float32([3000.0, 1.0]), np.float32([-1000.0, 0.0])))
    checks.same(mse(preds, targets), _by_numpy(preds, targets), where="for a very large error")


exercise = Exercise(
    title="Mend the loss",
    stars=1,
    minutes=5,
    why="A loss is the one thing that training believes. This one is zero only where every prediction is right.",
    hints=(
        "For one prediction, squaring the difference makes it positive. At which point must that happen?",
        "First the differences, then the square of each, then one mean over all of them, whatever the shape.",
        "`preds - targets` in parentheses, `** 2` right behind them, and `jnp.mean` around it all.",
    ),
    solution=solution,
    check=check,
)
