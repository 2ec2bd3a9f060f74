"""A GPT on characters: nanoGPT's settings, and a small one alone and joined with counts, in bits a character and in seconds.

    .venv/bin/python -m examples.gpt                          # the small network with counts, on the package's text
    .venv/bin/python -m examples.gpt --model nano-cpu         # another of: mixed, alone, nano-cpu, nano
    .venv/bin/python -m examples.gpt --text input.txt         # any text: its last tenth is the test, as in nanoGPT
    .venv/bin/python -m examples.gpt --validate               # test on the last tenth of the training text instead
    .venv/bin/python -m examples.gpt --write "A hacker is "   # go on from this at the end
    .venv/bin/python -m examples.gpt --checkpoints DIR        # go on from what lies there, bit for bit; the log is there, too
    .venv/bin/python -m examples.gpt --record                 # the models that fit a CPU, ours with five seeds, and write the result

On tiny Shakespeare, nanoGPT's README gives 1.88 nats for `nano-cpu`, and 1.47 for `nano`, in three minutes of an A100. That text is not
in the package: with it as a file, the figures can be compared. Positions are rotary here, and learned there.
"""

import argparse
import bz2
import collections
import contextlib
import functools
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import recording
from examples.checkpoints import resume, save
from mlax_tutorial import data, nn, saving, training
from mlax_tutorial.generation import generate

ROUND = 100  # steps between two lines of the log, and two checkpoints
ORDER = 7  # characters of the longest run that is counted
WEIGHT = 4  # of the shorter run, for each different character that followed; chosen on the training text, leaving one out
SEEDS = 5


# --- counts ---


class Counts:
    """How often each run of characters occurs in a text; a rare or varied one leans on the shorter one (Witten and Bell, 1991)."""

    def __init__(self, text):
        self.size, self.length = len(set(text)), len(text)
        self.grams = collections.Counter(
            text[i : i + n] for n in range(ORDER + 1) for i in range(len(text) - n + 1)
        )
        self.kinds = collections.Counter(run[:-1] for run in self.grams if run)

    def chances(self, text, own=0):
        """The chance of each character of a text, from those before; ``own=1`` takes each out of its own counts."""
        p, total = np.full(len(text), 1 / self.size), self.length
        for n in range(ORDER):
            runs = [text[max(i - n, 0) : i + 1] for i in range(len(text))]
            seen = np.array([self.grams[run] for run in runs])
            weight = WEIGHT * (1 + np.array([self.kinds[run[:-1]] for run in runs]))
            p = (seen - own + weight * p) / (total - own + weight)
            total = np.append(self.length, seen[:-1])
        return p.astype(np.float32)


def packed(train, test):
    """Bits a character that bz2 adds for the test text."""
    sizes = [len(bz2.compress(text.encode())) for text in (train, train + test)]
    return 8 * (sizes[1] - sizes[0]) / len(test)


# --- models ---


class Recipe(NamedTuple):
    """A model and how it is trained."""

    about: str
    depth: int
    heads: int
    width: int
    context: int
    batch: int
    steps: int
    gate: bool = False
    muon: bool = False
    dropout: float = 0.0
    ours: bool = False


RECIPES = {
    "mixed": Recipe("a small GPT and counts, joined by a gate", 2, 4, 96, 64, 16, 2400, gate=True, muon=True, ours=True),
    "alone": Recipe("the same GPT alone", 2, 4, 96, 64, 16, 2400, muon=True, ours=True),
    "nano-cpu": Recipe("nanoGPT's setting for a CPU", 4, 4, 128, 64, 12, 2000),
    "nano": Recipe("nanoGPT's setting for a GPU", 6, 6, 384, 256, 64, 5000, dropout=0.2),
}  # fmt: skip
ON_CPU = ["mixed", "alone", "nano-cpu"]


def squared_relu(x):
    return jnp.square(jax.nn.relu(x))


