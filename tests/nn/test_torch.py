"""Layers and optimizers against PyTorch: the values that references/make.py stored, in PyTorch's own layout.

Each test says how to get from PyTorch's inputs and weights to PyTorch's outputs by way of this library. What it says is differentiated,
too, so that gradients come out in PyTorch's layout by themselves.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from examples import from_pytorch
from mlax_tutorial import nn, optim
from mlax_tutorial.nn.attention import attend, attend_in_chunks, distance_mask, rotary

HERE = Path(__file__).parent
TOOL = HERE / "references/make.py"


class Case(NamedTuple):
    """One stored comparison.

    Attributes:
      settings: of PyTorch's function.
      inputs, outputs: arrays by name; weights are inputs, too.
      cotangents: of the outputs that PyTorch differentiates.
      gradients: of the inputs.
    """

    settings: dict[str, Any]
    inputs: dict[str, np.ndarray] = {}
    outputs: dict[str, np.ndarray] = {}
    cotangents: dict[str, np.ndarray] = {}
    gradients: dict[str, np.ndarray] = {}


@functools.cache
def load(name) -> dict[str, Case]:
    with np.load(HERE / f"references/{name}.npz", allow_pickle=False) as file:
        index, numbers = json.loads(str(file["index"])), file["numbers"]

    def array(place):
        start, *shape = place
        return numbers[start : start + int(np.prod(shape))].reshape(shape)

    return {
        name: Case(**{
            kind: entry if kind == "settings" else {name: array(place) for name, place in entry.items()}
            for kind, entry in kinds.items()
        })
        for name, kinds in index.items()
    }  # fmt: skip


FILES = sorted(path.stem for path in (HERE / "references").glob("*.npz"))
TAKEN = set()


def cases(file, start=""):
    """The cases of a file whose names start so, each as the parameter ``case`` of a test."""
    chosen = take(file, {name: value for name, value in load(file).items() if name.startswith(start)})
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen)


def named(file, table, start=""):
    """The keys of a table as the parameter ``name``; each, after ``start``, is also the name of a case."""
    take(file, {start + name: None for name in table})
    return pytest.mark.parametrize("name", table)


def take(file, chosen):
    taken = {(file, name) for name in chosen}
    assert taken
    TAKEN.update(taken)
    return chosen


def close(got, wanted, tolerance, what):
    """Rounding errors have the size of what was added up, so they count against an array's largest number."""
    bound = tolerance * max(np.abs(wanted).max(), 1e-3)
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=bound, err_msg=what)


def check(case, function, tolerance=1e-5):
    """Compare outputs and gradients of ``function``, which takes the inputs as a dict."""

    def named(inputs):
        y = function(inputs)
        return y if isinstance(y, dict) else {"y": y}

    @jax.jit
    def run(inputs, cotangents):
        outputs, back = jax.vjp(named, inputs)
        cotangents = {name: cotangents.get(name, jnp.zeros_like(y)) for name, y in outputs.items()}
        return outputs, back(cotangents)[0]

    with jax.default_matmul_precision("highest"):
        outputs, slopes = run(case.inputs, case.cotangents)
    assert set(case.gradients) == set(case.inputs)  # none was forgotten
    for kind, got, wanted in [("output", outputs, case.outputs), ("gradient of", slopes, case.gradients)]:
        assert set(got) == set(wanted)
        for name in wanted:
            assert got[name].dtype == jnp.float32
            close(got[name], wanted[name], tolerance, f"{kind} {name}")


def apply(layer, x, trainables, non_trainables=(), *, inference_mode=False, **inputs):
    """``fwd``, with variables of the structure and the shapes that ``init`` makes."""
    made = jax.eval_shape(functools.partial(layer.init, **inputs), jax.random.key(0), x)
    assert jax.tree.map(jnp.shape, (trainables, non_trainables)) == jax.tree.map(jnp.shape, made)
    return layer.fwd(x, trainables, non_trainables, inference_mode=inference_mode, **inputs)


