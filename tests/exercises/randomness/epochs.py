"""Answers to the exercise randomness.epochs."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.randomness.epochs import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("without repetition")
def choice(key, examples, count):
    return jax.random.randint(key, (count, examples), 0, examples)


@answers.wrong("without repetition")
def all_at_once(key, examples, count):
    return jax.random.permutation(key, jnp.tile(jnp.arange(examples), count)).reshape(count, examples)


@answers.wrong("All epochs are alike")
def same(key, examples, count):
    return jnp.tile(jax.random.permutation(key, examples), (count, 1))


@answers.wrong("All epochs are alike")
def shuffled_rows(key, examples, count):
    return jax.random.permutation(key, jnp.tile(jnp.arange(examples), (count, 1)), axis=1)


@answers.wrong("All epochs are alike")
def loop_one_key(key, examples, count):
    return jnp.stack([jax.random.permutation(key, examples) for _ in range(count)])


@answers.wrong("All epochs are alike")
def folded_the_same(key, examples, count):
    return jnp.stack([jax.random.permutation(jax.random.fold_in(key, 1), examples) for _ in range(count)])


@answers.wrong("nothing is shuffled")
def plain(key, examples, count):
    return jnp.tile(jnp.arange(examples), (count, 1))


@answers.wrong("has to do with the first")
def rolled(key, examples, count):
    order = jax.random.permutation(key, examples)
    return jax.vmap(lambda i: jnp.roll(order, i))(jnp.arange(count))


@answers.wrong("has to do with the first")
def epochs_reversed(key, examples, count):
    order = jax.random.permutation(key, examples)
    return jnp.stack([order if i % 2 == 0 else order[::-1] for i in range(count)])


@answers.wrong("has to do with the first")
def two_and_mirrored(key, examples, count):
    rows = solution(key, examples, max(2, (count + 1) // 2))
    return jnp.concatenate([rows, rows[:, ::-1]])[:count]


@answers.wrong("does not depend on the key")
def seeds(key, examples, count):
    return jax.vmap(lambda i: jax.random.permutation(jax.random.key(i), examples))(jnp.arange(count))


@answers.wrong("One of the epochs is not shuffled")
def first_plain(key, examples, count):
    later = solution(key, examples, count - 1)
    return jnp.concatenate([jnp.arange(examples)[None], later])


@answers.wrong("not all orders are equally likely")
def coarse(key, examples, count):
    coarse = jax.random.randint(key, (count, examples), 0, 5)
    return jnp.argsort(coarse, axis=1)


@answers.wrong("a traced array")
def numpy(key, examples, count):
    rng = np.random.default_rng(int(jax.random.bits(key)))
    return jnp.stack([jnp.asarray(rng.permutation(examples)) for _ in range(count)])


@answers.wrong("numbered from 0 to 9")
def from_one(key, examples, count):
    return solution(key, examples, count) + 1


@answers.wrong("The shape is wrong")
def transposed(key, examples, count):
    return solution(key, examples, count).T


# Right ones of unusual style, and wrong ones that look right


@answers.right
def in_a_python_loop(key, examples, count):
    return jnp.stack([jax.random.permutation(k, examples) for k in jax.random.split(key, count)])


@answers.right
def independent_rows(key, examples, count):
    rows = jnp.broadcast_to(jnp.arange(examples), (count, examples))
    return jax.random.permutation(key, rows, axis=1, independent=True)


@answers.right
def sorts_numbers(key, examples, count):
    return jnp.argsort(jax.random.uniform(key, (count, examples)), axis=1)


@answers.right
def folds_epochs(key, examples, count):
    return jax.lax.map(
        lambda epoch: jax.random.permutation(jax.random.fold_in(key, epoch), examples), jnp.arange(count)
    )


@answers.right
def chooses(key, examples, count):
    def order(key):
        return jax.random.choice(key, examples, (examples,), replace=False)

    return jax.vmap(order)(jax.random.split(key, count))


@answers.wrong()
def one_after_the_other(key, examples, count):
    first = jax.random.permutation(key, examples)
    rows = [first]
    for _ in range(count - 1):
        rows.append(rows[-1][first])
    return jnp.stack(rows)


@answers.wrong()
def floats(key, examples, count):
    return in_a_python_loop(key, examples, count).astype(float)
