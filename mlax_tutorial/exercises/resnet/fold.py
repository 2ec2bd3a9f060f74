"""Fold each batch norm into the convolution before it."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.resnet._reference import close, filled, waves


def solution(model, trainables, non_trainables):
    layers, weights, rest = [], [], []
    for layer, given, averages in zip(model.layers, trainables, non_trainables):
        if isinstance(layer, nn.BatchNorm) and layers and isinstance(layers[-1], nn.Conv):
            factor = given["scale"] / jnp.sqrt(averages["variance"] + layer.epsilon)
            kernel = weights[-1]["kernel"]
            weights[-1] = {"kernel": kernel * factor[:, None, None, None]}
            layer, given = nn.Bias(), {"bias": given["bias"] - averages["mean"] * factor}
            averages = ()
        layers.append(layer)
        weights.append(given)
        rest.append(averages)
    return nn.Series(*layers), tuple(weights), tuple(rest)


def check(fold):
    relu = nn.F(jax.nn.relu)

    def conv(channels, size=3, **options):
        return nn.Conv(channels, (size, size), padding=size // 2, **options)

    norm = nn.BatchNorm(epsilon=0.25, affine=True)  # epsilons that count
    other = nn.BatchNorm(epsilon=0.75, affine=True)
    _one(fold, nn.Series(conv(3), norm), waves(2, 4, 4, 2))
    _one(fold, nn.Series(conv(3), norm, relu, conv(3, strides=2), other, relu), waves(2, 4, 4, 3))
    _one(fold, nn.Series(norm, relu, conv(3, 1), relu, norm, conv(2, 1)), waves(2, 4, 4, 3))
    _one(fold, nn.Series(conv(3, 1), relu, norm), waves(2, 4, 4, 3))
    _one(fold, nn.Series(nn.Linear(3), norm, relu, conv(2, 1)), waves(2, 4, 4, 3))
    _one(fold, nn.Series(other, conv(3, 1), norm, other, relu, norm), waves(2, 4, 4, 3))


def _one(fold, model, x):
    outlines = jax.eval_shape(model.init, jax.random.key(0), x)
    trainables, non_trainables = filled(outlines)
    before = jax.tree.map(lambda leaf: leaf, (trainables, non_trainables))
    shown = {"input": {"model": model}}
    got = fold(model, trainables, non_trainables)
    same = jax.tree.structure((trainables, non_trainables)) == jax.tree.structure(before)
    leaves = zip(jax.tree.leaves((trainables, non_trainables)), jax.tree.leaves(before))
    if not same or any(one is not two for one, two in leaves):
        raise Failed("Your function changes the trees that it is given: build new ones.", **shown)
    if not isinstance(got, tuple) or len(got) != 3:
        raise Failed(
            "Return three things: the new model, its trainables and its non_trainables.", got=got, **shown
        )
    folded, weights, rest = got
    if not isinstance(folded, nn.Series):
        raise Failed("The first thing should be the new model, an `nn.Series`.", got=folded, **shown)
    right, right_weights, _ = solution(model, *before)
    _layers(folded, right, model, shown)
    _runs(folded, weights, rest, x, shown)
    if any(isinstance(layer, nn.Bias) and jax.tree.leaves(one) for layer, one in zip(folded.layers, rest)):
        raise Failed("The non-trainables still hold statistics of a norm that is gone: those of a Bias are `()`.", got=rest, **shown)  # fmt: skip
    wanted, _ = model.fwd(x, *before, inference_mode=True)
    y, _ = folded.fwd(x, weights, rest, inference_mode=True)
    if jnp.shape(y) != wanted.shape or not close(y, wanted, 1e-3):
        for said, wrong in _mistakes(model, *before):
            made, _ = wrong[0].fwd(x, *wrong[1:], inference_mode=True)
            if jnp.shape(y) == made.shape and close(y, made, 1e-3):
                raise Failed(said, expected=wanted, got=y, **shown)
        raise Failed(
            "The folded model computes something else. Which axis of the kernel, `(out, height, width, in)`, does a channel of the norm "
            "belong to?",
            expected=wanted,
            got=y,
            **shown,
        )
    for (path, one), two in zip(jax.tree_util.tree_leaves_with_path(weights), jax.tree.leaves(right_weights)):
        if jnp.shape(one) != two.shape or one.dtype != two.dtype:
            raise Failed(
                f"`trainables{jax.tree_util.keystr(path)}` should be {two.dtype}{list(two.shape)}, as before, and is "
                f"{one.dtype}{list(jnp.shape(one))}.",
                **shown,
            )


def _layers(folded, right, model, shown):
    """Which layers the new model has: norms directly after a convolution become biases, the others stay."""
    if folded.layers == right.layers:
        return
    kinds = [type(layer).__name__ for layer in folded.layers]
    if right.layers == model.layers:
        linear = any(isinstance(layer, nn.Linear) for layer in model.layers)
        raise Failed(
            "In this model no norm stands directly after a convolution, so nothing is to be folded: "
            + ("an `nn.Linear` is none." if linear else "after a ReLU the scale no longer passes through."),
            got=folded,
            **shown,
        )
    if len(kinds) != len(right.layers):
        raise Failed(
            "A norm that is folded leaves one `nn.Bias()` in its place, and no layer is dropped or added.",
            expected=right,
            got=folded,
            **shown,
        )
    for i, (layer, one, old) in enumerate(zip(folded.layers, right.layers, model.layers)):
        if layer == one:
            continue
        if isinstance(one, nn.Bias):
            said = "A batch norm is left that stands directly after a convolution." if layer == old else "A norm that is folded becomes an `nn.Bias()`."  # fmt: skip
        elif isinstance(old, nn.BatchNorm):
            said = "A norm is folded that does not stand directly after a convolution: it stays, and keeps its averages."
        else:
            said = f"`layers[{i}]` is another than before: all layers but the folded norms stay as they are."
        raise Failed(said, expected=right, got=folded, **shown)


def _runs(folded, weights, rest, x, shown):
    try:
        folded.fwd(x, weights, rest, inference_mode=True)
    except nn.LayerError as error:
        raise Failed(f"The new variables do not fit the new model: {error}", **shown) from None


def _mistakes(model, trainables, non_trainables):
    """Models folded wrongly, each with what is to be said."""

    def folded(change):
        layers, weights, rest = [], [], []
        for layer, given, averages in zip(model.layers, trainables, non_trainables):
            if isinstance(layer, nn.BatchNorm) and layers and isinstance(layers[-1], nn.Conv):
                kernel, bias = change(weights[-1]["kernel"], given, averages, layer.epsilon)
                weights[-1] = {"kernel": kernel}
                layer, given, averages = nn.Bias(), {"bias": bias}, ()
            layers.append(layer)
            weights.append(given)
            rest.append(averages)
        return nn.Series(*layers), tuple(weights), tuple(rest)

    def variant(*, axis=0, epsilon=None, square=False, mean=True, scaled_mean=True, scale=True, bias=True):
        def change(kernel, given, averages, own):
            variance, added = averages["variance"], own if epsilon is None else epsilon
            factor = (given["scale"] if scale else 1) / (variance + added) ** (1 if square else 0.5)
            shift = averages["mean"] * (factor if scaled_mean else 1) if mean else 0
            shape = [1, 1, 1, 1]
            shape[axis] = -1
            if kernel.shape[axis] != factor.size:
                return kernel * 0, given["bias"] * 0
            return kernel * factor.reshape(shape), (given["bias"] if bias else 0) - shift

        return folded(change)

    yield (
        "The kernel is multiplied along its last axis, the channels that come *in*: the norm's are those that go out, axis 0.",
        variant(axis=3),
    )
    yield (
        "Epsilon is left out, or is not the layer's own: it is `layer.epsilon`, and is added to the variance under the root.",
        variant(epsilon=1e-5),
    )
    epsilons = [layer.epsilon for layer in model.layers if isinstance(layer, nn.BatchNorm)]
    for place, which in ((0, "first"), (-1, "last")):
        yield (
            f"The epsilon of the model's {which} norm is used for all norms: each has its own, `layer.epsilon`.",
            variant(epsilon=epsilons[place]),
        )
    yield "The kernel is divided by the variance: divide by its root.", variant(square=True)
    yield "The running mean is left out: it moves into the bias.", variant(mean=False)
    yield (
        "The running mean goes into the bias as it is: it is multiplied by the same factor as the kernel.",
        variant(scaled_mean=False),
    )
    yield "The norm's scale is left out.", variant(scale=False)
    yield "The norm's bias is left out.", variant(bias=False)


exercise = Exercise(
    title="Fold batch norm into the convolution",
    stars=3,
    minutes=20,
    why="In inference a norm is a multiplication and an addition by constants, and a convolution can swallow both.",
    hints=(
        "Go through `zip(model.layers, trainables, non_trainables)`, and build three new lists. When a BatchNorm comes and the last "
        "layer in your list is a Conv, change that layer's kernel and append a Bias in the norm's place.",
        "`factor = scale / jnp.sqrt(variance + layer.epsilon)`, one number for each channel that goes out, which is axis 0 of the kernel.",
        "The kernel becomes `kernel * factor[:, None, None, None]`, the bias `bias - mean * factor`; the non_trainables there are `()`.",
    ),
    solution=solution,
    check=check,
)
