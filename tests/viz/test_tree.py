"""``viz.tree`` on trees of all kinds, and the figure in a browser."""

import collections
import dataclasses
import functools
import re
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import viz
from mlax_tutorial.viz.figures.tree import look

Point = collections.namedtuple("Point", "x y")


class OwnDict(dict):
    pass


class Plain:
    pass


class NoRepr:
    def __repr__(self):
        raise ValueError("no words")


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Layer:
    kernel: object
    name: object = dataclasses.field(default="layer", metadata={"static": True})


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Config:
    size: int


@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, one, two):
        self.one, self.two = one, two

    def tree_flatten(self):
        return (self.one, self.two), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


X = jnp.ones((2, 3))
# tree, leaves, numbers, bytes, a part of the listing
KINDS = {
    "array": (X, 1, 6, 24, "tree  float32[2,3], 24 B"),
    "NumPy": (np.ones(3), 1, 3, 24, "float64[3], 24 B (NumPy)"),
    "NumPy scalar": ([np.float32(1)], 1, 1, 4, "float32[], 4 B (NumPy)"),
    "numbers": ([1, 2.0, True, 1j], 4, 4, 17, "[3]  complex 1j, 8 B (becomes complex64[])"),
    "a number too large": ([2**80], 1, 0, 0, "too large for JAX's integers"),
    "half": ({"w": X.astype(jnp.bfloat16)}, 1, 6, 12, "['w']  bfloat16[2,3], 12 B"),
    "key": (jax.random.key(0), 1, 1, 8, "key<fry>[], 8 B"),
    "keys": ([jax.random.split(jax.random.key(0), 3)], 1, 3, 24, "key<fry>[3]"),
    "placeholder": ([jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)], 1, 10**12, 4 * 10**12, "4 TB (no values)"),
    "no numbers": ([jnp.ones((0, 3))], 1, 0, 0, "float32[0,3], 0 B"),
    "float0": ([np.zeros(2, jax.dtypes.float0)], 1, 0, 0, "the gradient of an integer"),
    "None": (None, 0, 0, 0, "tree  None, no leaves"),
    "empty": ([{}, (), [None]], 0, 0, 0, "[0]  empty dict, no leaves"),
    "dict": ({"b": X, "a": X + 1}, 2, 12, 48, "dict of 2, 2 leaves, 12 numbers, 48 B\n  ['a']"),
    "deep": ({"l": [{"w": X}, (X + 1,)]}, 2, 12, 48, "      [0]  float32[2,3]"),
    "named tuple": (Point(X, None), 1, 6, 24, "  .x  float32[2,3], 24 B\n  .y  None"),
    "ordered": (collections.OrderedDict(z=1, a=2), 2, 2, 8, "OrderedDict of 2, 2 leaves, 2 numbers, 8 B\n  ['z']"),
    "defaultdict": (collections.defaultdict(list, a=1), 1, 1, 4, "defaultdict of 1"),
    "own dataclass": (Layer(X, "first"), 1, 6, 24, "(static: name='first')\n  .kernel"),
    "own static": ({"c": Config(3)}, 0, 0, 0, "['c']  Config, no leaves (static: Config(size=3))"),
    "own class": (Pair(X, [X + 1]), 2, 12, 48, "[<flat index 1>]  list of 1"),
    "a function as static": (Layer(X, jnp.tanh), 1, 6, 24, "(static: name=function tanh)"),
    "Partial": (jax.tree_util.Partial(jnp.add, X), 1, 6, 24, "static: function add"),
    "the same twice": ({"a": [X], "b": X}, 2, 12, 48, "(the same array as ['a'][0])"),
    "text": (["text"], 1, 0, 0, "[0]  'text' (no array)"),
    "array of text": ([np.array(["a"])], 1, 0, 0, "no dtype of JAX: <U1"),
    "set": ({"s": {1}}, 1, 0, 0, "a set has no order"),
    "derived": (OwnDict(a=1), 1, 0, 0, "a class derived from dict, not registered"),
    "unknown": ([Plain()], 1, 0, 0, "[0]  Plain (not registered)"),
    "a class, a function": ([Plain, len], 2, 0, 0, "class Plain"),
    "no repr": ([NoRepr()], 1, 0, 0, "[0]  NoRepr (not registered)"),
    "generator": ([(x for x in [1])], 1, 0, 0, "make a list of it"),
    "view": ([{"a": 1}.values()], 1, 0, 0, "make a list of it"),
}  # fmt: skip


