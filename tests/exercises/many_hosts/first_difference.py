"""Answers to the exercise many_hosts.first_difference."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from mlax_tutorial.exercises.many_hosts.first_difference import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def gather(leaf):
    return multihost_utils.process_allgather(np.asarray(leaf))


@answers.wrong("you found nothing. A global array says")
def of_the_global_arrays(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = multihost_utils.process_allgather(leaf, tiled=True)
        if not np.array_equal(copies, np.asarray(leaf)):
            return jax.tree_util.keystr(path)


@answers.wrong("Their sum is the same")
def sums(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = gather(np.asarray(leaf).sum())
        if (copies != copies[0]).any():
            return jax.tree_util.keystr(path)


@answers.wrong("equal to the last bit")
def allclose(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = gather(leaf)
        if not np.allclose(copies, copies[0], atol=1e-5):
            return jax.tree_util.keystr(path)


@answers.wrong("one process has a NaN")
def no_nans(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = gather(leaf)
        if np.abs(copies - copies[0]).max() > 0:
            return jax.tree_util.keystr(path)


@answers.wrong("give different answers")
def only_the_first_knows(tree):
    found = None
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = gather(leaf)
        if found is None and (copies != copies[0]).any():
            found = jax.tree_util.keystr(path)
    return found if jax.process_index() == 0 else None


@answers.wrong("give its path")
def the_last(tree):
    paths = jax.tree_util.tree_leaves_with_path(tree)
    wrong = [str(path) for path, leaf in paths if np.ptp(gather(leaf), axis=0).any()]
    return wrong[0] if wrong else None


@answers.wrong("All copies are equal")
def one_behind_the_other(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = multihost_utils.process_allgather(np.asarray(leaf), tiled=True)
        if (copies != copies[0]).any():
            return jax.tree_util.keystr(path)


@answers.wrong("All copies are equal")
def by_hash(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        found = multihost_utils.process_allgather(np.int32(hash(np.asarray(leaf).tobytes()) % 2**31))
        if (found != found[0]).any():
            return jax.tree_util.keystr(path)


@answers.wrong("give the first")
def the_last_of_two(tree):
    found = None
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if np.ptp(gather(leaf), axis=0).any():
            found = jax.tree_util.keystr(path)
    return found


@answers.wrong("still waited after")
def one_gathers(tree):
    if jax.process_index() == 0:
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            if np.ptp(gather(leaf), axis=0).any():
                return jax.tree_util.keystr(path)


def search(tree, differ, path_of=jax.tree_util.keystr):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if differ(gather(leaf)):
            return path_of(path)


def unlike(one, other):
    return not np.array_equal(one, other, equal_nan=True)


NANS = "a NaN at the same place"


@answers.wrong(NANS)
def unequal(tree):
    return search(tree, lambda copies: (copies != copies[0]).any())


@answers.wrong(NANS)
def not_all_equal(tree):
    return search(tree, lambda copies: not (copies == copies[0]).all())


@answers.wrong(NANS)
def spread(tree):
    return search(tree, lambda copies: np.ptp(copies, axis=0).any())


@answers.wrong(NANS)
def array_equal(tree):
    return search(tree, lambda copies: not all(np.array_equal(copy, copies[0]) for copy in copies))


@answers.wrong(NANS)
def array_equal_of_jax(tree):
    return search(tree, lambda copies: not all(jnp.array_equal(copy, copies[0]) for copy in copies))


@answers.wrong("compare the copies of all")
def first_and_second(tree):
    return search(tree, lambda copies: unlike(copies[0], copies[1]))


@answers.wrong("compare the copies of all")
def half_and_half(tree):
    return search(tree, lambda copies: unlike(*np.split(copies[: 2 * (len(copies) // 2)], 2)))


@answers.wrong("float32 rounds both to the same")
def in_float32(tree):
    return search(
        tree, lambda copies: any(unlike(np.float32(copy), np.float32(copies[0])) for copy in copies)
    )


@answers.wrong("In process 0 your code raised")
def elements_by_len(tree):
    return search(
        tree, lambda copies: any(unlike(copy[i], copies[0][i]) for copy in copies for i in range(len(copy)))
    )


@answers.wrong("is the empty string")
def path_or_none(tree):
    return search(tree, lambda copies: any(unlike(copy, copies[0]) for copy in copies)) or None


@answers.wrong("is the empty string")
def joined_strings(tree):
    found = ""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = gather(leaf)
        if not found and any(unlike(copy, copies[0]) for copy in copies):
            found = jax.tree_util.keystr(path)
    return found if found else None


@answers.wrong("is the empty string")
def from_the_first_key(tree):
    return search(
        tree,
        lambda copies: any(unlike(copy, copies[0]) for copy in copies),
        path_of=lambda path: jax.tree_util.keystr(path) if path else None,
    )


@answers.right
def stops_early(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        copies = gather(leaf)
        if any(unlike(copy, copies[0]) for copy in copies):  # the same in all processes
            return jax.tree_util.keystr(path)


@answers.right
def of_bytes(tree):
    return search(tree, lambda copies: len({copy.tobytes() for copy in copies}) > 1)


@answers.right
def neighbors(tree):
    return search(tree, lambda copies: any(map(unlike, copies, copies[1:])))


@answers.right
def one_nan_or_both(tree):
    def differ(copies):
        return ((copies != copies[0]) & ~((copies != copies) & (copies[0] != copies[0]))).any()

    return search(tree, differ)


@answers.right
def with_the_first(tree):
    paths = jax.tree_util.tree_leaves_with_path(tree)
    mine = [np.asarray(leaf) for _, leaf in paths]
    differ = [unlike(one, multihost_utils.broadcast_one_to_all(one)) for one in mine]
    found = multihost_utils.process_allgather(np.array(differ)).any(axis=0)
    return jax.tree_util.keystr(paths[int(np.argmax(found))][0]) if found.any() else None


@answers.right
def all_in_one(tree):
    paths = jax.tree_util.tree_leaves_with_path(tree)
    copies = multihost_utils.process_allgather([np.asarray(leaf) for _, leaf in paths])
    differ = [any(not jnp.array_equal(one, each[0], equal_nan=True) for one in each) for each in copies]
    return next((jax.tree_util.keystr(path) for (path, _), wrong in zip(paths, differ) if wrong), None)


answers.equivalent(
    "copies[0] -> copies[-1]",
    "copies[0] -> copies[1]",
    because="copies that all equal the last one all equal the first",
)
