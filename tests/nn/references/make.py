# /// script
# requires-python = "==3.11.*"
# dependencies = ["numpy==2.4.6", "torch==2.13.0"]
# ///
# ruff: noqa: B023  (functions made in a loop run at once)
"""Make the values of PyTorch that `tests/nn/test_torch.py` compares this library with.

    uv run tests/nn/references/make.py

uv reads the lines above and makes an environment of its own for that: the tests themselves do not need PyTorch.

Each case holds inputs, outputs, a cotangent of each output and the gradients that it gives, of the inputs and of all weights. Inputs
are drawn by NumPy and rounded to float32; PyTorch computes with them in float64; what comes is rounded to float32 and stored, in
PyTorch's own layout. So a case is as exact as float32 can tell, and no random numbers need to agree. A file has three arrays: `index`
(JSON: the settings of each case, and where its arrays lie), `numbers` (all arrays, one after the other) and `versions` (JSON).
"""

import json
import math
import platform
import zlib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LinearLR, SequentialLR, StepLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

FOLDER = Path(__file__).parent
KINDS = "inputs", "outputs", "cotangents", "gradients"


def draw(case, name, *shape):
    """Normal numbers that depend on the names only, so that a further case leaves the others as they are."""
    generator = np.random.default_rng(zlib.crc32(f"{case}/{name}".encode()))
    return generator.normal(size=shape).astype(np.float32)


def integers(case, name, low, high, *shape):
    return np.random.default_rng(zlib.crc32(f"{case}/{name}".encode())).integers(low, high, shape).tolist()


def tensor(array, requires_grad=False):
    return torch.tensor(np.asarray(array), dtype=torch.float64, requires_grad=requires_grad)


class File:
    """The cases of one file."""

    def __init__(self, name):
        self.name, self.cases, self.numbers, self.size = name, {}, [], 0

    def add(self, case, settings, **kinds):
        assert case not in self.cases and set(kinds) <= set(KINDS)
        entry = self.cases[case] = {"settings": settings}
        for kind, arrays in kinds.items():
            entry[kind] = {}
            for name, array in arrays.items():
                array = array.detach().numpy() if isinstance(array, torch.Tensor) else np.asarray(array)
                entry[kind][name] = [self.size, *array.shape]
                self.numbers.append(array.astype(np.float32).ravel())
                self.size += array.size

    def record(self, case, function, shapes, module=None, **settings):
        """Draw inputs of these shapes (arrays are taken as they are) and weights of the module; run; differentiate."""
        inputs = {
            name: draw(case, name, *shape) if isinstance(shape, tuple) else shape
            for name, shape in shapes.items()
        }
        tensors = {name: tensor(array, requires_grad=True) for name, array in inputs.items()}
        weights = {} if module is None else dict(module.named_parameters())
        for name, weight in weights.items():
            drawn = draw(case, name, *weight.shape) / math.sqrt(weight.shape[-1] if weight.ndim > 1 else 4)
            inputs[name] = (drawn + ("norm" in name and name.endswith("weight"))).astype(np.float32)
            weight.data = tensor(inputs[name])
        outputs = function(*tensors.values())
        outputs = outputs if isinstance(outputs, dict) else {"y": outputs}
        # Without a cotangent: what PyTorch does not differentiate, such as running averages.
        cotangents = {
            name: draw(case, f"cotangent of {name}", *y.shape)
            for name, y in outputs.items()
            if y.requires_grad
        }
        tensors |= weights
        gradients = torch.autograd.grad(
            [outputs[name] for name in cotangents],
            list(tensors.values()),
            list(map(tensor, cotangents.values())),
        )
        gradients = dict(zip(tensors, gradients))
        self.add(case, settings, inputs=inputs, outputs=outputs, cotangents=cotangents, gradients=gradients)

    def write(self):
        versions = {
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        }
        arrays = {
            "index": json.dumps(self.cases),
            "versions": json.dumps(versions),
            "numbers": np.concatenate(self.numbers),
        }
        assert np.isfinite(arrays["numbers"]).all(), self.name
        path = FOLDER / f"{self.name}.npz"
        partial = path.with_suffix(".partial")
        with partial.open("wb") as file:
            np.savez_compressed(file, **arrays)
        partial.replace(path)
        print(f"{path.name}: {len(self.cases)} cases, {path.stat().st_size:,} bytes")
        return path.stat().st_size


