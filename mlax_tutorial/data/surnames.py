"""Surnames in thirteen languages: sequences of letters, each with its class."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from mlax_tutorial.data import packed

NAME_LANGUAGES = (
    "Croatian", "Dutch", "English", "Estonian", "Finnish", "French", "German", "Irish", "Italian", "Slovak",
    "Spanish", "Swedish", "Zulu",
)  # fmt: skip

# Made by tools/data/names.py.
NAMES = Path(__file__).with_name("names.xz")
CONTENTS = "f4f523ab9b6053de15ffd5ca12a3a5f01a85ebbe004d9d3828ac29220793fa95"  # SHA-256, unpacked
TEST_PART = 0.2


class Names(NamedTuple):
    """Names with their languages.

    Attributes:
      names: strings, as they are written: with capitals, accents, blanks and apostrophes.
      labels: a read-only NumPy array, shape ``(n,)``, dtype int32, from 0 to 12: an index into
        ``NAME_LANGUAGES``.
    """

    names: tuple[str, ...]
    labels: np.ndarray


def names() -> tuple[Names, Names]:
    """Load 13,580 surnames in thirteen languages, in Latin script.

    The languages are of very different size: Irish has 2,288 names, French 332. One fifth of each
    language, drawn once by hashing, is for testing. Both parts are shuffled.

    No name stands twice, whatever its capitals, so none stands in both parts: a name that faker lists for two
    languages or more, such as *Adam* or *Martin*, is left out of all of them, since it has no one answer. So is
    a name of more than 16 characters. Related names stay: *Novák* may be in one part and *Nováková*, of the same family, in the other.

    "English" are the names used in Ireland in English spelling, "Irish" those in Irish; "German" are Austrian.

    Returns:
      ``(train, test)``, two `Names`.

    Raises:
      DataError: if the package's file is broken.

    Example:
      >>> from mlax_tutorial import data
      >>> train, test = data.names()
      >>> len(train.names), len(test.names)
      (10866, 2714)
      >>> [(name, data.NAME_LANGUAGES[label]) for name, label in zip(train.names[:3], train.labels)]
      [('Gugushe', 'Zulu'), ('Augustin', 'German'), ('Holiček', 'Slovak')]

    Source: the lists of the Python package ``faker`` 40.54. MIT licence, see
    ``mlax_tutorial/data/LICENSE-names``.
    """
    return unpack(NAMES.read_bytes())


def pack(train: list[tuple[str, int]], test: list[tuple[str, int]]) -> bytes:
    """The file that the package ships: a line for each name, an empty one between the parts."""
    parts = ["".join(f"{name}\t{label}\n" for name, label in part) for part in (train, test)]
    return packed.pack("\n".join(parts).encode())


def unpack(file: bytes) -> tuple[Names, Names]:
    """What `pack` packed."""
    contents = packed.unpack(file, "names", NAMES, CONTENTS)
    return tuple(_names(part) for part in contents.decode().split("\n\n"))


def _names(part: str) -> Names:
    lines = [line.split("\t") for line in part.splitlines()]
    labels = np.array([int(label) for _, label in lines], np.int32)
    labels.flags.writeable = False
    return Names(tuple(name for name, _ in lines), labels)
