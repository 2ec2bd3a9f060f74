"""A loss over weights that are shared out by rows, with no more than one layer whole at a time."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.many_devices import _eight
from mlax_tutorial.inspection import collectives

LAYERS, WIDTH = 4, 32


def solution(kernels, x, y):
    for shard in kernels:  # (WIDTH / 8, WIDTH)
        kernel = jax.lax.all_gather(shard, "devices", axis=0, tiled=True)
        x = jnp.tanh(x @ kernel)
    return jax.lax.pmean(jnp.mean((x - y) ** 2), "devices")


def _whole(kernels, x, y):
    for kernel in kernels:
        x = jnp.tanh(x @ kernel)
    return jnp.mean((x - y) ** 2)


def check(fsdp_loss):
    kernels = _eight.numbers(0, LAYERS, WIDTH, WIDTH) / WIDTH**0.5
    x, y = _eight.numbers(1, 16, WIDTH), _eight.numbers(3, 16, WIDTH)  # a loss that float16 rounds by far
    spread = P(None, "devices")

    def local(kernels, x, y):
        def scalar(kernels):
            value = _eight.as_array(fsdp_loss(kernels, x, y))
            if value.shape != ():
                raise Failed(f"The loss is one number, not an array of shape {value.shape}.")
            return value

        value, gradient = jax.value_and_grad(scalar)(kernels)
        return value[None], gradient

    specs = (spread, P("devices"), P("devices"))
    function = jax.jit(
        jax.shard_map(local, mesh=_eight.mesh(), in_specs=specs, out_specs=(P("devices"), spread))
    )
    values, gradient = function(kernels, x, y)
    wanted, right = jax.value_and_grad(_whole)(kernels, x, y)
    if not _eight.close(values, jnp.full(8, wanted)):
        if _eight.close(jnp.mean(values), wanted):
            raise Failed("Each device returns the loss of its own share of the batch: average it over the devices.", expected=wanted, got=values)  # fmt: skip
        raise Failed("The loss is wrong.", expected=wanted, got=values[0])
    if not _eight.close(gradient, right):
        factor = _eight.ratio(gradient, right)
        often = f" It is {factor:.3g} times the right one." if factor else ""
        raise Failed(f"The loss is right, its gradient by the shares is not.{often}", expected=right[0], got=gradient[0])  # fmt: skip
    layer = WIDTH * WIDTH * 4
    found = collectives.find(function, kernels, x, y)
    gathered = [each for each in found if each.kind == "all-gather"]
    if any(each.bytes > layer for each in gathered):
        most = max(each.bytes for each in gathered)
        raise Failed(
            f"One exchange brings {most:,} bytes of weights to each device; a layer has {layer:,}. Gather a layer where it is used: "
            "otherwise the forward pass needs the whole model at once."
        )
    reduced = sum(each.times * each.bytes for each in found if each.kind == "all-reduce")
    if reduced > layer / 2:
        raise Failed(
            f"Right, but {reduced:,} bytes go through all-reduce, which gives every device everything. The transpose of `all_gather` is "
            "a reduce-scatter: gather with it, and the gradient arrives in shares."
        )
    if any(each.bytes == x.nbytes for each in gathered):
        raise Failed("Right, but the batch is gathered, or what was made of it. In fully sharded training weights travel and rows stay: average the losses instead.")  # fmt: skip
    total = sum(each.times * each.bytes for each in gathered)
    if total > 2 * LAYERS * layer:
        raise Failed(f"Right, but {total:,} bytes are gathered. The weights have {LAYERS * layer:,}: once forward and once backward is enough.")  # fmt: skip


exercise = Exercise(
    title="Fully sharded, under a bound of bytes",
    stars=3,
    minutes=20,
    why="Weights, gradients and moments take an eighth of the memory each, for two exchanges a layer; you wrote one, and autodiff the other.",
    hints=(
        '`jax.lax.all_gather(shard, "devices", axis=0, tiled=True)` puts the shares one under the other: `(4, 32)` becomes `(32, 32)`.',
        "Loop over the layers, and gather inside of the loop. The gradient needs nothing: the transpose of `all_gather` sums over the devices and leaves each its share.",
        "The last line is the mean over this device's rows, and `jax.lax.pmean` of it.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
