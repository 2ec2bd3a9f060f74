"""One training step of a decoder of 110 million weights in bfloat16: how much of a GPU's own rate it reaches, beside PyTorch.

    .venv/bin/python -m examples.decoder                    # on a GPU; should take less than five minutes
    .venv/bin/python -m examples.decoder --record           # and write the record
    .venv/bin/python -m examples.decoder --size tiny        # the same in small, on a CPU
    .venv/bin/python -m examples.decoder --torch PYTHON     # by another interpreter that has PyTorch

What a step must compute is counted by the formula of PaLM's report (appendix B): 6 N + 12 L d T operations a token, for N weights, L layers
of d features and a context of T. This, over the time of a step, is divided by the rate of one large product in bfloat16 on the same device.
The step is compiled in several variants, by other flags of XLA and with another loss, and the fastest is compared with the same network in
PyTorch, eager and compiled, in turns. PyTorch runs in a process of its own; where it is not installed, it is left out.
"""

import argparse
import contextlib
import functools
import os
import statistics
import sys
import time
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import contest, pytorch
from benchmarks.twins._sides import by_path
from examples import recording
from mlax_tutorial import nn, optim
from mlax_tutorial.losses import chunked_cross_entropy
from mlax_tutorial.precision import Policy

TORCH = pytorch.WORKER.with_name("decoder.py")
RATE, DECAY, SECOND_DECAY = 1e-3, 0.1, 0.95
BATCHES = 4  # that are trained on, round and round
ALIKE = 0.01  # how far first losses in bfloat16 may be apart, as a share
TORCHES = {"PyTorch, eager": False, "PyTorch, compiled": True}
BUDGET = 120.0  # seconds after which no further variant is compiled


# --- the network ---


