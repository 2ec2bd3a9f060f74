"""*Where arrays live*: what its text says of placement, copies and memory, on four simulated devices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from tests.chapters import elsewhere

ask = functools.partial(elsewhere.ask, notebook="book/placement.ipynb", devices=4)


def test_who_decides_where_a_computation_runs():
    def places(code):
        def where(f):
            try:
                (device,) = (found := f()).devices()
            except ValueError:
                return "error"
            return device.id - jax.devices()[0].id, found.committed

        x, y, z = (code[name] for name in "xyz")
        found = [where(f) for f in (lambda: x + x, lambda: x + y, lambda: np.ones(3) * z, lambda: y + z)]
        with jax.default_device(code["fourth"]):
            found += [where(f) for f in (lambda: jnp.ones(3), lambda: 2 * x, lambda: x + y)]
        return [*found, where(lambda: jnp.zeros_like(z)), where(lambda: jax.jit(jnp.zeros_like)(z))]

    def with_z(code):
        return places(code | {"z": jax.device_put(jnp.ones(3), code["third"])})

    uncommitted, committed = [(0, False), (1, True), (2, True), "error"], [(3, False), (3, False), (1, True)]
    assert ask(with_z, names="x y third fourth") == [*uncommitted, *committed, (2, True), (0, False)]


def test_what_else_says_where_an_array_lives():
    def said(code):
        y, third, mesh = code["y"], code["third"], code["mesh"]
        rows = jax.device_put(np.ones((4, 4)), NamedSharding(mesh, P("data")))
        columns = jax.device_put(np.ones((4, 4)), NamedSharding(mesh, P(None, "data")))
        found = [jax.device_put(np.ones(3)).committed, jnp.zeros(3, device=third).committed]
        found += [jnp.zeros(4, device=NamedSharding(mesh, P("data"))).addressable_shards[0].data.shape]
        for like in (lambda y: jnp.zeros_like(y, device=third), lambda y: 0 * y):
            found += [jax.jit(like)(y).devices() == y.devices()]
        found += [len((rows + columns).devices())]
        try:
            rows + y
        except ValueError:
            return found

    assert ask(said, names="y third mesh") == [False, True, (1,), False, True, 4]


def test_an_optimizer_s_state_that_jit_makes_lands_whole_on_one_device():
    def parts(code):
        weights = jax.device_put(jnp.ones((8, 4)), NamedSharding(code["mesh"], P("data")))
        optimizer, found = optax.adam(1e-3), []
        for init in (optimizer.init, jax.jit(optimizer.init)):
            moment = init(weights)[0].mu
            found.append((len(moment.devices()), moment.addressable_shards[0].data.shape))
        return found

    assert ask(parts, names="mesh") == [(4, (2, 4)), (1, (8, 4))]


def test_only_an_aligned_buffer_is_shared():
    def batches(code):
        shared = [code["four_batches"](offset) for offset in (0, 4, 16, 32, 60)]
        memory = np.zeros(4096, np.uint8)
        start = -memory.ctypes.data % 64
        buffer, copies = memory[start : start + 2048].view(np.float32), []
        for number in range(4):
            buffer[:] = number
            copies.append(jnp.array(buffer))
        return shared, [int(copy[0]) for copy in copies]

    shared, copies = ask(batches, names="four_batches")
    assert shared == [[3] * 4, *[[0, 1, 2, 3]] * 4] and copies == [0, 1, 2, 3]


def test_may_alias_does_not_make_a_copy_and_jnp_array_does():
    def shared(code):
        found = []
        for put in (functools.partial(jax.device_put, may_alias=False), jnp.array):
            memory = np.zeros(4096, np.uint8)
            start = -memory.ctypes.data % 64
            buffer = memory[start : start + 2048].view(np.float32)
            array = jax.block_until_ready(put(buffer))
            buffer[:] = 1
            found.append(int(array[0]))
        return found

    assert ask(shared, names="four_batches") == [1, 0]


def test_what_each_guard_refuses():
    def refused(code):
        x, mean, placed = jnp.ones((8, 28, 28)), code["mean"], code["placed"]
        code["centered"](x, mean)  # traced before
        uses = {
            "NumPy's": lambda: code["centered"](x, mean),
            "placed": lambda: code["centered"](x, placed),
            "eager": lambda: x + 1,
            "device_put": lambda: jax.device_put(mean),
        }
        found = {}
        for guard in ("log", "disallow", "disallow_explicit"):
            with jax.transfer_guard(guard):
                for name, use in uses.items():
                    try:
                        use()
                    except Exception:
                        found.setdefault(guard, []).append(name)
        return found

    found = ask(refused, names="centered mean placed")
    assert found == {"disallow": ["NumPy's", "eager"], "disallow_explicit": ["NumPy's", "eager", "device_put"]}  # fmt: skip


def test_an_array_is_live_until_it_is_deleted_or_forgotten():
    def live(code):
        megabytes, before = code["megabytes"], code["megabytes"]()
        one, two = jnp.zeros(1_000_000), jnp.ones(500_000)
        jax.block_until_ready((one, two))
        found = [megabytes() - before]
        one.delete()
        found.append(megabytes() - before)
        del two
        found.append(megabytes() - before)
        try:
            one + 1
        except RuntimeError as error:
            return found, str(error), jax.devices()[0].memory_stats()

    found, error, statistics = ask(live, names="megabytes")
    assert found == pytest.approx([6, 2, 0], abs=1e-3) and "deleted" in error and statistics is None


def test_what_the_spec_does_not_name_is_copied():
    def held(code):
        grid = jax.make_mesh((2, 2), ("data", "model"), axis_types=(code["AxisType"].Auto,) * 2)
        table, found = np.arange(32.0).reshape(8, 4), []
        for spec in (P("data", None), P(("data", "model")), P("data", "model"), P(None, "model"), P()):
            array = jax.device_put(table, NamedSharding(grid, spec))
            parts = [np.asarray(shard.data) for shard in array.addressable_shards]
            found.append((parts[0].shape, len({part.tobytes() for part in parts})))
        try:
            jax.device_put(np.ones((6, 4)), NamedSharding(code["mesh"], P("data")))
        except ValueError:
            return found, code["sharding"].shard_shape((65536, 8192))

    found, of_cluster = ask(held, names="AxisType mesh sharding")
    assert found == [((4, 4), 2), ((2, 4), 4), ((4, 2), 4), ((8, 2), 2), ((8, 4), 1)]
    assert of_cluster == (2048, 512)


def test_a_donated_state_keeps_the_places_of_its_shards():
    def kept(code):
        state, addresses = code["born"], code["addresses"]
        before = addresses(state)
        new = jax.jit(lambda w: 0.9 * w, donate_argnums=0)(state)
        return addresses(new) == before, len(set(before)), state.is_deleted()

    assert ask(kept, names="born addresses") == (True, 4, True)


def test_random_numbers_are_the_same_under_every_sharding():
    def drawn(code):
        draw, key = code["draw"], jax.random.key(7)
        wanted, found = np.asarray(draw(key)), []
        for spec in (P("data"), P(None, "data"), P()):
            born = jax.jit(draw, out_shardings=NamedSharding(code["mesh"], spec))(key)
            found.append((bool((born == wanted).all()), born.addressable_shards[0].data.shape))
        return found

    shapes = [(256, 1024), (1024, 256), (1024, 1024)]
    assert ask(drawn, names="draw mesh") == [(True, shape) for shape in shapes]


def test_weights_that_wait_in_the_host_s_memory_compute_the_same():
    def computed(code):
        x = jax.random.normal(jax.random.key(0), (4, 256))
        code["weights"] = [np.array(jax.random.normal(jax.random.key(i), (256, 256)) / 16) for i in range(8)]  # fmt: skip
        with jax.default_matmul_precision("highest"):
            code["seen"].clear()
            out = code["streamed"](x)
            most = max(code["seen"])
            fetched = wanted = x
            for w in code["weights"]:
                fetched = code["layer"](jax.device_put(w, code["host"]), fetched)
                wanted = jnp.tanh(wanted @ jnp.asarray(w))
        return np.asarray(wanted), np.asarray(out), np.asarray(fetched), most, fetched.sharding.memory_kind

    wanted, out, fetched, most, kind = ask(computed, names="weights streamed seen layer host")
    np.testing.assert_allclose(out, wanted, atol=1e-5)
    np.testing.assert_allclose(fetched, wanted, atol=1e-5)
    assert most == 2 * 256 * 256 * 4 and kind == "device"


def test_jit_does_not_multiply_across_memories():
    def refused(code):
        w = jax.device_put(np.ones((256, 256), np.float32), code["host"])
        try:
            jax.jit(lambda w, x: x @ w)(w, jnp.ones((4, 256)))
        except Exception as error:
            return type(error).__name__, str(error)

    name, error = ask(refused, names="host")
    assert "memory" in error, (name, error)
