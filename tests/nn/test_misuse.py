"""More wrong uses, class by class: arrays that are none, trees of other models, caches, states; and a count of them all."""

import dataclasses
import functools
import inspect
import pathlib
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from mlax_tutorial import nn, optim, packing, precision, saving, sharding, trees
from tests.laws.rows import public_classes

KEY = jax.random.key(0)
MESH = AbstractMesh((2,), ("data",), axis_types=(AxisType.Auto,))
X, SEQUENCE, IDS = np.ones((2, 4), "float32"), np.ones((2, 5, 4), "float32"), np.array([[1, 2]], "int32")
LINEAR, EMBED, NORM = nn.Linear(3), nn.Embed(10, 4), nn.BatchNorm()
ATTENTION, CAUSAL = nn.MultiHeadAttention(2), nn.MultiHeadAttention(2, causal=True)
CONV = nn.Conv(3, (3,), padding="CAUSAL")
STACK, PAIR = nn.Stack(nn.Linear(4), 2), nn.Parallel(nn.Linear(3), nn.Linear(2))
KERNEL = {"kernel": np.ones((4, 3), "float32")}
HEADS = {f"{name}_kernel": np.ones((4, 2, 2), "float32") for name in ("query", "key", "value")}
HEADS["out_kernel"] = np.ones((2, 2, 4), "float32")


class Own(nn.Composite):
    child: nn.Layer

    def forward(self, call, x):
        return call.child(x)


class Silent(Own):
    def forward(self, call, x):
        call.child(x)


class Undeclared(nn.Composite):
    child = nn.Linear(3)

    def forward(self, call, x):
        return call.child(x)


class Direct(Own):
    def forward(self, call, x):
        return self.child(x)


class Assigned(nn.Layer):
    def __init__(self, features):
        self.features = features


def cache(length=3):
    return CAUSAL.init_cache(SEQUENCE[:, :1], length)


def integers(*shape):
    return np.ones(shape, "int32")


FLOATING = "expects an array of floating-point numbers, got"

