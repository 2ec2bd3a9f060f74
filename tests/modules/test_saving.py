"""Checkpoints and weights in one file: bit for bit, whole or not at all, and all differences at once."""

import functools
import os
import pathlib
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from examples import from_pytorch, gpt2
from mlax_tutorial import nn, optim, saving

MODEL = nn.Series(nn.Linear(8), nn.Bias(), nn.Dropout(0.5), nn.Linear(2))
OPTIMIZER = optim.ExponentialMovingAverage(optim.Chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(1e-2)))
X = np.random.default_rng(0).normal(size=(4, 6)).astype("float32")
ABSTRACT_KEY = jax.eval_shape(lambda: jax.random.key(0))


def begin(key):
    init_key, key = jax.random.split(key)
    trainables, _ = MODEL.init(init_key, X)
    return {"trainables": trainables, "state": OPTIMIZER.init(trainables), "key": key, "step": jnp.int32(0)}


def step(variables):
    key, step_key = jax.random.split(variables["key"])

    def loss(trainables):
        return jnp.mean(MODEL.fwd(X, trainables, ((),) * 4, key=step_key)[0] ** 2)

    trainables, state = variables["trainables"], variables["state"]
    updates, state = OPTIMIZER.step(jax.grad(loss)(trainables), state, trainables)
    trainables = optim.apply_updates(trainables, updates)
    return {"trainables": trainables, "state": state, "key": key, "step": variables["step"] + 1}


TARGET = jax.eval_shape(begin, ABSTRACT_KEY)


@pytest.fixture(scope="module")
def training():
    """A compiled step that donates, and the states after 0 to 4 steps, in bits."""
    donating, variables = jax.jit(step, donate_argnums=0), jax.jit(begin)(jax.random.key(0))
    states = [bits(variables)]
    for _ in range(4):
        variables = donating(variables)
        states.append(bits(variables))
    return donating, states


def raw(leaf):
    return jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf


def bits(tree):
    return [(str(leaf.dtype), leaf.shape, np.asarray(raw(leaf)).tobytes()) for leaf in jax.tree.leaves(tree)]


def test_no_digit_is_lost_where_JAX_has_32_bits(tmp_path, x64):
    """NumPy's int64 and float64 used to come back as 0 and as float32."""
    state = {"seen": np.int64(2**40), "rate": np.array([1 / 3]), "done": np.bool_(True)}
    with saving.Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(0, state)
        assert bits(checkpoints.restore(state)) == bits(state)
        saving.save_weights(tmp_path / "weights", state)
        jax.config.update("jax_enable_x64", False)
        for call in (
            lambda: checkpoints.save(1, state),
            lambda: checkpoints.restore(state),
            lambda: saving.load_weights(tmp_path / "weights", state),
        ):
            with pytest.raises(
                saving.CheckpointError, match=r"\['rate'\] is float64\[1\], which JAX would narrow"
            ):
                call()


def test_training_goes_on_as_if_it_had_never_stopped(training, tmp_path):
    donating, wanted = training
    variables = jax.jit(begin)(jax.random.key(0))
    with saving.Checkpoints(tmp_path / "run", keep=2) as checkpoints:
        for i in range(3):
            checkpoints.save(i, variables)
            variables = donating(variables)  # takes the memory of what is being saved
    with saving.Checkpoints(str(tmp_path / "run")) as checkpoints:
        assert checkpoints.latest_step() == 2
        for i in (1, 2):
            restored = checkpoints.restore(TARGET, step=i)
            assert bits(restored) == wanted[i]
        assert jax.tree.structure(restored) == jax.tree.structure(TARGET)
        variables = donating(donating(restored))
        assert bits(variables) == wanted[4]
        checkpoints.save(4, variables)
        assert checkpoints.latest_step() == 4
    assert sorted(os.listdir(tmp_path / "run")) == ["1", "2", "4"]


