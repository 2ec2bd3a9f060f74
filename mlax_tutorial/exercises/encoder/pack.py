"""Several sequences in one row, first fit."""

import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(sequences, length):
    rows = []
    for one in sequences:
        if len(one) > length:
            raise ValueError(f"a sequence of {len(one)} does not fit into {length}")
        room = [row for row in rows if sum(map(len, row)) + len(one) <= length]
        if not room:
            rows.append([])
            room = rows[-1:]
        room[0].append(one)
    tokens, segments, places = np.zeros((3, len(rows), length), np.int32)
    for i, row in enumerate(rows):
        start = 0
        for number, one in enumerate(row, start=1):
            part = slice(start, start + len(one))
            tokens[i, part], segments[i, part] = one, number
            places[i, part] = np.arange(len(one))
            start += len(one)
    return tokens, segments, places


def _made(lengths, seed=0):
    random = np.random.default_rng(seed)
    return [random.integers(1, 5, n).astype(np.int32) for n in lengths]


LENGTHS = (4, 6, 2, 5, 3, 8, 1)  # into rows of 8: 4 2 1 | 6 | 5 3 | 8; the next fit alone needs one more


def check(pack):
    sequences = _made(LENGTHS)
    given = {"lengths": LENGTHS, "length": 8}
    expected = solution(sequences, 8)
    got, names = pack([one.copy() for one in sequences], 8), ("tokens", "segments", "places")
    asked = "Three arrays are asked for, `tokens, segments, places`."
    checks.returned(got, *names, lists=True, asked=asked, input=given)
    arrays = [np.asarray(array) for array in got]
    for name, array in zip(names, arrays):
        if array.ndim != 2 or array.shape[1:] != (8,) or array.dtype.kind not in "iu":
            raise Failed(f"`{name}` should be integers of shape (rows, 8).", input=given, got=array)
    if len({array.shape for array in arrays}) > 1:
        raise Failed(
            "The three arrays should have the same shape.", input=given, got=[a.shape for a in arrays]
        )
    _rows(sequences, arrays, expected, given)
    _numbers(arrays, expected, given)
    for name, array in zip(("tokens", "segments", "places"), arrays):
        if array.dtype != np.int32:
            raise Failed(f"`{name}` should be int32, got {array.dtype}: NumPy's own integers are int64.", input=given)  # fmt: skip
    for lengths in ((3, 3, 3), (), (8, 8)):
        sequences = _made(lengths, 1)
        shown = {"lengths": lengths, "length": 8}
        again, wanted = pack(sequences, 8), solution(sequences, 8)
        if any(not np.array_equal(one, two) for one, two in zip(again, wanted)):
            raise Failed(
                f"Wrong for sequences of the lengths {lengths}.", input=shown, expected=wanted, got=again
            )
    sequences = [np.array(one, np.int64) for one in ([2, 0, 0], [0, 1], [3, 0, 0, 0])]
    shown = {"sequences": sequences, "length": 8}
    again, wanted = pack([one.copy() for one in sequences], 8), solution(sequences, 8)
    if any(not np.array_equal(one, two) for one, two in zip(again, wanted)):
        raise Failed(
            "A token may be 0, as the padding is: what a row holds does not say how full it is.",
            input=shown,
            expected=wanted,
            got=again,
        )
    for name, array in zip(("tokens", "segments", "places"), again):
        if np.asarray(array).dtype != np.int32:
            raise Failed(f"For sequences of int64, `{name}` is no int32 array.", input=shown, got=array)
    random = np.random.default_rng(3)
    lengths = tuple(random.integers(1, 9, 40).tolist())
    sequences = _made(lengths, 2)
    again, wanted = pack(sequences, 8), solution(sequences, 8)
    if any(not np.array_equal(one, two) for one, two in zip(again, wanted)):
        raise Failed(
            f"Forty sequences should need {len(wanted[0])} rows by first fit, and stand in them in their order.",
            expected=wanted[1],
            got=again[1],
        )
    checks.refuses(pack, _made((9,)), 8, error=ValueError)  # it does not fit, and would be cut in silence


def _rows(sequences, arrays, expected, given):
    tokens, segments, places = arrays
    shown = {"input": given, "expected": expected[0], "got": tokens}
    if len(tokens) == len(sequences):
        raise Failed("Each sequence has a row of its own: this is padding, not packing.", **shown)
    if tokens.shape == expected[0].shape and np.array_equal(
        tokens[expected[0] > 0], expected[0][expected[0] > 0]
    ):
        if not np.array_equal(tokens, expected[0]):
            raise Failed("Behind the sequences of a row the tokens should be 0.", **shown)
    if sum(tokens.ravel() > 0) != sum(map(len, sequences)):
        raise Failed("Some tokens were lost, or stand there twice.", **shown)
    shared = [(row > 0).all() and not any(np.array_equal(row, one) for one in sequences) for row in tokens]
    if len(tokens) > len(expected[0]) and not any(shared):
        raise Failed("A sequence that fills a row to its last place has room there, too.", **shown)
    in_order = np.array_equal(tokens[0, : len(sequences[0])], sequences[0])
    if len(tokens) > len(expected[0]) and in_order:
        raise Failed(
            f"{len(expected[0])} rows are enough, you have {len(tokens)}: a sequence goes into the *first* row that has room, not only into the last one.",
            **shown,
        )
    if not np.array_equal(tokens, expected[0]):
        raise Failed(
            "The tokens stand in other places than first fit puts them: take the sequences in their order, and put each behind what is in its row.",
            **shown,
        )


def _numbers(arrays, expected, given):
    _, segments, places = arrays
    _, wanted, steps = expected
    shown = {"input": given, "expected": wanted, "got": segments}
    if not np.array_equal(segments, wanted):
        if np.array_equal(segments == 0, wanted == 0) and segments.max() > wanted.max():
            raise Failed("Segments are counted from 1 in each row; here they go on from row to row.", **shown)
        if np.array_equal(segments, wanted - 1) or np.array_equal(
            segments[wanted > 0], wanted[wanted > 0] - 1
        ):
            raise Failed("The first segment of a row is 1: 0 is padding.", **shown)
        if np.array_equal(segments > 0, wanted > 0):
            raise Failed("All sequences of a row have the same segment.", **shown)
        raise Failed("The segments are wrong.", **shown)
    if not np.array_equal(places, steps):
        shown = {"input": given, "expected": steps, "got": places}
        if np.array_equal(places[wanted > 0], np.broadcast_to(np.arange(8), steps.shape)[wanted > 0]):
            raise Failed(
                "Places begin anew with each sequence: packed or alone, a token has the same place.", **shown
            )
        if np.array_equal(places[wanted > 0], steps[wanted > 0] + 1):
            raise Failed("Places are counted from 0.", **shown)
        if np.array_equal(places[wanted > 0], steps[wanted > 0]):
            raise Failed("Padding has the place 0.", **shown)
        raise Failed("The places are wrong.", **shown)


exercise = Exercise(
    title="Pack sequences into rows",
    stars=3,
    minutes=20,
    why="Packing is how large encoders and decoders are trained: hardly any step is spent on padding, and there is one shape.",
    hints=(
        "First decide which sequence goes into which row, in a list of lists. Then fill the three arrays, which begin as zeros.",
        "First fit: `for row in rows: if sum(map(len, row)) + len(one) <= length: row.append(one); break`, with an `else:` of the loop that opens a new row.",
        "Fill with a running `start`: `segments[i, start : start + len(one)] = number`, and the places with `np.arange(len(one))`.",
    ),
    solution=solution,
    check=check,
)
