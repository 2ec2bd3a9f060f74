"""Cross entropy in chunks equals the whole, and never holds all logits."""

import functools

import jax
import jax.numpy as jnp
import jax.test_util
import numpy as np
import optax
import pytest
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.losses import chunked_cross_entropy

TOKENS, FEATURES, VOCAB = (3, 7), 5, 13
HIDDEN = jax.random.normal(jax.random.key(0), (*TOKENS, FEATURES))
KERNEL = jax.random.normal(jax.random.key(1), (FEATURES, VOCAB))
LABELS = jax.random.randint(jax.random.key(2), TOKENS, 0, VOCAB)
WEIGHTS = jnp.arange(21.0).reshape(TOKENS) % 3


def whole(hidden, kernel, weights, smoothing):
    wanted = optax.smooth_labels(jax.nn.one_hot(LABELS, VOCAB), smoothing)
    loss = optax.softmax_cross_entropy(hidden @ kernel, wanted)
    return jnp.sum(loss * weights) / jnp.sum(weights)


@pytest.mark.parametrize("chunk_size", [1, 4, 7, 100])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_equals_optax(chunk_size, smoothing):
    def ours(hidden, kernel, weights):
        options = {"chunk_size": chunk_size, "label_smoothing": smoothing}
        return chunked_cross_entropy(hidden, kernel, LABELS, weights, **options)

    found = jax.value_and_grad(ours, (0, 1))(HIDDEN, KERNEL, WEIGHTS)
    wanted = jax.value_and_grad(whole, (0, 1))(HIDDEN, KERNEL, WEIGHTS, smoothing)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6), found, wanted)


def test_what_does_not_count_has_no_influence():
    counts = WEIGHTS > 0
    hidden, labels = jnp.where(counts[..., None], HIDDEN, jnp.nan), jnp.where(counts, LABELS, -100)
    loss, gradient = jax.value_and_grad(chunked_cross_entropy)(hidden, KERNEL, labels, counts, chunk_size=4)
    np.testing.assert_allclose(loss, whole(HIDDEN, KERNEL, counts.astype(float), 0.0), rtol=1e-6)
    assert jnp.isfinite(gradient).all()
    assert jnp.isnan(chunked_cross_entropy(HIDDEN, KERNEL, jnp.full(TOKENS, -1)))
    assert chunked_cross_entropy(HIDDEN, KERNEL, LABELS, jnp.zeros(TOKENS)) == 0


def test_half_precision_is_summed_in_float32():
    hidden, kernel = jnp.ones((4096, 2), jnp.bfloat16), jnp.zeros((2, 8), jnp.bfloat16)
    labels = jnp.zeros(4096, jnp.int32)
    loss, gradient = jax.value_and_grad(chunked_cross_entropy, 1)(hidden, kernel, labels, chunk_size=8)
    np.testing.assert_allclose(loss, np.log(8), rtol=1e-5)  # in bfloat16, sums stop growing at 512
    assert loss.dtype == "float32" and gradient.dtype == "bfloat16"
    np.testing.assert_allclose(gradient[:, 0].astype("float32"), 1 / 8 - 1, rtol=1e-2)


def test_logits_never_exist_whole():
    many = jnp.ones((512, FEATURES)), jnp.ones((FEATURES, 1024)), jnp.zeros(512, jnp.int32)

    def largest(function):
        sizes = [
            variable.aval.size
            for _, equation in jaxprs.walk(jax.make_jaxpr(jax.grad(function, (0, 1)))(*many))
            for variable in equation.outvars
        ]
        return max(sizes)

    assert largest(lambda *args: chunked_cross_entropy(*args, chunk_size=16)) <= 16 * 1024
    assert largest(lambda *args: chunked_cross_entropy(*args, chunk_size=512)) == 512 * 1024
    compiled = jax.jit(jax.grad(lambda *args: chunked_cross_entropy(*args, chunk_size=16), (0, 1)))
    assert compiled.lower(*many).compile().memory_analysis().temp_size_in_bytes < 512 * 1024 * 4 / 2


