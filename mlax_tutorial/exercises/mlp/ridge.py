"""Ridge regression with a bias that is not penalized."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, checks


def solution(features, targets, strength):
    center, mean = features.mean(axis=0), targets.mean(axis=0)
    f, t = features - center, targets - mean
    gram = jnp.matmul(f.T, f, precision="highest") + strength * jnp.eye(f.shape[1])
    kernel = jnp.linalg.solve(gram, jnp.matmul(f.T, t, precision="highest"))
    return kernel, mean - jnp.matmul(center, kernel, precision="highest")


def _penalized(f, t, strength):
    f = np.concatenate([f, np.ones((len(f), 1))], axis=1)
    both = np.linalg.solve(f.T @ f + strength * np.eye(f.shape[1]), f.T @ t)
    return both[:-1], both[-1]


def _without_bias(f, t, strength):
    return np.linalg.solve(f.T @ f + strength * np.eye(f.shape[1]), f.T @ t), np.zeros(t.shape[1])


def _centered(f, t, strength, center_targets=True):
    c, m = f.mean(axis=0), t.mean(axis=0)
    kernel = np.linalg.solve((f - c).T @ (f - c) + strength * np.eye(f.shape[1]), (f - c).T @ (t - m))
    return kernel, m - c @ kernel


def _given(n=40, features=5, classes=3):
    draw = np.random.default_rng(1)
    f = draw.normal(size=(n, features)) * [1, 2, 0.5, 1, 3][:features] + [3, 0, 1, -2, 0.5][:features]
    t = np.eye(classes)[draw.integers(0, classes, n)] + 0.3 * f[:, :classes]
    return f, t, 8.0


def check(ridge):
    f, t, strength = _given()
    got = ridge(jnp.float32(f), jnp.float32(t), strength)
    asked = "Return a pair: the kernel, of shape `(features, classes)`, and the bias, of shape `(classes,)`."
    checks.returned(got, "kernel", "bias", asked=asked)
    expected = solution(jnp.float32(f), jnp.float32(t), strength)
    kernel, bias = _centered(f, t, strength)
    n = len(f)
    wrong = [
        (_penalized(f, t, strength), "The bias is penalized, too, as if it were a weight. Then the model is pulled towards 0 where it should be pulled towards the mean: center both arrays, or leave the penalty off the bias."),
        (_without_bias(f, t, strength), "There is no bias: center features and targets, and compute the bias at the end."),
        ((kernel, t.mean(axis=0)), "The bias is the mean of the targets only. The features are not centered where the model is used, so `center @ kernel` has to be subtracted."),
        ((kernel, np.zeros(t.shape[1])), "The kernel is right, and the bias is missing."),
        (_centered(f, t, n * strength), "The penalty is too strong by the number of examples: squares are *summed* here, not averaged."),
        (_centered(f, t, strength / n), "The penalty is too weak by the number of examples: squares are *summed* here, not averaged."),
        (_centered(f, t, 0.0), "`strength` has no effect: that is least squares."),
        (_centered(f, t, strength**2), "The strength is squared."),
        ((bias, kernel), "The two are swapped: the kernel comes first."),
    ]  # fmt: skip
    checks.same(got, expected, rtol=1e-3, atol=1e-4, recognise=wrong)
    # Fewer examples than features: the matrix of least squares is singular there, that of ridge is not.
    f, t, strength = _given(n=3, features=4)
    wide = jnp.float32(f), jnp.float32(t), strength
    checks.same(ridge(*wide), solution(*wide), where="for fewer examples than features", rtol=1e-3, atol=1e-4)
    checks.works_under_jit(lambda features, targets: ridge(features, targets, 2.0), *wide[:2])
    strengths = jnp.float32([1.0, 10.0])
    jax.vmap(lambda strength: ridge(*wide[:2], strength))(strengths)  # several at once


exercise = Exercise(
    title="Ridge regression, with a free bias",
    stars=2,
    minutes=15,
    why="A linear model on fixed features has an exact optimum: no learning rate, no epochs, and a baseline that takes seconds.",
    hints=(
        "With centered features `f` and targets `t`, the best kernel solves `(f.T @ f + strength * I) @ kernel = f.T @ t`: `jnp.linalg.solve`.",
        "At the mean of the features the model should say the mean of the targets. Solve that for the bias.",
    ),
    solution=solution,
    check=check,
)
