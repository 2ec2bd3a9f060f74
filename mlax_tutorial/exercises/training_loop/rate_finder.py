"""A sweep over learning rates, as one scan."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.inspection import jaxprs


def solution(loss_fn, params, batch, rates):
    def body(params, rate):
        loss, gradients = jax.value_and_grad(loss_fn)(params, batch)
        return jax.tree.map(lambda p, g: p - rate * g, params, gradients), loss

    return jax.lax.scan(body, params, rates)[1]


def _loss(params, batch):
    x, y = batch
    return jnp.mean((x * params["w"] + params["b"] - y) ** 2)


def check(rate_finder):
    params = {"w": jnp.float32([1.0, -2.0, 0.5]), "b": jnp.float32(0.25)}
    batch = jnp.float32([[1.0, 2.0, -1.0], [0.5, 1.0, 1.5]]), jnp.float32([[1.0], [-1.0]])
    rates = jnp.float32(
        [0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 0.1, 0.1, 1e15, 1e15, 1e15, 0.1]
    )  # the last ones explode
    _one_scan(rate_finder, params, batch)
    got, expected = rate_finder(_loss, params, batch, rates), solution(_loss, params, batch, rates)
    shown = {"input": f"rates = {np.array2string(np.asarray(rates))}"}
    if isinstance(got, (tuple, list)) and len(got) == 2:
        raise Failed(
            "Only the losses are asked for: of what `scan` returns, the second part.", got=got, **shown
        )
    whole, tame = expected, int(np.sum(rates < 1e10))
    if np.shape(got) == np.shape(expected):
        if checks.agrees(jax.device_put(np.asarray(got)[::-1][:tame]), expected[:tame]):
            raise Failed("The losses come in the reverse order.", expected=expected, got=got, **shown)
        got, all_of_it, expected, rates = got[:tame], got, expected[:tame], rates[:tame]
    checks.same(got, expected, rtol=1e-3, recognise=_recognised(params, batch, rates), **shown)
    if np.isfinite(all_of_it[-1]) or not np.allclose(
        all_of_it[tame : tame + 2], whole[tame : tame + 2], rtol=1e-2
    ):
        raise Failed(
            "With rates that are far too large the loss should be enormous, then inf or NaN, and you hide it: that the loss explodes is "
            "what one looks for.",
            expected=whole,
            got=all_of_it,
            **shown,
        )
    _other_trees(rate_finder)


def _other_trees(rate_finder):
    """Params and batches that are other trees than the pair of a dict and a pair."""
    x, rates = jnp.float32([1.0, -2.0, 0.5]), jnp.float32([0.1, 0.3])
    cases = {
        "params is one array, batch a dict": (lambda p, b: jnp.sum((p * b["x"] - 1) ** 2), x, {"x": x + 1}),
        "params is a tuple with a list and a dict, batch one array": (
            lambda p, b: jnp.sum((p[0][0] * b + p[1]["a"] - 1) ** 2),
            ([x], {"a": jnp.float32(0.5)}),
            x + 1,
        ),
    }
    for words, (loss_fn, params, batch) in cases.items():
        with checks.says(
            f"Here {words}: go through any tree with `jax.tree.map`, and hand `batch` on as it is."
        ):
            got = rate_finder(loss_fn, params, batch, rates)
        checks.same(got, solution(loss_fn, params, batch, rates), rtol=1e-3, where=f"where {words}")


def _one_scan(rate_finder, params, batch):
    outline = jax.eval_shape(lambda tree: tree, (params, batch))
    counts = []
    for size in (3, 9):
        rates = jax.ShapeDtypeStruct((size,), jnp.float32)
        program = jax.make_jaxpr(lambda p, b, r: rate_finder(_loss, p, b, r))(*outline, rates)
        names = [equation.primitive.name for _, equation in jaxprs.walk(program)]
        counts.append((len(names), names.count("scan") + names.count("while")))
    if counts[1][0] > counts[0][0]:
        raise Failed(
            "The program grows with the number of rates: a Python loop is unrolled. Put the step into one `jax.lax.scan` over "
            "the rates."
        )
    if counts[0][1] != 1:
        raise Failed(
            f"The program holds {counts[0][1]} loops; one `scan` is asked for, which goes on from step to step."
        )


def _recognised(params, batch, rates):
    gradient = jax.value_and_grad(_loss)

    def sweep(sign, again=False, fixed=None):
        losses, after, now = [], [], params
        for rate in rates:
            loss, gradients = gradient(params if again else now, batch)
            rate = rate if fixed is None else fixed
            now = jax.tree.map(lambda p, g: p + sign * rate * g, params if again else now, gradients)  # noqa: B023
            losses.append(loss)
            after.append(_loss(now, batch))
        return jnp.stack(losses), jnp.stack(after)

    yield (
        sweep(-1)[1],
        "These are the losses after each step. The loss before it comes with the gradient, at no cost.",
    )
    yield (
        sweep(-1, again=True)[1],
        "Each rate begins again from the first weights: go on from those of the step before.",
    )
    yield sweep(-1, again=True)[0], "The loss never changes: the new weights are not carried on."
    yield sweep(1)[0], "The weights go up the slope: subtract the rate times the gradient."
    yield sweep(-1, fixed=rates[0])[0], "Every step takes the first rate."


exercise = Exercise(
    title="A learning-rate finder",
    stars=2,
    minutes=15,
    why="Rates are numbers, so they can be scanned over like data: one program finds the largest rate that still works.",
    hints=(
        "The carry is `params`, what is scanned over is `rates`, and what comes out of each round is the loss.",
        "`jax.lax.scan(body, params, rates)` calls `body(params, rate)`, which returns the new params and the loss.",
    ),
    solution=solution,
    check=check,
)
