"""`examples/gpt2.py`: a GPT-2 of Hugging Face's transformers gives the same logits here, and text by its own tokenizer."""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from examples import gpt2
from mlax_tutorial import saving

FOLDER = Path(__file__).with_name("gpt2")  # made by make.py in it
HEAD = 8
EXPECTED = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))


def as_published(folder):
    """The file as those of the published sizes are: names without a prefix, and the masks of attention among them."""
    tensors = saving.read_tensors(FOLDER / "model.safetensors")
    tensors = {name.removeprefix("transformer."): np.asarray(array) for name, array in tensors.items()}
    length = tensors["wpe.weight"].shape[0]
    masks = {f"h.{i}.attn.bias": np.tri(length, dtype=np.float32)[None, None] for i in range(2)}
    saving.write_tensors(folder / "model.safetensors", tensors | masks)
    return folder / "model.safetensors"


@pytest.mark.parametrize("masks", [False, True])
def test_it_has_the_logits_of_transformers(tmp_path, masks):
    path = as_published(tmp_path) if masks else FOLDER / "model.safetensors"
    model, trainables, rest = gpt2.load(path, HEAD)
    with jax.default_matmul_precision("highest"):
        got, _ = jax.jit(model.fwd)(np.array(EXPECTED["ids"]), trainables, rest)
    wanted = np.array(EXPECTED["logits"])
    assert np.abs(wanted).max() > 1
    np.testing.assert_allclose(got, wanted, atol=1e-4)


@pytest.mark.parametrize("text", EXPECTED["texts"])
def test_its_tokenizer_is_that_of_transformers(text):
    tokens = gpt2.Tokens(FOLDER)
    assert tokens.encode(text) == EXPECTED["texts"][text]
    assert tokens.decode(tokens.encode(text)) == text


def test_it_writes(capsys):
    command = [str(FOLDER), "--prompt", "hello w", "--length", "5", "--head", str(HEAD), "--top-p", "0.5"]
    text = gpt2.main(command)
    assert text.startswith("hello w") and capsys.readouterr().out == text + "\n"
    with pytest.raises(SystemExit):
        gpt2.main([str(FOLDER), "--length", "99", "--head", str(HEAD)])
