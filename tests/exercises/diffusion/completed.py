"""Answers to the exercise diffusion.completed."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.diffusion.completed import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("These are pixels")
def in_pixels(denoise, pixels, known, encode, decode):
    return lambda x, sigma: jnp.where(known, pixels, decode(denoise(x, sigma)))


@answers.wrong("The known pixels have no effect")
def forgets(denoise, pixels, known, encode, decode):
    return denoise


@answers.wrong("put them into the denoiser's estimate")
def before(denoise, pixels, known, encode, decode):
    return lambda x, sigma: denoise(encode(jnp.where(known, pixels, decode(x))), sigma)


@answers.wrong("The rest comes from the noisy `x`")
def without_denoising(denoise, pixels, known, encode, decode):
    return lambda x, sigma: encode(jnp.where(known, pixels, decode(x)))


@answers.wrong("reaches the result, here a NaN")
def multiplies(denoise, pixels, known, encode, decode):
    def made(x, sigma):
        return encode(known * pixels + (1 - known) * decode(denoise(x, sigma)))

    return made


@answers.wrong("reaches the result, here a NaN")
def exchanged(denoise, pixels, known, encode, decode):
    return lambda x, sigma: encode(jnp.where(known, decode(denoise(x, sigma)), pixels))


@answers.wrong("a function of `(x, sigma)`")
def at_once(denoise, pixels, known, encode, decode):
    return encode(jnp.where(known, pixels, decode(denoise(jnp.ones((3, 2)), 1.0))))


@answers.wrong("`return` missing")
def nothing(denoise, pixels, known, encode, decode):
    def made(x, sigma):
        return encode(jnp.where(known, pixels, decode(denoise(x, sigma))))


@answers.wrong()
def the_first_image_alone(denoise, pixels, known, encode, decode):
    pixels, known = jnp.atleast_2d(pixels)[0], jnp.atleast_2d(known)[0]
    return lambda x, sigma: encode(jnp.where(known, pixels, decode(denoise(x, sigma))))


@answers.wrong()
def known_unless_nan(denoise, pixels, known, encode, decode):
    return lambda x, sigma: encode(jnp.where(jnp.isnan(pixels), decode(denoise(x, sigma)), pixels))


@answers.wrong("could not be called as the exercise calls it")
def of_a_label_too(denoise, pixels, known, encode, decode):
    return lambda x, sigma, label: encode(jnp.where(known, pixels, decode(denoise(x, sigma))))


# Right ones of unusual style


@answers.right
def with_a_class(denoise, pixels, known, encode, decode):
    class Completed:
        def __call__(self, x, sigma):
            estimate = decode(denoise(x, sigma))
            pixels_, known_ = jnp.broadcast_arrays(pixels, known, estimate)[:2]
            return encode(jax.lax.select(known_, pixels_, estimate))

    return Completed()


@answers.right
def cleaned_first(denoise, pixels, known, encode, decode):
    clean = jnp.where(known, pixels, 0)
    return lambda x, sigma: encode(clean + (1 - known) * decode(denoise(x, sigma)))
