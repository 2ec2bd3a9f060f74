"""``viz.batch``: what ``vmap`` makes of functions of all kinds, and the page that shows it."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mlax_tutorial import viz
from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.viz.figures import batch

X = jnp.ones((8, 3))
KEYS = jax.random.split(jax.random.key(0), 8)


def unit(x):
    return x / jnp.sqrt(jnp.sum(x * x))


def loss(kernel, x):
    return jnp.sum(jnp.tanh(x @ kernel) ** 2)


ALL_KINDS = {
    "element by element": (unit, (X,), {}),
    "second axis": (unit, (X,), {"in_axes": 1}),
    "last axis": (unit, (X,), {"in_axes": -1}),
    "shared matrix": (loss, (jnp.ones((3, 2)), X), {"in_axes": (None, 0)}),
    "gradients": (jax.grad(loss), (jnp.ones((3, 2)), X), {"in_axes": (None, 0)}),
    "a map": (jax.vmap(jnp.dot, (None, 0)), (X, jnp.ones((5, 3))), {"in_axes": (0, None)}),
    "trees": (
        lambda p, x: x @ p["kernel"] + p["bias"],
        ({"kernel": jnp.ones((3, 2)), "bias": jnp.ones((8, 2))}, X),
        {"in_axes": ({"kernel": None, "bias": 0}, 0)},
    ),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), (X,), {}),
    "while": (lambda x: lax.while_loop(lambda s: s.sum() < 9, lambda s: s * 2, x), (X,), {}),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x), (X,), {}),
    "fori": (lambda n: lax.fori_loop(0, n, lambda i, s: s + i, 0), (jnp.arange(8),), {}),
    "collective": (lambda x: x - lax.pmean(x, "batch"), (X,), {"axis_name": "batch"}),
    "axis index": (lambda x: x * lax.axis_index("batch"), (X,), {"axis_name": "batch"}),
    "all gather": (lambda x: lax.all_gather(x, "batch") @ x, (X,), {"axis_name": "batch"}),
    "keys": (lambda key: jax.random.normal(key, (3,)), (KEYS,), {}),
    "a shared key": (
        lambda key, x: x + jax.random.normal(key, (3,)),
        (jax.random.key(0), X),
        {"in_axes": (None, 0)},
    ),
    "custom rule": (jax.nn.relu, (X,), {}),
    "jit in jit": (jax.jit(lambda x: jax.jit(jnp.sin)(x) + 1), (X,), {}),
    "checkpoint": (jax.checkpoint(lambda x: jnp.sin(x) ** 2), (X,), {}),
    "closure": (lambda x: x + jnp.arange(3.0), (X,), {}),
    "indices": (lambda x, i: x[i], (X, jnp.zeros(8, int)), {}),
    "update": (lambda x: x.at[0].set(1.0), (X,), {}),
    "sort": (jnp.sort, (X,), {}),
    "several results": (lambda x: lax.top_k(x, 2), (X,), {}),
    "effects": (lambda x: (jax.debug.print("{x}", x=x), x)[1], (X,), {}),
    "NumPy array": (lambda x: x * np.ones(3, np.float32), (np.ones((8, 3), np.float32),), {}),
    "placeholders": (jnp.sum, (jax.ShapeDtypeStruct((8, 3), jnp.bfloat16),), {}),
    "partial": (functools.partial(jnp.add, 1.0), (X,), {}),
    "identity": (lambda x: x, (X,), {}),
    "constant": (lambda x: 3.0, (X,), {}),
    "nothing": (lambda x: None, (X,), {}),
    "empty batch": (unit, (jnp.ones((0, 3)),), {}),
    "one example": (unit, (jnp.ones((1, 3)),), {}),
    "complex": (jnp.fft.fft, (X,), {}),
    "a name of HTML": (lambda x: x < 2, (X,), {}),
}


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_function_is_shown(name):
    function, arguments, options = ALL_KINDS[name]
    shown = viz.batch(function, *arguments, **options)
    listing, page = repr(shown), shown._repr_html_()
    assert listing.splitlines()[-1].startswith("returns ")
    assert page.count("<tr") == 1 + len(shown.recording.inputs) + len(shown.recording.steps)
    assert shown._repr_html_() == page == viz.batch(function, *arguments, **options)._repr_html_()


@pytest.mark.parametrize("name", ALL_KINDS)
def test_the_axes_are_those_of_vmap(name):
    """The results are as long, and have the types, that the mapped function's results have."""
    function, arguments, options = ALL_KINDS[name]
    recording = viz.batch(function, *arguments, **options).recording
    specs = jax.eval_shape(jax.vmap(function, **{"in_axes": 0} | options), *arguments)
    for value, spec in zip(recording.outputs, jax.tree.leaves(specs), strict=True):
        assert (recording.size, *value.shape) == spec.shape
        if value.axis is not None:
            rest = value.batched[: value.axis] + value.batched[value.axis + 1 :]
            assert rest == value.shape and value.batched[value.axis] == recording.size