def test_all_kinds_of_arrays(tmp_path):
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
    halves = NamedSharding(mesh, P("data"))
    state = {
        "bfloat16": jnp.arange(3, dtype=jnp.bfloat16),
        "float16": jnp.ones((2, 1), jnp.float16),
        "bool": jnp.array([True, False]),
        "uint8": jnp.arange(3, dtype=jnp.uint8),
        "numpy": np.arange(4, dtype="float32"),
        "nothing": jnp.zeros((0, 3)),
        "special": jnp.array([jnp.nan, -0.0, jnp.inf, 1e-45]),
        "rbg": jax.random.key(3, impl="rbg"),
        "keys": jax.device_put(jax.random.split(jax.random.key(1), 4), halves),
        "sharded": jax.device_put(jnp.arange(8.0).reshape(4, 2), halves),
        "odd / name's .": [(), {"": jnp.ones(())}],
    }
    with saving.Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(0, state)
        restored = checkpoints.restore(jax.tree.map(jnp.asarray, state))
        assert bits(restored) == bits(state) and jax.tree.structure(restored) == jax.tree.structure(state)
        assert restored["sharded"].sharding == restored["keys"].sharding == halves
        assert not restored["bool"].committed  # so that it goes with arrays on any devices
        # The same on other devices than before:
        target = jax.eval_shape(lambda: state)
        columns = NamedSharding(mesh, P(None, "data"))
        target["sharded"] = jax.ShapeDtypeStruct((4, 2), jnp.float32, sharding=columns)
        restored = checkpoints.restore(target)
        assert bits(restored) == bits(state) and restored["sharded"].sharding == columns
        checkpoints.save(1, {"empty": jnp.zeros((0,))})
        assert checkpoints.restore({"empty": jnp.zeros((0,))})["empty"].shape == (0,)


