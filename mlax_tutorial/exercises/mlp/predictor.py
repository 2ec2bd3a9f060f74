"""Classes from raw bytes, for any number of images, with one shape for the compiler."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.describe import is_array, kind


def solution(apply, batch_size):
    def predict(raw):
        if len(raw) % 784:
            raise ValueError(f"predict: {len(raw)} bytes are no whole number of images of 784")
        images = np.frombuffer(raw, np.uint8).reshape(-1, 28, 28)
        answers = np.zeros(len(images), int)
        for start in range(0, len(images), batch_size):
            part = images[start : start + batch_size]
            batch = np.zeros((batch_size, 28, 28), np.float32)
            batch[: len(part)] = part / np.float32(255)
            answers[start : start + batch_size] = np.asarray(apply(batch).argmax(axis=-1))[: len(part)]
        return answers

    return predict


def _scores(x):
    """The class of an image is told by its first pixel alone: 0 to 9 times 20."""
    return -jnp.abs(x[:, 0, 0, None] * 255 - 20 * jnp.arange(10))


def _images(classes, seed=0):
    images = np.random.default_rng(seed).integers(0, 256, (len(classes), 28, 28)).astype(np.uint8)
    images[:, 0, 0] = 20 * np.asarray(classes)
    images[:, 0, 1] = 255  # so that the largest pixel of a batch is 1
    return images


def check(predictor):
    seen, largest = [], []

    def apply(x):
        seen.append((np.shape(x), getattr(x, "dtype", None)))
        if isinstance(x, jax.core.Tracer):  # under the reader's `jit`
            jax.debug.callback(lambda number: largest.append(float(number)), jnp.max(x))
        else:
            largest.append(float(np.max(x)) if np.size(x) else 0.0)
        return _scores(jnp.asarray(x, jnp.float32))

    predict = predictor(apply, 4)
    if not callable(predict):
        raise Failed("Return a function: `predict(raw)`.", got=predict)
    for classes in ([3, 1, 4, 1], [5, 9, 2, 6, 5, 3, 5, 8, 9, 7], [7], [2, 0, 8, 1, 8]):
        raw = _images(classes).tobytes()
        where = f"{len(classes)} images, batches of 4"
        seen.clear()
        largest.clear()
        got = predict(raw)
        jax.effects_barrier()
        checks.returned(got, by="`predict`", input=where)
        if not is_array(got):
            raise Failed(f"An array of classes is asked for, and `predict` returned {kind(got)}.", input=where)  # fmt: skip
        shapes = {shape for shape, _ in seen}
        if seen and any(np.ndim(np.zeros(shape)) != 3 or shape[1:] != (28, 28) for shape in shapes):
            raise Failed("`apply` wants images of shape `(batch_size, 28, 28)`.", input=where, shown=[("shapes", str(sorted(shapes)))])  # fmt: skip
        if shapes - {(4, 28, 28)}:
            raise Failed("`apply` is called with another shape than `(batch_size, 28, 28)`, and each new one is traced and compiled: fill up the last batch.", input=where, shown=[("shapes", str(sorted(shapes)))])  # fmt: skip
        if any(dtype != np.float32 for _, dtype in seen):
            raise Failed("`apply` was trained on float32, and a new dtype is a new trace, too: convert the bytes, and stay in float32.", input=where, shown=[("dtypes", str({str(dtype) for _, dtype in seen}))])  # fmt: skip
        if len(seen) > -(-len(classes) // 4):
            raise Failed(
                f"`apply` is called {len(seen)} times for {where}: more often than there are batches."
            )
        if any(abs(number - 1) > 1e-4 for number in largest):
            raise Failed("`apply` was trained on pixels from 0 to 1: divide by 255.", input=where, shown=[("a byte of 255 becomes", str(largest[0]))])  # fmt: skip
        if np.shape(got) != (len(classes),):
            said = "One class for each image is asked for."
            if np.size(got) > len(classes):
                said += " The answers to the images that only fill up the last batch have to be cut off."
            elif np.size(got) < len(classes):
                said += " Images that do not fill a batch get no answer, or those beyond the first batch."
            raise Failed(said, input=where, expected=np.array(classes), got=np.asarray(got))
        if not np.array_equal(np.asarray(got), classes):
            raise Failed("A class is wrong: are pixels in the order of rows, and images in that of the bytes?", input=where, expected=np.array(classes), got=np.asarray(got))  # fmt: skip
        if not np.issubdtype(np.asarray(got).dtype, np.integer):
            raise Failed("The classes should be integers.", input=where, got=np.asarray(got))
    try:
        empty = predict(b"")
    except Exception as error:
        raise Failed(f"No image at all is a request, too, and has an empty answer. It raised {type(error).__name__}: {error}", input="b''") from error  # fmt: skip
    if not is_array(empty):
        raise Failed(f"No image at all has an empty array for an answer, and `predict` returned {kind(empty)}.", input="b''")  # fmt: skip
    if np.shape(empty) != (0,):
        raise Failed("No image at all has an empty answer, of shape (0,).", input="b''", got=empty)
    if not np.issubdtype(np.asarray(empty).dtype, np.integer):
        raise Failed("The classes should be integers, also where there are none: `np.array([])` is an array of floats.", input="b''", got=np.asarray(empty))  # fmt: skip
    cut = _images([1, 2]).tobytes()[:-100]
    try:
        got = predict(cut)
    except ValueError:
        return
    except Exception as error:
        said = getattr(error, "error", error)  # what the reader's own code raised
        if isinstance(said, ValueError):
            return
        raise
    raise Failed(
        "Bytes that end within an image are answered as if nothing were wrong. Raise a ValueError.",
        input="1,468 bytes",
        got=got,
    )


exercise = Exercise(
    title="From bytes to classes, with one shape",
    stars=3,
    minutes=20,
    why="A server sees any number of images; the compiler sees one shape, so that no request waits for a compilation.",
    hints=(
        "`np.frombuffer(raw, np.uint8).reshape(-1, 28, 28)` copies nothing, and refuses bytes that are no whole images with a ValueError by itself.",
        "For each `start` in `range(0, n, batch_size)` fill a batch of zeros: `batch[: len(part)] = part / 255`, and keep only `len(part)` of the answers.",
        "`np.zeros((batch_size, 28, 28), np.float32)` is float32 whatever is written into it.",
    ),
    solution=solution,
    check=check,
)
