"""The mean of a metric over a data set, in batches of one size."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(metric, x, y, batch_size):
    total = 0.0
    for start in range(0, len(x), batch_size):
        indices = np.arange(start, start + batch_size)
        some = np.minimum(indices, len(x) - 1)
        values = metric(x[some], y[some])
        total += jnp.sum(jnp.where(indices < len(x), values, 0.0))
    return total / len(x)


def _value(x, y):
    """A label says which number of an example counts; of an example that is all zeros the metric is NaN, as 0 / 0 is."""
    rows = jnp.asarray(x).reshape(len(x), -1)
    return (rows[:, 0] + 2 * jnp.take_along_axis(rows, jnp.asarray(y)[:, None], 1)[:, 0]) / abs(rows).sum(
        axis=1
    )


_compiled = jax.jit(_value)


COUNTED = "The rows that you filled in are counted as if they were examples."


def check(evaluate_mean):
    random = np.random.default_rng(0)
    for size, batch_size in ((10, 4), (3, 4), (8, 4), (1, 4), (7, 2), (5, 1), (2, 8), (5, 4)):
        x = random.integers(1, 5, (size, 2, 3)).astype(np.float32)
        y = random.integers(0, 6, size).astype(np.int32)
        _one(evaluate_mean, x, y, batch_size)
    for place in (2, 4):  # in a full batch, and in the last one
        some = x.copy()
        some[place] = 0.0
        got = evaluate_mean(_compiled, some, y, batch_size)
        if not np.isnan(got):
            raise Failed(
                "One of the examples themselves has NaN, so the mean is NaN, and you hide it. The rows that you filled in must not "
                "count; a NaN of an example must.",
                expected=np.nan,
                got=got,
                input=f"5 examples, batch_size=4, the metric of example {place} is NaN",
            )
    got, expected = evaluate_mean(_compiled, x, y, batch_size), float(np.mean(_value(x, y)))
    if not np.allclose(got, expected, rtol=1e-4):
        raise Failed(
            "Another data set of the same shapes gives the mean of the one before: keep nothing of an earlier call.",
            expected=expected,
            got=got,
        )


def _one(evaluate_mean, x, y, batch_size):
    calls = []

    def metric(x, y):
        calls.append((np.shape(x), np.shape(y)))
        if jnp.result_type(x) != jnp.float32 or not jnp.issubdtype(jnp.result_type(y), jnp.integer):
            raise Failed(
                f"`metric` was called with examples of {jnp.result_type(x)} and labels of {jnp.result_type(y)}. They were float32 and int32, "
                "and a metric may index with labels: fill up with numbers of the same dtype.",
                **shown,
            )
        return _compiled(x, y)

    size = len(x)
    shown = {"input": f"{size} examples, batch_size={batch_size}"}
    got = evaluate_mean(metric, x, y, batch_size)
    if not calls:
        raise Failed("Your function never calls `metric`.", **shown)
    for seen, labels in calls:
        if seen != (batch_size, 2, 3) or labels != (batch_size,):
            raise Failed(
                f"`metric` was called with {seen} and {labels}. Each new shape is another program: call it with exactly "
                f"{batch_size} examples, and fill the last batch up.",
                **shown,
            )
    checks.returned(got, **shown)
    if not isinstance(got, (float, np.ndarray, np.generic, jax.Array)) or np.shape(got):
        raise Failed("One number is asked for, the mean.", got=got, **shown)
    values = np.array(_value(x, y))
    expected = float(values.mean())
    if np.allclose(got, expected, rtol=1e-4):
        return
    if np.isnan(got):
        raise Failed(
            "The mean is NaN. The metric of a row that you filled in is NaN here, and 0 times NaN is NaN: choose with "
            "`jnp.where(real, values, 0)` instead of multiplying.",
            expected=expected,
            got=got,
            **shown,
        )
    whole, rows = size - size % batch_size, -(-size // batch_size)
    parts = [values[start : start + batch_size] for start in range(0, size, batch_size)]
    repeated = np.concatenate([values, np.repeat(values[-1:], rows * batch_size - size)])
    around = values[np.arange(rows * batch_size) % size]
    for wrong, said in (
        (
            np.mean([part.mean() for part in parts]),
            "That is a mean of means: the last batch is smaller, and counts as much.",
        ),
        (
            values[:whole].mean() if whole else None,
            "The examples that do not fill a batch are left out: they belong to the set, too.",
        ),
        (
            values[:whole].sum() / size if whole else None,
            "The examples that do not fill a batch are left out of the sum, but it is divided by the number of all.",
        ),
        *((filled.mean(), COUNTED) for filled in (repeated, around)),
        *(
            (
                filled.sum() / size,
                f"The sum holds {rows * batch_size} rows, filled-up ones included, and you divide it by {size}. Mask it.",
            )
            for filled in (repeated, around)
        ),
        (
            values.sum() / (rows * batch_size),
            "The sum is right, but it is divided by the number of rows, filled-up ones included.",
        ),
        (values.sum(), "That is the sum; the mean is asked for."),
    ):
        if wrong is not None and np.allclose(got, wrong, rtol=1e-4):
            raise Failed(said, expected=expected, got=got, **shown)
    raise Failed("The mean is wrong.", expected=expected, got=got, **shown)


exercise = Exercise(
    title="Evaluation with a ragged last batch",
    stars=1,
    minutes=10,
    why="One shape, one program, and every example counts once: that is an evaluation whose third digit can be believed.",
    hints=(
        "Fill the last batch up with anything, for example with the last example again, and remember which rows are real.",
        "Sum over the real rows with `jnp.where(real, values, 0.0)`, and divide once, by `len(x)`.",
    ),
    solution=solution,
    check=check,
)
