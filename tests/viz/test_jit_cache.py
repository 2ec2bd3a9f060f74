"""``viz.jit_cache``: the cache of functions of all kinds, and the page that shows it."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mlax_tutorial import viz
from mlax_tutorial.inspection import retracing

X = jnp.ones(3)
SPEC = jax.ShapeDtypeStruct((3,), jnp.float32)


class Model:
    def step(self, x):
        return x - 0.1 * x


def branches(x):
    return x if x > 0 else -x


# The function, the calls, options of jit, and what happens at each call: t traced, c from the cache, e raised.
ALL_KINDS = {
    "shapes": (jnp.sin, (X, 2 * X, jnp.ones(4), X), {}, "tctc"),
    "dtypes": (lambda x: 2 * x, (X, X.astype(jnp.bfloat16), X.astype(int), X), {}, "tttc"),
    "weak numbers": (lambda x: 2 * x, (1.0, 2.0, 1, True, jnp.float32(1)), {}, "tcttt"),
    "two arguments": (lambda x, y: x @ y, ((X, X), (X, 2 * X)), {}, "tc"),
    "by name": (lambda x, y: x + y, ((X, X), {"x": X, "y": X}), {}, "tt"),
    "statics": (lambda x, n: x**n, ((X, 1), (X, 2), (X, 1)), {"static_argnames": "n"}, "ttc"),
    "a static list": (lambda x, n: x, ((X, [1]), (X, (1,))), {"static_argnames": "n"}, "et"),
    "new lambdas": (lambda x, f: f(x), [(X, lambda x: x) for _ in range(3)], {"static_argnums": 1}, "ttt"),
    "trees": (lambda t: jax.tree.map(jnp.sin, t), ({"a": X}, [{"a": X}], [{"b": X}]), {}, "ett"),
    "no arguments": (lambda: 3.0, ((), ()), {}, "tc"),
    "jitted before": (jax.jit(lambda x: x + 1), (X, X), {}, "tc"),
    "a method": (Model().step, (X, 1.0), {}, "tt"),
    "a partial": (functools.partial(jnp.add, 1.0), (X, X), {}, "tc"),
    "grad": (jax.grad(lambda x: jnp.sum(x**2)), (X, jnp.ones(2)), {}, "tt"),
    "vmap": (jax.vmap(jnp.sin), (X, X), {}, "tc"),
    "scan": (lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x), (X, jnp.ones(5)), {}, "tt"),
    "keys": (jax.random.normal, (jax.random.key(0), jax.random.key(1)), {}, "tc"),
    "custom rule": (jax.nn.relu, (X, 1.0), {}, "tt"),
    "donated": (lambda x: x + 1, (X * 1, X * 2), {"donate_argnums": 0}, "tc"),
    "an error": (branches, (X, 1.0), {}, "ee"),
    "not an array": (lambda x: x, ("text", X), {}, "et"),
    "placeholders": (
        lambda x: x @ x,
        (SPEC, SPEC, jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)),
        {},
        "tct",
    ),
    "NumPy": (lambda x: x + 1, (np.ones(3), np.ones(3, np.float32), [1.0, 2.0]), {}, "tce"),
    "None": (lambda x: x, ((None,), (None,)), {}, "tc"),
    "a name of HTML": (lambda x, how: x < 2, ((X, "<b>"), (X, "&")), {"static_argnames": "how"}, "tt"),
    "one call": (jnp.cos, (X,), {}, "t"),
    "no calls": (lambda x: x, (), {}, ""),
    "many programs": (lambda x: x + 1, [jnp.ones(n) for n in range(1, 20)], {}, "t" * 19),
}


def shown(name):
    function, calls, options, _ = ALL_KINDS[name]
    jax.clear_caches()  # other tests may have traced the functions of JAX among them
    return viz.jit_cache(function, *calls, **options)


@pytest.mark.parametrize("name", ALL_KINDS)
def test_any_function_is_shown(name):
    figure = shown(name)
    watched, expected = figure.watched, ALL_KINDS[name][-1]
    letters = "".join("e" if call.error else "t" if call.traced else "c" for call in watched.calls)
    assert letters == expected, str(figure)
    page = figure._repr_html_()
    assert page.count("<tr") == 1 + len(watched.calls)
    assert page.count('<li data-made="') == len(watched.programs) == letters.count("t")
    assert page.count('class="viz-jit-cache-made"><svg') == letters.count("t") + 1  # one in the legend
    assert page.count('class="viz-jit-cache-found"><svg') == letters.count("c") + 1
    assert figure._repr_html_() == page
    assert repr(figure).splitlines()[0].endswith(f"{len(watched.calls)} calls, {watched.traces} traced")


@pytest.mark.parametrize("name", ["shapes", "statics", "new lambdas", "an error", "weak numbers"])
def test_the_page_is_the_same_in_each_run(name):
    pages = []
    for _ in range(2):
        jax.clear_caches()
        pages.append(shown(name)._repr_html_())
    assert pages[0] == pages[1] and " at 0x" not in pages[0]


def test_a_watched_function_goes_on():
    watched = retracing.watch(lambda x: x + 1)
    watched(X)
    figure = viz.jit_cache(watched, jnp.ones(4))
    assert figure.watched is watched and len(watched.calls) == 2
    assert "x: f32[3] → f32[4], another shape" in figure._repr_html_()


def test_columns_live_from_their_trace_on():
    page = viz.jit_cache(lambda x: x + 1, X, jnp.ones(4), X)._repr_html_()
    rows = re.findall(r"<tr data-program.*?</tr>", page)
    kinds = [re.findall(r'<td class="viz-jit-cache-cell ?(\S*?)">', row) for row in rows]
    assert kinds == [
        ["viz-jit-cache-born", ""],
        ["viz-jit-cache-there", "viz-jit-cache-born"],
        ["viz-jit-cache-there"] * 2,
    ]


def test_another_device_is_a_full_dot_without_a_trace():
    figure = viz.jit_cache(lambda x: x + 1, X, jax.device_put(X, jax.devices()[0]))
    assert figure.watched.traces == 1 and len(figure.watched.programs) == 1
    page = figure._repr_html_()
    assert "Not traced, but compiled anew: x is bound to cpu:0" in page


def test_the_page_is_readable_without_scripts_and_escaped():
    page = shown("a name of HTML")._repr_html_()
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert "viz-batching-later" not in body and "http" not in page and "NAME" not in page
    assert "how=&lt;b&gt;" in body and "<b>," not in body
    assert 'role="group" aria-label="The cache of &lt;lambda&gt;, call by call"' in body
    assert "traced: program 1" in body and "found: program" in shown("shapes")._repr_html_()
    assert "Traced and compiled: the first call." in body


def test_in_a_browser(browser):
    figure = viz.jit_cache(lambda x: x + 1, X, jnp.ones(4), X, "text")._repr_html_()
    markup = figure * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-jit-cache").nth(index) for index in range(2))
    status = first.locator(".viz-status")
    rows, programs = first.locator("tbody tr:visible"), first.locator(".viz-jit-cache-entries li")
    uses = programs.nth(0).locator(".viz-jit-cache-uses")
    assert (
        status.inner_text()
        == "Call 1 of 4. Traced and compiled: the first call. Press ▶, and watch for the next filled dot."
    )
    assert first.locator("tbody tr.viz-later").count() == 3 and uses.inner_text() == "1 call"
    first.locator(".viz-next").click()
    assert "f32[3] → f32[4], another shape" in status.inner_text()
    page.keyboard.press("ArrowRight")
    assert "from the cache" in status.inner_text() and uses.inner_text() == "2 calls"
    assert "viz-jit-cache-at" in programs.nth(0).get_attribute("class")
    page.keyboard.press("End")
    assert "It raised TypeError" in status.inner_text() and rows.count() == 4
    assert first.locator(".viz-next").is_disabled()
    first.locator("input").fill("0")
    assert status.inner_text() == "Before the first call the cache is empty."
    assert first.locator("li.viz-later").count() == 2
    assert second.locator(".viz-status").inner_text().startswith("Call 1 of 4")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator("tbody tr:visible").count() == 8
    assert page.locator(".viz-bar:visible").count() == 0


def test_unknown_options_are_refused():
    with pytest.raises(TypeError):
        viz.jit_cache(lambda x: x, X, no_such_option=1)


def blur(x, rounds, scale=1.0):
    for _ in range(rounds):
        x = 0.5 * (x + jnp.roll(x, 1))
    return scale * x


def grown(x, y):
    return y if x is None else x @ x + y


# What is chosen of: a function, its calls, the name, options of jit, and how many shapes there are.
TO_CHOOSE = {
    "blur": (blur, ((X, 1), (jnp.ones(4), 1), (X, 2), (X, 2, 3.0), (X, 1)), "x", {"static_argnames": "rounds"}, 3),
    "by name": (blur, ({"x": X, "rounds": 2}, {"x": X, "rounds": 1}), "x", {"static_argnames": "rounds"}, 2),
    "a second argument": (lambda x, y: x + y, ((X, 1.0), (X, jnp.ones(3))), "y", {}, 2),
    "some raise": (grown, ((jnp.ones((2, 2)), 1.0), (None, 1.0), (X, 1.0)), "x", {}, 3),
    "one call": (lambda x: 2 * x, (2.0,), "x", {}, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", TO_CHOOSE)
def test_calls_on_the_page_are_those_of_jit(browser, name):
    """The page says of each call in a long series what ``jax.jit`` does: traced or found, and why."""
    function, calls, argument, options, shapes = TO_CHOOSE[name]
    jax.clear_caches()
    figure = viz.jit_cache(function, *calls, choose=argument, **options)
    assert len(figure.choices.shapes) == shapes
    markup = figure._repr_html_()
    assert len(markup) < 60_000
    page = browser.open(markup)
    kind, shape, rows = page.locator("select").first, page.locator("select").last, page.locator("tbody tr")
    order = [
        i for i in np.random.default_rng(0).permutation(2 * len(figure.choices.all)) % len(figure.choices.all)
    ]
    for further in [figure.choices.all[i] for i in order]:
        kind.select_option(further.kind)
        shape.select_option(str(further.shape))
        page.get_by_role("button", name="call", exact=True).click()
        viz.jit_cache(figure.watched, _with(calls[-1], argument, figure.watched, further.value))
        call, row = figure.watched.calls[-1], rows.last
        assert row.locator("code").inner_text() == str(call.key)
        assert int(row.get_attribute("data-program")) == (-1 if call.program is None else call.program)
        said = row.locator(".viz-jit-cache-why").inner_text()
        if call.error:
            assert said == call.error
        else:
            assert said == ": ".join(
                [call.outcome, *(["; ".join(call.why).replace(" -> ", " → ")] * call.traced)]
            )
        assert page.locator(".viz-status").inner_text().startswith(f"Call {len(figure.watched.calls)} of ")
    programs = [
        re.findall(r", (\d+) equation", text)[0]
        for text in page.locator(".viz-jit-cache-entries li").all_inner_texts()
    ]
    assert [int(n) for n in programs] == [program.equations for program in figure.watched.programs]
    assert f"{len(programs)} program" in page.locator(".viz-jit-cache-title").inner_text()
    assert len({row.count("<td") for row in rows.evaluate_all("rows => rows.map(row => row.innerHTML)")}) == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []


def _with(call, name, watched, value):
    """The call with another value of one argument."""
    if isinstance(call, dict):
        return call | {name: value}
    args = call if isinstance(call, tuple) else (call,)
    names = list(retracing.positional_names(watched.function, len(args)))
    return tuple(value if each == name else argument for each, argument in zip(names, args, strict=True))


def test_what_is_found_out_beforehand_leaves_the_cache_alone():
    function = lambda x: x + 1  # noqa: E731
    figure = viz.jit_cache(function, X, choose="x")
    assert retracing.watch(function)(jnp.ones(4)) is not None and figure.watched.traces == 1
    with retracing.counted(function) as count:
        jax.jit(function)(jnp.zeros((), jnp.float16))
    assert count() == 1


def test_further_calls_are_made_on_the_page(browser):
    markup = viz.jit_cache(blur, (X, 1), choose="x", static_argnames="rounds")._repr_html_()
    page = browser.open(markup * 2)
    first, second = (page.locator(".viz-jit-cache").nth(index) for index in range(2))
    kind, shape = (first.get_by_label(name) for name in ("type of x", "shape"))
    call, status = first.get_by_role("button", name="call", exact=True), first.locator(".viz-status")
    kind.focus()
    page.keyboard.press("End")  # its arrows are its own
    assert kind.input_value() == "Python bool" and shape.input_value() == "()"
    kind.select_option("Python float")
    call.focus()
    page.keyboard.press("Enter")
    assert status.inner_text() == "Call 2 of 2. Traced and compiled: x: f32[3] → f32[] weak, another shape."
    page.keyboard.press("Enter")
    assert status.inner_text() == "Call 3 of 3. Taken from the cache."
    kind.select_option("jnp float32")
    assert shape.input_value() == "()"
    call.click()
    assert "x: f32[] weak → f32[], one of them is weakly typed" in status.inner_text()
    assert first.locator(".viz-jit-cache-title").inner_text() == "The cache of blur: 4 calls, 3 programs"
    page.keyboard.press("ArrowLeft")
    assert status.inner_text() == "Call 3 of 4. Taken from the cache."
    assert first.locator(".viz-jit-cache-entries li.viz-later").count() == 1
    first.get_by_role("button", name="start over").click()
    assert first.locator(".viz-jit-cache-title").inner_text() == "The cache of blur: 1 call, 1 program"
    assert first.locator("tbody tr").count() == first.locator(".viz-jit-cache-entries li").count() == 1
    call.click()
    assert "traced: program 2" in first.locator("tbody tr").last.inner_html()
    assert second.locator("tbody tr").count() == 1 and browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(":is(.viz-tune, .viz-bar):visible").count() == 0
    assert page.locator("tbody tr:visible").count() == 1


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: viz.jit_cache(blur, (X, 1), choose="z", static_argnames="rounds"),
            r"one of \['x'\]; got 'z'",
        ),
        (lambda: viz.jit_cache(blur, (X, 1), choose="rounds", static_argnames="rounds"), "got 'rounds'"),
        (lambda: viz.jit_cache(lambda t: t["a"], ({"a": X},), choose="t"), r"\[\"t\['a'\]\"\]; got 't'"),
        (lambda: viz.jit_cache(blur, choose="x"), "give a call to begin with"),
        (lambda: viz.jit_cache(branches, X, choose="x"), "the last of which does not raise"),
        (lambda: viz.jit_cache(jax.jit(blur), (X, 1), choose="x"), "give the function as it is"),
        (lambda: viz.jit_cache(retracing.watch(blur), (X, 1), choose="x"), "give the function as it is"),
    ],
)
def test_what_cannot_be_chosen_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        wrong()
