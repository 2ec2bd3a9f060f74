"""A Transformer encoder that classifies sequences: products of matrices, attention, normalization, many random bits.

Normalization comes first in each residual branch. Biases and dropout stand where PyTorch's encoder layer has them: biases in the
four projections of attention, dropout on the weights of attention, after it, after the activation, and after the block.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from benchmarks import loops
from benchmarks.workload import Workload

HEADS, RATE, EPSILON = 6, 0.1, 1e-5
PROJECTIONS = "query", "key", "value", "out"
VOCABULARY, LENGTH, CLASSES = 1000, 128, 10


def weights(width=192, depth=3):
    rng = np.random.default_rng(0)

    def normal(*shape, fan_in):
        return (rng.normal(size=shape) / np.sqrt(fan_in)).astype(np.float32)

    def norm():
        return np.ones(width, np.float32), np.zeros(width, np.float32)

    head_dim = width // HEADS
    return {
        "embed": normal(VOCABULARY, width, fan_in=1),
        "positions": normal(LENGTH, width, fan_in=1),
        "blocks": [
            {
                "attention_norm": norm(),
                **{
                    f"{name}_kernel": normal(width, HEADS, head_dim, fan_in=width) for name in PROJECTIONS[:3]
                },
                "out_kernel": normal(HEADS, head_dim, width, fan_in=width),
                **{f"{name}_bias": normal(HEADS, head_dim, fan_in=width) for name in PROJECTIONS[:3]},
                "out_bias": normal(width, fan_in=width),
                "dense_norm": norm(),
                "wide": (normal(width, 4 * width, fan_in=width), np.zeros(4 * width, np.float32)),
                "narrow": (normal(4 * width, width, fan_in=4 * width), np.zeros(width, np.float32)),
            }
            for _ in range(depth)
        ],
        "norm": norm(),
        "head": (normal(width, CLASSES, fan_in=width), np.zeros(CLASSES, np.float32)),
    }


def batch(size):
    rng = np.random.default_rng(1)
    ids = rng.integers(VOCABULARY, size=(size, LENGTH)).astype(np.int32)
    return ids, rng.integers(CLASSES, size=size).astype(np.int32)


def mean_over_places(x):
    return jnp.mean(x, axis=-2)


def by_hand(rate, weights):
    def normalize(x, scale, bias):
        mean, variance = jnp.mean(x, axis=-1, keepdims=True), jnp.var(x, axis=-1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + EPSILON) * scale + bias

    def dropout(x, key):
        return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0) if rate else x

    def attention(x, block, dropout_key):
        query, key, value = (
            jnp.einsum("blf,fhd->blhd", x, block[f"{name}_kernel"]) + block[f"{name}_bias"]
            for name in PROJECTIONS[:3]
        )
        logits = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(query.shape[-1])
        mixed = jnp.einsum("bhqk,bkhd->bqhd", dropout(jax.nn.softmax(logits), dropout_key), value)
        return jnp.einsum("bqhd,hdf->bqf", mixed, block["out_kernel"]) + block["out_bias"]

    def apply(weights, state, key, ids):
        x = weights["embed"][ids] + weights["positions"]
        blocks = weights["blocks"]
        keys = iter(jax.random.split(key, 4 * len(blocks)) if rate else [None] * 4 * len(blocks))
        for block in blocks:
            y = attention(normalize(x, *block["attention_norm"]), block, next(keys))
            x = x + dropout(y, next(keys))
            (wide, wide_bias), (narrow, narrow_bias) = block["wide"], block["narrow"]
            y = normalize(x, *block["dense_norm"]) @ wide + wide_bias
            y = dropout(jax.nn.relu(y), next(keys)) @ narrow + narrow_bias
            x = x + dropout(y, next(keys))
        kernel, bias = weights["head"]
        return jnp.mean(normalize(x, *weights["norm"]), axis=1) @ kernel + bias, state

    return apply, weights, ()


def ours(rate, weights):
    from mlax_tutorial import nn

    width = weights["embed"].shape[1]
    attention = nn.MultiHeadAttention(HEADS, dropout=rate, use_bias=True)
    block = [
        nn.Residual(nn.Series(nn.LayerNorm(), nn.Scale(), nn.Bias(), attention, nn.Dropout(rate))),
        nn.Residual(
            nn.Series(
                *[nn.LayerNorm(), nn.Scale(), nn.Bias()],
                *[nn.Linear(4 * width), nn.Bias(), nn.F(jax.nn.relu), nn.Dropout(rate)],
                *[nn.Linear(width), nn.Bias(), nn.Dropout(rate)],
            )
        ),
    ]
    model = nn.Series(
        *[nn.Embed(VOCABULARY, width), nn.Bias((-1, -1))],
        *block * len(weights["blocks"]),
        *[nn.LayerNorm(), nn.Scale(), nn.Bias(), nn.F(mean_over_places), nn.Linear(CLASSES), nn.Bias()],
    )
    projections = [name + end for name in sorted(PROJECTIONS) for end in ("_bias", "_kernel")]
    names = ("attention_norm", *projections, "dense_norm", "wide", "narrow")
    leaves = [weights["embed"], weights["positions"]]
    leaves += [block[name] for block in weights["blocks"] for name in names]
    return model, jax.tree.leaves([*leaves, weights["norm"], weights["head"]])


def flax_linen(rate, weights):
    from flax import linen

    blocks, width = weights["blocks"], weights["embed"].shape[1]

    class Encoder(linen.Module):
        @linen.compact
        def __call__(self, ids):
            def normalize(name):
                return linen.LayerNorm(epsilon=EPSILON, name=name)

            def dropout(x):
                return linen.Dropout(rate, deterministic=False)(x)

            positions = self.param("positions", linen.initializers.zeros, (LENGTH, width))
            x = linen.Embed(VOCABULARY, width, name="embed")(ids) + positions
            for i in range(len(blocks)):
                y = normalize(f"attention_norm_{i}")(x)
                attention = linen.MultiHeadDotProductAttention(
                    HEADS,
                    dropout_rate=rate,
                    broadcast_dropout=False,
                    deterministic=False,
                    name=f"attention_{i}",
                )
                x = x + dropout(attention(y))
                y = linen.Dense(4 * width, name=f"wide_{i}")(normalize(f"dense_norm_{i}")(x))
                y = linen.Dense(width, name=f"narrow_{i}")(dropout(jax.nn.relu(y)))
                x = x + dropout(y)
            return linen.Dense(CLASSES, name="head")(jnp.mean(normalize("norm")(x), axis=1))

    model = Encoder()

    def norm(pair):
        return dict(zip(("scale", "bias"), pair))

    def dense(pair):
        return dict(zip(("kernel", "bias"), pair))

    params = {
        "embed": {"embedding": weights["embed"]},
        "positions": weights["positions"],
        "norm": norm(weights["norm"]),
        "head": dense(weights["head"]),
    }
    for i, block in enumerate(blocks):
        params |= {
            f"attention_norm_{i}": norm(block["attention_norm"]),
            f"attention_{i}": {
                name: dense((block[f"{name}_kernel"], block[f"{name}_bias"])) for name in PROJECTIONS
            },
            f"dense_norm_{i}": norm(block["dense_norm"]),
            f"wide_{i}": dense(block["wide"]),
            f"narrow_{i}": dense(block["narrow"]),
        }

    def apply(params, state, key, ids):
        return model.apply(params, ids, rngs=None if key is None else {"dropout": key}), state

    return apply, {"params": params}, ()


def haiku(rate, weights):
    import haiku as hk

    blocks, width = weights["blocks"], weights["embed"].shape[1]

    class Attention(hk.MultiHeadAttention):
        """Haiku's own, with dropout on the weights, which it lacks."""

        def __call__(self, x):
            query, key, value = (
                self._linear_projection(x, self.key_size, name) for name in ("query", "key", "value")
            )
            logits = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(self.key_size)
            weights = jax.nn.softmax(logits)
            weights = hk.dropout(hk.next_rng_key(), rate, weights) if rate else weights
            mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, value).reshape(x.shape)
            return hk.Linear(self.model_size, w_init=self.w_init)(mixed)

    @hk.transform
    def model(ids):
        def normalize(name):
            return hk.LayerNorm(-1, create_scale=True, create_offset=True, eps=EPSILON, name=name)

        def dropout(x):
            return hk.dropout(hk.next_rng_key(), rate, x) if rate else x

        positions = hk.get_parameter("positions", (LENGTH, width), init=jnp.zeros)
        x = hk.Embed(VOCABULARY, width, name="embed")(ids) + positions
        for i in range(len(blocks)):
            y = normalize(f"attention_norm_{i}")(x)
            attention = Attention(HEADS, width // HEADS, w_init=jnp.zeros, name=f"attention_{i}")
            x = x + dropout(attention(y))
            y = hk.Linear(4 * width, name=f"wide_{i}")(normalize(f"dense_norm_{i}")(x))
            y = hk.Linear(width, name=f"narrow_{i}")(dropout(jax.nn.relu(y)))
            x = x + dropout(y)
        return hk.Linear(CLASSES, name="head")(jnp.mean(normalize("norm")(x), axis=1))

    def norm(pair):
        return dict(zip(("scale", "offset"), pair))

    def dense(pair):
        return dict(zip(("w", "b"), pair))

    params = {
        "~": {"positions": weights["positions"]},
        "embed": {"embeddings": weights["embed"]},
        "norm": norm(weights["norm"]),
        "head": dense(weights["head"]),
    }
    for i, block in enumerate(blocks):
        params |= {
            f"attention_norm_{i}": norm(block["attention_norm"]),
            f"dense_norm_{i}": norm(block["dense_norm"]),
            f"wide_{i}": dense(block["wide"]),
            f"narrow_{i}": dense(block["narrow"]),
        }
        for name, its in zip(PROJECTIONS, ("query", "key", "value", "linear")):
            kernel, bias = block[f"{name}_kernel"].reshape(width, width), block[f"{name}_bias"].reshape(width)
            params[f"attention_{i}/{its}"] = dense((kernel, bias))

    def apply(params, state, key, ids):
        return model.apply(params, key, ids), state

    return apply, params, ()


def equinox(rate, weights):
    import equinox as eqx

    key, width = jax.random.key(0), weights["embed"].shape[1]  # the key's draws are replaced

    def norm(pair):
        scale, bias = map(jnp.asarray, pair)
        layer = eqx.nn.LayerNorm(width, eps=EPSILON)
        return eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, (scale, bias))

    def dense(pair):
        kernel, bias = map(jnp.asarray, pair)
        layer = eqx.nn.Linear(*kernel.shape, key=key)
        return eqx.tree_at(lambda layer: (layer.weight, layer.bias), layer, (kernel.T, bias))

    def attention(block):
        def projections(layer):
            return [layer.query_proj, layer.key_proj, layer.value_proj, layer.output_proj]

        biases = dict.fromkeys(("use_query_bias", "use_key_bias", "use_value_bias", "use_output_bias"), True)
        layer = eqx.nn.MultiheadAttention(HEADS, width, dropout_p=rate, key=key, **biases)
        found = [
            (block[f"{name}_kernel"].reshape(width, width), block[f"{name}_bias"].reshape(width))
            for name in PROJECTIONS
        ]
        return eqx.tree_at(projections, layer, [dense(pair) for pair in found])

    class Block(eqx.Module):
        attention_norm: eqx.nn.LayerNorm
        attention: eqx.nn.MultiheadAttention
        dense_norm: eqx.nn.LayerNorm
        wide: eqx.nn.Linear
        narrow: eqx.nn.Linear
        dropout: eqx.nn.Dropout

        def __call__(self, x, key):
            keys = [None] * 4 if key is None else jax.random.split(key, 4)
            y = jax.vmap(self.attention_norm)(x)
            x = x + self.dropout(self.attention(y, y, y, key=keys[3]), key=keys[0])
            y = jax.nn.relu(jax.vmap(self.wide)(jax.vmap(self.dense_norm)(x)))
            y = jax.vmap(self.narrow)(self.dropout(y, key=keys[1]))
            return x + self.dropout(y, key=keys[2])

    class Encoder(eqx.Module):
        embed: eqx.nn.Embedding
        positions: jax.Array
        blocks: list
        norm: eqx.nn.LayerNorm
        head: eqx.nn.Linear

        def __call__(self, ids, key):
            x = jax.vmap(self.embed)(ids) + self.positions
            keys = [None] * len(self.blocks) if key is None else jax.random.split(key, len(self.blocks))
            for block, key in zip(self.blocks, keys):
                x = block(x, key)
            return self.head(jnp.mean(jax.vmap(self.norm)(x), axis=0))

    def block(block):
        return Block(
            *[norm(block["attention_norm"]), attention(block), norm(block["dense_norm"])],
            *[dense(block["wide"]), dense(block["narrow"]), eqx.nn.Dropout(rate)],
        )

    def forward(model, state, key, ids):
        if key is None:
            return jax.vmap(lambda one: model(one, None))(ids), state
        return jax.vmap(model)(ids, jax.random.split(key, len(ids))), state

    embed = eqx.nn.Embedding(weight=jnp.asarray(weights["embed"]))
    blocks = [block(each) for each in weights["blocks"]]
    positions = jnp.asarray(weights["positions"])
    return forward, Encoder(embed, positions, blocks, norm(weights["norm"]), dense(weights["head"])), ()


