"""Answers to the exercise encoder.pack."""

import numpy as np

from mlax_tutorial.exercises.encoder.pack import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


def filled(rows, length):
    tokens, segments, places = np.zeros((3, len(rows), length), np.int32)
    for i, row in enumerate(rows):
        joined = np.concatenate(row) if row else np.zeros(0, np.int32)
        tokens[i, : len(joined)] = joined
        segments[i, : len(joined)] = np.repeat(np.arange(1, len(row) + 1), [len(one) for one in row])
        places[i, : len(joined)] = np.concatenate([np.arange(len(one)) for one in row])
    return tokens, segments, places


def checked(sequences, length):
    if any(len(one) > length for one in sequences):
        raise ValueError("too long")


@answers.wrong("this is padding, not packing")
def padded(sequences, length):
    return filled([[one] for one in sequences], length)


@answers.wrong("not only into the last one")
def next_fit(sequences, length):
    checked(sequences, length)
    rows = []
    for one in sequences:
        if not rows or sum(map(len, rows[-1])) + len(one) > length:
            rows.append([])
        rows[-1].append(one)
    return filled(rows, length)


@answers.wrong("take the sequences in their order")
def longest_first(sequences, length):
    return solution(sorted(sequences, key=len, reverse=True), length)


@answers.wrong("here they go on from row to row")
def counts_on(sequences, length):
    tokens, segments, places = solution(sequences, length)
    before = np.concatenate([[0], np.cumsum(segments.max(axis=1, initial=0))[:-1]]) if len(segments) else 0
    return tokens, np.where(segments > 0, segments + np.reshape(before, (-1, 1)), 0), places


@answers.wrong("The first segment of a row is 1")
def from_zero(sequences, length):
    tokens, segments, places = solution(sequences, length)
    return tokens, segments - 1, places


@answers.wrong("All sequences of a row have the same segment")
def one_segment(sequences, length):
    tokens, segments, places = solution(sequences, length)
    return tokens, (segments > 0).astype(np.int32), places


@answers.wrong("Places begin anew with each sequence")
def places_go_on(sequences, length):
    tokens, segments, places = solution(sequences, length)
    return tokens, segments, np.where(segments > 0, np.arange(length), 0)


@answers.wrong("Padding has the place 0")
def places_of_padding(sequences, length):
    tokens, segments, places = solution(sequences, length)
    return tokens, segments, np.where(segments > 0, places, np.arange(length))


@answers.wrong("must refuse this input")
def cuts(sequences, length):
    return solution([one[:length] for one in sequences], length)


@answers.wrong("Three arrays are asked for")
def two(sequences, length):
    return solution(sequences, length)[:2]


@answers.wrong("`return` missing")
def nothing(sequences, length):
    solution(sequences, length)


@answers.wrong("A token may be 0")
def counts_what_is_not_zero(sequences, length):
    checked(sequences, length)
    rows = []
    for one in sequences:
        row = next((row for row in rows if np.count_nonzero(row[0]) + len(one) <= length), None)
        if row is None:
            row = np.zeros((3, length), np.int32)
            rows.append(row)
        start = np.count_nonzero(row[0])
        row[:, start : start + len(one)] = one, np.full(len(one), row[1].max() + 1), np.arange(len(one))
    return tuple(np.array(rows, np.int32).reshape(-1, 3, length).swapaxes(0, 1))


@answers.wrong("is no int32 array")
def in_their_dtype(sequences, length):
    tokens, segments, places = solution(sequences, length)
    return (tokens.astype(sequences[0].dtype) if sequences else tokens), segments, places


@answers.wrong("Behind the sequences of a row")
def pads_by_minus_one(sequences, length):
    tokens, segments, places = solution(sequences, length)
    return np.where(segments > 0, tokens, -1).astype(np.int32), segments, places


@answers.wrong("to its last place")
def never_full(sequences, length):
    checked(sequences, length)
    rows = []
    for one in sequences:
        row = next((row for row in rows if sum(map(len, row)) + len(one) < length), None)
        if row is None:
            rows.append(row := [])
        row.append(one)
    return filled(rows, length)


# Right ones of unusual style


@answers.right
def by_room(sequences, length):
    checked(sequences, length)
    rows, room = [], []
    for one in sequences:
        i = next((i for i, left in enumerate(room) if left >= len(one)), len(rows))
        if i == len(rows):
            rows.append([])
            room.append(length)
        rows[i].append(one)
        room[i] -= len(one)
    return filled(rows, length)


@answers.right
def as_lists(sequences, length):
    assert_fits = [one for one in sequences if len(one) > length]
    if assert_fits:
        raise ValueError(assert_fits)
    rows = []  # (tokens, segments, places), as lists
    for one in sequences:
        row = next((row for row in rows if len(row[0]) + len(one) <= length), None)
        if row is None:
            row = ([], [], [])
            rows.append(row)
        row[0].extend(one.tolist())
        row[1].extend([max(row[1], default=0) + 1] * len(one))
        row[2].extend(range(len(one)))
    arrays = [
        np.array([part + [0] * (length - len(part)) for part in parts], np.int32).reshape(-1, length)
        for parts in (zip(*rows) if rows else ([], [], []))
    ]
    return tuple(arrays)


@answers.wrong("should be int32")
def int64(sequences, length):
    return tuple(array.astype(np.int64) for array in solution(sequences, length))


answers.equivalent(
    "len(one) -> 6", because="NumPy refuses what does not fit into a row, with a ValueError of its own"
)
