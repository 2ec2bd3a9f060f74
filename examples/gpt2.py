"""GPT-2 under its published names: read from a file of ``safetensors``, written to one that others read, and made to write text.

    .venv/bin/python -m examples.gpt2 FOLDER --prompt "The meaning of life is"    # FOLDER has model.safetensors, vocab.json, merges.txt

Those are the three files of a published GPT-2, of any size: depth, width and vocabulary are read from the weights. In Python:

    model = gpt2()
    target, _ = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 8), jnp.int32))
    names = functools.partial(published, depth=12, heads=12)
    trainables = saving.load_weights("model.safetensors", target, rename=names, partial=True)
    …
    like = saving.read_tensors("model.safetensors")
    saving.save_weights("tuned.safetensors", trainables, rename=names, like=like)

The published file also holds the masks of attention, which are no weights (``h.0.attn.bias``): hence ``partial``. It keeps the
kernels of query, key and value side by side in one array; and each layer by itself, where ``nn.Stack`` has one array for all.
Files saved with a language model's head put ``transformer.`` in front of each name (``prefix``).
"""

import argparse
import functools
import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn, saving
from mlax_tutorial.generation import generate

HEAD = 64  # features of a head, in all published sizes


class Block(nn.Composite):
    attention_norm: nn.Layer
    attention: nn.Layer
    norm: nn.Layer
    widen: nn.Layer
    narrow: nn.Layer
    decodes = True

    def forward(self, call, x):
        x = x + call.attention(call.attention_norm(x))
        return x + call.narrow(jax.nn.gelu(call.widen(call.norm(x))))


class GPT2(nn.Composite):
    """Logits of the next token, (..., length, vocabulary), from ids of tokens, (..., length)."""

    tokens: nn.Layer
    places: nn.Layer
    blocks: nn.Layer
    norm: nn.Layer
    decodes = True

    def forward(self, call, ids):
        x = call.blocks(call.tokens(ids) + call.places(call.place))
        return call.tokens.attend(call.norm(x))


def gpt2(
    *, vocabulary: int = 50257, length: int = 1024, width: int = 768, heads: int = 12, depth: int = 12
) -> GPT2:
    """The model; its sizes are those of the smallest one published."""

    def norm():
        return nn.LayerNorm(epsilon=1e-5, affine=True)

    def dense(features):
        return nn.Series(linear=nn.Linear(features), shift=nn.Bias())

    attention = nn.MultiHeadAttention(heads, causal=True, use_bias=True)
    block = Block(norm(), attention, norm(), dense(4 * width), dense(width))
    return GPT2(nn.Embed(vocabulary, width), nn.Embed(length, width), nn.Stack(block, depth), norm())


THEIRS = {
    "attention_norm": "ln_1", "norm": "ln_2", "widen": "mlp.c_fc", "narrow": "mlp.c_proj",
    "attention.out": "attn.c_proj", "attention.query": "attn.c_attn", "attention.key": "attn.c_attn", "attention.value": "attn.c_attn",
}  # fmt: skip
PARTS = "query", "key", "value"


def published(name: str, *, depth: int, heads: int, prefix: str = ""):
    """Where the weight that is called ``name`` here stands in a published file: for ``saving.load_weights(…, rename=…)``."""
    kind = "bias" if name.endswith("bias") else "weight"
    outside = {"tokens": "wte", "places": "wpe", "norm": "ln_f"}
    owner, _, rest = name.partition(".")
    if owner in outside:
        return f"{prefix}{outside[owner]}.{kind}"
    rest = rest.removesuffix("_kernel").removesuffix("_bias")  # blocks.attention.query_kernel
    owner = rest if rest in THEIRS else rest.split(".")[0]
    part = rest.rpartition(".")[2]
    layers = [f"{prefix}h.{layer}.{THEIRS[owner]}.{kind}" for layer in range(depth)]
    return *layers, functools.partial(_stacked, part=part, kind=kind, heads=heads)


def _stacked(*layers, part, kind, heads):
    """The weights of all layers, (depth, …), with an axis for the heads in attention."""
    stacked = jnp.stack(layers)
    if part in PARTS:
        stacked = jnp.split(stacked, 3, axis=-1)[PARTS.index(part)]
        return stacked.reshape(*stacked.shape[:-1], heads, -1)
    if part == "out" and kind == "weight":
        return stacked.reshape(len(layers), heads, -1, stacked.shape[-1])
    return stacked