# What a layer that stands refuses in a call of `init`, `fwd` or `decode`, with the message that is raised.
LAYERS = {
    "Linear, a list for a kernel": (
        lambda: LINEAR.fwd(X, {"kernel": [[1.0]]}, ()),
        rf"^Linear: kernel {FLOATING} a list of length 1: pass the trainables",
    ),
    "Linear, integers for a kernel": (
        lambda: LINEAR.fwd(X, {"kernel": integers(4, 3)}, ()),
        rf"^Linear: kernel {FLOATING} int32\[4,3\]: .*or convert them",
    ),
    "Linear, None for trainables": (
        lambda: LINEAR.fwd(X, None, ()),
        r"^Linear: trainables expect a dict with keys \['kernel'\], got None",
    ),
    "Linear, a shape for an array": (
        lambda: LINEAR.init(KEY, (2, 4)),
        r"^Linear: x expects an array, got a tuple of length 2",
    ),
    "Linear, complex numbers": (
        lambda: LINEAR.fwd(X.astype("complex64"), KERNEL, ()),
        r"^Linear: x expects floating-point numbers, got complex64\[2,4\]",
    ),
    "Linear, arguments the wrong way round": (
        lambda: LINEAR.fwd(KERNEL, X, ()),
        r"^Linear: x expects an array, got a dict with keys \['kernel'\]",
    ),
    "Bias, a list": (
        lambda: nn.Bias().fwd(X, {"bias": [1.0]}, ()),
        rf"^Bias: bias {FLOATING} a list of length 1",
    ),
    "Scale, integers": (
        lambda: nn.Scale().fwd(X, {"scale": integers(4)}, ()),
        rf"^Scale: scale {FLOATING} int32\[4\]",
    ),
    "Scale of another shape": (
        lambda: nn.Scale().fwd(X, {"scale": np.ones(3, "float32")}, ()),
        r"^Scale: scale expects shape \(4,\), got float32\[3\]",
    ),
    "Scale, integers in": (
        lambda: nn.Scale().fwd(integers(4), {"scale": X[0]}, ()),
        r"^Scale: x expects floating-point numbers, got int32\[4\]",
    ),
    "Embed, a table of integers": (
        lambda: EMBED.fwd(IDS, {"embed": integers(10, 4)}, ()),
        rf"^Embed: embed {FLOATING} int32\[10,4\]",
    ),
    "Embed, no table": (
        lambda: EMBED.fwd(IDS, (), ()),
        r"^Embed: trainables expect a dict with keys \['embed'\], got a tuple of length 0",
    ),
    "Embed, Booleans": (lambda: EMBED.init(KEY, IDS > 1), r"^Embed: x expects integers, got bool\[1,2\]"),
    "BatchNorm, no running averages": (
        lambda: NORM.fwd(X, (), ()),
        r"^BatchNorm: non_trainables expect a dict with keys \['mean', 'variance'\], got a tuple of length 0",
    ),
    "BatchNorm, integers for running averages": (
        lambda: NORM.fwd(X, (), {"mean": integers(4), "variance": integers(4)}),
        rf"^BatchNorm: mean {FLOATING} int32\[4\]",
    ),
    "LayerNorm, a list": (lambda: nn.LayerNorm().fwd([1.0], (), ()), r"^LayerNorm: x expects an array, got"),
    "RMSNorm, integers": (lambda: nn.RMSNorm().fwd(IDS, (), ()), r"^RMSNorm: x expects floating-point numb"),
    "MultiHeadAttention, a mask with an axis for heads": (
        lambda: ATTENTION.fwd(SEQUENCE, HEADS, (), mask=np.ones((2, 2, 5, 5), bool)),
        r"^MultiHeadAttention: mask expects the batch axes \(2,\), got bool\[2,2,5,5\]: heads share one mask; for one",
    ),
    "MultiHeadAttention, a mask of another batch": (
        lambda: ATTENTION.fwd(SEQUENCE, HEADS, (), mask=np.ones((3, 5, 5), bool)),
        r"^MultiHeadAttention: mask expects the batch axes \(2,\), got bool\[3,5,5\]",
    ),
    "MultiHeadAttention, what makes an initializer": (
        lambda: nn.MultiHeadAttention(2, kernel_initializer=jax.nn.initializers.he_normal).init(
            KEY, SEQUENCE
        ),
        r"^MultiHeadAttention: kernel_initializer must return float32\[4,4\], got function init: call what makes",
    ),
    "MultiHeadAttention, a kernel too few": (
        lambda: ATTENTION.fwd(SEQUENCE, {"query_kernel": HEADS["query_kernel"]}, ()),
        r"^MultiHeadAttention: trainables expect a dict with keys \['key_kernel', 'out_kernel', 'query_kernel', 'value_kernel'\]",
    ),
    "TransformerBlock, other features": (
        lambda: nn.TransformerBlock(6, heads=2).init(KEY, SEQUENCE),
        r"^TransformerBlock: x expects shape \(\.\.\., length, 6\), got float32\[2,5,4\]: give the features of the input",
    ),
    "TransformerBlock, no variables": (
        lambda: nn.TransformerBlock(4, heads=2).fwd(SEQUENCE, {}, ()),
        r"^TransformerBlock: trainables expect a dict with keys \['attention', 'attention_norm', 'drop', 'mlp', 'mlp_norm'\]",
    ),
    "TransformerBlock, an input that it does not take": (
        lambda: nn.TransformerBlock(4, heads=2).init(KEY, SEQUENCE, lengths=IDS),
        r"^TransformerBlock: takes no input 'lengths'; further inputs are \['bias', 'context', 'mask', 'positions', 'segments'\]",
    ),
    "MultiHeadAttention, no cache": (
        lambda: CAUSAL.decode(SEQUENCE[:, :1], HEADS, (), ()),
        r"^MultiHeadAttention: cache expects a dict with keys \['key', 'place', 'value'\], got a tuple of length 0: .*init_c",
    ),
    "MultiHeadAttention, a cache of another batch": (
        lambda: CAUSAL.decode(np.ones((3, 1, 4), "float32"), HEADS, (), cache()),
        r"^MultiHeadAttention: cache\['key'\] expects shape \(3, …, 2, 2\), got float32\[2,3,2,2\]",
    ),
    "MultiHeadAttention, more steps at once than the cache has": (
        lambda: CAUSAL.decode(SEQUENCE, HEADS, (), cache()),
        r"^MultiHeadAttention: decodes 5 steps, but the cache has room for 3: give init_cache a greater length",
    ),
    "MultiHeadAttention, a cache whose value is none": (
        lambda: CAUSAL.decode(SEQUENCE[:, :1], HEADS, (), cache() | {"value": 0}),
        r"^MultiHeadAttention: cache\['value'\] expects shape \(2, …, 2, 2\), got int 0: make one with init_cache",
    ),
    "MultiHeadAttention, a cache of two lengths": (
        lambda: CAUSAL.decode(SEQUENCE[:, :1], HEADS, (), cache() | {"value": cache(4)["value"]}),
        r"^MultiHeadAttention: cache\['value'\] expects the shape of 'key', \(2, 3, 2, 2\), got float32\[2,4,2,2\]",
    ),
    "MultiHeadAttention, a place of another batch": (
        lambda: CAUSAL.decode(SEQUENCE[:, :1], HEADS, (), cache() | {"place": np.zeros(3, "int32")}),
        r"^MultiHeadAttention: cache\['place'\] expects integers of the shape of the batch, \(2,\), got int32\[3\]",
    ),
    "MultiHeadAttention, a cache of other names across": (
        lambda: ATTENTION.decode(SEQUENCE[:, :1], HEADS, (), {"place": 0}),
        r"^MultiHeadAttention: cache expects a dict with keys \['key', 'value'\], got a dict with keys \['place'\]",
    ),
    "Conv, no cache": (
        lambda: CONV.decode(SEQUENCE[:, :1], {"kernel": np.ones((3, 3, 4), "float32")}, (), ()),
        r"^Conv: cache expects floating-point numbers of shape \(2, 2, 4\), got a tuple of length 0: pass what init_cache made",
    ),
    "Conv, a cache of another batch": (
        lambda: CONV.decode(SEQUENCE[:, :1], {"kernel": np.ones((3, 3, 4), "float32")}, (), SEQUENCE[:1, :2]),
        r"^Conv: cache expects floating-point numbers of shape \(2, 2, 4\), got float32\[1,2,4\]",
    ),
    "a cache of no length": (
        lambda: cache(0),
        r"^MultiHeadAttention: length must be an integer of at least 1, got 0",
    ),
    "a cache of half a step": (lambda: cache(2.5), r"^MultiHeadAttention: length must be an integer .* 2\.5"),
    "a cache for a list": (
        lambda: CAUSAL.init_cache([1.0], 3),
        r"^MultiHeadAttention: x\[0\] expects an array, got float 1\.0",
    ),
    "Series, None for a child's trainables": (
        lambda: nn.Series(LINEAR).fwd(X, (None,), ()),
        r"^model\[0\]\.Linear: trainables expect a dict with keys \['kernel'\], got None",
    ),
    "Series, None for non_trainables": (
        lambda: nn.Series(LINEAR).fwd(X, (KERNEL,), None),
        r"^Series: non_trainables expect a tuple with one entry for each of 1 layers, got None",
    ),
    "Parallel, too few trainables": (
        lambda: PAIR.fwd(X, (KERNEL,), ()),
        r"^Parallel: trainables expect a tuple with one entry for each of 2 layers, got a tuple of length 1",
    ),
    "Parallel, None for trainables": (
        lambda: PAIR.fwd(X, None, ()),
        r"^Parallel: trainables expect a tuple .* got None",
    ),
    "Residual of another shape": (
        lambda: nn.Residual(LINEAR).init(KEY, X),
        r"^Residual: layer and shortcut must agree, got float32\[2,3\] and float32\[2,4\]",
    ),
    "Residual of another dtype": (
        lambda: nn.Residual(nn.F(lambda x: x.astype("bfloat16"))).init(KEY, X),
        r"^Residual: layer and shortcut must agree, got bfloat16\[2,4\] and float32\[2,4\]",
    ),
    "Residual of what returns several": (
        lambda: nn.Residual(PAIR).init(KEY, X),
        r"^Residual: x expects an array, got a tuple of length 2",
    ),
    "Remat, traced inference_mode": (
        lambda: jax.jit(nn.Remat(LINEAR).fwd)(X, KERNEL, (), inference_mode=True),
        r"^Remat: inference_mode must be a Python bool, got bool\[\]",
    ),
    "AdaptiveNorm, no trainables": (
        lambda: nn.AdaptiveNorm(nn.LayerNorm()).fwd(X, {}, (), condition=X),
        r"^AdaptiveNorm: trainables expect a dict with keys \['film', 'norm'\], got a dict with keys \[\]",
    ),
    "AdaptiveNorm, an input that it does not take": (
        lambda: nn.AdaptiveNorm(nn.LayerNorm()).init(KEY, X, condition=X, mask=X),
        r"^AdaptiveNorm: takes no input 'mask'; further inputs are \['condition'\]",
    ),
    "Vmap, another count of inputs": (
        lambda: nn.Vmap(LINEAR, 3).init(KEY, X),
        r"^Vmap: x expects axis -2 of size count=3, got float32\[2,4\]: give each copy its own, or say shared=True",
    ),
    "Vmap, the weights of one": (
        lambda: nn.Vmap(LINEAR, 3, shared=True).fwd(X, KERNEL, ()),
        r"^Vmap: trainables\['kernel'\] expects a leading axis of size count=3, got float32\[4,3\]",
    ),
    "Stack, a list for a kernel": (
        lambda: STACK.fwd(X, {"kernel": [[1.0]]}, ()),
        r"^Stack: trainables\['kernel'\]\[0\]\[0\] expects a leading axis of size depth=2, got float 1\.0",
    ),
    "Stack, a number for a kernel": (
        lambda: STACK.fwd(X, {"kernel": 1.0}, ()),
        r"^Stack: trainables\['kernel'\] expects a leading axis of size depth=2, got float 1\.0",
    ),
    "Stack of what changes the shape": (
        lambda: nn.Stack(LINEAR, 2).init(KEY, X),
        r"^Stack: the block must keep shape and dtype, got float32\[2,4\] and gave float32\[2,3\]",
    ),
    "a forward without a return": (
        lambda: Silent(LINEAR).init(KEY, X),
        r"^Silent: forward must return the output, got None: end it with return",
    ),
    "a forward without a return, with weights": (
        lambda: Silent(LINEAR).fwd(X, {"child": KERNEL}, ()),
        r"^Silent: forward must return the output, got None",
    ),
    "WeightNorm, the trainables of the layer alone": (
        lambda: nn.WeightNorm(LINEAR).fwd(X, KERNEL, ()),
        r"^WeightNorm: trainables expect a dict with keys \['layer', 'scale'\], got a dict with keys \['kernel'\]",
    ),
    "WeightNorm, one scale for all": (
        lambda: nn.WeightNorm(LINEAR).fwd(X, {"layer": KERNEL, "scale": np.ones(1, "float32")}, ()),
        r"^WeightNorm: scale expects shape \(3,\), got float32\[1\]",
    ),
    "WeightNorm, no kernel": (
        lambda: nn.WeightNorm(LINEAR).fwd(X, {"layer": (), "scale": np.ones(3, "float32")}, ()),
        r"^WeightNorm: trainables expect a dict with keys \['kernel'\], got a tuple of length 0",
    ),
    "WeightNorm, a kernel of another rank": (
        lambda: nn.WeightNorm(nn.Conv(3, (2,))).fwd(
            SEQUENCE, {"layer": KERNEL, "scale": np.ones(3, "float32")}, ()
        ),
        r"^WeightNorm: kernel expects shape \(…, …, …\), got float32\[4,3\]",
    ),
    "SpectralNorm, no vector": (
        lambda: nn.SpectralNorm(LINEAR).fwd(X, KERNEL, ()),
        r"^SpectralNorm: non_trainables expect a dict with keys \['vector'\], got a tuple of length 0",
    ),
    "SpectralNorm, the vector of another layer": (
        lambda: nn.SpectralNorm(LINEAR).fwd(X, KERNEL, {"vector": np.ones(4, "float32")}),
        r"^SpectralNorm: vector expects shape \(3,\), got float32\[4\]",
    ),
    "SpectralNorm, the trainables of WeightNorm": (
        lambda: nn.SpectralNorm(LINEAR).fwd(X, {"layer": KERNEL, "scale": X[0]}, {"vector": X[0]}),
        r"^SpectralNorm: trainables expect a dict with keys \['kernel'\], got a dict with keys \['layer', 'scale'\]",
    ),
    "a Composite's trainables": (
        lambda: Own(LINEAR).fwd(X, None, ()),
        r"^Own: trainables expect a dict with keys \['child'\], got None",
    ),
}

