"""SNLI: pairs of English sentences, and whether the second follows from the first (Bowman et al., 2015)."""

import io
import json
import os
import zipfile
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mlax_tutorial.data.download import DataError, archive

SNLI_CLASSES = ("entailment", "neutral", "contradiction")

URL = "https://nlp.stanford.edu/projects/snli/snli_1.0.zip"
SHA256 = "afb3d70a5af5d8de0d9d81e2637e0fb8c22d1235c2749d83125ca43dab0dbd3e"
PARTS = ("train", "dev", "test")


class Pairs(NamedTuple):
    """Pairs of sentences with their classes.

    Attributes:
      premises: strings, as they are written.
      hypotheses: as many.
      labels: a read-only NumPy array, shape ``(n,)``, dtype int32, from 0 to 2: an index into ``SNLI_CLASSES``.
    """

    premises: tuple[str, ...]
    hypotheses: tuple[str, ...]
    labels: np.ndarray


def snli(
    folder: str | os.PathLike | None = None,
    download: bool = True,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> tuple[Pairs, Pairs, Pairs]:
    """Load the Stanford Natural Language Inference corpus, version 1.0: 570,152 pairs of sentences.

    A premise describes a photograph. The hypothesis was written to follow from it (entailment), to contradict it, or to do neither.
    Pairs on whose class the annotators did not agree are left out, as in all published results: 549,367 are for training, 9,842 for
    validation and 9,824 for testing.

    The archive ``snli_1.0.zip`` is looked for in ``folder`` if one is given, otherwise in the user's cache
    (``$XDG_CACHE_HOME/mlax-tutorial/snli``), and downloaded to there (95 MB) if it is missing. It is checked by SHA-256 and read where
    it lies; a download that broke off is resumed.

    Args:
      folder: where the archive is, or shall be put.
      download: whether a missing archive may be fetched.
      progress: as for `fashion_mnist`.

    Returns:
      ``(train, validation, test)``, three `Pairs`.

    Raises:
      DataError: if the archive is missing and may not be or cannot be fetched, or is not that of SNLI.

    Reference: Bowman, Angeli, Potts and Manning, *A large annotated corpus for learning natural language inference* (2015),
    arXiv:1508.05326. CC BY-SA 4.0.
    """
    file = archive("snli", URL, SHA256, "snli", folder, download, progress)
    try:
        with zipfile.ZipFile(io.BytesIO(file)) as members:
            return tuple(_pairs(members, f"snli_1.0/snli_1.0_{part}.jsonl") for part in PARTS)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError) as error:
        raise DataError(f"snli: the archive cannot be read ({error}).") from None


def _pairs(members: zipfile.ZipFile, name: str) -> Pairs:
    premises, hypotheses, labels = [], [], []
    with members.open(name) as lines:
        for line in lines:
            pair = json.loads(line)
            if pair["gold_label"] != "-":  # no class had a majority among the annotators
                premises.append(pair["sentence1"])
                hypotheses.append(pair["sentence2"])
                labels.append(SNLI_CLASSES.index(pair["gold_label"]))
    labels = np.array(labels, np.int32)
    labels.flags.writeable = False
    return Pairs(tuple(premises), tuple(hypotheses), labels)
