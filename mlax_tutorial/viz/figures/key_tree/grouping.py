"""From a ledger of keys to the nodes of a tree: keys of the same fate together, and what is wrong with any of them."""

import dataclasses
import functools
import itertools
import math

import numpy as np


@dataclasses.dataclass(frozen=True)
class Node:
    """A key, or what is drawn from it.

    Attributes:
      text: what it is: ``key``, ``split[0]``, ``fold_in(3)``, ``normal f32[3]``.
      kind: ``key`` or ``draw``.
      count: how many keys of the same fate the node stands for.
      rounds: the length of each loop that it is in, from the outside in; None where it is not known.
      step: the number of the step that makes it; 0 for the keys that are given.
      wrong: what is wrong with how the key is used, in a few words; empty if nothing is.
      wrong_from: the step from which on it is wrong.
      unused: nobody uses the key, and the function does not return it.
      source: the line of the reader's that made it, if it is known.
      children: keys that are derived from it, and draws.
    """

    text: str
    kind: str = "key"
    count: int = 1
    rounds: tuple[int | None, ...] = ()
    step: int = 0
    wrong: str = ""
    wrong_from: int = 0
    unused: bool = False
    source: str = ""
    children: tuple["Node", ...] = ()


@dataclasses.dataclass(frozen=True)
class Recording:
    """The keys of a function.

    Attributes:
      name: of the function.
      roots: the keys that it is given, or makes from a seed.
      steps: what is done with keys, in the order of the program: a text and the line of the reader's.
    """

    name: str
    roots: tuple[Node, ...]
    steps: tuple[tuple[str, str], ...]

    def nodes(self):
        """All nodes, each before its children."""
        waiting = list(self.roots)
        while waiting:
            node = waiting.pop(0)
            yield node
            waiting[:0] = node.children

    @property
    def reused(self) -> tuple[Node, ...]:
        """The nodes with which something is wrong."""
        return tuple(node for node in self.nodes() if node.wrong)


