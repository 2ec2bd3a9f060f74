"""Answers to the exercise resnet.fold."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.exercises.resnet.fold import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def walk(model, trainables, non_trainables, merge, directly=True):
    layers, weights, rest = [], [], []
    for layer, given, averages in zip(model.layers, trainables, non_trainables):
        after = [type(layer) for layer in layers if directly or not isinstance(layer, nn.F)]
        if isinstance(layer, nn.BatchNorm) and after and after[-1] is nn.Conv:
            place = max(i for i, layer in enumerate(layers) if isinstance(layer, nn.Conv))
            kernel, bias = merge(weights[place]["kernel"], given, averages, layer.epsilon)
            weights[place] = {"kernel": kernel}
            layer, given, averages = nn.Bias(), {"bias": bias}, ()
        layers.append(layer)
        weights.append(given)
        rest.append(averages)
    return nn.Series(*layers), tuple(weights), tuple(rest)


def factor(given, averages, epsilon):
    return given["scale"] / jnp.sqrt(averages["variance"] + epsilon)


def right(kernel, given, averages, epsilon):
    f = factor(given, averages, epsilon)
    return kernel * f[:, None, None, None], given["bias"] - averages["mean"] * f


@answers.wrong()
def where_a_convolution_is_first(model, *trees):
    first = isinstance(model.layers[0], nn.Conv)
    return walk(model, *trees, right, directly=not first)


@answers.wrong("the channels that come *in*")
def last_axis(*args):
    def merge(kernel, given, averages, epsilon):
        f = factor(given, averages, epsilon)
        if kernel.shape[-1] != f.size:
            return right(kernel, given, averages, epsilon)
        return kernel * f, given["bias"] - averages["mean"] * f

    return walk(*args, merge)


@answers.wrong("Epsilon is left out")
def usual_epsilon(*args):
    return walk(*args, lambda *four: right(*four[:3], 1e-5))


@answers.wrong("Epsilon is left out")
def no_epsilon(*args):
    return walk(*args, lambda *four: right(*four[:3], 0.0))


@answers.wrong("divided by the variance")
def by_the_variance(*args):
    def merge(kernel, given, averages, epsilon):
        f = given["scale"] / (averages["variance"] + epsilon)
        return kernel * f[:, None, None, None], given["bias"] - averages["mean"] * f

    return walk(*args, merge)


@answers.wrong("The running mean is left out")
def no_mean(*args):
    return walk(*args, lambda kernel, given, *two: (right(kernel, given, *two)[0], given["bias"]))


@answers.wrong("as it is")
def raw_mean(*args):
    def merge(kernel, given, averages, epsilon):
        return right(kernel, given, averages, epsilon)[0], given["bias"] - averages["mean"]

    return walk(*args, merge)


@answers.wrong("The norm's bias is left out")
def no_bias(*args):
    def merge(kernel, given, averages, epsilon):
        kernel, bias = right(kernel, given, averages, epsilon)
        return kernel, bias - given["bias"]

    return walk(*args, merge)


@answers.wrong("after a ReLU the scale no longer")
def through_the_relu(*args):
    return walk(*args, right, directly=False)


@answers.wrong("A batch norm is left")
def first_pair_only(model, trainables, non_trainables):
    first, weights, rest = walk(nn.Series(*model.layers[:2]), trainables[:2], non_trainables[:2], right)
    return nn.Series(*first.layers, *model.layers[2:]), weights + trainables[2:], rest + non_trainables[2:]


@answers.wrong("do not fit the new model")
def forgets_the_rest(*args):
    model, weights, _ = walk(*args, right)
    return model, weights[:-1], ()


@answers.wrong("Return three things")
def two_things(*args):
    return walk(*args, right)[:2]


# Right ones of unusual style


@answers.right
def by_einsum(*args):
    def merge(kernel, given, averages, epsilon):
        f = given["scale"] * jax.lax.rsqrt(averages["variance"] + epsilon)
        return jnp.einsum("ohwi,o->ohwi", kernel, f), given["bias"] - f * averages["mean"]

    return walk(*args, merge)


@answers.right
def by_two_evaluations(*args):
    """The norm is linear in its input: what it makes of 0 is the bias, what it makes of 1 besides is the factor."""

    def merge(kernel, given, averages, epsilon):
        norm = nn.BatchNorm(epsilon=epsilon, affine=True)

        def at(value):
            x = jnp.full((1, len(given["bias"])), value)
            return norm.fwd(x, given, averages, inference_mode=True)[0][0]

        bias = at(0.0)
        return kernel * (at(1.0) - bias)[:, None, None, None], bias

    return walk(*args, merge)


@answers.right
def by_recursion(model, trainables, non_trainables):
    layers = list(zip(model.layers, trainables, non_trainables))

    def fold(items):
        if len(items) < 2:
            return items
        (conv, kernel, nothing), (norm, given, averages), *others = items
        if isinstance(conv, nn.Conv) and isinstance(norm, nn.BatchNorm):
            kernel, bias = right(kernel["kernel"], given, averages, norm.epsilon)
            return [(conv, {"kernel": kernel}, nothing), (nn.Bias(), {"bias": bias}, ()), *fold(others)]
        return [items[0], *fold(items[1:])]

    parts = tuple(zip(*fold(layers)))
    return nn.Series(*parts[0]), *parts[1:]


@answers.wrong("statistics of a norm that is gone")
def keeps_statistics(model, trainables, non_trainables):
    folded, weights, _ = walk(model, trainables, non_trainables, right)
    return folded, weights, non_trainables


@answers.wrong("an `nn.Linear` is none")
def after_a_linear_too(model, trainables, non_trainables):
    layers, weights, rest = [], [], []
    for layer, given, averages in zip(model.layers, trainables, non_trainables):
        if isinstance(layer, nn.BatchNorm) and layers and isinstance(layers[-1], (nn.Conv, nn.Linear)):
            f, kernel = factor(given, averages, layer.epsilon), weights[-1]["kernel"]
            weights[-1] = {"kernel": kernel * (f[:, None, None, None] if kernel.ndim == 4 else f)}
            layer, given, averages = nn.Bias(), {"bias": given["bias"] - averages["mean"] * f}, ()
        layers.append(layer)
        weights.append(given)
        rest.append(averages)
    return nn.Series(*layers), tuple(weights), tuple(rest)


@answers.wrong("an `nn.Linear` is none")
def after_anything_with_a_kernel(model, trainables, non_trainables):
    layers, weights, rest = [], [], []
    for layer, given, averages in zip(model.layers, trainables, non_trainables):
        if isinstance(layer, nn.BatchNorm) and weights and "kernel" in weights[-1]:
            f = factor(given, averages, layer.epsilon)
            weights[-1] = {"kernel": weights[-1]["kernel"] * f[:, None, None, None]}
            layer, given, averages = nn.Bias(), {"bias": given["bias"] - averages["mean"] * f}, ()
        layers.append(layer)
        weights.append(given)
        rest.append(averages)
    return nn.Series(*layers), tuple(weights), tuple(rest)


def epsilon_of(place):
    def fold(model, *trees):
        epsilons = [layer.epsilon for layer in model.layers if isinstance(layer, nn.BatchNorm)]
        return walk(model, *trees, lambda *four: right(*four[:3], epsilons[place] if epsilons else 0))

    return fold


answers.wrong("The epsilon of the model's first norm")(epsilon_of(0))
answers.wrong("The epsilon of the model's last norm")(epsilon_of(-1))


@answers.wrong("is another than before")
def makes_convolutions_anew(*args):
    model, weights, rest = walk(*args, right)
    layers = [
        nn.Conv(layer.out_channels, layer.filter_shape, padding=layer.filter_shape[0] // 2)
        if isinstance(layer, nn.Conv)
        else layer
        for layer in model.layers
    ]
    return nn.Series(*layers), weights, rest


@answers.wrong("becomes an `nn.Bias()`")
def scale_and_bias_in_one(*args):
    model, weights, rest = walk(*args, right)
    layers = [nn.Linear(3) if isinstance(layer, nn.Bias) else layer for layer in model.layers]
    return nn.Series(*layers), weights, rest


@answers.wrong("no layer is dropped or added")
def without_a_bias(*args):
    model, weights, rest = walk(*args, right)
    kept = [i for i, layer in enumerate(model.layers) if not isinstance(layer, nn.Bias)]
    return (
        nn.Series(*(model.layers[i] for i in kept)),
        tuple(weights[i] for i in kept),
        tuple(rest[i] for i in kept),
    )


@answers.wrong("is folded that does not stand directly")
def two_norms_in_a_row(model, trainables, non_trainables):
    layers, weights, rest = [], [], []
    for layer, given, averages in zip(model.layers, trainables, non_trainables):
        if isinstance(layer, nn.BatchNorm) and layers and isinstance(layers[-1], (nn.Conv, nn.Bias)):
            place = max(i for i, one in enumerate(layers) if isinstance(one, nn.Conv))
            f = factor(given, averages, layer.epsilon)
            weights[place] = {"kernel": weights[place]["kernel"] * f[:, None, None, None]}
            if isinstance(layers[-1], nn.Bias):
                weights[-1] = {"bias": weights[-1]["bias"] * f}
            layer, given, averages = nn.Bias(), {"bias": given["bias"] - averages["mean"] * f}, ()
        layers.append(layer)
        weights.append(given)
        rest.append(averages)
    return nn.Series(*layers), tuple(weights), tuple(rest)


@answers.wrong("as before, and is float16")
def biases_in_half(*args):
    model, weights, rest = walk(*args, right)
    half = [{"bias": one["bias"].astype(jnp.float16)} if set(one) == {"bias"} else one for one in weights]
    return model, tuple(half), rest


@answers.wrong("do not fit the new model")
def no_statistics_at_all(*args):
    model, weights, rest = walk(*args, right)
    return model, weights, ((),) * len(rest)


@answers.right
def in_numpy(*args):
    def merge(kernel, given, averages, epsilon):
        deviation = np.sqrt(np.asarray(averages["variance"]) + np.float32(epsilon))
        f = np.asarray(given["scale"]) / deviation
        return np.asarray(kernel) * f.reshape(-1, 1, 1, 1), np.asarray(given["bias"]) - averages["mean"] * f

    return walk(*args, merge)


@answers.right
def transposed(*args):
    def merge(kernel, given, averages, epsilon):
        f = factor(given, averages, epsilon)
        return (kernel.T * f).T, given["bias"] - averages["mean"] * f

    return walk(*args, merge)


@answers.right
def jitted_in_part(*args):
    return walk(
        *args, lambda kernel, given, averages, epsilon: jax.jit(right)(kernel, given, averages, epsilon)
    )