@pytest.mark.parametrize(("tree", "leaves", "numbers", "size", "said"), KINDS.values(), ids=list(KINDS))
@pytest.mark.filterwarnings("error")
def test_all_kinds_of_trees(tree, leaves, numbers, size, said):
    root = look(tree)
    assert (root.leaves, root.numbers, root.bytes) == (leaves, numbers, size)
    first, again = viz.tree(tree), viz.tree(tree)
    assert said in repr(first)
    markup = first._repr_html_()
    assert markup == again._repr_html_() and repr(first) == repr(again)
    assert " at 0x" not in markup and "<script" not in markup and len(markup) < 10 * 1024
    well_formed(markup)


def well_formed(markup):
    bare = re.sub(r"<style>.*?</style>", "", markup, flags=re.S)
    return ElementTree.fromstring(bare.replace(" open>", ">"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", list(KINDS))
def test_leaves_are_those_of_jax(name):
    tree = KINDS[name][0]
    ends = []

    def walk(node, path):
        if node.is_leaf:
            ends.append(path)
        for child in node.children:
            walk(child, path + child.key)

    walk(look(tree), "")
    assert ends == [jax.tree_util.keystr(path) for path, _ in jax.tree.leaves_with_path(tree)]


def test_what_jit_refuses_is_marked():
    def accepted(leaf):
        try:
            jax.eval_shape(lambda leaf: leaf, leaf)
        except (TypeError, OverflowError):
            return False
        return True

    leaves = [X, np.ones(2), 1, 1.0, True, 1j, 2**80, "text", {1}, Plain(), len, OwnDict(), jax.random.key(0)]
    leaves += [np.array(["a"]), np.array([None]), np.zeros(2, "M8[s]"), b"bytes", ..., np.float64(1)]
    for leaf in leaves:
        assert look(leaf).wrong != accepted(leaf), leaf


def test_tracers_are_shown_and_do_not_leak():
    shown = []

    @jax.jit
    def function(tree):
        shown.append(viz.tree(tree))
        return tree

    with jax.checking_leaks():
        function({"x": X})
    assert "['x']  float32[2,3], 24 B (a tracer)" in repr(shown[0])


def test_much_is_cut_short():
    many = viz.tree([jnp.ones(1)] * 250)
    assert "... and 150 more" in repr(many) and "… and 150 more" in many._repr_html_()
    assert many.root.leaves == 250
    deep = functools.reduce(lambda tree, _: [tree], range(100), X)
    assert "too deep to be shown" in repr(viz.tree(deep)) and viz.tree(deep).root.numbers == 6


def test_few_rows_are_open_at_first():
    def open_rows(tree):
        return viz.tree(tree)._repr_html_().count(" open>")

    assert open_rows([[1, 2], [3, [4]]]) == 4
    assert open_rows([[[1] * 10] * 4] * 4) == 1 + 4
    assert open_rows([[0]] * 60) == 1


def test_the_readers_text_is_escaped():
    markup = viz.tree({"<script>alert('no')</script>": "<b>"}, "<i>")._repr_html_()
    assert "<script" not in markup and "<b>" not in markup and "<i>" not in markup


def test_sizes_are_readable():
    from mlax_tutorial.viz.figures.markup import in_bytes

    sizes = {
        0: "0 B",
        999: "999 B",
        1000: "1 kB",
        1234: "1.23 kB",
        999_600: "1 MB",
        349_208_518_656: "349 GB",
    }
    assert {count: in_bytes(count) for count in sizes} == sizes
    assert in_bytes(10**18) == "1e+03 PB"


def test_in_a_browser(browser):
    model = {"layers": [{"kernel": jnp.ones((784, 512)), "bias": jnp.zeros(512)} for _ in range(12)]}
    markup = viz.tree(model, "model")._repr_html_() + viz.tree(model["layers"][0])._repr_html_()
    page = browser.open(markup, scripts=False)
    figure = page.locator(".viz-tree").first
    kernels = figure.locator("code", has_text="['kernel']")
    assert kernels.count() == 12 and not kernels.first.is_visible()
    layer = figure.locator("summary", has_text="[0]").first
    layer.click()
    assert kernels.first.is_visible() and not kernels.nth(1).is_visible()
    layer.focus()
    page.keyboard.press("Enter")
    assert not kernels.first.is_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert kernels.nth(1).is_visible()
    boxes = [box.bounding_box() for box in page.locator(".viz-tree").all()]
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 390 for box in boxes)
    ends = [box.bounding_box() for box in figure.locator(".viz-tree-bytes").all() if box.is_visible()]
    assert len({round(box["x"] + box["width"]) for box in ends}) == 1, "the column of bytes is not straight"
