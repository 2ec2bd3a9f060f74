"""Answers to the exercise mlp.predictor."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.mlp.predictor import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)
SCALE = np.float32(255)


def images_of(raw):
    return np.frombuffer(raw, np.uint8).reshape(-1, 28, 28)


@answers.wrong("each new one is traced")
def any_shape(apply, batch_size):
    return lambda raw: np.asarray(apply(np.float32(images_of(raw)) / np.float32(255)).argmax(-1))


@answers.wrong("each new one is traced")
def ragged(apply, batch_size):
    def predict(raw):
        images = np.float32(images_of(raw)) / np.float32(255)
        parts = [images[i : i + batch_size] for i in range(0, len(images), batch_size)]
        return np.concatenate([np.asarray(apply(part).argmax(-1)) for part in parts])

    return predict


def padded(apply, batch_size, scale=SCALE, cut=True):
    def predict(raw):
        images = images_of(raw) / scale
        n = len(images)
        images = np.concatenate([images, np.zeros((-n % batch_size, 28, 28), images.dtype)])
        parts = images.reshape(-1, batch_size, 28, 28)
        answers = [np.asarray(apply(part).argmax(-1)) for part in parts]
        return np.concatenate([*answers, np.zeros(0, int)])[: n if cut else None]

    return predict


@answers.wrong("stay in float32")
def in_float64(apply, batch_size):
    return padded(apply, batch_size, scale=255.0)


@answers.wrong("divide by 255")
def unscaled(apply, batch_size):
    return padded(apply, batch_size, scale=np.float32(1))


@answers.wrong("divide by 255")
def by_256(apply, batch_size):
    return padded(apply, batch_size, scale=np.float32(256))


@answers.wrong("have to be cut off")
def uncut(apply, batch_size):
    return padded(apply, batch_size, cut=False)


@answers.wrong("get no answer")
def drops_the_rest(apply, batch_size):
    def predict(raw):
        return padded(apply, batch_size)(raw)[: len(raw) // 784 // batch_size * batch_size]

    return predict


@answers.wrong("No image at all is a request")
def no_empty(apply, batch_size):
    def predict(raw):
        if not raw:
            raise IndexError("nothing")
        return padded(apply, batch_size)(raw)

    return predict


@answers.wrong("as if nothing were wrong")
def cuts_bytes(apply, batch_size):
    return lambda raw: padded(apply, batch_size)(raw[: len(raw) // 784 * 784])


@answers.wrong("`return` missing")
def nothing(apply, batch_size):
    def predict(raw):
        padded(apply, batch_size)(raw)

    return predict


@answers.wrong("Return a function")
def at_once(apply, batch_size):
    return 3


@answers.wrong("more often than there are batches")
def one_by_one(apply, batch_size):
    def predict(raw):
        answers = []
        for image in images_of(raw):
            batch = np.zeros((batch_size, 28, 28), np.float32)
            batch[0] = image / 255
            answers.append(int(apply(batch).argmax(-1)[0]))
        return np.array(answers, int)

    return predict


@answers.wrong("An array of classes is asked for, and")
def a_list_of_ints(apply, batch_size):
    return lambda raw: padded(apply, batch_size)(raw).tolist()


@answers.wrong("An array of classes is asked for, and")
def a_list_of_parts(apply, batch_size):
    def predict(raw):
        classes = padded(apply, batch_size)(raw)
        return [classes[i : i + batch_size] for i in range(0, len(classes), batch_size)]

    return predict


@answers.wrong("has an empty array for an answer")
def an_empty_list(apply, batch_size):
    return lambda raw: padded(apply, batch_size)(raw) if raw else []


# Right ones of unusual style

answers.right(padded)


@answers.right
def on_the_device(apply, batch_size):
    def predict(raw):
        images = jnp.asarray(images_of(raw))
        n = len(images)
        images = jnp.pad(images, ((0, -n % batch_size), (0, 0), (0, 0)), constant_values=7)
        parts = images.astype(jnp.float32).reshape(-1, batch_size, 28, 28) / 255
        return jnp.array([c for part in parts for c in apply(part).argmax(-1).tolist()], int)[:n]

    return predict


@answers.right
def jitted(apply, batch_size):
    compiled = jax.jit(lambda x: x.astype(jnp.float32) / 255)

    def predict(raw):
        images, answers = images_of(raw), []
        for start in range(0, len(images), batch_size):
            part = images[start : start + batch_size]
            batch = np.resize(part, (batch_size, 28, 28))  # repeats it
            answers += np.asarray(apply(compiled(batch)).argmax(-1)).tolist()[: len(part)]
        return np.array(answers, int)

    return predict


@answers.wrong("also where there are none")
def a_list_of_none(apply, batch_size):
    return lambda raw: np.array(padded(apply, batch_size)(raw).tolist())


@answers.wrong("more often than there are batches")
def fills_up_full_ones(apply, batch_size):
    def predict(raw):
        images = images_of(raw)
        more = np.zeros((batch_size - len(images) % batch_size) * 784, np.uint8)
        return padded(apply, batch_size)(raw + more.tobytes())[: len(images)]

    return predict


@answers.wrong("divide by 255")
def compiled_and_unscaled(apply, batch_size):
    return padded(jax.jit(apply), batch_size, scale=np.float32(1))


@answers.right
def compiled(apply, batch_size):
    return padded(jax.jit(apply), batch_size)


@answers.right
def mapped(apply, batch_size):
    def predict(raw):
        n, rest = divmod(len(raw), 784)
        if rest:
            raise ValueError(f"{rest} bytes too many")
        batches = -(-n // batch_size)
        if not n:
            return jnp.zeros(0, int)
        images = np.frombuffer(raw.ljust(batches * batch_size * 784, b"\0"), np.uint8) / SCALE
        answers = jax.lax.map(apply, jnp.asarray(images.reshape(batches, batch_size, 28, 28)))
        return answers.argmax(-1).ravel()[:n]

    return predict


answers.equivalent("-1 -> -2", because="NumPy takes any negative length for the one that it is to find")
answers.equivalent("-1 -> 1 (2)", because="logits have two axes, and the last one is axis 1")