@pytest.mark.parametrize("name", ["element by element", "shared matrix", "gradients", "sort", "update"])
def test_the_equations_are_those_of_vmap(name):
    """Put together, what the equations become is the record of the mapped function, but for its last transposition."""
    function, arguments, options = ALL_KINDS[name]
    recording = viz.batch(function, *arguments, **options).recording
    became = [text.partition(",")[0] for step in recording.steps for text in step.after]
    program = jax.make_jaxpr(jax.vmap(function, **{"in_axes": 0} | options))(*arguments)
    names = [e.primitive.name for _, e in jaxprs.walk(program) if e.primitive.name not in batch._INLINED]
    flat = [name for name in became if name not in batch._INLINED]
    moves = ("transpose", "broadcast_in_dim")
    assert [n for n in flat if n not in moves] == [n for n in names if n not in moves]


def test_what_is_shared_is_done_once():
    steps = viz.batch(lambda a, x: jnp.sin(a) * x, jnp.float32(1.0), X, in_axes=(None, 0)).recording.steps
    assert [step.shared for step in steps] == [True, False]
    assert steps[0].results[0].axis is None and steps[1].results[0].axis == 0


def test_sums_move_to_the_next_axis():
    listing = repr(viz.batch(unit, X))
    assert "reduce_sum b, axes (0,)" in listing and "reduce_sum, axes (1,)" in listing
    assert "broadcast_in_dim; div" in listing and "f32[8*,3]" in listing


def test_a_product_with_a_shared_matrix_stays_one_product():
    shown = viz.batch(jnp.dot, X, jnp.ones((3, 2)), in_axes=(0, None)).recording.steps
    assert [step.after for step in shown] == [("dot_general, sums over (1,) (0,)",)]
    both = viz.batch(jnp.dot, X, jnp.ones((8, 3, 2))).recording.steps
    assert both[0].after[0] == "dot_general, sums over (1,) (1,), batch axes (0,) (0,)"


def test_long_functions_are_cut():
    def long(x):
        for _ in range(batch.MOST + 7):
            x = jnp.sin(x)
        return x

    shown = viz.batch(long, X)
    assert len(shown.recording.steps) == batch.MOST and shown.recording.left_out == 7
    assert "7 more equations" in repr(shown) and "7 more equations" in shown._repr_html_()


def test_errors_are_those_of_vmap():
    with pytest.raises(ValueError, match="axis 3"):
        viz.batch(unit, X, in_axes=3)
    with pytest.raises(ValueError, match="inconsistent sizes"):
        viz.batch(jnp.dot, X, jnp.ones((7, 3)))


def test_no_tracer_leaks_and_keys_are_not_used_up():
    key = jax.random.key(5)
    with jax.check_tracer_leaks(True), jax.debug_key_reuse(True):
        viz.batch(lambda key, x: x * jax.random.uniform(key), key, X, in_axes=(None, 0))
        jax.random.uniform(key)


def test_the_page_is_readable_without_scripts_and_escaped():
    page = viz.batch(lambda x: x < 2.0, X)._repr_html_()
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert 'role="group" aria-label="What vmap makes of &lt;lambda&gt;' in body
    assert "viz-later" not in body and "http" not in page
    assert '<b class="viz-batch-axis">8<span class="viz-unseen"> examples</span></b>' in body
    assert "NAME" not in page


def attend(query, keys, values):  # (3,), (5, 3), (5, n) -> (n,)
    weights = jnp.exp(keys @ query)
    return weights / jnp.sum(weights) @ values


# What is chosen from: a function, its arguments, the axes of the beginning, and how many combinations are legal.
TO_CHOOSE = {
    "attention": (attend, (X, jnp.ones((5, 3)), jnp.ones((5, 8))), (0, None, None), 2),
    "a product": (jnp.dot, (jnp.ones((3, 4)), jnp.ones((4, 3))), (0, None), 4),
    "a square": (lambda x, y: x + y, (jnp.ones((4, 4)), jnp.ones((4, 4))), (-1, 0), 8),
    "one argument": (jnp.sum, (X,), 0, 2),
    "a tree": (
        lambda p, x: x @ p["kernel"] + p["bias"],
        ({"kernel": jnp.ones((8, 3, 2)), "bias": jnp.ones((8, 2))}, X),
        (0, 0),
        3,
    ),
    "a scalar": (lambda x, rate: x * rate, (X, 0.5), (0, None), 2),
    "several results": (lambda x: (x, jnp.max(x)), (X,), (1,), 2),
    "keys": (lambda key, x: x + jax.random.normal(key, (3,)), (KEYS, X), (0, 0), 2),
    "nothing": (lambda x: None, (X,), 0, 2),
}


