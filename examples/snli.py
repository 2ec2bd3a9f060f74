"""What `snli_lstm` and `snli_encoder` share: sentences as arrays, batches, the training, its checkpoints and its command line."""

import argparse
import contextlib
import re
import sys
import time
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import recording
from examples.checkpoints import resume, save
from mlax_tutorial import data, nn, optim, saving, training

BATCH_SIZE = 128
BOUNDS = (16, 24, 40)  # words of the longer sentence; few are longer, and they are cut
DECAY = 0.01
WORD = re.compile(r"[a-z0-9]+|'[a-z]+|[^\sa-z0-9]")


# --- sentences as arrays ---


def words_of(sentence):
    return WORD.findall(sentence.lower())


def vocabulary(pairs, at_least=2):
    """A number for each word that comes at least twice, from 2: 0 is padding, 1 all other words."""
    counts = Counter(
        word for side in (pairs.premises, pairs.hypotheses) for one in side for word in words_of(one)
    )
    kept = sorted(word for word, count in counts.items() if count >= at_least)
    return {word: number for number, word in enumerate(kept, start=2)}


def encode(sentences, known):
    """Numbers of words, ``(n, 40)``, and how many there are, ``(n,)``; an empty sentence has one unknown word."""
    ids = np.zeros((len(sentences), BOUNDS[-1]), np.int32)
    lengths = np.ones(len(sentences), np.int32)
    for i, sentence in enumerate(sentences):
        found = [known.get(word, 1) for word in words_of(sentence)][: BOUNDS[-1]] or [1]
        ids[i, : len(found)], lengths[i] = found, len(found)
    return ids, lengths


def arrays(pairs, known, hypothesis_only=False):
    """``(x, lengths, labels)``: both sentences side by side, ``(n, 2, 40)`` and ``(n, 2)``."""
    premises = [""] * len(pairs.labels) if hypothesis_only else pairs.premises
    (first, first_lengths), (second, second_lengths) = (
        encode(premises, known),
        encode(pairs.hypotheses, known),
    )
    return np.stack([first, second], axis=1), np.stack([first_lengths, second_lengths], axis=1), pairs.labels


def bucketed(key, lengths, batch_size):
    """One epoch of batches ``(rows, time)``: shuffled within each bucket, and among them."""
    order_key, *keys = jax.random.split(key, len(BOUNDS) + 1)
    bucket, batches = np.searchsorted(BOUNDS, lengths.max(axis=1)), []
    for number, (time_, bucket_key) in enumerate(zip(BOUNDS, keys)):
        rows = np.flatnonzero(bucket == number)
        rows = rows[np.asarray(jax.random.permutation(bucket_key, len(rows)))]
        whole = len(rows) - len(rows) % batch_size
        batches += [(part, time_) for part in rows[:whole].reshape(-1, batch_size)]
    return [batches[i] for i in np.asarray(jax.random.permutation(order_key, len(batches)))]


# --- model ---


class Pooled(nn.Layer):
    """The maximum over the real steps: ``(..., time, features) -> (..., features)``."""

    def fwd(self, x, trainables, non_trainables, *, lengths, key=None, inference_mode=False):
        real = (jnp.arange(x.shape[-2]) < lengths[..., None])[..., None]
        return jnp.max(jnp.where(real, x, jnp.finfo(x.dtype).min), axis=-2), ()


class Compare(nn.Layer):
    """Two vectors, their distance and their product, side by side: ``(..., 2, features) -> (..., 4 features)``."""

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        first, second = x[..., 0, :], x[..., 1, :]
        return jnp.concatenate([first, second, abs(first - second), first * second], axis=-1), ()


def classifier(features, dropout):
    """From the vectors of all words to logits: pool, compare both sentences, and a perceptron."""
    return (
        Pooled(), Compare(), nn.Linear(2 * features), nn.Bias(), nn.F(jax.nn.relu), nn.Dropout(dropout), nn.Linear(3), nn.Bias(),
    )  # fmt: skip


# --- training ---


