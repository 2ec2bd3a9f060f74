"""The exercises of the chapter Pytrees."""

import collections
import contextlib
import dataclasses
import functools
import inspect
import operator

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, Mistake, checks
from mlax_tutorial.checking.outcome import NotAttempted
from mlax_tutorial.checking.programs import under
from mlax_tutorial.checking.reader import as_theirs

Point = collections.namedtuple("Point", "x y")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Box:
    """A container that only the registry knows how to open."""

    inside: object


# leaf_counts

_leaf_counts = {"a": 2, "b": 1, "c": 1, "d": 0, "e": 2, "f": 3, "g": 2, "h": 4}


def _check_leaf_counts(given):
    trees = {
        "a": [jnp.ones(3), jnp.ones((3, 3))],
        "b": {"x": None, "y": (1.0, None)},
        "c": jnp.ones((2, 3)),
        "d": {"a": {}, "b": [], "c": ()},
        "e": [{1, 2, 3}, "abc"],
        "f": Point(1.0, (2.0, 3.0)),
        "g": [range(3), {"r": range(3)}],
        "h": {"model": [{"w": 1.0}, {"w": 2.0, "b": 3.0}], "step": 0},
    }
    numbers = "An array is one leaf, however many numbers it holds."
    none = "None is a container with nothing in it: it is no leaf."
    why = {
        "a": {12: numbers, 4: numbers, 3: "The list is a container: only what is in it are leaves."},
        "b": {2: none, 3: none, 4: none},
        "c": {6: numbers, 2: numbers, 3: numbers, 0: "An array outside any container is a tree of one leaf."},
        "d": {
            3: "An empty container holds no leaf, and is none.",
            1: "An empty container holds no leaf, and is none.",
        },
        "e": {
            1: "The set and the text are one leaf each: neither is in the registry.",
            4: "A set is not in the registry, so it is not opened: it is a leaf as a whole.",
            6: "Neither sets nor texts are in the registry, so they are not opened.",
            0: "Whatever is no container is a leaf, a number or not.",
        },
        "f": {
            1: "Named tuples are containers, like other tuples.",
            2: "The second of the two is a tuple, and is opened, too.",
        },
        "g": {
            6: "A range is not in the registry, so it is not opened: it is a leaf as a whole.",
            0: "A range is not in the registry: it is no container, but a leaf.",
        },
        "h": {
            2: "The list and the dicts in it are opened, too.",
            3: "Look again: `step` is a leaf as well, and so are three weights.",
            5: "Count what is at the ends only: the containers themselves are no leaves.",
        },
    }
    checks.answers(given, {name: len(jax.tree.leaves(tree)) for name, tree in trees.items()}, why)


leaf_counts = Exercise(
    title="How many leaves?",
    stars=1,
    minutes=5,
    why="What is a leaf decides what jax.tree.map calls you with, and what jit takes for an array.",
    hints=(
        "Open what is in the registry: lists, tuples, dicts, named tuples, None. Count what you cannot open.",
        "None and empty containers add nothing. A set and a range cannot be opened.",
    ),
    solution=_leaf_counts,
    check=_check_leaf_counts,
    mistakes=(
        Mistake(_leaf_counts | {"a": 12}, says="however many numbers"),
        Mistake(_leaf_counts | {"c": 6}, says="however many numbers"),
        Mistake(_leaf_counts | {"b": 3}, says="it is no leaf"),
        Mistake(_leaf_counts | {"d": 3}, says="holds no leaf, and is none"),
        Mistake(_leaf_counts | {"e": 4}, says="A set is not in the registry"),
        Mistake(_leaf_counts | {"e": 0}, says="a number or not"),
        Mistake(_leaf_counts | {"f": 1}, says="like other tuples"),
        Mistake(_leaf_counts | {"f": 2}, says="The second of the two"),
        Mistake(_leaf_counts | {"g": 6}, says="A range is not in the registry, so"),
        Mistake(_leaf_counts | {"h": 2}, says="the dicts in it are opened"),
        Mistake(_leaf_counts | {"h": 5}, says="the containers themselves"),
        Mistake(list(_leaf_counts.values()), says="a dict is asked for"),
        Mistake({name: str(number) for name, number in _leaf_counts.items()}, says="A number is asked for"),
    ),
)


# count


def _count(tree, name):
    total = 0
    for path, leaf in jax.tree.leaves_with_path(tree):
        if any(getattr(step, "key", None) == name for step in path):
            total += leaf.size
    return total


def _check_count(count):
    def linear(*shape, dtype=jnp.float32):
        return {"kernel": jnp.ones(shape, dtype), "bias": jnp.zeros(shape[-1], dtype)}

    flat = linear(4, 3)
    deep = {"encoder": [linear(2, 5), {"mlp": (linear(5, 7), linear(7, 2))}], "head": linear(2, 3)}
    names = {
        "bias": jnp.ones(2),
        "bias_scale": jnp.ones(5),
        "unbias": {"w": jnp.ones(3)},
        "scale": jnp.ones(4),
    }
    scalars = {"scale": jnp.ones(()), "shift": None, "layer": {"scale": jnp.ones(())}}
    again = {"block": {"block": {"w": jnp.ones(4)}, "b": jnp.ones(1)}}
    numbered = {"heads": {0: {"w": jnp.ones(2)}, 1: {"w": jnp.ones(3)}}, "w": (jnp.ones(4), jnp.ones(5))}
    mixed = {"table": jnp.ones((3, 2), jnp.bfloat16), "ids": jnp.ones(7, jnp.int32)}
    fields = {"x": jnp.ones(2), "point": Point(jnp.ones(3), {"y": jnp.ones(4)}), "list": [jnp.ones(5)]}
    field = "Only the key of a dict is a name here: a field of a named tuple, or a place in a list, is none."
    boxed = {"box": Box({"bias": jnp.ones(2), "kernel": jnp.ones((3, 2))}), "bias": jnp.ones(3)}
    opened = (
        "Registered classes are containers, too: `jax.tree.leaves_with_path` opens whatever is registered."
    )
    everywhere = (
        "A name may stand anywhere on the path, first, last or between: all that lies below it counts."
    )
    cases = [
        (flat, "kernel", "a dict with two arrays", "", flat),
        (deep, "bias", "a tree of dicts, lists and tuples", everywhere, None),
        (deep, "encoder", "a tree of dicts, lists and tuples", everywhere, None),
        (deep, "mlp", "a tree of dicts, lists and tuples", everywhere, None),
        (deep, "decoder", "a tree without this name", "No leaf lies below such a name: 0.", None),
        (names, "bias", "names that hold others", "Only the whole name counts, not a part of another name.", names),
        (scalars, "scale", "arrays without axes", "An array without axes holds one number.", scalars),
        (again, "block", "a name below the same name", "A leaf counts once, however often the name is on its path.", again),
        (numbered, "w", "dicts with numbers as keys", "Keys may be numbers, and a tuple may lie below the name.", numbered),
        (mixed, "table", "an array of bfloat16", "Numbers are counted, not bytes.", mixed),
        (fields, "x", "a dict with a named tuple and a list in it", field, None),
        (fields, "0", "a dict with a named tuple and a list in it", field, None),
        (boxed, "bias", "a dict with an object of a registered class in it", opened, None),
    ]  # fmt: skip
    for number, (tree, name, text, advice, shown) in enumerate(cases):
        _right_count(count, tree, name, text, advice, shown)
        if not number:  # the trees of later cases are used more than once
            checks.pure(count, linear(4, 3), "kernel")
    huge = {"table": jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)}
    text = "a placeholder for an array of a million rows and columns"
    advice = (
        "A placeholder has a shape and no numbers, and NumPy takes it for a single object: count by `leaf.shape`, and "
        "compute nothing."
    )
    _right_count(count, huge, "table", text, advice, huge)


