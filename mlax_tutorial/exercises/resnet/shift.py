"""Shift each image of a batch by an offset of its own."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.inspection import jaxprs


def solution(key, images, most):
    padded = jnp.pad(images, ((0, 0), (most, most), (most, most), (0, 0)))
    starts = jax.random.randint(key, (len(images), 2), 0, 2 * most + 1)

    def cut(image, start):
        return jax.lax.dynamic_slice(image, (start[0], start[1], 0), images.shape[1:])

    return jax.vmap(cut)(padded, starts)


def check(shift):
    images = np.arange(1, 1 + 200 * 5 * 4, dtype=np.float32).reshape(200, 5, 4, 1)
    images = np.concatenate([images, -images], axis=-1)
    jitted = jax.jit(shift, static_argnames="most")

    def size(images):
        images = jax.device_put(images)  # a NumPy array cannot be indexed by traced places
        return jaxprs.count(lambda key: shift(key, images, 2), jax.random.key(0)).total()

    sizes = size(images[:3]), size(images[:9])
    if sizes[1] > sizes[0]:
        raise Failed(f"The program grows with the batch, from {sizes[0]} equations for 3 images to {sizes[1]} for 9: let `jax.vmap` go through the images, not a Python loop.")  # fmt: skip
    shown = {"input": {"images": f"float32{images.shape}", "most": 2}}
    got = jitted(jax.random.key(0), jax.device_put(images), most=2)
    checks.returned(got)
    if jnp.shape(got) != images.shape:
        raise Failed(f"The shape should stay {images.shape}, got {jnp.shape(got)}.", **shown)
    offsets = [_offset(before, after, 2, shown) for before, after in zip(images, np.asarray(got))]
    rows, columns = np.array(offsets).T
    if len(set(offsets)) == 1:
        said = "All images are shifted by the same offset: draw one for each, of shape `(n, 2)`."
        raise Failed(said if offsets[0] != (0, 0) else "No image is shifted.", **shown)
    if not rows.any() or not columns.any():
        way = "up or down" if not rows.any() else "left or right"
        raise Failed(f"No image is shifted {way}.", **shown)
    if np.all(rows == columns):
        said = (
            "Each image is shifted as far across as down: its two offsets are one number. Draw two for each."
        )
        raise Failed(said, **shown)
    for values in (rows, columns):
        missing = sorted(set(range(-2, 3)) - set(values.tolist()))
        if missing:
            said = f"Of 200 images none is shifted by {missing[0]} pixels: `randint` excludes its upper bound, so it must be 2 * most + 1."
            raise Failed(said, **shown)
    byte = jax.device_put(np.arange(1, 97, dtype=np.uint8).reshape(6, 4, 4, 1))
    checks.returns(
        lambda images: jitted(jax.random.key(1), images, most=1), byte, shape=byte.shape, dtype="uint8"
    )
    still = jitted(jax.random.key(1), byte, most=0)
    if not np.array_equal(still, byte):
        raise Failed("With most=0 the images should stay as they are.", expected=byte, got=still)
    _evenly(jitted)
    checks.keys(lambda key: shift(key, byte, 1), jax.random.key(2))


def _evenly(jitted):
    """One pixel in the middle of nine tells where an image went. Each of three offsets has a third, 26 images more or less."""
    images = np.zeros((3000, 3, 3, 1), np.uint8)
    images[:, 1, 1] = 1
    places = np.asarray(jitted(jax.random.key(3), jax.device_put(images), most=1)).reshape(3000, 9).argmax(1)
    for way, offsets in (("down", places // 3 - 1), ("across", places % 3 - 1)):
        for offset in (-1, 0, 1):
            if abs((found := np.sum(offsets == offset)) - 1000) > 160:
                raise Failed(
                    f"Not all offsets are equally probable: with most=1, {found} of 3,000 images move {way} by {offset}, and a third is to. Are "
                    "numbers drawn from further than `most`? `dynamic_slice` moves a window that would leave the array back into it.",
                    input={"most": 1},
                )


def _offset(before, after, most, shown):
    """By how many pixels down and to the right; what is outside is zero."""
    height, width, _ = before.shape
    for down in range(-most - 1, most + 2):
        for right in range(-most - 1, most + 2):
            moved = np.zeros_like(before)
            source = before[max(-down, 0) : height - max(down, 0), max(-right, 0) : width - max(right, 0)]
            moved[max(down, 0) : height - max(-down, 0), max(right, 0) : width - max(-right, 0)] = source
            if np.array_equal(moved, after):
                if max(abs(down), abs(right)) > most:
                    raise Failed(
                        f"An image is shifted by more than {most} pixels.",
                        input={"one image": before[..., 0]},
                        got=after[..., 0],
                    )
                return down, right
            if np.array_equal(np.roll(before, (down, right), (0, 1)), after) and (down, right) != (0, 0):
                raise Failed(
                    "What leaves an image on one side comes in on the other: let zeros come in.",
                    input={"one image": before[..., 0]},
                    got=after[..., 0],
                )
    raise Failed(
        "An image that came out is no shifted image of those that came in, at its place in the batch.",
        input={"one image": before[..., 0]},
        got=after[..., 0],
    )


exercise = Exercise(
    title="Shift each image on the device",
    stars=2,
    minutes=12,
    why="Augmentation inside the compiled step costs no host time, needs no workers, and repeats from a key.",
    hints=(
        "Put a border of `most` zeros round all images, then cut a window of the old size out of each, at a place of its own.",
        "`jax.lax.dynamic_slice(image, (row, column, 0), size)` may start at a traced place; `jax.vmap` gives each image its own.",
        "`jax.random.randint(key, (n, 2), 0, 2 * most + 1)` draws the places.",
    ),
    solution=solution,
    check=check,
)