# What is refused outside of such a call: layers and optimizers that are built wrongly, caches with a wrong place.
BUILT = {
    "Parallel, a list": (
        lambda: nn.Parallel([LINEAR]),
        r"^Parallel: layers must all be layers, but number 0 is \[",
    ),
    "Residual, a function": (lambda: nn.Residual(jnp.sin), r"^Residual: layer must be a layer: .*nn\.F"),
    "Remat, a function": (
        lambda: nn.Remat(jnp.sin),
        r"^Remat: layer must be a layer: wrap a function in nn\.F",
    ),
    "AdaptiveNorm, a class": (
        lambda: nn.AdaptiveNorm(nn.LayerNorm),
        r"^AdaptiveNorm: norm must be a layer, got the class LayerNorm: build one",
    ),
    "TimeEmbedding, nothing": (
        lambda: nn.TimeEmbedding(0),
        r"^TimeEmbedding: features must be an integer of at least 1, got 0",
    ),
    "Inference, a class": (
        lambda: nn.Inference(nn.BatchNorm),
        r"^Inference: layer must be a layer: build one of this class",
    ),
    "Inference, nothing": (lambda: nn.Inference(None), r"^Inference: layer must be a layer"),
    "Inference, a list": (
        lambda: nn.Inference([LINEAR]),
        r"^Inference: layer must be a layer: pass layers, not",
    ),
    "Vmap, an output without axes, in init": (
        lambda: nn.Vmap(nn.F(jnp.sum), 3, shared=True).init(KEY, X),
        r"^Vmap: axis=-2 expects outputs of at least 1 axis, the layer gave float32\[\]: let it keep more axes, or say axis=-1",
    ),
    "Vmap, an output of too few axes": (
        lambda: nn.Vmap(nn.F(jnp.tanh), 3, shared=True, axis=-4).fwd(X, (), ()),
        r"^Vmap: axis=-4 expects outputs of at least 3 axes, the layer gave float32\[2,4\]: .* say axis=-3",
    ),
    "with_place, another batch": (
        lambda: nn.with_place(cache(), np.array([1, 2, 3])),
        r"^with_place: cache\['place'\] is int32\[2\], got place int64\[3\]: give one place for each row",
    ),
    "with_place, half a step": (
        lambda: nn.with_place(cache(), jnp.array([1.5, 2])),
        r"^with_place: place must be integers of at least 0, of the shape of the batch, or one for all, got .*1\.5",
    ),
    "with_place, text": (
        lambda: nn.with_place(cache(), "a"),
        r"^with_place: place must be integers .* got 'a'",
    ),
    "with_place, before the first": (
        lambda: nn.with_place(cache(), -1),
        r"^with_place: place must be .* got -1",
    ),
    "with_place, of weights": (
        lambda: nn.with_place(KERNEL, 3),
        r"^with_place: cache must have a 'place', got a dict with keys \['kernel'\]: pass what init_cache made",
    ),
    "Vmap, no count": (lambda: nn.Vmap(LINEAR, 0), r"^Vmap: count must be an integer of at least 1, got 0"),
    "Remat, no policy": (lambda: nn.Remat(LINEAR, "all"), r"^Remat: policy must be a function, got 'all'"),
    "Stack, no depth": (
        lambda: nn.Stack(LINEAR, 0),
        r"^Stack: depth must be an integer of at least 1, got 0",
    ),
    "Series, a class": (
        lambda: nn.Series(LINEAR, nn.Flatten),
        r"^Series: layers must all be layers, but number 1 is Flatten: build one of this class, as nn\.Flatten\(2\)",
    ),
    "F, a layer": (
        lambda: nn.F(LINEAR),
        r"^F: train_fn must be a function, not a layer: layers go into a Series",
    ),
    "BatchNorm, the number of features": (
        lambda: nn.BatchNorm(64),
        r"^BatchNorm: epsilon must be above 0 and below 1 \(how many features there are is no argument.*\), got 64",
    ),
    "Composite, a function for a child": (
        lambda: Own(jnp.sin),
        r"^Own: child must be a layer, got .*wrap a function in nn\.F",
    ),
    "Composite, a class for a child": (
        lambda: Own(nn.Flatten),
        r"^Own: child must be a layer, got the class Flatten: .*build one of this class",
    ),
    "LayerNorm, no axes": (
        lambda: nn.LayerNorm(axes=0),
        r"^LayerNorm: axes must be an integer of at least 1",
    ),
    "LayerNorm, NaN": (
        lambda: nn.LayerNorm(epsilon=np.nan),
        r"^LayerNorm: epsilon must be above 0 and below 1",
    ),
    "RMSNorm, NaN": (
        lambda: nn.RMSNorm(epsilon=np.nan),
        r"^RMSNorm: epsilon must be above 0 and below 1",
    ),
    "RMSNorm, no axes": (
        lambda: nn.RMSNorm(axes=-1),
        r"^RMSNorm: axes must be an integer of at least 1, got -1",
    ),
    "WeightDecay, NaN": (
        lambda: optim.WeightDecay(np.nan),
        r"^WeightDecay: weight_decay must be a finite number",
    ),
    "WarmUp, no steps": (
        lambda: optim.WarmUp(0.1, 0),
        r"^WarmUp: steps must be a whole numb",
    ),
    "WarmUp, NaN": (
        lambda: optim.WarmUp(0.1, np.nan),
        r"^WarmUp: steps must be a whole numb",
    ),
    "WarmUp, no schedule": (lambda: optim.WarmUp("fast", 3), r"^WarmUp: schedule must be"),
}