KILLED = """
import os, random, signal, sys, time, traceback
import mlax_tutorial.saving as saving
assert not {"orbax", "safetensors"} & set(sys.modules), "heavy imports belong to the calls that need them"
import jax, jax.numpy as jnp, orbax.checkpoint, safetensors.numpy

directory = sys.argv[1]

def state(step):
    return {"weights": jnp.full((64, 64), step, jnp.float32), "key": jax.random.key(step), "step": jnp.int32(step)}

def equal(a, b):
    return jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), a, b))

def child(pipe):  # forked before JAX has started anything
    with saving.Checkpoints(directory + "/run", keep=2) as checkpoints:
        step = checkpoints.latest_step() or 0
        if step:
            assert equal(checkpoints.restore(jax.eval_shape(lambda: state(0))), state(step))
        if os.path.exists(directory + "/weights"):
            alone = saving.load_weights(directory + "/weights", state(0)["weights"])
            assert (alone == alone[0, 0]).all() and step - 1 <= alone[0, 0] <= step + 2
        os.write(pipe, b"%d " % step)
        while True:
            step += 1
            checkpoints.save(step, state(step))
            saving.save_weights(directory + "/weights", state(step)["weights"])
            if step % 2:  # every other save is overtaken by the next
                checkpoints.wait()
                os.write(pipe, b"%d " % step)

draws, killed, done = random.Random(0), 0, 0
for _ in range(12):
    out, pipe = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            child(pipe)
        finally:
            traceback.print_exc()
            os._exit(1)
    os.close(pipe)
    text, wanted = b"", draws.randint(1, 3)
    while text.count(b" ") < wanted and (more := os.read(out, 1000)):
        text += more
    time.sleep(draws.uniform(0, 0.15))
    os.kill(process, signal.SIGKILL)
    while more := os.read(out, 1000):
        text += more
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status), "a child failed"
    steps = [int(step) for step in text.split()]
    assert steps[0] >= done, f"step {done} was lost: {steps}"
    done, killed = steps[-1], killed + 1
print(killed, done)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_process_killed_at_any_moment_loses_nothing(tmp_path):
    got = subprocess.run(
        [sys.executable, "-c", KILLED, tmp_path], capture_output=True, text=True, timeout=300,
        cwd=pathlib.Path(__file__).parents[2], env=dict(os.environ, JAX_PLATFORMS="cpu"),
    )  # fmt: skip
    assert got.returncode == 0, got.stderr[-4000:]
    killed, done = map(int, got.stdout.split())
    assert killed == 12 and done > 5
    with saving.Checkpoints(tmp_path / "run", keep=1) as checkpoints:
        assert checkpoints.latest_step() >= done
        # What was left half-written goes with the next save.
        checkpoints.save(checkpoints.latest_step() + 1, {"w": jnp.ones(1)})
        wanted = [str(checkpoints.latest_step())]
    assert os.listdir(tmp_path / "run") == wanted


def test_a_reader_leaves_alone_what_another_process_is_writing(tmp_path):
    with saving.Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(1, {"w": jnp.ones(1)})
    (tmp_path / "2.orbax-checkpoint-tmp").mkdir()
    with saving.Checkpoints(tmp_path) as reader:
        assert reader.latest_step() == 1 and reader.restore({"w": jnp.ones(1)})
        assert (tmp_path / "2.orbax-checkpoint-tmp").exists()


def test_a_checkpoint_whose_deletion_was_broken_off(tmp_path):
    with saving.Checkpoints(tmp_path) as checkpoints:
        for i in (1, 2):
            checkpoints.save(i, {"w": jnp.full(3, i)})
    os.remove(tmp_path / "1" / "_CHECKPOINT_METADATA")
    shutil.rmtree(tmp_path / "1" / "outline")
    with saving.Checkpoints(tmp_path, keep=2) as checkpoints:
        assert checkpoints.restore({"w": jnp.ones(3, int)})["w"].tolist() == [2, 2, 2]
        with pytest.raises(
            saving.CheckpointError, match=r"step 1 of .* is not whole: .*Choose another of \[1, 2\]"
        ):
            checkpoints.restore({"w": jnp.ones(3, int)}, step=1)
        checkpoints.save(3, {"w": jnp.full(3, 3)})
    assert sorted(os.listdir(tmp_path)) == ["2", "3"]


def test_all_differences_are_said_before_anything_is_read(tmp_path):
    with saving.Checkpoints(tmp_path) as checkpoints:
        saved = {
            "a": jnp.ones((2, 3)),
            "b": jnp.ones(2),
            "c": jnp.ones(2),
            "key": jax.random.key(0),
            "old": jnp.ones(1),
        }
        checkpoints.save(5, saved)
        checkpoints.wait()
        shutil.rmtree(tmp_path / "5" / "state")  # so nothing can be read
        wanted = {
            "a": jnp.ones((3, 2)),
            "b": jnp.ones(2, jnp.bfloat16),
            "c": jnp.ones(2),
            "new": jnp.ones(4, int),
        }
        wanted["key"] = jax.random.key(0, impl="rbg")
        with pytest.raises(saving.CheckpointError) as caught:
            checkpoints.restore(wanted)
    head, *lines, mend = str(caught.value).splitlines()
    assert head == f"restore: step 5 of {tmp_path} does not fit the target, and nothing was read:"
    assert [line.strip() for line in lines] == [
        "missing: ['new'], int32[4]",
        "unexpected: ['old'], float32[1]",
        "shape: ['a'] expects float32[3,2], was saved as float32[2,3]",
        "dtype: ['b'] expects bfloat16[2], was saved as float32[2]",
        "dtype: ['key'] expects key<rbg>[], was saved as key<fry>[]",
    ]
    assert mend.startswith("Mend: make the target of the model") and "sizes" in mend and "cast then" in mend


# --- weights alone -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    ["float32", "bfloat16", "float16", "complex64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"],
)
def test_weights_by_name(tmp_path, dtype):
    from safetensors import safe_open

    weights = jax.tree.map(lambda leaf: leaf.astype(dtype), begin(jax.random.key(0))["trainables"])
    saving.save_weights(tmp_path / "weights", weights)
    assert os.listdir(tmp_path) == ["weights"]
    with safe_open(tmp_path / "weights", "numpy") as file:
        assert sorted(file.keys()) == ["0.kernel", "1.bias", "3.kernel"]
    target = jax.eval_shape(lambda: weights)
    loaded = saving.load_weights(tmp_path / "weights", target)
    assert bits(loaded) == bits(weights) and jax.tree.structure(loaded) == jax.tree.structure(weights)
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
    for spec in (P("data"), P(None, "data"), P()):
        target[0]["kernel"] = jax.ShapeDtypeStruct((6, 8), dtype, sharding=NamedSharding(mesh, spec))
        loaded = saving.load_weights(str(tmp_path / "weights"), target)
        assert bits(loaded) == bits(weights) and loaded[0]["kernel"].sharding == target[0]["kernel"].sharding
    # Sharded weights are saved as wholes.
    saving.save_weights(tmp_path / "again", loaded)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "weights").read_bytes()


def test_odd_weights(tmp_path):
    turned = np.arange(6.0, dtype="float32").reshape(2, 3).T  # not in C order
    state = OPTIMIZER.init({"a": jnp.ones(2)})
    weights = {
        "a.b": turned,
        "a": {"b": jnp.ones(()), "b\\": jnp.zeros((0, 2))},
        "a\\": [state, jnp.array([True])],
    }
    saving.save_weights(tmp_path / "weights", weights)
    loaded = saving.load_weights(tmp_path / "weights", weights)
    assert bits(loaded) == bits(weights) and jax.tree.structure(loaded) == jax.tree.structure(weights)
    saving.save_weights(tmp_path / "weights", jnp.arange(3.0))
    assert saving.load_weights(tmp_path / "weights", jnp.ones(3)).tolist() == [0, 1, 2]
    saving.save_weights(tmp_path / "weights", ())
    assert saving.load_weights(tmp_path / "weights", ()) == ()


def test_a_failed_save_leaves_the_old_weights(tmp_path, monkeypatch):
    import safetensors.numpy

    def fail(arrays, path):
        pathlib.Path(path).write_bytes(b"half")
        raise OSError("disk full")

    saving.save_weights(tmp_path / "weights", {"w": jnp.ones(3)})
    monkeypatch.setattr(safetensors.numpy, "save_file", fail)
    with pytest.raises(OSError, match="disk full"):
        saving.save_weights(tmp_path / "weights", {"w": jnp.zeros(3)})
    assert os.listdir(tmp_path) == ["weights"]
    assert saving.load_weights(tmp_path / "weights", {"w": jnp.ones(3)})["w"].tolist() == [1, 1, 1]


def test_weights_of_another_model(tmp_path):
    saving.save_weights(tmp_path / "w", {"a": jnp.ones((2, 3)), "b": jnp.ones(2), "old": jnp.ones(1)})
    target = {
        "a": jnp.ones((3, 2), jnp.float16),
        "b": jnp.ones(2, jnp.bfloat16),
        "new": {"kernel": jnp.ones(4)},
    }
    with pytest.raises(saving.CheckpointError) as caught:
        saving.load_weights(tmp_path / "w", target)
    head, *lines, mend = str(caught.value).splitlines()
    assert head == f"load_weights: {tmp_path / 'w'} does not fit the target, and nothing was read:"
    assert [line.strip() for line in lines] == [
        "missing: ['new']['kernel'] ('new.kernel'), float32[4]",
        "unexpected: old, float32[1]",
        "shape and dtype: ['a'] ('a') expects float16[3,2], was saved as float32[2,3]",
        "dtype: ['b'] ('b') expects bfloat16[2], was saved as float32[2]",
    ]
    assert mend.startswith("Mend: ")


# --- other names ---------------------------------------------------------------------------------------------------


def published_tensors(depth=3, width=4, prefix=""):
    """Random arrays of the names and shapes of GPT-2's published files."""
    sizes = {"ln_1": (width,), "attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width)}
    sizes |= {"ln_2": (width,), "mlp.c_fc": (width, 4 * width), "mlp.c_proj": (4 * width, width)}
    shapes = {f"h.{i}.{name}.weight": shape for i in range(depth) for name, shape in sizes.items()}
    shapes |= {"wte.weight": (11, width), "wpe.weight": (5, width), "ln_f.weight": (width,)}
    biases = {
        name.replace("weight", "bias"): shape[-1:]
        for name, shape in shapes.items()
        if name[:2] != "wt" and name[:2] != "wp"
    }
    draw = np.random.default_rng(0)
    return {
        prefix + name: draw.normal(size=size).astype("float32") for name, size in (shapes | biases).items()
    }


def test_gpt2_under_its_published_names_both_ways(tmp_path):
    model = gpt2.gpt2(vocabulary=11, length=5, width=4, heads=2, depth=3)
    names = functools.partial(gpt2.published, depth=3, heads=2, prefix="transformer.")
    tensors = published_tensors(prefix="transformer.")
    masks = {"transformer.h.0.attn.bias": np.tri(5, dtype="float32")}
    saving.write_tensors(tmp_path / "theirs", tensors | masks)
    ids = jnp.array([[3, 1, 4, 1, 5]])
    target, _ = jax.eval_shape(model.init, jax.random.key(0), ids)
    with pytest.raises(
        saving.CheckpointError, match=r"unexpected: transformer\.h\.0\.attn\.bias, float32\[5,5\]"
    ):
        saving.load_weights(tmp_path / "theirs", target, rename=names)
    trainables = saving.load_weights(tmp_path / "theirs", target, rename=names, partial=True)
    # One block by hand is that of a model whose numbers are those of PyTorch (test_torch.py).
    block = from_pytorch.gpt2_block(heads=2, width=4, inner=16)
    x = trainables["tokens"]["embed"][ids] + trainables["places"]["embed"][None, :5]
    for layer in range(3):
        place = f"transformer.h.{layer}."
        alone = {name.removeprefix(place): array for name, array in tensors.items() if name.startswith(place)}
        weights = from_pytorch.gpt2_trainables(alone, heads=2)
        x, _ = block.fwd(x, weights, block.init(jax.random.key(0), x)[1])
    x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
    x = x * tensors["transformer.ln_f.weight"][None, None] + tensors["transformer.ln_f.bias"][None, None]
    rest = model.init(jax.random.key(0), ids)[1]
    logits, _ = model.fwd(ids, trainables, rest)
    np.testing.assert_allclose(logits, x @ tensors["transformer.wte.weight"].T, atol=1e-5)
    # Back, to the bit.
    saving.save_weights(tmp_path / "ours", trainables, rename=names, like=tensors)
    again = saving.read_tensors(tmp_path / "ours")
    assert again.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(again[name], tensor, err_msg=name, strict=True)


def test_other_names(tmp_path):
    outline, w = jax.ShapeDtypeStruct((3, 2), "float32"), np.arange(6, dtype="float32").reshape(2, 3)
    path = tmp_path / "w"
    saving.write_tensors(path, {"fc.weight": w, "fc.bias": w[0], "more": w[1]})
    target, renamed = (
        {"kernel": outline, "fc.bias": w[0]},
        {"kernel": ("fc.weight", jnp.transpose), "fc\\.bias": "fc.bias"},
    )
    found = saving.load_weights(path, target, rename=renamed, partial=True)
    assert found["kernel"].tolist() == w.T.tolist() and found["fc.bias"].tolist() == [0, 1, 2]
    saving.save_weights(path, found, rename=renamed, like={"fc.weight": w, "fc.bias": w[0]})
    assert saving.read_tensors(path)["fc.weight"].tolist() == w.tolist()
    saving.save_weights(path, {"kernel": w}, rename=lambda name: f"net.{name}")
    assert [*saving.read_tensors(path)] == ["net.kernel"]
    sharding = NamedSharding(jax.make_mesh((1,), ("x",), axis_types=(AxisType.Auto,)), P("x"))
    placed = {"kernel": jax.ShapeDtypeStruct((3, 2), "float32", sharding=sharding)}
    found = saving.load_weights(path, placed, rename={"kernel": ("net.kernel", lambda w: w.T)})
    assert found["kernel"].sharding == sharding


W23 = {"w": jnp.ones((2, 3))}
MOVED = {"w": ("w", jnp.transpose)}
WRONG_NAMES = {
    "missing, the file says what it has": (
        lambda path: saving.load_weights(path, W23, rename={"w": "v"}, partial=True),
        r"missing: \['w'\] \('v'\), float32\[2,3\]\n  the file has w\n",
    ),
    "another shape than the function makes": (
        lambda path: saving.load_weights(path, W23, rename={"w": ("w", jnp.transpose)}),
        r"shape: \['w'\] \('w'\) expects float32\[2,3\], was saved as float32\[3,2\]",
    ),
    "no name": (
        lambda path: saving.load_weights(path, W23, rename=lambda name: None),
        r"^load_weights: rename must give a name in the file, or a tuple .*, got None for 'w'\.$",
    ),
    "two of one name": (
        lambda path: saving.save_weights(path, {"a": W23["w"], "b": W23["w"]}, rename=lambda name: "w"),
        r"^save_weights: rename gives two weights one name",
    ),
    "one of two parts": (
        lambda path: saving.save_weights(
            path, W23, rename={"w": ("w", lambda w: w[:2])}, like={"w": jnp.ones((3, 3))}
        ),
        r"^save_weights: rename leaves w with gaps, or fills it twice",
    ),
    "no sizes": (
        lambda path: saving.save_weights(path, W23, rename={"w": ("w", lambda w: w[:2])}),
        r"^save_weights: like must have the arrays of such a file, .* lacks w\.$",
    ),
    "text for a map": (
        lambda path: saving.load_weights(path, W23, rename="fc"),
        r"^load_weights: rename must be a function of a name, or a dict by name, got 'fc'\.$",
    ),
    "a list for a map": (
        lambda path: saving.save_weights(path, W23, rename=[("w", "fc")]),
        r"^save_weights: rename must be a function of a name, or a dict by name, got \[\('w', 'fc'\)\]\.$",
    ),
    "a function that returns no array": (
        lambda path: saving.load_weights(path, W23, rename={"w": ("w", lambda w: [w])}),
        r"^load_weights: the function for 'w' in rename must return one array, got a list of length 1\.$",
    ),
    "a list of sizes": (
        lambda path: saving.save_weights(path, W23, rename=MOVED, like=[1]),
        r"^save_weights: like must have the arrays .*, got a list of length 1\.$",
    ),
    "a size that is no array": (
        lambda path: saving.save_weights(path, W23, rename=MOVED, like={"w": 3}),
        r"^save_weights: like must have the arrays of such a file, .*:\n  w is 3: wrap it in jnp\.asarray",
    ),
    "integers that JAX would narrow": (
        lambda path: saving.save_weights(path, W23, rename=MOVED, like={"w": np.ones((3, 2), "int64")}),
        r"\n  w is int64\[3,2\], which JAX would narrow",
    ),
    "another shape than the weight": (
        lambda path: saving.save_weights(path, W23, rename=MOVED, like={"w": jnp.ones((2, 3))}),
        r"nothing was saved:\n  shape: w \('w'\) expects float32\[3,2\], the weight is float32\[2,3\]\nMend: give the like of",
    ),
    "another dtype than the weight": (
        lambda path: saving.save_weights(
            path, {"w": W23["w"].astype("bfloat16")}, rename=MOVED, like={"w": jnp.ones((3, 2))}
        ),
        r"dtype: w \('w'\) expects float32\[2,3\], the weight is bfloat16\[2,3\]\nMend: .* in the dtype of its weights\.$",
    ),
    "a square": (
        lambda path: saving.save_weights(
            path, W23, rename={"w": ("w", lambda w: w.T**2)}, like={"w": jnp.ones((3, 2))}
        ),
        r"^save_weights: rename gives a function that cannot be turned round: choose functions that only move numbers",
    ),
    "a mean, in which each number counts once": (
        lambda path: saving.save_weights(
            path,
            {"w": jnp.arange(2.0)},
            rename={"w": ("w", lambda w: jnp.full((2, 2), 0.5) @ w)},
            like={"w": jnp.ones(2)},
        ),
        r"^save_weights: what rename saves of w would not come back: choose functions that only move numbers",
    ),
}


def test_an_error_of_rename_says_where_it_is_from(tmp_path):
    with pytest.raises(KeyError) as caught:
        saving.save_weights(tmp_path / "w", W23, rename=lambda name: {}[name])
    assert caught.value.__notes__ == ["This is from the rename of save_weights, for 'w'."]


def test_weights_that_are_moved_may_be_nan(tmp_path):
    w = jnp.array([[jnp.nan, 1.0, -jnp.inf]], "bfloat16")
    saving.save_weights(tmp_path / "w", {"w": w}, rename=MOVED, like={"w": jnp.ones((3, 1), "bfloat16")})
    found = saving.read_tensors(tmp_path / "w")["w"].T
    np.testing.assert_array_equal(found.astype("float32"), np.asarray(w, "float32"))


@pytest.mark.parametrize("wrong, message", WRONG_NAMES.values(), ids=WRONG_NAMES)
def test_wrong_names(wrong, message, tmp_path):
    saving.save_weights(tmp_path / "w", W23)
    with pytest.raises(saving.CheckpointError, match=message):
        wrong(tmp_path / "w")


# --- wrong uses ----------------------------------------------------------------------------------------------------


def with_one(use):
    def run(path):
        with saving.Checkpoints(path / "run") as checkpoints:
            checkpoints.save(3, {"w": jnp.ones(2)})
            use(checkpoints)

    return run


def closed(path):
    with saving.Checkpoints(path) as checkpoints:
        pass
    checkpoints.save(1, {"w": jnp.ones(2)})


def on_a_file(path):
    (path / "file").write_text("")
    saving.Checkpoints(path / "file")


def no_safetensors(path):
    (path / "file").write_text("no weights")
    saving.load_weights(path / "file", {"w": jnp.ones(2)})


W = {"w": jnp.ones(2)}
WRONG = {
    "keep nothing": (lambda path: saving.Checkpoints(path, keep=0), r"^Checkpoints: keep must be an integer of at least 1, got 0"),
    "keep a bit": (lambda path: saving.Checkpoints(path, keep=True), r"keep must be an integer .*, got True"),
    "no path": (lambda path: saving.Checkpoints(3), r"^Checkpoints: directory must be a path, got 3"),
    "a file": (on_a_file, r"file is a file: name a directory"),
    "closed": (closed, r"^Checkpoints: closed: make another"),
    "a step below zero": (with_one(lambda c: c.save(-1, W)), r"^save: step must be an integer of at least 0, got -1"),
    "half a step": (with_one(lambda c: c.save(3.5, W)), r"^save: step must be an integer .*, got 3\.5"),
    "the same step": (with_one(lambda c: c.save(3, W)), r"^save: step must come after the last that was saved, 3, got 3: go on"),
    "an earlier step": (with_one(lambda c: c.save(1, W)), r"^save: step must come after .*, 3, got 1"),
    "numbers": (
        with_one(lambda c: c.save(4, {"w": 1.0, "x": [jnp.ones(1), "text"]})),
        r"^save: every leaf must be an array:\n  \['w'\] is 1\.0: wrap it in jnp\.asarray.*\n  \['x'\]\[1\] is 'text'",
    ),
    "a target is saved": (
        with_one(lambda c: c.save(4, jax.eval_shape(lambda: W))),
        r"^save: every leaf must be an array:\n  \['w'\] is a ShapeDtypeStruct, without numbers: give the arrays",
    ),
    "under jit": (with_one(lambda c: jax.jit(lambda w: c.save(4, w))(W)), r"\['w'\] is a .*Tracer, without numbers"),
    "nothing there": (lambda path: saving.Checkpoints(path).restore(W), r"^restore: .* holds no checkpoint: look elsewhere"),
    "no such step": (with_one(lambda c: c.restore(W, step=4)), r"^restore: .* holds no step 4, but \[3\]"),
    "the arguments exchanged": (with_one(lambda c: c.restore(3, W)), r"^restore: step must be an integer .*, got \{"),
    "a number for a target": (with_one(lambda c: c.restore({"w": 1})), r"^restore: every leaf must be an array:\n  \['w'\] is 1"),
    "another target": (with_one(lambda c: c.restore({"v": jnp.ones(2)})), r"missing: \['v'\].*\n  unexpected: \['w'\]"),
    "weights that are numbers": (lambda path: saving.save_weights(path / "w", {"w": 1}), r"^save_weights: .*\['w'\] is 1"),
    "keys for weights": (
        lambda path: saving.save_weights(path / "w", {"k": jax.random.key(0), "c": jnp.ones(1, "int4")}),
        r"^save_weights: nothing was saved:\n  \['c'\] is int4\[1\]: convert it to one of float64, .*\n  \['k'\] is key<fry>",
    ),
    "a name that is taken": (
        lambda path: saving.save_weights(path / "w", {"__metadata__": jnp.ones(1)}),
        r"\['__metadata__'\] has a name that safetensors keeps for itself",
    ),
    "a file of something else": (no_safetensors, r"^load_weights: .* is no whole file of safetensors: "),
    "a directory to read": (lambda path: saving.load_weights(path, W), r"^load_weights: .* is a directory: name the file in it, or"),
    "a directory for all": (lambda path: saving.read_tensors(path), r"^read_tensors: .* is a directory: name the file in it, or"),
    "a directory to write": (lambda path: saving.save_weights(path, W), r"^save_weights: .* is a directory: name a file in it\.$"),
    "a number for target weights": (lambda path: saving.load_weights(path / "w", 1), r"^load_weights: .*it is 1: wrap"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_uses(wrong, message, tmp_path):
    with pytest.raises(saving.CheckpointError, match="(?s)" + message):
        wrong(tmp_path)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        saving.load_weights(tmp_path / "none", W)


def test_no_directory(tmp_path):
    with pytest.raises(FileNotFoundError, match="^save_weights: there is no directory .*none: create it"):
        saving.save_weights(tmp_path / "none" / "w", W)


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "safetensors.numpy", None)
    with pytest.raises(
        ImportError, match=r"^Checkpoints needs orbax-checkpoint: pip install orbax-checkpoint\.$"
    ):
        saving.Checkpoints(tmp_path)
    with pytest.raises(ImportError, match=r"^save_weights needs safetensors: pip install safetensors\.$"):
        saving.save_weights(tmp_path / "w", W)
    with pytest.raises(ImportError, match=r"^load_weights needs safetensors: pip install safetensors\.$"):
        saving.load_weights(tmp_path / "w", W)


def test_a_reader_makes_no_directory(tmp_path):
    folder = tmp_path / "typo"
    with saving.Checkpoints(folder) as checkpoints:
        assert checkpoints.latest_step() is None
        checkpoints.wait()
        with pytest.raises(
            saving.CheckpointError, match=r"^restore: .*typo holds no checkpoint: look elsewhere"
        ):
            checkpoints.restore(TARGET)
        assert not folder.exists()
        checkpoints.save(0, {"w": jnp.ones(2)})
        assert checkpoints.latest_step() == 0


def test_a_part_of_a_checkpoint(tmp_path):
    """The weights without the optimizer's state; what differs in that part is still said."""
    variables = begin(jax.random.key(0))
    with saving.Checkpoints(tmp_path) as checkpoints:
        checkpoints.save(0, variables)
    part = {name: TARGET[name] for name in ("trainables", "key")}
    with saving.Checkpoints(tmp_path) as checkpoints:
        restored = checkpoints.restore(part, partial=True)
        assert bits(restored) == bits({name: variables[name] for name in part})
        with pytest.raises(saving.CheckpointError, match=r"unexpected: \['state'\]"):
            checkpoints.restore(part)
        wrong = {
            "trainables": TARGET["trainables"][:1] + (jax.ShapeDtypeStruct((3,), jnp.float32),),
            "other": TARGET["step"],
        }
        with pytest.raises(saving.CheckpointError) as caught:
            checkpoints.restore(wrong, partial=True)
        lines = str(caught.value).splitlines()
        assert (
            len(lines) == 4 and "missing: ['other'], int32[]" in lines[1] + lines[2] and "Mend: " in lines[3]
        )


def test_a_reader_sees_what_is_saved_later(tmp_path):
    """An evaluation beside the training, which deletes old steps meanwhile."""
    state, target = {"w": jnp.ones(2)}, {"w": jax.ShapeDtypeStruct((2,), jnp.float32)}
    with saving.Checkpoints(tmp_path, keep=2) as writer, saving.Checkpoints(tmp_path) as reader:
        for i in range(4):
            writer.save(i, {"w": i * state["w"]})
            writer.wait()
            assert reader.latest_step() == i and reader.restore(target)["w"][0] == i
        with pytest.raises(saving.CheckpointError, match=r"holds no step 0, but \[2, 3\]"):
            reader.restore(target, 0)


@pytest.mark.skipif(os.name == "nt", reason="no such modes")
def test_others_may_read_the_weights(tmp_path):
    """safetensors lets none but the owner do so."""
    path, plain = tmp_path / "weights", tmp_path / "plain"
    plain.touch()
    saving.save_weights(path, {"w": jnp.ones(2)})
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    saving.save_weights(path, {"w": jnp.zeros(2)})
    assert path.stat().st_mode & 0o777 == 0o640


def test_sizes_in_numbers_of_numpy(tmp_path):
    target = {"w": jax.ShapeDtypeStruct((np.prod((3,)),), jnp.float32)}
    saving.save_weights(tmp_path / "weights", {"w": jnp.ones(3)})
    assert saving.load_weights(tmp_path / "weights", target)["w"].shape == (3,)
