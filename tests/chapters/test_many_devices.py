"""*Many devices*: the layouts, pipelines and experts of its reader equal one device, for other sizes, too; what its text says of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.inspection import collectives
from tests.chapters import elsewhere

ask = functools.partial(elsewhere.ask, notebook="book/many_devices.ipynb", devices=8)


def fresh(code, rows=32, depth=1, width=256, hidden=32):
    """Weights and a batch that the chapter has not seen."""
    w = code["init"](jax.random.key(10), depth, width, hidden)
    x = jax.random.normal(jax.random.key(11), (rows, width))
    return w, x, jnp.cos(x)


def far(got, wanted):
    """The largest difference between two trees."""
    pairs = zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True)
    return max(float(np.abs(np.asarray(a) - np.asarray(b)).max()) for a, b in pairs)


def test_every_layout_takes_the_step_of_one_device():
    def steps(code):
        w, x, y = fresh(code)
        code["w"] = w
        with jax.default_matmul_precision("highest"):
            wanted, found = jax.jit(code["step"])(w, x, y), {}
            for name in code["layouts"]:
                jitted, arguments = code["laid_out"](name, x, y)
                held = arguments[0]["up"].addressable_shards[0].data.size / w["up"].size
                found[name] = far(jitted(*arguments), wanted), held
        return found

    found = ask(steps, names="init step layouts laid_out w")
    assert all(error < 1e-5 for error, _ in found.values()), found
    shares = {"data parallel": 1, "FSDP": 1 / 8, "tensor parallel": 1 / 8, "FSDP x tensor": 1 / 8}
    assert {name: held for name, (_, held) in found.items()} == shares


def test_the_recipe_of_pmap_is_wrong_by_the_number_of_devices():
    def factors(code):
        w, x, y = fresh(code)
        right, found = jax.jit(jax.grad(code["loss"]))(w, x, y), []
        for count in (2, 8):
            code["mesh"] = jax.make_mesh((count,), ("data",), axis_types=(code["AxisType"].Auto,), devices=jax.devices()[:count])  # fmt: skip
            ways = [
                code["over_devices"](code["recipe"]),
                code["over_devices"](code["averaged_first"]),
                code["over_devices"](code["recipe"], check_vma=False),
            ]
            norms = [optax.global_norm(way(w, x, y)) / optax.global_norm(right) for way in ways]
            found.append([float(norm) for norm in norms])
        return found

    two, eight = ask(factors, names="init loss AxisType mesh over_devices recipe averaged_first")
    np.testing.assert_allclose(two, [2, 1, 1], rtol=1e-3)
    np.testing.assert_allclose(eight, [8, 1, 1], rtol=1e-3)


def test_an_all_reduce_is_a_reduce_scatter_and_an_all_gather():
    def sums(code):
        def both(x):
            part = jax.lax.psum_scatter(x[0], "data", tiled=True)
            return jax.lax.all_gather(part, "data", tiled=True)[None], jax.lax.psum(x, "data")[0][None]

        x = np.arange(128.0, dtype=np.float32).reshape(8, 16) ** 2
        one, other = jax.jit(jax.shard_map(both, mesh=code["mesh"], in_specs=P("data"), out_specs=P("data")))(
            x
        )
        return np.asarray(one), np.asarray(other), np.tile(x.sum(axis=0), (8, 1))

    one, other, wanted = ask(sums, names="mesh")
    np.testing.assert_array_equal(one, wanted)
    np.testing.assert_array_equal(other, wanted)


def test_fsdp_by_hand_has_the_loss_and_the_gradient_of_one_device():
    def found(code):
        w, x, y = fresh(code, depth=2)
        with jax.default_matmul_precision("highest"):
            return far(code["fsdp"](w, x, y), jax.jit(jax.value_and_grad(code["loss"]))(w, x, y))

    assert ask(found, names="init loss fsdp") < 1e-5


def test_microbatches_have_the_gradient_of_the_batch_and_an_exchange_each():
    def found(code):
        w, x, y = fresh(code, depth=2)

        def loss(w, x, y):
            return jax.lax.pmean(code["loss"](w, x, y), "data") / 2

        summed = code["over_devices"](code["in_parts"](loss, 2))
        with jax.default_matmul_precision("highest"):
            error = far(summed(w, x, y), jax.jit(jax.grad(code["loss"]))(w, x, y))
            _, size = collectives.count(summed, w, x, y)["all-reduce"]
        return error, size / sum(leaf.nbytes for leaf in w.values())

    error, times = ask(found, names="init loss over_devices in_parts")
    assert error < 1e-5 and times == 2


def test_a_pipeline_of_another_number_of_microbatches():
    def found(code):
        w, x, y = fresh(code, rows=24, depth=4)

        def local(w, x, y):
            gradient = jax.grad(functools.partial(code["pipe_loss"], micro=3))(w, x, y)
            return jax.lax.pmean(gradient, "data")

        specs = (P("stage"), P("data"), P("data"))
        piped = jax.jit(jax.shard_map(local, mesh=code["pipes"], check_vma=False, in_specs=specs, out_specs=P("stage")))  # fmt: skip
        with jax.default_matmul_precision("highest"):
            sent = collectives.find(piped, w, x, y)
            error = far(piped(w, x, y), jax.jit(jax.grad(code["loss"]))(w, x, y))
        return error, [each.times for each in sent if each.kind == "collective-permute"]

    error, ticks = ask(found, names="init loss pipe_loss pipes")
    assert error < 1e-5 and ticks == [3 + 4 - 1] * 2


def test_under_jit_a_convolution_over_rows_needs_no_halo_of_ours():
    def found(code):
        def convolve(x, kernel):
            return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))  # fmt: skip

        x = jax.random.normal(jax.random.key(0), (1, 16, 8, 2))
        kernel = jax.random.normal(jax.random.key(1), (3, 3, 2, 2))
        placed = jax.device_put(x, NamedSharding(code["mesh"], P(None, "data")))
        jitted = jax.jit(convolve, out_shardings=placed.sharding)
        return far(jitted(placed, kernel), convolve(x, kernel)), collectives.count(jitted, placed, kernel)

    error, sent = ask(found, names="mesh", quick=False)
    assert error < 1e-4 and sum(size for _, size in sent.values()) > 0, sent


def test_unreduced_terms_are_summed_once():
    def found(code):
        x = np.random.default_rng(0).standard_normal((16, 4), dtype=np.float32)
        with jax.set_mesh(code["explicit"]):
            a = jax.device_put(x, P("data"))
            with jax.default_matmul_precision("highest"):
                terms = jax.jit(code["terms"])
                return far(terms(a), 5 * x.T @ x), collectives.count(terms, a), str(jax.typeof(a))

    error, sent, kind = ask(found, names="explicit terms")
    assert error < 1e-3 and sent == {"all-reduce": (1, 4 * 4 * 4)} and "data" in kind


def test_rows_that_find_no_room_come_back_as_zeros():
    def found(code):
        keys = jax.random.split(jax.random.key(5), 4)
        up, down = jax.random.normal(keys[0], (8, 16, 32)) / 4, jax.random.normal(keys[1], (8, 32, 16)) / 6
        router, rows = jax.random.normal(keys[2], (16, 8)), jax.random.normal(keys[3], (64, 16))
        share, best = code["choose"](router, rows)
        with jax.default_matmul_precision("highest"):
            dense = jax.jit(lambda up, down: share * (jnp.tanh(rows[:, None] @ up[best]) @ down[best])[:, 0])(up, down)  # fmt: skip
            answers = {}
            for capacity in (8, 1):
                code["capacity"] = capacity
                specs = (P("data"), P("data"), P(), P("data"))
                mixture = jax.jit(jax.shard_map(lambda *parts: code["routed"](*parts), mesh=code["mesh"], in_specs=specs, out_specs=P("data")))  # fmt: skip
                answers[capacity] = [np.asarray(each) for each in mixture(up, down, router, rows)]
        return np.asarray(dense), np.asarray(best), answers

    dense, best, answers = ask(found, names="choose routed capacity mesh")
    out, dropped = answers[8]  # each device has eight rows, so all have room
    np.testing.assert_allclose(out, dense, atol=1e-5)
    assert dropped.sum() == 0
    out, dropped = answers[1]
    # Of each device's rows, the first of an expert finds room.
    room = np.array([row not in best[start:n] for n, row in enumerate(best) for start in [n // 8 * 8]])
    np.testing.assert_allclose(out[room], dense[room], atol=1e-5)
    assert (out[~room] == 0).all() and dropped.sum() == (~room).sum() > 0
