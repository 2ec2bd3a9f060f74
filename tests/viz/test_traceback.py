"""``viz.traceback`` on errors of all kinds, and the figure in a browser."""

import re
from xml.etree import ElementTree

import jax
import pytest

from mlax_tutorial import viz
from mlax_tutorial.inspection.failures import fails
from tests.inspection.test_failures import KINDS, MACHINE, fail, times_zero
from tests.settings import configured


@pytest.fixture(autouse=True)
def with_the_frames_of_jax():
    with configured(jax_traceback_filtering="tracebackhide"):
        yield


def well_formed(markup):
    return ElementTree.fromstring(re.sub(r"<style>.*?</style>", "", markup, flags=re.S))


@pytest.mark.parametrize("name", list(KINDS))
def test_all_kinds_of_errors(name, capfd):
    failure = fail(KINDS[name][0])
    figure = viz.traceback(failure)
    markup, text = figure._repr_html_(), repr(figure)
    root = well_formed(markup)
    words = "".join(root.itertext())
    for line in failure.message.splitlines():
        assert line in text and line.strip() in words.replace("③", "")
    assert failure.kind in root.get("aria-label") and failure.kind in text
    assert "<script" not in markup and not re.search(MACHINE, words), words
    marked = [row for row in root.iter("li") if "viz-traceback-last" in row.get("class", "")]
    assert len(marked) == 1 and failure.source in "".join(marked[0].itertext())
    own = [row for row in root.iter("li") if "viz-traceback-own" in row.get("class", "")]
    assert len(own) == len(failure.yours)
    folded = sum(len(list(part.iter("li"))) for part in root.iter("details"))
    assert folded + len(own) == len(failure.frames)
    assert len(markup) < 24 * 1024


def test_an_error_can_be_given_as_it_is():
    try:
        jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
    except TypeError as error:
        figure = viz.traceback(error)
    assert "frames inside JAX" in repr(figure) and "① begin here" in figure._repr_html_()
    assert "③" in figure._repr_html_() and "④" in figure._repr_html_()


def test_what_is_no_error_is_refused():
    for thing in ("text", None, fails(TypeError), ValueError):
        with pytest.raises(TypeError, match="an exception is asked for"):
            viz.traceback(thing)


def test_the_operation_before_a_transformation():
    with jax.debug_nans(True):
        failure = fail(lambda: jax.grad(times_zero)(1.0))
    figure = viz.traceback(failure)
    text, root = repr(figure), well_formed(figure._repr_html_())
    assert text.index("that failed from this one") < text.index("in times_zero, line")
    marked = [row for row in root.iter("li") if "viz-traceback-last" in row.get("class", "")]
    assert len(marked) == 1 and "times_zero" in "".join(marked[0].itertext())
    assert f"{len(failure.yours)} of them yours" in root.get("aria-label")


def test_text_is_escaped():
    markup = viz.traceback(ValueError("<script>alert('no')</script> & <b>"))._repr_html_()
    assert "<script" not in markup and "<b>" not in markup and "&amp;" in markup


def test_in_a_browser(browser):
    markup = viz.traceback(fail(KINDS["axis"][0]))._repr_html_()
    page = browser.open(markup, scripts=False)
    folded, summary = page.locator("details li").first, page.locator("summary").first
    assert not folded.is_visible()
    summary.click()
    assert folded.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    assert not folded.is_visible()
    box = page.locator(".viz-traceback").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