WEIGHTS = {"w": jnp.ones(3), "b": jnp.ones(2)}
OPTIMIZERS = [
    optim.SGD(0.1, momentum=0.9),
    optim.Adam(0.1),
    optim.AdamW(0.1),
    optim.Adagrad(0.1),
    optim.RMSProp(0.1),
    optim.Lion(0.1),
    optim.Chain(optim.SGD(0.1, momentum=0.9)),
    optim.ClipByGlobalNorm(1.0),
    optim.ClipByValue(1.0),
    optim.WeightDecay(0.1),
    optim.Scale(0.1),
    optim.ScaleByTrustRatio(),
    optim.Accumulate(optim.SGD(0.1), 2),
    optim.ExponentialMovingAverage(optim.SGD(0.1)),
    optim.Freeze(optim.SGD(0.1), where=lambda path: "w" in path),
    optim.MasterWeights(optim.SGD(0.1)),
    packing.Packed(optim.SGD(0.1)),
]
# Wrong arguments of each optimizer's `step`.
STEPS = {
    "no gradients": ((None, "state", WEIGHTS), r"gradients\['b'\] expects \(2,\), got nothing"),
    "gradients that are numbers": (
        ({"w": 1.0, "b": 2.0}, "state", WEIGHTS),
        r"gradients\['b'\] expects \(2,\), got \(\)",
    ),
    "gradients of another shape": (
        ({"w": jnp.ones(2), "b": jnp.ones(2)}, "state", WEIGHTS),
        r"gradients\['w'\] expects \(3,\), got \(2,\)",
    ),
    "no trainables": ((WEIGHTS, "state", None), r"gradients\['b'\] expects nothing, got \(2,\)"),
    "trainables of integers": (
        (WEIGHTS, "state", {"w": integers(3), "b": integers(2)}),
        rf"trainables\['b'\] {FLOATING} int32",
    ),
}