def _right_count(count, tree, name, text, advice, tree_shown):
    shown = {"input": f"{text}, and name = {name!r}"}
    if tree_shown is not None:
        shown["input"] = {"tree": tree_shown, "name": name}
    expected = _count(tree, name)
    try:
        got = count(tree, name)
    except Failed as failure:
        failure.message = f"{advice}\n{failure.message}".strip()
        raise
    if got is None:
        raise Failed("Your function returned None: is a `return` missing?", expected=expected, **shown)
    try:
        number = None if isinstance(got, (bool, jax.Array)) else operator.index(got)
    except TypeError:
        number = None
    if number == expected:
        return
    shown |= {"expected": expected, "got": got}
    if number is None:
        raise Failed(
            "Return an `int`, by multiplying the sizes of the axes: `leaf.size`, or `math.prod(leaf.shape)`.",
            **shown,
        )
    leaves = jax.tree.leaves(tree)
    below = [
        leaf
        for path, leaf in jax.tree.leaves_with_path(tree)
        if any(getattr(step, "key", None) == name for step in path)
    ]
    if number == sum(leaf.size for leaf in leaves):
        advice = "You count all numbers, whatever the paths of their leaves."
    elif number == len(below) and all(isinstance(leaf, jax.Array) for leaf in below):
        advice = "This is how many leaves there are; asked for is how many numbers they hold."
    elif number == sum(leaf.nbytes if hasattr(leaf, "nbytes") else -1 for leaf in below):
        advice = "Numbers are counted, not bytes."
    elif number == sum(leaf.shape[0] if leaf.ndim else 1 for leaf in below):
        advice = "This counts rows: `len` of an array is the size of its first axis."
    raise Failed(advice or "This is not how many there are.", **shown)


def _count_wrong(meant, size, tree, name):
    return sum(size(leaf) for path, leaf in jax.tree.leaves_with_path(tree) if meant(path, name))


def _on_path(path, name):
    return any(getattr(step, "key", None) == name for step in path)


def _size(leaf):
    return leaf.size


def _counts(meant=_on_path, size=_size):
    return functools.partial(_count_wrong, meant, size)


def _count_recursive_dicts(tree, name):
    total = 0
    for key, item in tree.items():
        if key == name:
            total += sum(leaf.size for leaf in jax.tree.leaves(item))
        elif isinstance(item, dict):
            total += _count_recursive_dicts(item, name)
    return total


def _count_twice(tree, name):
    if not isinstance(tree, (dict, list, tuple)):
        return 0
    total = 0
    for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree):
        if key == name:
            total += sum(leaf.size for leaf in jax.tree.leaves(item))
        total += _count_twice(item, name)
    return total


def _count_by_hand(tree, name):
    if isinstance(tree, dict):
        total = 0
        for key, item in tree.items():
            below = sum(leaf.size for leaf in jax.tree.leaves(item))
            total += below if key == name else _count_by_hand(item, name)
        return total
    return sum(_count_by_hand(item, name) for item in tree) if isinstance(tree, (list, tuple)) else 0


def _on_path_or_field(path, name):
    return any(getattr(step, "key", getattr(step, "name", None)) == name for step in path)


def _count_and_clear(tree, name):
    total = _count(tree, name)
    tree.clear()
    return total


def _count_top(tree, name):
    return sum(leaf.size for leaf in jax.tree.leaves(tree.get(name)))


def _count_prints(tree, name):
    print(_count(tree, name))


count = Exercise(
    title="Count parameters by name",
    stars=2,
    minutes=10,
    why="Whoever freezes, decays or reports a part of a model chooses leaves by their paths, as you did here.",
    hints=(
        "`jax.tree.leaves_with_path(tree)` gives pairs of a path and a leaf. A path is a tuple of steps.",
        "The step through a dict has the key as `step.key`; steps through lists have no such attribute.",
        "A leaf counts if any of its steps has the name. It holds `leaf.size` numbers.",
    ),
    solution=_count,
    check=_check_count,
    mistakes=(
        Mistake(
            _counts(lambda path, name: name in jax.tree_util.keystr(path)), says="a part of another name"
        ),
        Mistake(_counts(lambda path, name: path[-1].key == name), says="anywhere on the path"),
        Mistake(
            _counts(lambda path, name: getattr(path[-1], "key", None) == name), says="anywhere on the path"
        ),
        Mistake(_count_top, says="anywhere on the path"),
        Mistake(_count_recursive_dicts, says="anywhere on the path"),
        Mistake(_counts(lambda path, name: True), says="whatever the paths"),
        Mistake(_counts(size=lambda leaf: 1), says="how many leaves there are"),
        Mistake(_counts(size=lambda leaf: len(leaf) if leaf.ndim else 1), says="first axis"),
        Mistake(_counts(size=lambda leaf: leaf.nbytes), says="not bytes"),
        Mistake(_counts(size=lambda leaf: np.prod(leaf.shape)), says="Return an `int`"),
        Mistake(_counts(size=lambda leaf: jnp.sum(jnp.ones_like(leaf))), says="Return an `int`"),
        Mistake(_counts(size=lambda leaf: int(jnp.sum(jnp.ones(leaf.shape, bool)))), says="takes it for a single object"),
        Mistake(_counts(size=lambda leaf: leaf.size if leaf.ndim else 0), says="without axes"),
        Mistake(_count_twice, says="A leaf counts once"),
        Mistake(_count_by_hand, says="Registered classes are containers"),
        Mistake(_counts(_on_path_or_field), says="Only the key of a dict"),
        Mistake(_counts(lambda path, name: name in jax.tree_util.keystr(path, simple=True, separator="/").split("/")), says="Only the key of a dict"),
        Mistake(_counts(size=lambda leaf: np.asarray(leaf).size), says="takes it for a single object"),
        Mistake(_count_and_clear, says="changed its input"),
        Mistake(_count_prints, says="is a `return` missing"),
    ),
)  # fmt: skip


# average


def _average(old, params, decay):
    def one(old, new):
        if not jnp.issubdtype(old.dtype, jnp.floating):
            return new
        mean = decay * old + (1 - decay) * new.astype(old.dtype)
        return mean.astype(old.dtype)

    return jax.tree.map(one, old, params)


def _average_with(one):
    """A moving average of which one leaf is computed by ``one``."""
    return lambda old, params, decay: jax.tree.map(lambda a, b: one(a, b, decay), old, params)


def _floating(one):
    """As ``one`` where a leaf is floating, else the new leaf."""
    return lambda a, b, d: one(a, b, d) if jnp.issubdtype(a.dtype, jnp.floating) else b


def _mean(a, b, d):
    return (d * a + (1 - d) * b.astype(a.dtype)).astype(a.dtype)


_average_swapped = _average_with(_floating(lambda a, b, d: _mean(b.astype(a.dtype), a, d)))
_average_sum = _average_with(_floating(lambda a, b, d: (d * a + b.astype(a.dtype)).astype(a.dtype)))
_average_all = _average_with(lambda a, b, d: _mean(a, b, d).astype(a.dtype))
_average_rounded = _average_with(_floating(lambda a, b, d: (d * a + (1 - d) * b).astype(a.dtype)))
_average_in_new = _average_with(_floating(lambda a, b, d: _mean(a.astype(b.dtype), b, d)))
_average_promoted = _average_with(_floating(lambda a, b, d: d * a + (1 - d) * b.astype(a.dtype)))
_average_keeps_counts = _average_with(
    lambda a, b, d: _mean(a, b, d) if jnp.issubdtype(a.dtype, jnp.floating) else a
)


