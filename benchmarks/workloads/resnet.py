"""A small residual network for images: convolutions, normalization over the batch, and passes over memory."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks import loops
from benchmarks.workload import Workload

EPSILON, MOMENTUM, CLASSES = 1e-5, 0.9, 10
PADDING = ((1, 1), (1, 1))  # the same for all strides, as PyTorch has it


def weights(stages=((16, 2), (32, 2), (64, 1))):
    """For each stage its channels and blocks; the first block of all stages but one halves the size."""
    rng = np.random.default_rng(0)

    def conv(size, inputs, outputs):
        kernel = rng.normal(size=(size, size, inputs, outputs)) / np.sqrt(size * size * inputs / 2)
        return kernel.astype(np.float32)

    def norm(channels):
        return np.ones(channels, np.float32), np.zeros(channels, np.float32)

    channels, blocks = stages[0][0], []
    stem = conv(3, 1, channels), norm(channels)
    for outputs, depth in stages:
        for _ in range(depth):
            block = {
                "first": (conv(3, channels, outputs), norm(outputs)),
                "second": (conv(3, outputs, outputs), norm(outputs)),
            }
            if outputs != channels:
                block["shortcut"] = (conv(1, channels, outputs), norm(outputs))
            blocks.append(block)
            channels = outputs
    head = (rng.normal(size=(channels, CLASSES)) / np.sqrt(channels)).astype(np.float32)
    return {"stem": stem, "blocks": blocks, "head": (head, np.zeros(CLASSES, np.float32))}


def batch(size):
    rng = np.random.default_rng(1)
    images = rng.normal(size=(size, 28, 28, 1)).astype(np.float32)
    return images, rng.integers(CLASSES, size=size).astype(np.int32)


def options(name, kernel, block):
    """Stride and padding of a convolution, told by its name and its block."""
    stride = 2 if "shortcut" in block and name != "second" else 1
    return stride, PADDING if kernel.shape[0] == 3 else ((0, 0), (0, 0))


def mean_over_places(x):
    return jnp.mean(x, axis=(-3, -2))


def by_hand(weights):
    def convolve(x, kernel, stride, padding):
        layout = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(x, kernel, (stride, stride), padding, dimension_numbers=layout)

    def normalize(x, scale, bias, averages):
        mean, variance = jnp.mean(x, axis=(0, 1, 2)), jnp.var(x, axis=(0, 1, 2))
        averages = [MOMENTUM * old + (1 - MOMENTUM) * new for old, new in zip(averages, (mean, variance))]
        return (x - mean) * lax.rsqrt(variance + EPSILON) * scale + bias, averages

    def apply(weights, state, key, x):
        old, new = iter(state), []

        def both(x, name, block):
            kernel, pair = block[name]
            y, averages = normalize(convolve(x, kernel, *options(name, kernel, block)), *pair, next(old))
            new.append(averages)
            return y

        x = jax.nn.relu(both(x, "stem", weights))
        for block in weights["blocks"]:
            y = both(jax.nn.relu(both(x, "first", block)), "second", block)
            x = jax.nn.relu(y + (both(x, "shortcut", block) if "shortcut" in block else x))
        kernel, bias = weights["head"]
        return jnp.mean(x, axis=(1, 2)) @ kernel + bias, new

    pairs = [weights["stem"], *(block[name] for block in weights["blocks"] for name in block)]
    state = [[np.zeros_like(bias), np.ones_like(scale)] for _, (scale, bias) in pairs]
    return apply, weights, state


def ours(weights):
    from mlax_tutorial import nn

    def both(name, block):
        kernel, _ = block[name]
        size, _, _, channels = kernel.shape
        stride, padding = options(name, kernel, block)
        conv = nn.Conv(channels, (size, size), strides=stride, padding=padding)
        return [conv, nn.BatchNorm(epsilon=EPSILON, momentum=MOMENTUM, affine=True)]

    layers = [*both("stem", weights), nn.F(jax.nn.relu)]
    for block in weights["blocks"]:
        shortcut = nn.Series(*both("shortcut", block)) if "shortcut" in block else None
        body = nn.Series(*both("first", block), nn.F(jax.nn.relu), *both("second", block))
        layers += [nn.Residual(body, shortcut), nn.F(jax.nn.relu)]
    model = nn.Series(*layers, nn.F(mean_over_places), nn.Linear(CLASSES), nn.Bias())
    # Our kernels have the output channels in front; a dict's leaves come in the order of their names.
    leaves = [
        (kernel.transpose(3, 0, 1, 2), bias, scale) for kernel, (scale, bias) in named(weights).values()
    ]
    return model, jax.tree.leaves([*leaves, weights["head"]])


def flax_linen(weights):
    from flax import linen

    class ResNet(linen.Module):
        @linen.compact
        def __call__(self, x):
            def both(x, name, block, path):
                kernel, _ = block[name]
                stride, padding = options(name, kernel, block)
                size, _, _, channels = kernel.shape
                conv = linen.Conv(
                    channels, (size, size), stride, padding, use_bias=False, name=f"{path}_conv"
                )
                return linen.BatchNorm(
                    use_running_average=False, momentum=MOMENTUM, epsilon=EPSILON, name=f"{path}_norm"
                )(conv(x))

            x = jax.nn.relu(both(x, "stem", weights, "stem"))
            for i, block in enumerate(weights["blocks"]):
                y = jax.nn.relu(both(x, "first", block, f"{i}_first"))
                y = both(y, "second", block, f"{i}_second")
                if "shortcut" in block:
                    x = both(x, "shortcut", block, f"{i}_shortcut")
                x = jax.nn.relu(y + x)
            return linen.Dense(CLASSES, name="head")(jnp.mean(x, axis=(1, 2)))

    model, params, state = ResNet(), {"head": dict(zip(("kernel", "bias"), weights["head"]))}, {}
    for path, (kernel, (scale, bias)) in named(weights).items():
        params |= {f"{path}_conv": {"kernel": kernel}, f"{path}_norm": {"scale": scale, "bias": bias}}
        state[f"{path}_norm"] = {"mean": np.zeros_like(bias), "var": np.ones_like(scale)}

    def apply(params, state, key, x):
        y, changed = model.apply({"params": params, "batch_stats": state}, x, mutable="batch_stats")
        return y, changed["batch_stats"]

    return apply, params, state


def haiku(weights):
    import haiku as hk

    @hk.without_apply_rng
    @hk.transform_with_state
    def model(x):
        def both(x, name, block, path):
            kernel, _ = block[name]
            stride, padding = options(name, kernel, block)
            size, _, _, channels = kernel.shape
            x = hk.Conv2D(
                channels, size, stride, padding=list(padding), with_bias=False, name=f"{path}_conv"
            )(x)
            return hk.BatchNorm(True, True, decay_rate=MOMENTUM, eps=EPSILON, name=f"{path}_norm")(
                x, is_training=True
            )

        x = jax.nn.relu(both(x, "stem", weights, "stem"))
        for i, block in enumerate(weights["blocks"]):
            y = both(jax.nn.relu(both(x, "first", block, f"b{i}_first")), "second", block, f"b{i}_second")
            x = both(x, "shortcut", block, f"b{i}_shortcut") if "shortcut" in block else x
            x = jax.nn.relu(y + x)
        return hk.Linear(CLASSES, name="head")(jnp.mean(x, axis=(1, 2)))

    params = {"head": dict(zip(("w", "b"), weights["head"]))}
    for path, (kernel, (scale, bias)) in named(weights, "b").items():
        shape = (1, 1, 1, -1)
        params[f"{path}_conv"] = {"w": kernel}
        params[f"{path}_norm"] = {"scale": scale.reshape(shape), "offset": bias.reshape(shape)}
    image = jax.ShapeDtypeStruct((1, 28, 28, 1), jnp.float32)
    state = jax.tree.map(
        lambda leaf: np.zeros(leaf.shape, leaf.dtype), jax.eval_shape(model.init, jax.random.key(0), image)[1]
    )

    def apply(params, state, key, x):
        return model.apply(params, state, x)

    return apply, params, state


def named(weights, prefix=""):
    """Convolutions with their normalization, by path."""
    found = {"stem": weights["stem"]}
    for i, block in enumerate(weights["blocks"]):
        found |= {f"{prefix}{i}_{name}": both for name, both in block.items()}
    return found


def equinox(weights):
    import equinox as eqx

    key = jax.random.key(0)  # its draws are replaced

    class Both(eqx.Module):
        conv: eqx.nn.Conv2d
        norm: eqx.nn.BatchNorm

        def __init__(self, name, block):
            kernel, pair = block[name]
            stride, padding = options(name, kernel, block)
            size, _, inputs, outputs = kernel.shape
            conv = eqx.nn.Conv2d(inputs, outputs, size, stride, padding, use_bias=False, key=key)
            first = jnp.asarray(kernel.transpose(3, 2, 0, 1))
            self.conv = eqx.tree_at(lambda layer: layer.weight, conv, first)
            norm = eqx.nn.BatchNorm(outputs, "batch", EPSILON, momentum=MOMENTUM, mode="batch")
            pair = tuple(map(jnp.asarray, pair))
            self.norm = eqx.tree_at(lambda layer: (layer.weight, layer.bias), norm, pair)

        def __call__(self, x, state):
            return self.norm(self.conv(x), state)

    class Block(eqx.Module):
        first: Both
        second: Both
        shortcut: Both | None

        def __init__(self, block):
            self.first, self.second = Both("first", block), Both("second", block)
            self.shortcut = Both("shortcut", block) if "shortcut" in block else None

        def __call__(self, x, state):
            y, state = self.first(x, state)
            y, state = self.second(jax.nn.relu(y), state)
            if self.shortcut is not None:
                x, state = self.shortcut(x, state)
            return jax.nn.relu(y + x), state

    class ResNet(eqx.Module):
        stem: Both
        blocks: list
        head: eqx.nn.Linear

        def __init__(self):
            self.stem = Both("stem", weights)
            self.blocks = [Block(block) for block in weights["blocks"]]
            kernel, bias = map(jnp.asarray, weights["head"])
            head = eqx.nn.Linear(*kernel.shape, key=key)
            self.head = eqx.tree_at(lambda layer: (layer.weight, layer.bias), head, (kernel.T, bias))

        def __call__(self, x, state):
            x, state = self.stem(jnp.moveaxis(x, -1, 0), state)
            x = jax.nn.relu(x)
            for block in self.blocks:
                x, state = block(x, state)
            return self.head(jnp.mean(x, axis=(1, 2))), state

    def forward(model, state, key, x):
        return jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))(x, state)

    return forward, *eqx.nn.make_with_state(ResNet)()


def nnx(weights):
    from flax import nnx

    rngs = nnx.Rngs(0)  # its draws are replaced

    class Both(nnx.Module):
        def __init__(self, name, block):
            kernel, (scale, bias) = block[name]
            stride, padding = options(name, kernel, block)
            size, _, inputs, outputs = kernel.shape
            self.conv = nnx.Conv(
                inputs, outputs, (size, size), stride, padding=padding, use_bias=False, rngs=rngs
            )
            self.norm = nnx.BatchNorm(outputs, momentum=MOMENTUM, epsilon=EPSILON, rngs=rngs)
            self.conv.kernel[...] = jnp.asarray(kernel)
            self.norm.scale[...], self.norm.bias[...] = jnp.asarray(scale), jnp.asarray(bias)

        def __call__(self, x):
            return self.norm(self.conv(x))

    class Block(nnx.Module):
        def __init__(self, block):
            self.first, self.second = Both("first", block), Both("second", block)
            self.shortcut = Both("shortcut", block) if "shortcut" in block else None

        def __call__(self, x):
            y = self.second(jax.nn.relu(self.first(x)))
            return jax.nn.relu(y + (x if self.shortcut is None else self.shortcut(x)))

    class ResNet(nnx.Module):
        def __init__(self):
            self.stem = Both("stem", weights)
            self.blocks = nnx.List([Block(block) for block in weights["blocks"]])
            kernel, bias = weights["head"]
            self.head = nnx.Linear(*kernel.shape, rngs=rngs)
            self.head.kernel[...], self.head.bias[...] = jnp.asarray(kernel), jnp.asarray(bias)

        def __call__(self, x):
            x = jax.nn.relu(self.stem(x))
            for block in self.blocks:
                x = block(x)
            return self.head(jnp.mean(x, axis=(1, 2)))

    return ResNet()


WORKLOAD = Workload(
    name="resnet",
    about="an Adam step of a residual network of 101,000 weights, 128 images of 28 x 28",
    weights=weights,
    # With fewer than 8 channels, PyTorch's gradient of the shortcut hangs on AVX2 (oneDNN issue 6035).
    small=lambda: weights(((8, 1), (16, 1))),
    batch=lambda: batch(128),
    contenders=loops.contenders(by_hand, ours, flax_linen, haiku, equinox, nnx, algorithm=loops.ADAM),
    learning_rate=1e-3,
)