@pytest.mark.parametrize("name", TO_CHOOSE)
def test_each_choice_is_what_vmap_makes_of_it(browser, name):
    """Chosen on the page, each combination shows the shapes of ``jax.vmap``'s results, or that there are none."""
    function, arguments, axes, legal = TO_CHOOSE[name]
    figure = viz.batch(function, *arguments, in_axes=axes, choose=True)
    markup = figure._repr_html_()
    assert len(markup) < batch.LETTERS
    page = browser.open(markup)
    lists, said, found = page.locator("select"), page.locator(".viz-batch-said"), 0
    assert lists.count() == len(arguments)
    for choice in figure.choices.all:
        for argument, axis in enumerate(choice.axes):
            lists.nth(argument).select_option(str(axis))
        try:
            specs = jax.tree.leaves(jax.eval_shape(jax.vmap(function, in_axes=choice.axes), *arguments))
        except (TypeError, ValueError):
            assert said.inner_text().startswith("This does not work.") and choice.refused
            assert page.locator("table:visible").count() == 0 and page.locator(".viz-next").is_disabled()
            continue
        found += 1
        shapes = re.findall(r"\w+\[([\d,]*)\]", said.inner_text().partition(".")[2])
        assert [tuple(map(int, shape.split(","))) for shape in shapes] == [spec.shape for spec in specs]
        expected = viz.batch(function, *arguments, in_axes=choice.axes)
        assert page.locator("tbody tr").count() == len(expected.recording.inputs) + len(
            expected.recording.steps
        )
        assert f"over {expected.recording.size} examples" in page.locator(".viz-batch-title").inner_text()
        page.locator(".viz-range").fill(str(len(expected.recording.steps)))
        assert page.locator("tbody tr.viz-later").count() == 0
    assert found == legal and browser.errors == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_axes_are_chosen_on_the_page(browser):
    function, arguments, axes, _ = TO_CHOOSE["attention"]
    markup = viz.batch(function, *arguments, in_axes=axes, choose=True)._repr_html_()
    page = browser.open(markup * 2)
    first, second = (page.locator(".viz-batch").nth(index) for index in range(2))
    said, status = first.locator(".viz-batch-said"), first.locator(".viz-status")
    assert said.inner_text() == (
        "Example i takes query[i], all of keys and all of values. The result has the shape f32[8,8]."
    )
    first.locator(".viz-next").click()
    assert status.inner_text().startswith("Equation 1 of")
    values = first.get_by_label("in_axes of values")
    values.focus()
    page.keyboard.press("ArrowUp")  # its arrows are its own
    assert (
        values.input_value() == "1"
        and "all of keys and values[:, i]. The result has the shape f32[8]." in said.inner_text()
    )
    assert status.inner_text().startswith("The inputs, for one example and for the batch.")
    values.select_option("0")
    assert (
        "equally long, one entry for each example. Their lengths: 8 in query, 5 in values."
        in said.inner_text()
    )
    assert status.inner_text() == "There is no batched program for these axes."
    values.select_option("None")
    first.get_by_label("in_axes of query").select_option("1")
    assert "query of (8,), keys of (5, 3), values of (5, 8). TypeError: dot_general" in said.inner_text()
    first.get_by_label("in_axes of query").select_option("None")
    assert "work. No argument is mapped" in said.inner_text()
    first.get_by_label("in_axes of query").select_option("0")
    first.locator(".viz-range").focus()
    page.keyboard.press("End")
    assert first.locator(".viz-next").is_disabled() and first.locator("tbody tr.viz-later").count() == 0
    assert (
        second.locator(".viz-batch-said").inner_text().startswith("Example i takes query[i], all of keys and")
    )
    assert browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(":is(.viz-tune, .viz-bar, .viz-batch-said):visible").count() == 0
    assert (
        page.locator("tbody tr:visible").count() > 5
        and "over 8 examples" in page.locator(".viz-batch-title").inner_text()
    )


def test_what_cannot_be_chosen_from_is_refused():
    with pytest.raises(ValueError, match="one axis or None for each argument, got in_axes="):
        viz.batch(lambda x: x["a"], {"a": X}, in_axes=({"a": 0},), choose=True)
    with pytest.raises(ValueError, match="81 combinations of axes, more than 64"):
        viz.batch(lambda *xs: sum(xs), *[X] * 4, choose=True)

    def long(x, y):
        for _ in range(batch.MOST):
            x = jnp.sin(x) + y
        return x

    with pytest.raises(ValueError, match="kB, more than 60; choose for a smaller function"):
        viz.batch(long, jnp.ones((4, 4)), jnp.ones((4, 4)), choose=True)
