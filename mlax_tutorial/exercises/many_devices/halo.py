"""The neighbors' edge rows, from the devices beside."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.many_devices import _eight
from mlax_tutorial.inspection import collectives


def solution(x, axis_name):
    size = jax.lax.axis_size(axis_name)
    down = [(i, i + 1) for i in range(size - 1)]
    up = [(i + 1, i) for i in range(size - 1)]
    above = jax.lax.ppermute(x[-1:], axis_name, down)
    below = jax.lax.ppermute(x[:1], axis_name, up)
    return jnp.concatenate([above, x, below])


def check(halo):
    x = _eight.numbers(0, 32, 3)
    function = _eight.each(lambda x: halo(x, "strips"), P("strips"), name="strips")
    got = function(x)
    padded = jnp.pad(x, ((1, 1), (0, 0)))
    right = jnp.stack([padded[4 * i : 4 * i + 6] for i in range(8)])
    if got.shape != right.shape:
        raise Failed(
            f"Of a strip of shape (4, 3) the result has the shape (6, 3), not {got.shape[1:]}: one row more at each end."
        )
    if not _eight.close(got, right):
        around = jnp.stack([jnp.roll(x, 1 - 4 * i, axis=0)[:6] for i in range(8)])
        if _eight.close(got, around):
            raise Failed("The first device has got the last one's row: the image does not go round. Leave these two pairs out, and zeros come.", expected=right[0], got=got[0])  # fmt: skip
        if _eight.close(got[:, 1:-1], right[:, 1:-1]):
            if _eight.close(got[1:-1, 0], right[1:-1, -1]) or _eight.close(
                got[2:, 0], x[3:-5:4][: got[2:].shape[0]]
            ):
                raise Failed("The row above must come from the device before, and the row below from the one after: they are exchanged.", expected=right[1], got=got[1])  # fmt: skip
            if _eight.close(got[1:-1], right[1:-1]):
                raise Failed("At the two ends of the image the rows beyond it are to be zeros.", expected=right[0], got=got[0])  # fmt: skip
            raise Failed(
                "The rows at the ends are not the neighbors' nearest rows.", expected=right[1], got=got[1]
            )
        raise Failed("The rows in the middle must be the device's own.", expected=right[1], got=got[1])
    found = collectives.find(function, x)
    sent = sum(each.times * each.bytes for each in found)
    if sent > 2 * x[0].nbytes:
        raise Failed(
            f"Right, but {sent} bytes reach each device where two rows, {2 * x[0].nbytes} bytes, are enough. Send the edges only, with `ppermute`."
        )
    for kind in (jnp.uint8, jnp.bfloat16):
        dtype = jax.eval_shape(function, x.astype(kind)).dtype
        if dtype != kind:
            raise Failed(
                f"The strips of an image of {kind.__name__} are made of {dtype} in your result: zeros have the dtype of `x`."
            )
    _of_an_image_with_channels(function)


def _of_an_image_with_channels(function):
    """Of another height and width; the first channel is infinite, so that a product with it is never zero."""
    x = _eight.numbers(1, 16, 5, 2).at[..., 0].set(jnp.inf)
    with checks.says(
        "Right for strips of shape (4, 3), but not for those of two rows and with channels, of shape (2, 5, 2): there a row has the shape (5, 2)."
    ):
        got = function(x)
    padded = jnp.pad(x, ((1, 1), (0, 0), (0, 0)))
    right = jnp.stack([padded[2 * i : 2 * i + 4] for i in range(8)])
    if got.shape != right.shape:
        raise Failed(
            "Right for strips of shape (4, 3), but not for those of two rows and with channels: of one of shape (2, 5, 2) the result has the shape "
            f"(4, 5, 2), not {got.shape[1:]}."
        )
    if bool(jnp.any(jnp.isnan(got))):
        raise Failed(
            "Right for finite numbers, but in an image with an infinite one there are NaNs where zeros are asked for: infinity times 0 is NaN. "
            "Choose by `jnp.where`, or make zeros, instead of multiplying by 0.",
            expected=right[0], got=got[0],
        )  # fmt: skip
    if not _eight.close(got, right):
        raise Failed(
            "Right for strips of shape (4, 3), but not for those of two rows and with channels, of shape (2, 5, 2).",
            expected=right[1], got=got[1],
        )  # fmt: skip


exercise = Exercise(
    title="Halo exchange",
    stars=2,
    minutes=12,
    why="A convolution over an image that is spread over devices needs the edges of its neighbors only, however large the image is.",
    hints=(
        "`jax.lax.ppermute(x[-1:], axis_name, pairs)` with the pairs `(i, i + 1)` gives each device the last row of the one before.",
        "A device that no pair sends to gets zeros: with `(0, 1)` to `(6, 7)` that is device 0.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
