"""How well is each class recognised?"""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.exercises.first_network._batch import no_loop_over_batch


def solution(logits, labels):
    hits = jnp.argmax(logits, axis=-1) == labels  # (batch,)
    is_class = jax.nn.one_hot(labels, logits.shape[-1])  # (batch, classes)
    count = is_class.sum(axis=0)
    return jnp.where(hits[:, None], is_class, 0).sum(axis=0) / jnp.maximum(count, 1)


def _by_numpy(logits, labels):
    hits, labels = np.argmax(logits, axis=-1) == np.asarray(labels), np.asarray(labels)
    count, right = (np.bincount(labels, weights, minlength=logits.shape[-1]) for weights in (None, hits))
    return jax.device_put(np.float32(right / np.maximum(count, 1)))


def check(function):
    def draw_both(draw):
        logits = draw(inputs.arrays("n", 4, sizes=(1, 7)))
        no_ties = np.array([0.03, 0.02, 0.01, 0.0], np.float32)  # who has the largest logit is beyond dispute
        return jax.device_put(np.asarray(logits) + no_ties), draw(
            inputs.arrays(len(logits), low=0, high=3, dtype="int32")
        )

    # Class 0: one of three. Class 1: one of one, and guessed once more. Class 2: two of three. Class 3: never.
    guesses = np.array([0, 1, 2, 1, 2, 2, 0])
    telling = jax.device_put(
        (4 * np.eye(4, dtype=np.float32)[guesses], np.array([0, 0, 0, 1, 2, 2, 2], np.int32))
    )

    def counted(logits, labels):
        said = jax.nn.one_hot(jnp.argmax(logits, -1), logits.shape[-1])
        true = jax.nn.one_hot(labels, logits.shape[-1])
        return (said * true).sum(0), said.sum(0), true.sum(0)

    recognise = [
        (
            lambda z, y: (lambda hit, said, true: hit / jnp.maximum(said, 1))(*counted(z, y)),
            "You divide by how often the network *said* the class; the share of the pictures that *are* of the class is "
            "asked for.",
        ),
        (
            lambda z, y: counted(z, y)[0] / len(y),
            "You divide by the size of the whole batch, not by the number of pictures of each class.",
        ),
        (
            lambda z, y: counted(z, y)[0],
            "These are numbers of hits: divide by the number of pictures of each class.",
        ),
        (
            lambda z, y: jnp.mean(jnp.argmax(z, -1) == y),
            "This is one number for all classes together; one for each class is asked for.",
        ),
        (
            lambda z, y: (lambda hit, said, true: (true - hit) / jnp.maximum(true, 1))(*counted(z, y)),
            "This is the share that was *not* recognised.",
        ),
        (
            two_guesses,
            "A picture counts here as recognised if its class has one of the two largest logits; only the largest one is "
            "the network's guess.",
        ),
        (
            lambda z, y: (lambda hit, said, true: 1 - (said + true - 2 * hit) / len(y))(*counted(z, y)),
            "Pictures of other classes count here, too, where the network did not take them for this class. Only the "
            "pictures of the class are asked about.",
        ),
    ]
    got = function(*telling)
    if getattr(got, "shape", None) == (4,) and np.isnan(np.asarray(got)[3]):
        raise Failed(
            "A class that does not occur in the batch gets NaN, which is 0 divided by 0; it should get 0.",
            input={"logits": telling[0], "labels": telling[1]},
            expected=solution(*telling),
            got=got,
        )
    checks.values(function, _by_numpy, examples=[telling], recognise=recognise)
    jitted = checks.works_under_jit(function, *telling)
    checks.values(jitted, _by_numpy, inputs.together(draw_both), recognise=recognise, count=12)
    _other_number_of_classes(jitted)
    no_loop_over_batch(function, lambda n: (np.zeros((n, 4), np.float32), np.zeros(n, np.int32)))


def _other_number_of_classes(jitted):
    logits, labels = 4 * np.eye(3, dtype=np.float32)[[0, 1, 2, 1]], np.array([0, 1, 1, 2], np.int32)
    given = jax.device_put((logits, labels))
    got = jitted(*given)
    if getattr(got, "shape", None) == (4,):
        raise Failed(
            "With 3 classes there are still 4 results: read the number of classes off `logits.shape[-1]`.",
            input={"logits": given[0], "labels": given[1]},
            got=got,
        )
    checks.same(got, _by_numpy(*given), where="with 3 classes")


def two_guesses(logits, labels):
    hits = (jnp.argsort(logits, axis=-1)[:, -2:] == labels[:, None]).any(axis=-1)
    is_class = jax.nn.one_hot(labels, logits.shape[-1])
    return hits @ is_class / jnp.maximum(is_class.sum(0), 1)


exercise = Exercise(
    title="How well is each class recognised?",
    stars=2,
    minutes=10,
    why="Shapes that do not depend on values: that is what lets one compiled program serve every batch.",
    hints=(
        "Two counts are needed, each of shape (classes,): how many pictures of each class there are, and how many of them "
        "were hit.",
        "`labels[:, None] == jnp.arange(classes)` is a table (batch, classes) that says which picture is of which class. Its "
        "shape does not depend on values.",
        "Multiply the table by the hits, `hits[:, None]`, and sum both over the batch. Divide by "
        "`jnp.maximum(count, 1)`: where nothing was counted, 0 / 1 is 0.",
    ),
    solution=solution,
    check=check,
)
