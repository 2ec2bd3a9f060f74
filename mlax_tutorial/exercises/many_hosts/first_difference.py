"""Find the weight of which two hosts hold different copies."""

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.many_hosts import _two


def solution(tree):
    found = None
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        mine = np.asarray(leaf)  # this process' copy
        copies = multihost_utils.process_allgather(mine)
        if found is None and not (copies == copies[0]).all():
            found = jax.tree_util.keystr(path)
    return found


# The leaves in which process 1 differs, and what is added to their elements.
_CASES = (
    ((None,), (0, 0, 0)),
    (("['blocks'][1]['kernel']",), (1, 0, 0)),
    (("['embed']",), (1, -1, 0)),
    (("['out']['bias']",), (0, 0, 1e-6)),
    (("['blocks'][2]['kernel']", "['out']['bias']"), (0, 1, 0)),
    (("['out']['kernel']",), (0, 0, float("nan"))),
)


def _program(first_difference):
    place = NamedSharding(_two.mesh(), P())
    found = []
    for planted, by in _CASES:

        def leaf(path, value, planted=planted, by=by):
            value = np.arange(3, dtype=np.float32) + value
            if jax.process_index() == 1 and path in planted:
                value = value + np.float32(by)
            return jax.make_array_from_callback((3,), place, lambda index: value)

        tree = {
            "blocks": [{"kernel": leaf(f"['blocks'][{i}]['kernel']", i)} for i in range(3)],
            "embed": leaf("['embed']", 5),
            "out": {"bias": leaf("['out']['bias']", 0.5), "kernel": leaf("['out']['kernel']", 7)},
        }
        found.append(first_difference(tree))
    return [each if each is None or isinstance(each, str) else repr(each) for each in found]


def check(first_difference):
    first, second = _two.run(_program, first_difference)
    for (all_planted, by), one, other in zip(_CASES, first, second):
        planted = all_planted[0]
        if one != other:
            raise Failed(
                f"The two processes give different answers, {one!r} and {other!r}. All must know, or one of them stops and the other waits."
            )
        if one == planted:
            continue
        if planted is None:
            raise Failed("All copies are equal, so the answer is `None`.", expected=None, got=one)
        if one is None and by == (1, -1, 0):
            raise Failed(
                f"In {planted} two elements differ, by 1 and by -1. Their sum is the same: compare the elements."
            )
        if one is None and by == (0, 0, 1e-6):
            raise Failed(
                f"In {planted} one element differs by 1e-6, and you found nothing. Copies must be equal to the last bit."
            )
        if one is None and planted == "['out']['kernel']":
            raise Failed(
                f"In {planted} one process has a NaN where the other has a number, and you found nothing: with a NaN every comparison is false, but "
                "`!=`."
            )
        if one is None:
            raise Failed(
                f"The copies of {planted} differ, and you found nothing. A global array says it is the same everywhere, and JAX believes it: "
                "gather `np.asarray(leaf)`, the copy of this process."
            )
        if one in all_planted:
            raise Failed(f"The copies of {' and of '.join(all_planted)} differ: give the first.", expected=planted, got=one)  # fmt: skip
        raise Failed(
            f"The copies of {planted} differ: give its path, by `jax.tree_util.keystr`.",
            expected=planted,
            got=one,
        )


exercise = Exercise(
    title="The same weights everywhere?",
    stars=2,
    minutes=15,
    seconds=_two.SECONDS,
    why="A replicated array is a promise that nobody checks; this is `sharding.check_agreement` in eight lines.",
    hints=(
        "`np.asarray(leaf)` is the copy of this process, and `multihost_utils.process_allgather(copy)` stacks the copies of all processes.",
        "Every process has to gather the same leaves, in the same order. After the gathering all hold the same copies, so all come to the same answer.",
    ),
    solution=solution,
    check=check,
)
