"""``viz.model`` on models of all kinds, and the figure in a browser."""

import collections
import dataclasses
import re
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import nn, precision, viz
from mlax_tutorial.inspection import costs
from mlax_tutorial.viz.figures.model import look

X = jax.ShapeDtypeStruct((2, 4), jnp.float32)
SEQUENCE = jax.ShapeDtypeStruct((2, 5, 8), jnp.float32)
IMAGES = jax.ShapeDtypeStruct((2, 8, 8, 3), jnp.float32)
IDS = jax.ShapeDtypeStruct((2, 3), jnp.int32)


class Gated(nn.Composite):
    value: nn.Layer
    gate: nn.Layer

    def forward(self, call, x):
        return call.value(x) * jax.nn.sigmoid(call.gate(x))


class Tied(nn.Composite):
    embed: nn.Layer
    body: tuple

    def forward(self, call, x):
        x = call.embed(x)
        for layer in call.body:
            x = layer(x)
        return call.embed.attend(x)


class Doubled(nn.Composite):
    """Calls a child inside a transformation of its own."""

    inner: nn.Layer

    def forward(self, call, x):
        return jax.vmap(lambda row: call.inner(row))(2 * x)


class Perceptron(nn.Composite):
    sizes: tuple[int, ...]

    def children(self):
        return {"linear": tuple(nn.Linear(size) for size in self.sizes)}

    def forward(self, call, x):
        for linear in call.linear:
            x = jax.nn.relu(linear(x))
        return x


@dataclasses.dataclass(frozen=True)
class OwnSeries:
    """As a reader may write it: no class of the library's."""

    layers: tuple

    def init(self, key, x):
        trainables = []
        keys = jax.random.split(key, len(self.layers))
        for layer, own in zip(self.layers, keys):
            variables = layer.init(own, x)
            trainables.append(variables[0])
            x, _ = jax.eval_shape(layer.fwd, x, *variables)
        return tuple(trainables), ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        for layer, own in zip(self.layers, trainables):
            x, _ = layer.fwd(x, own, ())
        return x, ()


class OwnLinear:
    """An ordinary class."""

    def __init__(self, size):
        self.size = size

    def init(self, key, x):
        return {"kernel": jax.random.normal(key, (x.shape[-1], self.size))}, ()

    def fwd(self, x, trainables, non_trainables):
        return x @ trainables["kernel"], non_trainables


class Slotted:
    """No room for anything."""

    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner

    def init(self, key, x):
        return self.inner.init(key, x)

    def fwd(self, x, trainables, non_trainables):
        return self.inner.fwd(x, trainables, non_trainables)


Functions = collections.namedtuple("Functions", "init fwd")  # the style of stax

LINEAR = nn.Linear(8)
BLOCK = nn.Residual(
    nn.Series(nn.LayerNorm(), nn.Linear(16), nn.F(jax.nn.gelu), nn.Dropout(0.1), nn.Linear(8))
)
MLP = nn.Series(nn.Linear(8), nn.Bias(), nn.F(jax.nn.relu), nn.Dropout(0.5), nn.Linear(3))

