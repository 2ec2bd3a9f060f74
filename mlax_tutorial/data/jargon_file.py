"""A part of the Jargon File: English text about the language of hackers, to be read character by character."""

from pathlib import Path
from typing import NamedTuple

from mlax_tutorial.data import packed

# Made by tools/data/jargon.py.
TEXT = Path(__file__).with_name("jargon.xz")
SIZES = {"train": 440_000, "test": 40_000}  # characters, at most
CONTENTS = "0d8c9c433736fdfd11b9b614163dff67470bb657a61601a84430fb88d93324df"  # SHA-256, unpacked
BORDER = b"\x00"


class Texts(NamedTuple):
    """Two texts, none of whose entries stands in both.

    Attributes:
      train: the text to learn from.
      test: the text to be judged by.
    """

    train: str
    test: str


def jargon() -> Texts:
    """Load a part of the Jargon File, a glossary that hackers have written since 1975.

    Entries in alphabetical order, each a line with the word, how it is said and what part of speech it is, then a
    line for each paragraph, then an empty line. Cross-references stand in braces. Characters are printable ASCII
    and the newline: quotation marks, dashes and syllable marks were made plain, and entries with tables, with
    other letters, with addresses on the web or with coarse words are left out.

    Which entries are in which part was drawn once, by hashing, and is fixed.

    Returns:
      `Texts`, a pair ``(train, test)`` of strings: about 440,000 and 40,000 characters.

    Raises:
      DataError: if the package's file is broken.

    Example:
      >>> from mlax_tutorial import data
      >>> train, test = data.jargon()
      >>> len(train), len(test), len(set(train))
      (439812, 39841, 95)

    Reference: *The on-line hacker Jargon File, version 4.4.7, 29 Dec 2003*. It is in the public domain, see
    ``mlax_tutorial/data/LICENSE-jargon``; the part was made from Debian's package ``dict-jargon``.
    """
    return unpack(TEXT.read_bytes())


def pack(train: str, test: str) -> bytes:
    """The file that the package ships: both texts."""
    return packed.pack(BORDER.join([train.encode(), test.encode()]))


def unpack(file: bytes) -> Texts:
    """What `pack` packed."""
    contents = packed.unpack(file, "jargon", TEXT, CONTENTS)
    return Texts(*(part.decode() for part in contents.split(BORDER)))
