"""Fashion-MNIST: the part that ships, and the whole from a folder or the network."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from mlax_tutorial import data
from mlax_tutorial.data import fashion as module
from mlax_tutorial.data import packed as packed_files
from tools.data import fashion_subset

WHOLE = module.DEBIAN
NAMES = list(module.CONTENTS)


@pytest.fixture
def whole():
    if not WHOLE.is_dir():
        reason = f"the whole set is not in {WHOLE}: apt install dataset-fashion-mnist"
        (pytest.fail if os.environ.get("MLAX_REQUIRE_DATA") == "1" else pytest.skip)(reason)
    return WHOLE


def test_the_part_is_balanced_and_offline(monkeypatch):
    monkeypatch.setattr(module, "URL", "http://127.0.0.1:9/")
    train, test = data.fashion_mnist()
    for part, size in ((train, 10_000), (test, 2_000)):
        assert part.images.shape == (size, 28, 28) and part.images.dtype == np.uint8
        assert part.labels.shape == (size,) and part.labels.dtype == np.int32
        assert (np.bincount(part.labels) == size // 10).all()
        assert part.images.max() == 255 and part.images.min() == 0
        assert not part.images.flags.writeable and not part.labels.flags.writeable
    assert len(data.FASHION_MNIST_CLASSES) == 10


def test_training_and_test_images_are_disjoint():
    train, test = data.fashion_mnist()
    seen = {image.tobytes() for image in train.images}
    assert not [image for image in test.images if image.tobytes() in seen]


def test_the_part_is_small_and_its_licence_is_beside():
    assert module.SUBSET.stat().st_size <= 6_000_000
    assert "Zalando" in module.SUBSET.with_name("LICENSE-fashion-mnist").read_text()


def test_the_part_is_what_the_script_makes(whole):
    train, test = map(fashion_subset.choose, data.fashion_mnist(whole=True), module.SUBSET_SIZES.values())
    for made, shipped in zip((train, test), data.fashion_mnist()):
        np.testing.assert_array_equal(made.images, shipped.images)
        np.testing.assert_array_equal(made.labels, shipped.labels)


def test_packing_loses_nothing(monkeypatch):
    train, test = data.fashion_mnist()
    monkeypatch.setattr(packed_files, "lzma", Uncompressed)  # compressing all of it takes half a minute
    for first, second in zip((train, test), module.unpack_subset(module.pack_subset(train, test))):
        np.testing.assert_array_equal(first.images, second.images)
        np.testing.assert_array_equal(first.labels, second.labels)


class Uncompressed:
    PRESET_EXTREME, LZMAError = 0, ValueError
    compress, decompress = (lambda content, preset: content), (lambda content: content)


def damaged(content):
    return content[:1000] + bytes([content[1000] ^ 1]) + content[1001:]


@pytest.mark.parametrize(
    "broken",
    [
        lambda packed: b"",
        lambda packed: packed[:-100],
        damaged,
        lambda packed: packed_files.pack(bytes(9_420_000)),
    ],
    ids=["empty", "cut off", "damaged", "another content"],
)
def test_a_broken_part_is_told(broken, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "SUBSET", tmp_path / "part.xz")
    module.SUBSET.write_bytes(broken((Path(module.__file__).parent / "fashion_mnist_subset.xz").read_bytes()))
    with pytest.raises(data.DataError, match=r"part\.xz .*install mlax-tutorial anew"):
        data.fashion_mnist()


def test_the_whole_set_is_found(whole):
    train, test = data.fashion_mnist(whole=True, download=False)
    assert train.images.shape == (60_000, 28, 28) and test.images.shape == (10_000, 28, 28)
    assert (np.bincount(train.labels) == 6000).all() and (np.bincount(test.labels) == 1000).all()


def test_unpacked_files_in_a_folder(whole, tmp_path):
    for name in NAMES:
        (tmp_path / name).write_bytes(gzip.decompress((whole / f"{name}.gz").read_bytes()))
    train, _ = data.fashion_mnist(whole=True, folder=tmp_path, download=False)
    assert train.images.shape == (60_000, 28, 28)


def test_a_missing_file_says_where_to_get_it(tmp_path):
    with pytest.raises(data.DataError, match=r"train-images-idx3-ubyte\.gz is not in .*download=True"):
        data.fashion_mnist(whole=True, folder=tmp_path, download=False)


@pytest.mark.parametrize(
    "content",
    [b"\x1f\x8bgarbage", b"", gzip.compress(b"another data set")],
    ids=["no gzip", "empty", "something else"],
)
def test_a_broken_file_is_named(tmp_path, content):
    (tmp_path / f"{NAMES[0]}.gz").write_bytes(content)
    with pytest.raises(data.DataError, match=rf"{NAMES[0]}\.gz (is broken|does not hold).*delete it"):
        data.fashion_mnist(whole=True, folder=tmp_path)
    assert (
        tmp_path / f"{NAMES[0]}.gz"
    ).read_bytes() == content  # the reader's file is the reader's to delete


def test_a_truncated_file_is_named(whole, tmp_path):
    (tmp_path / f"{NAMES[1]}.gz").write_bytes((whole / f"{NAMES[1]}.gz").read_bytes()[:5000])
    for name in (NAMES[0], *NAMES[2:]):
        (tmp_path / f"{name}.gz").symlink_to(whole / f"{name}.gz")
    with pytest.raises(data.DataError, match=r"train-labels.*is broken"):
        data.fashion_mnist(whole=True, folder=tmp_path)


def test_what_the_network_sends_instead_is_refused(server, tmp_path):
    with pytest.raises(data.DataError, match="nothing was kept"):
        data.fashion_mnist(whole=True, folder=tmp_path, progress=lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def test_the_cache_follows_xdg(server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(module, "DEBIAN", Path("/nowhere"))
    server.manners = ["break"] * 3
    with pytest.raises(data.DataError, match=str(tmp_path)):
        data.fashion_mnist(whole=True, progress=lambda *_: None)
    assert (tmp_path / "mlax-tutorial" / "fashion-mnist" / f"{NAMES[0]}.gz.partial").is_file()


def test_a_user_without_a_home_is_asked_for_a_folder(tmp_path, monkeypatch):
    def nowhere(*_):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(module.Path, "home", nowhere)
    with pytest.raises(data.DataError, match="no home directory: pass a folder"):
        data.fashion_mnist(whole=True, download=False)
    with pytest.raises(data.DataError, match=str(tmp_path)):  # the home is not looked for
        data.fashion_mnist(whole=True, folder=tmp_path, download=False)


def test_a_folder_for_the_part_is_a_mistake(tmp_path):
    with pytest.raises(data.DataError, match="whole=True"):
        data.fashion_mnist(folder=tmp_path)


def test_a_folder_in_place_of_whole():
    with pytest.raises(
        data.DataError,
        match="^fashion_mnist: whole must be True or False, got 'images': name the folder, folder='im",
    ):
        data.fashion_mnist("images")