def _check_average(average):
    old = {"w": jnp.array([1.0, 2.0, -4.0]), "b": jnp.array(8.0)}
    params = {"w": jnp.array([3.0, 6.0, 4.0]), "b": jnp.array(0.0)}
    recognise = [
        (_average_swapped, "The weights are the wrong way round: `decay` belongs to the old average."),
        (_average_sum, "The new parameters get the weight `1 - decay`; here they are added whole."),
        (lambda old, params, decay: params, "You return the parameters themselves."),
        (lambda old, params, decay: old, "You return the old average as it is."),
        (
            lambda old, params, decay: jax.tree.leaves(_average(old, params, decay)),
            "These are the right leaves, but the tree is gone: `jax.tree.map` returns a tree.",
        ),
    ]
    checks.values(average, _average, examples=[(old, params, 0.75)], recognise=recognise)

    checks.pure(average, old, params, 0.5)
    checks.traces(average, (old, params, 0.9), (params, old, 0.5), (old, params, 0.0), exactly=1)

    nested_old = {"layers": [old, Point(jnp.ones(2), None)], "extra": (), "head": (jnp.zeros((2, 2)),)}
    nested_new = {"layers": [params, Point(jnp.zeros(2), None)], "extra": (), "head": (jnp.ones((2, 2)),)}
    advice = "Trees may be of any kind and depth: `jax.tree.map` takes both and goes through their leaves together."
    _advised(average, (nested_old, nested_new, 0.25), advice)
    for wrap in (
        lambda tree: [tree],
        Box,
        lambda tree: tree["w"],
    ):  # at the top no dict, or no container at all
        _advised(average, (wrap(old), wrap(params), 0.25), advice)

    half = {"w": jnp.array([3.015625, 1.0078125], jnp.bfloat16)}
    recognise = [
        (
            _average_rounded,
            "A product of bfloat16 is rounded to bfloat16 before it is added: give the parameters the dtype of the "
            "average first.",
        ),
        (_average_in_new, "The average is kept in float32, so that small steps are not lost: keep its dtype."),
        (lambda old, new, d: jax.tree.map(lambda a, b: _mean(a.astype(b.dtype), b, d).astype(a.dtype), old, new),
         "The average goes through bfloat16 here, and loses digits: compute in the dtype of `old`."),
    ]  # fmt: skip
    examples = [({"w": jnp.array([2.501, -7.003])}, half, 0.25)]
    checks.values(average, _average, examples=examples, recognise=recognise)

    steps = {"w": jnp.array([1.0]), "step": jnp.array(3), "seen": jnp.array([True, False])}
    more = {"w": jnp.array([2.0]), "step": jnp.array(4), "seen": jnp.array([True, True])}
    recognise = [
        (_average_all, "A counter of steps has no average: leaves that are not floating come from `params`."),
        (
            _average_with(lambda a, b, d: d * a + (1 - d) * b),
            "A counter of steps has no average, and here it even becomes floating: take such leaves from `params`.",
        ),
        (_average_keeps_counts, "Leaves that are not floating come from `params`, not from `old`."),
    ]
    checks.values(average, _average, examples=[(steps, more, 0.5)], recognise=recognise)

    integers = {"ids": jnp.array([2, 6], jnp.uint8), "seen": jnp.array([True, False])}
    others = {"ids": jnp.array([4, 4], jnp.uint8), "seen": jnp.array([False, True])}
    advice = "Integers of every size and booleans are not floating: ask `jnp.issubdtype(leaf.dtype, jnp.floating)`."
    _advised(average, (integers, others, 0.5), advice)
    float16 = {"w": jnp.array([1.0, 2.0], jnp.float16)}, {"w": jnp.array([2.0, 4.0], jnp.float16)}
    advice = "float16 is floating, too: ask `jnp.issubdtype(leaf.dtype, jnp.floating)`."
    _advised(average, (*float16, 0.5), advice)
    coarse = {"w": jnp.array([1.0, 2.0], jnp.bfloat16)}, {"w": jnp.array([2.0, 4.0], jnp.bfloat16)}
    recognise = [
        (
            _average_promoted,
            "The average is in bfloat16, `decay` is a float32 array, and their product is float32: cast the "
            "result back to the dtype of `old`.",
        )
    ]
    examples = [(*coarse, jnp.array(0.5, jnp.float32))]
    checks.values(average, _average, examples=examples, recognise=recognise)

    _advised(average, (old, params, 0.0), "With `decay` 0 the average is the parameters.")
    _advised(average, (old, params, 1.0), "With `decay` 1 the average stays as it is.")
    checks.works_under_jit(average, old, params, 0.5)


def _advised(function, arguments, advice, reference=None):
    try:
        checks.values(function, reference or _average, examples=[arguments])
    except Failed as failure:
        failure.message = f"{advice}\n{failure.message}"
        raise


def _average_dict(old, params, decay):
    return {name: _mean(old[name], params[name], decay) for name in old}


def _average_of_a_dict(old, params, decay):
    return {name: _average(old[name], params[name], decay) for name in old}


def _average_but_for(*dtypes):
    return _average_with(lambda a, b, d: b if a.dtype in dtypes else _mean(a, b, d))


def _average_only_for(*dtypes):
    return _average_with(lambda a, b, d: _mean(a, b, d) if a.dtype in dtypes else b)


def _average_in_place(old, params, decay):
    for name in old:
        old[name] = _average(old[name], params[name], decay)
    return old


def _average_float(old, params, decay):
    return _average(old, params, float(decay))


def _average_branch(old, params, decay):
    if decay == 0:
        return params
    return _average(old, params, decay)


def _average_prints(old, params, decay):
    print(_average(old, params, decay))


@functools.partial(jax.jit, static_argnames="decay")
def _average_static(old, params, decay):
    return _average(old, params, decay)


average = Exercise(
    title="A moving average of a tree",
    stars=2,
    minutes=10,
    why="The function never names a layer: it works for any model, and that is what trees are for.",
    hints=(
        "`jax.tree.map(one, old, params)` calls `one` with the two leaves that stand at the same place.",
        "Inside, `jnp.issubdtype(leaf.dtype, jnp.floating)` may ask about the dtype: it is known while tracing.",
        "Give the new leaf the dtype of the old one before you multiply it, and cast the result once more.",
    ),
    solution=_average,
    check=_check_average,
    mistakes=(
        Mistake(_average_swapped, says="the wrong way round"),
        Mistake(_average_sum, says="added whole"),
        Mistake(lambda old, params, decay: params, says="the parameters themselves"),
        Mistake(lambda old, params, decay: jax.tree.leaves(_average(old, params, decay)), says="the tree is gone"),
        Mistake(lambda old, params, decay: old, says="the old average as it is"),
        Mistake(_average_dict, says="of any kind and depth"),
        Mistake(_average_of_a_dict, says="of any kind and depth"),
        Mistake(_average_but_for(jnp.int32), says="Integers of every size"),
        Mistake(_average_but_for(jnp.int32, jnp.bool_), says="Integers of every size"),
        Mistake(_average_only_for(jnp.float32, jnp.bfloat16), says="float16 is floating"),
        Mistake(_average_rounded, says="is rounded to bfloat16 before"),
        Mistake(_average_in_new, says="small steps are not lost"),
        Mistake(_average_with(_floating(lambda a, b, d: _mean(a.astype(b.dtype), b, d).astype(a.dtype))), says="loses digits"),
        Mistake(_average_all, says="has no average: leaves"),
        Mistake(_average_with(lambda a, b, d: d * a + (1 - d) * b.astype(jnp.promote_types(a.dtype, b.dtype))), says="even becomes floating"),
        Mistake(_average_keeps_counts, says="not from `old`"),
        Mistake(_average_promoted, says="cast the result back"),
        Mistake(_average_in_place, says="in place"),
        Mistake(_average_float, says="has none yet"),
        Mistake(_average_branch, says="has none yet"),
        Mistake(_average_static, says="should be once"),
        Mistake(_average_prints, says="is a `return` missing"),
    ),
)  # fmt: skip


