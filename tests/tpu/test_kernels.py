"""The kernels that solve the chapter's exercises are compiled by the TPU's own compiler: lowering is not the last word."""

import functools

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial.exercises import pallas
from tests.chapters import assembled
from tests.tpu import compiling


def shape(*sizes, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(sizes, dtype)


def of(exercise):
    return functools.partial(exercise.answer, interpret=False)


def gradient(x, scale):
    return jax.grad(lambda x, scale: of(pallas.rms_norm)(x, scale).sum(), argnums=(0, 1))(x, scale)


HALF = jnp.bfloat16
KERNELS = {
    "column_sums": (of(pallas.column_sums), shape(20, 128)),
    "matmul": (of(pallas.matmul), shape(256, 512, dtype=HALF), shape(512, 256, dtype=HALF)),
    "two_cores": (of(pallas.two_cores), shape(64, 128)),
    "rms_norm": (of(pallas.rms_norm), shape(16, 128), shape(1, 128)),
    "rms_norm, backward": (gradient, shape(16, 128), shape(1, 128)),
    "attend": (of(pallas.attend), shape(64, 128), shape(256, 128), shape(256, 128)),
}


@pytest.mark.parametrize("name", KERNELS)
def test_it_compiles(name):
    function, *arguments = KERNELS[name]
    text = compiling.compile_for_chip(jax.jit(function), *arguments).as_text()
    assert "tpu_custom_call" in text


def test_attention_s_gradient_compiles():
    names = "attention", "attention_forward", "attention_backward", "with_gradients"
    code = assembled.definitions("book/pallas.ipynb", *names)
    code["attention"].defvjp(code["attention_forward"], code["attention_backward"])
    function = functools.partial(code["with_gradients"], code["attention"], interpret=False)
    text = compiling.compile_for_chip(jax.jit(function), *[shape(256, 128)] * 4).as_text()
    assert text.count("tpu_custom_call") >= 3


def test_an_array_of_three_columns_is_padded_to_four():
    """What the chapter says of f32[100000, 3]."""
    memory = compiling.compile_for_chip(jax.jit(lambda x: x + 1), shape(100_000, 3)).memory_analysis()
    assert 1.3 < memory.argument_size_in_bytes / (100_000 * 3 * 4) < 1.4


def test_four_copies_of_a_block_must_fit_into_vmem():
    """Two of the input's and two of the output's, as the chapter says."""
    from jax.experimental import pallas as pl

    def kernel(x_ref, y_ref):
        y_ref[...] = x_ref[...] + 1

    def in_blocks_of(size):
        block = pl.BlockSpec((size, 1024), lambda i: (i, 0))
        call = pl.pallas_call(
            kernel, out_shape=shape(8192, 1024), grid=(8192 // size,), in_specs=[block], out_specs=block
        )
        return compiling.compile_for_chip(jax.jit(call), shape(8192, 1024))

    in_blocks_of(512)  # 2 MB a block
    with pytest.raises(Exception, match="vmem"):
        in_blocks_of(4096)  # 16 MB a block
