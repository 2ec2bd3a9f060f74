"""Surnames by language."""

import unicodedata
from pathlib import Path

import numpy as np
import pytest

from mlax_tutorial import data
from mlax_tutorial.data import packed as packed_files
from mlax_tutorial.data import surnames as module

CLASSES = len(data.NAME_LANGUAGES)


def test_every_language_has_its_share_of_both_parts():
    train, test = data.names()
    counts = [np.bincount(part.labels, minlength=CLASSES) for part in (train, test)]
    assert CLASSES == 13 and sum(counts).min() >= 300
    np.testing.assert_allclose(counts[1] / sum(counts), module.TEST_PART, atol=0.002)
    for part in (train, test):
        assert len(part.names) == len(part.labels) and part.labels.dtype == np.int32
        assert not part.labels.flags.writeable
        assert len(set(part.labels[:100].tolist())) >= 8  # shuffled


def test_no_name_stands_twice():
    train, test = data.names()
    names = [name.casefold() for name in train.names + test.names]
    assert len(set(names)) == len(names) == 13_580


def test_names_are_short_and_composed():
    train, test = data.names()
    for name in train.names + test.names:
        assert 1 <= len(name) <= 16 and name == name.strip() == unicodedata.normalize("NFC", name)


def test_some_names_are_where_they_belong():
    train, test = data.names()
    languages = {
        name: data.NAME_LANGUAGES[label]
        for part in (train, test)
        for name, label in zip(part.names, part.labels)
    }
    assert languages["Wikström"] == "Swedish" and languages["Ricci"] == "Italian"
    assert languages["Nováková"] == "Slovak" and "Martin" not in languages


def test_the_file_is_small_and_its_licence_is_beside():
    assert module.NAMES.stat().st_size <= 100_000
    assert "Daniele Faraglia" in module.NAMES.with_name("LICENSE-names").read_text()


def test_packing_loses_nothing():
    parts = data.names()
    again = module.unpack(module.pack(*(list(zip(part.names, part.labels.tolist())) for part in parts)))
    for first, second in zip(parts, again):
        assert first.names == second.names
        np.testing.assert_array_equal(first.labels, second.labels)


@pytest.mark.parametrize(
    "broken",
    [
        lambda packed: b"",
        lambda packed: packed[:-100],
        lambda packed: packed[:1000] + bytes([packed[1000] ^ 1]) + packed[1001:],
        lambda packed: packed_files.pack("Müller\t6\n\nMaier\t6\n".encode()),
    ],
    ids=["empty", "cut off", "damaged", "another content"],
)
def test_a_broken_file_is_told(broken, monkeypatch, tmp_path):
    packed = module.NAMES.read_bytes()
    monkeypatch.setattr(module, "NAMES", Path(tmp_path / "names.xz"))
    module.NAMES.write_bytes(broken(packed))
    with pytest.raises(data.DataError, match=r"^names: .*names\.xz .*install mlax-tutorial anew"):
        data.names()
