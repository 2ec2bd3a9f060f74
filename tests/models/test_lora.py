"""LoRA on GPT-2: a published file is read, a few numbers beside each kernel are trained, and a file of the same names is written."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples.gpt2 import gpt2, published
from mlax_tutorial import nn, optim, saving, training
from tests.models import infer
from tests.modules.test_saving import published_tensors

MODEL = gpt2(vocabulary=11, length=5, width=4, heads=2, depth=3)
NAMES = functools.partial(published, depth=3, heads=2)
OPTIMIZER = optim.Freeze(optim.Adam(3e-2), where=lambda path: "['lora']" not in path)


def adapted(path, layer):
    return nn.LoRA(layer, rank=2) if isinstance(layer, nn.MultiHeadAttention) else layer


def cross_entropy(logits, ids):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids).mean()


def test_a_published_model_is_adapted_and_published_again(tmp_path):
    tensors = published_tensors()
    saving.write_tensors(tmp_path / "theirs", tensors | {"h.0.attn.bias": np.tri(5, dtype="float32")})
    ids = jax.random.randint(jax.random.key(0), (4, 6), 0, 11)
    x, y = ids[:, :-1], ids[:, 1:]
    target, _ = jax.eval_shape(MODEL.init, jax.random.key(0), x)
    base = saving.load_weights(tmp_path / "theirs", target, rename=NAMES, partial=True)

    model = nn.replace(MODEL, adapted)
    trainables, rest = model.init(jax.random.key(1), x)
    blocks = trainables["blocks"]
    attention = {**blocks["attention"], "layer": base["blocks"]["attention"]}
    trainables = base | {"blocks": base["blocks"] | {"attention": attention}}
    before = infer(MODEL, x, (base, MODEL.init(jax.random.key(0), x)[1]))
    np.testing.assert_allclose(
        infer(model, x, (trainables, rest)), before, atol=1e-5
    )  # nothing changes at first

    step, state, losses = training.make_step(model, cross_entropy), None, []
    state = training.State(*jax.tree.map(jnp.copy, (trainables, rest, OPTIMIZER.init(trainables))))
    for _ in range(40):
        state, value = step(OPTIMIZER, state, None, x, y)
        losses.append(float(value))
    assert losses[-1] < 0.9 * losses[0]

    merged, learned = nn.merge_lora(model, state.trainables)
    assert merged == MODEL
    saving.save_weights(tmp_path / "ours", learned, rename=NAMES, like=tensors)
    ours = saving.read_tensors(tmp_path / "ours")
    assert ours.keys() == tensors.keys()
    changed = {name for name in ours if (ours[name] != tensors[name]).any()}
    assert changed == {f"h.{layer}.attn.c_attn.weight" for layer in range(3)}
    query, key, value = np.split(
        ours["h.1.attn.c_attn.weight"] != tensors["h.1.attn.c_attn.weight"], 3, axis=1
    )
    assert query.any() and value.any() and not key.any()
    again = saving.load_weights(tmp_path / "ours", target, rename=NAMES)
    wanted = infer(model, x, (state.trainables, state.non_trainables))
    np.testing.assert_allclose(
        infer(MODEL, x, (again, MODEL.init(jax.random.key(0), x)[1])), wanted, atol=1e-4
    )
