"""Two products with their weights shared out, by columns and by rows, and one sum."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.many_devices import _eight
from mlax_tutorial.inspection import collectives, jaxprs


def solution(x, up, down, bias, axis_name):
    hidden = jnp.tanh(x @ up)
    return jax.lax.psum(hidden @ down, axis_name) + bias


def check(pair):
    x, bias = _eight.numbers(0, 4, 6), _eight.numbers(3, 6)
    up, down = _eight.numbers(1, 6, 16), _eight.numbers(2, 16, 6)
    specs = P(), P(None, "features"), P("features"), P()

    def over(size):
        return _eight.each(
            lambda x, up, down, bias: pair(x, up, down, bias, "features"), specs, name="features", size=size
        )

    function = over(8)
    got = function(x, up, down, bias)
    product = jnp.tanh(x @ up) @ down
    right = product + bias
    if got.shape[1:] != right.shape:
        raise Failed(f"The result has the shape of `x`, {right.shape}, on each device, not {got.shape[1:]}.")
    if not all(_eight.close(part, right) for part in got):
        if all(_eight.close(part, product + 8 * bias) for part in got):
            raise Failed("The bias is added on each device, and then summed over all eight: add it after the sum.", expected=right, got=got[0])  # fmt: skip
        if all(_eight.close(part, product / 8 + bias) for part in got):
            raise Failed("This is the mean over the devices; the parts of a product are to be summed.", expected=right, got=got[0])  # fmt: skip
        if _eight.close(jnp.sum(got - bias, axis=0), product):
            raise Failed("Each device returns its own part of the sum over the hidden features.", expected=right, got=got[0])  # fmt: skip
        raise Failed("The result is wrong.", expected=right, got=got[0])
    found = collectives.find(function, x, up, down, bias)
    times = sum(each.times for each in found)
    kinds = sorted({each.kind for each in found})
    if times != 1 or kinds != ["all-reduce"]:
        raise Failed(
            f"Right, but the devices exchange {times} times ({', '.join(kinds)}). Each can go from its columns of `up` to its rows of `down` "
            "alone: one sum at the end is enough."
        )
    # XLA may join several.
    program = jax.make_jaxpr(function)(x, up, down, bias)
    sums = sum(each.primitive.name.startswith("psum") for _, each in jaxprs.walk(program))
    if sums > 1:
        raise Failed(f"Right, but there are {sums} sums over the devices: one `psum` is enough.")
    if not all(_eight.close(part, right) for part in over(4)(x, up, down, bias)):
        raise Failed(
            "Right on eight devices, but not on four: `jax.lax.axis_size(axis_name)` says how many there are."
        )
    for kind in (jnp.bfloat16, jnp.float16):
        shapes = (3, 6), (6, 16), (16, 5), (5,)
        half = jax.eval_shape(function, *(jax.ShapeDtypeStruct(shape, kind) for shape in shapes))
        if half.shape[1:] != (3, 5):
            raise Failed(
                f"Right where `down` has as many columns as `x`. With an `x` of shape (3, 6) and a `down` of 5 columns it must be (3, 5), not {half.shape[1:]}."
            )
        if half.dtype != kind:
            raise Failed(
                f"Right for float32, but where all that comes in is {kind.__name__}, your result is {half.dtype}: it has the dtype of what comes in."
            )


exercise = Exercise(
    title="A column and a row, one psum",
    stars=2,
    minutes=10,
    why="Columns first, rows second: the activations in between are never whole, and a block of a Transformer needs two such sums.",
    hints=(
        "With its columns of `up` a device computes its own hidden features whole, so `tanh` can be applied at once.",
        "The rows of `down` that belong to these features are on the same device. What it gets is a part of the sum over all of them.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
