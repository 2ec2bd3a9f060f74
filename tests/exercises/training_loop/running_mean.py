"""Answers to the exercise training_loop.running_mean."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import device_get

from mlax_tutorial.exercises.training_loop.running_mean import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("it would wait for the device")
def with_floats(total, metrics, size):
    sums, count = total
    return jax.tree.map(lambda s, m: s + float(m) * size, sums, metrics), count + size


@answers.wrong("mean of means")
def of_batches(total, metrics, size):
    sums, count = total
    return jax.tree.map(jnp.add, sums, metrics), count + 1


@answers.wrong("Times `size` they are sums")
def without_size(total, metrics, size):
    sums, count = total
    return jax.tree.map(jnp.add, sums, metrics), count + size


@answers.wrong("not of batches")
def counts_batches(total, metrics, size):
    sums, count = total
    return jax.tree.map(lambda s, m: s + m * size, sums, metrics), count + 1


@answers.wrong("You return the means")
def means(total, metrics, size):
    sums, count = total
    return jax.tree.map(lambda s, m: (s + m * size) / (count + size), sums, metrics), count + size


@answers.wrong("in place")
def in_place(total, metrics, size):
    sums, count = total
    for name, value in metrics.items():
        sums[name] = sums[name] + value * size
    return sums, count + size


@answers.wrong("The two are swapped")
def swapped(total, metrics, size):
    sums, count = total
    return count + size, jax.tree.map(lambda s, m: s + m * size, sums, metrics)


@answers.wrong("`return` missing")
def nothing(total, metrics, size):
    sums, count = total
    jax.tree.map(lambda s, m: s + m * size, sums, metrics)


@answers.wrong("The sums so far are forgotten")
def forgets(total, metrics, size):
    return jax.tree.map(lambda m: m * size, metrics), jnp.float32(size)


@answers.wrong("dtype changes")
def in_integers(total, metrics, size):
    sums, count = total
    return jax.tree.map(lambda s, m: s + m * size, sums, metrics), jnp.int32(count) + size


@answers.wrong("calls `jax.block_until_ready`")
def blocks(total, metrics, size):
    return exercise.answer(total, jax.block_until_ready(metrics), size)


@answers.wrong("calls `jax.device_get`")
def fetches(total, metrics, size):
    return exercise.answer(total, jax.device_get(metrics), size)


@answers.wrong("it would wait for the device")
def prints(total, metrics, size):
    _ = f"{metrics['loss']:.3f}"
    return exercise.answer(total, metrics, size)


@answers.wrong("it would wait for the device")
def blocks_an_array(total, metrics, size):
    metrics["loss"].block_until_ready()
    return exercise.answer(total, metrics, size)


LOG = []


@answers.wrong("A tracer leaks")
def logs(total, metrics, size):
    LOG.append(metrics)
    return exercise.answer(total, metrics, size)


@answers.wrong("need not be a flat dict")
def by_items(total, metrics, size):
    sums, count = total
    return {name: sums[name] + value * size for name, value in metrics.items() if name in sums} | {
        "loss": sums.get("loss", 0.0) + metrics.get("loss", 0.0) * size
    }, count + size


@answers.wrong("need not be a flat dict")
def by_name(total, metrics, size):
    sums, count = total
    loss = sums["loss"] + metrics["loss"] * size
    return {"loss": loss, "accuracy": sums["accuracy"] + metrics["accuracy"] * size}, count + size


@answers.wrong("A count of int32 comes back")
def float_count(total, metrics, size):
    sums, count = exercise.answer(total, metrics, size)
    return sums, jnp.float32(count)


# Wrong ones that look right


@answers.wrong()
def only_dicts(total, metrics, size):
    sums, count = total
    return {name: sums[name] + metrics[name] * size for name in ("loss", "accuracy")}, count + size


@answers.wrong()
def by_numpy(total, metrics, size):
    sums, count = total
    return jax.tree.map(lambda s, m: s + np.asarray(m) * size, sums, metrics), count + size


@answers.wrong()
def rounds(total, metrics, size):
    sums, count = total
    return jax.tree.map(lambda s, m: s + jnp.round(m * size), sums, metrics), count + size


@answers.wrong()
def in_half_precision(total, metrics, size):
    sums, count = total
    product = lambda m: jnp.float32(jnp.float16(m) * jnp.float16(size))  # noqa: E731
    return jax.tree.map(lambda s, m: s + product(m), sums, metrics), count + size


# Right ones of unusual style


@answers.right
def by_leaves(total, metrics, size):
    leaves, structure = jax.tree.flatten(total)
    new = [leaf + size * value for leaf, value in zip(leaves, [*jax.tree.leaves(metrics), 1])]
    return jax.tree.unflatten(structure, new)


@answers.right
@jax.jit
def jitted(total, metrics, size):
    return jax.tree.map(lambda s, m: s + m * size, total, (metrics, jnp.int32(1)))


@answers.right
def as_a_list(total, metrics, size):
    sums, count = total
    add = lambda s, m: jnp.sum(jnp.stack([s, size * m]), axis=0)  # noqa: E731
    return (jax.tree.map(add, sums, metrics), jnp.add(count, size))


def by_solution(total, metrics, size):
    return exercise.answer(total, metrics, size)


@answers.wrong("calls `jax.device_get`")
def waits_by_an_imported_name(total, metrics, size):
    return by_solution(total, device_get(metrics), size)


@answers.wrong("reads the numbers of an array on the host")
def waits_where_it_can(total, metrics, size):
    for metric in jax.tree.leaves(metrics):
        if hasattr(metric, "block_until_ready"):
            metric.block_until_ready()
    return by_solution(total, metrics, size)


@answers.wrong("reads the numbers of an array on the host")
def waits_where_it_is_no_tracer(total, metrics, size):
    if not isinstance(metrics["loss" if "loss" in metrics else "a"], (jax.core.Tracer, tuple)):
        metrics = jax.tree.map(
            lambda m: m if isinstance(m, jax.core.Tracer) else jnp.asarray(m.item()), metrics
        )
    return by_solution(total, metrics, size)


@answers.wrong("calls `jax.effects_barrier`")
def barrier(total, metrics, size):
    total = by_solution(total, metrics, size)
    jax.effects_barrier()
    return total


@answers.wrong("reads the numbers of an array on the host")
def waits_in_a_callback(total, metrics, size):
    def add(s, m):
        outline = jax.ShapeDtypeStruct(s.shape, s.dtype)
        return jax.pure_callback(lambda s, m, n: np.asarray(s + m * n, np.float32), outline, s, m, size)

    return jax.tree.map(add, total[0], metrics), total[1] + size


@answers.wrong("cannot count so far")
def count_in_bfloat16(total, metrics, size):
    sums, _ = by_solution(total, metrics, size)
    return sums, (total[1].astype(jnp.bfloat16) + size).astype(total[1].dtype)


@answers.wrong("and you hide it")
def hides_nan(total, metrics, size):
    return by_solution(total, jax.tree.map(jnp.nan_to_num, metrics), size)


@answers.wrong("for a second batch, of the same size")
def remembers(total, metrics, size, known={}):  # noqa: B006
    result = exercise.answer(total, metrics, size)
    leaves = jax.tree.leaves((total, metrics, size))
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return result
    shapes = tuple((jnp.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    return known.setdefault((shapes, size, *metrics), result)
