"""Batches without end, shuffled anew in each epoch, that go on after a stop where they were, whoever shares them out.

They are used like this::

    stream = streams.Stream((images, labels), batch_size=128)
    position = stream.begin(seed=0)                      # or from a checkpoint
    for (x, y), position in stream.iterate(position, sharding=NamedSharding(mesh, P("data"))):
        state, loss = step(optimizer, state, key, x, y)
        if position.batch == 0:                          # at the end of an epoch, say
            checkpoints.save(int(position.epoch), (tuple(state), position))

A stream itself never changes; where it is, is told by a small tree of integers, which is saved with the weights.
"""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.kinds import integer

__all__ = ["Position", "Stream"]


class Position(NamedTuple):
    """Where a stream is: the seed of its orders, the epoch, and the number of the next batch in it. NumPy's scalars, int32."""

    seed: np.ndarray
    epoch: np.ndarray
    batch: np.ndarray


class Stream:
    """Shuffled batches of a data set, in one process or in many.

    The batches of a position are always the same, bit for bit, however many processes share them: the order of an epoch is that of
    ``numpy.random.RandomState([seed, epoch])``, whose numbers NumPy promises never to change. The order is held in memory, 8
    bytes an example; the examples are read batch by batch.

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
      ValueError: if the arrays differ in length, ``batch_size`` is larger than that, or not a multiple of ``process_count``, or there
        is no process of the number ``process_index``.

    Example:
      >>> import numpy as np
      >>> from mlax_tutorial import streams
      >>> stream = streams.Stream({"x": np.arange(10)}, batch_size=4)
      >>> position = stream.begin(seed=0)
      >>> for batch, position in stream.iterate(position, epochs=1):
      ...     print(batch["x"], int(position.epoch), int(position.batch))
      [3 7 6 4] 0 1
      [1 0 2 8] 1 0
    """

    def __init__(
        self, source: Any, batch_size: int, *, size: int | None = None, shuffle: bool = True, pad: bool = False,
        process_index: int | None = None, process_count: int | None = None,
    ):  # fmt: skip
        if not callable(source):
            sizes = {len(array) for array in jax.tree.leaves(source)}
            if len(sizes) != 1:
                raise ValueError(f"Stream: all arrays must have one number of examples, got {sorted(sizes)}.")
            size = sizes.pop()
        self.size = checked("Stream: size", integer, size)
        self.batch_size = checked("Stream: batch_size", integer, batch_size)
        self.process_index = jax.process_index() if process_index is None else process_index
        self.process_count = jax.process_count() if process_count is None else process_count
        if not 0 <= self.process_index < self.process_count:
            wanted = f"from 0 to {self.process_count - 1}, for {self.process_count} processes"
            raise ValueError(f"Stream: process_index must be {wanted}, got {self.process_index}.")
        if not pad and batch_size > size:
            raise ValueError(
                f"Stream: batch_size must be at most size = {size}, got {batch_size}: or say pad=True."
            )
        if batch_size % self.process_count:
            wanted = f"a multiple of the {self.process_count} processes that share each batch"
            raise ValueError(f"Stream: batch_size must be {wanted}, got {batch_size}.")
        self.shuffle, self.pad = shuffle, pad
        self._take = source if callable(source) else functools.partial(_take, source)
        self._order = functools.lru_cache(maxsize=2)(self._order)

    @property
    def steps(self) -> int:
        """How many batches an epoch has."""
        return -(-self.size // self.batch_size) if self.pad else self.size // self.batch_size

    def begin(self, seed: int = 0) -> Position:
        """The position before the first batch."""
        return _position(seed, 0, 0)

    def read(self, position: Position) -> tuple[Any, Position]:
        """The batch at a position, this process' part of it, in NumPy's arrays; and the position after it. Pure."""
        seed, epoch, batch = map(int, position)
        after = _position(seed, epoch, batch + 1) if batch + 1 < self.steps else _position(seed, epoch + 1, 0)
        part = self.batch_size // self.process_count
        places = batch * self.batch_size + self.process_index * part + np.arange(part)
        values = self._take(self._order(seed, epoch)[places % self.size])
        return ((values, places < self.size) if self.pad else values), after

    def iterate(
        self, position: Position, *, epochs: int | None = None, sharding: Any = None
    ) -> Iterator[tuple[Any, Position]]:
        """Go through the batches from a position on.

        Args:
          position: from :meth:`begin`, from before, or from a checkpoint.
          epochs: before which epoch to end; by default never.
          sharding: where to put the batches, such as ``NamedSharding(mesh, PartitionSpec("data"))``: on the devices of all processes
            together, whose parts lie in the order of their numbers. The next batch is read and sent while the devices still
            compute with this one. By default they stay NumPy's arrays.

        Returns:
          An iterator of pairs ``(batch, position)``, the position after the batch: with which to go on once the batch is used.
        """

        def prepared(position):
            while epochs is None or position.epoch < epochs:
                batch, position = self.read(position)
                if sharding is not None:
                    batch = jax.tree.map(
                        lambda part: jax.make_array_from_process_local_data(sharding, part), batch
                    )
                yield batch, position

        return prepared(position) if sharding is None else _one_ahead(prepared(position))

    def _order(self, seed, epoch):
        return (
            np.random.RandomState([seed, epoch]).permutation(self.size)
            if self.shuffle
            else np.arange(self.size)
        )


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