@pytest.mark.parametrize("name", FILES)
def test_the_references_are_of_the_version_that_the_tool_names(name):
    (version,) = re.findall(r'"torch==([^"]+)"', TOOL.read_text())
    with np.load(HERE / f"references/{name}.npz") as file:
        assert json.loads(str(file["versions"]))["torch"].split("+")[0] == version


def test_the_references_stay_small():
    assert sum(path.stat().st_size for path in (HERE / "references").iterdir()) < 400_000


# Linear, Bias, Scale, Embed


@cases("linear", "linear")
def test_linear(case):
    def function(w):
        y, _ = apply(nn.Linear(3), w["x"], {"kernel": w["weight"].T})
        return apply(nn.Bias(), y, {"bias": w["bias"]})[0] if "bias" in w else y

    check(case, function)


@cases("linear", "affine")
def test_scale_and_bias(case):
    features = case.settings["features"]

    def function(w):
        layer = nn.Series(nn.Scale(features), nn.Bias(features))
        return apply(layer, w["x"], ({"scale": w["scaler"]}, {"bias": w["bias"]}))[0]

    check(case, function)


@cases("linear", "embed")
def test_embed(case):
    layer, ids = nn.Embed(7, 3), jnp.asarray(case.settings["ids"], jnp.int32)

    def function(w):
        trainables = {"embed": w["weight"]}
        y, _ = apply(layer, ids, trainables)
        tied = case.outputs["y"].shape[-1] == 7
        return layer.attend(jnp.tanh(y), trainables, ())[0] if tied else y

    check(case, function)


# Convolution and pooling


def our_options(case, *names):
    """PyTorch's options as ours; one that is missing is left to its default, for both mean the same."""
    given = {name: case.settings[name] for name in names if name in case.settings}
    given = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    given = {name: "SAME" if value == "same" else value for name, value in given.items()}
    return {{"stride": "strides"}.get(name, name): value for name, value in given.items()}


def check_convolution(case, channels_last):
    transposed, groups = case.settings["transposed"], case.settings.get("groups", 1)
    filter_shape = case.inputs["weight"].shape[2:]
    dimensions, names = len(filter_shape), "DHW"[3 - len(filter_shape) :]
    options = our_options(case, "stride", "padding", "dilation", "groups", "output_padding")
    if not channels_last:
        options |= {"input_spec": f"C{names}", "kernel_spec": f"OI{names}"}
    features = (-1,) if channels_last else (-1,) + (1,) * dimensions

    def function(w):
        x, kernel = w["x"], w["weight"]
        out = kernel.shape[1] * groups if transposed else kernel.shape[0]
        if (
            transposed
        ):  # (in, out / groups, …), where the groups cut in, to (out, in / groups, …), where they cut out
            kernel = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:])
            kernel = jnp.swapaxes(kernel, 1, 2).reshape(out, -1, *filter_shape)
        if channels_last:
            x, kernel = jnp.moveaxis(x, 1, -1), jnp.moveaxis(kernel, 1, -1)
        layer = (nn.ConvTranspose if transposed else nn.Conv)(out, filter_shape, **options)
        y, _ = apply(layer, x, {"kernel": kernel})
        if "bias" in w:
            bias = w["bias"].reshape(-1, *features[1:])
            y, _ = apply(nn.Bias(features), y, {"bias": bias})
        return jnp.moveaxis(y, -1, 1) if channels_last else y

    check(case, function)


@cases("convolution")
def test_convolution(case):
    check_convolution(case, channels_last=True)


@cases("convolution", "conv2d")
def test_convolution_in_the_layout_of_pytorch(case):
    check_convolution(case, channels_last=False)


@cases("convolution", "conv_transpose2d")
def test_transposed_convolution_in_the_layout_of_pytorch(case):
    check_convolution(case, channels_last=False)


