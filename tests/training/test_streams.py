"""Streams of batches: each example once an epoch, the same after a stop and for any number of processes."""

import itertools

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import saving, streams

X = np.arange(22, dtype="float32").reshape(11, 2)
DATA = {"x": X, "y": np.arange(11)}


def rows(batches):
    return [batch["y"].tolist() for batch in batches]


def test_each_epoch_holds_each_example_at_most_once_in_an_order_of_its_own():
    stream = streams.Stream(DATA, 4)
    batches, positions = zip(*stream.iterate(stream.begin(3), epochs=3))
    assert (
        stream.steps == 2
        and len(batches) == 6
        and all((batch["x"] == X[batch["y"]]).all() for batch in batches)
    )
    epochs = [sum(rows(batches[i : i + 2]), []) for i in (0, 2, 4)]
    assert all(len(set(epoch)) == 8 for epoch in epochs) and len(set(map(tuple, epochs))) == 3
    assert epochs[1] == np.random.RandomState([3, 1]).permutation(11)[:8].tolist()
    assert [(int(p.epoch), int(p.batch)) for p in positions] == [
        (0, 1),
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
        (3, 0),
    ]
    other = [batch for batch, _ in stream.iterate(stream.begin(4), epochs=1)]
    assert rows(other) != rows(batches[:2])
    plain = streams.Stream(DATA, 4, shuffle=False)
    assert rows(batch for batch, _ in plain.iterate(plain.begin(), epochs=1)) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_padding_brings_all_and_says_what_is_real():
    stream = streams.Stream(DATA, 4, pad=True)
    batches = [batch for batch, _ in stream.iterate(stream.begin(), epochs=1)]
    assert stream.steps == len(batches) == 3 and [real.sum() for _, real in batches] == [4, 4, 3]
    assert sorted(np.concatenate([values["y"][real] for values, real in batches])) == list(range(11))
    small = streams.Stream(DATA, 32, pad=True)
    (values, real), _ = small.read(small.begin())
    assert len(values["y"]) == 32 and set(values["y"][real]) == set(range(11)) and real.sum() == 11


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_it_goes_on_from_a_checkpoint_bit_for_bit(tmp_path, stop):
    whole = streams.Stream(DATA, 4)
    wanted = rows(batch for batch, _ in whole.iterate(whole.begin(7), epochs=4))
    stream, sharding = streams.Stream(DATA, 4), jax.sharding.SingleDeviceSharding(jax.devices()[0])
    seen, last = zip(*itertools.islice(stream.iterate(stream.begin(7), sharding=sharding), stop))
    with saving.Checkpoints(tmp_path) as checkpoints:  # of what was used, though one more is already sent
        checkpoints.save(1, last[-1])
        found = checkpoints.restore(stream.begin())
    again = streams.Stream(DATA, 4)
    assert rows(seen) + rows(batch for batch, _ in again.iterate(found, epochs=4)) == wanted


def test_processes_share_each_batch():
    whole = streams.Stream(DATA, 4, pad=True)
    parts = [streams.Stream(DATA, 4, pad=True, process_index=i, process_count=2) for i in range(2)]
    position = whole.begin()
    for _ in range(6):
        got = [part.read(position)[0] for part in parts]
        (batch, real), position = whole.read(position)
        assert batch["y"].tolist() == [y for values, _ in got for y in values["y"]]
        assert real.tolist() == [one for _, reals in got for one in reals]


def test_batches_are_on_the_devices_one_ahead(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped, read = np.load(tmp_path / "x.npy", mmap_mode="r"), []

    def source(indices):
        read.append(indices)
        return mapped[indices], indices.astype("int32")

    stream = streams.Stream(source, 4, size=11)
    sharding = NamedSharding(jax.make_mesh((2,), ("data",)), P("data"))
    batches = stream.iterate(stream.begin(), sharding=sharding)
    (x, y), _ = next(batches)
    assert len(read) == 2 and x.sharding == y.sharding == sharding and not x.is_fully_replicated
    assert (np.asarray(x) == X[read[0]]).all() and (np.asarray(y) == read[0]).all()
    finite = stream.iterate(stream.begin(), epochs=1, sharding=sharding)
    assert len(list(finite)) == 2


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: streams.Stream((X, X[1:]), 4), r"^Stream: all arrays must have one number of examples, got \[10, 11\]"),
        (lambda: streams.Stream((X), 12), "^Stream: batch_size must be at most size = 11, got 12: or say pad=True"),
        (lambda: streams.Stream(X, 4, process_index=0, process_count=3), "^Stream: batch_size must be a multiple of the 3"),
        (lambda: streams.Stream(X, 4, process_index=2, process_count=2), "^Stream: process_index must be from 0 to 1, for 2 processes, got 2"),
        (lambda: streams.Stream(X, 4, process_index=-1, process_count=2), "^Stream: process_index must be from 0 to 1, .* got -1"),
        (lambda: streams.Stream(lambda indices: indices, 4), "^Stream: size must be an integer of at least 1, got None"),
        (lambda: streams.Stream(X, 0), "^Stream: batch_size must be an integer of at least 1, got 0"),
    ],
)  # fmt: skip
def test_wrong_streams(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