# partition


def _partition(tree, chosen):
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


def _layers():
    return {
        "layers": [
            {"kernel": jnp.ones((2, 3)), "bias": jnp.zeros(3)},
            {"kernel": jnp.full((3, 1), 2.0), "bias": jnp.ones(1)},
        ],
        "scale": jnp.array(0.0),
    }


def _boxed():
    box = Box({"kernel": jnp.ones(2), "bias": jnp.zeros(2)})
    return collections.OrderedDict(scale=jnp.ones(()), kernel=jnp.ones(1), box=box)


def _check_partition(given):
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
        (_partition_swapped, "The two are swapped: the chosen leaves go into the first tree."),
        (_partition_zeros, "What is not chosen must be `None`; here it is an array of zeros. Zeros are leaves, and would be trained."),
        (_partition_with(0.0), "What is not chosen must be `None`; here it is 0. Zeros are leaves, and would be trained."),
        (_partition_with(()), "What is not chosen must be `None`; here it is an empty tuple."),
        (_partition_dropped, "What is not chosen must be `None`; here it is left out, and the tree has lost its shape."),
        (_partition_by_path, "Here the leaves stand in a dict by their paths; asked for are two trees of the shape of `tree`."),
        (lambda tree, chosen: list(_partition(tree, chosen)), "Return a tuple of two trees; this is a list."),
        (lambda tree, chosen: _partition(tree, chosen)[0], "Only the first tree is returned; the rest is needed as well."),
        (_partition_pairs, "This is a tree of pairs; asked for is a pair of trees."),
        (lambda tree, chosen: (_partition(tree, chosen)[0], tree), "The second tree still holds what was chosen."),
    ]  # fmt: skip
    cases = [
        (flat, kernels, ""),
        (_layers(), kernels, "The tree may have any depth: `jax.tree.map_with_path` goes through all of it."),
        (_layers(), first_layer, "`chosen` gets the whole path, from the root, as `keystr` writes it."),
        (_layers(), nothing, "Where nothing is chosen, the first tree holds None alone, and the second all."),
        (jnp.ones(2), root, "A single array is a tree, too: its path is the empty text."),
        (holes, deepest, "What is None in the tree stays None, and named tuples and empty containers stay what they are."),
        (_boxed(), kernels, "Containers may be of any registered kind: `jax.tree.map_with_path` opens them all."),
    ]  # fmt: skip

    def partition(tree, chosen):  # a named tuple is a tuple, too
        got = given(tree, chosen)
        return tuple(got) if isinstance(got, tuple) else got

    partition(flat, kernels)  # whoever calls `chosen` with something else is told so first
    for tree, chosen, advice in cases:
        try:
            checks.values(partition, _partition, examples=[(tree, chosen)], recognise=recognise)
        except Failed as failure:
            if advice:
                failure.message = f"{failure.message}\n{advice}"
            raise
    checks.pure(given, _layers(), kernels)
    first, second = partition({"kernel": 1.5, "bias": 2}, kernels)
    if type(first["kernel"]) is not float or type(second["bias"]) is not int:
        raise Failed(
            "Leaves stay as they are: a Python number here became something else.",
            input="{'kernel': 1.5, 'bias': 2}", got=(first, second),
        )  # fmt: skip

    def asked(text):
        return np.bool_("kernel" in _text(text))

    try:
        checks.values(partition, _partition, examples=[(flat, asked)])
    except Failed as failure:
        failure.message = (
            f"`chosen` may return NumPy's true and false as well: do not ask with `is`.\n{failure.message}"
        )
        raise
    with under("`jax.jit`"):
        got = jax.jit(lambda tree: partition(tree, kernels))(_layers())
    checks.same(got, _partition(_layers(), kernels), where="under `jax.jit`")


def _partition_with(hole):
    def partition(tree, chosen):
        def keep(wanted, path, leaf):
            return leaf if bool(chosen(jax.tree_util.keystr(path))) == wanted else hole

        return tuple(
            jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False)
        )

    return partition


def _partition_swapped(tree, chosen):
    first, second = _partition(tree, chosen)
    return second, first