def pool(case):
    _, _, *sizes = case.inputs["x"].shape
    kind = case.settings["kind"]
    window = case.settings.get("window", sizes)  # all of it: global pooling
    options = our_options(case, "stride", "padding")
    channels_last = len(sizes) != 2  # images as they are, the rest in the layout by default
    if not channels_last:
        options["axes"] = tuple(range(-len(sizes), 0))
    if "max" in kind:
        layer = nn.MaxPool(tuple(window), **options)
    else:
        layer = nn.AvgPool(tuple(window), count_include_pad=kind != "average without padding", **options)

    def function(w):
        x = jnp.moveaxis(w["x"], 1, -1) if channels_last else w["x"]
        y, _ = apply(layer, x, ())
        return jnp.moveaxis(y, -1, 1) if channels_last else y

    return function


@cases("pooling")
def test_pooling(case):
    check(case, pool(case))


# Normalization


def affine(w, features):
    """PyTorch's weight and bias of a normalization: a Scale and a Bias."""
    layers, trainables = (
        [nn.Scale(features)],
        [{"scale": w["weight"].reshape(_shape(w["weight"], features))}],
    )
    if "bias" in w:
        layers.append(nn.Bias(features))
        trainables.append({"bias": w["bias"].reshape(_shape(w["bias"], features))})
    return layers, trainables


def _shape(weight, features):
    return weight.shape if weight.ndim == len(features) else (-1, *(1,) * (len(features) - 1))


@pytest.mark.parametrize("channels_last", [False, True], ids=["first", "last"])
@cases("normalization", "batch")
def test_batch_norm(case, channels_last):
    steps, size, channels, *places = case.inputs["batches"].shape
    channel_axis = -1 if channels_last or not places else -1 - len(places)
    features = (-1, *(1,) * (-1 - channel_axis))
    # PyTorch's momentum is how much of the batch comes in, ours how much of the average stays.
    keep = 1 - case.settings["momentum"]
    values = size * int(np.prod(places))

    def ours(x):
        return jnp.moveaxis(x, 1, -1) if channels_last else x

    def theirs(y):
        return jnp.moveaxis(y, -1, 1) if channels_last else y

    def function(w):
        layers, trainables = affine(w, features)
        norm = nn.BatchNorm(case.settings["epsilon"], keep, channel_axis)
        layer, trainables = nn.Series(norm, *layers), ((), *trainables)
        x = ours(w["batches"][0])
        running = ({"mean": jnp.zeros(channels), "variance": jnp.ones(channels)}, (), ())
        outputs = []
        for batch in w["batches"]:
            y, running = apply(layer, ours(batch), trainables, running)
            outputs.append(theirs(y))
        # PyTorch's running variance is of variances divided by n - 1, ours of those divided by n. Both began with 1.
        mean, variance, begin = running[0]["mean"], running[0]["variance"], keep**steps
        variance = begin + (variance - begin) * (values / (values - 1))
        running = ({"mean": mean, "variance": variance}, (), ())
        y, after = apply(layer, x, trainables, running, inference_mode=True)
        assert after[0]["mean"] is mean and after[0]["variance"] is variance
        return {"training": jnp.stack(outputs), "inference": theirs(y), "mean": mean, "variance": variance}

    check(case, function)


@cases("normalization", "layer")
def test_layer_norm(case):
    layer = nn.LayerNorm(axes=case.settings["axes"], epsilon=case.settings["epsilon"])

    def function(w):
        layers, trainables = affine(w, (-1,) * case.settings["axes"])
        return apply(nn.Series(layer, *layers), w["x"], ((), *trainables))[0]

    check(case, function)


@cases("normalization", "rms")
def test_rms_norm(case):
    layer = nn.RMSNorm(axes=case.settings["axes"], epsilon=case.settings["epsilon"])

    def function(w):
        layers, trainables = affine(w, (-1,) * case.settings["axes"])
        return apply(nn.Series(layer, *layers), w["x"], ((), *trainables))[0]

    check(case, function)


@pytest.mark.parametrize("channels_last", [False, True], ids=["first", "last"])
@cases("normalization", "group")
def test_group_norm(case, channels_last):
    check_group_norm(case, channels_last)