def linear():
    file = File("linear")
    for shape in [(5,), (2, 5), (2, 3, 4, 5), (7, 1)]:
        for bias in (False, True):
            shapes = {"x": shape, "weight": (3, shape[-1])} | ({"bias": (3,)} if bias else {})
            file.record(f"linear {shape} {bias}", F.linear, shapes)
    for shape, features in [
        ((2, 4), [-1]),
        ((2, 3, 4, 5), [-1, 1, 1]),
        ((3, 4, 5), [1, -1]),
        ((3, 4), [-1, -1]),
    ]:
        weight = tuple(
            size if wanted == -1 else wanted for size, wanted in zip(shape[-len(features) :], features)
        )
        shapes = {"x": shape, "scaler": weight, "bias": weight}
        file.record(
            f"affine {features}",
            lambda x, scaler, bias: torch.addcmul(bias, x, scaler),
            shapes,
            features=features,
        )
    for shape in [(6,), (2, 5), ()]:
        ids = integers(f"embed {shape}", "ids", 0, 7, *shape)
        file.record(
            f"embed {shape}",
            lambda weight: F.embedding(torch.tensor(ids), weight),
            {"weight": (7, 3)},
            ids=ids,
        )
    ids = integers("tied", "ids", 0, 7, 2, 5)
    file.record(
        "embed tied",  # read and write with the same table
        lambda weight: F.linear(torch.tanh(F.embedding(torch.tensor(ids), weight)), weight),
        {"weight": (7, 3)},
        ids=ids,
    )
    return file


# Convolutions and pooling: (sizes of the axes, channels in and out, size of the kernel, options)

