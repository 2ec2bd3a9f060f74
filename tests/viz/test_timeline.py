"""``viz.timeline`` on loops of all kinds: what is counted, in which order, and how it is drawn. No time is asserted but its order."""

import functools
import re
import time
from xml.etree import ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim, training, viz

X = jnp.ones((8, 3))
double = jax.jit(lambda x: 2 * x)
donating = jax.jit(lambda state, x: ((state[0] + x, state[1] + 1), jnp.sum(x)), donate_argnums=0)


def loss(outputs, targets):
    return jnp.mean((outputs - targets) ** 2)


def train(optimizer, **options):
    """A loop over a step of the library."""
    model = nn.Series(nn.Linear(4), nn.Bias(), nn.Dropout(0.5), nn.Linear(1))
    step = training.make_step(model, loss)

    def loop(step, wait):
        trainables, rest = model.init(jax.random.key(0), X)
        state = training.State(trainables, rest, optimizer.init(trainables))
        for key in jax.random.split(jax.random.key(1), 4):
            state, value = step(optimizer, state, key, X, jnp.ones((8, 1)))
        wait(value)

    return loop, {"step": step, "wait": float}


def one(step):
    for _ in range(3):
        step(X)


def two(load, step):
    for _ in range(3):
        step(load(3))


def donates(step, wait):
    state = jnp.zeros(4), jnp.int32(0)
    for _ in range(5):
        state, value = step(state, jnp.ones(4))
        wait(value)


def by_keyword(*, step):
    step(x=X)


def any_functions(**functions):
    for function in functions.values():
        function(X)


def nested(outer, inner):
    for _ in range(2):
        outer(X)
        inner(X)


def transforms(step):
    jax.vmap(step)(X)
    jax.jit(step)(X)
    jax.grad(lambda x: jnp.sum(step(x)))(X)


def threads(first, second):
    first(X)
    second(X)


# loop, functions, names and numbers of calls, names of those with something on the device
KINDS = {
    "one function": (one, {"step": double}, {"step": 3}, {"step"}),
    "from the host": (two, {"load": np.ones, "step": double}, {"load": 3, "step": 3}, {"step"}),
    "from the device": (two, {"load": jnp.ones, "step": double}, {"load": 3, "step": 3}, {"load", "step"}),
    "a donated state": (donates, {"step": donating, "wait": float}, {"step": 5, "wait": 5}, {"step"}),
    "a step of the library": (*train(optim.SGD(0.1)), {"step": 4, "wait": 1}, {"step"}),
    "momentum": (*train(optim.Adam(1e-3)), {"step": 4, "wait": 1}, {"step"}),
    "an optimizer of Optax": (*train(optax.adam(1e-3)), {"step": 4, "wait": 1}, {"step"}),
    "waits by itself": (
        one,
        {"step": lambda x: jax.block_until_ready(double(x))},
        {"step": 3},
        {"step"},
    ),
    "eager": (one, {"step": jnp.sin}, {"step": 3}, {"step"}),
    "a tree": (one, {"step": lambda x: {"a": double(x), "b": None, "c": 3}}, {"step": 3}, {"step"}),
    "nothing comes back": (one, {"step": lambda x: None}, {"step": 3}, set()),
    "no arrays come back": (one, {"step": lambda x: ("text", 1.5, np.ones(2))}, {"step": 3}, set()),
    "typed keys": (one, {"step": lambda x: jax.random.split(jax.random.key(0))}, {"step": 3}, {"step"}),
    "an empty array": (one, {"step": lambda x: double(x[:0])}, {"step": 3}, {"step"}),
    "a partial": (one, {"step": functools.partial(jnp.add, 1)}, {"step": 3}, {"step"}),
    "a class": (one, {"step": list}, {"step": 3}, {"step"}),
    "keywords": (by_keyword, {"step": double.__wrapped__}, {"step": 1}, {"step"}),
    "five functions": (
        any_functions,
        dict.fromkeys("abcde", double),
        dict.fromkeys("abcde", 1),
        set("abcde"),
    ),
    "two, the same": (
        nested,
        {"outer": double, "inner": double},
        {"outer": 2, "inner": 2},
        {"outer", "inner"},
    ),
    "under transformations": (transforms, {"step": lambda x: 2 * x}, {"step": 3}, set()),
    "a scan": (
        one,
        {"step": jax.jit(lambda x: jax.lax.scan(lambda c, row: (c + row, c), x[0], x)[0])},
        {"step": 3},
        {"step"},
    ),
    "a callback": (one, {"step": jax.jit(lambda x: jax.debug.print("") or x.sum())}, {"step": 3}, {"step"}),
    "weak types": (one, {"step": lambda x: jnp.asarray(2.0) * 3}, {"step": 3}, {"step"}),
}


@pytest.mark.parametrize(("loop", "functions", "counts", "on_device"), KINDS.values(), ids=list(KINDS))
def test_all_kinds_of_loops(loop, functions, counts, on_device):
    figure = viz.timeline(loop, **functions)
    (run,) = figure.runs
    found = {name: sum(call.name == name for call in run.calls) for name in functions}
    assert found == counts
    assert {call.name for call in run.calls if call.ready is not None} == on_device
    in_order(run)
    markup = figure._repr_html_()
    well_formed(markup)
    assert markup == figure._repr_html_() and len(markup) < 40 * 1024
    for name in functions:
        assert name in repr(figure) and f"<code>{name}</code>" in markup


