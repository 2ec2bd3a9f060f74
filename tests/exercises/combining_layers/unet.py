"""Answers to the exercise combining_layers.unet."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from mlax_tutorial.exercises.combining_layers.unet import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Fields(nn.Composite):
    down: nn.Layer
    inner: nn.Layer
    up: nn.Layer


@answers.wrong("`up` sees only what comes from below")
class NoSkip(Fields):
    def forward(self, call, x):
        return call.up(call.inner(call.down(x)))


@answers.wrong("Is `down(x)` in the place of x")
class SkipsFromDown(Fields):
    def forward(self, call, x):
        low = call.down(x)
        return call.up(jnp.concatenate([low, call.inner(low)], axis=-1))


@answers.wrong("a child is called like a method")
class ByName(Fields):
    def forward(self, call, x):
        return call("up", jnp.concatenate([x, call("inner", call("down", x))], axis=-1))


@answers.wrong("No gradient reaches x through the part")
class StopsTheSkip(Fields):
    def forward(self, call, x):
        inside = call.inner(call.down(x))
        return call.up(jnp.concatenate([jax.lax.stop_gradient(x), inside], axis=-1))


@answers.wrong("For an x of bfloat16 the output is float32")
class Widens(Fields):
    def forward(self, call, x):
        inside = call.inner(call.down(x))
        return call.up(jnp.concatenate([x.astype(jnp.float32), inside], axis=-1))


@answers.wrong("in the other order")
class OtherOrder(Fields):
    def forward(self, call, x):
        return call.up(jnp.concatenate([call.inner(call.down(x)), x], axis=-1))


@answers.wrong("`inner` is left out")
class WithoutInner(Fields):
    def forward(self, call, x):
        low = call.down(x)
        call.inner(low)
        return call.up(jnp.concatenate([x, low], axis=-1))


@answers.wrong("It works for an x with two axes")
class FirstFeatures(Fields):
    def forward(self, call, x):
        return call.up(jnp.concatenate([x, call.inner(call.down(x))], axis=-1 if x.ndim == 2 else -2))


@answers.wrong("a layer is not called")
class CallsTheFields(Fields):
    def forward(self, call, x):
        return self.up(jnp.concatenate([x, self.inner(self.down(x))], axis=-1))


@answers.wrong("Derive the class from `nn.Composite`")
class PlainLayer(nn.Layer):
    down: nn.Layer
    inner: nn.Layer
    up: nn.Layer

    def forward(self, call, x):
        return call.up(jnp.concatenate([x, call.inner(call.down(x))], axis=-1))


@answers.wrong()
class Axis1(Fields):
    def forward(self, call, x):
        return call.up(jnp.concatenate([x, call.inner(call.down(x))], axis=1))


@answers.wrong()
class AddsInstead(Fields):
    def forward(self, call, x):
        inside = call.inner(call.down(x))
        return call.up(jnp.concatenate([x, inside + inside], axis=-1))


@answers.right
class StepByStep(Fields):
    def forward(self, call, x):
        y = x
        for part in (call.down, call.inner):
            y = part(y)
        return call.up(jnp.append(x, y, axis=-1))


@answers.right
class WithParallel(Fields):
    def children(self):
        return {}

    def forward(self, call, x):
        both = (x, call.inner(call.down(x)))
        return call.up(jnp.concatenate(both, axis=x.ndim - 1))


@answers.right
class PaddedAndFilled(Fields):
    def forward(self, call, x):
        inside = call.inner(call.down(x))
        features = x.shape[-1]
        wide = jnp.zeros((*x.shape[:-1], features + inside.shape[-1]), x.dtype)
        return call.up(wide.at[..., :features].set(x).at[..., features:].set(inside))
