"""Text from a model: draw a token from logits, and go on from a prompt, with a cache, in one ``lax.scan``."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.nn.arrays import (
    accumulator,
    is_array,
    is_floating,
    is_integer,
    is_real,
    key_bits,
    varying_like,
)
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, optional, show
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.rules import integer


def sample(key, logits, temperature=1.0, top_k: int | None = None, top_p=None):
    """Draw an id from logits: ``(..., vocab) -> (...)``, int32.

    Args:
      key: one typed key, from which all rows draw.
      logits: floating; half precision is computed in float32.
      temperature: what logits are divided by, one number or one for each row, which may be traced; 0 takes the most probable id.
      top_k: draw from the ``top_k`` most probable ids only; static.
      top_p: draw from the fewest ids that together have at least this probability, the most probable first, after temperature
        and ``top_k``; may be traced, one number or one for each row.

    Raises:
      ValueError: if ``logits`` are not floating, ``top_k`` is no integer of at least 1, ``temperature`` no finite number of at
        least 0, or ``top_p`` not in [0, 1]. At the numbers in JAX's arrays nobody looks, since that would wait for the device.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> logits = jnp.log(jnp.array([0.1, 0.6, 0.3]))
      >>> ids = sample(jax.random.key(0), jnp.broadcast_to(logits, (1000, 3)), top_p=0.8)
      >>> jnp.bincount(ids, length=3)[0].item(), sample(jax.random.key(0), logits, temperature=0.0).item()
      (0, 1)

    References: Fan, Lewis and Dauphin, *Hierarchical Neural Story Generation* (2018), for ``top_k``; Holtzman et al., *The Curious
    Case of Neural Text Degeneration* (2020), for ``top_p``.
    """
    if not is_floating(logits) or 0 in logits.shape[-1:] or not logits.ndim:
        wanted = "floating-point numbers of shape (..., vocab)"
        raise ValueError(f"sample: logits expect {wanted}, got {describe(logits)}.")
    temperature, top_k, top_p = _checked("sample", temperature, top_k, top_p, logits.shape[:-1])
    return _sample(key, logits, temperature, top_k, top_p)


@functools.partial(jax.jit, static_argnames="top_k")
def _sample(key, logits, temperature, top_k, top_p):
    dtype = accumulator(logits.dtype)

    def each(number):
        return jnp.broadcast_to(jnp.asarray(number, dtype), logits.shape[:-1])[..., None]

    greedy = each(temperature) == 0
    divisor = jnp.where(greedy, jnp.ones((), dtype), each(temperature))
    if top_k is None and top_p is None:  # nothing to sort
        drawn = jax.random.categorical(key, logits.astype(dtype) / divisor, axis=-1)
        return jnp.where(greedy[..., 0], jnp.argmax(logits, axis=-1), drawn).astype(jnp.int32)
    count = logits.shape[-1] if top_k is None else min(top_k, logits.shape[-1])
    logits, order = lax.top_k(logits, count)  # of equal ones the first comes first
    logits = logits.astype(dtype) / divisor
    first = lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1) == 0
    if top_p is not None:
        probabilities = jax.nn.softmax(logits, axis=-1)
        before = jnp.cumsum(probabilities, axis=-1) - probabilities
        logits = jnp.where((before < each(top_p)) | first, logits, -jnp.inf)
    logits = jnp.where(greedy & ~first, -jnp.inf, logits)
    drawn = jax.random.categorical(key, logits, axis=-1)[..., None]
    return jnp.take_along_axis(order, drawn, axis=-1)[..., 0].astype(jnp.int32)


def _checked(name, temperature, top_k, top_p, batch):
    top_k = checked(f"{name}: top_k", optional(integer), top_k)
    temperature = _numbers(f"{name}: temperature", temperature, batch, np.inf, "finite and at least 0")
    return (
        temperature,
        top_k,
        None if top_p is None else _numbers(f"{name}: top_p", top_p, batch, 1, "in [0, 1]"),
    )


def _numbers(name, value, batch, most, wanted):
    """An array, whose numbers are looked at unless they are on the device or traced."""
    array = value if isinstance(value, jax.Array) else np.asarray(value)
    fits = is_real(array.dtype) and _fits(array.shape, batch)
    if fits and not isinstance(value, jax.Array):
        fits = ((array >= 0) & (array <= most) & np.isfinite(array)).all()
    if not fits:
        shape = "one number" + (f", or numbers of shape {batch}" if batch else "")
        got = describe(value) if is_array(value) and value.shape else show(value)
        raise ValueError(f"{name} must be {shape}, {wanted}, got {got}.")
    return array


def _fits(shape, batch):
    return len(shape) <= len(batch) and all(
        size in (1, wanted) for size, wanted in zip(shape[::-1], batch[::-1])
    )


def generate(
    model: Layer, trainables: Any, non_trainables: Any, prompt, lengths=None, *, length: int, key, stop: int | None = None,
    padding: int = 0, temperature=1.0, top_k: int | None = None, top_p=None,
):  # fmt: skip
    """Go on from a prompt, token by token: ``(..., prompt) -> (..., length)``, ids.

    The token at place ``i`` is drawn by :func:`sample` with the key ``jax.random.split(key, length)[i]``. One compiled loop for
    all tokens, over ``model.decode``. Prompts of one length are read at once. Where lengths differ, all rows go through the loop
    together from their first token on, and each takes its prompt's tokens as long as it has some: right for every layer that
    decodes, also one whose state cannot take padding back.

    Args:
      model: from ids ``(..., steps)`` to logits ``(..., steps, vocab)``; it must decode.
      trainables, non_trainables: its variables.
      prompt: integers; each row has at least one.
      lengths: how many of each row count, integers of the shape of the batch, where shorter prompts are padded at the end; by
        default all. A number outside of ``[1, prompt]`` counts as the nearest one inside.
      length: how many tokens each row has in the end, its prompt included; static. Beyond the lengths of the training most models
        fail, unless their attention has a ``window``.
      key: one typed key.
      stop: an id after which a row ends; what follows is ``padding``. In a prompt it ends nothing.
      padding: an id.
      temperature, top_k, top_p: as for :func:`sample`.

    Raises:
      ValueError: if the prompt holds no integers, or is longer than ``length``; ``lengths`` are no integers of the shape of the
        batch; ``length``, ``stop`` or ``padding`` is no id or size, or ``stop`` none of the model's; or as :func:`sample`.
      LayerError: if a layer does not decode.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, prompt = nn.Series(nn.Embed(7, 4), nn.Recurrent(nn.GRUCell(4)), nn.Linear(7)), jnp.array([[1, 2, 3]])
      >>> variables = model.init(jax.random.key(0), prompt)
      >>> generate(model, *variables, prompt, length=6, key=jax.random.key(1))[0, :3].tolist()
      [1, 2, 3]
    """
    length = checked("generate: length", integer, length)
    from_0 = functools.partial(integer, minimum=0)
    stop = checked("generate: stop", optional(from_0), stop)
    padding = checked("generate: padding", from_0, padding)
    given = prompt.shape[-1] if is_integer(prompt) and prompt.ndim else 0
    if not 1 <= given <= length:
        mend = f"ids of shape (..., steps), 1 to length={length} steps"
        raise ValueError(f"generate: prompt expects {mend}, got {describe(prompt)}.")
    batch = prompt.shape[:-1]
    if lengths is not None:
        lengths = lengths if is_array(lengths) else np.asarray(lengths)
        if not is_integer(lengths) or not _fits(lengths.shape, batch):
            raise ValueError(f"generate: lengths expect integers of shape {batch}, got {describe(lengths)}.")
    temperature, top_k, top_p = _checked("generate", temperature, top_k, top_p, batch)
    more = {"length": length, "stop": stop, "padding": padding, "top_k": top_k}
    return _generate(model, trainables, non_trainables, prompt, lengths, key, temperature, top_p, **more)


@functools.partial(jax.jit, static_argnames=("length", "stop", "padding", "top_k"))
def _generate(
    model, trainables, non_trainables, prompt, lengths, key, temperature, top_p, *, length, stop, padding, top_k
):  # fmt: skip
    *batch, given = prompt.shape
    start = given if lengths is None else 1
    lengths = jnp.asarray(given if lengths is None else lengths, jnp.int32)
    lengths = jnp.broadcast_to(jnp.clip(lengths, 1, given), batch)
    prompt = prompt.astype(jnp.int32)

    def read(tokens, cache):
        logits, cache = model.decode(tokens, trainables, non_trainables, cache)
        return logits[..., -1, :], cache

    def step(carry, each):
        (logits, cache, ended), (place, token, key) = carry, each
        drawn = sample(key, logits, temperature, top_k, top_p)  # which checks the logits, too
        token = jnp.where(place < lengths, token, jnp.where(ended, padding, drawn))
        ended = ended if stop is None else ended | ((place >= lengths) & (token == stop))
        return (*read(token[..., None], cache), ended), token

    first = read(prompt[..., :start], model.init_cache(prompt[..., :1], length))
    if stop is not None and stop >= (vocab := first[0].shape[-1]):
        raise ValueError(f"generate: stop must be one of the {vocab} ids of the model, got {stop}.")
    known = jnp.pad(prompt, [(0, 0)] * len(batch) + [(0, length - given)])
    places = jnp.arange(start, length, dtype=jnp.int32)
    each = places, jnp.moveaxis(known[..., start:], -1, 0), jax.random.split(key, length)[start:]
    begin = varying_like((*first, jnp.zeros(batch, bool)), prompt, key_bits(key), lengths)
    _, tokens = lax.scan(step, begin, each)
    return jnp.concatenate([prompt[..., :start], jnp.moveaxis(tokens, 0, -1)], axis=-1)
