"""CIFAR-10 and SNLI: real archives' formats in small, from a folder, the cache or a network that misbehaves."""

import hashlib
import io
import json
import tarfile
import zipfile

import numpy as np
import pytest

from mlax_tutorial import data
from mlax_tutorial.data import cifar, sentences

COUNT = 3  # records in each file


def images(seed):
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, (COUNT, 32, 32, 3), np.uint8), generator.integers(
        0, 10, COUNT, np.uint8
    )


def cifar_archive(names=(*cifar.TRAIN, *cifar.TEST), cut=0):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as members:
        for seed, name in enumerate(names):
            pixels, labels = images(seed)
            planes = pixels.transpose(0, 3, 1, 2).reshape(COUNT, -1)
            content = np.concatenate([labels[:, None], planes], axis=1).tobytes()[: -cut or None]
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            members.addfile(member, io.BytesIO(content))
        readme = tarfile.TarInfo("cifar-10-batches-bin/readme.html")
        members.addfile(readme, io.BytesIO())
    return file.getvalue()


PAIRS = {
    "train": [("A man eats.", "A person eats.", "entailment"), ("Two dogs run.", "They “play”, ñ.", "neutral")],
    "dev": [("A boy sings.", "Nobody sings.", "contradiction"), ("A boy.", "A girl.", "-")],
    "test": [("It rains.", "It is dry.", "contradiction")],
}  # fmt: skip


def snli_archive(parts=PAIRS):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as members:
        for part, pairs in parts.items():
            lines = [
                json.dumps(
                    {"gold_label": label, "sentence1": first, "sentence2": second, "annotator_labels": []}
                )
                for first, second, label in pairs
            ]
            members.writestr(f"snli_1.0/snli_1.0_{part}.jsonl", "\n".join(lines) + "\n")
        members.writestr("__MACOSX/snli_1.0/._README.txt", "")
    return file.getvalue()


MODULES = {"cifar10": cifar, "snli": sentences}
FILES = {"cifar10": "cifar-10-binary.tar.gz", "snli": "snli_1.0.zip"}


@pytest.fixture(params=MODULES)
def name(request):
    return request.param


@pytest.fixture
def small(name, monkeypatch):
    """The archive in small, which is then the right one."""
    return expect(name, cifar_archive() if name == "cifar10" else snli_archive(), monkeypatch)


def expect(name, content, monkeypatch):
    monkeypatch.setattr(MODULES[name], "SHA256", hashlib.sha256(content).hexdigest())
    return content


def load(name, **options):
    return getattr(data, name)(progress=lambda *_: None, **options)


def test_pixels_and_labels_come_back(monkeypatch, tmp_path):
    (tmp_path / FILES["cifar10"]).write_bytes(expect("cifar10", cifar_archive(), monkeypatch))
    train, test = load("cifar10", folder=tmp_path, download=False)
    for part, seeds in ((train, range(5)), (test, [5])):
        pixels, labels = (np.concatenate(each) for each in zip(*map(images, seeds)))
        np.testing.assert_array_equal(part.images, pixels)
        np.testing.assert_array_equal(part.labels, labels)
        assert part.images.dtype == np.uint8 and part.labels.dtype == np.int32
        assert not part.images.flags.writeable and not part.labels.flags.writeable
    assert len(data.CIFAR10_CLASSES) == 10


def test_sentences_and_labels_come_back(monkeypatch, tmp_path):
    (tmp_path / FILES["snli"]).write_bytes(expect("snli", snli_archive(), monkeypatch))
    train, validation, test = load("snli", folder=tmp_path, download=False)
    assert train.premises == ("A man eats.", "Two dogs run.")
    assert train.hypotheses[1] == "They “play”, ñ." and train.labels.tolist() == [0, 1]
    assert len(validation.labels) == 1 and [data.SNLI_CLASSES[i] for i in validation.labels] == [
        "contradiction"
    ]
    assert test.labels.dtype == np.int32 and not test.labels.flags.writeable


def test_it_is_fetched_once_into_the_cache(name, small, server, monkeypatch, tmp_path):
    server.content = small
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(MODULES[name], "URL", server.url + FILES[name])
    server.manners = ["break"]  # and resumed
    first = load(name)
    assert len(server.requests) == 2 and server.requests[1].startswith("bytes=")
    again = load(name, download=False)
    assert len(server.requests) == 2 and len(first) == len(again)
    (place,) = tmp_path.glob("mlax-tutorial/*")
    assert [path.name for path in place.iterdir()] == [FILES[name]]


def test_without_a_network_it_says_what_to_do(name, monkeypatch, tmp_path):
    monkeypatch.setattr(MODULES[name], "URL", f"http://127.0.0.1:9/{FILES[name]}")
    monkeypatch.setattr("mlax_tutorial.data.download.time.sleep", lambda _: None)
    with pytest.raises(data.DataError, match=r"could not be fetched .*Without a network, put the file into"):
        load(name, folder=tmp_path)
    with pytest.raises(data.DataError, match=rf"^{name}: {FILES[name]} is not in .*download=True.*from http"):
        load(name, folder=tmp_path, download=False)
    assert list(tmp_path.iterdir()) == []


def test_another_file_of_that_name_is_told(name, tmp_path):
    (tmp_path / FILES[name]).write_bytes(b"something else")
    with pytest.raises(data.DataError, match=rf"^{name}: .*{FILES[name]} is not the archive.*delete it"):
        load(name, folder=tmp_path)
    assert (tmp_path / FILES[name]).read_bytes() == b"something else"


@pytest.mark.parametrize(
    "name, content",
    [
        ("cifar10", b"no archive"),
        ("cifar10", cifar_archive()[:20_000]),
        ("cifar10", cifar_archive(cifar.TRAIN)),
        ("cifar10", cifar_archive(cut=1)),
        ("snli", b"no archive"),
        ("snli", snli_archive({"train": PAIRS["train"]})),
        ("snli", snli_archive(PAIRS | {"dev": [("A", "B", "perhaps")]})),
    ],
)
def test_what_cannot_be_read_is_told(name, content, monkeypatch, tmp_path):
    (tmp_path / FILES[name]).write_bytes(expect(name, content, monkeypatch))
    with pytest.raises(data.DataError, match=rf"^{name}: "):
        load(name, folder=tmp_path)


def test_checksums_are_of_the_published_files():
    assert all(len(module.SHA256) == 64 and module.URL.startswith("https://") for module in MODULES.values())