def loss(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def schedule(epochs, rate):
    """The rate falls in a straight line, epoch by epoch. A new rate does not trace again."""
    return lambda epoch: optim.Chain(
        optim.ClipByGlobalNorm(1.0), optim.AdamW(rate * (1 - epoch / epochs), weight_decay=DECAY)
    )


def run_epoch(step, optimizer, run, data_set, batch_size, epochs):
    """One epoch; ``run`` holds all that it depends on: the state, the key, and the number of epochs done."""
    x, lengths, labels = data_set
    key, order_key, steps_key = jax.random.split(run["key"], 3)
    batches = bucketed(order_key, lengths, batch_size)
    state, losses = run["state"], []
    for number, (rows, time_) in enumerate(batches):
        step_key = jax.random.fold_in(steps_key, number)
        state, value = step(
            optimizer, state, step_key, x[rows, :, :time_], labels[rows], lengths=lengths[rows]
        )
        losses.append(value)
        if sys.stderr.isatty() and number % 50 == 0:
            print(
                f"\repoch {run['epoch'] + 1} of {epochs}: batch {number} of {len(batches)}",
                end="",
                file=sys.stderr,
            )
    mean = float(np.mean(jax.device_get(losses))) if losses else float("nan")
    return {"state": state, "key": key, "epoch": run["epoch"] + 1}, mean


def train(
    make_model, rate, parts, epochs, seed, features, batch_size=BATCH_SIZE, watch=False, directory=None, hypothesis_only=False
):  # fmt: skip
    """Train on the first of ``parts``, test on the second; with ``watch`` after each epoch.

    Args:
      make_model: ``(size of the vocabulary, features) -> layer``.
      rate: the learning rate of the first epoch.
      directory: where a checkpoint and a line of the log are written after each epoch, and training goes on from the last one.

    Returns:
      The accuracies on the test set, of one epoch each, the last one last; and the mean loss of each epoch.
    """
    known = vocabulary(parts[0])
    ours, theirs = (arrays(part, known, hypothesis_only) for part in parts)
    model = make_model(len(known) + 2, features)
    init_key, key = jax.random.split(jax.random.key(seed))
    trainables, non_trainables = model.init(init_key, ours[0][:1], lengths=ours[1][:1])
    optimizer, step = schedule(epochs, rate), training.make_step(model, loss)
    run = {
        "state": training.State(trainables, non_trainables, optimizer(0).init(trainables)),
        "key": key,
        "epoch": 0,
    }
    evaluate, losses, accuracies = training.make_evaluation(model, training.is_right), [], []

    def test():
        state = run["state"]
        return float(
            evaluate(state.trainables, state.non_trainables, theirs[0], theirs[2], lengths=theirs[1])
        )

    with contextlib.ExitStack() as stack:
        checkpoints, log = None, None
        if directory is not None:
            Path(directory).mkdir(parents=True, exist_ok=True)
            checkpoints = stack.enter_context(saving.Checkpoints(Path(directory) / "checkpoints"))
            run, losses = resume(checkpoints, run, (epochs, seed))
            log = stack.enter_context(training.Log(Path(directory) / "log.jsonl", after=run["epoch"]))
        while run["epoch"] < epochs:
            run, value = run_epoch(step, optimizer(run["epoch"]), run, ours, batch_size, epochs)
            losses.append(value)
            line = f"epoch {run['epoch']:2d} of {epochs}: loss {value:.3f}"
            if watch:
                accuracies.append(test())
                line += f", accuracy {accuracies[-1]:.2%}"
            print(line, flush=True)
            if checkpoints is not None:
                save(checkpoints, run, losses, (epochs, seed))
                log.write(run["epoch"], {"loss": np.float32(value)})
    if not watch:
        accuracies.append(test())
    return accuracies, losses


def main(name, make_model, rate, description, arguments=None):
    """The command line of an example; the accuracy of the last epoch."""
    parser = argparse.ArgumentParser(
        prog=f"python -m examples.{name}", description=description.split("\n")[0]
    )
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--features", type=int, default=256, help="of each layer, and direction")
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE)
    parser.add_argument("--folder", type=Path, help="where snli_1.0.zip is, or shall be put")
    parser.add_argument("--hypothesis-only", action="store_true", help="hide the first sentence: a baseline")
    parser.add_argument(
        "--checkpoints", type=Path, help="a directory: save after each epoch, resume from the last"
    )
    parser.add_argument(
        "--validate", action="store_true", help="test on the validation pairs, after each epoch"
    )
    parser.add_argument("--record", action="store_true", help="train, test, write the result")
    options = parser.parse_args(arguments)
    if options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")
    if options.record and options.validate:
        parser.error("--record tests on the test pairs")
    begin = time.perf_counter()
    try:
        train_set, validation, test_set = data.snli(folder=options.folder)
        parts = train_set, validation if options.validate else test_set
        accuracies, losses = train(
            make_model, rate, parts, options.epochs, options.seed, options.features, options.batch_size, options.validate,
            options.checkpoints, options.hypothesis_only,
        )  # fmt: skip
    except (data.DataError, saving.CheckpointError) as error:
        parser.exit(1, f"{error}\n")
    kind = "validation" if options.validate else "test"
    print(f"accuracy on {len(parts[1].labels):,} {kind} pairs: {accuracies[-1]:.2%}")
    if options.record:
        result = {
            "accuracy": round(accuracies[-1], 4),
            "pairs": {"train": len(train_set.labels), "test": len(test_set.labels)},
            "losses": [round(value, 4) for value in losses],
            "minutes": round((time.perf_counter() - begin) / 60, 1),
        }
        recording.write(name, result, [f"examples.{name}", *(arguments or sys.argv[1:])])
    return accuracies[-1]
