"""Answers to the exercise normalization.masked."""

import jax
import jax.numpy as jnp

from mlax_tutorial.exercises.normalization.masked import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("divided by the number of all places")
def mean_of_zeros(x, mask):
    mask = mask[..., None]
    x = jnp.where(mask, x, 0.0)
    mean = x.mean((0, 1))
    y = jnp.where(mask, x - mean, 0.0)
    variance = (y**2).sum((0, 1)) / jnp.maximum(mask.sum(), 1)
    return y / jnp.sqrt(variance + 1e-5), mean, variance


@answers.wrong("over all places, padding, too")
def mask_ignored(x, mask):
    mean, variance = x.mean((0, 1)), x.var((0, 1))
    return jnp.where(mask[..., None], (x - mean) / jnp.sqrt(variance + 1e-5), 0.0), mean, variance


@answers.wrong("counts the padding")
def zeros_in_the_variance(x, mask):
    mask = mask[..., None]
    count = jnp.maximum(mask.sum(), 1)
    x = jnp.where(mask, x, 0.0)
    mean = x.sum((0, 1)) / count
    variance = ((x - mean) ** 2).sum((0, 1)) / count
    return jnp.where(mask, (x - mean) / jnp.sqrt(variance + 1e-5), 0.0), mean, variance


@answers.wrong("Where the mask is false y should be zero")
def not_zero_outside(x, mask):
    mask = mask[..., None]
    count = jnp.maximum(mask.sum(), 1)
    x = jnp.where(mask, x, 0.0)
    mean = x.sum((0, 1)) / count
    variance = (jnp.where(mask, x - mean, 0.0) ** 2).sum((0, 1)) / count
    return (x - mean) / jnp.sqrt(variance + 1e-5), mean, variance


@answers.wrong("either times zero is NaN")
def by_products(x, mask):
    real = mask[..., None].astype(x.dtype)
    count = jnp.maximum(real.sum(), 1)
    mean = (x * real).sum((0, 1)) / count
    y = (x - mean) * real
    variance = (y**2).sum((0, 1)) / count
    return y / jnp.sqrt(variance + 1e-5), mean, variance


@answers.wrong("the gradient is NaN")
def chosen_too_late(x, mask):
    mask = mask[..., None]
    count = jnp.maximum(mask.sum(), 1)
    mean = jnp.where(mask, x, 0.0).sum((0, 1)) / count
    variance = jnp.where(mask, (x - mean) ** 2, 0.0).sum((0, 1)) / count
    return jnp.where(mask, (x - mean) / jnp.sqrt(variance + 1e-5), 0.0), mean, variance


@answers.wrong("at least by 1")
def nothing_is_real(x, mask):
    mask = mask[..., None]
    count = mask.sum()
    x = jnp.where(mask, x, 0.0)
    mean = x.sum((0, 1)) / count
    y = jnp.where(mask, x - mean, 0.0)
    variance = (y**2).sum((0, 1)) / count
    return y / jnp.sqrt(variance + 1e-5), mean, variance


@answers.wrong("unbiased")
def unbiased(x, mask):
    mask = mask[..., None]
    count = jnp.maximum(mask.sum(), 2)
    x = jnp.where(mask, x, 0.0)
    mean = x.sum((0, 1)) / count
    y = jnp.where(mask, x - mean, 0.0)
    variance = (y**2).sum((0, 1)) / (count - 1)
    return y / jnp.sqrt(variance + 1e-5), mean, variance


# Wrong ones that look right


@answers.wrong("three arrays")
def output_alone(x, mask):
    return jnp.where(mask[..., None], x, 0.0)


@answers.wrong()
def selected(x, mask):  # shapes that depend on values: not under jit
    real = x[mask]
    mean, variance = real.mean(0), real.var(0)
    return jnp.where(mask[..., None], (x - mean) / jnp.sqrt(variance + 1e-5), 0.0), mean, variance


def by_formula(x, mask, formula):
    real = mask[..., None]
    count = jnp.maximum(real.sum(), 1)
    x = jnp.where(real, x, 0.0)
    mean = x.sum((0, 1)) / count
    far = jnp.where(real, x - mean, 0.0)
    variance = (far**2).sum((0, 1)) / count
    return formula(far, variance), mean, variance


@answers.wrong("is epsilon 1e-5")
def epsilon_outside(x, mask):
    return by_formula(x, mask, lambda far, variance: far / (jnp.sqrt(variance) + 1e-5))


@answers.wrong("is epsilon 1e-5")
def another_epsilon(x, mask):
    return by_formula(x, mask, lambda far, variance: far / jnp.sqrt(variance + 1e-6))


