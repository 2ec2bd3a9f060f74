"""The loss and its gradient over a batch that is shared out, equal to those of one device."""

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, guarding
from mlax_tutorial.exercises.many_devices import _eight
from mlax_tutorial.inspection import collectives


def solution(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=(P(), P("devices"), P("devices")), out_specs=P())


def _loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["kernel"]) + w["bias"] - y) ** 2)


def check(data_parallel):
    w = {"kernel": _eight.numbers(0, 6, 5), "bias": _eight.numbers(1, 5)}
    x, y = _eight.numbers(2, 32, 6), _eight.numbers(3, 32, 5)
    rows = set()

    def watched(w, x, y):
        rows.add(x.shape[0])
        return _loss(w, x, y)

    function = data_parallel(watched, _eight.mesh())
    if not callable(function):
        raise Failed("`data_parallel(loss, mesh)` must return a function of `w`, `x` and `y`.", got=function)
    function = jax.jit(guarding.guard(function, "data_parallel"))
    result = function(w, x, y)
    if not isinstance(result, tuple) or len(result) != 2:
        raise Failed("That function must return a pair, the loss and its gradient.", got=result)
    value, gradient = result
    if jax.tree.structure(gradient) != jax.tree.structure(w):
        raise Failed("The gradient must have the structure of `w`.", got=gradient)
    wanted, right = jax.jit(jax.value_and_grad(_loss))(w, x, y)
    got = gradient["kernel"]
    factor = _eight.ratio(got, right["kernel"])
    if factor is not None and abs(factor - 8) < 1e-2:
        raise Failed(
            "The gradient is 8 times too large. Inside of `shard_map` the gradient by a replicated weight is a sum over the devices already: "
            "average the loss before you differentiate."
        )
    if factor is not None and abs(factor - 1 / 8) < 1e-3:
        raise Failed("The gradient is 8 times too small: it is divided by the number of devices twice.")
    if not _eight.close(got, right["kernel"]) or not _eight.close(gradient["bias"], right["bias"]):
        parts = [jax.grad(_loss)(w, x[i : i + 4], y[i : i + 4])["kernel"] for i in range(0, 32, 4)]
        if any(_eight.close(got, part) for part in parts):
            raise Failed(
                "This is the gradient of one device's share of the batch: those of the others are not in it."
            )
        raise Failed("The gradient is wrong.", expected=right["kernel"], got=got)
    if not _eight.close(jnp.asarray(value), wanted):
        raise Failed("The gradient is right, the loss is not: it is to be the mean over the whole batch.", expected=wanted, got=value)  # fmt: skip
    if rows != {4}:
        raise Failed(
            f"Right, but the loss is computed on {max(rows)} rows at once, not on the 4 of one device: share the batch out by `in_specs`."
        )
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(result))
    sent = sum(each.times * each.bytes for each in collectives.find(function, w, x, y))
    if sent > size:
        raise Failed(
            f"Right, but the exchanges leave {sent} bytes on each device; loss and gradient have {size}. One mean over the devices is enough: "
            "do not gather them, and do not average twice."
        )
    rows.clear()
    function = guarding.guard(data_parallel(watched, _eight.mesh(size=4)), "data_parallel")
    value, gradient = jax.jit(function)(w, x, y)
    if not _eight.close(gradient["kernel"], right["kernel"]) or not _eight.close(jnp.asarray(value), wanted):
        raise Failed(
            "Right on a mesh of eight devices, but not on one of four.",
            expected=wanted,
            got=value,
        )
    if rows != {8}:
        raise Failed(
            f"Right, but on a mesh of four devices, which have 8 rows each, the loss is computed on {max(rows)} at once: use the `mesh` "
            "that is handed in."
        )
    _called_again(function, w, x, y)


def _called_again(function, *arguments):
    """Training calls it with other weights and rows: traced for a second time, it must depend on what it is called with."""
    try:
        program = jax.make_jaxpr(lambda *arguments: function(*arguments))(*arguments)
        _, used = partial_eval.dce_jaxpr(program.jaxpr, [True] * len(program.out_avals))
    except (guarding.Raised, jax.errors.UnexpectedTracerError) as error:
        if not isinstance(getattr(error, "error", error), jax.errors.UnexpectedTracerError):
            raise
        used = [False]
    if not all(used):
        raise Failed(
            "Right at the first call, but at the next one your function uses the weights, the rows or the result of the first: what depends on "
            "the arguments of a call must not be kept for another."
        )


exercise = Exercise(
    title="A data-parallel gradient",
    stars=1,
    minutes=10,
    why="This is all of data parallelism: the same weights everywhere, a share of the batch each, one sum over the devices.",
    hints=(
        'Write the function for one device, then `jax.shard_map(local, mesh=mesh, in_specs=(P(), P("devices"), P("devices")), out_specs=P())`.',
        'Average first, differentiate then: `jax.lax.pmean(loss(w, x, y), "devices")` is the function whose gradient you want.',
    ),
    solution=solution,
    check=check,
    devices=8,
)