CONVOLUTIONS = [
    ((8,), 3, 4, (3,), {}),
    ((9,), 3, 4, (4,), {"stride": 2, "padding": 1, "bias": False}),
    ((9,), 4, 6, (3,), {"dilation": 2, "padding": 3, "groups": 2}),
    ((8,), 2, 3, (4,), {"padding": "same"}),
    ((8,), 2, 3, (4,), {"padding": "same", "dilation": 3}),
    ((5, 6), 3, 4, (3, 3), {}),
    ((5, 6), 3, 4, (3, 3), {"padding": "same"}),
    ((7, 6), 3, 2, (3, 2), {"stride": [2, 1], "padding": [1, 2]}),
    ((8, 7), 2, 3, (3, 3), {"stride": 2, "padding": 1, "bias": False}),
    ((8, 7), 2, 3, (2, 3), {"dilation": [3, 2], "padding": [0, 1]}),
    ((5, 5), 4, 6, (3, 3), {"groups": 2, "stride": 2}),
    ((5, 5), 3, 6, (3, 3), {"groups": 3, "padding": 1}),
    ((4, 5), 3, 4, (1, 1), {}),
    ((5, 5), 2, 3, (1, 1), {"stride": 2}),
    ((3, 4, 5), 2, 3, (2, 3, 3), {}),
    ((4, 5, 4), 2, 4, (3, 2, 3), {"stride": [1, 2, 2], "padding": [1, 0, 1], "groups": 2}),
    ((5, 4, 5), 1, 2, (2, 2, 2), {"dilation": [2, 1, 3], "padding": 1}),
]
TRANSPOSED = [
    ((6,), 3, 4, (3,), {}),
    ((5,), 3, 4, (4,), {"stride": 2, "padding": 1}),
    ((5,), 3, 2, (3,), {"stride": 3, "padding": 1, "output_padding": 2}),
    ((5,), 3, 2, (2,), {"stride": 3, "bias": False}),
    ((5,), 2, 2, (3,), {"stride": 2, "dilation": 2, "padding": 2, "output_padding": 1}),
    ((3, 4), 3, 2, (3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    ((3, 4), 2, 3, (3, 2), {"stride": [1, 3], "padding": [1, 0], "bias": False}),
    ((3, 4), 4, 6, (2, 2), {"stride": 2, "groups": 2}),
    ((4, 3), 2, 3, (4, 4), {"stride": 2, "padding": 1}),
    ((2, 3, 2), 2, 3, (2, 3, 2), {"stride": [2, 1, 2], "padding": [0, 1, 0]}),
]
POOLING = [
    ((9,), 3, (2,), {}),
    ((9,), 3, (3,), {"stride": 2, "padding": 1}),
    ((6, 7), 2, (2, 2), {}),
    ((6, 7), 2, (3, 2), {"stride": [2, 1]}),
    ((6, 7), 2, (3, 3), {"stride": 2, "padding": 1}),
    ((5, 7), 2, (4, 2), {"stride": [1, 3], "padding": [2, 0]}),
    ((4, 5, 4), 1, (2, 3, 2), {"stride": [2, 1, 2], "padding": [1, 1, 0]}),
]


def convolution():
    file = File("convolution")
    for transposed, rows in [(False, CONVOLUTIONS), (True, TRANSPOSED)]:
        for sizes, channels, out, kernel, options in rows:
            options = dict(options)
            groups, bias = options.get("groups", 1), options.pop("bias", True)
            name = f"conv{'_transpose' * transposed}{len(sizes)}d"
            weight = (channels, out // groups, *kernel) if transposed else (out, channels // groups, *kernel)
            shapes = {"x": (2, channels, *sizes), "weight": weight} | ({"bias": (out,)} if bias else {})
            operation = getattr(F, name)

            def function(x, weight, bias=None):
                return operation(
                    x, weight, bias, **{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
                )

            file.record(
                f"{name} {sizes} {kernel} {options}", function, shapes, transposed=transposed, **options
            )
    return file


def pooling():
    file = File("pooling")
    for sizes, channels, window, options in POOLING:
        for kind in ("max", "average", "average without padding"):
            if kind == "average without padding" and "padding" not in options:
                continue
            operation = getattr(F, f"{'max' if kind == 'max' else 'avg'}_pool{len(sizes)}d")
            extra = {} if kind == "max" else {"count_include_pad": kind == "average"}
            file.record(
                f"{kind} {sizes} {window} {options}",
                lambda x: operation(x, window, **options, **extra),
                {"x": (2, channels, *sizes)},
                kind=kind,
                window=window,
                **options,
            )
    ties = np.round(
        draw("ties", "x", 2, 2, 6, 7)
    )  # where several are the largest, the gradient has to choose
    file.record("ties", lambda x: F.max_pool2d(x, 3, 2), {"x": ties}, kind="max", window=[3, 3], stride=2)
    for dimensions in (1, 2, 3):
        shape = (2, 3, 4, 3, 2)[: 2 + dimensions]
        for kind in ("max", "avg"):
            operation = getattr(F, f"adaptive_{kind}_pool{dimensions}d")
            file.record(
                f"global {kind} {dimensions}d", lambda x: operation(x, 1), {"x": shape}, kind=f"global {kind}"
            )
    return file


def normalization():
    file = File("normalization")
    for shape, momentum, epsilon in [((6, 3), 0.1, 1e-5), ((3, 2, 5), 0.25, 1e-5), ((2, 3, 4, 3), 0.01, 0.1)]:
        steps, channels = 4, shape[1]

        def train(batches, weight, bias):
            mean, variance = torch.zeros(channels).double(), torch.ones(channels).double()
            outputs = [
                F.batch_norm(x, mean, variance, weight, bias, True, momentum, epsilon) for x in batches
            ]
            inference = F.batch_norm(batches[0], mean, variance, weight, bias, False, momentum, epsilon)
            return {
                "training": torch.stack(outputs),
                "inference": inference,
                "mean": mean,
                "variance": variance,
            }

        case = f"batch {shape}"
        batches = 1.5 + 2 * draw(case, "batches", steps, *shape)
        shapes = {"batches": batches, "weight": (channels,), "bias": (channels,)}
        file.record(case, train, shapes, momentum=momentum, epsilon=epsilon)
    for shape, axes, epsilon in [
        ((5,), 1, 1e-5),
        ((3, 5), 1, 0.1),
        ((2, 3, 5), 2, 1e-5),
        ((2, 3, 4, 5), 3, 1e-3),
    ]:
        features, settings = shape[-axes:], {"axes": axes, "epsilon": epsilon}
        shapes = {"x": shape, "weight": features, "bias": features}
        file.record(
            f"layer {shape} {axes}",
            lambda x, weight, bias: F.layer_norm(x, features, weight, bias, epsilon),
            shapes,
            **settings,
        )
        shapes = {"x": shape, "weight": features}
        file.record(
            f"rms {shape} {axes}",
            lambda x, weight: F.rms_norm(x, features, weight, epsilon),
            shapes,
            **settings,
        )
    for shape, groups, epsilon in [
        ((2, 12), 3, 1e-5),
        ((2, 6, 5), 2, 1e-5),
        ((2, 4, 3, 4), 1, 0.1),
        ((2, 4, 2, 3, 2), 2, 1e-5),
    ]:
        shapes = {"x": shape, "weight": (shape[1],), "bias": (shape[1],)}
        file.record(
            f"group {shape} {groups}",
            lambda x, weight, bias: F.group_norm(x, groups, weight, bias, epsilon),
            shapes,
            groups=groups,
            epsilon=epsilon,
        )
    for shape, epsilon in [((2, 3, 7), 1e-5), ((2, 3, 4, 5), 0.1)]:
        shapes = {"x": shape, "weight": (shape[1],), "bias": (shape[1],)}
        file.record(
            f"instance {shape}",
            lambda x, weight, bias: F.instance_norm(x, None, None, weight, bias, eps=epsilon),
            shapes,
            groups=shape[1],
            epsilon=epsilon,
        )
    return file


ACTIVATIONS = {
    "celu": lambda x: F.celu(x, 1.3),
    "elu": lambda x: F.elu(x, 0.7),
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "glu": F.glu,
    "hard_sigmoid": F.hardsigmoid,
    "hard_silu": F.hardswish,
    "hard_tanh": F.hardtanh,
    "leaky_relu": lambda x: F.leaky_relu(x, 0.2),
    "log_sigmoid": F.logsigmoid,
    "log_softmax": lambda x: F.log_softmax(x, -1),
    "mish": F.mish,
    "relu": F.relu,
    "relu6": F.relu6,
    "selu": F.selu,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "soft_sign": F.softsign,
    "softmax": lambda x: F.softmax(x, -1),
    "softplus": F.softplus,
    "tanh": torch.tanh,
}


def activation():
    file = File("activation")
    for name, function in ACTIVATIONS.items():
        x = draw(name, "x", 4, 6) * np.float32([1, 3, 10, 40])[:, None]  # into the flat parts, too
        file.record(name, function, {"x": x})
    return file


# Recurrent layers: kind, whether both ways, lengths of padded sequences, whether from a given state

RECURRENT = [
    ("lstm", False, None, False),
    ("lstm", False, [5, 2, 3], False),
    ("lstm", True, None, False),
    ("lstm", True, [1, 5, 3], False),
    ("lstm", False, None, True),
    ("lstm", True, [5, 2, 3], True),
    ("gru", False, None, False),
    ("gru", True, [5, 2, 3], False),
    ("gru", False, [1, 5, 3], True),
    ("tanh", False, None, False),
    ("tanh", True, [5, 2, 3], False),
    ("tanh", True, None, True),
    ("relu", False, None, False),
]


def recurrent():
    file = File("recurrent")
    kinds = {
        "lstm": torch.nn.LSTM,
        "gru": torch.nn.GRU,
        "tanh": torch.nn.RNN,
        "relu": lambda *sizes, **options: torch.nn.RNN(*sizes, nonlinearity="relu", **options),
    }
    for kind, both, lengths, start in RECURRENT:
        case = f"{kind}{' both ways' * both}{f' {lengths}' if lengths else ''}{' from a state' * start}"
        layer = kinds[kind](3, 4, batch_first=True, bidirectional=both, dtype=torch.float64)

        def function(x, hidden=None, cell=None):
            if lengths:
                x = torch.nn.utils.rnn.pack_padded_sequence(
                    x, lengths, batch_first=True, enforce_sorted=False
                )
            y, state = layer(x, hidden if cell is None else (hidden, cell))
            if lengths:  # zeros after the end
                y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=5)
            hidden, *cell = state if kind == "lstm" else (state,)
            return {"y": y, "hidden": hidden} | ({"cell": cell[0]} if start and cell else {})

        shapes = {"x": (3, 5, 3)}
        if start:
            shapes |= {name: (1 + both, 3, 4) for name in ("hidden", "cell")[: 1 + (kind == "lstm")]}
        file.record(case, function, shapes, layer, kind=kind, both=both, lengths=lengths)
    return file


def attention():
    file = File("attention")

    def mask(case, *shape):
        allowed = np.random.default_rng(zlib.crc32(case.encode())).random(shape) < 0.6
        allowed[..., 0] = True  # each query may look at something
        return allowed

    # PyTorch's layout: (batch, heads, length, head_dim).
    products = {
        "plain": ((2, 2, 3, 4), (2, 2, 5, 4), None, False),
        "mask": ((2, 2, 3, 4), (2, 2, 5, 4), (2, 3, 5), False),
        "causal": ((2, 2, 5, 4), (2, 2, 5, 4), None, True),
        "grouped": ((2, 4, 3, 4), (2, 2, 5, 4), None, False),
        "grouped mask": ((2, 6, 3, 2), (2, 2, 5, 2), (2, 3, 5), False),
        "one head of keys, causal": ((1, 3, 4, 2), (1, 1, 4, 2), None, True),
    }
    for name, (query, keys, masked, causal) in products.items():
        case = f"product {name}"
        allowed = None if masked is None else mask(case, *masked)
        if name == "mask":
            allowed[1, 2] = False  # PyTorch's answer is zeros, too

        def function(query, key, value):
            masks = None if allowed is None else torch.tensor(allowed)[:, None]
            grouped = query.shape[1] != key.shape[1]
            return F.scaled_dot_product_attention(
                query, key, value, masks, is_causal=causal, enable_gqa=grouped
            )

        shapes = {"query": query, "key": keys, "value": keys}
        file.record(case, function, shapes, mask=None if allowed is None else allowed.tolist(), causal=causal)

    # PyTorch has no layer for rotary positions; as complex numbers the turn is one product.
    def turn(x, positions):  # (batch, length, heads, head_dim)
        first, second = x.chunk(2, -1)
        angles = tensor(positions)[:, None] * 100.0 ** (
            -torch.arange(first.shape[-1], dtype=torch.float64) / first.shape[-1]
        )
        turned = torch.complex(first, second) * torch.polar(torch.ones_like(angles), angles)[:, None]
        return torch.cat([turned.real, turned.imag], -1)

    for positions in ([0, 1, 2, 3], [7, 3, 250, 11]):
        file.record(
            f"rotary {positions}", lambda x: turn(x, positions), {"x": (2, 4, 2, 6)}, positions=positions
        )

    layers = {
        "self": ({}, None, False),
        "self mask": ({}, (2, 4, 4), False),
        "self causal": ({}, None, True),
        "cross": ({}, None, False),
        "cross of another size": ({"kdim": 5, "vdim": 5}, None, False),
        "cross padding": ({}, (2, 1, 5), False),
    }
    for name, (options, masked, causal) in layers.items():
        case = f"layer {name}"
        layer = torch.nn.MultiheadAttention(
            6, 2, bias=False, batch_first=True, dtype=torch.float64, **options
        )
        allowed = None if masked is None else mask(case, *masked)

        def function(x, context=None):
            masks = {}
            if causal:
                masks = {"attn_mask": ~torch.ones(4, 4, dtype=torch.bool).tril(), "is_causal": True}
            elif allowed is not None and allowed.shape[1] == 1:
                masks = {"key_padding_mask": ~torch.tensor(allowed[:, 0])}  # True is "not" here
            elif allowed is not None:
                masks = {"attn_mask": ~torch.tensor(allowed).repeat_interleave(2, 0)}  # one for each head
            context = x if context is None else context
            return layer(x, context, context, need_weights=False, **masks)[0]

        shapes = {"x": (2, 4, 6)}
        if "cross" in name:
            shapes["context"] = (2, 5, options.get("kdim", 6))
        file.record(
            case, function, shapes, layer, mask=None if allowed is None else allowed.tolist(), causal=causal
        )

    for norm_first in (False, True):
        for activation in ("relu", "gelu"):
            case = f"block {activation} {'norm first' if norm_first else 'norm last'}"
            block = torch.nn.TransformerEncoderLayer(
                6,
                2,
                10,
                0.0,
                activation,
                norm_first=norm_first,
                batch_first=True,
                bias=True,
                dtype=torch.float64,
            )
            # without biases; those of GPT-2, BERT and ViT have them
            block.self_attn = torch.nn.MultiheadAttention(
                6, 2, bias=False, batch_first=True, dtype=torch.float64
            )
            allowed = mask(case, 2, 1, 4)
            file.record(
                case,
                lambda x: block(x, src_key_padding_mask=~torch.tensor(allowed[:, 0])),
                {"x": (2, 4, 6)},
                block,
                activation=activation,
                norm_first=norm_first,
                mask=allowed.tolist(),
            )
    return file


def transformer():
    """One block of GPT-2, BERT and ViT, written out, with the names of their weights in Hugging Face's transformers."""
    file = File("transformer")
    width, inner, heads = 6, 10, 2

    def attend(query, key, value, causal=False):
        split = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (query, key, value))
        return F.scaled_dot_product_attention(*split, is_causal=causal).transpose(1, 2).flatten(2)

    def gpt2(x, w):
        def norm(x, name):
            return F.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-5)

        def dense(x, name):  # its Conv1D holds (in, out)
            return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

        y = attend(*dense(norm(x, "ln_1"), "attn.c_attn").chunk(3, -1), causal=True)
        x = x + dense(y, "attn.c_proj")
        y = F.gelu(dense(norm(x, "ln_2"), "mlp.c_fc"), approximate="tanh")
        return x + dense(y, "mlp.c_proj")

    def encoder(x, w, inside, before, after):
        def norm(x, name):
            return F.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], 1e-12)

        def dense(x, name):
            return F.linear(x, w[f"{name}.weight"], w[f"{name}.bias"])

        def attention(x):
            y = attend(*(dense(x, f"attention.{inside}.{name}") for name in ("query", "key", "value")))
            return dense(y, "attention.output.dense")

        def forward(x):
            return dense(F.gelu(dense(x, "intermediate.dense")), "output.dense")

        if inside == "self":  # BERT normalizes sums, ViT what goes into a layer
            x = norm(x + attention(x), before)
            return norm(x + forward(x), after)
        x = x + attention(norm(x, before))
        return x + forward(norm(x, after))

    def shapes(names, norms, turned):
        found = {"x": (2, 4, width)}
        for name, (out, into) in names.items():
            found |= {f"{name}.weight": (into, out) if turned else (out, into), f"{name}.bias": (out,)}
        for name in norms:
            found |= {f"{name}.weight": (width,), f"{name}.bias": (width,)}
        return found

    def record(case, function, shapes):
        file.record(case, lambda x, *weights: function(x, dict(zip(list(shapes)[1:], weights))), shapes)

    names = {"attn.c_attn": (3 * width, width), "attn.c_proj": (width, width)}
    names |= {"mlp.c_fc": (inner, width), "mlp.c_proj": (width, inner)}
    record("gpt2", gpt2, shapes(names, ("ln_1", "ln_2"), turned=True))
    for case, inside, norms in [
        ("bert", "self", ("attention.output.LayerNorm", "output.LayerNorm")),
        ("vit", "attention", ("layernorm_before", "layernorm_after")),
    ]:
        names = {f"attention.{inside}.{name}": (width, width) for name in ("query", "key", "value")}
        names |= {"attention.output.dense": (width, width)}
        names |= {"intermediate.dense": (inner, width), "output.dense": (width, inner)}
        record(
            case,
            lambda x, w, inside=inside, norms=norms: encoder(x, w, inside, *norms),
            shapes(names, norms, turned=False),
        )
    return file


