# /// script
# requires-python = "==3.11.*"
# dependencies = ["numpy==2.4.6", "torch==2.13.0", "transformers==5.24.0"]
# ///
"""Make the GPT-2 that `tests/training/test_gpt2.py` reads: of Hugging Face's transformers, with weights drawn at random.

    uv run tests/training/gpt2/make.py

uv reads the lines above and makes an environment of its own. The folder then holds what a published GPT-2 has, `model.safetensors`,
`vocab.json` and `merges.txt`, and `expected.json`: the logits of some ids, and the ids of some texts.
"""

import json
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

FOLDER = Path(__file__).parent
MERGES = [
    ("h", "e"),
    ("l", "l"),
    ("he", "ll"),
    ("Ġ", "w"),
    ("hell", "o"),
    ("Ġ", "t"),
    ("Ã", "¶"),
    ("Ġ", "Ġ"),
    ("1", "2"),
]
TEXTS = [
    "hello world's", "hel 12_", "größer 🙂\n\n  x", "it's 3 o'clock", " \t ", "I'LL we'll don't", "a_b __init__(self):",
    "x = 0.125e-3\n\ty", "日本語 text", "trailing space ", "  two",
]  # fmt: skip


def sizes(vocabulary):
    return transformers.GPT2Config(
        vocab_size=vocabulary, n_positions=16, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3,
        bos_token_id=None, eos_token_id=None,
    )  # fmt: skip


def main():
    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = [*signs, *(a + b for a, b in MERGES), "<|endoftext|>"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    (FOLDER / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False), encoding="utf-8")
    lines = ["#version: 0.2", *(" ".join(pair) for pair in MERGES)]
    (FOLDER / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(sizes(len(vocabulary))).double().eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "ln_" in name or name.endswith("bias"):  # these begin at 1 and 0
                weight.normal_(float(name.endswith("weight")), 0.3)
        for weight in model.parameters():
            weight.copy_(weight.float())
        ids = torch.randint(0, len(vocabulary), (1, 12))
        logits = model(ids).logits
    model.float().save_pretrained(FOLDER)
    for extra in ("config.json", "generation_config.json"):
        (FOLDER / extra).unlink(missing_ok=True)

    tokenizer = Tokenizer(models.BPE(vocabulary, MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    expected = {
        "versions": {"transformers": transformers.__version__, "torch": torch.__version__},
        "ids": ids.tolist(),
        "logits": [[[round(x, 6) for x in place] for place in row] for row in logits.tolist()],
        "texts": {text: tokenizer.encode(text).ids for text in TEXTS},
    }
    (FOLDER / "expected.json").write_text(json.dumps(expected, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
