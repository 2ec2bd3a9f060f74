"""Buckets for the training names: at most five lengths, less than a tenth of padding."""

import numbers

import numpy as np

from mlax_tutorial import data
from mlax_tutorial.checking import Exercise, Failed

solution = (5, 7, 9, 11, 16)


def _waste(lengths, bounds):
    return 1 - lengths.sum() / np.asarray(bounds)[np.searchsorted(bounds, lengths)].sum()


def check(bounds):
    if bounds is None or bounds is ... or isinstance(bounds, (str, dict, set, numbers.Number)):
        raise Failed("A tuple of lengths is asked for, such as `(8, 16)`.", got=bounds)
    given = [int(bound) for bound in bounds]
    if given != sorted(set(given)):
        raise Failed("Give the bounds in rising order, each once.", got=tuple(given))
    lengths = np.array([len(name) for name in data.names()[0].names])
    if not given or given[-1] < lengths.max():
        raise Failed(
            f"A name of {lengths.max()} letters fits into none of these: the last bound must be 16.",
            got=tuple(given),
        )
    if given[-1] > lengths.max():
        raise Failed(
            f"No name is longer than {lengths.max()} letters: the last bound should be {lengths.max()}, got {given[-1]}.",
            got=tuple(given),
        )
    if len(given) > 5:
        raise Failed(
            f"{len(given)} bounds are {len(given)} programs to compile. At most five are asked for.",
            got=tuple(given),
        )
    waste = _waste(lengths, given)
    if waste >= 0.1:
        counts = np.bincount(np.searchsorted(given, lengths), minlength=len(given))
        most = int(
            np.argmax(
                [sum(bound - lengths[np.searchsorted(given, lengths) == i]) for i, bound in enumerate(given)]
            )
        )
        few = " There may be five." if len(given) < 5 else ""
        raise Failed(
            f"{waste:.1%} of the steps are still padding.{few} Most of it is in the bucket of {given[most]}, which holds {counts[most]:,} names.",
            got=tuple(given),
        )  # fmt: skip


exercise = Exercise(
    title="Choose the buckets",
    stars=1,
    minutes=8,
    why="A few shapes are enough: where lengths are crowded the bounds stand close, and the long tail shares one bucket.",
    hints=(
        "Look at the distribution first: `np.bincount(lengths)`. Where most names are, each letter of padding counts most.",
        "With five bounds there are few enough to try all: `itertools.combinations(range(2, 16), 4)`, each with 16 behind it.",
    ),
    solution=solution,
    check=check,
)
