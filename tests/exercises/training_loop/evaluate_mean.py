"""Answers to the exercise training_loop.evaluate_mean."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.exercises.training_loop.evaluate_mean import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def padded(x, size):
    return np.concatenate([x, np.zeros((-len(x) % size, *x.shape[1:]), x.dtype)])


@answers.wrong("Each new shape is another program")
def short_batch(metric, x, y, batch_size):
    total = 0.0
    for i in range(0, len(x), batch_size):
        total += jnp.sum(metric(x[i : i + batch_size], y[i : i + batch_size]))
    return total / len(x)


@answers.wrong("Each new shape is another program")
def all_at_once(metric, x, y, batch_size):
    return jnp.mean(metric(x, y))


@answers.wrong("are left out: they belong")
def drops(metric, x, y, batch_size):
    whole = max(len(x) - len(x) % batch_size, batch_size)
    x, y = padded(x, batch_size), padded(y, batch_size)
    return np.mean(
        [metric(x[i : i + batch_size], y[i : i + batch_size]) for i in range(0, whole, batch_size)]
    )


@answers.wrong("0 times NaN is NaN")
def multiplies(metric, x, y, batch_size):
    x, y, size = padded(x, batch_size), padded(y, batch_size), len(x)
    total = 0.0
    for i in range(0, len(x), batch_size):
        real = np.float32(
            np.arange(i, i + batch_size) < size
        )  # XLA makes a choice of a product with booleans
        total += jnp.sum(real * metric(x[i : i + batch_size], y[i : i + batch_size]))
    return total / size


@answers.wrong("counted as if they were examples")
def counts_all(metric, x, y, batch_size):
    rows = np.minimum(np.arange(-(-len(x) // batch_size) * batch_size), len(x) - 1)
    values = [metric(x[i], y[i]) for i in rows.reshape(-1, batch_size)]
    return jnp.mean(jnp.concatenate(values))


@answers.wrong("mean of means")
def mean_of_means(metric, x, y, batch_size):
    means = []
    for i in range(0, len(x), batch_size):
        rows = np.arange(i, i + batch_size)
        values = metric(x[np.minimum(rows, len(x) - 1)], y[np.minimum(rows, len(x) - 1)])
        means.append(np.mean(np.asarray(values)[rows < len(x)]))
    return np.mean(means)


@answers.wrong("divided by the number of rows")
def divides_by_rows(metric, x, y, batch_size):
    size, rows = len(x), -(-len(x) // batch_size) * batch_size
    total = 0.0
    for i in range(0, rows, batch_size):
        indices = np.arange(i, i + batch_size)
        values = metric(x[np.minimum(indices, size - 1)], y[np.minimum(indices, size - 1)])
        total += jnp.sum(jnp.where(indices < size, values, 0))
    return total / rows


@answers.wrong("That is the sum")
def the_sum(metric, x, y, batch_size):
    return divides_by_rows(metric, x, y, batch_size) * (-(-len(x) // batch_size) * batch_size)


@answers.wrong("One number is asked for")
def all_values(metric, x, y, batch_size):
    return metric(padded(x, batch_size)[:batch_size], padded(y, batch_size)[:batch_size])


@answers.wrong("never calls `metric`")
def of_labels(metric, x, y, batch_size):
    return np.mean(y)


@answers.wrong("and you hide it")
def hides(metric, x, y, batch_size):
    rows = np.arange(-(-len(x) // batch_size) * batch_size).reshape(-1, batch_size)
    total = 0.0
    for i in rows:
        values = metric(x[np.minimum(i, len(x) - 1)], y[np.minimum(i, len(x) - 1)])
        total += jnp.sum(jnp.nan_to_num(values) * (i < len(x)))
    return total / len(x)


@answers.wrong("left out of the sum")
def drops_the_last(metric, x, y, batch_size):
    total = 0.0
    for i in range(0, len(x) - batch_size + 1, batch_size):
        total += jnp.sum(metric(x[i : i + batch_size], y[i : i + batch_size]))
    return total / len(x)


@answers.wrong("filled-up ones included, and you divide")
def no_mask(metric, x, y, batch_size):
    total = 0.0
    for start in range(0, len(x), batch_size):
        i = np.minimum(np.arange(start, start + batch_size), len(x) - 1)
        total += jnp.sum(metric(x[i], y[i]))
    return total / len(x)


# Wrong ones that look right


@answers.wrong()
def nanmean(metric, x, y, batch_size):
    """It takes the filled-up rows for the only ones that can be NaN, and averages batch by batch."""
    x, y = padded(x, batch_size), padded(y, batch_size)
    means = [
        jnp.nanmean(metric(x[i : i + batch_size], y[i : i + batch_size]))
        for i in range(0, len(x), batch_size)
    ]
    return np.mean(means)


@answers.wrong()
def overlapping(metric, x, y, batch_size):
    """The last batch is the last `batch_size` examples, some of which were there before."""
    starts = [min(i, max(len(x) - batch_size, 0)) for i in range(0, len(x), batch_size)]
    x, y = padded(x, 1), padded(y, 1)
    if len(x) < batch_size:
        return exercise.answer(metric, x, y, batch_size)
    return jnp.mean(jnp.stack([metric(x[i : i + batch_size], y[i : i + batch_size]) for i in starts]))


# Right ones of unusual style


@answers.right
def by_lax_map(metric, x, y, batch_size):
    xs, ys = (jnp.asarray(padded(a, batch_size)) for a in (x, y))
    xs, ys = (a.reshape(-1, batch_size, *a.shape[1:]) for a in (xs, ys))
    values = jax.lax.map(lambda pair: metric(*pair), (xs, ys)).reshape(-1)
    return jnp.mean(values[: len(x)])


@answers.right
def slices_the_values(metric, x, y, batch_size):
    values = []
    for i in range(0, len(x), batch_size):
        rows = (np.arange(i, i + batch_size) % len(x)).astype(int)
        values += np.asarray(metric(x[rows], y[rows])).tolist()
    return float(np.mean(values[: len(x)]))


@answers.right
def only_new_ones_count(metric, x, y, batch_size):
    """The last batch reaches back, and only its new examples are counted."""
    if len(x) < batch_size:
        return exercise.answer(metric, x, y, batch_size)
    total = 0.0
    for i in range(0, len(x), batch_size):
        start = min(i, len(x) - batch_size)
        total += np.asarray(metric(x[start : start + batch_size], y[start : start + batch_size]))[
            i - start :
        ].sum()
    return total / len(x)


@answers.wrong()
def four_at_a_time(metric, x, y, batch_size):
    return exercise.answer(metric, x, y, 4)


@answers.wrong("Each new shape is another program")
def filled_up_with_the_first_rows(metric, x, y, batch_size):
    missing = -len(x) % batch_size
    xs, ys = np.concatenate([x, x[:missing]]), np.concatenate([y, y[:missing]])
    values = [metric(xs[i : i + batch_size], ys[i : i + batch_size]) for i in range(0, len(x), batch_size)]
    return jnp.mean(jnp.concatenate(values)[: len(x)])


@answers.wrong("fill up with numbers of the same dtype")
def labels_become_floats(metric, x, y, batch_size):
    missing = -len(x) % batch_size
    xs = np.concatenate([x, np.zeros((missing, *x.shape[1:]))])
    ys = np.concatenate([y, np.zeros(missing)])
    values = [metric(xs[i : i + batch_size], ys[i : i + batch_size]) for i in range(0, len(x), batch_size)]
    return jnp.mean(jnp.concatenate(values)[: len(x)])


@answers.wrong("Each new shape is another program")
def examples_are_flattened(metric, x, y, batch_size):
    return exercise.answer(metric, x.reshape(len(x), -1), y, batch_size)


@answers.wrong("and you hide it")
def hides_a_nan_of_the_last_batch(metric, x, y, batch_size):
    total = 0.0
    for start in range(0, len(x), batch_size):
        indices = np.arange(start, start + batch_size)
        some = np.minimum(indices, len(x) - 1)
        values = metric(x[some], y[some])
        ragged = start + batch_size > len(x)
        total += jnp.sum(jnp.where(indices < len(x), jnp.nan_to_num(values) if ragged else values, 0.0))
    return total / len(x)


@answers.wrong("keep nothing of an earlier call")
def remembers(metric, x, y, batch_size, known={}):  # noqa: B006
    shapes = metric, x.shape, batch_size
    if shapes not in known:
        known[shapes] = exercise.answer(metric, x, y, batch_size)
    return known[shapes]