def load(path: str | Path, head: int = HEAD):
    """``(model, trainables, non_trainables)`` of a published file; its sizes follow from the arrays in it."""
    shapes = {name: array.shape for name, array in saving.read_tensors(path).items()}
    prefix = "transformer." if "transformer.wte.weight" in shapes else ""
    (vocabulary, width), length = shapes[f"{prefix}wte.weight"], shapes[f"{prefix}wpe.weight"][0]
    depth = sum(name.startswith(f"{prefix}h.") and name.endswith(".ln_1.weight") for name in shapes)
    heads = width // head
    model = gpt2(vocabulary=vocabulary, length=length, width=width, heads=heads, depth=depth)
    target, rest = jax.eval_shape(model.init, jax.random.key(0), jnp.zeros((1, 1), jnp.int32))
    names = functools.partial(published, depth=depth, heads=heads, prefix=prefix)
    trainables = saving.load_weights(path, target, rename=names, partial=True)
    return model, trainables, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), rest)


class Tokens:
    """GPT-2's own tokenizer, from its files ``vocab.json`` and ``merges.txt``: byte pairs, in other ids than `tokens.BytePairs`.

    The files write each byte as a character that can be seen. (The published pattern cuts words by Unicode's classes; Python's `re`
    has no names for these, and what is written here is the same for letters, digits and the rest.)
    """

    WORDS = re.compile(r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+")

    def __init__(self, folder: str | Path):
        folder = Path(folder)
        self.ids = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
        lines = (folder / "merges.txt").read_text(encoding="utf-8").splitlines()
        pairs = [tuple(line.split(" ")) for line in lines if line and not line.startswith("#version")]
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}
        seen = [*range(33, 127), *range(161, 173), *range(174, 256)]  # bytes that stand for themselves
        others = [byte for byte in range(256) if byte not in seen]
        self.signs = {byte: chr(byte) for byte in seen} | {
            byte: chr(256 + i) for i, byte in enumerate(others)
        }
        self.bytes = {sign: byte for byte, sign in self.signs.items()}
        self.pieces = {id: piece for piece, id in self.ids.items()}

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return [self.ids[piece] for word in self.WORDS.findall(text) for piece in self._merged(word)]

    def decode(self, ids) -> str:
        """The text of ids."""
        text = "".join(self.pieces[int(id)] for id in ids)
        return bytes(self.bytes[sign] for sign in text).decode("utf-8", "replace")

    def _merged(self, word):
        pieces = [self.signs[byte] for byte in word.encode()]
        while len(pieces) > 1:
            best = min(zip(pieces, pieces[1:]), key=lambda pair: self.ranks.get(pair, len(self.ranks)))
            if best not in self.ranks:
                break
            merged, i = [], 0
            while i < len(pieces):
                pair = tuple(pieces[i : i + 2]) == best
                merged.append("".join(best) if pair else pieces[i])
                i += 1 + pair
            pieces = merged
        return pieces


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description="Text from a published GPT-2.", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with model.safetensors, vocab.json and merges.txt")
    parser.add_argument("--prompt", default="The meaning of life is")
    parser.add_argument("--length", type=int, default=60, help="tokens that are written")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--top-p", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--head", type=int, default=HEAD, help="features of a head")
    options = parser.parse_args(arguments)
    tokens = Tokens(options.folder)
    model, trainables, rest = load(options.folder / "model.safetensors", options.head)
    prompt = jnp.asarray(np.array(tokens.encode(options.prompt), np.int32))[None]
    room = model.places.vocab_size - prompt.shape[1]
    if not prompt.size or options.length > room:
        parser.error(f"the prompt must have a token, and --length may be {room} at most")
    ids = generate(
        model, trainables, rest, prompt, length=prompt.shape[1] + options.length, key=jax.random.key(options.seed),
        temperature=options.temperature, top_p=options.top_p, stop=tokens.ids.get("<|endoftext|>"),
    )  # fmt: skip
    text = tokens.decode(ids[0])
    print(text)
    return text


if __name__ == "__main__":
    main()