# Wrong updates for `apply_updates`.
UPDATES = {
    "none": (
        (WEIGHTS, None),
        r"updates\['b'\] expects \(2,\), got nothing: updates and trainables must come from one model",
    ),
    "a list": (
        (WEIGHTS, [WEIGHTS["w"]]),
        r"updates\['b'\] expects \(2,\), got nothing",
    ),
    "another container": (
        ([jnp.ones(3)], (jnp.ones(3),)),
        r"updates expects the containers .*\(\[\*\]\), got .*\(\(\*,\)\)",
    ),
    "a model": (
        (LINEAR, ()),
        r"expects arrays, got the layer Linear\(3\): pass its variables, from trainables, non_",
    ),
    "other names": (
        (WEIGHTS, {"w": WEIGHTS["w"], "c": WEIGHTS["b"]}),
        r"updates\['b'\] expects \(2,\), got nothing",
    ),
    "weights of integers": (
        ({"w": integers(3)}, {"w": jnp.ones(3)}),
        rf"trainables\['w'\] {FLOATING} int32",
    ),
    "weights that are numbers": (({"w": 1.0}, {"w": jnp.ones(())}), rf"trainables\['w'\] {FLOATING} float"),
}


def cases(table):
    return pytest.mark.parametrize(("wrong", "message"), table.values(), ids=list(table))