class Size(NamedTuple):
    layers: int
    width: int
    heads: int
    context: int
    words: int
    batch: int
    product: int  # rows and columns of the large product
    steps: int  # between two readings of the clock
    rounds: int

    @property
    def weights(self):
        return self.words * self.width + 12 * self.layers * self.width**2

    @property
    def tokens(self):
        return self.batch * self.context

    def flops(self, causal=False):
        """Of a step, by the formula: of attention all pairs count, or with ``causal`` the half that a causal mask leaves."""
        attention = 12 * self.layers * self.width * self.context
        return self.tokens * (6 * self.weights + attention // (2 if causal else 1))


# Heads of 128 features: half as many exponentials as with 64, for the same products.
SIZES = {
    "full": Size(12, 768, 6, 1024, 32_768, 16, product=8192, steps=5, rounds=20),
    "tiny": Size(2, 64, 2, 64, 256, 4, product=512, steps=3, rounds=3),
}


class Decoder(nn.Composite):
    """Ids to what the logits are made of: ``(batch, time) -> (batch, time, width)``. The embedding is the last kernel, too."""

    words: nn.Layer
    blocks: nn.Layer
    norm: nn.Layer

    def forward(self, call, ids):
        return call.norm(call.blocks(call.words(ids)))


def squared_relu(x):
    return jnp.square(jax.nn.relu(x))


def make_model(size, dtype="bfloat16", unrolled=True):
    # cuDNN's attention knows half precision alone; on a CPU the layer takes its plain form by itself.
    fused = "cudnn" if dtype == "bfloat16" else None
    attention = nn.MultiHeadAttention(size.heads, causal=True, rotary_base=10_000, implementation=fused)
    attend = nn.Series(norm=nn.RMSNorm(), attention=attention)
    think = nn.Series(
        norm=nn.RMSNorm(), wide=nn.Linear(4 * size.width), relu=nn.F(squared_relu), narrow=nn.Linear(size.width)
    )  # fmt: skip
    block = nn.Series(attend=nn.Residual(attend), think=nn.Residual(think))
    blocks = nn.Stack(block, size.layers, unroll=size.layers if unrolled else 1)
    model = Decoder(nn.Embed(size.words, size.width), blocks, nn.RMSNorm())
    return Policy(dtype, output_dtype=dtype).apply(model)


# --- the loss ---


@jax.custom_vjp
def cross_entropy(logits, ids):
    """The mean cross entropy of logits in half precision, of which float32 copies are never stored.

    JAX's own derivative keeps the exponentials of all logits, in float32. This one keeps a number a token, and makes the gradient from the
    logits themselves.
    """
    return _forward(logits, ids)[0]


def _forward(logits, ids):
    total = jax.nn.logsumexp(logits.astype(jnp.float32), axis=-1)
    own = jnp.take_along_axis(logits, ids[..., None], axis=-1)[..., 0]
    return jnp.mean(total - own.astype(jnp.float32)), (logits, ids, total)


def _backward(kept, slope):
    logits, ids, total = kept
    chances = jnp.exp(logits.astype(jnp.float32) - total[..., None])
    wanted = jax.nn.one_hot(ids, logits.shape[-1], dtype=jnp.float32)
    return ((slope / ids.size) * (chances - wanted)).astype(logits.dtype), None


cross_entropy.defvjp(_forward, _backward)


def make_loss(model, chunk_size=None):
    """A function of weights and ids ``(batch, time + 1)``; with a ``chunk_size`` the logits never exist whole."""

    def loss(w, ids):
        hidden, _ = model.fwd(ids[:, :-1], w, ())
        kernel = w["words"]["embed"].T
        if chunk_size is not None:
            return chunked_cross_entropy(hidden, kernel, ids[:, 1:], chunk_size=chunk_size)
        return cross_entropy(hidden @ kernel.astype(hidden.dtype), ids[:, 1:])

    return loss


# --- a step, in variants ---


class Variant(NamedTuple):
    about: str
    unrolled: bool = True
    chunk_size: int | None = None
    flags: dict = {}  # of XLA, for this program alone


# In the order in which they are tried. Each must compute the same.
VARIANTS = {
    "plain": Variant("layers unrolled, logits whole, XLA's defaults"),
    "cublas": Variant("products by cuBLAS alone", flags={"xla_gpu_enable_triton_gemm": False}),
    "merged": Variant("products of one input merged", flags={"xla_gpu_dot_merger_threshold_mb": 256}),
    "chunked": Variant("logits in chunks of 4,096 tokens", chunk_size=4096),
    "scan": Variant("layers as a loop", unrolled=False),
}


def make_optimizer():
    return optim.AdamW(RATE, second_decay=SECOND_DECAY, weight_decay=DECAY, where=optim.kernels)


def make_step(size, variant, dtype="bfloat16"):
    """``step(optimizer, state, ids)``, one program: forward, backward and update. The old state is donated."""
    loss = make_loss(make_model(size, dtype, variant.unrolled), variant.chunk_size)

    # training.make_step has no place for XLA's flags.
    @functools.partial(jax.jit, donate_argnums=1, compiler_options=variant.flags)
    def step(optimizer, state, ids):
        w, moments = state
        value, gradients = jax.value_and_grad(loss)(w, ids)
        updates, moments = optimizer.step(gradients, moments, w)
        return (optim.apply_updates(w, updates), moments), value

    return step


def make_weights(size, seed=0):
    ids = jax.ShapeDtypeStruct((size.batch, size.context), jnp.int32)
    return jax.jit(lambda key: make_model(size).init(key, ids)[0])(jax.random.key(seed))


def make_batches(size, seed=0):
    """Ids of Zipf's law, ``(BATCHES, batch, context + 1)``: the frequencies of words decide how many gradients meet in one row."""
    shares = np.random.default_rng(seed).random((BATCHES, size.batch, size.context + 1))
    return (np.exp(shares * np.log(size.words + 1)) - 1).astype(np.int32)


class Training:
    """One state, on which all variants take turns, so that they need the memory of one."""

    def __init__(self, size, w, batches, dtype="bfloat16"):
        self.size, self.dtype, self.optimizer = size, dtype, make_optimizer()
        self.start(w)
        self.batches, self.steps, self.losses = [jnp.asarray(batch) for batch in batches], {}, []

    def start(self, w):
        self.state = w, self.optimizer.init(w)

    def begin(self, name):
        """Compile a variant, take a step, and return the seconds that took.

        Raises:
          JaxRuntimeError: if it does not run here. The next one does not suffer from it.
        """
        self.steps[name] = make_step(self.size, VARIANTS[name], self.dtype)
        begun = time.perf_counter()
        try:
            self.go(name, 1)
        except jax.errors.JaxRuntimeError:
            if any(
                leaf.is_deleted() for leaf in jax.tree.leaves(self.state)
            ):  # donated, and nothing came back
                self.start(make_weights(self.size))
            raise
        return time.perf_counter() - begun

    def go(self, name, count):
        for _ in range(count):
            ids = self.batches[len(self.losses) % len(self.batches)]
            self.state, loss = self.steps[name](self.optimizer, self.state, ids)
            self.losses.append(loss)
        jax.block_until_ready((self.state, loss))

    def seconds(self, name):
        """Of a step, the mean of some, after one that is not counted."""
        self.go(name, 1)
        begun = time.perf_counter()
        self.go(name, self.size.steps)
        return (time.perf_counter() - begun) / self.size.steps


def try_variants(training, names, say=print, budget=BUDGET):
    """Compile variants and time them in turns: their seconds a step, of those that run here."""
    begun, compiled = time.perf_counter(), {}
    for name in names:
        if time.perf_counter() - begun > budget:
            say(f"{name}: not tried, to stay within five minutes")
            continue
        try:
            compiled[name] = training.begin(name)
        except jax.errors.JaxRuntimeError as error:  # a flag that this XLA has no more, or too little memory
            say(f"{name}: left out, {str(error).splitlines()[0][:200]}")
    if not compiled:
        raise RuntimeError("no variant runs on this device")
    clocks = {name: functools.partial(training.seconds, name) for name in compiled}
    found = {name: statistics.median(each) for name, each in contest.in_turns(clocks, 3).items()}
    for name, spent in found.items():
        say(f"{name}: {1e3 * spent:.2f} ms, {VARIANTS[name].about}; first call {compiled[name]:.0f} s")
    return found


# --- beside the device, and PyTorch ---


def product_clock(size, dtype="bfloat16"):
    """A clock for one product of two large matrices."""
    a, b = jax.random.normal(jax.random.key(1), (2, size.product, size.product), dtype)
    multiply = jax.jit(jnp.matmul)

    def seconds():
        multiply(a, b).block_until_ready()
        begun = time.perf_counter()
        for _ in range(4 * size.steps):
            c = multiply(a, b)
        c.block_until_ready()
        return (time.perf_counter() - begun) / (4 * size.steps)

    return seconds


@contextlib.contextmanager
def torch_process(python, say=print):
    """PyTorch's process and its version; or twice ``None`` and a line that says why."""
    if not Path(python).exists():
        say(f"PyTorch is left out: there is no {python}. `make .venv-torch/.made` installs it.")
        yield None, None
        return
    with pytorch.Worker([str(python), str(TORCH)]) as worker:
        try:
            where, version = worker.ask("device")
        except (RuntimeError, BrokenPipeError) as error:
            say(f"PyTorch is left out: {error}")
            where = None
        if where == "cpu" and jax.default_backend() != "cpu":
            say(
                f"PyTorch is left out: version {version} of {python} sees no GPU. Give --torch one that does."
            )
            where = None
        yield (worker, version) if where else (None, None)


def begin_torch(worker, say=print):
    """PyTorch, eager and compiled, as far as they run here: their first losses."""
    found = {}
    for name, compiled in TORCHES.items():
        try:
            losses, spent = worker.ask("begin", compiled, 3)
        except RuntimeError as error:
            say(f"{name} is left out: {str(error).splitlines()[0][:200]}")
            continue
        found[name] = losses
        say(f"{name}: first call {spent:.0f} s")
    return found


def compare(size, names=tuple(VARIANTS), python=pytorch.PYTHON, dtype="bfloat16", say=print):
    """All that the example finds, as a record has it.

    Raises:
      RuntimeError: if PyTorch computes something else, or nothing runs.
    """
    w, batches = make_weights(size), make_batches(size)
    say(f"{size.weights:,} weights, {size.batch} x {size.context:,} tokens, {dtype}, {jax.devices()[0].device_kind}")  # fmt: skip
    say(
        f"a step: {size.flops() / 1e12:.4g} TFLOP = {size.tokens:,} tokens x "
        f"(6 x {size.weights:,} weights + 12 x {size.layers} layers x {size.width} x {size.context:,})"
    )
    with torch_process(python, say) as (worker, version):
        first = {}
        if worker is not None:
            worker.ask("load", by_path(w), batches, dtype, RATE, DECAY, SECOND_DECAY)
            first = begin_torch(worker, say)
        training = Training(size, w, batches, dtype)
        del w  # the first step donates it
        variants = try_variants(training, names, say)
        best = min(variants, key=variants.get)
        ours = f"JAX, {best}"
        first[ours] = [float(training.losses[0])]
        check_alike({name: losses[0] for name, losses in first.items()})
        clocks = {"product": product_clock(size, dtype), ours: functools.partial(training.seconds, best)}
        for name in TORCHES.keys() & first:
            clocks[name] = functools.partial(worker.ask, "seconds", TORCHES[name], size.steps)
        times = contest.in_turns(dict(sorted(clocks.items())), size.rounds)
    product, operations = times.pop("product"), 2 * size.product**3
    say(f"a product of {size.product:,} x {size.product:,}: {operations / statistics.median(product) / 1e12:.4g} TFLOP/s")  # fmt: skip
    contenders = {}
    for name, each in sorted(times.items()):
        # Round by round: a device that grows hot slows the product, too.
        shares = [size.flops() / t * p / operations for t, p in zip(each, product)]
        spent = statistics.median(each)
        contenders[name] = {
            "milliseconds": round(1e3 * spent, 3),
            "TFLOP/s": round(size.flops() / spent / 1e12, 4),
            "share": round(statistics.median(shares), 4),
            "shares": [round(share, 4) for share in (min(shares), max(shares))],
            "first loss": round(first[name][0], 5),
        }
        say("{:18} {milliseconds:9.2f} ms  {TFLOP/s:8.4g} TFLOP/s  {share:.3f} of the product's rate".format(name, **contenders[name]))  # fmt: skip
    half = size.flops(causal=True) / size.flops()
    say(
        f"(with the half of attention that a causal mask leaves, 6 N + 6 L d T, all shares are {half:.3f} of these)"
    )
    say(
        f"loss {float(training.losses[0]):.3f}, after {len(training.losses)} steps {float(training.losses[-1]):.3f}"
    )
    return {
        "about": f"a training step in {dtype}, PyTorch in turns",
        "size": size._asdict(),
        "weights": size.weights,
        "flops": {"6 N + 12 L d T": size.flops(), "6 N + 6 L d T": size.flops(causal=True)},
        "product": round(operations / statistics.median(product) / 1e12, 4),
        "variants": {name: round(1e3 * spent, 3) for name, spent in variants.items()},
        "contenders": contenders,
        "losses": [round(float(training.losses[i]), 4) for i in (0, -1)],
        "versions": {"torch": version} if version else {},
    }


def check_alike(first):
    """Refuse to compare networks whose first losses differ."""
    losses = np.array(list(first.values()))
    if not np.ptp(losses) <= ALIKE * losses.min():  # nor if one is NaN
        raise RuntimeError(f"this is not the same network: the losses of the first step are {first}")


def main(arguments: list[str] | None = None) -> dict:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="full", help="full by default; tiny is for a CPU")
    parser.add_argument(
        "--batch", type=int, help="rows of a batch; fewer where memory is short, 16 by default, tiny 4"
    )
    parser.add_argument(
        "--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS), help="those to try; all by default"
    )
    parser.add_argument(
        "--torch", metavar="PYTHON", default=pytorch.PYTHON, help="by default that of .venv-torch"
    )
    parser.add_argument("--record", action="store_true", help="write the result, on a GPU")
    options = parser.parse_args(arguments)
    if options.batch is not None and options.batch < 1:
        parser.error(f"--batch must be at least 1, got {options.batch}")
    if options.record and (options.size != "full" or options.batch or options.variants != list(VARIANTS)):
        parser.error("--record is for the full size as it is, with all variants")
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")  # PyTorch needs some, too
    if options.size == "full" and jax.default_backend() == "cpu":
        parser.error("the full size is for a GPU, and JAX finds none; --size tiny is for a CPU")
    size = SIZES[options.size]
    if options.batch is not None:
        size = size._replace(batch=options.batch)
    try:
        result = compare(size, options.variants, options.torch)
    except RuntimeError as error:
        parser.exit(1, f"{error}\n")
    if options.record:
        recording.write("decoder", result, ["examples.decoder", *(arguments or sys.argv[1:])])
    return result


if __name__ == "__main__":
    main()