# model, input, trainable numbers, a part of the listing
KINDS = {
    "a leaf": (nn.Linear(3), X, 12, "model  Linear(3), float32[2,4] -> float32[2,3], 12 numbers, 48 B, 48 FLOPs"),
    "no weights": (nn.F(jnp.tanh), X, 0, "F(tanh), float32[2,4] -> float32[2,4], 8 FLOPs"),
    "series": (MLP, X, 64, "[4]  Linear(3), float32[2,8] -> float32[2,3], 24 numbers, 96 B, 96 FLOPs"),
    "names": (nn.Series(body=nn.Linear(3), head=nn.Bias()), X, 15, "  .head  Bias(), float32[2,3]"),
    "one object twice": (nn.Series(LINEAR, LINEAR), X, 96, "  [1]  Linear(8), float32[2,8] -> float32[2,8], 64 numbers"),
    "parallel": (nn.Parallel(nn.Linear(2), nn.Linear(3)), X, 20, "model  Parallel, float32[2,4] -> (float32[2,2], float32[2,3])"),
    "residual": (nn.Residual(nn.Linear(3), nn.Linear(3)), X, 24, "  .shortcut  Linear(3), float32[2,4]"),
    "composite": (Gated(nn.Linear(3), nn.Linear(3)), X, 24, "  .gate  Linear(3), float32[2,4]"),
    "tied": (Tied(nn.Embed(9, 8), (LINEAR, LINEAR)), IDS, 200, "  .embed  Embed(9, 8), int32[2,3] -> float32[2,3,8], 72 numbers, 288 B, 864 FLOPs, called 2 times"),
    "in a vmap": (Doubled(nn.Linear(3)), X, 12, "  .inner  Linear(3), float32[4] -> float32[3], 12 numbers, 48 B, 48 FLOPs"),
    "children": (Perceptron((8, 3)), X, 56, "  .linear[1]  Linear(3), float32[2,8]"),
    "stack": (nn.Stack(BLOCK, depth=6), SEQUENCE, 1536, "  […]  Residual, float32[2,5,8] -> float32[2,5,8], 1,536 numbers, 6.14 kB"),
    "equal stacks": (nn.Series(nn.Stack(BLOCK, depth=2), nn.Stack(BLOCK, depth=2)), SEQUENCE, 1024, "      .layer  Series, float32[2,5,8] -> float32[2,5,8], 512 numbers"),
    "remat": (nn.Remat(BLOCK), SEQUENCE, 256, "  .layer  Residual, float32[2,5,8] -> float32[2,5,8], 256 numbers"),
    "convolution": (nn.Series(nn.Conv(4, (3, 3)), nn.MaxPool((2, 2)), nn.BatchNorm()), IMAGES, 108, "[2]  BatchNorm()"),
    "recurrent": (nn.Recurrent(nn.LSTMCell(6)), SEQUENCE, None, "model  Recurrent(LSTMCell(6)), float32[2,5,8]"),
    "both directions": (nn.Bidirectional(nn.GRUCell(6)), SEQUENCE, None, "Bidirectional"),
    "attention": (nn.MultiHeadAttention(2, head_dim=4), SEQUENCE, None, "MultiHeadAttention("),
    "policy": (precision.Policy("bfloat16").apply(MLP), X, 64, "  .layer  Series, bfloat16[2,4] -> bfloat16[2,3], 64 numbers, 256 B"),
    "own container": (OwnSeries((LINEAR, nn.F(jnp.tanh), LINEAR)), X, 96, "  .layers[2]  Linear(8), float32[2,8] -> float32[2,8], 64 numbers, 256 B, 256 FLOPs"),
    "own in own": (OwnSeries((OwnLinear(3), OwnSeries((OwnLinear(2),)))), X, 18, "    .layers[0]  OwnLinear, float32[2,3] -> float32[2,2], 6 numbers"),
    "own in a series": (nn.Series(nn.Linear(3), nn.Residual(nn.F(jnp.sin))), X, 12, "    .layer  F(sin)"),
    "slots": (Slotted(OwnLinear(3)), X, 12, "model  Slotted, float32[2,4] -> float32[2,3], 12 numbers"),
    "functions": (Functions(nn.Linear(3).init, nn.Linear(3).fwd), X, 12, "model  Functions, float32[2,4]"),
}  # fmt: skip


def every(block):
    yield block
    for child in block.children:
        yield from every(child)


@pytest.mark.parametrize(("model", "x", "numbers", "said"), KINDS.values(), ids=list(KINDS))
def test_all_kinds_of_models(model, x, numbers, said):
    figure, again = viz.model(model, x), viz.model(model, x)
    root = figure.root
    assert said in repr(figure)
    variables = jax.eval_shape(lambda key, x: model.init(key, x), jax.random.key(0), x)
    assert numbers is None or root.trainables == numbers
    assert root.trainables == sum(leaf.size for leaf in jax.tree.leaves(variables[0]))
    assert root.bytes == sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(variables))
    assert all(block.visits for block in every(root))
    markup = figure._repr_html_()
    assert markup == again._repr_html_() and repr(figure) == repr(again)
    assert " at 0x" not in markup and "<script" not in markup
    well_formed(markup)


def well_formed(markup):
    bare = re.sub(r"<style>.*?</style>", "", markup, flags=re.S).replace("&nbsp;", " ")
    return ElementTree.fromstring(bare.replace(" open>", ">"))


@pytest.mark.parametrize("name", list(KINDS))
def test_the_work_is_all_of_the_programs(name):
    model, x, *_ = KINDS[name]
    root = look(model, x)
    keyed = {"key": jax.eval_shape(lambda: jax.random.key(0))} if root.key else {}
    variables = jax.eval_shape(lambda key, x: model.init(key, x), jax.random.key(0), x)
    whole = costs.cost(lambda x, variables, keyed: model.fwd(x, *variables, **keyed), x, variables, keyed)
    assert (root.flops, root.transcendentals) == (whole.flops, whole.transcendentals)
    for block in every(root):
        assert block.flops == block.own_flops + sum(child.flops for child in block.children)


def test_nothing_of_the_model_is_left_changed():
    for model, x, *_ in KINDS.values():
        look(model, x)
        for layer in (model, *getattr(model, "layers", ())):
            assert "fwd" not in getattr(layer, "__dict__", {})

    class Fails(nn.Composite):
        inner: nn.Layer

        def forward(self, call, x):
            if call.inner(x).shape == (2, 3):
                raise RuntimeError("no")

    model = Fails(LINEAR)
    with pytest.raises(Exception, match="forward must return"):
        look(model, X)
    assert "fwd" not in LINEAR.__dict__ and "fwd" not in model.__dict__


def test_what_was_traced_before_is_seen_all_the_same():
    stack = nn.Stack(BLOCK, depth=3)
    variables = stack.init(jax.random.key(0), jnp.ones((2, 5, 8)))
    jax.jit(stack.fwd)(jnp.ones((2, 5, 8)), *variables, key=jax.random.key(1))
    first = look(stack, SEQUENCE)
    assert first.children and first == look(stack, SEQUENCE)
    assert first.children[0].times == 3 and first.children[0].children[0].times == 1
    assert first.children[0].flops == first.flops