class Drawing:
    """Groups keys of the same fate into nodes, and finds out which are used wrongly."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.active = functools.cache(self._active)
        self.problem = functools.cache(self._problem)
        self.fate = functools.cache(self._fate)
        self.running = set()
        self.shown = {}

    def recording(self, name) -> Recording:
        shown = [use for use in self.ledger.uses if self._is_shown(use)]
        self.shown = {use.number: step for step, use in enumerate(shown, 1)}
        roots = []
        for numbers in self.ledger.roots:
            roots += self._nodes([(self.ledger.keys[key].text, key) for key in numbers], 0, "", ())
        roots = [
            node for node in roots if not (node.unused and node.text.startswith(("unknown", "a key from")))
        ]
        steps = [(self._said(use), use.place.source) for use in shown]
        return Recording(name, tuple(_merged(roots)), tuple(steps))

    def _is_shown(self, use):
        return not use.place.again and (use.kind != "pass" or self._reaches(use))

    def _said(self, use):
        size = use.keys.size
        whom = "a key" if size == 1 else f"{size} keys"
        rounds = self._rounds(use.place.loops)
        suffix = "".join(f", in each of {length or 'all'} rounds" for length in rounds)
        names = sorted({self.ledger.keys[key].text for key in use.keys.ravel().tolist()})
        if len(names) == 1:
            whom = f"{size} keys {names[0]}" if size > 1 else names[0]
        return f"{whom}: {use.text}{suffix}"

    def _rounds(self, loops):
        return tuple(self.ledger.lengths[loop] for loop in sorted(loops))

    # Which uses count

    def _reaches(self, use):
        return any(self.active(int(child)) for child in np.unique(use.children))

    def _active(self, key):
        """The uses of a key that count. What is passed on counts where it is used."""
        if key in self.running:
            return ()
        self.running.add(key)
        found = []
        for use in self.ledger.keys[key].uses:
            if use.place.again:
                continue
            if use.kind in ("pass", "choose"):
                if self._reaches(use) or self._returned(use, key):
                    found.append(use)
            else:
                found.append(use)
        self.running.discard(key)
        return tuple(found)

    def _returned(self, use, key):
        return bool(self.ledger.returned & set(use.children.ravel().tolist()))

    def _consumes(self, key, use):
        """Whether a use is one that a key allows only once: all but folding, cloning, choosing."""
        if use.kind in ("draw", "split"):
            return True
        if use.kind != "pass":
            return False
        if use.number in self.running:
            return False
        self.running.add(use.number)
        children = use.children[use.keys == key].ravel().tolist()
        found = any(self._consumes(child, each) for child in children for each in self.active(child))
        self.running.discard(use.number)
        return found

    def _problem(self, key):
        """What is wrong with the uses of a key, and from which use on."""
        uses, entry = self.active(key), self.ledger.keys[key]
        consuming = [use for use in uses if self._consumes(key, use)]
        for use in consuming:
            outer = [loop for loop in use.place.loops if loop not in entry.loops]
            if lengths := [self.ledger.lengths[loop] for loop in outer if self.ledger.lengths[loop] != 1]:
                text = f"all {math.prod(lengths)} rounds" if None not in lengths else "all rounds"
                return f"the same in {text}", use.number
            times = int((use.keys == key).sum())
            if times > 1:
                return f"used {_times(times)} at once", use.number
        together = max((_together(consuming[start:]) for start in range(len(consuming))), key=len, default=[])
        if len(together) > 1:
            return f"used {_times(len(together))}", together[1].number
        folds = [use for use in uses if use.kind == "fold"]
        for fold in folds:
            for use in consuming:
                if not _exclusive(fold, use):
                    verb = {"draw": "drawn from", "split": "split"}.get(use.kind, "used")
                    return f"folded and {verb}", max(fold.number, use.number)
        if consuming and key in self.ledger.returned:
            return "used, and returned", consuming[-1].number
        return "", 0

    # Nodes

    def _fate(self, key):
        """What befalls a key: keys of the same fate are shown as one node."""
        return (
            tuple(use.number or id(use) for use in self.active(key)),
            self.problem(key)[0],
            key in self.ledger.returned,
        )

    def _nodes(self, labelled, step, source, rounds_so_far, seen=frozenset()):
        """Nodes for keys with their labels, those of one fate together."""
        groups = {}
        for text, key in labelled:
            if not self.ledger.keys[key].hidden:
                groups.setdefault(self.fate(key), {}).setdefault(key, text)
        return [
            self._node(list(members), list(members.values()), step, source, rounds_so_far, seen)
            for members in groups.values()
        ]

    def _node(self, keys, texts, step, source, rounds_so_far, seen):
        ledger, first = self.ledger, keys[0]
        uses, (wrong, since) = self.active(first), self.problem(first)
        rounds = self._rounds(ledger.keys[first].loops)
        children, derived = [], set()
        for use in uses:
            if use.kind == "draw":
                times = self._rounds(set(use.place.loops) - ledger.keys[first].loops)
                children.append(
                    Node(use.text, "draw", len(keys), times, self._step(use), source=use.place.source)
                )
                continue
            labels, pairs = use.labels or [], []
            for position in np.ndindex(*use.keys.shape):
                if int(use.keys[position]) not in keys:
                    continue
                for index, child in enumerate(use.children[position].tolist()):
                    if (child, use.kind) in derived or child in seen:
                        continue
                    text = ledger.keys[child].text if use.kind == "fold" else labels[index]
                    pairs.append((text, child))
            derived.update((child, use.kind) for _, child in pairs)
            made = step if use.kind == "choose" else self._step(use)
            inner = self._nodes(pairs, made, use.place.source, rounds, seen | set(keys))
            if use.kind == "pass" and use.text == "next round" and not inner:
                inner = [Node("next round", "key", step=self._step(use), source=use.place.source)]
            children += inner
        unused = not uses and not any(key in ledger.returned for key in keys)
        text = _label(texts) + (" (returned)" if all(key in ledger.returned for key in keys) else "")
        return Node(
            text, "key", len(keys), rounds[len(rounds_so_far) :],
            step, wrong, self.shown.get(since, 0), unused, source, tuple(_merged(children)),
        )  # fmt: skip

    def _step(self, use):
        return self.shown.get(use.number, 0)


def _exclusive(one, other) -> bool:
    """Two uses of which only one takes place: they stand in different branches."""
    taken = dict(one.place.branches)
    return any(which in taken and taken[which] != number for which, number in other.place.branches)


def _together(uses):
    """The first use, and all later ones that may take place along with it and with each other."""
    chosen = []
    for use in uses:
        if not any(_exclusive(use, other) for other in chosen):
            chosen.append(use)
    return chosen


def _times(number) -> str:
    return {2: "twice"}.get(number, f"{number} times")


def _label(texts) -> str:
    """One label for several keys: ``split[0…7]``."""
    texts = list(dict.fromkeys(texts))
    if len(texts) == 1:
        return texts[0]
    heads = {text.partition("[")[0].partition("(")[0] for text in texts}
    if len(heads) > 1:
        return f"{texts[0]} and {len(texts) - 1} more"
    (head,) = heads
    inner = [text[len(head) + 1 : -1] for text in texts]
    opening, closing = (texts[0][len(head)], texts[0][-1]) if len(texts[0]) > len(head) else ("", "")
    try:
        numbers = sorted(int(number) for number in inner)
    except ValueError:
        return f"{texts[0]} … {texts[-1]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{head}{opening}{numbers[0]}…{numbers[-1]}{closing}"
    listed = (
        ",".join(map(str, numbers)) if len(numbers) <= 4 else f"{numbers[0]},{numbers[1]},…,{numbers[-1]}"
    )
    return f"{head}{opening}{listed}{closing}"


MANY = 5  # so many alike in a row are shown as one


def _merged(nodes):
    """Runs of many nodes that differ in nothing but their index become one."""
    result = []
    for _, run in itertools.groupby(nodes, key=_shape):
        run = list(run)
        if len(run) < MANY:
            result += run
            continue
        first = run[0]
        text = _label([node.text for node in run]) if first.kind == "key" else first.text
        result.append(dataclasses.replace(first, text=text, count=sum(node.count for node in run)))
    return result


def _shape(node):
    head = node.text.partition("[")[0].partition("(")[0] if node.kind == "key" else node.text
    return head, node.kind, node.rounds, node.wrong, node.unused, tuple(map(_shape, node.children))
