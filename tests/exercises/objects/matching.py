"""Answers to the exercise objects.matching."""

import fnmatch
import re

import jax
from jax.tree_util import keystr, tree_leaves_with_path

from mlax_tutorial.exercises.objects.matching import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def paths(tree):
    return {keystr(path): leaf for path, leaf in tree_leaves_with_path(tree)}


@answers.wrong("takes `[0]` for a set of characters")
def with_fnmatch(tree, pattern):
    return {path: leaf for path, leaf in paths(tree).items() if fnmatch.fnmatchcase(path, pattern)}


@answers.wrong("`re.fullmatch`, not `re.search`")
def searches(tree, pattern):
    wanted = ".*".join(map(re.escape, pattern.split("*")))
    return {path: leaf for path, leaf in paths(tree).items() if re.search(wanted, path)}


@answers.wrong("`re.fullmatch`, not `re.match`")
def from_the_beginning(tree, pattern):
    wanted = re.escape(pattern).replace(r"\*", ".*")
    return {path: leaf for path, leaf in paths(tree).items() if re.match(wanted, path)}


@answers.wrong("also for none")
def at_least_one(tree, pattern):
    wanted = re.escape(pattern).replace(r"\*", ".+")
    return {path: leaf for path, leaf in paths(tree).items() if re.fullmatch(wanted, path)}


@answers.wrong("more than one piece of text")
def contains(tree, pattern):
    return {path: leaf for path, leaf in paths(tree).items() if pattern.strip("*") in path}


@answers.wrong("a dot, too")
def only_brackets(tree, pattern):
    wanted = pattern.replace("[", r"\[").replace("]", r"\]").replace("*", ".*")
    return {path: leaf for path, leaf in paths(tree).items() if re.fullmatch(wanted, path)}


@answers.wrong("A dict from paths")
def a_list(tree, pattern):
    return [leaf for path, leaf in paths(tree).items() if fnmatch.fnmatchcase(path, pattern)]


@answers.wrong("The keys of the dict should be text")
def keeps_the_path(tree, pattern):
    wanted = re.escape(pattern).replace(r"\*", ".*")
    found = tree_leaves_with_path(tree)
    return {path: leaf for path, leaf in found if re.fullmatch(wanted, keystr(path))}


@answers.wrong()
def as_a_regular_expression(tree, pattern):
    wanted = pattern.replace("*", ".*")
    return {path: leaf for path, leaf in paths(tree).items() if re.fullmatch(wanted, path)}


@answers.wrong("Upper and lower case differ")
def any_case(tree, pattern):
    wanted = ".*".join(map(re.escape, pattern.split("*")))
    return {path: leaf for path, leaf in paths(tree).items() if re.fullmatch(wanted, path, re.IGNORECASE)}


@answers.wrong("Upper and lower case differ")
def overlaps(tree, pattern):
    first, *_, last = pattern.split("*") * 2 if "*" not in pattern else pattern.split("*")
    wanted = ".*".join(map(re.escape, pattern.split("*")))

    def matches(path):
        if pattern.count("*") != 1:
            return re.fullmatch(wanted, path)
        return path.startswith(first) and path.endswith(last)

    return {path: leaf for path, leaf in paths(tree).items() if matches(path)}


def in_pieces(finds):
    def matching(tree, pattern):
        first, *middle, last = pattern.split("*") if "*" in pattern else (pattern, pattern)

        def matches(path):
            if "*" not in pattern:
                return path == pattern
            end = len(path) - len(last)
            return (
                path.startswith(first) and path.endswith(last) and end >= len(first) and finds(path, middle)
            )

        return {path: leaf for path, leaf in paths(tree).items() if matches(path)}

    return matching


@answers.wrong("in the order of the pattern")
def middle_anywhere(tree, pattern):
    return in_pieces(lambda path, middle: all(piece in path for piece in middle))(tree, pattern)


@answers.wrong("may not overlap.")
def middle_overlaps(tree, pattern):
    def finds(path, middle):
        at = 0
        for piece in middle:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += bool(piece)
        return True

    return in_pieces(finds)(tree, pattern)


@answers.wrong("a question mark, too")
def only_brackets_for_fnmatch(tree, pattern):
    wanted = pattern.replace("[", "[[]")
    return {path: leaf for path, leaf in paths(tree).items() if fnmatch.fnmatchcase(path, wanted)}


@answers.wrong("so do `+`")
def escapes_some(tree, pattern):
    wanted = pattern
    for letter in "[].?":
        wanted = wanted.replace(letter, "\\" + letter)
    return {path: leaf for path, leaf in paths(tree).items() if re.fullmatch(wanted.replace("*", ".*"), path)}


@answers.right
def escapes_all(tree, pattern):
    wanted = re.compile(re.escape(pattern).replace(r"\*", ".*"))
    return {path: leaf for path, leaf in paths(tree).items() if wanted.fullmatch(path)}


@answers.right
def with_fnmatch_escaped(tree, pattern):
    wanted = "".join({"[": "[[]", "?": "[?]"}.get(letter, letter) for letter in pattern)
    return {path: leaf for path, leaf in paths(tree).items() if fnmatch.fnmatchcase(path, wanted)}


@answers.right
def by_hand(tree, pattern):
    first, *others = pattern.split("*")

    def matches(path):
        if not others:
            return path == first
        if not path.startswith(first):
            return False
        at = len(first)
        for piece in others[:-1]:
            at = path.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return path.endswith(others[-1]) and len(path) - len(others[-1]) >= at

    found = {}
    jax.tree_util.tree_map_with_path(lambda path, leaf: found.update({keystr(path): leaf}), tree)
    return {path: leaf for path, leaf in found.items() if matches(path)}