def test_of_equal_stacks_each_has_its_own_weights():
    model = nn.Series(nn.Stack(BLOCK, depth=2), nn.Stack(BLOCK, depth=2))
    one, two = look(model, SEQUENCE).children
    paths = [{array.path for block in every(stack) for array in block.arrays} for stack in (one, two)]
    assert len(paths[0]) == len(paths[1]) > 0 and not paths[0] & paths[1]
    assert all(path.startswith("[0]") for path in paths[0])


def test_shared_weights_count_once_and_their_work_twice():
    root = look(*KINDS["tied"][:2])
    embed = root.children[0]
    assert len(embed.visits) == 2 and root.numbers == 72 + 64 + 64
    assert [visit.source for visit in embed.visits] == ["input", ".body[1]"]


def test_where_inputs_come_from():
    value, gate = look(*KINDS["composite"][:2]).children
    assert value.visits[0].source == gate.visits[0].source == "input"
    first, second, *_ = look(MLP, X).children
    assert (first.visits[0].source, second.visits[0].source) == ("input", "[0]")

    class Shifted(nn.Composite):
        inner: nn.Layer

        def forward(self, call, x):
            return call.inner(x + 1)

    assert look(Shifted(LINEAR), X).children[0].visits[0].source == "computed"


def test_keys_are_followed():
    model = nn.Series(nn.Linear(8), nn.Dropout(0.5), nn.Stack(BLOCK, depth=6), nn.Residual(nn.Dropout(0.1)))
    root = look(model, SEQUENCE)
    assert [child.key for child in root.children] == [False, True, True, True]
    assert root.splits == (3,) and root.children[2].splits == (6,)
    assert root.children[1].draws > 0 and root.draws == 0
    assert not any(block.key for block in every(look(model, SEQUENCE, inference_mode=True)))
    shown = repr(viz.model(model, SEQUENCE))
    assert "gets a key: splits it into 3, hands them to [1], [2], [3]" in shown


def test_further_inputs_and_concrete_arrays():
    model = nn.MultiHeadAttention(2, head_dim=4)
    assert look(model, jnp.ones((2, 5, 8)), mask=jnp.ones((5, 5), bool)).visits
    assert look(nn.Linear(2), jnp.ones((1, 3))).numbers == 6


def test_a_model_larger_than_any_memory():
    huge = jax.ShapeDtypeStruct((1, 1_000_000), jnp.float32)
    assert "4 TB" in repr(viz.model(nn.Linear(1_000_000), huge))


def test_guards_do_not_object():
    with jax.check_tracer_leaks(True), jax.debug_key_reuse(True):
        look(nn.Series(nn.Stack(BLOCK, depth=2), nn.Dropout(0.5)), SEQUENCE)


def test_what_is_no_layer_is_refused():
    with pytest.raises(
        TypeError, match="a layer has the methods init and fwd; got builtin_function_or_method"
    ):
        viz.model(len, X)
    with pytest.raises(nn.LayerError, match="Linear"):
        viz.model(nn.Series(nn.Linear(2)), IDS)


def test_much_is_cut_short_and_text_escaped():
    many = viz.model(nn.Series(*[nn.F(jnp.tanh)] * 130), X)
    assert "... and 30 more" in repr(many) and "… and 30 more" in many._repr_html_()
    assert many._repr_html_().count(" open>") == 1

    class Odd(nn.Layer):
        text: str

        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            return x, non_trainables

    markup = viz.model(Odd("<script>alert('no')</script>"), X, name="<i>")._repr_html_()
    assert "<script" not in markup and "<i>" not in markup


def test_what_a_reader_sees(browser):
    """The page as it is drawn, wide and narrow: every block's name in sight, nothing cut off, opened by keyboard."""
    model = nn.Series(nn.Linear(8), nn.Dropout(0.5), nn.Parallel(nn.Linear(3), nn.Linear(5)))
    for width in (1000, 390):
        page = browser.open(viz.model(model, X)._repr_html_(), width=width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for title in ("Series", "Linear(8)", "Dropout(0.5)", "Parallel", "Linear(3)", "Linear(5)"):
            assert page.get_by_text(title, exact=True).is_visible(), title
        assert page.locator(".viz-model-arrow").get_by_text("float32[2,8]", exact=True).first.is_visible()
        assert page.get_by_text("128 B", exact=True).is_visible()
        assert not page.get_by_text("[0]['kernel']", exact=True).is_visible()
        beside = [page.get_by_text(text, exact=True).bounding_box() for text in ("Linear(3)", "Linear(5)")]
        assert (abs(beside[0]["y"] - beside[1]["y"]) < 2) == (width == 1000)
        bar = page.locator(".viz-model-bytes").nth(1)
        assert "rgb(0, 114, 178)" in bar.evaluate("e => getComputedStyle(e).backgroundImage")
        page.locator("summary").nth(1).focus()
        page.keyboard.press("Enter")
        assert page.get_by_text("[0]['kernel']", exact=True).is_visible()
        assert page.get_by_text("dot_general", exact=True).first.is_visible()
        page.close()