@cases(LAYERS)
def test_wrong_calls(wrong, message):
    with pytest.raises(nn.LayerError, match=message):
        wrong()


@cases(BUILT)
def test_wrong_hyperparameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: type(optimizer).__name__)
@cases(STEPS)
def test_wrong_steps(optimizer, wrong, message):
    gradients, _, trainables = wrong
    with pytest.raises(optim.OptimizerError, match=f"^{type(optimizer).__name__}: {message}"):
        optimizer.step(gradients, optimizer.init(WEIGHTS), trainables)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: type(optimizer).__name__)
def test_wrong_states(optimizer):
    name, stateless = type(optimizer).__name__, optimizer.init(WEIGHTS) == ()
    if not stateless:
        with pytest.raises(
            optim.OptimizerError, match=rf"^{name}: state must be what init returned, .*, got tuple"
        ):
            optimizer.step(WEIGHTS, optax.adam(0.1).init(WEIGHTS), WEIGHTS)
    with pytest.raises(optim.OptimizerError, match=rf"^\w+: trainables\['w'\] {FLOATING} int32"):
        optimizer.init({"w": integers(3)})


MODEL = nn.Series(LINEAR)
IN_PLACE_OF_WEIGHTS = {
    "trees.count": lambda: trees.count(MODEL),
    "trees.describe": lambda: trees.describe((WEIGHTS, MODEL)),
    "trees.differences": lambda: trees.differences(MODEL, MODEL),
    "all_finite": lambda: precision.all_finite({"model": MODEL}),
    "apply_updates": lambda: optim.apply_updates(MODEL, MODEL),
    "save_weights": lambda: saving.save_weights("weights", MODEL),
    "load_weights": lambda: saving.load_weights(__file__, MODEL),
    **{type(optimizer).__name__: functools.partial(optimizer.init, MODEL) for optimizer in OPTIMIZERS},
}


