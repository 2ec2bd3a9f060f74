"""A part of the Jargon File."""

from pathlib import Path

import pytest

from mlax_tutorial import data
from mlax_tutorial.data import jargon_file as module
from mlax_tutorial.data import packed as packed_files
from tools.data import jargon


def test_both_parts_are_plain_text():
    for text, size in zip(data.jargon(), module.SIZES.values()):
        assert 0.99 * size < len(text) <= size
        assert text.isascii() and all(letter.isprintable() or letter == "\n" for letter in text)
        assert text.endswith(".\n\n") and "\n\n\n" not in text and "  " not in text


def test_no_entry_stands_in_both():
    train, test = data.jargon()
    assert len(train.split("\n\n")) > 800 and len(test.split("\n\n")) > 70
    lines = set(train.split("\n"))
    assert not [line for line in test.split("\n") if len(line) > 40 and line in lines]


def test_no_character_is_new_in_the_test():
    train, test = data.jargon()
    assert set(test) <= set(train)


def test_it_is_the_jargon_file():
    text = "".join(data.jargon())
    assert '\n1TBS n.\nThe "One True Brace Style"; see {indent style}.\n\n' in text


def test_the_file_is_small_and_its_licence_is_beside():
    assert module.TEXT.stat().st_size <= 500_000
    assert "public domain" in module.TEXT.with_name("LICENSE-jargon").read_text()


def test_packing_loses_nothing():
    parts = data.jargon()
    assert module.unpack(module.pack(*parts)) == parts


@pytest.mark.parametrize(
    ("entry", "cleaned"),
    [
        ("zorch\n /zorch/\n\n    To flunk an\n    exam.\n", "zorch /zorch/\nTo flunk an exam.\n\n"),
        ("404\n //, n.\n\n    Not “\n    found” {\n    here}.\n", '404 n.\nNot "found" {here}.\n\n'),
        ("a\n /b·c´/, n.\n\n    1. One—\n\n    2. two\n", "a /b-c'/, n.\n1. One--\n2. two\n\n"),
        ("table\n\n    one\n      two\n", None),
        ("letter\n\n    See http://example.org.\n", None),
    ],
)
def test_entries_are_made_plain(entry, cleaned):
    assert jargon.clean(entry) == cleaned


@pytest.mark.parametrize(
    "broken",
    [
        lambda packed: b"",
        lambda packed: packed[:-100],
        lambda packed: packed[:1000] + bytes([packed[1000] ^ 1]) + packed[1001:],
        lambda packed: packed_files.pack(b"another\x00text"),
    ],
    ids=["empty", "cut off", "damaged", "another content"],
)
def test_a_broken_file_is_told(broken, monkeypatch, tmp_path):
    packed = module.TEXT.read_bytes()
    monkeypatch.setattr(module, "TEXT", Path(tmp_path / "jargon.xz"))
    module.TEXT.write_bytes(broken(packed))
    with pytest.raises(data.DataError, match=r"^jargon: .*jargon\.xz .*install mlax-tutorial anew"):
        data.jargon()