def loss():
    file = File("loss")
    labels = integers("loss", "labels", 0, 4, 5)
    logits, soft = (
        {"x": draw("loss", "logits", 5, 4) * 3},
        torch.softmax(tensor(draw("loss", "soft", 5, 4)), -1),
    )
    targets = draw("loss", "targets", 5, 4)
    binary = (targets > 0).astype(int).tolist()
    file.record(
        "labels", lambda x: F.cross_entropy(x, torch.tensor(labels), reduction="none"), logits, labels=labels
    )
    file.record(
        "smoothed",
        lambda x: F.cross_entropy(x, torch.tensor(labels), label_smoothing=0.1),
        logits,
        labels=labels,
    )
    file.record("soft", lambda x: F.cross_entropy(x, soft, reduction="none"), logits, targets=soft.tolist())
    file.record(
        "binary",
        lambda x: F.binary_cross_entropy_with_logits(x, tensor(binary), reduction="none"),
        logits,
        targets=binary,
    )
    file.record(
        "squared", lambda x, targets: F.mse_loss(x, targets, reduction="none"), logits | {"targets": targets}
    )
    file.record(
        "huber",
        lambda x, targets: F.huber_loss(x, targets, reduction="none", delta=0.8),
        logits | {"targets": targets},
    )
    file.record("cosine", lambda x, targets: F.cosine_similarity(x, targets), logits | {"targets": targets})
    file.record(
        "divergence",
        lambda x: F.kl_div(F.log_softmax(x, -1), soft, reduction="none").sum(-1),
        logits,
        targets=soft.tolist(),
    )
    words, lengths = [[1, 2, 2], [3, 1, 0]], [3, 2]
    file.record(
        "temporal",
        lambda x: F.ctc_loss(
            F.log_softmax(x, -1).transpose(0, 1),
            torch.tensor(words),
            torch.tensor([7, 5]),
            torch.tensor(lengths),
            reduction="none",
        ),
        {"x": (2, 7, 4)},
        words=words,
        lengths=lengths,
        steps=[7, 5],
    )
    return file