def nnx(rate, weights):
    from flax import nnx

    width, rngs = weights["embed"].shape[1], nnx.Rngs(0)

    def norm(pair):
        layer = nnx.LayerNorm(width, epsilon=EPSILON, rngs=rngs)
        layer.scale[...], layer.bias[...] = map(jnp.asarray, pair)
        return layer

    def dense(pair):
        layer = nnx.Linear(*pair[0].shape, rngs=rngs)
        layer.kernel[...], layer.bias[...] = map(jnp.asarray, pair)
        return layer

    class Block(nnx.Module):
        def __init__(self, block):
            self.attention_norm = norm(block["attention_norm"])
            self.attention = nnx.MultiHeadAttention(
                HEADS,
                width,
                dropout_rate=rate,
                broadcast_dropout=False,
                deterministic=False,
                decode=False,
                rngs=rngs,
            )
            for name in PROJECTIONS:
                projection = getattr(self.attention, name)
                projection.kernel[...] = jnp.asarray(block[f"{name}_kernel"])
                projection.bias[...] = jnp.asarray(block[f"{name}_bias"])
            self.dense_norm = norm(block["dense_norm"])
            self.wide, self.narrow = dense(block["wide"]), dense(block["narrow"])
            self.dropout = nnx.Dropout(rate, rngs=rngs)

        def __call__(self, x):
            x = x + self.dropout(self.attention(self.attention_norm(x)))
            y = self.dropout(jax.nn.relu(self.wide(self.dense_norm(x))))
            return x + self.dropout(self.narrow(y))

    class Encoder(nnx.Module):
        def __init__(self):
            self.embed = nnx.Embed(VOCABULARY, width, rngs=rngs)
            self.embed.embedding[...] = jnp.asarray(weights["embed"])
            self.positions = nnx.Param(jnp.asarray(weights["positions"]))
            self.blocks = nnx.List([Block(block) for block in weights["blocks"]])
            self.norm, self.head = norm(weights["norm"]), dense(weights["head"])

        def __call__(self, ids):
            x = self.embed(ids) + self.positions[...]
            for block in self.blocks:
                x = block(x)
            return self.head(jnp.mean(self.norm(x), axis=1))

    return Encoder()


def contenders(rate):
    makers = (by_hand, ours, flax_linen, haiku, equinox, nnx)
    return loops.contenders(
        *(functools.partial(maker, rate) for maker in makers), algorithm=loops.ADAM, draws=rate > 0
    )


WORKLOAD = Workload(
    name="encoder",
    about="an Adam step of a Transformer encoder, 3 layers of 192 units and 6 heads, dropout 0.1, "
    "32 sequences of 128",
    weights=weights,
    small=functools.partial(weights, width=24, depth=1),
    batch=functools.partial(batch, 32),
    contenders=contenders(RATE),
    without_draws=contenders(0.0),
    learning_rate=1e-3,
)
