"""Inpainting: a denoiser that knows a part of the image."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding


def solution(denoise, pixels, known, encode, decode):
    def completed(x, sigma):
        estimate = decode(denoise(x, sigma))
        return encode(jnp.where(known, pixels, estimate))

    return completed


# Four pixels, and two numbers that stand for them.
BASIS = np.array([[0.5, 0.5], [0.5, -0.5], [0.5, 0.5], [0.5, -0.5]], np.float32)
CENTER = np.array([0.25, -0.25, 0.5, 0.0], np.float32)
PIXELS, KNOWN = np.array([1.0, -1.0, np.nan, np.nan], np.float32), np.array([True, True, False, False])
X = np.array([[1.0, 2.0], [-3.0, 0.5], [0.25, -1.0]], np.float32)


def _encode(pixels):
    return (pixels - CENTER) @ BASIS


def _decode(x):
    return x @ BASIS.T + CENTER


def _denoise(x, sigma):
    return (x + sigma**2 * jnp.array([0.5, -0.25])) / (1 + sigma**2)


def check(completed):
    x, sigma = jnp.asarray(X), jnp.float32(1.5)
    made = completed(_denoise, jnp.asarray(PIXELS), jnp.asarray(KNOWN), _encode, _decode)
    checks.returned(made)
    if not callable(made):
        raise Failed("`completed` returns a denoiser: a function of `(x, sigma)`.", got=made)
    made = guarding.guard(made, "completed")
    given = {"x": X, "sigma": 1.5, "pixels": PIXELS, "known": KNOWN}
    estimate = np.asarray(_decode(_denoise(x, sigma)))
    pixels = np.where(KNOWN, PIXELS, estimate)
    expected = _encode(pixels)
    got = made(x, sigma)
    early = np.asarray(_denoise(_encode(jnp.where(KNOWN, PIXELS, _decode(x))), sigma))
    for wrong, said in [
        (pixels, "These are pixels: the sampler works on components. `encode` them again."),
        (np.asarray(_denoise(x, sigma)), "The known pixels have no effect."),
        (early, "The known pixels take their places in the noisy `x`, which is far from clean: put them into the denoiser's estimate."),
        (_encode(np.where(KNOWN, PIXELS, np.asarray(_decode(x)))), "The rest comes from the noisy `x`, and not from what the denoiser makes of it."),
    ]:  # fmt: skip
        if np.shape(got) == np.shape(wrong) and np.allclose(got, wrong, rtol=1e-4, atol=1e-5):
            raise Failed(said, input=given, expected=expected, got=got)
    # XLA turns a product with a Boolean into a choice, at times: then False times NaN is 0.
    if not (np.isfinite(got).all() and np.isfinite(jax.jit(made)(x, sigma)).all()):
        raise Failed(
            "What `pixels` holds where `known` is False reaches the result, here a NaN. Choose with `jnp.where(known, pixels, …)`: its first choice is taken where `known` is True, and a product with 0 keeps a NaN.",
            input=given,
            got=got,
        )
    checks.same(got, jnp.asarray(expected), input=given, rtol=1e-4, atol=1e-4)
    checks.works_under_jit(made, x, sigma)
    everything = completed(_denoise, jnp.asarray(CENTER), jnp.ones(4, bool), _encode, _decode)(x, sigma)
    checks.same(
        jnp.asarray(everything), jnp.zeros_like(x), where="where all pixels are known", rtol=1e-4, atol=1e-4
    )

    def each(pixels, known):
        return completed(_denoise, pixels, known, _encode, _decode)(x, sigma)

    bright = np.where(np.arange(4) == 0, np.float32(2e5), 0)  # beyond float16
    many, masks = np.stack([PIXELS, -PIXELS, bright]), np.stack([KNOWN, ~KNOWN, KNOWN])
    elsewhere = np.array([[np.nan], [7], [np.nan]])  # which need not be NaN
    many = np.where(masks, np.nan_to_num(many), elsewhere).astype(np.float32)
    jax.block_until_ready(got := each(jnp.asarray(many), jnp.asarray(masks)))
    checks.same(
        got,
        jnp.asarray(_encode(np.where(masks, many, estimate))),
        where="with an image and a mask for each row",
        rtol=1e-4,
        atol=1e-4,
    )


exercise = Exercise(
    title="Complete an image of which a part is known",
    stars=2,
    minutes=10,
    why="No new training: what is known goes into the estimate at every noise level, and the sampler pulls the rest towards it.",
    hints=(
        "Estimate, then decode, then replace what is known, then encode.",
        "`jnp.where(known, pixels, decode(denoise(x, sigma)))` broadcasts over the rows.",
    ),
    solution=solution,
    check=check,
)