@pytest.mark.parametrize("name", IN_PLACE_OF_WEIGHTS)
def test_a_model_is_no_weights(name):
    """JAX sees no leaf in it, so that all would seem well."""
    with pytest.raises(
        ValueError,
        match=r": expects arrays( at .*)?, got the layer Series\(Linear\(3\)\): pass its variables, fr",
    ):
        IN_PLACE_OF_WEIGHTS[name]()


@pytest.mark.parametrize("cls", [optim.MasterWeights, optim.ExponentialMovingAverage, packing.Packed])
def test_a_state_that_holds_weights_is_not_made_of_outlines(cls):
    """JAX says so, and names what came; under ``jax.eval_shape``, outlines are welcome."""
    outlines = jax.eval_shape(lambda: WEIGHTS)
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        cls(optim.SGD(0.1)).init(outlines)
    jax.eval_shape(cls(optim.SGD(0.1)).init, outlines)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda optimizer: type(optimizer).__name__)
def test_a_step_is_not_taken_with_outlines(optimizer):
    outlines, state = jax.eval_shape(lambda: WEIGHTS), optimizer.init(WEIGHTS)
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        optimizer.step(outlines, state, WEIGHTS)
    jax.eval_shape(optimizer.step, outlines, state, outlines)


def test_a_layer_is_not_called():
    with pytest.raises(
        TypeError,
        match=r"^Linear: a layer is not called, .*y, non_trainables = model\.fwd\(x, trainables, non_",
    ):
        LINEAR(X)
    with pytest.raises(
        TypeError, match=r"^Linear: a layer is not called, .*write call\.child\(x\), not self\.child\(x\)"
    ):
        Direct(LINEAR).init(KEY, X)


def test_a_layer_does_not_change():
    with pytest.raises(
        dataclasses.FrozenInstanceError, match=r"^Linear: out_features cannot be set, .*: build another"
    ):
        LINEAR.out_features = 4
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"^Linear: out_features cannot be set"):
        del LINEAR.out_features
    with pytest.raises(
        dataclasses.FrozenInstanceError,
        match=r"declare features as a field .*features: int.* in place of an __init__",
    ):
        Assigned(3)


def test_a_child_that_is_no_field():
    with pytest.raises(
        AttributeError,
        match=r"^Undeclared: call has no layer 'child'; .*Declare it in the class, child: nn\.Layer",
    ):
        Undeclared().init(KEY, X)


