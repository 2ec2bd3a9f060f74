"""`examples/decoder.py`: operations as counted, variants that compute the same and learn, and PyTorch's side that is a twin."""

import jax
import numpy as np
import optax
import pytest

from benchmarks import pytorch
from benchmarks.twins._sides import by_path, differences
from examples import decoder
from mlax_tutorial import trees
from mlax_tutorial.inspection import costs

SMALL = decoder.SIZES["tiny"]._replace(width=32, context=16, words=64, product=64, steps=1, rounds=2)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setitem(decoder.SIZES, "tiny", SMALL)
    return SMALL


def gradients(size, chunk_size=None):
    """Loss and gradients of the first batch, in float32."""
    loss = decoder.make_loss(decoder.make_model(size, "float32"), chunk_size)
    return jax.jit(jax.value_and_grad(loss))(decoder.make_weights(size), decoder.make_batches(size)[0])


@pytest.mark.parametrize("name", decoder.SIZES)
def test_weights_and_operations_are_as_counted(name):
    size = decoder.SIZES[name]
    model = decoder.make_model(size)
    rows = jax.ShapeDtypeStruct((size.batch, size.context), "int32")
    w, _ = jax.eval_shape(model.init, jax.random.key(0), rows)
    assert trees.count(w) == size.weights
    ids = jax.ShapeDtypeStruct((size.batch, size.context + 1), "int32")
    jaxpr = jax.make_jaxpr(jax.grad(decoder.make_loss(model)))(w, ids)
    products = [
        item.times * item.flops
        for item in costs.itemize(jaxpr)
        if item.equation.primitive.name == "dot_general"
    ]
    assert sum(products) == size.flops()
    if name == "full":
        assert size.flops() < costs.cost_of(jaxpr).flops < 1.02 * size.flops()
        assert f"{size.weights / 1e6:.0f} million" in decoder.__doc__.splitlines()[0]
        assert 0.9 < size.flops(causal=True) / size.flops() < 1


def test_the_loss_is_optax_in_value_and_gradient():
    logits = 5 * jax.random.normal(jax.random.key(0), (3, 7, 50))
    ids = jax.random.randint(jax.random.key(1), (3, 7), 0, 50)

    def wanted(logits, ids):
        return optax.losses.softmax_cross_entropy_with_integer_labels(logits.astype("float32"), ids).mean()

    for dtype, atol in (("float32", 1e-7), ("bfloat16", 1e-3)):  # of gradients up to 1 / 21
        ours, theirs = (
            jax.value_and_grad(f)(logits.astype(dtype), ids) for f in (decoder.cross_entropy, wanted)
        )
        assert ours[1].dtype == dtype
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
        np.testing.assert_allclose(*(each[1].astype("float32") for each in (ours, theirs)), atol=atol)


def test_logits_in_chunks_are_the_same_loss():
    whole, chunked = gradients(SMALL), gradients(SMALL, chunk_size=24)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), whole, chunked)


@pytest.mark.parametrize("name", decoder.VARIANTS)
def test_each_variant_learns(small, name):
    training = decoder.Training(small, decoder.make_weights(small), decoder.make_batches(small))
    assert training.begin(name) > 0
    training.go(name, 60)
    losses = np.array(training.losses)
    assert abs(losses[0] - np.log(small.words)) < 1 and losses[-4:].mean() < losses[:4].mean() - 0.3


def test_ids_are_as_frequent_as_words():
    ids = decoder.make_batches(decoder.SIZES["tiny"]._replace(batch=64))
    assert ids.min() == 0 and ids.max() == 255 and ids.dtype == np.int32
    shares = np.bincount(ids.ravel(), minlength=256) / ids.size
    wanted = np.log(np.arange(2, 258) / np.arange(1, 257)) / np.log(257)
    np.testing.assert_allclose(shares[:4], wanted[:4], rtol=0.1)


