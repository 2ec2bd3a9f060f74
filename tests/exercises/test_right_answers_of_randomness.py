"""Right answers of unusual style to the exercises of Randomness pass, and wrong ones that look right do not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises import randomness

from .right_answers import FAILED, PASSED, Answers

right, wrong = Answers(PASSED), Answers(FAILED)


# same

SAME = {"a": True, "b": True, "c": True, "d": False, "e": True, "f": False}
right(randomness.same)({name: np.bool_(answer) for name, answer in SAME.items()})
wrong(randomness.same)({name: 1 if answer else 0 for name, answer in SAME.items()})


# augment


@right(randomness.augment)
def folds_in(key, images):
    flip = jax.random.uniform(jax.random.fold_in(key, 0), (images.shape[0],)) < 0.5
    noise = jax.random.normal(jax.random.fold_in(key, 1), images.shape, images.dtype)
    return jnp.where(flip[:, None, None], jnp.flip(images, -1), images) + noise * 0.1


@right(randomness.augment)
def one_example_mapped(key, images):
    def one(key, image):
        flip, noise = jax.random.split(key)
        image = jax.lax.cond(jax.random.bernoulli(flip), lambda x: x[:, ::-1], lambda x: x, image)
        return image + 0.1 * jax.random.normal(noise, image.shape)

    return jax.vmap(one)(jax.random.split(key, len(images)), images)


@right(randomness.augment)
@jax.jit
def rebinds(key, images):
    key, new = jax.random.split(key)
    sign = jax.random.rademacher(new, (len(images), 1, 1))
    key, new = jax.random.split(key)
    return jnp.where(sign > 0, images, images[..., ::-1]) + jax.random.normal(new, images.shape) / 10


@wrong(randomness.augment)
def coins_from_noise(key, images):
    noise = jax.random.normal(key, images.shape)
    flip = noise[:, :1, :1] > 0
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * noise


@wrong(randomness.augment)
def words_of_the_key(key, images):
    again = jax.random.wrap_key_data(jax.random.key_data(key))
    flip = jax.random.bernoulli(again, 0.5, (len(images), 1, 1))
    return jnp.where(flip, images[:, :, ::-1], images) + 0.1 * jax.random.normal(key, images.shape)


@wrong(randomness.augment)
def uniform_noise(key, images):
    flip, noise = jax.random.split(key)
    flip = jax.random.bernoulli(flip, 0.5, (len(images), 1, 1))
    return jnp.where(flip, images[:, :, ::-1], images) + jax.random.uniform(noise, images.shape) * 0.1


# draws


@right(randomness.draws)
def keys_first(key, start, count):
    keys = jax.vmap(functools.partial(jax.random.fold_in, key))(jnp.arange(count) + start)
    return jax.vmap(jax.random.normal)(keys)


@right(randomness.draws)
def in_a_scan(key, start, count):
    def step(i, _):
        return i + 1, jax.random.normal(jax.random.fold_in(key, i))

    return jax.lax.scan(step, jnp.int32(start), None, length=count)[1]


@right(randomness.draws)
def in_a_map(key, start, count):
    return jax.lax.map(lambda i: jax.random.normal(jax.random.fold_in(key, i)), start + jnp.arange(count))


@wrong(randomness.draws)
def in_pairs(key, start, count):
    def draw(i):
        return jax.random.normal(jax.random.fold_in(key, i // 2)) * (1 - 2 * (i % 2))

    return jax.vmap(draw)(start + jnp.arange(count))


@wrong(randomness.draws)
def only_eight(key, start, count):
    return jnp.take(jax.random.normal(key, (8,)), start + jnp.arange(count), mode="wrap")


# drop_batch


@right(randomness.drop_batch)
def by_place(drop, key, batch):
    def one(i, x):
        return drop(jax.random.fold_in(key, i), x)

    return jax.vmap(one)(jnp.arange(batch.shape[0]), batch)


@right(randomness.drop_batch)
def in_a_loop_of_jax(drop, key, batch):
    keys = jax.random.split(key, batch.shape[0])
    return jax.lax.map(lambda pair: drop(*pair), (keys, batch))


@right(randomness.drop_batch)
def with_a_spare_key(drop, key, batch):
    keys = jax.random.split(key, len(batch) + 1)
    return jax.vmap(drop, in_axes=(0, 0), out_axes=0)(keys[1:], batch)


@wrong(randomness.drop_batch)
def shuffled_keys_of_two(drop, key, batch):
    keys = jax.random.split(key, 8)
    return jax.vmap(drop)(keys[jnp.arange(len(batch)) % 8], batch)


# estimate_pi


@right(randomness.estimate_pi)
def whole_square(key, n):
    points = jax.random.uniform(key, (n, 2), minval=-1.0, maxval=1.0)
    throws = 4.0 * (jnp.linalg.norm(points, axis=-1) <= 1)
    return throws.mean(), throws.std(ddof=1) / n**0.5


@right(randomness.estimate_pi)
def one_point_at_a_time(key, n):
    def throw(key):
        x, y = jax.random.uniform(key, (2,))
        return 4.0 * (x * x + y * y < 1)

    throws = jax.vmap(throw)(jax.random.split(key, n))
    return jnp.mean(throws), jnp.sqrt(jnp.var(throws) / n)


@right(randomness.estimate_pi)
def returns_a_list(key, n):
    x, y = jax.random.uniform(key, (2, n))
    p = jnp.count_nonzero(x**2 + y**2 < 1) / n
    return [4 * p, 4 * jnp.sqrt(p * (1 - p)) / jnp.sqrt(n)]


@wrong(randomness.estimate_pi)
def pi_itself(key, n):
    return jnp.pi + 0.0519 * jax.random.normal(key) * jnp.sqrt(1000 / n), jnp.float32(0.0519)


@wrong(randomness.estimate_pi)
def bar_of_another_run(key, n):
    one, two = jax.random.split(key)
    estimate = whole_square(one, n)[0]
    return estimate, jnp.abs(estimate - whole_square(two, n)[0]) * 3


# epochs


@right(randomness.epochs)
def in_a_python_loop(key, examples, count):
    return jnp.stack([jax.random.permutation(k, examples) for k in jax.random.split(key, count)])


@right(randomness.epochs)
def independent_rows(key, examples, count):
    rows = jnp.broadcast_to(jnp.arange(examples), (count, examples))
    return jax.random.permutation(key, rows, axis=1, independent=True)


@right(randomness.epochs)
def sorts_numbers(key, examples, count):
    return jnp.argsort(jax.random.uniform(key, (count, examples)), axis=1)


@right(randomness.epochs)
def folds_epochs(key, examples, count):
    return jax.lax.map(
        lambda epoch: jax.random.permutation(jax.random.fold_in(key, epoch), examples), jnp.arange(count)
    )


@right(randomness.epochs)
def chooses(key, examples, count):
    def order(key):
        return jax.random.choice(key, examples, (examples,), replace=False)

    return jax.vmap(order)(jax.random.split(key, count))


@wrong(randomness.epochs)
def one_after_the_other(key, examples, count):
    first = jax.random.permutation(key, examples)
    rows = [first]
    for _ in range(count - 1):
        rows.append(rows[-1][first])
    return jnp.stack(rows)


@wrong(randomness.epochs)
def floats(key, examples, count):
    return in_a_python_loop(key, examples, count).astype(float)


# bootstrap


@right(randomness.bootstrap)
def by_choice(key, x, statistic, count):
    def once(key):
        return statistic(jax.random.choice(key, x, (x.shape[0],), axis=0))

    return jax.vmap(once)(jax.random.split(key, count))


@right(randomness.bootstrap)
def all_rows_at_once(key, x, statistic, count):
    rows = jax.random.randint(key, (count, len(x)), 0, len(x))
    return jax.vmap(lambda row: statistic(x[row]))(rows)


@right(randomness.bootstrap)
def one_by_one(key, x, statistic, count):
    def once(i):
        rows = jax.random.randint(jax.random.fold_in(key, i), x.shape[:1], 0, x.shape[0])
        return statistic(jnp.take(x, rows, axis=0))

    return jax.lax.map(once, jnp.arange(count))


@right(randomness.bootstrap)
def floored(key, x, statistic, count):
    rows = jnp.floor(jax.random.uniform(key, (count, len(x))) * len(x)).astype(int)
    return jax.vmap(statistic)(x[rows])


@wrong(randomness.bootstrap)
def few_samples_again(key, x, statistic, count):
    some = jax.vmap(lambda k: statistic(x[jax.random.randint(k, (len(x),), 0, len(x))]))(
        jax.random.split(key, 5)
    )
    return some[jnp.arange(count) % 5]


@wrong(randomness.bootstrap)
def neighbours_share(key, x, statistic, count):
    rows = jax.random.randint(key, ((count + 1) // 2, len(x)), 0, len(x))
    return jax.vmap(lambda row: statistic(x[row]))(jnp.repeat(rows, 2, axis=0)[:count])


test_right_answers_pass, test_wrong_answers_fail = right.test(), wrong.test()
