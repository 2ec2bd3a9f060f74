"""The language of a surname: thirteen languages, a bidirectional LSTM and its rivals, five seeds each.

    .venv/bin/python -m examples.names_lstm                       # train the bidirectional LSTM once, test, print the accuracy
    .venv/bin/python -m examples.names_lstm --model states        # another of: grams, linear, forward, unmasked, bilstm, states
    .venv/bin/python -m examples.names_lstm --validate            # for tuning: hold out a fifth of the training names instead
    .venv/bin/python -m examples.names_lstm --record              # all models, five seeds, and write the result
    .venv/bin/python -m examples.names_lstm --checkpoints DIR     # go on from what lies there, bit for bit; the log is there, too

The settings below were chosen on the held-out names alone; the test names are looked at once, after the last epoch.
"""

import argparse
import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import recording
from examples.checkpoints import resume, save
from mlax_tutorial import data, nn, optim, saving, training

TIME = 16  # letters, of the longest name
BATCH_SIZE = 128
CLASSES = len(data.NAME_LANGUAGES)
LONGEST_GRAM = 4
SEEDS = 5


# --- names as arrays ---


def letters(names, alphabet):
    """Numbers of letters, ``(n, 16)``, 0 for padding, and how many there are of each name, ``(n,)``."""
    ids = np.zeros((len(names), TIME), np.int32)
    for row, name in zip(ids, names):
        row[: len(name)] = [alphabet.get(letter, len(alphabet) + 1) for letter in name]
    return ids, np.array([len(name) for name in names], np.int32)


def grams(names, known):
    """Numbers of the runs of one to four letters that are known, ``(n, 66)``, 0 for padding, and how many there are."""
    rows = [[known[gram] for gram in grams_of(name) if gram in known] for name in names]
    ids = np.zeros((len(rows), sum(TIME + 3 - n for n in range(1, LONGEST_GRAM + 1))), np.int32)
    for row, found in zip(ids, rows):
        row[: len(found)] = found
    return ids, np.array([len(row) for row in rows], np.int32)


def grams_of(name):
    marked = f"^{name}$"
    return [marked[i : i + n] for n in range(1, LONGEST_GRAM + 1) for i in range(len(marked) - n + 1)]


def numbered(things):
    """A number for each thing, from 1, in the order in which they come."""
    return {thing: number for number, thing in enumerate(dict.fromkeys(things), start=1)}


# --- models ---


class SumOfRows(nn.Composite):
    """One row of weights for each gram; a name's logits are the sum of its rows: logistic regression."""

    size: int

    def children(self):
        return {
            "rows": nn.Embed(self.size, CLASSES, embed_initializer=jax.nn.initializers.zeros),
            "bias": nn.Bias(),
        }

    def forward(self, call, ids, *, lengths):
        real = jnp.arange(ids.shape[-1]) < lengths[..., None]
        return call.bias(jnp.sum(call.rows(ids), axis=-2, where=real[..., None]))


class MeanOfReal(nn.Layer):
    """The mean over the real steps: ``(batch, time, features) -> (batch, features)``."""

    def fwd(self, x, trainables, non_trainables, *, lengths, key=None, inference_mode=False):
        real = (jnp.arange(x.shape[-2]) < lengths[..., None])[..., None]
        return jnp.sum(x, axis=-2, where=real) / jnp.maximum(lengths, 1)[..., None].astype(x.dtype), ()


class StateSpace(nn.Layer):
    """A selective state-space layer: a linear recurrence whose decay, input and output depend on the input (Gu and Dao, 2023)."""

    states: int = 4

    def init(self, key, x):
        features = x.shape[-1]
        bias_key, kernel_key = jax.random.split(key)
        steps = jnp.log(jnp.expm1(jnp.geomspace(0.01, 1, features)))
        return {
            "decay": jnp.log(jnp.arange(1.0, self.states + 1)),
            "skip": jnp.ones(features),
            "bias": jnp.concatenate([steps, jax.random.normal(bias_key, (2 * self.states,))]),
            "kernel": jax.nn.initializers.lecun_normal()(kernel_key, (features, features + 2 * self.states)),
        }, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        w, features = trainables, x.shape[-1]
        sums = x @ w["kernel"] + w["bias"]
        step, b, c = jnp.split(sums, [features, features + self.states], axis=-1)
        step = jax.nn.softplus(step)[..., None]  # (batch, time, features, 1)
        a = jnp.exp(-step * jnp.exp(w["decay"]))  # (batch, time, features, states)
        h, _ = nn.linear_recurrence(a, step * b[..., None, :] * x[..., None], axis=-3)
        return jnp.einsum("...fs,...s->...f", h, c) + w["skip"] * x, non_trainables