def _partition_zeros(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if bool(chosen(jax.tree_util.keystr(path))) == wanted else jnp.zeros_like(leaf)

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


def _partition_dropped(tree, chosen):
    parts = {}, {}
    for name, item in tree.items():
        parts[0 if chosen(f"[{name!r}]") else 1][name] = item
    return parts


def _partition_by_path(tree, chosen):
    parts = {}, {}
    for path, leaf in jax.tree.leaves_with_path(tree):
        text = jax.tree_util.keystr(path)
        parts[0 if chosen(text) else 1][text] = leaf
    return parts


def _partition_pairs(tree, chosen):
    def both(path, leaf):
        return (leaf, None) if chosen(jax.tree_util.keystr(path)) else (None, leaf)

    return jax.tree.map_with_path(both, tree)


def _partition_unpaired_path(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if chosen(path) == wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


def _partition_last_step(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if bool(chosen(jax.tree_util.keystr(path[-1:]))) == wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


def _partition_simple(tree, chosen):
    def keep(wanted, path, leaf):
        text = jax.tree_util.keystr(path, simple=True, separator="/")
        return leaf if bool(chosen(text)) == wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


def _partition_top(tree, chosen):
    first = {name: item if chosen(f"[{name!r}]") else None for name, item in tree.items()}
    second = {name: None if chosen(f"[{name!r}]") else item for name, item in tree.items()}
    return first, second


def _partition_is(tree, chosen):
    def keep(wanted, path, leaf):
        return leaf if chosen(jax.tree_util.keystr(path)) is wanted else None

    return tuple(jax.tree.map_with_path(functools.partial(keep, wanted), tree) for wanted in (True, False))


def _partition_by_hand(tree, chosen, text=""):
    if isinstance(tree, dict):
        parts = {k: _partition_by_hand(v, chosen, f"{text}[{k!r}]") for k, v in tree.items()}
        return {k: a for k, (a, _) in parts.items()}, {k: b for k, (_, b) in parts.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        parts = [_partition_by_hand(getattr(tree, k), chosen, f"{text}.{k}") for k in tree._fields]
        return type(tree)(*(a for a, _ in parts)), type(tree)(*(b for _, b in parts))
    if isinstance(tree, (list, tuple)):
        parts = [_partition_by_hand(item, chosen, f"{text}[{i}]") for i, item in enumerate(tree)]
        return type(tree)(a for a, _ in parts), type(tree)(b for _, b in parts)
    return (tree, None) if chosen(text) else (None, tree)


def _partition_into_arrays(tree, chosen):
    return jax.tree.map(jnp.asarray, _partition(tree, chosen))


def _partition_emptied(tree, chosen):
    first, second = _partition(tree, chosen)
    if isinstance(tree, dict):
        tree.clear()
    return first, second


partition = Exercise(
    title="Take a model apart",
    stars=2,
    minutes=10,
    why="None has no leaves, so each part is a tree of its own for jax.grad, jit and any optimizer.",
    hints=(
        "`jax.tree.map_with_path(f, tree)` calls `f(path, leaf)`, and `jax.tree_util.keystr(path)` makes text of a path.",
        "Map twice: once keep what is chosen, once keep the rest, and return None for the other leaves.",
    ),
    solution=_partition,
    check=_check_partition,
    mistakes=(
        Mistake(_partition_swapped, says="The two are swapped"),
        Mistake(_partition_with(0.0), says="here it is 0."),
        Mistake(_partition_zeros, says="an array of zeros"),
        Mistake(_partition_with(()), says="an empty tuple"),
        Mistake(_partition_dropped, says="left out"),
        Mistake(_partition_by_path, says="in a dict by their paths"),
        Mistake(lambda tree, chosen: list(_partition(tree, chosen)), says="this is a list"),
        Mistake(lambda tree, chosen: _partition(tree, chosen)[0], says="the rest is needed"),
        Mistake(_partition_pairs, says="a pair of trees"),
        Mistake(lambda tree, chosen: (_partition(tree, chosen)[0], tree), says="still holds what was chosen"),
        Mistake(_partition_unpaired_path, says="wants the path as text"),
        Mistake(_partition_last_step, says="gets the whole path"),
        Mistake(_partition_simple, says="gets the whole path"),
        Mistake(_partition_top, says="may have any depth"),
        Mistake(_partition_is, says="do not ask with `is`"),
        Mistake(_partition_emptied, says="changed its input"),
        Mistake(_partition_by_hand, says="of any registered kind"),
        Mistake(_partition_into_arrays, says="Leaves stay as they are"),
    ),
)


# combine


def _combine(first, second):
    def there(one, two):
        return two if one is None else one

    return jax.tree.map(there, first, second, is_leaf=lambda item: item is None)


def _check_combine(combine):
    def pair():  # new ones each time: an answer may change them
        return (
            {"kernel": jnp.array([1.0, 2.0]), "bias": None},
            {"kernel": None, "bias": jnp.array([3.0])},
        )

    def zeros():
        return (
            {"a": jnp.array(0.0), "b": None, "c": jnp.array(False), "d": jnp.array(2.0)},
            {"a": None, "b": jnp.array(0), "c": None, "d": None},
        )

    def parts(tree, chosen):
        return _partition(tree, lambda text: chosen in text)

    holes = {"a": [None, Point(jnp.ones(1), (None, jnp.ones(2)))], "b": (), "c": jnp.arange(3)}
    attempt = functools.partial(_right_combination, combine)
    attempt(pair(), "At each place stands the leaf of the tree that has one there.", shallow=True)
    checks.pure(combine, *pair())
    attempt(pair()[::-1], "Either of the two may hold the leaf.")
    advice = "Zero and False are values like others: only None means that nothing is there."
    attempt(zeros(), advice)
    attempt(zeros()[::-1], advice)
    for chosen in ("kernel", "[0]", "scale"):
        attempt(parts(_layers(), chosen), "The trees may have any depth.")
        attempt(parts(_layers(), chosen)[::-1], "The trees may have any depth.")
    attempt(parts(_boxed(), "kernel"), "Containers may be of any registered kind.")
    attempt(parts(holes, "y"), "Where neither tree has a leaf, None remains; containers stay what they are.")
    single = "A single array is a tree, too, and None is what remains of the other part."
    attempt((jnp.ones(2), None), single)
    attempt((None, jnp.ones(2)), single)
    with under("`jax.jit`"):
        got = jax.jit(combine)(*pair())
    checks.same(got, _combine(*pair()), where="under `jax.jit`")
    first, second = pair()
    with under("`jax.grad`"):
        gradient = jax.grad(lambda first: jnp.sum(combine(first, second)["kernel"] ** 2))(first)
    expected = {"kernel": 2 * first["kernel"], "bias": None}
    checks.same(gradient, expected, where="as the gradient of the first part")


def _right_combination(combine, arguments, advice, shallow=False):
    recognise = [
        (lambda a, b: a, "You return the first tree; what is None there is to come from the second."),
        (lambda a, b: b, "You return the second tree; what is None there is to come from the first."),
        (lambda a, b: jax.tree.map(lambda _: None, a), "Nothing is left: choose the one that is *not* None."),
        (lambda a, b: (a, b), "Return one tree, not both."),
        (
            lambda a, b: jax.tree.leaves((a, b)),
            "These are the leaves; asked for is a tree of the shape of the two.",
        ),
    ]
    try:
        # a merge of dicts can be equal to one of two deep trees by accident
        recognise = recognise if shallow else recognise[2:]
        checks.values(combine, _combine, examples=[arguments], recognise=recognise)
    except Failed as failure:
        error = getattr(failure, "error", None)
        if isinstance(error, ValueError) and "truth value" in str(error):
            advice = "An array is neither true nor false. Ask whether it is there: `is None`."
        elif isinstance(error, (TypeError, ValueError)) and "None is not a valid value" in str(error):
            advice = "Where neither tree has a leaf both are None, and None is no value for `jnp`: hand it on as it is."
        elif isinstance(error, ValueError) and "None" in str(error):
            advice = (
                "To `jax.tree.map` None is an empty container, not a leaf, so the trees differ there: `is_leaf` "
                "can say otherwise."
            )
        elif isinstance(error, TypeError) and "NoneType" in str(error):
            advice = "One of the two is None: choose the one that is there, and do not compute with it."
        if not failure.message.startswith(tuple(diagnosis for _, diagnosis in recognise)):
            failure.message = f"{advice}\n{failure.message}"
        raise


def _is_none(item):
    return item is None


def _combine_with(choose, is_leaf=_is_none):
    return lambda first, second: jax.tree.map(choose, first, second, is_leaf=is_leaf)


def _combine_dicts(first, second):
    return {name: second[name] if first[name] is None else first[name] for name in first}


def _combine_unflatten(first, second):
    structure = jax.tree.structure(first, is_leaf=_is_none)
    leaves = jax.tree.leaves(first) + jax.tree.leaves(second)
    return jax.tree.unflatten(structure, leaves[: structure.num_leaves])


def _combine_nested(first, second):
    if first is None or second is None:
        return second if first is None else first
    if isinstance(first, dict):
        return {name: _combine_nested(first[name], second[name]) for name in first}
    return [_combine_nested(one, two) for one, two in zip(first, second, strict=True)]


def _combine_merged(first, second):
    return {**first, **{name: item for name, item in second.items() if item is not None}}


def _combine_in_place(first, second):
    for name in first:
        if first[name] is None:
            first[name] = second[name]
    return first


combine = Exercise(
    title="Put a model together",
    stars=2,
    minutes=10,
    why="Partition, change or differentiate one part, combine: this is how libraries freeze weights and filter trees.",
    hints=(
        "`jax.tree.map` on the two trees would be right, but it does not stop at None, which is no leaf.",
        "`is_leaf=lambda item: item is None` makes it one. Then choose, for each pair, the one that is not None.",
    ),
    solution=_combine,
    check=_check_combine,
    mistakes=(
        Mistake(
            _combine_with(lambda a, b: b if a is None else a, is_leaf=None),
            says="not a leaf, so the trees differ",
        ),
        Mistake(_combine_with(lambda a, b: a or b), says="neither true nor false"),
        Mistake(_combine_with(lambda a, b: a + b), says="do not compute with it"),
        Mistake(_combine_with(lambda a, b: a if a is not None and a.any() else b), says="Zero and False"),
        Mistake(_combine_with(lambda a, b: a), says="You return the first tree"),
        Mistake(lambda a, b: b, says="You return the second tree"),
        Mistake(lambda a, b: {**a, **b}, says="You return the second tree"),
        Mistake(_combine_with(lambda a, b: a if a is None else b), says="Nothing is left"),
        Mistake(lambda a, b: (a, b), says="not both"),
        Mistake(lambda a, b: jax.tree.leaves((a, b)), says="These are the leaves"),
        Mistake(_combine_dicts, says="may have any depth"),
        Mistake(_combine_unflatten, says="of the tree that has one there"),
        Mistake(_combine_nested, says="of any registered kind"),
        Mistake(_combine_merged, says="may have any depth"),
        Mistake(
            _combine_with(lambda a, b: jnp.asarray(b if a is None else a)), says="None is no value for `jnp`"
        ),
        Mistake(_combine_in_place, says="changed its input"),
    ),
)


# traced

_traced = {
    "a": False, "b": True, "c": True, "d": True, "e": False, "f": True, "g": True, "h": True, "i": False,
}  # fmt: skip


def _check_traced(given):
    before = {"w": jnp.ones((2, 3)), "b": 0.5, "n": None}
    trees = {
        "a": {"n": None, "b": -7.0, "w": jnp.zeros((2, 3))},
        "b": {"w": jnp.ones((3, 2)), "b": 0.5, "n": None},
        "c": {"w": jnp.ones((2, 3)), "b": 0.5},
        "d": {"w": jnp.ones((2, 3)), "b": 1, "n": None},
        "e": {"w": np.zeros((2, 3), np.float32), "b": 0.5, "n": None},
        "f": {"w": jnp.ones((2, 3)), "b": 0.5, "n": 0.0},
        "g": {"w": [jnp.ones(3), jnp.ones(3)], "b": 0.5, "n": None},
        "h": collections.OrderedDict(b=0.5, n=None, w=jnp.ones((2, 3))),
        "i": {"w": jnp.nan * jnp.ones((2, 3)), "b": float("inf"), "n": None},
    }

    def is_traced(tree):
        runs = []
        jitted = jax.jit(lambda tree: runs.append(1) or 0.0)
        jitted(before)
        jitted(tree)
        return len(runs) == 2

    why = {
        "a": {True: "Dicts are sorted by key, so their order does not matter, and values never do."},
        "b": {False: "The shape of a leaf is in the key, even where the number of elements is the same."},
        "c": {False: "None has no leaves, but its key is a part of the structure."},
        "d": {False: "An int becomes int32 and a float becomes float32: another dtype."},
        "e": {True: "What counts is the type of the leaf, float32[2,3], not who made it."},
        "f": {False: "None was an empty container, and now there is a leaf."},
        "g": {False: "As many numbers, but a list of two leaves instead of one leaf: another structure."},
        "h": {False: "An OrderedDict is another container than a dict, even with the same keys."},
        "i": {True: "Values are never in the key, not even nan and infinity."},
    }
    checks.answers(given, {name: is_traced(tree) for name, tree in trees.items()}, why)


traced = Exercise(
    title="Which trees are traced again?",
    stars=2,
    minutes=5,
    why="A structure that changes from call to call costs a compilation each time, and nothing but the clock tells.",
    hints=(
        "Compare the structure first, with all containers and keys, then each leaf's shape and dtype.",
        "A float of Python's is a weakly typed float32; an int is a weakly typed int32.",
    ),
    solution=_traced,
    check=_check_traced,
    mistakes=(
        Mistake(_traced | {"a": True}, says="their order does not matter"),
        Mistake(_traced | {"b": False}, says="the number of elements is the same"),
        Mistake(_traced | {"c": False}, says="its key is a part"),
        Mistake(_traced | {"d": False}, says="An int becomes int32"),
        Mistake(_traced | {"e": True}, says="not who made it"),
        Mistake(_traced | {"f": False}, says="now there is a leaf"),
        Mistake(_traced | {"g": False}, says="two leaves instead of one"),
        Mistake(_traced | {"h": False}, says="another container than a dict"),
        Mistake(_traced | {"i": True}, says="not even nan"),
        Mistake(_traced | {"a": "no"}, says="`True` or `False` is asked for"),
        Mistake([*_traced.values()], says="a dict is asked for"),
    ),
)


# node


def _node(cls):
    def flatten(item):
        attributes = vars(item)
        children = [(jax.tree_util.GetAttrKey(name), attributes[name]) for name in cls.children]
        static = [pair for pair in attributes.items() if pair[0] not in cls.children]
        return children, tuple(sorted(static, key=lambda pair: pair[0]))

    def unflatten(static, children):
        item = object.__new__(cls)
        vars(item).update(static)
        vars(item).update(zip(cls.children, children, strict=True))
        return item

    jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)
    return cls


def _linear_class():
    class Linear:
        children = "kernel", "bias"

        def __init__(self, kernel, bias, name="linear"):
            self.kernel, self.bias, self.name = kernel, bias, name

    return Linear


def _attempt(call, advice=""):
    """What ``call`` returns; an error on the way is the reader's."""
    try:
        return call()
    except (Failed, NotAttempted):
        raise
    except Exception as error:
        failure = as_theirs(error, _check_node)
        if isinstance(failure, Failed):
            failure.message = f"{advice}\n{failure.message}".strip()
        raise failure from None


def _check_node(node):
    Linear = _linear_class()
    listed, init = Linear.children, Linear.__init__
    got = node(Linear)
    if got is not Linear:
        said = "returned None" if got is None else "returned something else"
        raise Failed(
            f"Your function {said}: below `@node` that is what the name of the class stands for from then on. "
            "Register the class, and return it."
        )
    kernel, bias = jnp.arange(6.0).reshape(2, 3), jnp.ones(3)
    item = Linear(kernel, bias, "first")
    words = "an object with the children kernel and bias, and name = 'first'"
    if jax.tree_util.all_leaves([item]):
        raise Failed("JAX does not know the class yet: it is still a leaf. Register it.", input=words)
    _right_children(item, kernel, bias, words)
    _put_together(item, words)
    _without_init(node)
    if getattr(Linear, "children", None) != listed or Linear.__init__ is not init:
        raise Failed(
            "The class has lost or changed its `children` or its `__init__`: leave them as they are."
        )
    _right_static(node)
    _all_attributes(node)
    _frozen(node)
    _two_classes(node)
    _transformed(Linear, kernel, bias)


def _right_children(item, kernel, bias, words):
    leaves = _attempt(lambda: jax.tree.leaves(item), "Taking the object apart failed.")
    if len(leaves) == 3:
        raise Failed(
            "The name is a leaf here. Only the attributes that the class lists are children; the others are auxiliary data.",
            input=words, got=leaves,
        )  # fmt: skip
    if len(leaves) == 2 and leaves[0] is bias and leaves[1] is kernel:
        raise Failed(
            "The children are in another order: they come as the class lists them, first `kernel`.",
            input=words,
        )
    if len(leaves) != 2 or leaves[0] is not kernel or leaves[1] is not bias:
        raise Failed(
            "The leaves are not the two children, as they are.",
            input=words,
            expected=[kernel, bias],
            got=leaves,
        )
    flat = _attempt(lambda: jax.tree.leaves_with_path(item))
    paths = [jax.tree_util.keystr(path) for path, _ in flat]
    if paths != [".kernel", ".bias"]:
        raise Failed(
            "The paths do not name the children: register with keys, and give each child a "
            "`jax.tree_util.GetAttrKey` of its name.",
            expected="['.kernel', '.bias']", got=paths,
        )  # fmt: skip


def _put_together(item, words):
    advice = "Putting the object together again failed."
    again = _attempt(lambda: jax.tree.map(lambda leaf: leaf + 1, item), advice)
    if again is item:
        raise Failed(
            "`unflatten` returns the old object. It has to make a new one: the old one may be in use."
        )
    other = _attempt(lambda: jax.tree.map(lambda leaf: leaf + 2, item), advice)
    if other is again:
        raise Failed("`unflatten` returns one object again and again: it has to make a new one each time.")
    if type(again) is not type(item):
        raise Failed(
            "An object is put together as something else than it was: it must be of the class again.",
            input=words,
            got=type(again).__name__,
        )
    missing = [name for name in ("kernel", "bias", "name") if name not in vars(again)]
    if missing:
        raise Failed(
            f"When it is put together, the object has lost `{missing[0]}`: all attributes must come back.",
            input=words,
        )
    if again.name != "first":
        raise Failed(
            "When it is put together, the object has another `name`: auxiliary data must come back as it was.",
            input=words, expected="first", got=again.name,
        )  # fmt: skip
    if not (jnp.array_equal(again.kernel, item.kernel + 1) and jnp.array_equal(again.bias, item.bias + 1)):
        raise Failed(
            "When it is put together, the children have not come to the attributes that they belong to.",
            input=words, expected={"kernel": item.kernel + 1, "bias": item.bias + 1},
            got={"kernel": again.kernel, "bias": again.bias},
        )  # fmt: skip


def _without_init(node):
    class Careful:
        children = ("value",)

        def __init__(self, value, unit):
            if not isinstance(value, jax.Array):
                raise Failed(
                    "Your function calls `__init__` to put an object together. That may check or convert, and JAX hands "
                    "in other things than arrays: make the object without it, by `object.__new__(cls)`."
                )
            self.value = jnp.asarray(value, jnp.float32)
            self.unit = unit

    Careful.__init__.__qualname__ = "Careful.__init__"
    node(Careful)
    item = Careful(jnp.ones(2), "m")
    for place in ((2,), "text", 3, None):  # what stands in a leaf's place
        again = _attempt(lambda place=place: jax.tree.map(lambda leaf: place, item))
        got = vars(again).get("value", "no attribute at all")
        if type(got) is not type(place) or got != place:
            raise Failed(
                "What takes a leaf's place must come into the attribute as it is, whatever it is: do not convert or "
                "choose when an object is put together.",
                expected=place, got=got,
            )  # fmt: skip


def _right_static(node):
    Linear = node(_linear_class())
    one = Linear(jnp.ones(2), jnp.ones(1), "one")
    structure = _attempt(lambda: jax.tree.structure(one))
    other = _attempt(lambda: jax.tree.structure(Linear(jnp.zeros(3), None, "one")).num_leaves)
    if other != 1:
        raise Failed("A child may be None, or any tree: it is opened like any other container.")
    same = jax.tree.structure(Linear(jnp.zeros(3), jnp.ones(1), "one"))
    if _attempt(lambda: structure != same):
        raise Failed(
            "Two objects with the same static attributes have structures that differ, so every call under `jax.jit` is a "
            "new trace. Compare auxiliary data by value: the names and values, not the object."
        )
    if structure == jax.tree.structure(Linear(jnp.ones(2), jnp.ones(1), "two")):
        raise Failed(
            "Two objects with another `name` have equal structures, so `jax.jit` would run the program of the one "
            "for the other. All static attributes belong in the auxiliary data."
        )
    turned = object.__new__(Linear)
    turned.extra, turned.name = 1, "one"
    turned.bias, turned.kernel = jnp.ones(1), jnp.ones(2)
    straight = Linear(jnp.ones(2), jnp.ones(1), "one")
    straight.extra = 1
    _attempt(
        lambda: jax.tree.structure(straight),
        "Static values need not be of one type: sort by the names alone.",
    )
    if _attempt(lambda: jax.tree.structure(turned)) != jax.tree.structure(straight):
        raise Failed(
            "Two objects that got the same attributes in another order have structures that differ: sort the names, "
            "so that the order does not matter."
        )
    try:
        hash(structure.node_data()[1])
    except TypeError:
        raise Failed(
            "The auxiliary data cannot be hashed (a dict or a list?). JAX asks for data that can, since what can be "
            "changed later would change the key to its cache: make a tuple of pairs."
        ) from None


def _all_attributes(node):
    item = node(_linear_class())(jnp.ones(2), None, "one")
    static = {"name": "one", "_private": 3, "unit": None, "rule": jnp.tanh, "sizes": (2, "two")}
    vars(item).update(static)
    advice = (
        "Static attributes may be of any kind, functions too: keep the values themselves, not a text of them."
    )
    again = vars(_attempt(lambda: jax.tree.map(lambda leaf: leaf, item), advice))
    missing = [name for name in ("kernel", "bias", *static) if name not in again]
    changed = [name for name in static if name in again and again[name] != static[name]]
    if missing or changed:
        raise Failed(
            f"When it is put together, the object has {'lost' if missing else 'another'} `{(missing + changed)[0]}`. *All* "
            "attributes come back as they were: private ones, None, functions, and those that were set later.",
            input="an object with the attributes kernel, bias (None), " + ", ".join(static),
        )


def _frozen(node):
    @node
    @dataclasses.dataclass(frozen=True)
    class Frozen:
        value: object
        unit: str
        children = ("value",)

    item = Frozen(jnp.ones(2), "m")
    advice = "A frozen dataclass does not let its attributes be assigned: write into `vars(item)` instead."
    again = _attempt(lambda: jax.tree.map(lambda leaf: 2 * leaf, item), advice)
    if not (hasattr(again, "unit") and again.unit == "m" and jnp.array_equal(again.value, 2 * item.value)):
        raise Failed("A frozen dataclass does not come back as it was.", input="a frozen dataclass")


def _two_classes(node):
    one, two = node(_linear_class()), node(_linear_class())
    structures = [jax.tree.structure(cls(jnp.ones(2), jnp.ones(1))) for cls in (one, two)]
    if structures[0] == structures[1]:
        raise Failed("Two classes with the same attributes have equal structures: they must be told apart.")
    item = _attempt(lambda: jax.tree.map(lambda leaf: leaf, one(jnp.ones(2), jnp.ones(1))))
    if type(item) is not one:
        raise Failed(
            "After a second class was registered, objects of the first come back as objects of the second."
        )


def _transformed(Linear, kernel, bias):
    traces = []

    def apply(layer, x):
        traces.append(1)
        return jnp.sum(x @ layer.kernel + layer.bias) if layer.name == "first" else jnp.sum(x)

    jitted, x = jax.jit(apply), jnp.ones(2)
    for name in ("first", "second", "first"):
        expected = apply(Linear(kernel, bias, name), x)
        traces.clear()
        got = _attempt(lambda name=name: jitted(Linear(kernel, bias, name), x), "Under `jax.jit` it failed.")
        checks.same(got, expected, where=f"under `jax.jit`, with the name {name!r}")
    if traces:
        raise Failed("An object with a name that was seen before is traced again under `jax.jit`.")
    layer = Linear(kernel, bias, "first")
    gradient = _attempt(lambda: jax.grad(apply)(layer, x), "Under `jax.grad` it failed.")
    if not isinstance(gradient, Linear):
        raise Failed("The gradient of an object should be an object of the same class.", got=gradient)
    many = Linear(jnp.stack([kernel, kernel]), jnp.stack([bias, bias]), "first")
    got = _attempt(lambda: jax.vmap(apply, in_axes=(0, None))(many, x), "Under `jax.vmap` it failed.")
    checks.same(got, jnp.stack([apply(layer, x)] * 2), where="under `jax.vmap`")


def _node_by(flatten, unflatten, with_keys=True):
    """A wrong `node`: ``flatten(cls, item)`` and ``unflatten(cls, static, children)``."""

    def node(cls):
        register = (
            jax.tree_util.register_pytree_with_keys if with_keys else jax.tree_util.register_pytree_node
        )
        register(cls, functools.partial(flatten, cls), functools.partial(unflatten, cls))
        return cls

    return node


def _apart(cls, item, names=None):
    names = cls.children if names is None else names
    children = [(jax.tree_util.GetAttrKey(name), vars(item)[name]) for name in names]
    static = ((n, v) for n, v in vars(item).items() if n not in cls.children)
    return children, tuple(sorted(static, key=lambda pair: pair[0]))


def _together(cls, static, children):
    item = object.__new__(cls)
    vars(item).update(static)
    vars(item).update(zip(cls.children, children, strict=True))
    return item


def _node_not_returned(cls):
    _node(cls)


def _node_not_registered(cls):
    return cls


def _node_without_keys_flatten(cls, item):
    children, static = _apart(cls, item)
    return [child for _, child in children], static


def _node_init(cls, static, children):
    return cls(**dict(static), **dict(zip(cls.children, children, strict=True)))


def _node_setattr(cls, static, children):
    item = object.__new__(cls)
    for name, value in (*static, *zip(cls.children, children, strict=True)):
        setattr(item, name, value)
    return item


def _node_all_leaves(cls, item):
    return [(jax.tree_util.GetAttrKey(name), value) for name, value in vars(item).items()], ()


def _node_all_together(cls, static, children):
    return _together(cls, zip(("kernel", "bias", "name"), children, strict=True), ())


def _node_alphabet(cls, item):
    return _apart(cls, item, sorted(cls.children))


def _node_drops(cls, item):
    return _apart(cls, item)[0], ()


def _node_item_as_static(cls, item):
    return _apart(cls, item)[0], item


def _node_from_item(cls, static, children):
    return _together(cls, vars(static), children)


def _node_unsorted(cls, item):
    return _apart(cls, item)[0], tuple((n, v) for n, v in vars(item).items() if n not in cls.children)


def _node_sorts_values(cls, item):
    static = sorted(((n, v) for n, v in vars(item).items() if n not in cls.children), key=lambda p: p[1])
    return _apart(cls, item)[0], tuple(static)


def _node_dict(cls, item):
    return _apart(cls, item)[0], {n: v for n, v in vars(item).items() if n not in cls.children}


def _node_reversed(cls, static, children):
    return _together(cls, static, tuple(children)[::-1])


def _node_chosen(keep):
    def flatten(cls, item):
        children, static = _apart(cls, item)
        return children, tuple(pair for pair in static if keep(cls, *pair))

    return _node_by(flatten, _together)


def _node_text(cls, item):
    children, static = _apart(cls, item)
    return children, repr(static)


def _node_from_text(cls, static, children):
    return _together(cls, eval(static, {}), children)


def _node_one_object(cls):
    one = object.__new__(cls)

    def unflatten(static, children):
        vars(one).clear()
        vars(one).update(vars(_together(cls, static, children)))
        return one

    jax.tree_util.register_pytree_with_keys(cls, functools.partial(_apart, cls), unflatten)
    return cls


def _node_converts(cls, static, children):
    return _together(cls, static, [jnp.asarray(child) for child in children])


def _node_without_none(cls, static, children):
    item = _together(cls, static, children)
    for name in cls.children:
        if vars(item)[name] is None:
            del vars(item)[name]
    return item


def _node_swallows(cls):
    init = cls.__init__

    def careless(self, *arguments, **named):
        with contextlib.suppress(Exception, Failed):
            init(self, *arguments, **named)

    cls.__init__ = careless
    return _node(cls)


def _node_old_object(cls, static, children):
    vars(static).update(zip(cls.children, children, strict=True))
    return static


def _node_bare(cls, static, children):
    return dict(static) | dict(zip(cls.children, children, strict=True))


def _node_on_class(cls):
    names = {}

    def flatten(item):
        children, static = _apart(cls, item)
        names.update(static)
        return children, ()

    return_to = functools.partial(_together, cls)
    jax.tree_util.register_pytree_with_keys(cls, flatten, lambda _, children: return_to(names, children))
    return cls


_seen_classes = []


def _node_last_class(cls):
    _seen_classes[:] = [cls]
    jax.tree_util.register_pytree_with_keys(
        cls,
        functools.partial(_apart, cls),
        lambda static, children: _together(_seen_classes[-1], static, children),
    )
    return cls


def _node_static(cls):
    return jax.tree_util.register_static(cls)


def _node_dataclass(cls):
    attributes = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()
    attributes = [field.name for field in attributes] or list(inspect.signature(cls.__init__).parameters)[1:]
    static = [name for name in attributes if name not in cls.children]
    jax.tree_util.register_dataclass(cls, data_fields=list(cls.children), meta_fields=static)
    return cls


node = Exercise(
    title="A container of your own",
    stars=3,
    minutes=20,
    why="You have written the heart of a library of modules: Equinox and flax.struct are this decorator, grown up.",
    hints=(
        "`jax.tree_util.register_pytree_with_keys(cls, flatten, unflatten)`: `flatten(item)` returns pairs of a key and a "
        "child, and the auxiliary data; `unflatten(static, children)` returns an object.",
        "The key of a child is `jax.tree_util.GetAttrKey(name)`. The auxiliary data is a sorted tuple of pairs of name and value.",
        "`item = object.__new__(cls)` makes an object without `__init__`, and `vars(item).update(…)` gives it attributes.",
    ),
    solution=_node,
    check=_check_node,
    mistakes=(
        Mistake(_node_not_returned, says="returned None: below"),
        Mistake(_node_not_registered, says="still a leaf"),
        Mistake(_node_static, says="not the two children"),
        Mistake(_node_dataclass, says="calls `__init__`"),
        Mistake(_node_by(_apart, _node_init), says="calls `__init__`"),
        Mistake(_node_by(_node_without_keys_flatten, _together, with_keys=False), says="do not name the children"),
        Mistake(_node_by(_node_all_leaves, _node_all_together), says="The name is a leaf here"),
        Mistake(_node_by(_node_alphabet, _together), says="in another order: they come"),
        Mistake(_node_by(_node_drops, _together), says="has lost `name`"),
        Mistake(_node_by(_apart, _node_reversed), says="the attributes that they belong to"),
        Mistake(_node_by(_node_item_as_static, _node_from_item), says="Compare auxiliary data by value"),
        Mistake(_node_by(_node_item_as_static, _node_old_object), says="returns the old object"),
        Mistake(_node_by(_apart, _node_bare), says="as something else than it was"),
        Mistake(_node_by(_node_unsorted, _together), says="sort the names"),
        Mistake(_node_by(_node_sorts_values, _together), says="sort by the names alone"),
        Mistake(_node_by(_node_dict, _together), says="make a tuple of pairs"),
        Mistake(_node_on_class, says="run the program of the one"),
        Mistake(_node_by(_apart, _node_setattr), says="A frozen dataclass does not let"),
        Mistake(_node_one_object, says="one object again and again"),
        Mistake(_node_by(_apart, _node_converts), says="do not convert or"),
        Mistake(_node_by(_apart, _node_without_none), says="do not convert or"),
        Mistake(_node_swallows, says="leave them as they are"),
        Mistake(_node_by(_node_text, _node_from_text), says="keep the values themselves"),
        Mistake(_node_chosen(lambda cls, name, value: name[0] != "_"), says="has lost `_private`"),
        Mistake(_node_chosen(lambda cls, name, value: value is not None), says="has lost `unit`"),
        Mistake(_node_chosen(lambda cls, name, value: isinstance(value, str)), says="has lost `_private`"),
        Mistake(_node_last_class, says="come back as objects of the second"),
    ),
)  # fmt: skip