def test_layers_by_name_where_they_have_none():
    with pytest.raises(KeyError, match=r"Series has no layer 'head'; its names are none, only places: \[0\]"):
        MODEL["head"]
    with pytest.raises(KeyError, match=r"Series has no layer 'head'; its names are body, tail"):
        nn.Series(body=LINEAR, tail=LINEAR)["head"]


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_of_numpy_do_not_warn(dtype):
    ids = IDS.astype(dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainables, _ = nn.Series(EMBED, nn.Flatten(2)).init(jax.random.key(0), ids)
        optim.SGD(0.1).init(trainables)


@cases(UPDATES)
def test_wrong_updates(wrong, message):
    with pytest.raises(ValueError, match=f"^apply_updates: {message}"):
        optim.apply_updates(*wrong)


@pytest.mark.parametrize("wrong", [jnp.sin, X, nn.Linear], ids=["a function", "an array", "a class"])
def test_summary_of_what_is_no_layer(wrong):
    with pytest.raises(TypeError, match=r"^summary: model must be a layer, got "):
        nn.summary(wrong, X)


# Their messages are tested under another name: that of all cells, say, of a child, or of a field.
TOGETHER = {nn.RNNCell, nn.LSTMCell, nn.GRUCell, nn.Bidirectional}


def test_every_public_class_has_three_wrong_uses():
    """Counted by their messages, which begin with the name of the class, in all tests of the library."""
    tests = pathlib.Path(__file__).parents[1]
    files = (file for part in ("nn", "optim", "modules") for file in (tests / part).glob("test_*.py"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    few = {}
    for cls in (public_classes(nn, nn.Layer) | public_classes(optim, object)) - TOGETHER:
        if not inspect.isclass(cls) or issubclass(cls, (tuple, BaseException)):
            continue
        count = len(re.findall(rf'["^.]{cls.__name__}: ', text)) + len(STEPS) * (cls in map(type, OPTIMIZERS))
        if count < 3:
            few[cls.__name__] = count
    assert not few, f"give them wrong uses, with their messages, up to three: {few}"


LAYER_IN_A_TREE = {
    "shardings": lambda: sharding.shardings(LINEAR, MESH, [("*nonsense", P("data"))]),
    "mirror": lambda: sharding.mirror((), LINEAR, MESH, LINEAR),
    "cast": lambda: precision.cast(LINEAR, "bfloat16"),
    "unscale": lambda: precision.StaticLossScale(2.0).unscale(LINEAR),
    "accept": lambda: precision.accept(True, LINEAR, LINEAR),
    "select": lambda: trees.select(LINEAR, "*"),
    "update": lambda: trees.update(LINEAR, "*", jnp.sin),
    "partition": lambda: trees.partition([LINEAR], "*"),
}


@pytest.mark.parametrize("name", LAYER_IN_A_TREE)
def test_a_layer_is_no_tree_of_arrays(name):
    with pytest.raises(
        ValueError, match=r": expects arrays( at \[\d\])?, got the layer Linear\(3\): pass its variables"
    ):
        LAYER_IN_A_TREE[name]()


def test_a_layer_chooses_no_leaves():
    with pytest.raises(
        ValueError, match="^select: where must be a pattern, a function from a path to a bool, or a tree"
    ):
        trees.select(WEIGHTS, nn.F(jnp.sin))


def test_axes_in_unsigned_integers():
    with pytest.raises(
        ValueError, match="^BatchNorm: channel_axis must be a negative integer, counted from the end"
    ):
        nn.BatchNorm(channel_axis=np.uint8(1))
    assert nn.BatchNorm(channel_axis=np.int8(-2)).channel_axis == -2


def test_an_input_that_no_layer_takes():
    with pytest.raises(nn.LayerError, match=r"^Linear: takes no input 'mask'; further inputs are \[\]"):
        nn.summary(LINEAR, X, mask=X)
    with pytest.raises(
        nn.LayerError,
        match=r"^MultiHeadAttention: takes no input 'masks'; further inputs are \['bias', 'context', 'mask', 'positions', 'segments'\]",
    ):
        CAUSAL.init_cache(SEQUENCE[:, :1], 3, masks=X)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            lambda: nn.GroupNorm(3, 3),
            r"^GroupNorm: takes 1 positional, groups, got \(3, 3\): write GroupNorm\(groups, axes=…\)",
        ),
        (lambda: nn.GroupNorm(3, 3, axes=2), r"^GroupNorm: takes 1 positional"),
        (
            lambda: nn.LayerNorm(64),
            r"^LayerNorm: takes nothing positional, got \(64,\): write LayerNorm\(axes=….*how many features there are is no argument",
        ),
        (lambda: nn.RMSNorm(2, affine=True), r"^RMSNorm: takes nothing positional, got \(2,\)"),
        (
            lambda: nn.MultiHeadAttention(32, 4),
            r"^MultiHeadAttention: takes 1 positional, heads, got \(32, 4\): write MultiHeadAttention\(heads, head_dim=…\)",
        ),
    ],
)
def test_numbers_in_the_order_of_others(wrong, message):
    """PyTorch's ``GroupNorm`` takes channels second, and its attention heads."""
    with pytest.raises(TypeError, match=message):
        wrong()
    assert eval(repr(nn.GroupNorm(3, axes=2)), {"GroupNorm": nn.GroupNorm}) == nn.GroupNorm(3, axes=2)