def recurrent(vocabulary, layer):
    return nn.Series(
        nn.Embed(vocabulary, 32), nn.Dropout(0.2), layer, nn.Dropout(0.4), nn.Linear(CLASSES), nn.Bias()
    )


class Unmasked(nn.Composite):
    """A layer that is not told the lengths: the padding is read as if it were letters."""

    layer: nn.Layer

    def forward(self, call, x, *, lengths):
        return call.layer(x)


def state_spaces(vocabulary):
    block = nn.Residual(nn.Series(nn.LayerNorm(), StateSpace(), nn.F(jax.nn.gelu), nn.Linear(64)))
    return nn.Series(
        nn.Embed(vocabulary, 64), nn.Dropout(0.2), block, block, MeanOfReal(), nn.Dropout(0.4), nn.Linear(CLASSES), nn.Bias(),
    )  # fmt: skip


class Recipe(NamedTuple):
    """How a model is made and trained."""

    about: str
    make: Callable[[int], nn.Layer]  # from how many letters, or grams, there are
    epochs: int
    rate: float
    on_grams: bool = False


BOTH = nn.Bidirectional(nn.LSTMCell(96), output="last")
RECIPES = {
    "linear": Recipe("logistic regression on runs of 1 to 4 letters", SumOfRows, 4, 0.01, on_grams=True),
    "forward": Recipe(
        "an LSTM of 96 features",
        lambda n: recurrent(n, nn.Recurrent(nn.LSTMCell(96), output="last")),
        15,
        0.005,
    ),
    "unmasked": Recipe(
        "a bidirectional LSTM that reads the padding", lambda n: recurrent(n, Unmasked(BOTH)), 15, 0.005
    ),
    "bilstm": Recipe("a bidirectional LSTM of 96 features", lambda n: recurrent(n, BOTH), 15, 0.005),
    "states": Recipe("two selective state-space layers of 64 features", state_spaces, 15, 0.005),
}


def encoder(recipe, names):
    """A function from names to arrays, and how many numbers it may give."""
    if recipe.on_grams:
        known = numbered(gram for name in names for gram in grams_of(name))
        return lambda some: grams(some, known), len(known) + 1
    alphabet = numbered(sorted(set("".join(names))))
    return lambda some: letters(some, alphabet), len(alphabet) + 2


def count(train_set, test_set, unseen=0.1):
    """Naive Bayes on runs of one to four letters: nothing is trained, and no seed matters."""
    known = numbered(gram for name in train_set.names for gram in grams_of(name))
    counts = np.full((len(known) + 1, CLASSES), unseen)
    counts[0] = 1  # the padding, which tells nothing
    ids, lengths = grams(train_set.names, known)
    for row, length, label in zip(ids, lengths, train_set.labels):
        counts[row[:length], label] += 1
    scores = np.log(counts) - np.log(counts[1:].sum(axis=0))
    scores[0] = 0
    ids, _ = grams(test_set.names, known)
    logits = scores[ids].sum(axis=1) + np.log(np.bincount(train_set.labels, minlength=CLASSES))
    return float(np.mean(logits.argmax(axis=-1) == test_set.labels))


# --- training ---


def loss(logits, labels):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def schedule(recipe, epochs):
    """The rate falls in a straight line, epoch by epoch. A new rate does not trace again."""
    clip = optim.ClipByGlobalNorm(1.0)
    return lambda epoch: optim.Chain(clip, optim.Adam(recipe.rate * (1 - epoch / epochs)))


def run_epoch(step, optimizer, run, data_set):
    """One epoch; ``run`` holds all that it depends on: the state, the key, and the number of epochs done."""
    (x, lengths), labels = data_set
    key, order_key, steps_key = jax.random.split(run["key"], 3)
    order = training.batches(order_key, len(x), BATCH_SIZE)
    state, losses = run["state"], []
    for rows, step_key in zip(np.asarray(order), jax.random.split(steps_key, len(order))):
        state, value = step(optimizer, state, step_key, x[rows], labels[rows], lengths=lengths[rows])
        losses.append(value)  # on the device: float(value) would wait for each step
    return {"state": state, "key": key, "epoch": run["epoch"] + 1}, float(np.mean(jax.device_get(losses)))


