"""Batches without end, shuffled anew in each epoch, that go on after a stop where they were, whoever shares them out.

They are used like this::

    stream = streams.Stream((images, labels), batch_size=128)
    position = stream.begin(seed=0)                      # or from a checkpoint
    for (x, y), position in stream.iterate(position, sharding=NamedSharding(mesh, P("data"))):
        state, loss = step(optimizer, state, key, x, y)
        if position.example == 0:                        # at the end of an epoch, say
            checkpoints.save(int(position.epoch), (tuple(state), position))

A stream itself never changes; where it is, is told by a small tree of integers, which is saved with the weights.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, optional
from mlax_tutorial.nn.rules import boolean, integer

__all__ = ["Position", "Stream"]

_LARGEST = np.iinfo(np.int32).max


class Position(NamedTuple):
    """Where a stream is: the seed of its orders, the epoch, and how many of its examples were read. NumPy's scalars, int32.

    It counts examples, not batches, so that it means the same for every batch size.
    """

    seed: np.ndarray
    epoch: np.ndarray
    example: np.ndarray


class Stream:
    """Shuffled batches of a data set, in one process or in many.

    The batches of a position are always the same, bit for bit, however many processes share them: the order of an epoch is that of
    ``numpy.random.RandomState([seed, epoch])``, whose numbers NumPy promises never to change. The order is held in memory, 8
    bytes an example; the examples are read batch by batch. After a stop, batches of another size may go on with what is left
    of the epoch.

    Args:
      source: a pytree of arrays with one leading axis of examples, NumPy's or memory maps; or a function from indices, int64 of
        shape ``(n,)``, to such a tree with ``n`` examples.
      batch_size: examples in a batch, over all processes.
      size: how many examples there are, if ``source`` is a function.
      shuffle: whether each epoch has an order of its own; otherwise all come as they lie.
      pad: whether the ``size % batch_size`` examples at the end of an epoch come, too. A batch is then ``(values, real)``, where
        ``real``, bool of shape ``(batch_size,)``, is ``False`` for the examples that fill up the last batch, which came
        before. Otherwise they are left out, others in each epoch.
      process_index, process_count: which part of each batch to read, the ``process_index``-th of ``process_count`` equal ones; by
        default JAX's own.

    Raises:
      ValueError: if the source holds no arrays of one length, ``batch_size`` is larger than that, or not a multiple of
        ``process_count``, or there is no process of the number ``process_index``; if a number is no integer, or ``shuffle`` or
        ``pad`` neither ``True`` nor ``False``.

    Example:
      >>> import numpy as np
      >>> from mlax_tutorial import streams
      >>> stream = streams.Stream({"x": np.arange(10)}, batch_size=4)
      >>> position = stream.begin(seed=0)
      >>> for batch, position in stream.iterate(position, epochs=1):
      ...     print(batch["x"], int(position.epoch), int(position.example))
      [3 7 6 4] 0 4
      [1 0 2 8] 1 0
    """

    def __init__(
        self, source: Any, batch_size: int, *, size: int | None = None, shuffle: bool = True, pad: bool = False,
        process_index: int | None = None, process_count: int | None = None,
    ):  # fmt: skip
        if not callable(source):
            size = _length(source, size)
        self.size = checked("Stream: size", integer, size)
        if self.size > _LARGEST:
            raise ValueError(f"Stream: size must be at most {_LARGEST}, as positions are int32, got {size}.")
        self.batch_size = checked("Stream: batch_size", integer, batch_size)
        self.shuffle, self.pad = (
            checked("Stream: shuffle", boolean, shuffle),
            checked("Stream: pad", boolean, pad),
        )
        index = jax.process_index() if process_index is None else process_index
        count = jax.process_count() if process_count is None else process_count
        self.process_index = checked("Stream: process_index", _from_0, index)
        self.process_count = checked("Stream: process_count", integer, count)
        if self.process_index >= self.process_count:
            wanted = f"from 0 to {self.process_count - 1}, for {self.process_count} processes"
            raise ValueError(f"Stream: process_index must be {wanted}, got {self.process_index}.")
        if not pad and self.batch_size > self.size:
            raise ValueError(
                f"Stream: batch_size must be at most size = {size}, got {batch_size}: or say pad=True."
            )
        if self.batch_size % self.process_count:
            wanted = f"a multiple of the {self.process_count} processes that share each batch"
            raise ValueError(f"Stream: batch_size must be {wanted}, got {batch_size}.")
        self._take = source if callable(source) else functools.partial(_take, source)
        self._order = functools.lru_cache(maxsize=2)(self._order)

    @property
    def steps(self) -> int:
        """How many batches an epoch has."""
        return -(-self.size // self.batch_size) if self.pad else self.size // self.batch_size

    def begin(self, seed: int = 0) -> Position:
        """The position before the first batch.

        Raises:
          ValueError: if ``seed`` is no integer from 0 to 2^31 - 1.
        """
        if (seed := checked("Stream.begin: seed", _from_0, seed)) > _LARGEST:
            raise ValueError(f"Stream.begin: seed must be at most {_LARGEST}, got {seed}.")
        return _position(seed, 0, 0)

    def read(self, position: Position) -> tuple[Any, Position]:
        """The batch at a position, this process' part of it, in NumPy's arrays; and the position after it. Pure.

        Without ``pad``, a position with less than a batch left in its epoch, as of smaller batches, means the next epoch.

        Raises:
          ValueError: if ``position`` is none of this data set, or the source gives another number of examples.
        """
        seed, epoch, example = map(int, self._next(*_numbers(position, self.size)))
        part = self.batch_size // self.process_count
        places = example + self.process_index * part + np.arange(part)
        values = self._take(self._order(seed, epoch)[places % self.size])
        if wrong := [leaf for leaf in jax.tree.leaves(values) if np.shape(leaf)[:1] != (part,)]:
            wanted = f"arrays with an axis of the {part} examples that it was asked for"
            raise ValueError(f"Stream: source must give {wanted}, got {describe(wrong[0])}.")
        after = self._next(seed, epoch, example + self.batch_size)
        return ((values, places < self.size) if self.pad else values), after

    def iterate(
        self, position: Position, *, epochs: int | None = None, sharding: Any = None
    ) -> Iterator[tuple[Any, Position]]:
        """Go through the batches from a position on.

        Args:
          position: from :meth:`begin`, from before, or from a checkpoint, also one of another batch size.
          epochs: before which epoch to end; by default never.
          sharding: where to put the batches, such as ``NamedSharding(mesh, PartitionSpec("data"))``: on the devices of all processes
            together, whose parts lie in the order of their numbers. The next batch is read and sent while the devices still
            compute with this one. By default they stay NumPy's arrays.

        Returns:
          An iterator of pairs ``(batch, position)``, the position after the batch: with which to go on once the batch is used.

        Raises:
          ValueError: if ``position`` is none of this data set, or ``epochs`` no integer.
        """
        epochs = checked("Stream.iterate: epochs", optional(_from_0), epochs)
        position = self._next(*_numbers(position, self.size))

        def prepared(position):
            while epochs is None or position.epoch < epochs:
                batch, position = self.read(position)
                if sharding is not None:
                    batch = jax.tree.map(
                        lambda part: jax.make_array_from_process_local_data(sharding, part), batch
                    )
                yield batch, position

        return prepared(position) if sharding is None else _one_ahead(prepared(position))

    def _next(self, seed, epoch, example):
        """The position itself, or the beginning of the next epoch if this one has no batch left."""
        left = self.size - example
        more = left >= (1 if self.pad else self.batch_size)
        return _position(seed, epoch, example) if more else _position(seed, epoch + 1, 0)

    def _order(self, seed, epoch):
        return (
            np.random.RandomState([seed, epoch]).permutation(self.size)
            if self.shuffle
            else np.arange(self.size)
        )


_from_0 = functools.partial(integer, minimum=0)


def _length(arrays, size):
    leaves = jax.tree.leaves(arrays)
    if wrong := [leaf for leaf in leaves if not getattr(leaf, "shape", ())]:
        wanted = "a function, or a tree of arrays with a leading axis of examples"
        raise ValueError(f"Stream: source must be {wanted}, got {describe(wrong[0])} in it.")
    sizes = {leaf.shape[0] for leaf in leaves}
    if len(sizes) != 1:
        raise ValueError(f"Stream: all arrays must have one number of examples, got {sorted(sizes)}.")
    if size is not None and {size} != sizes:
        raise ValueError(f"Stream: size must be that of the arrays, {sizes.pop()}, or left out, got {size}.")
    return sizes.pop()


def _numbers(position, size):
    """The three integers of a position, if the data set has it."""
    if not isinstance(position, tuple) or len(position) != len(Position._fields):
        wanted = "a Position, as from begin or a checkpoint"
        raise ValueError(f"Stream: position must be {wanted}, got {describe(position)}.")
    names = (f"Stream: position.{name}" for name in Position._fields)
    seed, epoch, example = (checked(name, _from_0, number) for name, number in zip(names, position))
    if example >= size:
        mend = "it is of a larger data set"
        raise ValueError(f"Stream: position.example must be below size = {size}, got {example}: {mend}.")
    return seed, epoch, example


def _position(*numbers):
    return Position(*(np.asarray(number, np.int32) for number in numbers))


def _take(arrays, indices):
    return jax.tree.map(lambda array: np.asarray(array[indices]), arrays)


def _one_ahead(items):
    """The same items, each after the next one was made. Transfers and steps are asynchronous, so nobody waits."""
    ready = next(items, None)
    while ready is not None:
        following = next(items, None)
        yield ready
        ready = following
