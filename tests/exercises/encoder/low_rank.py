"""Answers to the exercise encoder.low_rank."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.encoder.low_rank import exercise, lecun_normal
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Layer):
    features: int
    rank: int
    alpha: float = 1.0

    def init(self, key, x):
        one, two = jax.random.split(key)
        size, dtype = x.shape[-1], x.dtype
        up = jnp.zeros((self.rank, self.features), dtype)
        kernel, down = (
            lecun_normal(one, (size, self.features), dtype),
            lecun_normal(two, (size, self.rank), dtype),
        )
        return {"kernel": kernel, "down": down, "up": up}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        w = {name: leaf.astype(x.dtype) for name, leaf in trainables.items()}
        return self.apply(x, **w), non_trainables

    def apply(self, x, kernel, down, up):
        return x @ kernel + (x @ down @ up) * (self.alpha / self.rank)


@answers.wrong()
class WholeNumbers(Right):
    def apply(self, x, kernel, down, up):
        return x @ kernel + self.alpha // self.rank * (x @ down @ up)


@answers.wrong("`alpha / rank` is missing")
class NotScaled(Right):
    def apply(self, x, kernel, down, up):
        return x @ kernel + x @ down @ up


@answers.wrong("but not divided by `rank`")
class AlphaAlone(Right):
    def apply(self, x, kernel, down, up):
        return x @ kernel + self.alpha * (x @ down @ up)


@answers.wrong("only the change is")
class AllScaled(Right):
    def apply(self, x, kernel, down, up):
        return self.alpha / self.rank * (x @ kernel + x @ down @ up)


@answers.wrong("The product of the kernel is missing")
class ChangeAlone(Right):
    def apply(self, x, kernel, down, up):
        return self.alpha / self.rank * (x @ down @ up)


@answers.wrong("is a matrix as large as the kernel")
class LargeProduct(Right):
    def apply(self, x, kernel, down, up):
        return x @ (kernel + self.alpha / self.rank * (down @ up))


@answers.wrong("should be zeros at first")
class UpDrawn(Right):
    def init(self, key, x):
        one, two = jax.random.split(key)
        made, _ = super().init(one, x)
        return made | {"up": lecun_normal(two, made["up"].shape, x.dtype)}, ()


@answers.wrong('The numbers of `trainables["down"]`')
class DownUnscaled(Right):
    def init(self, key, x):
        one, two = jax.random.split(key)
        made, _ = super().init(one, x)
        return made | {"down": jax.random.normal(two, made["down"].shape, x.dtype)}, ()


@answers.wrong("are drawn with the same key")
class OneKey(Right):
    def init(self, key, x):
        size = x.shape[-1]
        large = lecun_normal(key, (size, self.features), x.dtype)
        return {
            "kernel": large,
            "down": large[:, : self.rank],
            "up": jnp.zeros((self.rank, self.features), x.dtype),
        }, ()


@answers.wrong("should have the shape (4, 48)")
class Transposed(Right):
    def init(self, key, x):
        made, _ = super().init(key, x)
        return made | {"up": made["up"].T}, ()

    def apply(self, x, kernel, down, up):
        return super().apply(x, kernel, down, up.T)


# Right ones of unusual style


@answers.right
class ByEinsum(Right):
    def apply(self, x, kernel, down, up):
        few = jnp.einsum("...i,ir->...r", x, down)
        return jnp.einsum("...i,io->...o", x, kernel) + jnp.einsum(
            "...r,ro->...o", self.alpha / self.rank * few, up
        )


@answers.right
class SideBySide(Right):
    def apply(self, x, kernel, down, up):
        both = x @ jnp.concatenate([kernel, down], axis=1)
        y, few = both[..., : self.features], both[..., self.features :]
        return y + (few * (self.alpha / self.rank)) @ up


answers.equivalent(
    "alpha: float = 1.0 -> alpha: float = 0.0",
    "alpha: float = 1.0 -> alpha: float = 2.0",
    because="the task names three arguments, and the check gives all of them",
)
