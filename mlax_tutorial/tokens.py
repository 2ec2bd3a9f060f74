"""Byte pairs: a tokenizer that is learned from text, and takes any."""

import collections
import functools
import json
import operator
import re
from dataclasses import dataclass

from mlax_tutorial._beside import written_beside
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked
from mlax_tutorial.nn.rules import integer

_WORDS = re.compile(r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+")
# GPT-2 writes each byte as a character, as itself if one can see it: the others come after all of these.
_SEEN = [*range(33, 127), *range(161, 173), *range(174, 256)]
_PLACES = {byte: place for place, byte in enumerate(sorted(range(256), key=lambda byte: byte not in _SEEN))}


@dataclass(frozen=True)
class BytePairs:
    """Ids for text: the 256 bytes of UTF-8, and pairs of earlier ids that were frequent.

    Text is first cut into words, each with the space before it; pairs never reach across two. Every text can be encoded, and is
    what comes back from :meth:`decode`.

    Args:
      merges: pairs of ids, in the order in which they were learned; the first becomes id 256.

    Raises:
      ValueError: if a merge is no pair of earlier ids.

    Example:
      >>> tokens = BytePairs.train("low lower lowest", size=260)
      >>> tokens.encode("slow"), tokens.size
      ([115, 257], 260)
      >>> tokens.decode(tokens.encode("größer 🙂"))
      'größer 🙂'

    Reference: Sennrich, Haddow and Birch, *Neural Machine Translation of Rare Words with Subword Units* (2016).
    """

    merges: tuple[tuple[int, int], ...]

    def __post_init__(self):
        wanted = "must be a tuple of pairs of ids, each from 0 to 255 or of an earlier pair"
        if not isinstance(self.merges, tuple):
            raise ValueError(f"BytePairs: merges {wanted}, got {describe(self.merges)}.")
        for i, pair in enumerate(self.merges):
            known = isinstance(pair, tuple) and len(pair) == 2 and all(type(id) is int for id in pair)
            if not known or not all(0 <= id < 256 + i for id in pair):
                raise ValueError(f"BytePairs: merges {wanted}, got {pair!r} for id {256 + i}.")

    @property
    def size(self) -> int:
        """How many ids there are."""
        return 256 + len(self.merges)

    @classmethod
    def train(cls, text: str, size: int) -> "BytePairs":
        """Learn up to ``size - 256`` pairs, each time the most frequent one.

        Of equally frequent ones it is that of the lowest ids, where those of bytes stand in GPT-2's order: first the ones that
        can be seen in Latin-1, then spaces and the like. So does the package ``tokenizers``, whose merges are the same.

        Raises:
          ValueError: if ``text`` is no string, or ``size`` no integer of at least 256, one for each byte.
        """
        size = checked("BytePairs.train: size", functools.partial(integer, minimum=256), size)
        _check_text("BytePairs.train", text)
        counted = collections.Counter(_WORDS.findall(text))
        words, counts = [list(_bytes(word)) for word in counted], list(counted.values())
        pairs, where = collections.Counter(), collections.defaultdict(set)
        for i, word in enumerate(words):
            for pair in zip(word, word[1:]):
                pairs[pair] += counts[i]
                where[pair].add(i)
        merges = []
        while pairs and 256 + len(merges) < size:
            most = max(pairs.values())
            best = min((pair for pair, count in pairs.items() if count == most), key=_order)
            for i in where.pop(best):  # only these words change
                for pair in zip(words[i], words[i][1:]):
                    pairs[pair] -= counts[i]
                    if not pairs[pair]:
                        del pairs[pair]
                words[i] = _merge(words[i], best, 256 + len(merges))
                for pair in zip(words[i], words[i][1:]):
                    pairs[pair] += counts[i]
                    where[pair].add(i)
            merges.append(best)
        return cls(tuple(merges))

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        _check_text("BytePairs.encode", text)
        return [id for word in _WORDS.findall(text) for id in self._encoded(word)]

    def decode(self, ids) -> str:
        """The text of ids, also NumPy's or JAX's; bytes that are no text, as a model may write them, become U+FFFD."""
        try:
            ids = [operator.index(id) for id in ids]
        except TypeError:
            raise ValueError(
                f"BytePairs.decode: ids must be one axis of integers, got {describe(ids)}."
            ) from None
        if wrong := [id for id in ids if not 0 <= id < self.size]:
            raise ValueError(f"BytePairs.decode: ids are from 0 to {self.size - 1}, got {wrong[0]}.")
        data = b"".join(self._bytes[id] for id in ids)
        try:
            return data.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace")

    def save(self, path) -> None:
        """Write a JSON file; it is complete or not there, since it is renamed when it is written."""
        with written_beside(path) as partial, open(partial, "w", encoding="utf-8") as file:
            json.dump({"merges": self.merges}, file)

    @classmethod
    def load(cls, path) -> "BytePairs":
        """Read what :meth:`save` wrote.

        Raises:
          ValueError: if the file holds something else.
        """
        try:
            with open(path, encoding="utf-8") as file:
                return cls(tuple(map(tuple, json.load(file)["merges"])))
        except (ValueError, TypeError, KeyError) as reason:  # no text, no JSON, or other JSON
            raise ValueError(f"BytePairs.load: {path} must be a file that save wrote: {reason}.") from None

    @functools.cached_property
    def _ids(self):
        return {pair: 256 + i for i, pair in enumerate(self.merges)}

    @functools.cached_property
    def _bytes(self):
        parts = [bytes([byte]) for byte in range(256)]
        for first, second in self.merges:
            parts.append(parts[first] + parts[second])
        return parts

    @functools.cached_property
    def _known(self):
        return {}

    def _encoded(self, word):
        if word not in self._known:
            ids = list(_bytes(word))
            while pairs := self._ids.keys() & set(zip(ids, ids[1:])):
                first = min(pairs, key=self._ids.__getitem__)
                ids = _merge(ids, first, self._ids[first])
            self._known[word] = ids
        return self._known[word]


def _bytes(word):
    return word.encode("utf-8", "surrogatepass")


def _order(pair):
    return [_PLACES.get(id, id) for id in pair]


def _check_text(what, text):
    if not isinstance(text, str):
        raise ValueError(f"{what}: text must be one str, got {type(text).__name__}.")


def _merge(ids, pair, made):
    """The ids with ``made`` in place of each pair."""
    merged, i = [], 0
    while i < len(ids):
        found = tuple(ids[i : i + 2]) == pair
        merged.append(made if found else ids[i])
        i += 2 if found else 1
    return merged