@pytest.mark.parametrize("channels_last", [False, True], ids=["first", "last"])
@cases("normalization", "instance")
def test_instance_norm_is_group_norm_with_one_channel_a_group(case, channels_last):
    check_group_norm(case, channels_last)


def check_group_norm(case, channels_last):
    axes = case.inputs["x"].ndim - 1
    channel_axis = -1 if channels_last else -axes

    def function(w):
        layers, trainables = affine(w, (-1, *(1,) * (-1 - channel_axis)))
        norm = nn.GroupNorm(
            case.settings["groups"], axes=axes, channel_axis=channel_axis, epsilon=case.settings["epsilon"]
        )
        x = jnp.moveaxis(w["x"], 1, -1) if channels_last else w["x"]
        y, _ = apply(nn.Series(norm, *layers), x, ((), *trainables))
        return jnp.moveaxis(y, -1, 1) if channels_last else y

    check(case, function)


# Activations

ACTIVATIONS = {
    "celu": functools.partial(jax.nn.celu, alpha=1.3),
    "elu": functools.partial(jax.nn.elu, alpha=0.7),
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": jax.nn.gelu,
    "leaky_relu": functools.partial(jax.nn.leaky_relu, negative_slope=0.2),
}


@named("activation", load("activation"))
def test_activation(name):
    layer = nn.F(ACTIVATIONS.get(name) or getattr(jax.nn, name))
    check(load("activation")[name], lambda w: apply(layer, w["x"], ())[0])


# Recurrent layers


def cell_of(case):
    kind = case.settings["kind"]
    if kind in ("tanh", "relu"):
        return nn.RNNCell(4, activation={"tanh": jnp.tanh, "relu": jax.nn.relu}[kind])
    return {"lstm": nn.LSTMCell, "gru": nn.GRUCell}[kind](4)


def cell_trainables(w, kind, end=""):
    """PyTorch has a bias for each product. Only the GRU's candidate needs both, which are multiplied by its reset gate."""
    first, second = w[f"bias_ih_l0{end}"], w[f"bias_hh_l0{end}"]
    trainables = {
        "input_kernel": w[f"weight_ih_l0{end}"].T,
        "recurrent_kernel": w[f"weight_hh_l0{end}"].T,
    }
    if kind == "gru":
        bias = jnp.concatenate([(first + second)[:8], first[8:]])
        return trainables | {"bias": bias, "recurrent_bias": second[8:]}
    return trainables | {"bias": first + second}


def turned(x, lengths):
    """Each sequence from its end; the padding stays where it is."""
    place = np.arange(x.shape[1])
    index = np.array([[*place[:length][::-1], *place[length:]] for length in lengths])
    return jnp.take_along_axis(x, jnp.asarray(index)[..., None], axis=1)


@cases("recurrent")
def test_recurrent(case):
    kind, both, lengths = (case.settings[name] for name in ("kind", "both", "lengths"))
    real = {} if lengths is None else {"lengths": jnp.array(lengths, jnp.int32)}

    def function(w):
        """The whole from zeros: all outputs, and the last one, which is the hidden state."""
        trainables = cell_trainables(w, kind)
        if both:
            trainables = {"forward": trainables, "backward": cell_trainables(w, kind, "_reverse")}
        make = nn.Bidirectional if both else nn.Recurrent
        y, last = (
            apply(make(cell_of(case), output=output), w["x"], trainables, **real)[0]
            for output in ("sequence", "last")
        )
        return {"y": y, "hidden": jnp.stack(jnp.split(last, 1 + both, axis=-1))}

    def from_a_state(w):
        """``decode`` starts from a state and returns the last one, and goes forward only: so x is turned round."""
        outputs, states = [], []
        for direction, end in enumerate(["", "_reverse"][: 1 + both]):
            read = functools.partial(turned, lengths=lengths or [5] * 3) if direction else (lambda x: x)
            state = tuple(w[name][direction] for name in ("hidden", "cell") if name in w)
            trainables = cell_trainables(w, kind, end)
            cache = state if kind == "lstm" else state[0]
            y, cache = nn.Recurrent(cell_of(case)).decode(read(w["x"]), trainables, (), cache, **real)
            outputs.append(read(y))
            states.append(cache if kind == "lstm" else (cache,))
        states = {name: jnp.stack(parts) for name, parts in zip(("hidden", "cell"), zip(*states))}
        return {"y": jnp.concatenate(outputs, axis=-1), **states}

    check(case, from_a_state if "hidden" in case.inputs else function)


