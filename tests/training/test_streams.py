"""Streams of batches: each example once an epoch, the same after a stop and for any number of processes."""

import functools
import itertools
import json
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import saving, streams

X = np.arange(22, dtype="float32").reshape(11, 2)
DATA = {"x": X, "y": np.arange(11)}
STREAM = streams.Stream(X, 4)


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
    assert [(int(p.epoch), int(p.example)) for p in positions] == [
        (0, 4),
        (1, 0),
        (1, 4),
        (2, 0),
        (2, 4),
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


KILLED = """
import json, os, pathlib, sys
import numpy as np
from mlax_tutorial import streams
path, index, count, batches = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:])
stream = streams.Stream(np.arange(45), 4, pad=True, process_index=index, process_count=count)
position = streams.Position(*map(np.int32, json.loads(path.read_text()))) if path.exists() else stream.begin(5)
for (rows, real), position in stream.iterate(position):
    print(*rows[real], flush=True)
    (path.parent / f"{index} of {count}").write_text(json.dumps([*map(int, position)]))
    batches -= 1
    if not batches:
        os._exit(9)
"""


def killed(path, count, batches):
    """Processes that end with no farewell after some batches: the rows that they read."""
    command = [sys.executable, "-c", KILLED, str(path)]
    run = functools.partial(subprocess.Popen, stdout=subprocess.PIPE, text=True)
    started = [run([*command, str(index), str(count), str(batches)]) for index in range(count)]
    said = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [9] * count
    written = {(path.parent / f"{index} of {count}").read_text() for index in range(count)}
    assert len(written) == 1
    path.write_text(written.pop())
    return [int(row) for each in said for row in each.split()]


def test_killed_in_the_middle_and_resumed_by_other_processes(tmp_path):
    path = tmp_path / "position"
    seen = killed(path, 1, 2) + killed(path, 2, 3)
    position = streams.Position(*map(np.int32, json.loads(path.read_text())))
    assert [*map(int, position)] == [5, 0, 20] and len(set(seen)) == 20
    for size, count in ((4, 4), (4, 1), (12, 3), (3, 1), (50, 2)):  # of the same batch size, and of others
        parts = [streams.Stream(np.arange(45), size, pad=True, process_index=i, process_count=count) for i in range(count)]  # fmt: skip
        rest = [rows[real] for part in parts for (rows, real), _ in part.iterate(position, epochs=1)]
        assert sorted([*seen, *np.concatenate(rest)]) == list(range(45))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_of_another_batch_size_what_remains_comes_once(size):
    first, then = streams.Stream(np.arange(11), 3), streams.Stream(np.arange(11), size)
    begun, position = first.read(first.begin(2))
    rest = [rows for rows, _ in then.iterate(position, epochs=1)]
    whole = then._order(2, 0)[: 3 + 8 // size * size]
    assert np.concatenate([begun, *rest]).tolist() == whole.tolist()


def test_less_than_a_batch_left_is_the_next_epoch():
    small, large = streams.Stream(np.arange(11), 3), streams.Stream(np.arange(11), 6)
    *_, (_, position) = itertools.islice(small.iterate(small.begin()), 2)
    assert [*map(int, position)] == [0, 0, 6] and not list(large.iterate(position, epochs=1))
    assert large.read(position)[0].tolist() == large._order(0, 1)[:6].tolist()


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
        (lambda: streams.Stream(X, 4, process_index=-1, process_count=2), "^Stream: process_index must be an integer of at least 0, got -1"),
        (lambda: streams.Stream(lambda indices: indices, 4), "^Stream: size must be an integer of at least 1, got None"),
        (lambda: streams.Stream(X, 0), "^Stream: batch_size must be an integer of at least 1, got 0"),
        (lambda: streams.Stream(3, 1), "^Stream: source must be a function, or a tree of arrays with .*, got int 3 in it"),
        (lambda: streams.Stream(np.float32(1), 1), r"^Stream: source must be .*, got float32\[\] in it"),
        (lambda: streams.Stream([[1, 2], [3, 4]], 1), "^Stream: source must be .*, got int 1 in it"),
        (lambda: streams.Stream(X, 4, size=5), "^Stream: size must be that of the arrays, 11, or left out, got 5"),
        (lambda: streams.Stream(np.sin, 4, size=2**31), "^Stream: size must be at most 2147483647"),
        (lambda: streams.Stream(X, 4, pad="no"), "^Stream: pad must be True or False, got 'no'"),
        (lambda: streams.Stream(X, 4, shuffle=1), "^Stream: shuffle must be True or False, got 1"),
        (lambda: streams.Stream(X, 4, process_index="a", process_count=2), "^Stream: process_index must be an integer of at least 0"),
        (lambda: streams.Stream(X, 4, process_count=2.0), "^Stream: process_count must be an integer of at least 1, got 2.0"),
        (lambda: STREAM.begin(-1), r"^Stream\.begin: seed must be an integer of at least 0, got -1"),
        (lambda: STREAM.begin(1.7), r"^Stream\.begin: seed must be an integer of at least 0, got 1.7"),
        (lambda: STREAM.begin(2**31), r"^Stream\.begin: seed must be at most 2147483647, got 2147483648"),
        (lambda: STREAM.read(streams.Position(0, 0, 99)), r"^Stream: position\.example must be below size = 11, got 99: it is of a larger"),
        (lambda: STREAM.iterate(streams.Position(0, 0, 11)), r"^Stream: position\.example must be below size = 11, got 11"),
        (lambda: STREAM.read(streams.Position(0, 0, -1)), r"^Stream: position\.example must be an integer of at least 0, got -1"),
        (lambda: STREAM.read(streams.Position(0, 1.5, 0)), r"^Stream: position\.epoch must be an integer of at least 0, got 1.5"),
        (lambda: STREAM.read(None), "^Stream: position must be a Position, .*, got None"),
        (lambda: STREAM.iterate(3), "^Stream: position must be a Position, .*, got int 3"),
        (lambda: STREAM.iterate(STREAM.begin(), epochs=1.5), r"^Stream\.iterate: epochs must be an integer of at least 0, got 1.5"),
        (lambda: streams.Stream(lambda i: i[1:], 4, size=9).read(STREAM.begin()), r"^Stream: source must give .* the 4 examples .*, got int64\[3\]"),
    ],
)  # fmt: skip
def test_wrong_streams(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
