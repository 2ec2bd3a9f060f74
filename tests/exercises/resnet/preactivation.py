"""Answers to the exercise resnet.preactivation."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.resnet.preactivation import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Right(nn.Composite):
    channels: int
    strides: int = 1

    def children(self):
        made = {
            "norm_1": nn.BatchNorm(affine=True), "conv_1": self.conv(3, self.strides),
            "norm_2": nn.BatchNorm(affine=True), "conv_2": self.conv(3),
        }  # fmt: skip
        if self.strides != 1:
            made["shortcut"] = self.conv(1, self.strides)
        return made

    def conv(self, size, strides=1):
        return nn.Conv(self.channels, (size, size), strides=strides, padding=size // 2)

    def forward(self, call, x):
        y = jax.nn.relu(call.norm_1(x))
        return self.path(call, x, y) + self.branch(call, y)

    def path(self, call, x, y):
        return x if self.strides == 1 else call.shortcut(y)

    def branch(self, call, y):
        return call.conv_2(jax.nn.relu(call.norm_2(call.conv_1(y))))


@answers.wrong("The shortcut is given x itself")
class RawShortcut(Right):
    def path(self, call, x, y):
        return x if self.strides == 1 else call.shortcut(x)


@answers.wrong("Without a shortcut the path is x itself")
class ActivatedPath(Right):
    def path(self, call, x, y):
        return y if self.strides == 1 else call.shortcut(y)


@answers.wrong("There is a ReLU after the sum")
class ReluAfter(Right):
    def forward(self, call, x):
        return jax.nn.relu(super().forward(call, x))


@answers.wrong("The ReLU after `norm_2` is missing")
class NoSecondRelu(Right):
    def branch(self, call, y):
        return call.conv_2(call.norm_2(call.conv_1(y)))


@answers.wrong("The ReLU after `norm_1` is missing")
class NoFirstRelu(Right):
    def forward(self, call, x):
        y = call.norm_1(x)
        return self.path(call, x, y) + self.branch(call, y)


@answers.wrong("the path needs a convolution of its own")
class NoShortcut(Right):
    def children(self):
        made = super().children()
        made.pop("shortcut", None)
        return made

    def path(self, call, x, y):
        return x if self.strides == 1 else x[..., :: self.strides, :: self.strides, :1]


@answers.wrong("with a scale and a bias")
class NotAffine(Right):
    def children(self):
        return super().children() | {"norm_1": nn.BatchNorm(), "norm_2": nn.BatchNorm()}


@answers.wrong("The kernels should have the shapes")
class StridesInTheSecond(Right):
    def children(self):
        return super().children() | {"conv_2": self.conv(1)}


@answers.wrong()
class SamePadding(Right):
    def conv(self, size, strides=1):
        return nn.Conv(self.channels, (size, size), strides=strides, padding="SAME")


@answers.wrong()
class NormForgotten(Right):
    def branch(self, call, y):
        call.norm_2(call.conv_1(y))
        return call.conv_2(jax.nn.relu(call.conv_1(y)))


# Right ones of unusual style


@answers.right
class ByFields(Right):
    def forward(self, call, x):
        relu = jax.nn.relu
        activated = relu(call.norm_1(x))
        y = call.conv_2(relu(call.norm_2(call.conv_1(activated))))
        return y + (call.shortcut(activated) if hasattr(self, "shortcut") else x)


@answers.right
class PaddingInPairs(Right):
    def conv(self, size, strides=1):
        rim = (size // 2, size // 2)
        return nn.Conv(self.channels, (size, size), strides=(strides, strides), padding=(rim, rim))


@answers.wrong("it is rounded to half precision")
class InHalf(Right):
    def forward(self, call, x):
        return super().forward(call, x).astype(jnp.float16).astype(x.dtype)


answers.equivalent("size // 2 -> size // 3", because="both give 1 for kernels of 3, and 0 for those of 1")


@answers.wrong("`shortcut` should be one `nn.Conv`")
class NormInTheShortcut(Right):
    def children(self):
        made = super().children()
        if self.strides == 1:
            return made
        return made | {"shortcut": nn.Series(made["shortcut"], nn.BatchNorm(affine=True))}


@answers.wrong("`conv_1` should be one `nn.Conv`")
class LinearAndBias(Right):
    def children(self):
        return super().children() | {"conv_1": nn.Series(nn.Linear(self.channels), nn.Bias())}


@answers.wrong("with a scale, a bias and running averages")
class OverFeatures(Right):
    def children(self):
        return super().children() | {"norm_1": nn.LayerNorm()}


@answers.wrong("moves twice")
class FirstNormTwice(Right):
    def forward(self, call, x):
        y = jax.nn.relu(call.norm_1(x))
        return self.path(call, x, jax.nn.relu(call.norm_1(x))) + self.branch(call, y)


@answers.wrong("moves twice")
class SecondNormTwice(Right):
    def branch(self, call, y):
        y = call.conv_1(y)
        return call.conv_2(call.norm_2(y) * (call.norm_2(y) > 0))


@answers.wrong("is the norm also called on something else")
class NormOfTheOutput(Right):
    def forward(self, call, x):
        y = super().forward(call, x)
        call.norm_2(y)
        return y


def with_norms(name, **options):
    def children(self):
        norm = nn.BatchNorm(affine=True, **options)
        return Right.children(self) | {"norm_1": norm, "norm_2": norm}

    return type(name, (Right,), {"children": children, "__annotations__": {}, "__module__": __name__})


answers.wrong("leave the norm's `momentum`")(with_norms("Slow", momentum=0.99))
answers.wrong("leave the norm's `momentum`")(with_norms("AsInPyTorch", momentum=0.1))
answers.wrong("The output is wrong")(with_norms("LargeEpsilon", epsilon=1e-2))


@answers.wrong("a layer keeps the dtype of its input")
class Wide(Right):
    def forward(self, call, x):
        return super().forward(call, x.astype(jnp.float32))


@answers.wrong("a layer keeps the dtype of its input")
class WideOutput(Right):
    def forward(self, call, x):
        return super().forward(call, x).astype(jnp.float32)


@answers.wrong("a layer keeps the dtype of its input")
class WideKernels(Right):
    def conv(self, size, strides=1):
        return nn.Conv(
            self.channels, (size, size), strides=strides, padding=size // 2, param_dtype=jnp.float32
        )


@answers.wrong("the strides that the block is given")
class AlwaysTwo(Right):
    def conv(self, size, strides=1):
        return super().conv(size, min(strides, 2))


@answers.wrong()
class ShortcutAtTwo(Right):
    def children(self):
        made = super().children()
        if self.strides != 2:
            made.pop("shortcut", None)
        return made

    def path(self, call, x, y):
        return call.shortcut(y) if self.strides == 2 else x


@answers.right
class InOneExpression(Right):
    def forward(self, call, x):
        a = jnp.maximum(call.norm_1(x), 0)
        s = x if "shortcut" not in self.children() else call.shortcut(a)
        return jnp.add(call.conv_2(jnp.maximum(call.norm_2(call.conv_1(a)), 0)), s)


@answers.right
class ByWhere(Right):
    def forward(self, call, x):
        def relu(x):
            return jnp.where(x > 0, x, jnp.zeros_like(x))

        first = relu(call.norm_1(x))
        second = relu(call.norm_2(call.conv_1(first)))
        return call.conv_2(second) + self.path(call, x, first)