# Attention


def by_place(x):
    """(batch, heads, length, head_dim) to (batch, length, heads, head_dim), or back."""
    return jnp.swapaxes(x, -3, -2)


def mask_of(case):
    return None if case.settings["mask"] is None else jnp.asarray(case.settings["mask"], bool)


@pytest.mark.parametrize("chunk_size", [None, 1])
@cases("attention", "product")
def test_scaled_dot_product_attention(case, chunk_size):
    mask, causal = mask_of(case), case.settings["causal"]

    def function(w):
        query, key, value = (by_place(w[name]) for name in ("query", "key", "value"))
        if chunk_size:
            y = attend_in_chunks(query, key, value, mask=mask, causal=causal, chunk_size=chunk_size)
        else:
            y = attend(
                query, key, value, mask=distance_mask(query.shape[1], key.shape[1]) if causal else mask
            )
        return by_place(y)

    check(case, function)


@cases("attention", "rotary")
def test_rotary(case):
    positions = jnp.asarray(case.settings["positions"], jnp.int32)
    # Angles are float32: at position 250 they are right to 250 times its rounding.
    check(case, lambda w: rotary(w["x"], positions, 100.0), tolerance=3e-5)


def attention_kernels(w, prefix="", heads=2):
    """PyTorch's matrices, (out, in), the first three perhaps in one: kernels with an axis of heads."""
    if f"{prefix}in_proj_weight" in w:
        projections = jnp.split(w[f"{prefix}in_proj_weight"], 3)
    else:
        projections = [w[f"{prefix}{name}_proj_weight"] for name in "qkv"]
    query, key, value = (p.T.reshape(p.shape[1], heads, -1) for p in projections)
    out = w[f"{prefix}out_proj.weight"]
    return {
        "query_kernel": query,
        "key_kernel": key,
        "value_kernel": value,
        "out_kernel": out.T.reshape(heads, -1, out.shape[0]),
    }


@pytest.mark.parametrize("chunk_size", [None, 1])
@cases("attention", "layer")
def test_multi_head_attention(case, chunk_size):
    layer = nn.MultiHeadAttention(heads=2, causal=case.settings["causal"], chunk_size=chunk_size)

    def function(w):
        inputs = {"mask": mask_of(case), "context": w.get("context")}
        inputs = {name: value for name, value in inputs.items() if value is not None}
        made = jax.eval_shape(lambda x: layer.init(jax.random.key(0), x, **inputs)[0], w["x"])
        trainables = attention_kernels(w)
        assert jax.tree.map(jnp.shape, trainables) == jax.tree.map(jnp.shape, made)
        return layer.fwd(w["x"], trainables, (), **inputs)[0]

    check(case, function)


@cases("attention", "block")
def test_transformer_encoder_block(case):
    norm = nn.LayerNorm(), nn.Scale(), nn.Bias()
    function = {"relu": jax.nn.relu, "gelu": ACTIVATIONS["gelu"]}[case.settings["activation"]]
    attention = nn.MultiHeadAttention(2)
    feed_forward = nn.Linear(10), nn.Bias(), nn.F(function), nn.Linear(6), nn.Bias()
    if case.settings["norm_first"]:
        layer = nn.Series(
            nn.Residual(nn.Series(*norm, attention)), nn.Residual(nn.Series(*norm, *feed_forward))
        )
    else:
        layer = nn.Series(nn.Residual(attention), *norm, nn.Residual(nn.Series(*feed_forward)), *norm)

    def function(w):
        norms = [((), {"scale": w[f"norm{i}.weight"]}, {"bias": w[f"norm{i}.bias"]}) for i in (1, 2)]
        kernels = attention_kernels(w, "self_attn.")
        forward = [
            {"kernel": w["linear1.weight"].T}, {"bias": w["linear1.bias"]}, (),
            {"kernel": w["linear2.weight"].T}, {"bias": w["linear2.bias"]},
        ]  # fmt: skip
        if case.settings["norm_first"]:
            trainables = {"layer": (*norms[0], kernels)}, {"layer": (*norms[1], *forward)}
        else:
            trainables = {"layer": kernels}, *norms[0], {"layer": tuple(forward)}, *norms[1]
        mask = jnp.asarray(case.settings["mask"], bool)
        made = jax.eval_shape(lambda x: layer.init(jax.random.key(0), x, mask=mask)[0], w["x"])
        assert jax.tree.map(jnp.shape, trainables) == jax.tree.map(jnp.shape, made)
        return layer.fwd(w["x"], trainables, (), mask=mask)[0]

    check(case, function)


