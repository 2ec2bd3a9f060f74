"""Convolution and pooling: against loops in NumPy, layouts, transposes, precision; wrong uses."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.inspection import jaxprs

DRAW = np.random.default_rng(0).normal


def places(length, size, stride, rim, step):
    """For each window, the places of its elements along an axis."""
    before, after = rim
    count = (length + before + after - step * (size - 1) - 1) // stride + 1
    return [[first * stride + k * step - before for k in range(size)] for first in range(count)]


def windows(shape, sizes, strides, rims, steps):
    """For each place of the output, the pairs of a place in the window and one in the input, where it has one."""
    along = [places(*axis) for axis in zip(shape, sizes, strides, rims, steps)]
    for out in itertools.product(*(range(len(axis)) for axis in along)):
        elements = itertools.product(*(enumerate(axis[i]) for axis, i in zip(along, out)))
        pairs = [tuple(zip(*element)) for element in elements]
        yield out, [(k, p) for k, p in pairs if all(0 <= i < n for i, n in zip(p, shape))]


def convolved(x, kernel, strides, rims, steps, groups):
    """Channels last and OHWI, one example, in loops."""
    count = x.ndim - 1
    shape = [len(places(*axis)) for axis in zip(x.shape, kernel.shape[1:-1], strides, rims, steps)]
    y, share = np.zeros((*shape, kernel.shape[0])), kernel.shape[-1]
    for out, pairs in windows(x.shape[:count], kernel.shape[1:-1], strides, rims, steps):
        for channel in range(kernel.shape[0]):
            first = channel // (kernel.shape[0] // groups) * share
            y[(*out, channel)] = sum(
                x[place][first : first + share] @ kernel[(channel, *k)] for k, place in pairs
            )
    return y


CASES = {  # shape of x, layer, strides, padding, dilation, groups: as pairs and tuples
    "valid": ((5, 4, 3), nn.Conv(2, (3, 2)), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    "same": ((5, 4, 3), nn.Conv(2, (3, 2), padding="SAME"), (1, 1), ((1, 1), (0, 1)), (1, 1), 1),
    "same lower": ((5, 4, 3), nn.Conv(2, (3, 2), padding="same_lower"), (1, 1), ((1, 1), (1, 0)), (1, 1), 1),
    "strides": ((6, 5, 2), nn.Conv(2, (3, 3), strides=(2, 1), padding=1), (2, 1), ((1, 1), (1, 1)), (1, 1), 1),
    "dilation": ((7, 6, 2), nn.Conv(3, (2, 3), dilation=(3, 2), padding=((1, 0), 2)), (1, 1), ((1, 0), (2, 2)), (3, 2), 1),
    "groups": ((4, 4, 4), nn.Conv(6, (2, 2), groups=2), (1, 1), ((0, 0), (0, 0)), (1, 1), 2),
    "depthwise": ((6, 3), nn.Conv(6, (3,), groups=3), (1,), ((0, 0),), (1,), 3),
    "sequence": ((7, 2), nn.Conv(3, (4,), strides=3, padding=((2, 1),)), (3,), ((2, 1),), (1,), 1),
    "volume": ((3, 4, 3, 2), nn.Conv(2, (2, 2, 3), strides=(1, 2, 1)), (1, 2, 1), ((0, 0),) * 3, (1, 1, 1), 1),
    "four axes": ((2, 3, 2, 3, 2), nn.Conv(2, (1, 2, 2, 2)), (1,) * 4, ((0, 0),) * 4, (1,) * 4, 1),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_conv_equals_loops(case):
    shape, layer, *options = case
    x = DRAW(size=(2, *shape)).astype("float32")
    (trainables, _), count = layer.init(jax.random.key(0), x), len(shape) - 1
    wanted = np.stack([convolved(item, np.asarray(trainables["kernel"]), *options) for item in x])
    got, _ = layer.fwd(x, trainables, ())
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    assert trainables["kernel"].shape == (layer.out_channels, *layer.filter_shape, shape[-1] // layer.groups)
    assert layer.fwd(x[0, None, None], trainables, ())[0].shape == (1, 1, *wanted.shape[1:])
    assert count == len(layer.filter_shape)


@pytest.mark.parametrize("kernel_spec", ["OHWI", "OIHW", "HWIO", "IWHO"])
@pytest.mark.parametrize("input_spec", ["HWC", "CHW", "WCH"])
@pytest.mark.parametrize("kind", [nn.Conv, nn.ConvTranspose])
def test_layouts_only_change_where_things_stand(kind, input_spec, kernel_spec):
    options = dict(strides=(2, 1), padding=((1, 0), (0, 1)), dilation=(1, 2), groups=2)
    plain = kind(4, (3, 2), **options)
    other = kind(4, (3, 2), **options, input_spec=input_spec, kernel_spec=kernel_spec)
    x = DRAW(size=(2, 5, 6, 2)).astype("float32")
    moved = jnp.einsum(f"nHWC->n{input_spec}", x)
    trainables, _ = plain.init(jax.random.key(0), x)
    found, _ = other.init(jax.random.key(0), moved)
    np.testing.assert_array_equal(found["kernel"], jnp.einsum(f"OHWI->{kernel_spec}", trainables["kernel"]))
    got = other.fwd(moved, found, ())[0]
    wanted = jnp.einsum(f"nHWC->n{input_spec}", plain.fwd(x, trainables, ())[0])
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_the_kernel_is_laid_out_like_the_input():
    trainables, _ = nn.Conv(5, (3, 2), input_spec="CHW").init(jax.random.key(0), jnp.ones((4, 8, 8)))
    assert trainables["kernel"].shape == (5, 4, 3, 2)


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (5, {}),
        (6, {"strides": 2, "padding": 1, "output_padding": 1}),
        (7, {"strides": 2, "padding": 1}),
        (8, {"strides": 2, "padding": "SAME"}),
        (8, {"strides": 4, "padding": "SAME"}),  # longer than the window
        (8, {"strides": 4, "padding": "SAME_LOWER"}),
        (9, {"strides": 2, "dilation": 2, "padding": ((1, 2), (2, 1)), "output_padding": 1}),
        (6, {"padding": "SAME_LOWER"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("groups", [1, 2])
def test_conv_transpose_is_the_transpose_of_conv(size, options, groups):
    extra = dict(options)
    output_padding = extra.pop("output_padding", 0)
    conv = nn.Conv(6, (3, 3), **extra, groups=groups)
    back = nn.ConvTranspose(4, (3, 3), **extra, groups=groups, output_padding=output_padding)
    x = DRAW(size=(2, size, size, 4)).astype("float32")
    trainables, _ = conv.init(jax.random.key(0), x)
    y, pull = jax.vjp(lambda x: conv.fwd(x, trainables, ())[0], x)
    wanted = pull(y)[0]
    # The Conv's kernel, (O, H, W, I / groups), with its channels exchanged within each group.
    kernel = trainables["kernel"].reshape(groups, 6 // groups, 3, 3, 4 // groups)
    kernel = kernel.transpose(0, 4, 2, 3, 1).reshape(4, 3, 3, 6 // groups)
    got, _ = back.fwd(y, {"kernel": kernel}, ())
    assert got.shape == x.shape
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_kernels_have_the_variance_that_keeps_the_signal():
    x = jax.ShapeDtypeStruct((1, 9, 9, 64), jnp.float32)
    for layer, fan_in in [
        (nn.Conv(256, (3, 3)), 9 * 64),
        (nn.Conv(256, (3, 3), kernel_spec="OIHW"), 9 * 64),
        (nn.Conv(256, (3, 3), groups=4), 9 * 16),
        (nn.Conv(256, (3, 3), kernel_initializer=jax.nn.initializers.he_normal()), 9 * 32),
    ]:
        kernel = layer.init(jax.random.key(0), x)[0]["kernel"]
        np.testing.assert_allclose(jnp.var(kernel) * fan_in, 1, rtol=0.05)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_is_summed_in_float32(dtype):
    """In bfloat16 itself, a sum of ones stops at 256."""
    x, kernel = jnp.ones((1, 4, 1, 1024), dtype), {"kernel": jnp.ones((1, 1, 1, 1024), dtype)}
    for accum_dtype in (None, "float32"):
        layer = nn.Conv(1, (1, 1), accum_dtype=accum_dtype)
        assert layer.fwd(x, kernel, ())[0].ravel().tolist() == [1024] * 4
        gradients = jax.grad(lambda k, layer=layer: jnp.sum(layer.fwd(x, k, ())[0].astype("float32")))(kernel)
        assert gradients["kernel"].dtype == dtype and (gradients["kernel"] == 4).all()
    accumulating = nn.Conv(1, (1, 1), accum_dtype="float32")
    jaxpr = jax.make_jaxpr(lambda x: accumulating.fwd(x, kernel, ())[0])(x)
    found = [
        e.outvars[0].aval.dtype for _, e in jaxprs.walk(jaxpr) if e.primitive.name == "conv_general_dilated"
    ]
    assert found == ["float32"]
    ones = jnp.ones((1, 1024, 1), dtype)
    assert nn.SumPool((1024,)).fwd(ones, (), ())[0].item() == 1024
    assert nn.AvgPool((1024,)).fwd(ones, (), ())[0].item() == 1


def test_conv_is_one_operation_without_transposes():
    for layer, shape in [
        (nn.Conv(4, (3, 3)), (2, 8, 8, 3)),
        (nn.Conv(4, (3, 3), input_spec="CHW"), (2, 3, 8, 8)),
    ]:
        x = jnp.ones(shape)
        trainables, _ = layer.init(jax.random.key(0), x)
        counts = jaxprs.count(lambda x, t, layer=layer: layer.fwd(x, t, ())[0], x, trainables)
        assert counts["conv_general_dilated"] == 1 and not counts["transpose"]


POOLS = {
    "plain": ((6, 4, 2), (2, 2), {}),
    "cut off": ((5, 7, 2), (2, 3), {}),
    "overlapping": ((5, 4, 2), (3, 2), {"strides": 1}),
    "padded": ((5, 4, 2), (3, 2), {"strides": (2, 1), "padding": ((1, 2), 1)}),
    "same": ((5, 4, 1), (3, 2), {"strides": 2, "padding": "SAME"}),
    "uneven": ((7, 6, 1), (3, 2), {"strides": (3, 1), "padding": ((0, 2), (1, 0))}),
    "sequence": ((7, 3), (3,), {"strides": 2}),
}


@pytest.mark.parametrize("case", POOLS.values(), ids=POOLS)
def test_pooling_equals_loops(case):
    shape, window, options = case
    x = DRAW(size=shape).astype("float32")
    count = len(window)
    each = lambda v: v if isinstance(v, tuple) else (v,) * count  # noqa: E731
    strides, steps = each(options.get("strides", window)), (1,) * count
    padding = options.get("padding", 0)
    if padding == "SAME":
        rims = []
        for n, k, s in zip(shape, window, strides):
            total = max((math.ceil(n / s) - 1) * s + k - n, 0)
            rims.append((total // 2, total - total // 2))
    else:
        rims = [(rim, rim) if isinstance(rim, int) else rim for rim in each(padding)]
    found = {kind: {} for kind in ("max", "sum", "average", "own average")}
    for out, pairs in windows(shape[:count], window, strides, rims, steps):
        seen = np.stack([x[place] for _, place in pairs])
        found["max"][out], found["sum"][out] = seen.max(0), seen.sum(0)
        found["average"][out], found["own average"][out] = seen.sum(0) / math.prod(window), seen.mean(0)
    layers = {
        "max": nn.MaxPool(window, **options),
        "sum": nn.SumPool(window, **options),
        "average": nn.AvgPool(window, **options),
        "own average": nn.AvgPool(window, count_include_pad=False, **options),
    }
    for kind, layer in layers.items():
        got, _ = layer.fwd(x, (), ())
        assert got.shape == (*np.max(list(found[kind]), axis=0) + 1, shape[-1])
        for out, wanted in found[kind].items():
            np.testing.assert_allclose(got[out], wanted, rtol=1e-5, atol=1e-6)
        first = x.swapaxes(-1, 0) if count == 1 else np.moveaxis(x, -1, 0)
        options_first = dict(options, axes=tuple(range(-count, 0)))
        extra = {"count_include_pad": False} if kind == "own average" else {}
        moved, _ = type(layer)(window, **options_first, **extra).fwd(first, (), ())
        np.testing.assert_allclose(jnp.moveaxis(moved, 0, -1), got, rtol=1e-6)


def test_the_gradient_of_a_maximum_flows_to_the_first_of_equals():
    gradient = jax.grad(lambda x: jnp.sum(nn.MaxPool((2,)).fwd(x, (), ())[0]))(
        jnp.array([[1.0], [1.0], [0.0], [3.0]])
    )
    assert gradient.ravel().tolist() == [1, 0, 0, 1]
    assert jnp.isnan(nn.MaxPool((2,)).fwd(jnp.array([[1.0], [jnp.nan]]), (), ())[0]).all()


IMAGE = jnp.ones((2, 6, 5, 4))
SMALL = nn.Conv(4, (3, 3))
KERNEL = SMALL.init(jax.random.key(0), IMAGE)[0]

WRONG_LAYERS = {
    "no channels": (lambda: nn.Conv(0, (3, 3)), r"Conv: out_channels must be an integer of at least 1, got 0\."),
    "PyTorch's window of images": (lambda: nn.Conv(8, 3), r"Conv: filter_shape must be a tuple .*\(3, 3\) for images or \(3,\) for sequences, got 3"),
    "and of a transpose": (lambda: nn.ConvTranspose(8, filter_shape=3), r"ConvTranspose: filter_shape must be a tuple .*, got 3"),
    "PyTorch's pool": (lambda: nn.MaxPool(2), r"MaxPool: window_shape must be a tuple with a size for each axis.*, got 2"),
    "and an average": (lambda: nn.AvgPool(np.int32(2)), r"AvgPool: window_shape must be a tuple"),
    "and a sum": (lambda: nn.SumPool(window_shape=2), r"SumPool: window_shape must be a tuple"),
    "an empty filter": (lambda: nn.Conv(4, ()), r"Conv: filter_shape must name at least one axis, got \(\)\."),
    "a float": (lambda: nn.Conv(4, (3, 3.0)), r"Conv: filter_shape must be an integer of at least 1, got \(3, 3\.0\)"),
    "an array of strides": (lambda: nn.Conv(4, (3, 3), strides=jnp.array([1, 2])), r"Conv: strides must be an integer"),
    "no stride": (lambda: nn.Conv(4, (3, 3), strides=0), r"Conv: strides must be an integer of at least 1, got 0\."),
    "three strides": (lambda: nn.Conv(4, (3, 3), strides=(1, 1, 2)), r"Conv: strides must be for 2 axes, .* got \(1, 1, 2\)\."),
    "a word": (lambda: nn.Conv(4, (3, 3), padding="FULL"), r"Conv: padding must be 'VALID', 'SAME', 'SAME_LOWER', 'CIRCULAR', .*, an int.* got 'FULL'"),
    "negative padding": (lambda: nn.Conv(4, (3, 3), padding=-1), r"Conv: padding must be 'VALID'.* got -1\."),
    "a triple": (lambda: nn.Conv(4, (3, 3), padding=((1, 1, 1), 1)), r"Conv: padding must be 'VALID'.*pair \(before, after\)"),
    "one pair for two axes": (lambda: nn.Conv(4, (3, 3), padding=((1, 2),)), r"Conv: padding must be for 2 axes, .*\(\(1, 2\),\)"),
    "traced": (lambda: jax.jit(lambda n: nn.Conv(4, n))(3), r"Conv: filter_shape must be a tuple .*, not a traced value"),
    "groups": (lambda: nn.Conv(4, (3, 3), groups=3), r"Conv: groups must divide out_channels, 4, got 3\."),
    "a layout of another rank": (lambda: nn.Conv(4, (3, 3), input_spec="NHWC"), r"input_spec must be made of the letters of 'HWC', each once, got 'NHWC'"),
    "a kernel without O": (lambda: nn.Conv(4, (3,), kernel_spec="WIC"), r"kernel_spec must be made of the letters of 'OWI', each once, got 'WIC'"),
    "too much output padding": (lambda: nn.ConvTranspose(4, (3,), strides=2, output_padding=2), r"ConvTranspose: output_padding must be less than strides, 2, got 2\."),
    "output padding with SAME": (lambda: nn.ConvTranspose(4, (3,), strides=2, padding="SAME", output_padding=1), r"ConvTranspose: output_padding is settled by padding='SAME', got 1: leave it out"),
    "padding that fills a window": (lambda: nn.MaxPool((2,), padding=2), r"MaxPool: padding must be less than the window, \(2,\).* got 2\."),
    "padding that fills a window of two axes": (lambda: nn.SumPool((3, 2), padding=((0, 1), (0, 2))), r"SumPool: padding must be less than the window, \(3, 2\)"),
    "another number of axes": (lambda: nn.AvgPool((2, 2), axes=-1), r"AvgPool: axes must be 2, as many as the window has, got \(-1,\)"),
    "axes in another order": (
        lambda: nn.MaxPool((2, 3), axes=(-1, -2)),
        r"MaxPool: axes must be in ascending order, which is that of the window, got \(-1, -2\)\.",
    ),
    "an axis from the front": (lambda: nn.SumPool((2,), axes=1), r"SumPool: axes must be a negative integer, counted from the end.* got 1\."),
    "a switch that is none": (lambda: nn.AvgPool((2,), count_include_pad=0), r"AvgPool: count_include_pad must be True or False, got 0"),
    "a window of none": (lambda: nn.MaxPool((2, 0)), r"MaxPool: window_shape must be an integer of at least 1, got \(2, 0\)"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG_LAYERS.values(), ids=WRONG_LAYERS)
def test_layers_that_cannot_be(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        wrong()


WRONG_INPUTS = {
    "a list": (SMALL, [[1.0]], KERNEL, r"Conv: x expects an array, got a list of length 1"),
    "integers": (SMALL, jnp.ones((6, 5, 4), int), KERNEL, r"Conv: x expects floating-point numbers, got int32\[6,5,4\]"),
    "too few axes": (SMALL, jnp.ones((5, 4)), KERNEL, r"Conv: x expects at least 3 axes, got float32\[5,4\]"),
    "other channels": (SMALL, jnp.ones((6, 5, 3)), KERNEL, r"Conv: kernel expects shape \(4, 3, 3, 3\) for x, float32\[6,5,3\], got float32\[4,3,3,4\]"),
    "another layout": (nn.Conv(4, (3, 3), input_spec="CHW", kernel_spec="OHWI"), IMAGE, KERNEL, r"kernel expects shape \(4, 3, 3, 6\) for x, float32\[2,6,5,4\], got float32\[4,3,3,4\]"),
    "a window too large": (nn.Conv(4, (3, 3), dilation=3), IMAGE, KERNEL, r"Conv: a window that spans \(7, 7\) does not fit into float32\[2,6,5,4\], which is \(6, 5\) along"),
    "another kernel": (nn.Conv(8, (3, 3)), IMAGE, KERNEL, r"Conv: kernel expects shape \(8, 3, 3, 4\) for x, float32\[2,6,5,4\], got float32\[4,3,3,4\]"),
    "no dict": (SMALL, IMAGE, KERNEL["kernel"], r"Conv: trainables expect a dict with keys \['kernel'\], got float32\[4,3,3,4\]"),
    "nothing left": (nn.ConvTranspose(4, (3, 3), padding=3), IMAGE[:, :2, :2], KERNEL, r"ConvTranspose: of float32\[2,2,2,4\] nothing is left, \(-2, -2\) along the window's axes"),
    "a pool of vectors": (nn.MaxPool((2, 2)), jnp.ones((4, 4)), (), r"MaxPool: x expects at least 3 axes, got float32\[4,4\]"),
    "a pool of integers": (nn.SumPool((2,)), jnp.ones((4, 4), int), (), r"SumPool: x expects floating-point numbers"),
    "a pool too large": (nn.AvgPool((5,)), jnp.ones((4, 4)), (), r"AvgPool: a window that spans \(5,\) does not fit into float32\[4,4\]"),
    "an empty axis": (nn.MaxPool((2,), padding="SAME"), jnp.ones((0, 4)), (), r"MaxPool: a window that spans \(2,\) does not fit into float32\[0,4\].* with padding \(\(0, 0\),\): "),
}  # fmt: skip


@pytest.mark.parametrize(("layer", "x", "trainables", "message"), WRONG_INPUTS.values(), ids=WRONG_INPUTS)
def test_inputs_that_do_not_fit(layer, x, trainables, message):
    for fwd in (layer.fwd, functools.partial(jax.eval_shape, layer.fwd)):
        if isinstance(x, list) and fwd != layer.fwd:
            continue  # eval_shape itself takes a list for a tree
        with pytest.raises(nn.LayerError, match=message):
            fwd(x, trainables, ())


def test_groups_that_do_not_divide_the_channels():
    with pytest.raises(nn.LayerError, match=r"groups=3 must divide the channels, 4 in float32\[2,6,5,4\]"):
        nn.Conv(6, (3, 3), groups=3).init(jax.random.key(0), IMAGE)
