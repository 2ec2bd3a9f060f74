"""Find each bracket's partner, by encoders with other positions and other depths: at the trained length of 24, and at 48.

.venv/bin/python -m examples.brackets                      # all kinds, three seeds each
.venv/bin/python -m examples.brackets --kind rotary --seeds 1
.venv/bin/python -m examples.brackets --record             # and write the record that the chapter shows
"""

import argparse
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

from examples import recording
from mlax_tutorial import nn, optim, training

LENGTH, LONGEST = 24, 48
FEATURES, HEADS, BATCH_SIZE = 64, 4, 64
RATE, WARM_UP = 3e-3, 30


def brackets(random, count, length=LENGTH):
    """Rows of ( [ ) ] as 0, 1, 2, 3, and the place of each partner: two arrays ``(count, length)``, int32."""
    x, partners = np.zeros((2, count, length), np.int32)
    for row in range(count):
        waiting = []
        for t in range(length):
            room = len(waiting) < length - t
            if not waiting or (room and random.random() < 0.5):
                x[row, t] = random.integers(2)
                waiting.append(t)
            else:
                s = waiting.pop()
                x[row, t] = x[row, s] + 2
                partners[row, t], partners[row, s] = s, t
    return x, partners


def drawn_places(random, count):
    """Places for each row, in order, out of as many as the longest row has: ``(count, LENGTH)``, int32."""
    every = np.tile(np.arange(LONGEST, dtype=np.int32), (count, 1))
    return np.sort(random.permuted(every, axis=1)[:, :LENGTH], axis=1)


class Finder(nn.Composite):
    """Logits for each pair of a bracket and a place: ``(..., length) -> (..., length, length)``.

    Args:
      blocks: maps ``(..., length, features)`` to itself.
      places: a table of places, or ``None``.
    """

    blocks: nn.Layer
    places: nn.Layer | None = nn.Embed(LONGEST, FEATURES)
    embed: nn.Layer = nn.Embed(4, FEATURES)
    norm: nn.Layer = nn.LayerNorm(affine=True)
    query: nn.Layer = nn.Linear(FEATURES)
    key: nn.Layer = nn.Linear(FEATURES)

    def forward(self, call, x, *, places=None):
        y = call.embed(x)
        if self.places is not None:
            y = y + call.places(call.place if places is None else places)
        y = call.norm(call.blocks(y))
        logits = jnp.einsum("...qd,...kd->...qk", call.query(y), call.key(y))
        return logits / np.float32(FEATURES**0.5)


def blocks(depth=1, **options):
    return nn.Stack(nn.TransformerBlock(FEATURES, HEADS, **options), depth)


KINDS = {
    "no block": Finder(nn.F(lambda y: y)),
    "no places": Finder(blocks(), None),
    "rotary": Finder(blocks(rotary_base=100.0), None),
    "learned places": Finder(blocks()),
    "learned places, drawn": Finder(blocks()),
}


def loss(logits, partners):
    return optax.losses.softmax_cross_entropy_with_integer_labels(logits, partners).mean()


def train(kind, seed, steps):
    """The trainables after so many steps."""
    random, model = np.random.default_rng(seed), KINDS[kind]
    x, partners = brackets(random, min(steps * BATCH_SIZE, 32_000))
    inputs = {"places": drawn_places(random, len(x))} if kind.endswith("drawn") else {}
    init_key, key = jax.random.split(jax.random.key(seed))
    trainables, _ = model.init(init_key, x[:1], **{name: value[:1] for name, value in inputs.items()})
    optimizer = optim.Adam(optim.WarmUp(optim.LinearDecay(RATE, steps), WARM_UP))
    state = trainables, (), optimizer.init(trainables)
    epochs = max(1, steps // (len(x) // BATCH_SIZE))
    step = training.make_step(model, loss)
    return training.fit(
        key, step, optimizer, state, x, partners, epochs=epochs, batch_size=BATCH_SIZE, inputs=inputs
    )[0]


def test(kind, trainables, length, count=1000):
    """Shares of brackets and of whole rows that are right, for the same rows whatever the seed."""
    x, partners = brackets(np.random.default_rng(10_000 + length), count, length)
    logits = jax.jit(lambda w, x: KINDS[kind].fwd(x, w, ())[0])
    answers = np.concatenate([np.argmax(logits(trainables, part), axis=-1) for part in np.split(x, 4)])
    right = answers == partners
    return float(right.mean()), float(right.all(axis=1).mean())


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kind", choices=KINDS, help="one alone; by default all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument(
        "--record", action="store_true", help="write mlax_tutorial/data/recorded/brackets.json"
    )
    options = parser.parse_args(arguments)
    if min(options.seeds, options.steps) < 1:
        parser.error("--seeds and --steps must be at least 1")
    if options.record and options.kind:
        parser.error("--record is of all kinds")
    begin, results = time.perf_counter(), {}
    for kind in [options.kind] if options.kind else KINDS:
        found = results[kind] = {str(length): {"brackets": [], "rows": []} for length in (LENGTH, LONGEST)}
        for seed in range(options.seeds):
            trainables = train(kind, seed, options.steps)
            for length in (LENGTH, LONGEST):
                for what, share in zip(("brackets", "rows"), test(kind, trainables, length)):
                    found[str(length)][what].append(round(share, 4))
            last = ", ".join(
                f"{length}: {found[str(length)]['brackets'][-1]:.2%}" for length in (LENGTH, LONGEST)
            )
            print(f"{kind}, seed {seed}, brackets in rows of {last}", flush=True)
    if options.record:
        minutes = round((time.perf_counter() - begin) / 60, 1)
        result = {"steps": options.steps, "results": results, "minutes": minutes}
        recording.write("brackets", result, ["examples.brackets", *(arguments or sys.argv[1:])])
    return results


if __name__ == "__main__":
    main()