@pytest.mark.parametrize("chunk_size", [16, 64])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_backward_pass_holds_one_chunk_and_the_gradient_of_the_kernel(chunk_size, smoothing):
    def loss(*args):
        return chunked_cross_entropy(*args, chunk_size=chunk_size, label_smoothing=smoothing)

    many = jnp.ones((512, 2)), jnp.ones((2, 4096)), jnp.zeros(512, jnp.int32)
    chunk, kernel = chunk_size * 4096 * 4, 2 * 4096 * 4
    for function, more in ((loss, 0), (jax.grad(loss, (0, 1)), kernel)):
        memory = jax.jit(function).lower(*many).compile().memory_analysis()
        chunks = 1.1 if jax.__version_info__ >= (0, 12) else 2.1  # older compilers fuse less
        assert memory.temp_size_in_bytes < chunks * chunk + more


def test_few_tokens_are_not_padded_to_a_chunk():
    def memory(chunk_size):
        loss = jax.jit(functools.partial(chunked_cross_entropy, chunk_size=chunk_size))
        return loss.lower(HIDDEN, KERNEL, LABELS).compile().memory_analysis().temp_size_in_bytes

    assert memory(10**6) == memory(LABELS.size)
    assert chunked_cross_entropy(HIDDEN[:0], KERNEL, LABELS[:0]) == 0


def test_ids_that_cannot_come_have_logits_of_minus_infinity():
    kernel = jnp.array([[1.0, 2.0, -jnp.inf]])
    loss = chunked_cross_entropy(jnp.ones((1, 1)), kernel, jnp.array([0]))
    np.testing.assert_allclose(loss, np.log(1 + np.e), rtol=1e-6)
    assert chunked_cross_entropy(jnp.ones((1, 1)), kernel, jnp.array([2])) == jnp.inf


def test_derivatives_forward_and_of_second_order():
    def loss(hidden, kernel):
        return chunked_cross_entropy(hidden, kernel, LABELS, chunk_size=4, label_smoothing=0.1)

    jax.test_util.check_grads(loss, (HIDDEN, KERNEL), order=2, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize(
    ("arrays", "got"),
    {
        "transposed": ((HIDDEN, KERNEL.T, LABELS), r"float32\[3,7,5\], float32\[13,5\]"),
        "a kernel of one axis": ((HIDDEN, KERNEL[0], LABELS), r"float32\[3,7,5\], float32\[13\]"),
        "labels that would be cut off": ((HIDDEN, KERNEL, LABELS + 0.7), r".*float32\[3,7\]"),
        "Booleans": ((HIDDEN, KERNEL, LABELS > 3), r".*bool\[3,7\]"),
        "a list": ((HIDDEN, KERNEL, LABELS.tolist()), ".*a list of length 3"),
        "integers": ((HIDDEN.astype(int), KERNEL, LABELS), r"int32\[3,7,5\]"),
        "weights of another shape": ((HIDDEN, KERNEL, LABELS, WEIGHTS[0]), r".*float32\[7\]"),
    }.values(),
)
def test_what_does_not_fit(arrays, got):
    with pytest.raises(
        ValueError, match=rf"^chunked_cross_entropy: expects hidden .* weights \(\.\.\.\), got {got}"
    ):
        chunked_cross_entropy(*arrays)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chunk_size": 0}, "chunk_size must be an integer of at least 1, got 0"),
        ({"label_smoothing": 10}, r"label_smoothing must be a number in \[0, 1\], got 10"),
    ],
)
def test_numbers_out_of_range(options, message):
    with pytest.raises(ValueError, match=f"^chunked_cross_entropy: {message}"):
        chunked_cross_entropy(HIDDEN, KERNEL, LABELS, **options)


@pytest.mark.parametrize("dtype", ["int8", "int16", "uint8", "int32"])
def test_what_is_no_label_makes_the_loss_nan_in_any_dtype(dtype):
    hidden, kernel = jnp.ones((1, 2)), jnp.ones((2, 128))
    assert jnp.isnan(chunked_cross_entropy(hidden, kernel, jnp.array([-1]).astype(dtype)))
    assert jnp.isfinite(chunked_cross_entropy(hidden, kernel, jnp.array([127]).astype(dtype)))


def test_tokens_on_several_devices():
    mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))

    def local(hidden, labels):
        return jax.lax.pmean(chunked_cross_entropy(hidden, KERNEL, labels, chunk_size=2), "data")

    hidden, labels = HIDDEN.reshape(-1, FEATURES)[:20], LABELS.ravel()[:20]
    found = jax.shard_map(local, mesh=mesh, in_specs=P("data"), out_specs=P())(hidden, labels)
    np.testing.assert_allclose(found, chunked_cross_entropy(hidden, KERNEL, labels), rtol=1e-5)
