"""Answers to the exercise attention.grouped."""

import math

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.attention._chapter import attend, lecun_normal
from mlax_tutorial.exercises.attention.grouped import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    heads: int
    kv_heads: int

    def init(self, key, x):
        features = x.shape[-1]
        few = features // self.heads * self.kv_heads
        keys = jax.random.split(key, 4)
        return {
            "query": lecun_normal(keys[0], (features, features), x.dtype),
            "key": lecun_normal(keys[1], (features, few), x.dtype),
            "value": lecun_normal(keys[2], (features, few), x.dtype),
            "out": lecun_normal(keys[3], (features, features), x.dtype),
        }, ()

    def split(self, x, kernel, heads):
        y = x @ kernel.astype(x.dtype)
        return y.reshape(*x.shape[:-1], heads, x.shape[-1] // self.heads)

    def share(self, y):
        return jnp.repeat(y, self.heads // self.kv_heads, axis=-2)

    def mix(self, query, key, value):
        return attend(query, self.share(key), self.share(value))

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        query = self.split(x, trainables["query"], self.heads)
        keys = self.split(x, trainables["key"], self.kv_heads)
        values = self.split(x, trainables["value"], self.kv_heads)
        y = self.mix(query, keys, values).reshape(x.shape)
        return y @ trainables["out"].astype(x.dtype), non_trainables


@answers.wrong("*Neighbors* should")
class Tiles(Right):
    def share(self, y):
        groups = self.heads // self.kv_heads
        return jnp.concatenate([y] * groups, axis=-2)


@answers.wrong("not causal")
class Causal(Right):
    def mix(self, query, key, value):
        return attend(query, self.share(key), self.share(value), jnp.tri(query.shape[-3], dtype=bool))


@answers.wrong("first head of keys")
class First(Right):
    def share(self, y):
        return jnp.repeat(y[..., :1, :], self.heads, axis=-2)


@answers.wrong("square root of `head_dim`")
class Unscaled(Right):
    def mix(self, query, key, value):
        return attend(query * math.sqrt(query.shape[-1]), self.share(key), self.share(value))


@answers.wrong("The last kernel")
class WithoutOut(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        eye = jnp.eye(x.shape[-1], dtype=x.dtype)
        return super().fwd(x, trainables | {"out": eye}, non_trainables)


@answers.wrong("each needs a key of its own")
class OneKey(Right):
    def init(self, key, x):
        features, few = x.shape[-1], x.shape[-1] // self.heads * self.kv_heads
        sizes = {"query": features, "key": few, "value": few, "out": features}
        return {name: lecun_normal(key, (features, size), x.dtype) for name, size in sizes.items()}, ()


@answers.wrong("A random key is used twice")
class TwoKeys(Right):
    """Kernels of equal shape differ, and yet each key draws two."""

    def init(self, key, x):
        features, few = x.shape[-1], x.shape[-1] // self.heads * self.kv_heads
        one, two = jax.random.split(key)
        return {
            "query": lecun_normal(one, (features, features), x.dtype),
            "key": lecun_normal(one, (features, few), x.dtype),
            "value": lecun_normal(two, (features, few), x.dtype),
            "out": lecun_normal(two, (features, features), x.dtype),
        }, ()


@answers.wrong('`trainables["key"]` should have the shape (32, 16)')
class FullKeys(Right):
    def init(self, key, x):
        names = "query", "key", "value", "out"
        shape = x.shape[-1], x.shape[-1]
        return {n: lecun_normal(k, shape, x.dtype) for n, k in zip(names, jax.random.split(key, 4))}, ()


@answers.wrong("should have a standard deviation of 0.177")
class StandardNormal(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        keys = jax.random.split(jax.random.fold_in(key, 1), 4)
        leaves, structure = jax.tree.flatten(trainables)
        return structure.unflatten([jax.random.normal(k, w.shape, w.dtype) for k, w in zip(keys, leaves)]), ()


@answers.wrong("should have a standard deviation of 0.177")
class TransposedDraw(Right):
    """The initializer takes the number of outputs for that of inputs."""

    def init(self, key, x):
        trainables, _ = super().init(key, x)
        keys = jax.random.split(jax.random.fold_in(key, 1), 4)
        return {
            name: lecun_normal(k, kernel.shape[::-1], x.dtype).T
            for k, (name, kernel) in zip(keys, trainables.items())
        }, ()


@answers.wrong("is constant")
class ZeroOut(Right):
    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return trainables | {"out": jnp.zeros_like(trainables["out"])}, ()


# Wrong ones that look right


@answers.wrong("6 // 2 heads share keys")
class CopiesPerHeadOfKeys(Right):
    """The heads in a group are as many as those of keys only for some sizes."""

    def share(self, y):
        return jnp.repeat(y, self.kv_heads, axis=-2)


@answers.wrong("`head_dim` is 24 // 6")
class WidthByHeadsOfKeys(Right):
    def init(self, key, x):
        features, few = x.shape[-1], x.shape[-1] // self.kv_heads
        sizes = {"query": features, "key": few, "value": few, "out": features}
        keys = jax.random.split(key, 4)
        return {n: lecun_normal(k, (features, sizes[n]), x.dtype) for n, k in zip(sizes, keys)}, ()


@answers.wrong("*dtype outside*")
class AlwaysFloat32(Right):
    def split(self, x, kernel, heads):
        y = x @ kernel
        return y.reshape(*x.shape[:-1], heads, x.shape[-1] // self.heads)

    def init(self, key, x):
        trainables, _ = super().init(key, x)
        return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), trainables), ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        y, _ = super().fwd(x.astype(jnp.float32), trainables, ())
        return y, non_trainables


@answers.wrong("*as eval_shape says*")
class OneBatchAxis(Right):
    def split(self, x, kernel, heads):
        batch, length, features = x.shape
        return (x @ kernel.astype(x.dtype)).reshape(batch, length, heads, features // self.heads)


@answers.wrong()
class AcrossTheBatch(Right):
    """Each place looks at itself in the other examples."""

    def mix(self, query, key, value):
        swapped = (y.swapaxes(0, -3) for y in (query, self.share(key), self.share(value)))
        return attend(*swapped).swapaxes(0, -3)


@answers.wrong("No gradient reaches `key`")
class NoGradientToTheKeys(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        stopped = trainables | {"key": jax.lax.stop_gradient(trainables["key"])}
        return super().fwd(x, stopped, non_trainables)


# Right ones of unusual style


@answers.right
class ByGroups(Right):
    """An axis for the groups, and nothing copied."""

    def mix(self, query, key, value):
        d = query.shape[-1]
        query = query.reshape(*query.shape[:-2], self.kv_heads, self.heads // self.kv_heads, d)
        logits = jnp.einsum("...qhgd,...khd->...hgqk", query, key) / math.sqrt(d)
        y = jnp.einsum("...hgqk,...khd->...qhgd", jax.nn.softmax(logits), value)
        return y.reshape(*y.shape[:-3], self.heads, d)


@answers.right
class HeadByHead(Right):
    def mix(self, query, key, value):
        groups = self.heads // self.kv_heads
        one = [
            attend(query[..., [h], :], key[..., [h // groups], :], value[..., [h // groups], :])
            for h in range(self.heads)
        ]
        return jnp.concatenate(one, axis=-2)


@answers.right
class ByIndices(Right):
    def share(self, y):
        groups = self.heads // self.kv_heads
        return y[..., jnp.arange(self.heads) // groups, :]


@answers.right
class AroundThePackage(Right):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        features, d = x.shape[-1], x.shape[-1] // self.heads
        shapes = {"query": (features, self.heads, d), "key": (features, self.kv_heads, d)}
        shapes |= {"value": shapes["key"], "out": (self.heads, d, features)}
        kernels = {f"{name}_kernel": trainables[name].reshape(shape) for name, shape in shapes.items()}
        return nn.MultiHeadAttention(self.heads, kv_heads=self.kv_heads).fwd(x, kernels, non_trainables)


@answers.wrong("right but for its last digits")
class RoundsTheHeads(Right):
    def split(self, x, kernel, heads):
        return super().split(x, kernel, heads).astype(jnp.float16).astype(x.dtype)


@answers.wrong("right but for its last digits")
class RoundsTheOutput(Right):
    def fwd(self, x, trainables, non_trainables, **options):
        y, _ = super().fwd(x, trainables, non_trainables, **options)
        return y.astype(jnp.float16).astype(x.dtype), non_trainables


answers.equivalent(
    "jax.random.split(key, 4) -> jax.random.split(key, 5)",
    because="a key that is left over is used by none",
)
