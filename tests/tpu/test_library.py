"""Every layer, every optimizer and whole training steps compile for a TPU v5e, on one chip and on eight."""

import functools

import jax
import jax.numpy as jnp
import optax
import pytest

from mlax_tutorial import nn, optim
from tests.laws.rows import LAYERS, OPTIMIZERS, classes, public_classes
from tests.tpu.compiling import checked, compile_for_chip, compiled, mesh, placed

BATCH = 16
DTYPES = ["float32", "bfloat16"]
KEY = jax.eval_shape(lambda: jax.random.key(0))
dtypes = pytest.mark.parametrize("dtype", DTYPES)


def test_every_public_class_has_a_row():
    for module, base, rows in (
        (nn, nn.Layer, [row.layer for row in LAYERS]),
        (optim, optim.Optimizer, OPTIMIZERS),
    ):
        missing = public_classes(module, base) - {cls for row in rows for cls in classes(row)}
        assert not missing, f"add a row to tests/laws/rows/ for {missing}"


def test_a_compile_for_the_cpu_is_noticed():
    here = jax.jit(jnp.sin).lower(jnp.ones(3)).compile()
    with pytest.raises(AssertionError, match="no TPU compile"):
        checked(here)


def test_the_compiler_knows_the_chip():
    """A v5e has 16 GiB of memory, whatever this machine has."""
    large = jax.ShapeDtypeStruct((80_000, 80_000), jnp.float32)
    with pytest.raises(Exception, match="(?i)RESOURCE_EXHAUSTED.*memory"):
        compile_for_chip(jax.jit(lambda x: x + 1), large)


@dtypes
@pytest.mark.parametrize("row", LAYERS, ids=lambda row: row.id)
def test_layer(row, dtype):
    layer, floating = row.declared(dtype), row.ids is None
    x = jax.ShapeDtypeStruct((BATCH, *row.shape), dtype if floating else "int32")
    trainables, non_trainables = jax.eval_shape(layer.init, KEY, x)

    @jax.jit
    def run(trainables, non_trainables, x, key):
        def loss(trainables, x):
            y, updated = layer.fwd(x, trainables, non_trainables, key=key if row.draws else None)
            return jnp.sum(jnp.square(y.astype(jnp.float32))), (y, updated)

        inferred, _ = layer.fwd(x, trainables, non_trainables, inference_mode=True)
        gradient = jax.value_and_grad(loss, argnums=(0, 1) if floating else 0, has_aux=True)
        return layer.init(key, x), inferred, gradient(trainables, x)

    compile_for_chip(run, trainables, non_trainables, x, KEY)


@dtypes
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_optimizer(optimizer, dtype):
    shape = functools.partial(jax.ShapeDtypeStruct, dtype=dtype)
    trainables = ({"kernel": shape((32, 10))}, {"bias": shape((10,))}, ())
    state = jax.eval_shape(optimizer.init, trainables)

    @jax.jit
    def step(optimizer, gradients, state, trainables):
        updates, state = optimizer.step(gradients, state, trainables)
        return optimizer.init(trainables), optim.apply_updates(trainables, updates), state

    compile_for_chip(step, optimizer, trainables, state, trainables)


MODEL = nn.Series(
    nn.Flatten(2), nn.Linear(512), nn.Bias(), nn.F(jax.nn.relu), nn.Dropout(0.1), nn.Linear(10), nn.Bias()
)


def training_step(dtype):
    """A step in the given dtype: weights and updates stay float32, the forward and backward pass need not."""

    @functools.partial(jax.jit, donate_argnums=(1, 2, 3))
    def step(optimizer, trainables, non_trainables, state, images, labels, key):
        def loss(trainables):
            cast = jax.tree.map(lambda leaf: leaf.astype(dtype), trainables)
            logits, updated = MODEL.fwd(images.astype(dtype), cast, non_trainables, key=key)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), labels)
            return losses.mean(), updated

        (value, updated), gradients = jax.value_and_grad(loss, has_aux=True)(trainables)
        updates, state = optimizer.step(gradients, state, trainables)
        return value, optim.apply_updates(trainables, updates), updated, state

    return step


def step_arguments(optimizer):
    images = jax.ShapeDtypeStruct((128, 28, 28), jnp.float32)
    labels = jax.ShapeDtypeStruct((128,), jnp.int32)
    variables = jax.eval_shape(MODEL.init, KEY, images)
    state = jax.eval_shape(optimizer.init, variables[0])
    return [optimizer, *variables, state], [images, labels], KEY


@dtypes
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
def test_training_step_on_one_chip(optimizer, dtype):
    kept, batch, key = step_arguments(optimizer)
    text = compile_for_chip(training_step(dtype), *kept, *batch, key).as_text()
    assert ("bf16" in text) == (dtype == "bfloat16")


@dtypes
def test_training_step_on_eight_chips(dtype):
    kept, batch, key = step_arguments(OPTIMIZERS[-1])
    arguments = *placed(kept), *placed(batch, jax.P("data")), placed(key)
    with jax.set_mesh(mesh()):
        text = compiled(training_step(dtype).lower(*arguments)).as_text()
    assert "num_partitions=8" in text
    assert "all-reduce" in text, "the gradients of eight shards are never added up"
    assert "f32[16,28,28]" in text, "each chip should get 16 of the 128 images"


def test_init_on_eight_chips():
    """Variables are born where they should live: the wide axis of the first kernel is cut in eight."""
    x = jax.ShapeDtypeStruct((128, 28, 28), jnp.float32)
    trainables, non_trainables = jax.eval_shape(MODEL.init, KEY, x)
    shardings = jax.tree.map(
        lambda leaf: leaf.sharding,
        jax.tree.map(
            lambda leaf: placed(leaf, jax.P("data") if leaf.shape[0] % 8 == 0 else jax.P()), trainables
        ),
    )
    init = jax.jit(lambda key: MODEL.init(key, x), out_shardings=(shardings, placed(non_trainables)))
    assert "f32[98,512]" in compiled(init.lower(placed(KEY))).as_text()
