"""Attention whose heads share keys and values."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.attention._chapter import attend, lecun_normal
from mlax_tutorial.exercises.attention._compare import array, close, same
from mlax_tutorial.exercises.layers._layers import drawn, outlines, subject, variables

# A softmax in float32 is welcome ("dtype inside"). The others compile much; what people get wrong here breaks none of them, or is looked at above.
LEFT_OUT = (
    "dtype inside",
    "inference needs no key",
    "eager equals jit",
    "batch equals loop",
    "gradients",
    "shard_map",
    "init sharded",
    "keys used once",
    "finite in half precision",
    "scan and checkpoint",
    "vmap equals loop",
)


class GroupedAttention(nn.Layer):
    heads: int
    kv_heads: int

    def init(self, key, x):
        features = x.shape[-1]
        few = self.kv_heads * (features // self.heads)
        sizes = {"query": features, "key": few, "value": few, "out": features}
        keys = dict(zip(sizes, jax.random.split(key, 4)))
        return {name: lecun_normal(keys[name], (features, size), x.dtype) for name, size in sizes.items()}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        def project(name, heads):
            y = x @ trainables[name].astype(x.dtype)
            return y.reshape(*x.shape[:-1], heads, x.shape[-1] // self.heads)

        query = project("query", self.heads)
        groups = self.heads // self.kv_heads
        keys, values = (
            jnp.repeat(project(name, self.kv_heads), groups, axis=-2) for name in ("key", "value")
        )
        y = attend(query, keys, values).reshape(x.shape)
        return y @ trainables["out"].astype(x.dtype), non_trainables


def by_hand(x, weights, heads, kv_heads, serves, scaled=True, causal=False):
    """The layer in NumPy; ``serves`` says which head of keys a head of queries looks at."""
    batch, length, features = x.shape
    d = features // heads
    q = (x @ weights["query"]).reshape(batch, length, heads, d)
    k, v = (
        (x @ weights[name]).reshape(batch, length, kv_heads, d)[:, :, serves] for name in ("key", "value")
    )
    logits = np.einsum("bqhd,bkhd->bhqk", q, k) / (np.sqrt(d) if scaled else 1)
    if causal:
        logits = np.where(np.tri(length, dtype=bool), logits, -np.inf)
    share = np.exp(logits - logits.max(-1, keepdims=True))
    y = np.einsum("bhqk,bkhd->bqhd", share / share.sum(-1, keepdims=True), v)
    return y.reshape(x.shape) @ weights["out"], y.reshape(x.shape)


def check(GroupedAttention):
    heads, kv_heads, features, length = 4, 2, 32, 3
    layer = checks.make(GroupedAttention, heads, kv_heads)
    x = np.sin(np.arange(2.0 * length * features)).reshape(2, length, features).astype(np.float32)
    shapes = {"query": (32, 32), "key": (32, 16), "value": (32, 16), "out": (32, 32)}
    made, _ = variables(layer, x, shapes)
    if np.array_equal(made["key"], made["value"]) or np.array_equal(made["query"], made["out"]):
        raise Failed(
            "Kernels of the same shape are the same numbers: each needs a key of its own, `jax.random.split(key, 4)`."
        )
    for name, kernel in made.items():
        drawn(kernel, f'trainables["{name}"]', features**-0.5, f"`lecun_normal` of the shape {kernel.shape}")
    checks.keys(lambda key: subject(layer).init(key, x)[0], jax.random.key(1), depends=False, eagerly=False)
    numbers = (np.cos(np.arange(1100.0)) / 2).astype(np.float32)
    weights = {name: numbers[i : i + a * b].reshape(a, b) for i, (name, (a, b)) in enumerate(shapes.items())}
    neighbors, tiled = [0, 0, 1, 1], [0, 1, 0, 1]
    expected, inner = by_hand(x, weights, heads, kv_heads, neighbors)
    recognise = [
        (by_hand(x, weights, heads, kv_heads, tiled)[0], "Heads 0 and 2 share keys here. *Neighbors* should: `jnp.repeat` puts copies side by side, `jnp.tile` does not."),
        (by_hand(x, weights, heads, kv_heads, [0, 0, 0, 0])[0], "All heads look at the first head of keys."),
        (by_hand(x, weights, heads, kv_heads, neighbors, causal=True)[0], "Each place sees only earlier ones: this layer is not causal."),
        (by_hand(x, weights, heads, kv_heads, neighbors, scaled=False)[0], "The logits are not divided by the square root of `head_dim`."),
        (inner, 'The last kernel, `trainables["out"]`, is missing.'),
    ]  # fmt: skip

    @jax.jit
    def fwd(x, query, key, value, out):
        trainables = {"query": query, "key": key, "value": value, "out": out}
        return subject(layer).fwd(x, trainables, ())[0]

    y = fwd(x, *weights.values())
    array(y, x.shape, np.float32, "output")
    same(y, expected, recognise, "output", tolerance=1e-3)
    if not close(y, expected, 3e-5):
        raise Failed(
            "The output is right but for its last digits: something on the way is rounded to half precision.",
            expected=expected,
            got=y,
        )
    _other_sizes(GroupedAttention)
    checks.gradients(fwd, None, *jax.device_put((x, *weights.values())), argnums=(1, 2, 3, 4), jit=True)
    checks.obeys_laws(layer, x, but=LEFT_OUT)


def _other_sizes(GroupedAttention):
    """With 4 and 2 heads, the heads in a group are as many as those of keys."""
    heads, kv_heads, features = 6, 2, 24
    layer = checks.make(GroupedAttention, heads, kv_heads)
    x = np.sin(np.arange(5.0 * features)).reshape(1, 5, features).astype(np.float32)
    shapes = {"query": (24, 24), "key": (24, 8), "value": (24, 8), "out": (24, 24)}
    said = "heads=6 and kv_heads=2"
    with checks.says(f"For {said}, so that `head_dim` is 24 // 6:"):
        variables(layer, x, shapes, made=outlines(layer, x))
    weights = {
        name: np.cos(i + np.arange(a * b)).reshape(a, b).astype(np.float32) / 2
        for i, (name, (a, b)) in enumerate(shapes.items())
    }
    with under(f"`jax.jit`, for {said}, so that 6 // 2 heads share keys"):
        y = jax.jit(lambda x, trainables: subject(layer).fwd(x, trainables, ())[0])(x, weights)
    name = f"output for {said}, where 6 // 2 heads share keys,"
    array(y, x.shape, np.float32, name)
    same(y, by_hand(x, weights, heads, kv_heads, [0, 0, 0, 1, 1, 1])[0], name=name, tolerance=1e-3)


exercise = Exercise(
    title="Heads that share keys and values",
    stars=3,
    minutes=15,
    why="A text generator reads its cache for every token, and this makes the cache smaller by the number of heads in a group.",
    hints=(
        "Take the chapter's `Attention`. The projections of key and value have `kv_heads` heads of the same `head_dim`; before "
        "`attend`, repeat each of them `heads // kv_heads` times along the axis of heads.",
        "`jnp.repeat(keys, self.heads // self.kv_heads, axis=-2)`. `head_dim` is `x.shape[-1] // self.heads` for all three. Write sizes "
        "out instead of -1, which an empty batch cannot resolve.",
    ),
    solution=GroupedAttention,
    check=check,
)
