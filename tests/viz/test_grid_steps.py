"""``viz.grid_steps``: grids of all kinds, and the figure in a browser."""

import re

import jax
import jax.numpy as jnp
import pytest
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial import viz


def product(x, y, block=128, interpret=True):
    (m, k), n = x.shape, y.shape[1]

    def kernel(x_ref, y_ref, o_ref, total):
        total[...] = jnp.dot(x_ref[...], y_ref[...])
        o_ref[...] = total[...]

    return pl.pallas_call(
        kernel,
        out_shape=jax.ShapeDtypeStruct((m, n), x.dtype),
        grid=(m // block, n // block, k // block),
        in_specs=[
            pl.BlockSpec((block, block), lambda i, j, k: (i, k)),
            pl.BlockSpec((block, block), lambda i, j, k: (k, j)),
        ],
        out_specs=pl.BlockSpec((block, block), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((block, block), jnp.float32)],
        interpret=interpret,
    )(x, y)


def rows(x, grid=None, **options):
    def kernel(x_ref, y_ref):
        y_ref[...] = x_ref[...]

    block = pl.BlockSpec((8, 128), lambda i: (i, 0))
    grid = grid or (pl.cdiv(x.shape[0], 8),)
    return pl.pallas_call(kernel, out_shape=x, grid=grid, in_specs=[block], out_specs=block, **options)(x)


def shape(*sizes, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(sizes, dtype)


def test_a_product():
    shown = viz.grid_steps(product, shape(256, 512), shape(512, 384))
    assert shown.grid == (2, 3, 4) and len(shown.steps) == 24 and shown.kernel.endswith("kernel")
    x, y, result = shown.operands
    assert (x.name, y.name, result.name) == ("x_ref", "y_ref", "o_ref")
    assert x.blocks == (2, 4) and x.block == (128, 128) and x.seen[5] == (0, 1) and not x.output
    assert sum(x.copied) == sum(y.copied) == 24 and sum(result.copied) == 6 and result.output
    assert shown.moved == (24 + 24 + 6) * 128 * 128 * 4


def test_a_block_that_stays_is_not_copied():
    shown = viz.grid_steps(product, shape(256, 128), shape(128, 256), interpret=False)
    x, y, _ = shown.operands
    assert x.copied == (True, False, True, False) and sum(y.copied) == 4


def test_what_hangs_over_the_edge_is_not_moved():
    x, y = viz.grid_steps(rows, shape(20, 128, dtype=jnp.bfloat16)).operands
    assert [x.size(step) for step in range(3)] == [2048, 2048, 1024] and x.moved == y.moved == 20 * 128 * 2


def test_an_axis_that_is_dropped_and_no_grid():
    def kernel(x_ref, y_ref):
        y_ref[...] = x_ref[...]

    def call(x):
        block = pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))
        return pl.pallas_call(kernel, out_shape=x, grid=(3,), in_specs=[block], out_specs=block)(x)

    x, _ = viz.grid_steps(call, shape(3, 8, 128)).operands
    assert x.block == (1, 8, 128) and x.seen == ((0, 0, 0), (1, 0, 0), (2, 0, 0))
    alone = viz.grid_steps(lambda x: pl.pallas_call(kernel, out_shape=x)(x), shape(8, 128))
    assert alone.steps == [()] and alone.moved == 2 * 8 * 128 * 4


FIGURES = {
    "product": (product, shape(256, 256), shape(256, 256)),
    "rows": (rows, shape(20, 128)),
    "outside": (lambda x: rows(x, grid=(5,)), shape(16, 128)),
}


@pytest.mark.parametrize("name", FIGURES)
def test_the_page(name):
    figure = viz.grid_steps(*FIGURES[name])
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 100_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert body.count("<svg") == len(figure.operands) and body.count("<tr>") == 1 + len(figure.operands)
    assert len(repr(figure).splitlines()) == 1 + len(figure.operands)


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(ValueError, match="shows one kernel, and this function calls 0"):
        viz.grid_steps(jnp.sin, shape(8))
    with pytest.raises(ValueError, match="this function calls 2"):
        viz.grid_steps(lambda x: rows(rows(x)), shape(8, 128))
    with pytest.raises(ValueError, match="up to 512 steps, got 1000"):
        viz.grid_steps(rows, shape(8000, 128))
    with pytest.raises(ValueError, match="up to 512 blocks of an array, got 1000"):
        viz.grid_steps(lambda x: rows(x, grid=(4,)), shape(8000, 128))


def test_in_a_browser(browser):
    figure = viz.grid_steps(*FIGURES["product"])
    markup = figure._repr_html_() * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-grid-steps").nth(index) for index in range(2))
    status = first.locator(".viz-status")
    held, new = (first.locator(f".viz-grid-steps-{how}") for how in ("held", "new"))
    assert status.inner_text().startswith("All 8 steps") and held.count() == new.count() == 0
    first.locator(".viz-next").click()
    assert status.inner_text() == "1 of 8: (0, 0, 0), copied: x_ref, y_ref; 131 kB so far"
    assert held.count() == 1 and new.count() == 2
    page.keyboard.press("End")
    assert held.count() == 0 and new.count() == 3 and first.locator(".viz-next").is_disabled()
    assert second.locator(".viz-status").inner_text().startswith("All 8 steps")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0
