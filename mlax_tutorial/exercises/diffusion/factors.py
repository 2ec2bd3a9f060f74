"""Preconditioning: the factors by which a network sees, and is asked for, numbers of variance 1."""

import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(sigma, deviation):
    total = jnp.sqrt(sigma**2 + deviation**2)
    return 1 / total, deviation**2 / total**2, sigma * deviation / total


SIGMA, DEVIATION = np.float32([[0.1], [1.0], [20.0]]), np.float32([0.5, 3.0])


def check(factors):
    sigma, deviation = np.float64(SIGMA), np.float64(DEVIATION)
    total = sigma**2 + deviation**2
    right = {
        "c_in": 1 / np.sqrt(total),
        "c_skip": deviation**2 / total,
        "c_out": sigma * deviation / np.sqrt(total),
    }
    given = {"sigma": SIGMA, "deviation": DEVIATION}
    got = factors(jnp.asarray(SIGMA), jnp.asarray(DEVIATION))
    checks.returned(
        got, "c_in", "c_skip", "c_out", lists=True, asked="Return three factors: `c_in, c_skip, c_out`."
    )
    shapes = [np.shape(one) for one in got]
    if any(shape != (3, 2) for shape in shapes):
        raise Failed(
            f"For three noise levels, of shape (3, 1), and two features, of shape (2,), each factor has the shape (3, 2), got {shapes}: does each depend "
            "on both?",
            input=given,
            got=got,
        )
    c_in, c_skip, c_out = (np.asarray(one, np.float64) for one in got)
    seen = c_in**2 * total
    if not np.allclose(seen, 1, rtol=1e-3):
        said = "The network's input does not have the variance 1."
        if np.allclose(c_in, 1 / total, rtol=1e-3):
            said += " Noise and image add up in their *variances*: divide by the root of the sum."
        elif np.allclose(c_in, 1 / (sigma + deviation), rtol=1e-3):
            said += " Variances add up, deviations do not."
        raise Failed(said, input=given, expected=right["c_in"], got=got[0])
    # What is asked of the network is (clean - c_skip (clean + noise)) / c_out.
    error = (1 - c_skip) ** 2 * deviation**2 + c_skip**2 * sigma**2
    if not np.allclose(error, np.abs(c_out * c_out), rtol=1e-3):
        if np.allclose(c_skip, right["c_skip"], rtol=1e-3):
            raise Failed(
                "The input is right, and `c_skip`. With your `c_out` the variance of what the network is asked for is not 1: that is (clean - c_skip · noisy) / c_out.",
                input=given,
                expected=right["c_out"],
                got=got[2],
            )
        raise Failed(
            "The variance of what the network is asked for, (clean - c_skip · noisy) / c_out, is not 1, and `c_skip` is not the best one.",
            input=given,
            expected=right["c_skip"],
            got=got[1],
        )
    if not np.allclose(c_skip, right["c_skip"], rtol=1e-3):
        what = "another `c_skip` needs less of the network: its errors are multiplied by `c_out`"
        if np.allclose(c_skip, 1, rtol=1e-3):
            what = "this asks for the noise: where there is much of it, an error of the network is multiplied by all of it"
        elif np.allclose(c_skip, 0, atol=1e-3):
            what = "this asks for the image: where there is little noise, the noisy image itself would be the better answer"
        raise Failed(
            f"Both variances are 1, but `c_out` is not as small as it can be: {what}.",
            input=given,
            expected=right["c_out"],
            got=got[2],
        )
    if (c_out < 0).any():
        raise Failed("`c_out` is negative: take the positive root.", expected=right["c_out"], got=got[2])
    checks.same(
        tuple(got),
        tuple(jnp.asarray(one, jnp.float32) for one in right.values()),
        input=given,
        rtol=1e-3,
        atol=1e-6,
    )
    checks.works_under_jit(factors, jnp.float32(2.0), jnp.float32(0.5))


exercise = Exercise(
    title="Variance 1 in, variance 1 out",
    stars=2,
    minutes=15,
    why="One network serves noise levels a thousandfold apart, since it never sees how large they are except by being told.",
    hints=(
        "Clean image and noise are independent, so the variance of the noisy image is deviation² + sigma².",
        "clean - c_skip · noisy has the variance (1 - c_skip)² deviation² + c_skip² sigma². For which c_skip is that smallest? Then c_out is its root.",
        "c_skip is the share of the image in the variance: deviation² / (deviation² + sigma²).",
    ),
    solution=solution,
    check=check,
)