def make_model(recipe, size):
    """From ids ``(..., steps)`` to logits ``(..., steps, size)``, with the gate behind them if there is one.

    Attention looks back one context and no farther, so that a text may be longer than those of the training.
    """
    zeros, looks = jax.nn.initializers.zeros, {"causal": True, "window": recipe.context}
    if recipe.ours:
        attention = nn.MultiHeadAttention(recipe.heads, rotary_base=1000, **looks)
        wide, narrow = nn.Linear(4 * recipe.width), nn.Linear(recipe.width, kernel_initializer=zeros)
        parts = attention, nn.Series(wide, nn.F(squared_relu, decodes=True), narrow)
        block = nn.Series(*(nn.Residual(nn.Series(nn.RMSNorm(), part)) for part in parts))
        norm = nn.RMSNorm()
    else:
        block = nn.TransformerBlock(
            recipe.width, recipe.heads, rotary_base=10_000, dropout=recipe.dropout, **looks
        )
        norm = nn.LayerNorm(affine=True)
    head = nn.Linear(size + recipe.gate, kernel_initializer=zeros)
    return nn.Series(
        nn.Embed(size, recipe.width), nn.Dropout(recipe.dropout), nn.Stack(block, recipe.depth), norm, head
    )


def losses(recipe, model, w, ids, counted, key=None):
    """Nats of each character but the first of each row."""
    return both_losses(recipe, model, w, ids, counted, key)[0]


def both_losses(recipe, model, w, ids, counted, key=None):
    """Nats of each character but the first of each row, and those of the network by itself, without the counts."""
    outputs, _ = model.fwd(ids[..., :-1], w, (), key=key, inference_mode=key is None)
    logits = outputs[..., :-1] if recipe.gate else outputs
    nats = optax.losses.softmax_cross_entropy_with_integer_labels(logits, ids[..., 1:])
    if not recipe.gate:
        return nats, nats
    gate = outputs[..., -1]
    mixed = -jnp.logaddexp(
        jax.nn.log_sigmoid(gate) - nats, jax.nn.log_sigmoid(-gate) + jnp.log(counted[..., 1:])
    )
    return mixed, nats


# --- training ---


def axes(trainables):
    """Which axes of each kernel flow in and out, for Muon; all else gets Adam."""
    kinds = optax.contrib.MuonDimensionNumbers

    def one(path, leaf):
        name = path[-1].key
        if name == "embed":
            return None
        if name == "out_kernel":
            return kinds((1, 2), 3)
        return kinds(1, (2, 3)) if leaf.ndim == 4 else kinds(leaf.ndim - 2, leaf.ndim - 1)

    return jax.tree_util.tree_map_with_path(one, trainables)