def train(name, train_set, test_set, seed, epochs=None, watch=False, directory=None):
    """Train one model; then, or with ``watch`` after each epoch, test.

    Args:
      directory: where a checkpoint and a line of the log are written after each epoch, and training goes on from the last one.

    Returns:
      The accuracies on the test set, of one epoch each, the last one last; and the mean loss of each epoch.
    """
    recipe = RECIPES[name]
    epochs = epochs or recipe.epochs
    encode, size = encoder(recipe, train_set.names)
    model = recipe.make(size)
    ours, theirs = ((encode(part.names), part.labels) for part in (train_set, test_set))
    init_key, key = jax.random.split(jax.random.key(seed))
    first = {"lengths": ours[0][1][:1]}
    trainables, non_trainables = model.init(init_key, ours[0][0][:1], **first)
    optimizer, step = schedule(recipe, epochs), training.make_step(model, loss)
    state = training.State(trainables, non_trainables, optimizer(0).init(trainables))
    run, losses, accuracies = {"state": state, "key": key, "epoch": 0}, [], []
    evaluate = training.make_evaluation(model, training.is_right)

    def test():
        (x, lengths), labels = theirs
        state = run["state"]
        return float(evaluate(state.trainables, state.non_trainables, x, labels, lengths=lengths))

    with contextlib.ExitStack() as stack:
        checkpoints, log = None, None
        if directory is not None:
            directory = Path(directory) / f"{name}-{seed}"
            directory.mkdir(parents=True, exist_ok=True)
            checkpoints = stack.enter_context(saving.Checkpoints(directory / "checkpoints"))
            run, losses = resume(checkpoints, run, (epochs, seed))
            log = stack.enter_context(training.Log(directory / "log.jsonl", after=run["epoch"]))
        while run["epoch"] < epochs:
            run, value = run_epoch(step, optimizer(run["epoch"]), run, ours)
            losses.append(value)
            line = f"{name}, seed {seed}, epoch {run['epoch']:2d} of {epochs}: loss {value:.3f}"
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


def hold_out(train_set):
    """Every fifth training name stands in for the test set."""
    out = np.arange(len(train_set.names)) % 5 == 0
    return tuple(
        data.Names(tuple(name for name, one in zip(train_set.names, chosen) if one), train_set.labels[chosen])
        for chosen in (~out, out)
    )


def record(train_set, test_set):
    """All models, five seeds each, tested once after the last epoch."""
    results = {
        "counted": {
            "about": "naive Bayes on runs of 1 to 4 letters",
            "accuracies": [round(count(train_set, test_set), 4)],
        }
    }
    for name, recipe in RECIPES.items():
        begin, accuracies, losses = time.perf_counter(), [], []
        for seed in range(SEEDS):
            (accuracy,), curve = train(name, train_set, test_set, seed)
            accuracies.append(round(accuracy, 4))
            losses.append([round(value, 4) for value in curve])
        minutes = round((time.perf_counter() - begin) / 60, 1)
        results[name] = {
            "about": recipe.about,
            "accuracies": accuracies,
            "losses": losses,
            "minutes": minutes,
        }
        print(
            f"{name}: {np.mean(accuracies):.2%}, from {min(accuracies):.2%} to {max(accuracies):.2%}",
            flush=True,
        )
    return {"names": {"train": len(train_set.names), "test": len(test_set.names)}, "results": results}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=["grams", *RECIPES], default="bilstm", help="bilstm by default")
    parser.add_argument("--epochs", type=int, help="by default what suits the model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--checkpoints", type=Path, help="a directory: save after each epoch, resume from the last"
    )
    parser.add_argument("--validate", action="store_true", help="test on held-out training names")
    parser.add_argument("--record", action="store_true", help="all models, five seeds, and write the result")
    options = parser.parse_args(arguments)
    if options.epochs is not None and options.epochs < 1:
        parser.error(f"--epochs must be at least 1, got {options.epochs}")
    if options.record and (options.validate or options.checkpoints or options.epochs):
        parser.error("--record trains all models as they are, and tests on the test names")
    train_set, test_set = data.names()
    if options.record:
        result = record(train_set, test_set)
        recording.write("names_lstm", result, ["examples.names_lstm", *(arguments or sys.argv[1:])])
        return result
    if options.validate:
        train_set, test_set = hold_out(train_set)
    if options.model == "grams":
        accuracy = count(train_set, test_set)
    else:
        try:
            accuracies, _ = train(
                options.model,
                train_set,
                test_set,
                options.seed,
                options.epochs,
                options.validate,
                options.checkpoints,
            )
        except saving.CheckpointError as error:
            parser.exit(1, f"{error}\n")
        accuracy = accuracies[-1]
    print(
        f"accuracy on {len(test_set.names):,} {'held-out' if options.validate else 'test'} names: {accuracy:.2%}"
    )
    return accuracy


if __name__ == "__main__":
    main()
