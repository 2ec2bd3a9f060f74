"""Take a model apart."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.pytrees._trees import Point, boxed, layers


def solution(tree, chosen):
    def part(wanted):
        def keep(path, leaf):
            return leaf if bool(chosen(jax.tree_util.keystr(path))) == wanted else None

        return jax.tree.map_with_path(keep, tree)

    return part(True), part(False)


def _text(text):
    if not isinstance(text, str):
        raise Failed(
            "`chosen` wants the path as text, but your function called it with something else: "
            "`jax.tree_util.keystr(path)` makes text of a path."
        )
    return text


def check(given):
    def kernels(text):
        return "kernel" in _text(text)

    def first_layer(text):
        return _text(text).startswith("['layers'][0]")

    def nothing(text):
        return _text(text) == "nothing"

    def root(text):
        return _text(text) == ""

    def deepest(text):
        return _text(text) == "['a'][1].y[0]"

    flat = {"kernel": jnp.array([1.0, 2.0]), "bias": jnp.array([0.0])}
    holes = {"a": [None, Point(jnp.ones(1), (jnp.zeros(2), None))], "b": {}, "c": jnp.ones(())}
    recognise = [
        (swapped, "The two are swapped: the chosen leaves go into the first tree."),
        (zeros, "What is not chosen must be `None`; here it is an array of zeros. Zeros are leaves, and would be trained."),
        (partition_with(0.0), "What is not chosen must be `None`; here it is 0. Zeros are leaves, and would be trained."),
        (partition_with(()), "What is not chosen must be `None`; here it is an empty tuple."),
        (dropped, "What is not chosen must be `None`; here it is left out, and the tree has lost its shape."),
        (by_path, "Here the leaves stand in a dict by their paths; asked for are two trees of the shape of `tree`."),
        (lambda tree, chosen: list(solution(tree, chosen)), "Return a tuple of two trees; this is a list."),
        (lambda tree, chosen: solution(tree, chosen)[0], "Only the first tree is returned; the rest is needed as well."),
        (pairs, "This is a tree of pairs; asked for is a pair of trees."),
        (lambda tree, chosen: (solution(tree, chosen)[0], tree), "The second tree still holds what was chosen."),
    ]  # fmt: skip
    cases = [
        (flat, kernels, ""),
        (layers(), kernels, "The tree may have any depth: `jax.tree.map_with_path` goes through all of it."),
        (layers(), first_layer, "`chosen` gets the whole path, from the root, as `keystr` writes it."),
        (layers(), nothing, "Where nothing is chosen, the first tree holds None alone, and the second all."),
        (jnp.ones(2), root, "A single array is a tree, too: its path is the empty text."),
        (holes, deepest, "What is None in the tree stays None, and named tuples and empty containers stay what they are."),
        (boxed(), kernels, "Containers may be of any registered kind: `jax.tree.map_with_path` opens them all."),
    ]  # fmt: skip

    def partition(tree, chosen):  # a named tuple is a tuple, too
        got = given(tree, chosen)
        return tuple(got) if isinstance(got, tuple) else got

    partition(flat, kernels)  # whoever calls `chosen` with something else is told so first
    for tree, chosen, advice in cases:
        try:
            checks.values(partition, solution, examples=[(tree, chosen)], recognise=recognise)
        except Failed as failure:
            if advice:
                failure.message = f"{failure.message}\n{advice}"
            raise
    checks.pure(given, layers(), kernels)
    with under("`jax.jit`"):
        got = jax.jit(lambda tree: partition(tree, kernels))(layers())
    checks.same(got, solution(layers(), kernels), where="under `jax.jit`")
    first, second = partition({"kernel": 1.5, "bias": 2}, kernels)
    kept = [leaf for leaf in (first["kernel"], second["bias"]) if leaf is not None]  # of lost ones below
    if any(type(leaf) not in (float, int) for leaf in kept):
        raise Failed(
            "Leaves stay as they are: a Python number here became something else.",
            input="{'kernel': 1.5, 'bias': 2}", got=(first, second),
        )  # fmt: skip
    _leaves_of_all_kinds(partition, kernels)

    def asked(text):
        return np.bool_("kernel" in _text(text))

    with checks.says("`chosen` may return NumPy's true and false as well: do not ask with `is`."):
        checks.values(partition, solution, examples=[(flat, asked)])
    for answer in (1, "yes", [0], 0, "", None):  # as `re.search` returns a match or None
        first, second = partition({"kernel": 1.5}, lambda text, answer=answer: _text(text) and answer)
        if (first["kernel"] is None) == bool(answer) or (second["kernel"] is None) != bool(answer):
            raise Failed(
                "`chosen` may return anything that is true or false, as `re.search` returns a match or None: ask with `if`, not with `==`.",
                input=f"a function that returns {answer!r}", got=(first, second),
            )  # fmt: skip


def _leaves_of_all_kinds(partition, kernels):
    """The path alone decides, and leaves of all kinds stay the objects that they are."""
    shared = jnp.ones(2)
    tree = {
        "kernel": shared, "bias": shared, "kernel_size": 3, "layers": 3, "kernel_rate": 0.0, "kernel_on": False,
        "size": 0, "on": True, "kernel_steps": jnp.array([1, 2]),
        "steps": np.arange(2), "kernel_mask": np.array([True, False]), "rate": np.float32(0.5),
    }  # fmt: skip
    parts = partition(tree, kernels)
    if parts[0].keys() != tree.keys() or parts[1].keys() != tree.keys():
        raise Failed("The parts have lost keys of the tree.", input=tree, got=parts)
    twice = "kernel", "bias", "kernel_size", "layers"
    for name, leaf in sorted(
        tree.items(), key=lambda pair: pair[0] in twice
    ):  # these last: a kind alone may separate them
        chosen = kernels(f"[{name!r}]")
        here, there = (part[name] for part in (parts if chosen else parts[::-1]))
        if here is leaf and there is None:
            continue
        if name in twice:
            said = "The same object stands at two places here, as a shared weight does, and one of them is chosen: ask for each path, not for each leaf."
        elif here is None or there is not None:
            said = f"The path alone decides, not what kind of leaf it is or whether it is true: the leaf at `[{name!r}]` is in the wrong part."
        else:
            said = f"Leaves stay as they are: the one at `[{name!r}]` became something else."
        raise Failed(said, input=tree, got=parts)
    several = {"['layers']", "['layers'][0]", ""}
    first, _ = partition(layers(), lambda text: _text(text) in several)
    if jax.tree.leaves(first):
        raise Failed(
            "`chosen` is asked about leaves, by their whole paths, and not about the containers on the way.",
            input=f"chosen: whether the path is one of {sorted(several)}", got=first,
        )  # fmt: skip


def partition_with(hole):
    def partition(tree, chosen):
        def keep(wanted, path, leaf):
            return leaf if bool(chosen(jax.tree_util.keystr(path))) == wanted else hole

        return tuple(
            jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False)
        )

    return partition


def swapped(tree, chosen):
    first, second = solution(tree, chosen)
    return second, first


def zeros(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if bool(chosen(jax.tree_util.keystr(path))) == wanted else jnp.zeros_like(leaf)

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


def dropped(tree, chosen):
    parts = {}, {}
    for name, item in tree.items():
        parts[0 if chosen(f"[{name!r}]") else 1][name] = item
    return parts


def by_path(tree, chosen):
    parts = {}, {}
    for path, leaf in jax.tree.leaves_with_path(tree):
        text = jax.tree_util.keystr(path)
        parts[0 if chosen(text) else 1][text] = leaf
    return parts


def pairs(tree, chosen):
    def both(path, leaf):
        return (leaf, None) if chosen(jax.tree_util.keystr(path)) else (None, leaf)

    return jax.tree.map_with_path(both, tree)


exercise = Exercise(
    title="Take a model apart",
    stars=2,
    minutes=10,
    why="None has no leaves, so each part is a tree of its own for jax.grad, jit and any optimizer.",
    hints=(
        "`jax.tree.map_with_path(f, tree)` calls `f(path, leaf)`, and `jax.tree_util.keystr(path)` makes text of a path.",
        "Map twice: once keep what is chosen, once keep the rest, and return None for the other leaves.",
    ),
    solution=solution,
    check=check,
)
