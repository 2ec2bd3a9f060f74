"""Answers to the exercise diffusion.guided."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.diffusion.guided import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def by(combine, none=10):
    def guided(denoise, weight):
        def made(x, sigma, label):
            return combine(denoise(x, sigma, label), denoise(x, sigma, jnp.full_like(label, none)), weight)

        return made

    return guided


answers.wrong("theirs is one less than ours")(by(lambda c, u, w: (1 + w) * c - w * u))
answers.wrong("leads away from the class")(by(lambda c, u, w: c + w * (u - c)))
answers.wrong("The weight has no effect")(by(lambda c, u, w: c))
answers.wrong("This is the unconditional denoiser")(by(lambda c, u, w: u))
answers.wrong("Label 0 is a class")(by(lambda c, u, w: u + w * (c - u), none=0))
answers.wrong("the two weights must sum to 1")(by(lambda c, u, w: w * c - u))
answers.wrong("scales the whole estimate")(by(lambda c, u, w: w * c))


@answers.wrong("a function of `(x, sigma, label)`")
def at_once(denoise, weight):
    return denoise(jnp.ones((3, 2)), 1.0, jnp.zeros(3, jnp.int32))


@answers.wrong("`return` missing")
def nothing(denoise, weight):
    by(lambda c, u, w: u + w * (c - u))(denoise, weight)


@answers.wrong("an embedding refuses it")
def label_of_floats(denoise, weight):
    def made(x, sigma, label):
        without = denoise(x, sigma, jnp.full(label.shape, 10.0))
        return without + weight * (denoise(x, sigma, label) - without)

    return made


@answers.wrong("could not be called as the exercise calls it")
def without_a_label(denoise, weight):
    return lambda x, sigma: denoise(x, sigma, 10)


# Right ones of unusual style


@answers.right
def one_label_for_all(denoise, weight):
    def made(x, sigma, label):
        without = denoise(x, sigma, 10)
        return without + weight * (denoise(x, sigma, label) - without)

    return made


@answers.right
def in_one_batch(denoise, weight):
    def made(x, sigma, label):
        both = denoise(jnp.concatenate([x, x]), sigma, jnp.concatenate([label, 0 * label + 10]))
        conditional, without = jnp.split(both, 2)
        return weight * conditional + (1 - weight) * without

    return made


@answers.right
def by_vmap(denoise, weight):
    def made(x, sigma, label):
        labels = jnp.stack([label, jnp.full_like(label, 10)])
        conditional, without = jax.vmap(denoise, in_axes=(None, None, 0))(x, sigma, labels)
        return conditional + (weight - 1) * (conditional - without)

    return made


def keeping(which, by=lambda x, sigma, label: 0):
    def guided(denoise, weight):
        kept = {}

        def once(name, x, sigma, label):
            place = (name, by(x, sigma, label))
            if name not in which:
                return denoise(x, sigma, label)
            if place not in kept:
                kept[place] = denoise(x, sigma, label)
            return kept[place]

        def made(x, sigma, label):
            without = once("without", x, sigma, jnp.full_like(label, 10))
            return without + weight * (once("with", x, sigma, label) - without)

        return made

    return guided


answers.wrong("an estimate is kept from the first one")(keeping(["without"]))
answers.wrong("an estimate is kept from the first one")(keeping(["with"]))
answers.wrong("an estimate is kept from the first one")(keeping(["with", "without"]))
answers.wrong("an estimate is kept from the first one")(
    keeping(["without"], lambda x, sigma, label: str(sigma))
)
answers.wrong("an estimate is kept from the first one")(keeping(["without"], lambda x, sigma, label: str(x)))
answers.wrong("an estimate is kept from the first one")(
    keeping(["with"], lambda x, sigma, label: f"{x} {sigma}")
)
