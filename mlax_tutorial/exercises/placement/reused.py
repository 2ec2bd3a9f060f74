"""How much of a donated state lies where the old one lay."""

import warnings

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, checks


def places(tree):
    return {
        (shard.device, shard.data.unsafe_buffer_pointer()): shard.data.nbytes
        for leaf in jax.tree.leaves(tree)
        for shard in leaf.addressable_shards
    }


def solution(step, state, batch):
    before = places(state)
    new = jax.jit(step, donate_argnums=0)(state, batch)
    return new, sum(size for place, size in places(new).items() if place in before)


def train(state, batch):
    momentum = 0.9 * state["momentum"] + batch.mean()
    return {"kernel": state["kernel"] - momentum, "momentum": momentum, "count": state["count"] + 1}


def halve(state, batch):
    return {name: leaf.astype(jnp.float16) + batch[0] for name, leaf in state.items()}


def grow(state, batch):
    return {**state, "kernel": 2 * state["kernel"], "batch": batch + 1}


CASES = {
    "a step of training": train,
    "a step that changes the dtype": halve,
    "a step after which the state is larger": grow,
}


def check(reused):
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    spread, copied = NamedSharding(mesh, P("data", "model")), NamedSharding(mesh, P())

    def init():
        return {"kernel": jnp.ones((64, 32)), "momentum": jnp.zeros((64, 32)), "count": jnp.zeros(())}

    born = jax.jit(init, out_shardings={"kernel": spread, "momentum": spread, "count": copied})
    for what, step in CASES.items():
        batch = jax.device_put(jnp.arange(8, dtype=jnp.float16), copied)
        expected, state = jax.jit(step)(born(), batch), born()
        before = places(state)
        with warnings.catch_warnings():  # JAX warns where nothing fits; here that is asked for
            warnings.simplefilter("ignore")
            got = reused(step, state, batch)
        if not isinstance(got, tuple) or len(got) != 2:
            raise Failed("Return two things: the new state, and a number of bytes.", got=got)
        new, count = got
        checks.same(new, expected, input=what, rtol=1e-6, atol=1e-6)
        if step is train and not all(leaf.is_deleted() for leaf in jax.tree.leaves(state)):
            raise Failed("The old state is still there: it was not donated.", input=what)
        if batch.is_deleted():
            raise Failed("The batch was donated, too. Only the state may be.", input=what)
        found = places(new)
        right = sum(size for place, size in found.items() if place in before)
        if count == right:
            continue
        kept = [leaf for leaf in jax.tree.leaves(new) if all(place in before for place in places(leaf))]
        if count == sum(leaf.nbytes for leaf in kept):
            why = "An array that is copied to eight devices takes its bytes on each: add up the shards, not the arrays."
        elif count == sum(found.values()):
            why = "Not all of the new state lies in the old memory: a result of another size gets memory of its own."
        else:
            why = "This is not the number of bytes, over all devices, that lie where the old state lay."
        raise Failed(why, input=what, expected=right, got=count)


exercise = Exercise(
    title="Donate a tree, and prove that its memory is reused",
    stars=2,
    minutes=12,
    why="A donation that finds no result to fit is kept or freed, and the program still runs: addresses say whether it worked.",
    hints=(
        "Read the addresses of all shards before the call: afterwards the old state is deleted.",
        "Devices have memories of their own, so an address means something together with its device: `(shard.device, shard.data.unsafe_buffer_pointer())`.",
        "Make a set of these pairs, and add up `shard.data.nbytes` over the shards of the new state whose pair is in it.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
