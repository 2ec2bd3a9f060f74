"""The gradient over a batch in small parts, with one exchange."""

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, guarding
from mlax_tutorial.exercises.many_devices import _eight
from mlax_tutorial.inspection import collectives

PARTS = 4


def solution(loss, mesh, parts):
    def local(w, x, y):
        def add(total, part):
            return jax.tree.map(jnp.add, total, jax.grad(loss)(w, *part)), None

        x, y = (each.reshape(parts, -1, *each.shape[1:]) for each in (x, y))
        total, _ = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, w), (x, y))
        return jax.lax.pmean(jax.tree.map(lambda leaf: leaf / parts, total), "devices")

    specs = P(), P("devices"), P("devices")
    return jax.shard_map(local, mesh=mesh, in_specs=specs, out_specs=P(), check_vma=False)


def _loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["kernel"]) - y) ** 2)


def check(accumulate):
    w = {"kernel": _eight.numbers(0, 6, 5)}
    x, y = _eight.numbers(1, 64, 6), _eight.numbers(2, 64, 5)
    rows = set()

    @jax.custom_batching.custom_vmap
    def watched(x):
        return x

    @watched.def_vmap
    def under_vmap(size, mapped, x):
        rows.add(x.shape[0] * x.shape[1])
        return x, mapped[0]

    def loss(w, x, y):
        rows.add(x.shape[0])
        return _loss(w, watched(x), y)

    function = accumulate(loss, _eight.mesh(), PARTS)
    if not callable(function):
        raise Failed(
            "`accumulate(loss, mesh, parts)` must return a function of `w`, `x` and `y`.", got=function
        )
    function = jax.jit(guarding.guard(function, "accumulate"))
    gradient, right = function(w, x, y), jax.grad(_loss)(w, x, y)["kernel"]
    if jax.tree.structure(gradient) != jax.tree.structure(w):
        raise Failed("The gradient must have the structure of `w`.", got=gradient)
    got = gradient["kernel"]
    if not _eight.close(got, right):
        factor = _eight.ratio(got, right)
        if factor is not None:
            which = {4: "parts", 8: "devices", 32: "parts and over the devices"}.get(round(factor))
            mean = f" Take the mean over the {which}, not the sum." if which else ""
            raise Failed(f"The gradient is {factor:.3g} times the right one.{mean}", expected=right, got=got)
        shares = [jax.grad(_loss)(w, x[i : i + 8], y[i : i + 8])["kernel"] for i in range(0, 64, 8)]
        if any(_eight.close(got, share) for share in shares):
            raise Failed(
                "This is the gradient of one device's share of the batch: those of the others are not in it."
            )
        raise Failed("The gradient is wrong.", expected=right, got=got)
    if rows != {64 // 8 // PARTS}:
        raise Failed(
            f"Right, but the loss is computed on {max(rows)} rows at once. On each of 8 devices there are 8, and {PARTS} parts of them "
            "have 2 rows each: activations are held for 2 rows only."
        )
    sent = sum(each.times * each.bytes for each in collectives.find(function, w, x, y))
    times = sent // got.nbytes  # XLA may join several exchanges
    if times != 1:
        raise Failed(
            f"Right, but the gradient is exchanged {times} times, once for each part. Sum up on each device first, with `check_vma=False`, and "
            "take the mean over the devices once, at the end."
        )
    rows.clear()
    again = accumulate(loss, _eight.mesh(size=4), 2)(w, x, y)["kernel"]
    if not _eight.close(again, right):
        raise Failed(
            f"Right on 8 devices in {PARTS} parts, but not on 4 devices in 2: `mesh.size` and `parts` say how many there are.",
            expected=right, got=again,
        )  # fmt: skip
    if rows != {8}:
        raise Failed(
            f"Right, but on 4 devices with 16 rows each, in 2 parts, the loss is computed on {max(rows)} rows at once, not on 8: `mesh` "
            "and `parts` are handed in."
        )


exercise = Exercise(
    title="Small parts of a batch, one all-reduce",
    stars=2,
    minutes=15,
    why="A batch of any size fits, and what goes over the links does not grow with the number of parts.",
    hints=(
        "Inside of `shard_map`, reshape the share of the batch to `(parts, rows, …)`, and let `jax.lax.scan` sum up gradients from zeros.",
        "With `check_vma=False` `jax.grad(loss)` is the gradient of this device alone, which is what you want until the end.",
        "After the scan: divide by `parts`, then `jax.lax.pmean`.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