def in_order(run):
    assert run.calls[0].start == 0.0
    free = 0.0
    for call in run.calls:
        assert 0 <= call.start <= call.end <= run.seconds
        if call.ready is not None:
            assert (
                max(call.start, free) <= call.begun <= call.ready <= run.seconds
                or call.begun == call.ready <= free
            )
            free = max(free, call.ready)
    assert 0 <= run.device <= 1.0 + 1e-9


def well_formed(markup):
    bare = re.sub(r"<(style|script)>.*?</\1>", "", markup, flags=re.S)
    bare = re.sub(r"<input([^>]*)>", r"<input\1/>", bare).replace(" hidden>", ' hidden="">')
    return ElementTree.fromstring(f"<div>{bare}</div>")


@pytest.fixture
def sleep(monkeypatch):
    """A sleep that lasts no time: it only moves the clock."""
    clock, slept = time.perf_counter, []
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + sum(slept))
    return slept.append


def test_several_loops_share_a_scale(sleep):
    def slow(step, sleep):
        for _ in range(2):
            sleep(10_000)
            step(X)

    def fast(step, sleep):
        step(X)

    figure = viz.timeline({"slow": slow, "fast": fast}, step=double, sleep=sleep)
    assert figure["slow"].seconds > 20_000 > figure["fast"].seconds
    lanes = re.findall(r'aria-label="(slow|fast), host[^"]*">(.*?)</div>', figure._repr_html_())
    ends = {
        name: max(float(left) + float(width) for left, width in re.findall(r"left:(.*?)%;width:(.*?)%", bars))
        for name, bars in lanes
    }
    assert ends["slow"] > ends["fast"] and ends["slow"] <= 100.01


def test_waiting_stands_in_the_row_of_the_host(sleep):
    figure = viz.timeline(donates, step=donating, wait=lambda value: sleep(10_000))
    waits = [call for call in figure.runs[0].calls if call.name == "wait"]
    assert waits and all(call.end - call.start >= 10_000 and call.ready is None for call in waits)


def test_setting_up_is_left_out_and_the_first_run_is_not_shown(sleep):
    runs = []

    def loop(step):
        runs.append(sleep(10_000))
        step(X)

    figure = viz.timeline(loop, step=double)
    assert len(runs) == 2 and figure.runs[0].seconds < 10_000


def test_long_loops_are_cut_on_the_page():
    def loop(step):
        for _ in range(250):
            step(X)

    figure = viz.timeline(loop, step=lambda x: None)
    assert len(figure.runs[0].calls) == 250
    assert (
        figure._repr_html_().count('data-said="') == 200
        and "the first 200 of 250 calls" in figure._repr_html_()
    )


def test_guards_stay_as_they_were_and_a_reused_key_is_no_matter_here():
    def loop(step):
        key = jax.random.key(0)
        step(key)
        step(key)

    with jax.debug_key_reuse(True):
        viz.timeline(loop, step=jax.jit(jax.random.uniform))
        assert jax.config.jax_debug_key_reuse


def test_an_error_of_the_loop_comes_through():
    def loop(step):
        step(X)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        viz.timeline(loop, step=double)


@pytest.mark.parametrize(
    ("loop", "functions", "said"),
    [
        (one, {}, "name one to 5 functions"),
        (
            any_functions,
            dict.fromkeys("abcdef", double),
            "name one to 5 functions of the loop, step=…, got 6",
        ),
        (one, {"step": 3}, "step must be a function, got int"),
        (one, {"walk": double}, r"the loop one takes \(step\), but the functions are walk"),
        (one, {"step": double, "load": double}, "the loop one takes"),
        (lambda step: None, {"step": double}, "called none of step"),
        (7, {"step": double}, "must be a function that runs a loop, got int"),
    ],
)
def test_what_is_refused(loop, functions, said):
    with pytest.raises(ValueError, match=f"^timeline: .*{said}"):
        viz.timeline(loop, **functions)


def test_names_are_escaped():
    figure = viz.timeline({"<b>&": one}, step=double)
    assert (
        "<b>&amp;" not in figure._repr_html_().replace("<b>&lt;b&gt;&amp;</b>", "")
        and "&lt;b&gt;&amp;" in figure._repr_html_()
    )
    well_formed(figure._repr_html_())


def test_in_a_browser(browser):
    figure = viz.timeline({"first": donates, "second": donates}, step=donating, wait=float)
    markup = figure._repr_html_()
    page = browser.open(markup)
    status, marked = page.locator(".viz-status"), page.locator("i.viz-now")
    assert "Step through the calls" in status.inner_text() and marked.count() == 0
    page.locator(".viz-next").focus()
    page.keyboard.press("ArrowRight")
    assert status.inner_text().startswith("first: step, call 1.") and marked.count() == 2
    page.keyboard.press("ArrowRight")
    assert "nothing to do" in status.inner_text() and marked.count() == 1
    page.keyboard.press("End")
    assert status.inner_text().startswith("second: wait, call 5.")
    lanes = [lane.bounding_box() for lane in page.locator(".viz-timeline-lane").all()]
    assert len(lanes) == 4 and all(box["width"] > 200 and box["height"] > 15 for box in lanes)
    bars = [bar.bounding_box() for bar in page.locator(".viz-timeline-lane").first.locator("i").all()]
    assert len(bars) == 10 and all(box["width"] >= 1 and box["x"] >= lanes[0]["x"] - 1 for box in bars)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator("tbody tr:visible").count() == 4 and page.locator(".viz-bar:visible").count() == 0