def make_optimizer(recipe, steps):
    schedule = optax.warmup_cosine_decay_schedule
    if recipe.muon:

        def rate(number):  # rises, stays, falls to zero
            share = number / steps
            return 0.02 * jnp.clip(jnp.minimum(20 * share, 1.67 * (1 - share)), 0, 1)

        return optax.contrib.muon(rate, adam_b2=0.99, muon_weight_dimension_numbers=axes)
    rates = schedule(0.0, 1e-3, min(100, steps // 20), steps, 1e-4)

    def is_kernel(trainables):
        return jax.tree.map(lambda leaf: leaf.ndim > 1, trainables)

    adam = optax.adamw(rates, b2=0.99, weight_decay=0.1, mask=is_kernel)
    return optax.chain(optax.clip_by_global_norm(1.0), adam)


@functools.partial(jax.jit, static_argnames=("recipe", "model", "steps", "count"))
def run_round(recipe, model, steps, count, state, key, ids, counted):
    """Some steps in one program: ``(state, key, mean loss in bits)``."""
    optimizer = make_optimizer(recipe, steps)
    key, places_key, dropout_key = jax.random.split(key, 3)
    places = jax.random.randint(places_key, (count, recipe.batch), 0, len(ids) - recipe.context)

    def step(state, each):
        (w, moments), (places, key) = state, each
        rows = places[:, None] + jnp.arange(recipe.context + 1)
        key = key if recipe.dropout else None

        # With a gate the network's own loss, too, or the counts would leave it hardly any gradient.
        def objective(w):
            loss, alone = (
                each.mean() for each in both_losses(recipe, model, w, ids[rows], counted[rows], key)
            )
            return loss + alone if recipe.gate else loss, loss

        (_, loss), gradients = jax.value_and_grad(objective, has_aux=True)(w)
        updates, moments = optimizer.update(gradients, moments, w)
        return (optax.apply_updates(w, updates), moments), loss

    state, found = jax.lax.scan(step, state, (places, jax.random.split(dropout_key, count)))
    return state, key, found.mean() / jnp.log(2)


def judge(recipe, model, w, ids, counted):
    """Bits of each character that has at least half a context before it."""
    half = recipe.context // 2
    places = np.arange(0, len(ids) - recipe.context, half)[:, None] + np.arange(recipe.context + 1)
    nats = jax.jit(lambda w, ids, counted: losses(recipe, model, w, ids, counted)[:, half:])
    found = [nats(w, ids[rows], counted[rows]) for rows in np.array_split(places, -(-len(places) // 64))]
    return np.concatenate([np.asarray(each).ravel() for each in found]) / np.log(2)


def train(name, train_text, test_text, seed=0, steps=None, directory=None):
    """Train one model, and test it once at the end.

    Args:
      directory: where a checkpoint and a line of the log are written after each round, and training goes on from the last one.

    Returns:
      The model, its weights, and a dict: ``bits`` of the test text, the mean ``losses`` of each round in bits, ``seconds`` of
      training, with compiling, and ``weights``, how many there are.
    """
    recipe = RECIPES[name]
    steps = steps or recipe.steps
    alphabet = sorted(set(train_text) | set(test_text))
    ids, test_ids = (encode(alphabet, text) for text in (train_text, test_text))
    if recipe.gate:
        counts = Counts(train_text)
        counts.size = len(alphabet)
        counted, test_counted = counts.chances(train_text, own=1), counts.chances(test_text)
    else:
        counted, test_counted = np.zeros(len(ids), np.float32), np.zeros(len(test_ids), np.float32)
    ids, counted = jnp.asarray(ids), jnp.asarray(counted)
    model = make_model(recipe, len(alphabet))
    init_key, key = jax.random.split(jax.random.key(seed))
    w, _ = model.init(init_key, ids[None, : recipe.context])
    count = sum(leaf.size for leaf in jax.tree.leaves(w))
    run = {"state": (w, make_optimizer(recipe, steps).init(w)), "key": key, "epoch": 0}
    rounds, found, begin = -(-steps // ROUND), [], time.perf_counter()
    with contextlib.ExitStack() as stack:
        checkpoints = log = None
        if directory is not None:
            directory = Path(directory) / f"{name}-{seed}"
            directory.mkdir(parents=True, exist_ok=True)
            checkpoints = stack.enter_context(saving.Checkpoints(directory / "checkpoints"))
            run, found = resume(checkpoints, run, (steps, seed))
            log = stack.enter_context(training.Log(directory / "log.jsonl", after=run["epoch"]))
        progress = stack.enter_context(training.Progress(rounds - run["epoch"]))
        while run["epoch"] < rounds:
            size = min(ROUND, steps - ROUND * run["epoch"])
            state, key, loss = run_round(recipe, model, steps, size, run["state"], run["key"], ids, counted)
            run = {"state": state, "key": key, "epoch": run["epoch"] + 1}
            found.append(float(loss))
            progress.advance()
            if checkpoints is not None:
                save(checkpoints, run, found, (steps, seed))
                log.write(run["epoch"], {"bits": np.float32(loss)})
    seconds, w = time.perf_counter() - begin, run["state"][0]
    bits = float(judge(recipe, model, w, test_ids, test_counted).mean())
    return model, w, {"bits": bits, "losses": found, "seconds": seconds, "weights": count}


def encode(alphabet, text):
    return np.searchsorted(alphabet, list(text)).astype(np.int32)


def write(model, w, alphabet, prompt, length=400, seed=0):
    """Go on from a prompt by the network alone; a gate is left aside."""
    if isinstance(prompt, str) and not set(prompt) <= set(alphabet):
        raise ValueError(f"the prompt has characters that the text has not: {set(prompt) - set(alphabet)}")
    *body, kernel = w
    w = (*body, {"kernel": kernel["kernel"][:, : len(alphabet)]})
    model = nn.Series(*model.layers[:-1], nn.Linear(len(alphabet)))
    ids = jnp.asarray(encode(alphabet, prompt))[None]
    key = jax.random.key(seed)
    ids = generate(model, w, (), ids, length=len(prompt) + length, key=key, temperature=0.7, top_p=0.95)
    return "".join(alphabet[i] for i in np.asarray(ids[0]))


def hold_out(text):
    """The last tenth of a text stands in for the test."""
    cut = len(text) * 9 // 10
    return text[:cut], text[cut:]


def record(train_text, test_text, steps=None):
    """The models that fit a CPU, ours with two seeds, beside counts and bz2."""
    chances = Counts(train_text).chances(test_text)
    results = {
        "counted": {"about": f"runs of up to {ORDER} characters, counted", "bits": [round(float(-np.log2(chances).mean()), 4)]},
        "bz2": {"about": "bz2", "bits": [round(packed(train_text, test_text), 4)]},
    }  # fmt: skip
    for name in ON_CPU:
        seeds = range(SEEDS if RECIPES[name].ours else 1)
        each = [train(name, train_text, test_text, seed, steps)[2] for seed in seeds]
        results[name] = {
            "about": RECIPES[name].about, "bits": [round(one["bits"], 4) for one in each], "weights": each[0]["weights"],
            "seconds": [round(one["seconds"]) for one in each], "losses": [[round(x, 4) for x in one["losses"]] for one in each],
            "steps": steps or RECIPES[name].steps,
        }  # fmt: skip
        print(name, results[name]["bits"], results[name]["seconds"], flush=True)
    return {"characters": {"train": len(train_text), "test": len(test_text)}, "results": results}


def main(arguments: list[str] | None = None) -> float | dict:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=RECIPES, default="mixed", help="mixed by default")
    parser.add_argument("--steps", type=int, help="by default what suits the model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--text", type=Path, help="a file of text; by default that of the package")
    parser.add_argument("--write", metavar="PROMPT", help="go on from this at the end")
    parser.add_argument(
        "--checkpoints", type=Path, help="a directory: save after each round, resume from the last"
    )
    parser.add_argument("--validate", action="store_true", help="test on the last tenth of the training text")
    parser.add_argument("--record", action="store_true", help="write the result of the models on a CPU")
    options = parser.parse_args(arguments)
    if options.steps is not None and options.steps < 1:
        parser.error(f"--steps must be at least 1, got {options.steps}")
    if options.record and (options.text or options.validate or options.checkpoints or options.steps):
        parser.error("--record trains the models as they are, on the package's text")
    texts = hold_out(options.text.read_text(encoding="utf-8")) if options.text else tuple(data.jargon())
    if options.record:
        result = record(*texts)
        recording.write("gpt", result, ["examples.gpt", *(arguments or sys.argv[1:])])
        return result
    texts = hold_out(texts[0]) if options.validate else texts
    try:
        model, w, result = train(options.model, *texts, options.seed, options.steps, options.checkpoints)
    except saving.CheckpointError as error:
        parser.exit(1, f"{error}\n")
    print(
        f"{result['bits']:.3f} bits a character, {result['bits'] * np.log(2):.3f} nats, "
        f"{result['weights']:,} weights, {result['seconds']:.0f} s"
    )
    if options.write:
        print(write(model, w, sorted(set(texts[0]) | set(texts[1])), options.write, seed=options.seed))
    return result["bits"]


if __name__ == "__main__":
    main()