STEPS, KEPT = 50, [1, 2, 3, 10, 50]  # weights are stored after these steps
SHAPES = {"kernel": (4, 3), "bias": (3,)}


def optimizer():
    """Optimizers on 50 given gradients, so that no loss must agree: of all sizes, some of them zero."""
    file = File("optimizer")
    start = {name: draw("optimizer", name, *shape) for name, shape in SHAPES.items()}
    given = {}
    for name, shape in SHAPES.items():
        scale = 10 ** np.linspace(-3, 2, shape[0], dtype=np.float32).reshape(-1, *(1,) * (len(shape) - 1))
        given[name] = draw("optimizer", f"gradient of {name}", STEPS, *shape) * scale
        given[name][::7] = 0
    file.add("given", {"kept": KEPT}, inputs={**start, **{f"gradient of {k}": v for k, v in given.items()}})

    def run(case, make, change=None, schedule=None, decay=None, every=1, **settings):
        model = torch.nn.ParameterDict({name: torch.nn.Parameter(tensor(start[name])) for name in SHAPES})
        optimizer = make(model.parameters())
        schedule = schedule and schedule(optimizer)
        average = decay and AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
        if average:
            average.update_parameters(
                model
            )  # the first call only copies: ours begins with the first weights, too
        kept = {name: [] for name in SHAPES}
        for step in range(STEPS):
            for name, weight in model.items():
                gradient = tensor(given[name][step]) / every
                weight.grad = gradient if weight.grad is None else weight.grad + gradient
            if (step + 1) % every == 0:
                if change:
                    change(list(model.values()))
                optimizer.step()
                optimizer.zero_grad()
                if schedule:
                    schedule.step()
            if average:
                average.update_parameters(model)
            if step + 1 in KEPT:
                for name in SHAPES:
                    kept[name].append((average.module if average else model)[name].detach().clone())
        file.add(case, settings, outputs={name: torch.stack(values) for name, values in kept.items()})

    optim = torch.optim
    run("sgd", lambda p: optim.SGD(p, 0.01))
    run("momentum", lambda p: optim.SGD(p, 0.01, momentum=0.9))
    run("nesterov", lambda p: optim.SGD(p, 0.01, momentum=0.8, nesterov=True))
    run("sgd with decay", lambda p: optim.SGD(p, 0.01, momentum=0.9, weight_decay=0.1))
    run("rmsprop", lambda p: optim.RMSprop(p, 0.01, alpha=0.95, eps=1e-6))
    run("rmsprop with momentum", lambda p: optim.RMSprop(p, 0.01, alpha=0.9, eps=1e-3, momentum=0.9))
    run("adagrad", lambda p: optim.Adagrad(p, 0.1, eps=1e-6))
    run("adagrad with initial sum", lambda p: optim.Adagrad(p, 0.1, eps=1e-2, initial_accumulator_value=0.3))
    run("adam", lambda p: optim.Adam(p, 0.01))
    run("adam with other numbers", lambda p: optim.Adam(p, 0.1, betas=(0.7, 0.95), eps=1e-2))
    run("adam with penalty", lambda p: optim.Adam(p, 0.01, weight_decay=0.1))
    run("nadam", lambda p: optim.NAdam(p, 0.01, momentum_decay=1e9))
    run("adamw", lambda p: optim.AdamW(p, 0.01, weight_decay=0.1))
    run(
        "adamw with large decay", lambda p: optim.AdamW(p, 0.1, betas=(0.8, 0.99), eps=1e-3, weight_decay=0.5)
    )
    clip = torch.nn.utils
    # Half of the gradients are longer than 170.
    for case, bound in [("norm", 5.0), ("norm of some", 170.0)]:
        run(case, lambda p: optim.SGD(p, 0.01, momentum=0.9), lambda p: clip.clip_grad_norm_(p, bound))
    run("value", lambda p: optim.SGD(p, 0.1, momentum=0.9), lambda p: clip.clip_grad_value_(p, 0.5))
    run("average", lambda p: optim.SGD(p, 0.01, momentum=0.9), decay=0.9)
    run("accumulate", lambda p: optim.Adam(p, 0.01), every=2)
    run("scheduled", lambda p: optim.AdamW(p, 0.1), schedule=lambda o: CosineAnnealingLR(o, STEPS, 1e-3))

    schedules = {
        "linear": lambda o: LinearLR(o, 1.0, 0.2, 20),
        "cosine": lambda o: CosineAnnealingLR(o, STEPS, 0.05),
        "step": lambda o: StepLR(o, 7, 0.5),
        "exponential": lambda o: ExponentialLR(o, 0.9),
        "warm-up": lambda o: SequentialLR(
            o, [LinearLR(o, 0.1, 1.0, 10), CosineAnnealingLR(o, STEPS - 10, 0.05)], milestones=[10]
        ),
    }
    for name, schedule in schedules.items():
        optimizer = optim.SGD([torch.nn.Parameter(torch.zeros(()))], 0.5)
        schedule, rates = schedule(optimizer), []
        for _ in range(STEPS):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
        file.add(f"schedule {name}", {}, outputs={"rates": np.array(rates)})
    return file


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    FOLDER.mkdir(exist_ok=True)
    families = (
        linear,
        convolution,
        pooling,
        normalization,
        activation,
        recurrent,
        attention,
        transformer,
        loss,
        optimizer,
    )
    print(f"{sum(family().write() for family in families):,} bytes in all")
