"""``viz.placement``: what it says agrees with JAX's own shardings, and the figure in a browser agrees with Python."""

import itertools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import viz

SIZES = {"data": 2, "model": 4}
SPECS = [
    (),
    ("data",),
    (None, "model"),
    ("data", "model"),
    (("model", "data"), None),
    (None, ("data", "model")),
]


@pytest.mark.parametrize("spec", SPECS, ids=map(str, SPECS))
def test_shards_are_those_of_jax(spec):
    found = viz.placement((8, 16), SIZES, spec, dtype="bfloat16")
    mesh = AbstractMesh(tuple(SIZES.values()), tuple(SIZES), axis_types=(AxisType.Auto,) * 2)
    assert found.shard == NamedSharding(mesh, P(*spec)).shard_shape((8, 16))
    assert found.bytes_per_device == 2 * np.prod(found.shard)
    assert sorted(itertools.chain(*found.held().values())) == list(range(8))
    page = found._repr_html_()
    assert page == found._repr_html_() and page.count("<rect") == np.prod(found.parts)


def mesh_of_two():
    return jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[:2])


@pytest.mark.parametrize("spec", [P(), P("data"), P(None, "data")])
def test_an_array_that_exists(spec):
    array = jax.device_put(jnp.arange(24.0).reshape(4, 6), NamedSharding(mesh_of_two(), spec))
    found = viz.placement(array)
    for part, devices in found.held().items():
        rows, columns = (slice(p * n, (p + 1) * n) for p, n in zip(part, found.shard))
        there = [shard for shard in array.addressable_shards if shard.device.id in devices]
        assert len(there) == len(devices)
        for shard in there:
            np.testing.assert_array_equal(shard.data, array[rows, columns])
            assert shard.data.nbytes == found.bytes_per_device


def test_one_device_and_other_numbers_of_axes():
    assert repr(viz.placement(jax.device_put(jnp.zeros((2, 3)), jax.devices()[1]))) == (
        "float32 (2, 3) over 1 device, P(None, None): it holds (2, 3), 24 B\npart (0, 0): device 1"
    )
    assert viz.placement((6,), {"a": 3}, ("a",)).shard == (2,)
    assert viz.placement((), {"a": 3}).held() == {(): [0, 1, 2]}
    deep = viz.placement((2, 4, 6), {"a": 2, "b": 3}, (None, "a", "b"))
    assert deep.shard == (2, 2, 2) and deep._repr_html_().count("<rect") == 2
    for shape in [(), (6,), (2, 4, 6)]:
        assert "viz-placement" in viz.placement(shape, {"a": 2})._repr_html_()


@pytest.mark.parametrize(
    "wrong, error, said",
    [
        (lambda: viz.placement((6, 8), SIZES, ("model",)), ValueError, "axis 0, of length 6, cannot be divided evenly into 4"),
        (lambda: viz.placement((8, 8), SIZES, ("rows",)), ValueError, "no axis 'rows'; it has data, model"),
        (lambda: viz.placement((8, 8), SIZES, ("data", "data")), ValueError, "used more than once"),
        (lambda: viz.placement((8,), SIZES, ("data", None)), ValueError, "a spec of 2 entries for an array of 1"),
        (lambda: viz.placement((8,), {"a": 128}), ValueError, "at most 64 devices, got 128"),
        (lambda: viz.placement(np.zeros(3)), TypeError, "needs a JAX array, or a shape"),
        (lambda: viz.placement(jnp.zeros(3), SIZES), TypeError, "of its own: give a shape"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(wrong, error, said):
    with pytest.raises(error, match=re.escape(said)):
        wrong()


DRAWN = """svg => [...svg.children].map(e => e.localName === "text" ? e.textContent
    : ["x", "y", "width", "height"].map(name => (+e.getAttribute(name)).toFixed(1)).join(" "))"""


def drawn(found):
    pieces = re.findall(
        r'<rect class="[^"]*" x="(.*?)" y="(.*?)" width="(.*?)" height="(.*?)"/>|<text[^>]*>(.*?)</text>',
        found._repr_html_(),
    )
    return [text or " ".join(numbers) for *numbers, text in pieces]


def test_in_a_browser(browser):
    pages = [viz.placement((8, 16), SIZES, ("data", "model")), viz.placement((6,), {"a": 2})]
    markup = "".join(page._repr_html_() for page in pages)
    page = browser.open(markup)
    first, second = (page.locator(".viz-placement").nth(index) for index in range(2))
    lists, status = first.locator("select"), first.locator(".viz-status")
    for spec in SPECS:
        entries = [*spec, *[None] * (2 - len(spec))]
        for axis, entry in enumerate(entries):
            lists.nth(axis).select_option(
                "" if entry is None else ",".join([entry] if isinstance(entry, str) else entry)
            )
        found = viz.placement((8, 16), SIZES, spec)
        shard = " × ".join(map(str, found.shard))
        assert f"each device holds {shard}, {found.bytes_per_device} B" in status.inner_text()
        # What the script draws is what Python drew.
        assert first.locator("svg").evaluate(DRAWN) == drawn(found)
    lists.nth(0).select_option("data,model")
    lists.nth(1).select_option("data")
    assert "is an error: data divides two axes" in status.inner_text()
    lists.nth(1).select_option("")
    assert "P(('data', 'model'), None): each device holds 1 × 16" in status.inner_text()
    second.locator("select").select_option("a")
    assert (
        second.locator(".viz-status").inner_text()
        == "P('a'): each device holds 3, 12 B; each part is on one device."
    )
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []


def test_names_are_dragged_onto_axes(browser):
    page = browser.open(viz.placement((8, 16), SIZES)._repr_html_())
    chips, lists = page.locator(".viz-placement-name"), page.locator("select")
    status = page.locator(".viz-status")

    def middle(place):
        place.scroll_into_view_if_needed()
        box = place.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(name, target):
        page.mouse.move(*middle(chips.filter(has_text=name)))
        page.mouse.down()
        page.mouse.move(*middle(target), steps=4)
        marked = page.locator(".viz-placement-under").count()
        page.mouse.up()
        return marked

    assert drag("data", lists.nth(0)) == 1
    assert status.inner_text().startswith("P('data', None): each device holds 4 × 16")
    drag("model", lists.nth(0))
    assert status.inner_text().startswith("P(('data', 'model'), None): each device holds 1 × 16")
    assert lists.nth(0).input_value() == "data,model"
    drag("data", lists.nth(1))
    assert status.inner_text().startswith("P('model', 'data'): each device holds 2 × 8")
    assert [lists.nth(i).input_value() for i in range(2)] == ["model", "data"]
    assert drag("model", page.locator("svg")) == 0
    assert status.inner_text().startswith("P(None, 'data'): each device holds 8 × 8")
    assert page.locator(".viz-placement-under").count() == 0
    # It lies again where it was.
    assert chips.evaluate_all("chips => chips.every(chip => chip.style.transform === '')")
    assert browser.errors == []
