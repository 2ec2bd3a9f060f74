"""Add the metrics of a batch to sums that stay on the device."""

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.first_network._compare import alike


def solution(total, metrics, size):
    sums, count = total
    sums = jax.tree.map(lambda s, m: s + m * size, sums, metrics)
    return sums, count + size


def check(running_mean):
    metrics = {"loss": jnp.float32(2.0), "accuracy": jnp.float32(0.5)}
    total = {"loss": jnp.float32(12.0), "accuracy": jnp.float32(1.0)}, jnp.float32(4.0)
    _never_waits(running_mean, total, metrics)
    _right(running_mean, total, metrics)
    other = {"a": (jnp.float32([1.0, 2.0]), jnp.float32(3.0))}
    zeros = jax.tree.map(jnp.zeros_like, other), jnp.float32(0.0)
    checks.same(
        running_mean(zeros, other, 5),
        solution(zeros, other, 5),
        where="for a tree of another structure, with a vector in it",
        input={"total": zeros, "metrics": other, "size": 5},
    )


def _never_waits(add, total, metrics):
    """The carry of a scan: no number is asked for, and what comes out is of the type that went in."""
    try:
        got = jax.eval_shape(add, total, metrics, jnp.int32(3))
    except Failed as failure:
        if isinstance(
            getattr(failure, "error", None), jax.errors.ConcretizationTypeError | jax.errors.JAXTypeError
        ):
            failure.message = (
                "Your function needs a number where there is none yet, so it would wait for the device, and cannot be a part of a "
                f"jitted program.\n{failure.message}"
            )
        raise
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?")
    wanted = jax.eval_shape(lambda tree: tree, total)
    if jax.tree.structure(got) != jax.tree.structure(wanted):
        said = (
            "Return the pair `(sums, count)`, built as `total` is: the carry of a `scan` keeps its structure."
        )
        if isinstance(got, tuple) and len(got) == 2 and isinstance(got[1], dict):
            said = f"The two are swapped. {said}"
        raise Failed(said, expected=wanted, got=got)
    if any(one.dtype != two.dtype for one, two in zip(jax.tree.leaves(got), jax.tree.leaves(wanted))):
        raise Failed(
            "A dtype changes on the way: the carry of a `scan` must come out as it went in.",
            expected=wanted,
            got=got,
        )


def _right(add, total, metrics):
    before = jax.tree.map(jnp.copy, total)
    got, expected = add(total, metrics, 6), solution(before, metrics, 6)
    if not alike(total, before):
        raise Failed(
            "Your function changes `total[0]` in place: a dict that the caller still has. Return new sums."
        )
    (sums, count), size = before, 6
    means = jax.tree.map(lambda s, m: (s + m * size) / (count + size), sums, metrics)
    plain = jax.tree.map(jnp.add, sums, metrics)
    for wrong, said in (
        (
            (plain, count + 1),
            "That is a mean of means: a batch of one example counts as much as one of a thousand.",
        ),
        (
            (plain, count + size),
            "`metrics` are means over the batch. Times `size` they are sums, which can be added.",
        ),
        (
            (means, count + size),
            "You return the means. Sums can be added to again; divide them once, at the end.",
        ),
        ((expected[0], count + 1), "`count` is the number of examples, not of batches."),
        ((expected[0], count), "`count` is not counted on."),
        ((jax.tree.map(lambda m: m * size, metrics), jnp.float32(size)), "The sums so far are forgotten."),
    ):
        if alike(got, wrong):
            raise Failed(
                said, input={"total": before, "metrics": metrics, "size": 6}, expected=expected, got=got
            )
    checks.same(got, expected, input={"total": before, "metrics": metrics, "size": 6})


exercise = Exercise(
    title="A running mean that never waits",
    stars=2,
    minutes=10,
    why="Sums and a count can be carried through a whole epoch on the device, and give the mean over examples, not over batches.",
    hints=(
        "A mean over `size` examples times `size` is a sum, and sums of parts add up.",
        "`jax.tree.map(lambda s, m: …, sums, metrics)` goes through both trees at once.",
    ),
    solution=solution,
    check=check,
)
