"""A cross-entropy that survives."""

import inspect

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding, inputs


def solution(logits, labels):
    m = jnp.maximum(logits, 0)  # the larger of the two exponents in log(e^0 + e^z)
    return m + jnp.log(jnp.exp(-m) + jnp.exp(logits - m)) - logits * labels


def check(function):
    _not_ready_made(function)

    def pair(*shape, sizes):
        def draw_both(draw):
            logits = draw(inputs.arrays(*shape, sizes=sizes))
            labels = draw(inputs.arrays(*logits.shape, low=0, high=1, dtype="int32"))
            return logits, jax.device_put(np.float32(labels))

        return inputs.together(draw_both)

    telling = jax.device_put((np.float32([2.0, 1.0, -3.0, 0.5]), np.float32([1.0, 0.0, 0.0, 1.0])))
    recognise = [
        (lambda z, y: -solution(z, y), "The sign is wrong: a loss is minus the logarithm."),
        (
            lambda z, y: solution(-z, y),
            "This is the loss of the opposite label: the two cases are swapped.",
        ),
        (
            lambda z, y: jnp.mean(solution(z, y)),
            "This is the mean over the batch; here one loss for each example is asked for.",
        ),
        (
            lambda z, y: jnp.sum(solution(z, y)),
            "This is the sum over the batch; here one loss for each example is asked for.",
        ),
        (lambda z, y: -y * jax.nn.log_sigmoid(z), "The second half is missing: what if the label is 0?"),
        (lambda z, y: jax.nn.sigmoid(z), "This is the probability p; the loss is minus its logarithm."),
    ]
    checks.values(
        function,
        solution,
        pair("n", sizes=(1, 4)),
        examples=[telling],
        recognise=recognise,
        rtol=1e-4,
        atol=1e-5,
    )
    jitted = checks.works_under_jit(function, *telling)
    one = jax.device_put((np.float32(2), np.float32(1)))
    checks.values(
        jitted, jax.jit(solution), pair("n", 2, sizes=(3,)), examples=[one], count=5, rtol=1e-4, atol=1e-5
    )
    grid = [(z, y) for z in (20.0, -20.0, 100.0, -100.0, 1000.0, -1000.0) for y in (0.0, 1.0)]
    between = [(z, y) for z in (7.0, -7.0, 9.0, -9.0, 14.0, -14.0) for y in (0.0, 1.0)]
    for z, y in grid:
        _large_logit(function, z, y)
    _large_among_small(function)
    for z, y in between:
        _in_between(function, z, y)
    slope = jax.jit(jax.grad(lambda logit, label: function(logit, label).sum()))
    for z, y in [(3.0, 1.0), (-3.0, 0.0), *between, *grid, (0.0, 0.0), (0.0, 1.0)]:
        _its_gradient(slope, z, y)


def _not_ready_made(function):
    """The loss that Optax has is not called, under whatever name it was imported."""
    theirs = guarding.underlying(guarding.original(function))
    if not inspect.isfunction(theirs):
        return
    for name in theirs.__code__.co_names:
        value = theirs.__globals__.get(name)
        home = getattr(value, "__module__", None) or getattr(value, "__name__", "")
        if f"{name}.".startswith("optax.") or f"{home}.".startswith("optax."):
            raise Failed(
                "This is Optax's loss, ready-made. Later in the chapter you may call it; here, write what is inside."
            )


def _large_among_small(function):
    logits = jax.device_put(np.float32([1000.0, -3.0, -1000.0, 3.0]))
    labels = jax.device_put(np.float32([1.0, 0.0, 0.0, 1.0]))
    expected, got = solution(logits, labels), function(logits, labels)
    if not np.allclose(got, expected, rtol=1e-3, atol=1e-6):
        raise Failed(
            "One logit at a time your loss is right, but not where large and small ones stand in one array: do you "
            "subtract the largest logit of *all* examples? Each example needs its own.",
            input={"logits": logits, "labels": labels},
            expected=expected,
            got=got,
        )


