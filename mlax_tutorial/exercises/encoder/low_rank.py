"""LoRA by hand: a linear layer with a product of low rank beside its kernel."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.layers._layers import compare, drawn, subject, variables
from mlax_tutorial.inspection import jaxprs

lecun_normal = jax.nn.initializers.lecun_normal()

# What people get wrong here breaks none of these, or is looked at below; each compiles much.
LEFT_OUT = (
    "inference needs no key", "eager equals jit", "batch equals loop", "shard_map", "init sharded",
    "keys used once", "finite in half precision", "scan and checkpoint", "vmap equals loop",
)  # fmt: skip


class LowRank(nn.Layer):
    features: int
    rank: int
    alpha: float = 1.0

    def init(self, key, x):
        kernel_key, down_key = jax.random.split(key)
        inputs, dtype = x.shape[-1], x.dtype
        return {
            "kernel": lecun_normal(kernel_key, (inputs, self.features), dtype),
            "down": lecun_normal(down_key, (inputs, self.rank), dtype),
            "up": jnp.zeros((self.rank, self.features), dtype),
        }, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        kernel, down, up = (trainables[name].astype(x.dtype) for name in ("kernel", "down", "up"))
        return x @ kernel + self.alpha / self.rank * (x @ down @ up), non_trainables


def check(LowRank):
    layer = checks.make(LowRank, 48, 4, alpha=10.0)
    x = np.sin(np.arange(2.0 * 3 * 32)).reshape(2, 3, 32).astype(np.float32)
    shapes = {"kernel": (32, 48), "down": (32, 4), "up": (4, 48)}
    made, _ = variables(layer, x, shapes)
    if np.any(made["up"]):
        raise Failed(
            '`trainables["up"]` should be zeros at first, so that nothing changes before training does.',
            got=made["up"],
        )
    for name in ("kernel", "down"):
        drawn(made[name], f'trainables["{name}"]', 32**-0.5, f"`lecun_normal` of the shape {shapes[name]}")
    if np.allclose(made["kernel"][:, :4], made["down"]) or np.allclose(
        np.ravel(made["kernel"])[: made["down"].size], np.ravel(made["down"])
    ):
        raise Failed("`kernel` and `down` are drawn with the same key: split it.")
    narrow = jax.eval_shape(layer.init, jax.random.key(0), x[..., :20])
    variables(layer, x[..., :20], {"kernel": (20, 48), "down": (20, 4), "up": (4, 48)}, made=narrow)
    weights = {
        name: (np.cos(i + 1.1 * np.arange(a * b)) / 4).reshape(a, b).astype(np.float32)
        for i, (name, (a, b)) in enumerate(shapes.items())
    }
    kernel, down, up = weights.values()
    change = x @ down @ up
    recognise = [
        (x @ kernel, "The product of low rank is not added."),
        (2.5 * change, "The product of the kernel is missing: it stays, and the change is added."),
        (x @ kernel + change, "`alpha / rank` is missing: the change is multiplied by it."),
        (x @ kernel + 10 * change, "The change is multiplied by `alpha`, but not divided by `rank`: without that, another rank needs another rate."),
        (x @ kernel + change / 4, "The change is divided by `rank`, but not multiplied by `alpha`."),
        (x @ kernel + change / 2.5, "The change is multiplied by `rank / alpha`: it is `alpha / rank`."),
        (2.5 * (x @ kernel + change), "The kernel's own product is scaled, too: only the change is."),
    ]  # fmt: skip
    compare(layer, x, weights, (), x @ kernel + 2.5 * change, recognise)
    _no_large_product(layer, x, weights)
    checks.obeys_laws(layer, x, but=LEFT_OUT)


def _no_large_product(layer, x, weights):
    """No matrix as large as the kernel is computed."""
    closed = jax.make_jaxpr(lambda x, weights: subject(layer).fwd(x, weights, ())[0])(x, weights)
    for _, eqn in jaxprs.walk(closed):
        if eqn.primitive.name == "dot_general" and eqn.outvars[0].aval.shape in {(32, 48), (48, 32)}:
            raise Failed(
                "`down @ up` is a matrix as large as the kernel, in each step. Multiply from the left, `(x @ down) @ up`: then no "
                "array is larger than input and output."
            )


exercise = Exercise(
    title="LoRA by hand",
    stars=3,
    minutes=20,
    why="An adapted model of seven billion weights then differs from the original by a few megabytes.",
    hints=(
        "Three trainables. `kernel` and `down` are drawn by `lecun_normal` with a key each; `up` is zeros, so the product is zero at first.",
        "`fwd` is `x @ kernel` plus `alpha / rank` times `x @ down @ up`. Python multiplies from the left, which is the cheap order here.",
    ),
    solution=LowRank,
    check=check,
)
