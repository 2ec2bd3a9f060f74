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
        same = all(np.array_equal(copy, copies[0], equal_nan=True) for copy in copies)
        if found is None and not same:
            found = jax.tree_util.keystr(path)
    return found


NAN = float("nan")
# The leaves that differ, what is added to their elements, and in which of three processes. The path of a tree that is a leaf is empty.
_CASES = (
    ((None,), (0, 0, 0), ()),
    (("['blocks'][1]['kernel']",), (1, 0, 0), (1,)),
    (("['embed']",), (1, -1, 0), (1,)),
    (("['out']['bias']",), (0, 0, 1e-6), (1,)),
    (("['blocks'][2]['kernel']", "['out']['bias']"), (0, 1, 0), (1,)),
    (("['out']['kernel']",), (0, 0, NAN), (1,)),
    (("['blocks'][0]['kernel']",), (0, 2, 0), (2,)),
    (("['step']",), 1, (1,)),
    (("['out']['kernel']",), (0, NAN, 0), (0, 1, 2)),
    (("",), (1, 0, 0), (1,)),
    ((None, ""), (0, 0, 0), ()),
)


def _program(first_difference):
    place = NamedSharding(_two.mesh(), P())
    found = []
    # These processes are forked from one; those of several hosts have a salt each.
    if isinstance(names := getattr(first_difference, "__globals__", None), dict):
        salt = jax.process_index()
        names["hash"] = lambda x: hash((x, salt) if isinstance(x, (str, bytes)) else x)
    for planted, by, where in _CASES:

        def leaf(path, value, planted=planted, by=by, where=where):
            if jax.process_index() in where and path in planted:
                value = value + value.dtype.type(by)
            return jax.make_array_from_callback(value.shape, place, lambda index: value)

        numbers = np.arange(3, dtype=np.float32)
        tree = {
            "blocks": [{"kernel": leaf(f"['blocks'][{i}]['kernel']", numbers + i)} for i in range(3)],
            "embed": leaf("['embed']", numbers + 5),
            "out": {
                "bias": leaf("['out']['bias']", numbers + 0.5),
                "kernel": leaf("['out']['kernel']", numbers + 7),
            },
            "step": leaf("['step']", np.array(2**24, np.int32)),
        }
        found.append(first_difference(leaf("", numbers) if "" in planted else tree))
    return [each if each is None or isinstance(each, str) else repr(each) for each in found]


def check(first_difference):
    answers = _two.run(_program, first_difference, processes=3, devices=1)
    for (all_planted, by, where), *given in zip(_CASES, *answers):
        planted, one = all_planted[0], given[0]
        if set(given) != {one}:
            raise Failed(
                f"The three processes give different answers, {', '.join(map(repr, given))}. All must know, or one of them stops and the others wait."
            )
        if len(where) == 3:
            if one is not None:
                raise Failed(
                    f"In {planted} all copies have a NaN at the same place, so they are equal, and your answer is {one!r}. Of a NaN even `==` with "
                    "itself is false: `np.array_equal(…, equal_nan=True)` knows."
                )
            continue
        if one == planted:
            continue
        if planted == "":
            raise Failed(
                "In a tree that is a single array the copies of this one leaf differ. Its path, by `jax.tree_util.keystr`, is the empty string, which "
                "is not `None` but counts as false in an `if`.",
                expected="", got=one,
            )  # fmt: skip
        if one is None and where == (2,):
            raise Failed(
                f"Of three processes the last one has another copy of {planted}, and you found nothing: compare the copies of all."
            )
        if one is None and planted == "['step']":
            raise Failed(
                f"In {planted}, an integer without axes, the copies are {2**24} and {2**24 + 1}, and you found nothing: float32 rounds both to the same. "
                "Compare them as they are."
            )
        if planted is None:
            raise Failed(
                "All copies are equal, so the answer is `None`. (Python's `hash` of the same bytes is another in each process.)",
                expected=None,
                got=one,
            )
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