@pytest.mark.skipif(not pytorch.PYTHON.exists(), reason=pytorch.MISSING)
def test_pytorch_takes_the_same_steps():
    w, batches = decoder.make_weights(SMALL), decoder.make_batches(SMALL)
    loss, ours = gradients(SMALL)
    training = decoder.Training(SMALL, decoder.make_weights(SMALL), batches, "float32")
    training.begin("plain")
    training.go("plain", 5)
    with decoder.torch_process(pytorch.PYTHON) as (worker, version):
        assert version
        worker.ask("load", by_path(w), batches, "float32", decoder.RATE, decoder.DECAY, decoder.SECOND_DECAY)
        their_loss, theirs = worker.ask("first_step")
        losses, spent = worker.ask("begin", False, 6)
        assert spent > 0 and worker.ask("seconds", False, 2) > 0
    found = differences(loss, their_loss, by_path(ours), theirs)
    assert len(found) == 8 and max(found.values()) < 1e-4, found
    assert max(float(abs(leaf).max()) for leaf in jax.tree.leaves(ours)) > 0.01  # or else that says nothing
    np.testing.assert_allclose(losses, training.losses, atol=1e-4)


@pytest.mark.skipif(not pytorch.PYTHON.exists(), reason=pytorch.MISSING)
def test_they_are_compared_in_turns(small, monkeypatch):
    monkeypatch.setattr(decoder, "TORCHES", {"PyTorch, eager": False})  # to compile takes a minute
    said = []
    result = decoder.compare(small, ["plain"], say=said.append)
    assert set(result["contenders"]) == {"JAX, plain", "PyTorch, eager"} and result["versions"]["torch"]
    for found in result["contenders"].values():
        low, high = found["shares"]
        assert 0 < low <= found["share"] <= high and found["milliseconds"] > 0
    assert any("JAX, plain" in line and "of the product's rate" in line for line in said)


def test_the_command_line(small, capsys, tmp_path):
    arguments = ["--size", "tiny", "--batch", "2", "--torch", str(tmp_path / "python"), "--variants", "plain"]
    result = decoder.main(arguments)
    assert list(result["contenders"]) == ["JAX, plain"] and result["size"]["batch"] == 2
    printed = capsys.readouterr().out
    assert "PyTorch is left out: there is no" in printed and f"{small.weights:,} weights, 2 x 16" in printed
    wrong = {
        "--batch 0": "must be at least 1, got 0",
        "--size tiny --record": "--record is for the full size",
        "--record --variants plain": "with all variants",
    }
    if jax.default_backend() == "cpu":
        wrong |= {"--record": "the full size is for a GPU", "--size full": "--size tiny is for a CPU"}
    for given, message in wrong.items():
        with pytest.raises(SystemExit):
            decoder.main(given.split())
        assert message in capsys.readouterr().err


def test_a_variant_that_does_not_run_is_left_out(small, monkeypatch):
    gone = decoder.Variant("a flag that is gone", flags={"xla_gpu_no_such_flag": True})
    monkeypatch.setitem(decoder.VARIANTS, "gone", gone)
    training, said = decoder.Training(small, decoder.make_weights(small), decoder.make_batches(small)), []
    assert list(decoder.try_variants(training, ["gone", "plain"], said.append)) == ["plain"]
    assert said[0].startswith("gone: left out") and "xla_gpu_no_such_flag" in said[0]
    with pytest.raises(RuntimeError, match="no variant runs"):
        decoder.try_variants(training, ["gone"], said.append)
    late = []
    with pytest.raises(RuntimeError, match="no variant runs"):
        decoder.try_variants(training, ["plain"], late.append, budget=-1)
    assert late == ["plain: not tried, to stay within five minutes"]


def test_a_step_that_fails_takes_no_state_with_it(small, monkeypatch):
    training = decoder.Training(small, decoder.make_weights(small), decoder.make_batches(small))

    def fails(optimizer, state, ids):
        jax.tree.map(lambda leaf: leaf.delete(), state)
        raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory")

    monkeypatch.setattr(decoder, "make_step", lambda *_: fails)
    with pytest.raises(jax.errors.JaxRuntimeError):
        training.begin("plain")
    monkeypatch.undo()
    assert training.begin("plain") > 0 and np.isfinite(float(training.losses[-1]))


def test_another_network_is_not_compared():
    decoder.check_alike({"JAX": 10.0, "PyTorch": 10.05})
    with pytest.raises(RuntimeError, match="not the same network"):
        decoder.check_alike({"JAX": 10.0, "PyTorch": 10.2})
    with pytest.raises(RuntimeError, match="not the same network"):
        decoder.check_alike({"JAX": 10.0, "PyTorch": float("nan")})
