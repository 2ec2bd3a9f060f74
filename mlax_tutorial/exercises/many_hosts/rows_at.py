"""Which rows a host reads at a step: a stream that resumes, and that any number of hosts can share."""

import os

import jax
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, guarding
from mlax_tutorial.exercises.many_hosts import _two
from mlax_tutorial.inspection import hosts


def solution(step, size, batch_size, process_index, process_count):
    steps = size // batch_size  # in an epoch; the rest is left out
    epoch, batch = divmod(step, steps)
    order = np.random.RandomState([0, epoch]).permutation(size)
    rows = order[batch * batch_size : (batch + 1) * batch_size]
    part = batch_size // process_count
    return rows[process_index * part : (process_index + 1) * part]


def check(rows_at):
    size, batch_size = 50, 12

    def rows(step, index=0, count=1):
        found = rows_at(step, size, batch_size, index, count)
        if not isinstance(found, np.ndarray):
            raise Failed("Return the numbers of the rows as a NumPy array.", got=found)
        if found.shape != (batch_size // count,) or found.dtype.kind not in "iu":
            raise Failed(
                f"Each of {count} processes reads {batch_size // count} of the {batch_size} rows of a batch: give their numbers.", got=found
            )  # fmt: skip
        return found

    first = rows(0)
    if not np.array_equal(first, rows(0)):
        raise Failed(
            "The same step gives other rows at the second call. What a step reads must depend on nothing but the arguments."
        )
    if first.min() < 0 or first.max() >= size:
        raise Failed(f"Rows are numbered from 0 to {size - 1}.", got=first)
    epoch = [rows(step) for step in range(4)]
    if len(set(np.concatenate(epoch).tolist())) < 48:
        raise Failed(
            "Within an epoch some rows come twice. Shuffle once an epoch, and cut the batches from this order.",
            got=epoch,
        )
    if not np.array_equal(epoch[2], rows(2)):
        raise Failed(
            "Step 2 gives other rows when it is asked for again, out of order: a resumed run asks for it first."
        )
    if np.array_equal(np.sort(np.concatenate(epoch)), np.concatenate(epoch)):
        raise Failed("The rows come in the order in which they lie: shuffle them.")
    second = [rows(step) for step in range(4, 8)]
    if all(map(np.array_equal, epoch, second)):
        raise Failed("The second epoch repeats the order of the first: the seed must depend on the epoch.")
    later = [np.concatenate([rows(step) for step in range(4 * e, 4 * e + 4)]) for e in range(4)]
    for e in range(1, 4):
        if any(np.array_equal(later[e], one) for one in later[:e]):
            raise Failed(
                f"Epoch {e}, counted from 0, has the order of an earlier one: each has one of its own."
            )
    if len(set(np.concatenate(second).tolist())) < 48:
        raise Failed("In the second epoch some rows come twice: is an epoch `size // batch_size` steps long?")
    for count in (2, 3, 4):
        for step in (0, 3, 5):
            parts = [rows(step, index, count) for index in range(count)]
            if any(np.array_equal(parts[0], part) for part in parts[1:]):
                raise Failed(
                    f"Of {count} processes two read the same rows at step {step}. It would train, quietly, on a batch {count} times smaller."
                )
            if set(np.concatenate(parts).tolist()) != set(rows(step).tolist()):
                raise Failed(
                    f"{count} processes read other rows at step {step} than a single one. Then a restart with another number of hosts "
                    "reads some rows twice, and others never.",
                    expected=np.sort(rows(step)), got=np.sort(np.concatenate(parts)),
                )  # fmt: skip
            if not np.array_equal(np.concatenate(parts), rows(step)):
                raise Failed(
                    "Each process takes a part in one piece: those of process 0, then those of process 1, are the batch in its order."
                )
    if set(first.tolist()) == set(second[0].tolist()):
        raise Failed(
            "The first batch of each epoch holds the same rows: shuffle all rows, not those of each batch."
        )
    if missing := set(range(size)) - set(np.concatenate([rows(step) for step in range(48)]).tolist()):
        raise Failed(
            f"In twelve epochs some rows never come, such as {min(missing)}: shuffle all `size` rows, and leave out what remains of this order.",
            got=sorted(missing),
        )
    _other_sizes(rows_at, epoch)
    _killed(rows_at, size, batch_size)


def _other_sizes(rows_at, epoch):
    """Of other data, in between; then again of those from before."""
    for size, batch_size in ((31, 6), (24, 8), (7, 7)):
        steps = size // batch_size
        for first in (0, 2 * steps):
            found = [rows_at(step, size, batch_size, 0, 1) for step in range(first, first + steps)]
            read = np.concatenate(found)
            of = f"batches of {batch_size} from {size} rows"
            if [len(rows) for rows in found] != [batch_size] * steps:
                raise Failed(
                    f"Right for batches of 12 from 50 rows, but {of} have other lengths than {batch_size}. Is something kept from one call to the next, "
                    "or written down?",
                    got=found,
                )  # fmt: skip
            if read.min() < 0 or read.max() >= size:
                raise Failed(
                    f"Right for batches of 12 from 50 rows, but of {of} some are not numbered from 0 to {size - 1}. An order that is kept "
                    "belongs to its epoch and its `size`.",
                    got=read,
                )  # fmt: skip
            if len(set(read.tolist())) < steps * batch_size:
                raise Failed(
                    f"Right for batches of 12 from 50 rows, but in an epoch of {of} some come twice. It is `size // batch_size` steps long, here "
                    f"{steps}.",
                    got=read,
                )  # fmt: skip
        parts = [rows_at(0, size, batch_size, index, batch_size) for index in range(batch_size)]
        if not np.array_equal(np.concatenate(parts), rows_at(0, size, batch_size, 0, 1)):
            raise Failed(f"Right for up to 4 processes, but not for {batch_size}, which read a row each of a batch of {batch_size}.", got=parts)  # fmt: skip
    again = [rows_at(step, 50, 12, 0, 1) for step in range(4)]
    if not all(map(np.array_equal, again, epoch)):
        raise Failed(
            "The same step gives other rows after calls with another `size`. What a step reads must depend on nothing but the arguments.",
            expected=epoch[0], got=again[0],
        )  # fmt: skip


def _program(rows_at, first, stop, size, batch_size):
    for step in range(first, stop):
        if step == 5 and first == 0 and jax.process_index() == 1:
            os._exit(1)
        print(*rows_at(step, size, batch_size, jax.process_index(), jax.process_count()))


def _killed(rows_at, size, batch_size):
    """Two processes, of which one dies before step 5; then two others, from step 5 on."""
    function, found = guarding.original(rows_at), []
    for first in (0, 5):
        run = hosts.run(_program, function, first, 8, size, batch_size, seconds=_two.WAIT)
        found.append([[list(map(int, line.split())) for line in host.printed.splitlines()] for host in run])
    read = [one[:5] + two for one, two in zip(*found)]
    wanted = [rows_at(step, size, batch_size, 0, 1) for step in range(8)]
    if [sum(parts, []) for parts in zip(*read)] != [list(map(int, rows)) for rows in wanted]:
        raise Failed(
            "In two real processes, of which one was killed before step 5, the resumed run reads other rows than one that was never stopped.",
            shown=[("rows", str(read))],
        )  # fmt: skip


exercise = Exercise(
    title="A stream that resumes after a kill",
    stars=3,
    minutes=20,
    seconds=_two.SECONDS,
    why="Where a stream is, is one integer: it is saved with the weights, and any number of hosts goes on from it.",
    hints=(
        "`size // batch_size` batches are an epoch. `divmod(step, …)` tells which epoch it is, and which batch in it.",
        "`np.random.RandomState([0, epoch]).permutation(size)` is an order that all processes can make by themselves. Cut the batch from it, and "
        "then this process' part from the batch.",
    ),
    solution=solution,
    check=check,
)
