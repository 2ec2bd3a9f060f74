"""``viz.convolution``: layers of all kinds, and the figure in a browser."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mlax_tutorial import nn, viz

SQUARE, LINE, RELU = (12, 10, 4), (15, 4), nn.F(jax.nn.relu)


class Own(nn.Layer):
    """A layer of the reader's: nine products."""

    def init(self, key, x):
        return {"kernel": jax.random.normal(key, (3, 3, x.shape[-1]))}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        height, width = x.shape[-3] - 2, x.shape[-2] - 2
        taps = [
            x[..., i : i + height, j : j + width, :] * trainables["kernel"][i, j]
            for i in range(3)
            for j in range(3)
        ]
        return sum(taps), non_trainables


class OneImage:
    """No batch axis, and no base class."""

    def init(self, key, x):
        return (), ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if x.ndim != 3:
            raise ValueError("one image, please")
        window = (2, 2, 1)
        return lax.reduce_window(x, -jnp.inf, lax.max, window, window, "VALID"), non_trainables


def diagonal(x):
    """Each output sees itself and the one down and to the right: no window of rows and columns."""
    return x + jnp.roll(x, (-1, -1), axis=(-3, -2))


# The model, the shape of x, the shape of the output, and the receptive field.
ALL_KINDS = {
    "a window": (nn.Conv(3, (3, 3)), SQUARE, (10, 8), (3, 3)),
    "SAME": (nn.Conv(3, (3, 3), padding="SAME"), SQUARE, (12, 10), (3, 3)),
    "strides": (nn.Conv(3, (3, 3), strides=2, padding="SAME"), SQUARE, (6, 5), (3, 3)),
    "not square": (nn.Conv(3, (5, 2), strides=(1, 2)), SQUARE, (8, 5), (5, 2)),
    "dilation": (nn.Conv(3, (3, 3), dilation=(2, 1)), SQUARE, (8, 8), (5, 3)),
    "groups": (nn.Conv(8, (3, 3), groups=4), SQUARE, (10, 8), (3, 3)),
    "depthwise": (nn.Conv(4, (3, 3), groups=4), SQUARE, (10, 8), (3, 3)),
    "gaps": (nn.Conv(3, (1, 1), strides=3), SQUARE, (4, 4), (1, 1)),
    "pointwise": (nn.Conv(3, (1, 1)), SQUARE, (12, 10), (1, 1)),
    "circular": (nn.Conv(3, (3, 3), padding="CIRCULAR"), SQUARE, (12, 10), (12, 10)),
    "a large rim": (nn.Conv(3, (3, 3), padding=3), SQUARE, (16, 14), (3, 3)),
    "a sequence": (nn.Conv(3, (5,)), LINE, (11,), (5,)),
    "causal": (nn.Conv(3, (3,), padding="CAUSAL", dilation=2), LINE, (15,), (5,)),
    "max pooling": (nn.MaxPool((2, 2)), SQUARE, (6, 5), (2, 2)),
    "overlapping": (nn.MaxPool((3, 3), strides=2, padding="SAME"), SQUARE, (6, 5), (3, 3)),
    "average": (nn.AvgPool((2, 5)), SQUARE, (6, 2), (2, 5)),
    "sums of a sequence": (nn.SumPool((4,)), LINE, (3,), (4,)),
    "transposed": (nn.ConvTranspose(2, (3, 3), strides=2), SQUARE, (25, 21), (2, 2)),
    "a series": (nn.Series(nn.Conv(4, (3, 3)), nn.Bias(), RELU, nn.Conv(4, (3, 3), strides=2)), SQUARE, (4, 3), (5, 5)),
    "series in series": (nn.Series(nn.Series(nn.Conv(4, (3,)), RELU), nn.MaxPool((2,)), nn.Conv(2, (3,))), LINE, (4,), (8,)),
    "normalization": (nn.Series(nn.Conv(4, (3, 3)), nn.BatchNorm(affine=True), RELU), SQUARE, (10, 8), (3, 3)),
    "layer norm": (nn.Series(nn.LayerNorm(), nn.Conv(4, (2, 2))), SQUARE, (11, 9), (2, 2)),
    "dropout": (nn.Series(nn.Dropout(0.5), nn.Conv(4, (3, 3))), SQUARE, (10, 8), (3, 3)),
    "with a head": (nn.Series(nn.Conv(4, (3, 3)), nn.Flatten(3), nn.Linear(10)), SQUARE, (10, 8), (3, 3)),
    "residual": (nn.Residual(nn.Conv(4, (3, 3), padding="SAME")), SQUARE, (12, 10), (3, 3)),
    "the reader's own": (Own(), SQUARE, (10, 8), (3, 3)),
    "without a batch": (OneImage(), SQUARE, (6, 5), (2, 2)),
    "a diagonal": (nn.F(diagonal), (5, 4, 1), (5, 4), (5, 4)),
    "everything": (nn.F(lambda x: x - x.mean(axis=(-3, -2), keepdims=True)), (6, 5, 2), (6, 5), (6, 5)),
    "flipped": (nn.F(lambda x: x[..., ::-1, :, :]), (6, 5, 2), (6, 5), (1, 1)),
    "a constant": (nn.F(lambda x: jnp.zeros_like(x)), (6, 5, 2), (6, 5), (0, 0)),
    "one place": (nn.Conv(2, (1, 1)), (1, 1, 3), (1, 1), (1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_layer_is_shown(name):
    model, shape, returned, field = ALL_KINDS[name]
    sight = viz.convolution(model, jnp.ones(shape))
    assert sight.stages[-1].returned == returned and sight.fields[-1] == field, str(sight)
    page = sight._repr_html_()
    assert page == sight._repr_html_() and len(page) < 100_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<svg") == 1 + len(sight.stages) and body.count("<tr>") == 1 + len(sight.stages)
    assert "nan" not in body.lower().replace("returns nan", "")
    middle = tuple(size // 2 for size in returned)
    ways = sight.sees(*middle)
    assert ways.shape == shape[:-1] and body.count("<rect") >= np.count_nonzero(ways)
    assert repr(sight).count("\n") == len(sight.stages) + bool(sight.rest)


def test_what_is_seen_is_what_a_gradient_says():
    model = nn.Series(nn.Conv(4, (3, 3), padding="SAME"), nn.Conv(2, (3, 2), strides=(2, 1), dilation=(1, 2)))
    x = jax.random.normal(jax.random.key(0), (9, 8, 1))
    variables = model.init(jax.random.key(1), x)
    sight = viz.convolution(model, x)
    for place in np.ndindex(*sight.stages[-1].returned):
        slope = jax.grad(lambda x: model.fwd(x, *variables)[0][place].sum())(x)  # noqa: B023
        np.testing.assert_array_equal(np.abs(slope[..., 0]) > 0, sight.sees(*place) > 0)


def test_ways_are_counted():
    ways = viz.convolution(nn.Series(nn.Conv(1, (3,)), nn.Conv(1, (3,))), jnp.ones((7, 1))).sees(1)
    np.testing.assert_array_equal(ways, [0, 1, 2, 3, 2, 1, 0])


def test_channels_first_and_other_kinds_of_x():
    layer = nn.Conv(8, (3, 5), groups=2, input_spec="CHW")
    sight = viz.convolution(layer, jax.ShapeDtypeStruct((4, 9, 7), jnp.float32), channel_axis=-3)
    assert sight.stages[0].returned == (7, 3) and sight.stages[0].channels == (4, 8)
    assert sight.fields == [(3, 5)] and sight.stages[0].groups == 2
    batch = viz.convolution(nn.Conv(8, (3, 3)), jnp.ones((5, 9, 7, 2), jnp.bfloat16))
    assert batch.fields == [(3, 3)]
    assert viz.convolution(nn.Conv(8, (3,)), np.ones((9, 2), np.float32)).fields == [(3,)]


def test_groups_are_found():
    groups = {
        name: viz.convolution(ALL_KINDS[name][0], jnp.ones(SQUARE)).stages[0].groups
        for name in ("a window", "groups", "depthwise", "max pooling")
    }
    assert groups == {"a window": 1, "groups": 4, "depthwise": 4, "max pooling": 4}
    assert "1 of 4" in viz.convolution(nn.MaxPool((2, 2)), jnp.ones(SQUARE))._repr_html_()


def test_a_listing():
    model = nn.Series(nn.Conv(4, (3,)), RELU, nn.MaxPool((2,)), nn.Flatten(2))
    assert str(viz.convolution(model, jnp.ones((9, 2)))) == (
        "Series on 9 x 2: an output sees up to 4\n"
        "  Conv(4, (3,))  7 x 4  window 3  field 3\n"
        "  MaxPool((2,))  3 x 4  window 2  field 4  1 of 4\n"
        "  not shown: Flatten(2)"
    ) or "Series(" in str(viz.convolution(model, jnp.ones((9, 2))))


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (lambda: viz.convolution(jnp.tanh, jnp.ones((3, 3, 1))), TypeError, "a layer with init and fwd"),
        (lambda: viz.convolution(nn.Conv, jnp.ones((3, 3, 1))), TypeError, "a layer with init and fwd"),
        (lambda: viz.convolution(nn.Conv(1, (3,)), (9, 1)), ValueError, "an array of floats"),
        (lambda: viz.convolution(nn.Conv(1, (3,)), jnp.ones((9, 1), int)), ValueError, "an array of floats"),
        (lambda: viz.convolution(nn.Conv(1, (3,)), jnp.ones(9)), ValueError, "one example"),
        (
            lambda: viz.convolution(nn.Conv(1, (3,)), jnp.ones((9, 1)), channel_axis=1),
            ValueError,
            "one example",
        ),
        (lambda: viz.convolution(nn.Conv(1, (3, 3)), jnp.ones((99, 99, 1))), ValueError, "smaller one"),
        (lambda: viz.convolution(nn.Linear(3), jnp.ones((0, 3))), ValueError, "from 1 to 4,096"),
        (lambda: viz.convolution(nn.Flatten(2), jnp.ones((9, 1))), ValueError, "returns no places"),
        (lambda: viz.convolution(nn.F(lambda x: x / 0), jnp.ones((9, 1))), ValueError, "ordinary numbers"),
        (lambda: viz.convolution(nn.Conv(1, (3,)), jnp.ones((9, 1))).sees(7), ValueError, "got the place"),
        (lambda: viz.convolution(nn.Conv(1, (30,)), jnp.ones((9, 1))), nn.LayerError, "does not fit"),
        (lambda: tuned(nn.Conv(1, (3,), padding="SAME"), jnp.ones((9, 1))), ValueError, "without padding"),
        (lambda: tuned(nn.Conv(1, (3, 2)), jnp.ones((9, 9, 1))), ValueError, "the same along each axis"),
        (lambda: tuned(nn.F(diagonal), jnp.ones((5, 4, 1))), ValueError, "without padding"),
        (
            lambda: tuned(nn.Series(nn.Conv(1, (3,)), nn.Conv(1, (3,))), jnp.ones((9, 1))),
            ValueError,
            "needs one layer",
        ),
        (
            lambda: tuned(nn.Conv(1, (3,)), jax.ShapeDtypeStruct((9, 1), jnp.float32)),
            ValueError,
            "the numbers of x",
        ),
        (lambda: tuned(nn.Conv(1, (3,)), jnp.full((9, 1), jnp.nan)), ValueError, "finite numbers"),
        (lambda: tuned(nn.Conv(1, (3, 3)), jnp.ones((33, 33, 1))), ValueError, "1,024 places"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def tuned(model, x):
    return viz.convolution(model, x, tune=True)


@pytest.mark.parametrize("shape", [(32, 32, 2), (9, 12, 1), (15, 3)])
def test_the_reader_sets_kernel_size_stride_and_dilation(browser, shape):
    """What the page computes is what JAX computes, to 1e-5, and what it shows follows from it."""
    axes, x = len(shape) - 1, jax.random.normal(jax.random.key(0), shape)
    model = nn.Conv(1, (2,) * axes, strides=3, dilation=2)
    figure = tuned(model, x)
    markup = figure._repr_html_()
    assert len(markup) < 60_000
    page = browser.open(markup)
    script = (
        Path(viz.__file__)
        .with_name("figures")
        .joinpath("convolution", "script.js")
        .read_text(encoding="utf-8")
    )
    slide = script[: script.index("function begin")]
    values = page.evaluate("JSON.parse(document.querySelector('.viz-convolution').dataset.figure).tune")
    sliders = [page.get_by_role("slider", name=name) for name in ("kernel size", "stride", "dilation")]
    status, grids = page.locator(".viz-status"), page.locator(".viz-convolution-grid svg")
    assert [slider.input_value() for slider in sliders] == ["2", "3", "2"]
    assert page.locator(".viz-convolution-grid p").last.inner_text().startswith("kernel 2")
    for setting in [(2, 3, 2), (3, 1, 1), (1, 4, 3), (7, 2, 1), (4, 1, 4), (2, 2, 4)]:
        size, stride, dilation = setting
        for slider, value in zip(sliders, setting):
            slider.fill(str(value))
        kernel = jnp.full((size,) * axes + (shape[-1], 1), 1 / (size**axes * shape[-1]))
        spatial = "HW"[2 - axes :]
        expected = lax.conv_general_dilated(
            x[None], kernel, (stride,) * axes, "VALID", rhs_dilation=(dilation,) * axes, precision="highest",
            dimension_numbers=(f"N{spatial}C", f"{spatial}IO", f"N{spatial}C"),
        )[0, ..., 0]  # fmt: skip
        rows_and_columns = [1, *shape[:-1]][-2:]
        found = page.evaluate(
            f"(all) => {{ {slide} return slide(...all) }}", [values, rows_and_columns, axes == 1, *setting]
        )
        assert found["shape"][2 - axes :] == list(expected.shape)
        np.testing.assert_allclose(np.array(found["values"], float), np.ravel(expected), atol=1e-5)
        said = page.locator(".viz-convolution-grid p").last.inner_text().split()
        if not expected.size:
            assert "there is no output" in status.inner_text() and not grids.last.is_visible()
            assert page.locator(".viz-next").is_disabled()
            continue
        assert said[said.index("output") + 1 :: 2] == [str(n) for n in expected.shape]
        assert grids.last.locator(".viz-convolution-values rect").count() == expected.size
        sight = viz.convolution(nn.Conv(1, (size,) * axes, strides=stride, dilation=dilation), x)
        for output in (0, expected.size - 1):
            page.locator(".viz-range").fill(str(output))
            ways = sight.sees(*np.unravel_index(output, expected.shape))
            assert grids.first.locator(".viz-convolution-on rect").count() == np.count_nonzero(ways)
            shown = float(status.inner_text().split("Their mean is ")[1])
            assert shown == pytest.approx(float(np.ravel(expected)[output]), rel=0.006, abs=1e-5)
        assert page.locator(".viz-next").is_disabled()  # the last one
        window = " x ".join([str(dilation * (size - 1) + 1)] * axes)
        assert page.locator("tbody td").first.inner_text() == window
    sliders[1].focus()  # its arrows are its own, not the figure's
    before = status.inner_text()
    page.keyboard.press("ArrowLeft")
    assert sliders[1].get_attribute("aria-valuetext") == "1" and status.inner_text() != before
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-tune:visible").count() == 0 and page.locator("svg rect").count() > 1


def test_in_a_browser(browser):
    model = nn.Series(nn.Conv(4, (3, 3), padding="SAME"), nn.MaxPool((2, 2)))
    figures = [
        viz.convolution(model, jnp.ones((8, 6, 1))),
        viz.convolution(nn.Conv(1, (3,), dilation=2), jnp.ones((9, 1))),
        viz.convolution(nn.F(diagonal), jnp.ones((4, 4, 1))),
    ]
    markup = "".join(figure._repr_html_() for figure in figures)
    page = browser.open(markup)
    first, line, other = (page.locator(".viz-convolution").nth(index) for index in range(3))
    status = first.locator(".viz-status")
    assert status.inner_text().startswith("The output at row 2, column 1 sees rows 3 to 6 and columns 1 to 4")
    assert "16 of 48 inputs" in status.inner_text()
    first.locator(".viz-range").fill("0")
    assert "rows 0 to 2 and columns 0 to 2: 9 of 48 inputs, 16 from the middle" in status.inner_text()
    assert first.locator("svg").nth(0).locator("rect").count() == 9
    assert first.locator("svg").nth(1).locator("rect").count() == 4
    first.locator(".viz-next").click()
    page.keyboard.press("ArrowRight")
    assert status.inner_text().startswith("The output at row 0, column 2")
    last = first.locator("svg").nth(2)
    last.scroll_into_view_if_needed()
    box = last.bounding_box()
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.9 * box["height"])
    assert status.inner_text().startswith("The output at row 3, column 1")
    ways = figures[0].sees(3, 1)
    assert first.locator("svg").nth(0).locator("rect").count() == np.count_nonzero(ways)
    line.locator(".viz-range").fill("1")
    assert (
        line.locator(".viz-status").inner_text() == "The output at place 1 sees places 1 to 5: 3 of 9 inputs"
    )
    other.locator(".viz-range").fill("0")
    assert "2 of 16 inputs" in other.locator(".viz-status").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
    assert page.locator("svg").nth(0).locator("rect").count() == 16
