"""The ledger of a function's keys: all keys, and what is done with each, in the order of the program."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """What a variable holds: the numbers of its keys, if it holds keys, and what is known of it besides.

    ``token`` is equal where two values are known to be equal. ``loops`` are those in which it differs from round to
    round. ``known`` computes it, if it hangs on nothing that is given.
    """

    token: Any
    keys: np.ndarray | None = None
    raw: bool = False  # the keys are in the old style, with an axis of words at the end
    loops: frozenset = frozenset()
    known: Callable[[], np.ndarray | None] = lambda: None
    name: str = ""


@dataclasses.dataclass(frozen=True)
class Place:
    """Where an equation stands: the loops around it, the branches taken, the reader's line that called for it."""

    loops: tuple[int, ...] = ()
    branches: tuple[tuple[Any, int], ...] = ()
    again: bool = False  # computed a second time, for a backward pass
    source: str = ""


@dataclasses.dataclass(eq=False)
class Key:
    text: str
    loops: frozenset = frozenset()
    hidden: bool = False  # a random function's own business
    uses: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class Use:
    """One equation that does something with keys.

    ``kind`` is ``draw``, ``split``, ``fold``, or ``pass``: into a loop, out of it, out of a branch. What is passed is
    used only if it is used where it arrives.
    """

    number: int
    kind: str
    text: str
    keys: np.ndarray
    place: Place
    children: np.ndarray | None = None  # for each key: (keys.shape, ...)
    labels: list | None = None


class Ledger:
    """All keys and all uses, in the order of the program."""

    def __init__(self):
        self.keys: list[Key] = []
        self.uses: list[Use] = []
        self.roots: list[list[int]] = []
        self.lengths: dict[int, int | None] = {}  # of loops
        self.returned: set[int] = set()
        self.folded: dict[Any, int] = {}
        self.seeds: dict[Any, int] = {}
        self.tokens: dict[Any, int] = {}
        self.counter = itertools.count()

    def new(self, text, loops=frozenset(), hidden=False) -> int:
        self.keys.append(Key(text, loops, hidden))
        return len(self.keys) - 1

    def one_each(self, keys, text, loops=lambda loops: loops) -> np.ndarray:
        """A new key for each of the given ones, ``(keys.shape, 1)``; ``loops`` makes its loops of its parent's."""
        children = np.empty((*keys.shape, 1), np.int64)
        for position in np.ndindex(*keys.shape):
            parent = self.keys[keys[position]]
            children[position] = self.new(text, loops(parent.loops), parent.hidden)
        return children

    def root(self, shape, text, loops=frozenset()) -> np.ndarray:
        places = list(np.ndindex(*shape))
        numbers = [
            self.new(text + (str(list(place)).replace(" ", "")) * bool(shape), loops) for place in places
        ]
        self.roots.append(numbers)
        return np.array(numbers, np.int64).reshape(shape)

    def token(self, *parts) -> int:
        return self.tokens.setdefault(parts, len(self.tokens))

    def unique(self) -> int:
        return self.token("unique", next(self.counter))

    def given(self, aval, name) -> Value:
        """A value that comes from outside."""
        if holds_keys(aval):
            return Value(self.unique(), self.root(aval.shape, name), name=name)
        return Value(self.unique(), name=name)

    def opaque(self, aval, loops=frozenset(), name="") -> Value:
        """A value of which nothing is known; keys in it are new ones."""
        keys = self.root(aval.shape, "unknown key", loops) if holds_keys(aval) else None
        return Value(self.unique(), keys, loops=loops, name=name)

    def use(self, kind, text, keys, place, children=None, labels=None) -> None:
        keys = np.asarray(keys)
        if all(self.keys[key].hidden for key in keys.ravel()):
            return
        use = Use(len(self.uses) + 1, kind, text, keys, place, children, labels)
        self.uses.append(use)
        for key in dict.fromkeys(keys.ravel().tolist()):
            self.keys[key].uses.append(use)


def holds_keys(aval) -> bool:
    dtype = getattr(aval, "dtype", None)
    return dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def loops_of(values) -> frozenset:
    return frozenset().union(*(value.loops for value in values))
