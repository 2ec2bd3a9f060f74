"""Whether programs lower for a TPU or a GPU: kernels that do and kernels that do not, and what is said of them."""

import functools

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.inspection import lowers_for_gpu, lowers_for_tpu

X = jax.ShapeDtypeStruct((16, 256), jnp.float32)


def in_blocks(function, block=(8, 128)):
    """Applies a function to each block of an array, in a kernel."""

    def kernel(x_ref, y_ref):
        y_ref[...] = function(x_ref[...])

    def call(x, interpret=False):
        spec = pl.BlockSpec(block, lambda i, j: (i, j))
        grid = tuple(pl.cdiv(size, part) for size, part in zip(x.shape, block, strict=True))
        return pl.pallas_call(
            kernel, out_shape=x, grid=grid, in_specs=[spec], out_specs=spec, interpret=interpret
        )(x)

    return call


def test_a_kernel_lowers():
    found = lowers_for_tpu(in_blocks(jnp.tanh), X)
    assert found and found.error is None and found.kernels == ("kernel",) and found.interpreted == ()
    assert repr(found) == str(found) == "lowers for a TPU, with the kernel kernel"


def test_arrays_and_jitted_functions_will_do():
    call = in_blocks(jnp.tanh)
    twice = lowers_for_tpu(jax.jit(lambda x: call(call(x))), jnp.ones((16, 256)))
    assert repr(twice) == "lowers for a TPU, with the kernels kernel, kernel"
    static = jax.jit(call, static_argnames="interpret")
    assert lowers_for_tpu(static, X, interpret=False).kernels == ("kernel",)


def test_a_block_that_a_tpu_refuses():
    found = lowers_for_tpu(in_blocks(jnp.tanh, (4, 100)), X)
    assert not found and found.kernels == ("kernel",)
    assert repr(found).startswith("does not lower for a TPU: ValueError: The Pallas TPU lowering")
    assert "divisible by 8 and 128" in found.error
    assert found.error.endswith("has block shape (4, 100), array shape (16, 256).")


@pytest.mark.parametrize("function, name", [(jnp.sort, "sort"), (lambda x: x[::-1], "rev")])
def test_an_operation_that_a_tpu_lacks(function, name):
    found = lowers_for_tpu(in_blocks(function), X)
    assert found.error.startswith("NotImplementedError: Unimplemented primitive")
    assert found.error.endswith(f"{name}.") and "\n" not in found.error


def test_no_error_holds_places_of_the_source():
    found = lowers_for_tpu(in_blocks(lambda x: jnp.fft.fft(x).real), X)
    assert not found and ".py" not in found.error


def test_an_interpreted_kernel_is_no_kernel():
    call = in_blocks(jnp.sort)
    found = lowers_for_tpu(call, X, interpret=True)
    assert found and found.kernels == () and found.interpreted == ("kernel",)
    assert "without a Pallas kernel; the kernel kernel would be interpreted" in repr(found)
    both = lowers_for_tpu(lambda x: in_blocks(jnp.tanh)(call(x, True)), X)
    assert (both.kernels, both.interpreted) == (("kernel",), ("kernel",))


def test_a_function_without_a_kernel():
    found = lowers_for_tpu(jnp.sort, X)
    assert found and repr(found) == "lowers for a TPU, without a Pallas kernel"


def test_errors_while_tracing_are_the_caller_s():
    with pytest.raises(TypeError, match="dot_general|matmul|shapes"):
        lowers_for_tpu(jnp.dot, X, X)


def test_kernels_of_functions_with_rules_of_their_own():
    call = in_blocks(jnp.tanh)

    @jax.custom_vjp
    def f(x):
        return call(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (g * call(x),))
    assert lowers_for_tpu(f, X).kernels == ("kernel",)
    assert lowers_for_tpu(jax.grad(lambda x: f(x).sum()), X).kernels == ("kernel", "kernel")
    assert lowers_for_tpu(functools.partial(call), X)


def test_for_a_gpu():
    """Blocks that a TPU refuses will do, if their sizes are powers of two; there is no scratch memory."""
    found = lowers_for_gpu(in_blocks(jnp.tanh, (4, 64)), X)
    assert found and repr(found) == "lowers for a GPU, with the kernel kernel"
    ragged = lowers_for_gpu(in_blocks(jnp.tanh, (4, 100)), X)
    assert repr(ragged).startswith("does not lower for a GPU: ValueError") and "power of 2" in ragged.error

    def kernel(x_ref, y_ref, kept):
        kept[...] = x_ref[...]
        y_ref[...] = kept[...]

    call = pl.pallas_call(kernel, out_shape=X, scratch_shapes=[pltpu.VMEM(X.shape, X.dtype)])
    assert lowers_for_tpu(call, X)
    assert "scratch memory not implemented" in lowers_for_gpu(call, X).error


def test_the_gpu_is_forgotten_again():
    lowers_for_gpu(jnp.tanh, X)
    assert jax.sharding.get_abstract_mesh().empty and jnp.tanh(jnp.ones(3)).shape == (3,)
