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


@answers.right
def stops_early(tree):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if np.ptp(gather(leaf), axis=0).any():  # the same in all processes
            return jax.tree_util.keystr(path)


@answers.right
def all_in_one(tree):
    paths = jax.tree_util.tree_leaves_with_path(tree)
    copies = multihost_utils.process_allgather([np.asarray(leaf) for _, leaf in paths])
    differ = [jnp.any(each != each[0]) for each in copies]
    return next((jax.tree_util.keystr(path) for (path, _), wrong in zip(paths, differ) if wrong), None)


answers.equivalent(
    "copies[0] -> copies[-1]",
    "copies[0] -> copies[1]",
    because="copies that all equal the last one all equal the first",
)