@named("transformer", ["gpt2", "bert", "vit"])
def test_one_block_of_known_transformers(name):
    """By the names of their weights in Hugging Face's transformers."""
    case = load("transformer")[name]
    block = getattr(from_pytorch, f"{name}_block")(heads=2, width=6, inner=10)

    def function(w):
        # The bias of keys shifts all logits of a query alike, so its gradient is 0, and here nothing but rounding.
        w = {k: jax.lax.stop_gradient(v) if k.endswith("key.bias") else v for k, v in w.items()}
        trainables = getattr(from_pytorch, f"{name}_trainables")(w, heads=2)
        return apply(block, w["x"], trainables)[0]

    check(case, function, tolerance=3e-5)


# Losses: they come from Optax, whose own code is not strict about dtypes and ranks.


def constant(values):
    return jnp.asarray(values, jnp.float32)


def temporal(x, case):
    def after(lengths, size):
        return constant(np.arange(size) >= np.array(lengths)[:, None])

    settings = case.settings
    labels = jnp.asarray(settings["words"])
    return optax.ctc_loss(x, after(settings["steps"], 7), labels, after(settings["lengths"], 3))


LOSSES = {
    "labels": lambda w, case: optax.softmax_cross_entropy_with_integer_labels(w["x"], jnp.array(case.settings["labels"])),
    "smoothed": lambda w, case: optax.softmax_cross_entropy(
        w["x"], optax.smooth_labels(jax.nn.one_hot(jnp.array(case.settings["labels"]), 4), 0.1)
    ).mean(),
    "soft": lambda w, case: optax.softmax_cross_entropy(w["x"], constant(case.settings["targets"])),
    "binary": lambda w, case: optax.sigmoid_binary_cross_entropy(w["x"], constant(case.settings["targets"])),
    "squared": lambda w, case: optax.squared_error(w["x"], w["targets"]),
    "huber": lambda w, case: optax.huber_loss(w["x"], w["targets"], delta=0.8),
    "cosine": lambda w, case: optax.cosine_similarity(w["x"], w["targets"]),
    "divergence": lambda w, case: optax.kl_divergence(jax.nn.log_softmax(w["x"]), constant(case.settings["targets"])),
    "temporal": lambda w, case: temporal(w["x"], case),
}  # fmt: skip


@named("loss", LOSSES)
def test_loss(name):
    case = load("loss")[name]
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        check(case, lambda w: LOSSES[name](w, case), tolerance=2e-5)


# Optimizers, over 50 steps on stored gradients of all sizes, some of them zero

GIVEN = take("optimizer", {"given": load("optimizer")["given"]})["given"]

