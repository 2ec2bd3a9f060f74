"""Choose leaves by a pattern for their paths."""

import collections
import fnmatch
import re

import jax
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks

Point = collections.namedtuple("Point", "x y")


def solution(tree, pattern):
    wanted = ".*".join(map(re.escape, pattern.split("*")))
    found = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
    return {path: leaf for path, leaf in found.items() if re.fullmatch(wanted, path, re.DOTALL)}


def by(match):
    """A wrong answer that matches in another way."""

    def matching(tree, pattern):
        found = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
        return {path: leaf for path, leaf in found.items() if match(path, pattern)}

    return matching


RECOGNISE = [
    (by(fnmatch.fnmatchcase), "`fnmatch` takes `[0]` for a set of characters, one of which must stand there: escape all but `*`."),
    (by(lambda path, pattern: bool(re.search(".*".join(map(re.escape, pattern.split("*"))), path))),
     "A part of the path matches here. The *whole* path has to: `re.fullmatch`, not `re.search`."),
    (by(lambda path, pattern: bool(re.match(".*".join(map(re.escape, pattern.split("*"))), path))),
     "The beginning of the path matches here. The *whole* path has to: `re.fullmatch`, not `re.match`."),
    (by(lambda path, pattern: bool(re.fullmatch(".+".join(map(re.escape, pattern.split("*"))), path))),
     "`*` stands for any text, also for none."),
    (by(lambda path, pattern: pattern.strip("*") in path), "A pattern is more than one piece of text that is in the path: it may have a `*` in its middle, or none."),
]  # fmt: skip


def check(matching):
    number = iter(range(100))

    def leaf():
        return np.float32(next(number))

    layers = [{"kernel": leaf(), "bias": leaf()} for _ in range(3)]
    tree = {
        "layers": layers,
        "scale": {"kernel": leaf()},
        "point": Point(leaf(), leaf()),
        "kernel_size": leaf(),
    }
    cases = [
        "*['kernel']", "['layers'][0]*", "['layers'][1]['bias']", "*", "*['layers']*['kernel']*", "['point'].x",
        "['kernel']", "*bias", "nothing", "['layers'][*]['kernel']",
    ]  # fmt: skip
    for pattern in cases:
        got, expected = matching(tree, pattern), solution(tree, pattern)
        shown = {"input": {"pattern": pattern}, "expected": list(expected), "got": got}
        checks.returned(got, **shown)
        if not isinstance(got, dict):
            raise Failed("A dict from paths, as text, to leaves is asked for.", **shown)
        if any(not isinstance(path, str) for path in got):
            raise Failed(
                "The keys of the dict should be text: `jax.tree_util.keystr(path)` makes it of a path.",
                **shown,
            )
        shown["got"] = list(got)
        if set(got) != set(expected):
            said = "Other paths match than should."
            for wrong, text in RECOGNISE:
                if all(_gives(wrong, tree, case) == _gives(matching, tree, case) for case in cases):
                    said = text
                    break
            raise Failed(said, **shown)
        if list(got) != list(expected):
            raise Failed("The leaves should come in the order of the tree.", **shown)
        if any(got[path] is not expected[path] for path in got):
            raise Failed("The leaves should be those of the tree, as they are.", **shown)
    try:
        got = matching({"a.b": 1, "a+b": 2, "axb": 3}, "['a.b']")
    except re.error as error:
        raise Failed(f"A pattern is no regular expression: {error}. Escape all but `*`.") from None
    if list(got) != ["['a.b']"]:
        raise Failed(
            "Every character but `*` stands for itself, a dot, too.", expected=["['a.b']"], got=list(got)
        )
    names = {"a": 1, "aa": 2, "AA": 3, "a?": 4, "ab": 5, "aaa": 6, "a+(b|c)^$": 7}
    for pattern, wanted, said in [
        ("['a*a']", ["['aa']", "['aaa']"], "Upper and lower case differ, and the text before a `*` may not overlap with the text after it."),
        ("*b*a*", [], "The pieces between the stars have to come in the order of the pattern."),
        ("*aa*aa*", [], "The pieces between the stars may not overlap."),
        ("['a?']", ["['a?']"], "Every character but `*` stands for itself, a question mark, too."),
        ("['a+(b|c)^$']", ["['a+(b|c)^$']"], "Every character but `*` stands for itself: so do `+`, `(`, `|`, `)`, `^` and `$`."),
    ]:  # fmt: skip
        got = list(matching(names, pattern))
        if got != wanted:
            raise Failed(said, input={"tree": names, "pattern": pattern}, expected=wanted, got=got)
    checks.pure(matching, {"a": np.float32(1)}, "*")


def _gives(matching, tree, pattern):
    try:
        return list(matching(tree, pattern))
    except Exception:
        return None


exercise = Exercise(
    title="Filter by path",
    stars=1,
    minutes=8,
    why="Freezing, decaying and carrying weights over all begin with this: say which leaves you mean, by their names.",
    hints=(
        "`jax.tree_util.tree_leaves_with_path(tree)` gives pairs of a path and a leaf, and `keystr(path)` the text.",
        'Escape the pieces between the stars, and put ".*" between them: `".*".join(map(re.escape, pattern.split("*")))`.',
    ),
    solution=solution,
    check=check,
)