@answers.wrong("is epsilon 1e-5")
def without_epsilon(x, mask):
    def formula(far, variance):
        return far / jnp.sqrt(jnp.where(variance == 0, 1, variance))

    return by_formula(x, mask, formula)


@answers.wrong("not the gradient by x")
def variance_fixed(x, mask):
    return by_formula(x, mask, lambda far, variance: far / jnp.sqrt(jax.lax.stop_gradient(variance) + 1e-5))


@answers.wrong("not the gradient by x")
def mean_fixed(x, mask):
    mean = jax.lax.stop_gradient(by_formula(x, mask, lambda far, variance: far)[1])
    far = jnp.where(mask[..., None], x - mean, 0.0)
    variance = (far**2).sum((0, 1)) / jnp.maximum(mask.sum(), 1)
    return far / jnp.sqrt(variance + 1e-5), mean, variance


@answers.wrong("loses its digits")
def one_pass(x, mask):
    real = mask[..., None]
    count = jnp.maximum(real.sum(), 1)
    x = jnp.where(real, x, 0.0)
    mean = x.sum((0, 1)) / count
    variance = (x**2).sum((0, 1)) / count - mean**2
    return jnp.where(real, (x - mean) / jnp.sqrt(jnp.maximum(variance, 0) + 1e-5), 0.0), mean, variance


@answers.wrong("either times zero is NaN")
def mends_only_nan(x, mask):
    return by_products(jnp.where(jnp.isnan(x) & ~mask[..., None], 0.0, x), mask)


@answers.wrong("The mean is wrong")
def as_lengths(x, mask):  # as if only the end of a sentence were padding
    mask = jnp.arange(x.shape[1]) < mask.sum(1)[:, None]
    return by_formula(x, mask, lambda far, variance: far / jnp.sqrt(variance + 1e-5))


@answers.wrong("a fault in the data goes unnoticed")
def hides_nan(x, mask):
    return by_formula(jnp.nan_to_num(x), mask, lambda far, variance: far / jnp.sqrt(variance + 1e-5))


@answers.wrong("`y` should have the shape")
def in_another_order(x, mask):
    y, mean, variance = by_formula(x, mask, lambda far, variance: far / jnp.sqrt(variance + 1e-5))
    return mean, variance, y


# Right ones of unusual style


@answers.right
def by_numpy_s_where(x, mask):
    real = mask[:, :, None]
    n = mask.sum().clip(1)
    mean = x.sum((0, 1), where=real) / n
    x = jnp.where(real, x, mean)
    variance = jnp.sum((x - mean) ** 2, (0, 1)) / n
    return (x - mean) / (variance + 1e-5) ** 0.5, mean, variance


@answers.right
def flattened(x, mask):
    flat, real = x.reshape(-1, x.shape[-1]), mask.reshape(-1, 1)
    flat = jnp.where(real, flat, 0.0)
    count = jnp.maximum(jnp.sum(real), 1)
    mean = flat.sum(0) / count
    far = jnp.where(real, flat - mean, 0.0)
    variance = (far * far).sum(0) / count
    return (far / jnp.sqrt(variance + 1e-5)).reshape(x.shape), mean, variance


@answers.right
def by_weights(x, mask):
    weights = mask / jnp.maximum(mask.sum(), 1)
    x = jnp.where(mask[..., None], x, 0.0)
    mean = jnp.einsum("bl,blf->f", weights, x, precision="highest")
    far = jnp.where(mask[..., None], x - mean, 0.0)
    variance = jnp.einsum("bl,blf->f", weights, far**2, precision="highest")
    return far / jnp.sqrt(variance + 1e-5), mean, variance


@answers.right
def as_a_list(x, mask):
    return list(by_weights(x, mask))


@answers.right
@jax.jit
def jitted(x, mask):
    return by_weights(x, mask)


@answers.wrong("The mean is wrong")
def each_sentence_alone(x, mask):
    count = jnp.maximum(mask.sum(1), 1)[:, None]
    x = jnp.where(mask[..., None], x, 0)
    return x, (x.sum(1) / count).mean(0), x.var((0, 1))


@answers.wrong("Where a single place is real")
def at_least_two(x, mask):
    mask = mask[..., None]
    count = jnp.maximum(mask.sum(), 2)
    x = jnp.where(mask, x, 0.0)
    mean = x.sum((0, 1)) / count
    centered = jnp.where(mask, x - mean, 0.0)
    variance = (centered**2).sum((0, 1)) / count
    return centered / jnp.sqrt(variance + 1e-5), mean, variance
