"""A state-space layer with a fixed decay as a convolution."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(x, a, b, c):
    time = x.shape[0]
    kernel = jnp.sum((c * b)[:, None] * a[:, None] ** jnp.arange(time), axis=0)
    spectrum = jnp.fft.rfft(x, 2 * time) * jnp.fft.rfft(kernel, 2 * time)
    return jnp.fft.irfft(spectrum, 2 * time)[:time]


A = np.array([0.5, -0.25, 0.75], np.float32)
B = np.array([1.0, 2.0, -1.0], np.float32)
C = np.array([0.5, 1.0, 2.0], np.float32)
X = np.array([1.0, -2.0, 0.5, 3.0, 0.0, -1.0], np.float32)


def _kernel(a, b, c, first=0):
    return (a ** np.arange(first, first + len(X))[:, None] * b * c).sum(axis=1)


def check(convolution):
    n, k = len(X), _kernel(A, B, C)
    given = {"x": X, "a": A, "b": B, "c": C}
    got = convolution(*map(jax.device_put, (X, A, B, C)))
    checks.returned(got)
    expected = np.convolve(X, k)[:n].astype(np.float32)
    for wrong, said in [
        (np.fft.irfft(np.fft.rfft(X) * np.fft.rfft(k), n), "The end wraps around to the beginning: give both transforms a length of at least `2 * time - 1`."),
        (np.array([sum(X[s] * k[s - t] for s in range(t, n)) for t in range(n)]), "This looks into the future: step t may see the inputs up to t only."),
        (np.convolve(X, k, mode="same"), "This is centered, so it looks into the future: take the first `time` numbers of the full convolution."),
        (np.convolve(X, _kernel(A, B, C, 1))[:n], "The answer to an input comes at once: the kernel starts with the power 0, not 1."),
        (np.convolve(X, _kernel(A, B, np.ones(3)))[:n], "`c` is missing: it weights the states in the output."),
        (np.convolve(X, _kernel(A, np.ones(3), C))[:n], "`b` is missing: it says how much of the input reaches each state."),
        (X * k, "This multiplies step by step. Multiply the transforms."),
        (k, "This is the kernel alone: the input has no part in it."),
    ]:  # fmt: skip
        if np.shape(got) == wrong.shape and np.allclose(got, wrong, atol=1e-3):
            raise Failed(said, input=given, expected=expected, got=got)
    if np.ndim(got) == 1 and len(got) > n:
        raise Failed(
            f"{len(got)} numbers for {n} steps: cut the result to the length of `x`.", input=given, got=got
        )
    if np.ndim(got) == 2:
        raise Failed("There is one number for each step: sum over the states.", input=given, got=got)
    if jnp.iscomplexobj(got):
        raise Failed("The result is complex. The inverse of `rfft` is `irfft`.", input=given, got=got)
    checks.same(got, jax.device_put(expected), input=given, rtol=1e-3, atol=1e-3)
    checks.jaxpr(
        convolution, *map(jax.device_put, (X, A, B, C)), requires=("fft",), forbids=("scan", "while")
    )
    odd = convolution(*map(jax.device_put, (X[:5], A, B, C)))
    if np.shape(odd) != (5,) or not np.allclose(odd, expected[:5], atol=1e-3):
        raise Failed(
            "This is wrong for an odd number of steps: tell `irfft` the length, or one number is lost.",
            input={"x": X[:5]},
            expected=expected[:5],
            got=odd,
        )
    checks.works_under_jit(convolution, *map(jax.device_put, (X, A, B, C)))


exercise = Exercise(
    title="A state-space layer as a convolution",
    stars=3,
    minutes=20,
    why="With a fixed decay all steps of a long sequence are computed at once by transforms; with Mamba's gate there is no such kernel, and the scan is needed.",
    hints=(
        "The kernel first: `a[:, None] ** jnp.arange(time)` has a row of powers for each state; weight the rows by `b * c` and sum them.",
        "Transform both with `n = 2 * time`, which pads them with zeros; multiply; transform back with the same `n`.",
        "Take the first `time` numbers: `jnp.fft.irfft(product, 2 * time)[:time]`.",
    ),
    solution=solution,
    check=check,
)
