"""Answers to the exercise many_devices.data_parallel."""

import functools

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.exercises.many_devices.data_parallel import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


SPECS = P(), P("devices"), P("devices")


@answers.wrong("8 times too large")
def recipe_of_pmap(loss, mesh):
    def local(w, x, y):
        value, gradient = jax.value_and_grad(loss)(w, x, y)
        return jax.lax.pmean(value, "devices"), jax.lax.pmean(gradient, "devices")

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("divided by the number of devices twice")
def divided_again(loss, mesh):
    def local(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)
        return value, jax.tree.map(lambda leaf: leaf / 8, gradient)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("those of the others are not in it")
def alone(loss, mesh):
    local = jax.value_and_grad(loss)
    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(), check_vma=False)


@answers.wrong("the loss is not")
def sum_of_losses(loss, mesh):
    def local(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)
        return jax.lax.psum(value, "devices"), gradient

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("those of the others are not in it")
def averaged_without_tracking(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(), check_vma=False)


@answers.wrong("on 32 rows at once")
def everything_everywhere(loss, mesh):
    return jax.shard_map(jax.value_and_grad(loss), mesh=mesh, in_specs=P(), out_specs=P())


@answers.wrong("on 32 rows at once")
def everything_everywhere_averaged(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=P(), out_specs=P())


@answers.wrong("not on one of four")
def always_eight(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.psum(loss(w, x, y), "devices") / 8)(w)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("that is handed in")
def own_mesh(loss, mesh):
    mesh = jax.make_mesh((8,), ("devices",), axis_types=(jax.sharding.AxisType.Auto,))

    def local(w, x, y):
        return jax.lax.pmean(loss(w, x, y), "devices")

    return jax.shard_map(jax.value_and_grad(local), mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("One mean over the devices is enough")
def gathers_the_gradients(loss, mesh):
    def local(w, x, y):
        both = jax.lax.all_gather(jax.value_and_grad(loss)(w, x, y), "devices")
        return jax.tree.map(lambda leaves: jnp.mean(leaves, axis=0), both)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(), check_vma=False)


@answers.wrong("must return a pair")
def gradient_only(loss, mesh):
    def local(w, x, y):
        return jax.grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("raised ValueError")
def no_mean(loss, mesh):
    return jax.shard_map(jax.value_and_grad(loss), mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong()
def no_function(loss, mesh):
    return loss


def step(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.wrong("must not be kept for another")
def keeps_the_first_weights(loss, mesh):
    kept = []

    def function(w, x, y):
        if not kept:
            kept.append(w)
        return step(loss, mesh)(kept[0], x, y)

    return function


@answers.wrong("must not be kept for another")
def weights_placed_once(loss, mesh):
    placed = None

    def function(w, x, y):
        nonlocal placed
        if placed is None:
            placed = jax.device_put(w, NamedSharding(mesh, P()))
        return step(loss, mesh)(placed, x, y)

    return function


@answers.wrong("must not be kept for another")
def weights_in_a_closure(loss, mesh):
    local = None

    def function(w, x, y):
        nonlocal local
        if local is None:

            def mean(w, x, y):
                return jax.lax.pmean(loss(w, x, y), "devices")

            kept = w
            local = jax.shard_map(
                lambda x, y: jax.value_and_grad(mean)(kept, x, y),
                mesh=mesh,
                in_specs=SPECS[1:],
                out_specs=P(),
            )
        return local(x, y)

    return function


@answers.wrong("must not be kept for another")
def kept_by_shape(loss, mesh):
    results = {}

    def function(w, x, y):
        if x.shape not in results:
            results[x.shape] = step(loss, mesh)(w, x, y)
        return results[x.shape]

    return function


@answers.wrong("must not be kept for another")
def rows_placed_once(loss, mesh):
    placed = {}

    def function(w, x, y):
        rows = placed.setdefault(x.shape, (x, y))
        return step(loss, mesh)(w, *rows)

    return function


@answers.wrong("must not be kept for another")
def kept_by_the_structure(loss, mesh):
    results = {}

    def function(w, x, y):
        key = str(jax.tree.structure(w))
        if key not in results:
            results[key] = jax.jit(step(loss, mesh))(w, x, y)
        return results[key]

    return function


@answers.wrong("must not be kept for another")
def targets_kept(loss, mesh):
    kept = []

    def function(w, x, y):
        kept.append(y)
        return step(loss, mesh)(w, x, kept[0])

    return function


@answers.wrong("where concrete value is expected")
def gradient_as_a_number(loss, mesh):
    def function(w, x, y):
        value, gradient = step(loss, mesh)(w, x, y)
        return float(value), gradient

    return function


@answers.wrong()
def stacked(loss, mesh):
    def local(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: jax.lax.pmean(loss(w, x, y), "devices"))(w)
        return value[None], gradient

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=(P("devices"), P()), check_vma=False)


@answers.wrong()
def gradient_by_the_rows(loss, mesh):
    def local(w, x, y):
        value, (_, gradient) = jax.value_and_grad(
            lambda w, x: jax.lax.pmean(loss(w, x, y), "devices"), (0, 1)
        )(w, x)
        return value, gradient

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=(P(), P("devices")))


@answers.wrong()
def sums_both(loss, mesh):
    def local(w, x, y):
        return jax.value_and_grad(lambda w: jax.lax.psum(loss(w, x, y), "devices"))(w)

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())


@answers.right
def made_at_the_first_call(loss, mesh):
    made = []

    def function(w, x, y):
        if not made:
            made.append(jax.jit(step(loss, mesh)))
        return made[0](w, x, y)

    return function


@answers.right
def placed_at_each_call(loss, mesh):
    def function(w, x, y):
        w = jax.device_put(w, NamedSharding(mesh, P()))
        return step(loss, mesh)(w, *jax.device_put((x, y), NamedSharding(mesh, P("devices"))))

    return function


@answers.right
def differentiated_outside(loss, mesh):
    def local(w, x, y):
        return jax.lax.pmean(loss(w, x, y), "devices")

    return jax.value_and_grad(jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P()))


@answers.right
def unchecked(loss, mesh):
    def local(w, x, y):
        return jax.lax.pmean(jax.value_and_grad(loss)(w, x, y), "devices")

    return jax.jit(jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P(), check_vma=False))


@answers.right
def divided_first(loss, mesh):
    @functools.partial(jax.shard_map, mesh=mesh, in_specs=SPECS, out_specs=(P(), P()))
    def step(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: loss(w, x, y) / mesh.size)(w)
        return jax.lax.psum(value, "devices"), gradient

    return step


@answers.right
def weights_made_varying(loss, mesh):
    def vary(leaf):
        if hasattr(jax.lax, "pcast"):
            return jax.lax.pcast(leaf, "devices", to="varying")
        return jax.lax.pvary(leaf, "devices")

    def local(w, x, y):
        return jax.lax.pmean(jax.value_and_grad(loss)(jax.tree.map(vary, w), x, y), "devices")

    return jax.shard_map(local, mesh=mesh, in_specs=SPECS, out_specs=P())
