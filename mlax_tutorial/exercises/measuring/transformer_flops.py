"""FLOPs of a transformer's forward pass, by a formula."""

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.inspection import costs


def solution(layers, width, hidden, vocabulary, length, batch):
    tokens = batch * length
    projections = 4 * 2 * tokens * width**2
    attention = 2 * 2 * tokens * length * width
    mlp = 2 * 2 * tokens * width * hidden
    return layers * (projections + attention + mlp) + 2 * tokens * width * vocabulary


def _forward(w, tokens):
    """A decoder: attention with heads of 64, two products with a function between them, logits. No cache, no trick."""

    def norm(x):
        return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)

    def block(x, w):
        q, k, v = ((norm(x) @ w[name]).reshape(*x.shape[:2], -1, 64) for name in ("query", "key", "value"))
        scores = jnp.einsum("bthd,bshd->bhts", q, k) / 8
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
        x = x + mixed.reshape(x.shape) @ w["out"]
        return x + jnp.maximum(norm(x) @ w["up"], 0) @ w["down"], None

    x, _ = jax.lax.scan(block, w["embedding"][tokens], w["blocks"])
    return norm(x) @ w["embedding"].T


def _counted(layers, width, hidden, vocabulary, length, batch):
    def of(*shape):
        return jax.ShapeDtypeStruct(shape, jnp.float32)

    square = {name: of(layers, width, width) for name in ("query", "key", "value", "out")}
    blocks = square | {"up": of(layers, width, hidden), "down": of(layers, hidden, width)}
    w = {"embedding": of(vocabulary, width), "blocks": blocks}
    return costs.cost(_forward, w, jax.ShapeDtypeStruct((batch, length), jnp.int32)).flops


NAMES = ("layers", "width", "hidden", "vocabulary", "length", "batch")
CASES = [
    (3, 512, 2048, 3000, 64, 8),
    (4, 512, 1024, 5000, 256, 1),
    (12, 768, 3072, 50304, 1024, 16),
    (3, 512, 1536, 2000, 2048, 2),
]


def check(transformer_flops):
    for case in CASES:
        got, expected = float(transformer_flops(*case)), _counted(*case)
        if abs(got / expected - 1) <= 0.05:
            continue
        layers, width, hidden, vocabulary, length, batch = case
        tokens = batch * length
        attention = 4 * layers * tokens * length * width
        logits = 2 * tokens * width * vocabulary
        whole = solution(*case)
        shown = {"input": dict(zip(NAMES, case)), "expected": expected, "got": got}
        for wrong, says in [
            (whole / 2, "Half of it: a product of (n, k) and (k, m) costs 2 n k m, a product and a sum for each term."),
            (3 * whole, "This is three times as much, what a training step costs. The forward pass alone is asked for."),
            (whole / batch, "The batch is missing."),
            (whole - attention, "Attention is missing: scores of each token with each, and their product with the values."),
            (whole - attention / 2, "Each query meets each key here, those behind the mask as well. And there are two products: scores, and mixing the values."),
            (whole - logits, "The logits are missing: for each token a product with the whole vocabulary."),
            (whole + logits, "To look up an embedding is no arithmetic."),
            (whole - layers * 2 * tokens * width**2, "There are four projections: query, key, value, and the one behind attention."),
            (whole - layers * 2 * tokens * width * hidden, "The MLP has two products, up and down."),
            (whole + layers * 4 * tokens * width * (4 * width - hidden), "The MLP is `hidden` wide, which need not be four times the width."),
        ]:  # fmt: skip
            if abs(got / wrong - 1) < 0.01:
                raise Failed(says, **shown)
        raise Failed(
            "This is off by more than 5 percent. Count the products: four projections, two of attention, two of the MLP, in each layer; then the logits.",
            **shown,
        )


exercise = Exercise(
    title="FLOPs of a transformer, by a formula",
    stars=2,
    minutes=15,
    why="Nearly all FLOPs of a transformer are in products, so their sizes give the cost of any model, before there is a line of code.",
    hints=(
        "A product with a kernel of (n, m) costs 2 n m for each token. Begin with the four projections of a layer.",
        "Attention: each token's scores with `length` keys cost 2 length width, over all heads together; the weighted sum of values as much again.",
        "The MLP has two products of width times hidden. The logits come once, at the end. Everything is for each of batch times length tokens.",
    ),
    solution=solution,
    check=check,
)