def _in_between(function, z, y):
    """Neither small nor large: where ``1 - sigmoid(z)`` has lost digits, and where formulas are patched together."""
    logit, label = jax.device_put((np.float32([z]), np.float32([y])))
    expected, got = np.float32([np.logaddexp(0, z) - z * y]), function(logit, label)
    if not np.allclose(got, expected, rtol=1e-5, atol=2e-6):
        raise Failed(
            "For small and for large logits your loss is right, in between it is not. `1 - p` loses the digits of a p near 1, and "
            "two formulas that meet at some logit must agree there: one that holds everywhere has neither trouble.",
            input={"logits": logit, "labels": label},
            expected=expected,
            got=got,
        )


def _large_logit(function, z, y):
    logit, label = jax.device_put((np.float32([z]), np.float32([y])))
    expected, got = solution(logit, label), function(logit, label)
    shown = {"input": {"logits": logit, "labels": label}, "expected": expected, "got": got}
    if not np.isfinite(np.asarray(got)).all():
        raise Failed(
            "For small logits your loss is right, for large ones it is not finite: on the way to it an `exp` "
            "overflows, or a `log` gets a 0. Take the logarithm on paper first.",
            **shown,
        )
    if not np.allclose(got, expected, rtol=1e-3, atol=1e-6):
        if got[0] > 1e30:
            raise Failed(
                "For large logits your loss is a huge number in the place of an infinity, which hides it and does not "
                "mend it: an `exp` overflowed, or a `log` got a 0. Take the logarithm on paper first.",
                **shown,
            )
        if expected[0] > 1 and (got[0] < expected[0] or np.allclose(got, function(5 * logit, label))):
            raise Failed(
                "For a confident mistake your loss stops growing. That comes from clipping, or from rounding the "
                "probability to 0 or 1 and adding a small number: there the logit does not count any more, and where the "
                "loss is flat there is no gradient.",
                **shown,
            )
        raise Failed("For small logits your loss is right, for large ones it is not.", **shown)


def _its_gradient(slope, z, y):
    logit, label = jax.device_put((np.float32([z]), np.float32([y])))
    expected = np.float32([1 / (1 + np.exp(-z)) - y if z > -700 else -y])
    got = slope(logit, label)
    shown = {"input": {"logits": logit, "labels": label}, "expected": expected, "got": got}
    if np.allclose(got, expected, rtol=1e-3, atol=1e-5):
        return
    if not np.isfinite(np.asarray(got)).all():
        raise Failed(
            "The loss is right, but its gradient is not finite. Both sides of a `jnp.where` are computed and "
            "differentiated: if the one that is not chosen overflows, 0 times infinity is NaN. Make the argument of `exp` "
            "safe, not only the result.",
            **shown,
        )
    if z == 0:
        raise Failed(
            "The loss is right everywhere, its gradient everywhere but at the logit 0, where `abs`, `maximum`, `relu` "
            "or a condition has a corner, for which JAX must choose a slope. The loss itself is smooth, so the corners must "
            "cancel. (All logits are 0 when the last layer starts from zeros.)",
            **shown,
        )
    raise Failed("The loss is right, but its gradient is not.", **shown)


exercise = Exercise(
    title="A cross-entropy that survives",
    stars=2,
    minutes=15,
    why=(
        "A confident mistake now has the loss and the gradient that it should, and no large logit turns the weights into NaN."
    ),
    hints=(
        "Put p = 1/(1 + e^-z) into the formula, on paper. Both labels together give log(1 + e^z) - z y.",
        "log(1 + e^z) overflows for large z. It is log(e^0 + e^z), a sum over two exponents: as in the chapter, take the "
        "larger of them, m, out of the logarithm.",
        "`m = jnp.maximum(z, 0)` is the larger one, and `m + jnp.log(jnp.exp(-m) + jnp.exp(z - m))` is the logarithm. (Well-known "
        "forms with `abs` have the right value, but JAX takes 1 for the slope of `abs` at 0.)",
    ),
    solution=solution,
    check=check,
    differentiable=False,  # by the labels; by the logits it is checked above
)