OPTIMIZERS = {
    "sgd": optim.SGD(0.01),
    "momentum": optim.SGD(0.01, momentum=0.9),
    "nesterov": optim.SGD(0.01, momentum=0.8, nesterov=True),
    "sgd with decay": optim.Chain(optim.WeightDecay(0.1), optim.SGD(0.01, momentum=0.9)),
    # PyTorch's can also subtract the squared mean gradient (centered); ours cannot.
    "rmsprop": optim.RMSProp(0.01, decay=0.95, epsilon=1e-6),
    "rmsprop with momentum": optim.RMSProp(0.01, decay=0.9, epsilon=1e-3, momentum=0.9),
    # PyTorch's sum begins at 0 by default, ours (like Optax's) at 0.1. PyTorch's lr_decay is a schedule here.
    "adagrad": optim.Adagrad(0.1, initial_sum=0.0, epsilon=1e-6),
    "adagrad with initial sum": optim.Adagrad(0.1, initial_sum=0.3, epsilon=1e-2),
    "adam": optim.Adam(0.01),
    "adam with other numbers": optim.Adam(0.1, first_decay=0.7, second_decay=0.95, epsilon=1e-2),
    # PyTorch's Adam(weight_decay=…) is the penalty, not the decoupled decay.
    "adam with penalty": optim.Chain(optim.WeightDecay(0.1), optim.Adam(0.01)),
    # PyTorch's NAdam warms its momentum up, as the paper also proposes; ours does not, nor does PyTorch's with a huge
    # momentum_decay, which was set for this case.
    "nadam": optim.Adam(0.01, nesterov=True),
    "adamw": optim.AdamW(0.01, weight_decay=0.1),
    "adamw with large decay": optim.AdamW(
        0.1, first_decay=0.8, second_decay=0.99, epsilon=1e-3, weight_decay=0.5
    ),
    # PyTorch divides by the norm plus 1e-6, ours by the norm.
    "norm": optim.Chain(optim.ClipByGlobalNorm(5.0), optim.SGD(0.01, momentum=0.9)),
    "norm of some": optim.Chain(optim.ClipByGlobalNorm(170.0), optim.SGD(0.01, momentum=0.9)),
    "value": optim.Chain(optim.ClipByValue(0.5), optim.SGD(0.1, momentum=0.9)),
    "average": optim.ExponentialMovingAverage(optim.SGD(0.01, momentum=0.9), decay=0.9),
    # PyTorch sums what backward() gives, so there each of two losses was halved.
    "accumulate": optim.Accumulate(optim.Adam(0.01), steps=2),
    "scheduled": optim.AdamW(optim.CosineDecay(0.1, steps=50, end=1e-3)),
}


@named("optimizer", OPTIMIZERS)
def test_optimizer(name):
    given, wanted = GIVEN, load("optimizer")[name].outputs
    optimizer = OPTIMIZERS[name]
    weights = {name: jnp.asarray(given.inputs[name]) for name in wanted}
    gradients = {name: jnp.asarray(given.inputs[f"gradient of {name}"]) for name in wanted}

    def step(carry, gradients):
        weights, state = carry
        updates, state = optimizer.step(gradients, state, weights)
        weights = optim.apply_updates(weights, updates)
        return (weights, state), state.average if name == "average" else weights

    _, after = jax.jit(lambda start: jax.lax.scan(step, start, gradients))((weights, optimizer.init(weights)))
    for name in wanted:
        got = after[name][np.array(given.settings["kept"]) - 1]
        close(got, wanted[name], 1e-5, name)
        assert np.abs(wanted[name][-1] - weights[name]).max() > 1e-2  # it went somewhere


SCHEDULES = {
    "linear": optim.LinearDecay(0.5, steps=20, end=0.1),
    "cosine": optim.CosineDecay(0.5, steps=50, end=0.05),
    "step": optim.StepDecay(0.5, every=7, factor=0.5),
    "exponential": optim.StepDecay(0.5, every=1, factor=0.9),
    "warm-up": optim.WarmUp(optim.CosineDecay(0.5, steps=40, end=0.05), steps=10, start=0.05),
}


@named("optimizer", SCHEDULES, "schedule ")
def test_schedule(name):
    wanted = load("optimizer")[f"schedule {name}"].outputs["rates"]
    np.testing.assert_allclose(SCHEDULES[name](jnp.arange(50)), wanted, rtol=1e-5)


def test_every_stored_case_is_compared():
    assert {(file, case) for file in FILES for case in load(file)} == TAKEN
