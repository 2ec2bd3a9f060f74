"""``viz.trace`` on functions of all kinds, and the figure in a browser."""

import functools
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import viz
from mlax_tutorial.viz.figures.trace import record
from mlax_tutorial.viz.figures.trace.program import parse

OUTSIDE = np.arange(3, dtype=np.float32)


def plain(x):
    y = jnp.sin(x)
    z = y * 2.0
    return y + z


def scanned(x):
    def body(carry, _):
        carry = carry * 2.0
        return carry, jnp.sin(carry)

    carry, ys = jax.lax.scan(body, x, None, length=3)
    return carry + jnp.sum(ys)


def branched(x):
    return jax.lax.cond(x > 0, jnp.sin, jnp.cos, x)


def looped(x):
    return jax.lax.while_loop(lambda x: x < 100.0, lambda x: x * 2.0, x)


@jax.custom_jvp
def own_forward(x):
    return jnp.exp(x)


own_forward.defjvp(lambda primals, tangents: (own_forward(*primals), own_forward(*primals) * tangents[0]))


@jax.custom_vjp
def own_backward(x):
    return jnp.exp(x)


own_backward.defvjp(lambda x: (jnp.exp(x), x), lambda x, g: (g * jnp.exp(x),))


def with_own_forward(x):
    return own_forward(x) + 1.0


def with_own_backward(x):
    return jax.grad(own_backward)(x)


def trees(params, batch):
    hidden = jnp.tanh(batch["x"] @ params[0])
    return {"out": hidden @ params[1], "norm": jnp.sum(hidden**2)}


def raises(x):
    y = jnp.sin(x)
    if y > 0:
        return y
    return -y


def raises_in_shapes(x):
    y = x * 2.0
    return y @ jnp.ones(7)


def nested(x):
    return jax.jit(plain)(x) + 1.0


def encloses(x):
    return x + OUTSIDE


def prints(x):
    print("traced")
    return x * 2.0


def unused(x, y):
    jnp.exp(y)
    return x + 1.0


def keywords(x, *, scale=2.0, shift=0.0):
    return x * scale + shift


def draws(key):
    first, second = jax.random.split(key)
    return jax.random.normal(first) + jax.random.uniform(second)


def nothing(x):
    return x


def long(x):
    for _ in range(30):
        x = jnp.sin(x)
        x = x + 1.0
    return x


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@decorated
def wrapped(x):
    return jnp.cos(x)


def integers(n):
    return n // 2 + n % 3


class Model:
    def __call__(self, x):
        return jnp.tanh(x)

    def method(self, x):
        return jnp.sin(x)


unknown = {}
exec(compile("def no_source(x):\n    return x * 3.0\n", "<nowhere>", "exec"), {"jnp": jnp}, unknown)

F = jnp.float32(0.5)
V = jnp.arange(3.0)
KINDS = {
    "plain": (plain, (F,), 3),
    "scan": (scanned, (F,), 3),
    "cond": (branched, (F,), None),
    "while": (looped, (F,), 1),
    "custom_jvp": (with_own_forward, (F,), 2),
    "custom_vjp": (with_own_backward, (F,), None),
    "pytrees": (trees, ((jnp.ones((2, 4)), jnp.ones((4, 1))), {"x": jnp.ones((3, 2))}), None),
    "nested jit": (nested, (F,), 2),
    "jit": (jax.jit(plain), (F,), 3),
    "closure over an array": (encloses, (V,), None),
    "side effect": (prints, (F,), 1),
    "unused": (unused, (F, F), 2),
    "keywords": (functools.partial(keywords, shift=1.0), (F,), 2),
    "typed keys": (draws, (jax.random.key(0),), None),
    "no equations": (nothing, (F,), 0),
    "long": (long, (F,), 60),
    "decorated": (wrapped, (F,), 1),
    "integers": (integers, (jnp.int32(7),), None),
    "lambda": (lambda x: x * 2.0, (F,), 1),
    "no source": (unknown["no_source"], (F,), 1),
    "grad": (jax.grad(plain), (F,), None),
    "vmap": (jax.vmap(plain), (V,), 3),
    "callable object": (Model(), (F,), 1),
    "method": (Model().method, (F,), 1),
    "shapes alone": (plain, (jax.ShapeDtypeStruct((3,), jnp.float32),), 3),
}


@pytest.mark.parametrize(("function", "args", "count"), KINDS.values(), ids=list(KINDS))
def test_all_kinds_of_functions(function, args, count):
    recording = record(function, *args)
    reference = jax.make_jaxpr(function)(*args)
    if not isinstance(function, type(jax.jit(plain))):
        assert len(recording.equations) == len(reference.jaxpr.eqns)
    if count is not None:
        assert len(recording.equations) == count
    shown = [number for step in recording.steps for number in step.equations]
    assert shown == list(range(len(recording.equations))), "each equation belongs to one step, in order"
    assert all(step.line is None or 0 <= step.line < len(recording.source) for step in recording.steps)
    assert recording.error is None and recording.program is not None
    first, again = (viz.trace(function, *args) for _ in range(2))
    assert first._repr_html_() == again._repr_html_() and repr(first) == repr(again)
    assert "0x" not in first._repr_html_()
    if count is not None and count < 5:
        assert len(first._repr_html_()) < 15 * 1024


def lines_of(recording, equation):
    """The source line that an equation, found by its primitive, belongs to."""
    (number,) = [
        index for index, text in enumerate(recording.equations) if f" {equation}" in text.split("\n")[0]
    ]
    (line,) = [step.line for step in recording.steps if number in step.equations]
    return recording.source[line].strip()


def test_equations_stand_beside_the_line_that_made_them():
    recording = record(plain, F)
    assert [lines_of(recording, name) for name in ("sin", "mul", "add")] == [
        "y = jnp.sin(x)", "z = y * 2.0", "return y + z",
    ]  # fmt: skip
    recording = record(scanned, F)
    assert lines_of(recording, "scan") == "carry, ys = jax.lax.scan(body, x, None, length=3)"
    inner = {recording.source[step.line].strip() for step in recording.steps if step.inner}
    assert "carry = carry * 2.0" in inner


def test_lines_that_add_nothing_are_steps_too(capsys):
    recording = record(prints, F)
    (step,) = [step for step in recording.steps if "print" in recording.source[step.line]]
    assert step.equations == () and capsys.readouterr().out == "traced\n"


def test_a_python_loop_comes_round_again():
    recording = record(long, F)
    visits = [recording.source[step.line].strip() for step in recording.steps]
    assert visits.count("x = jnp.sin(x)") == 30


def steps_of(function, *args):
    """The executed lines, as (source line, names of the primitives that it adds)."""
    recording = record(function, *args)
    names = [text.split(" = ")[1].split()[0].split("[")[0] for text in recording.equations]
    return [
        (recording.source[step.line].strip(), [names[number] for number in step.equations])
        for step in recording.steps
    ]


def test_each_round_of_a_loop_has_its_own_equations():
    def loop(x):
        for _ in range(3):
            x = jnp.sin(x) * 2.0
        return x

    rounds = [added for line, added in steps_of(loop, F) if line.startswith("x =")]
    assert rounds == [["sin", "mul"]] * 3


def test_helpers_inside_are_gone_through_and_come_back():
    def calls(x):
        def helper(y):
            return jnp.sin(y)

        return helper(x) * helper(x)

    assert steps_of(calls, F)[1:] == [
        ("return helper(x) * helper(x)", []), ("return jnp.sin(y)", ["sin"]),
        ("return jnp.sin(y)", ["sin"]), ("return helper(x) * helper(x)", ["mul"]),
    ]  # fmt: skip


def test_a_gradient_goes_back_to_earlier_lines():
    lines = [line for line, added in steps_of(jax.grad(plain), F) if added]
    assert lines == ["y = jnp.sin(x)", "z = y * 2.0", "return y + z", "z = y * 2.0", "y = jnp.sin(x)"]


def test_what_is_computed_at_once_is_told_from_what_is_recorded():
    def known(x):
        with jax.ensure_compile_time_eval():
            two = jnp.log(2.0)
        return x / two

    recording = record(known, F)
    (step,) = [step for step in recording.steps if "jnp.log" in recording.source[step.line]]
    assert step.known and not step.inner and step.equations == ()


def fresh():
    """A function that JAX has not seen before."""

    def new(x):
        y = jnp.sin(x)
        return y * 2.0

    return new


INNER = {
    "jit": lambda function: jax.vmap(jax.jit(function)),
    "gradient of jit": lambda function: jax.vmap(jax.grad(jax.jit(function))),
    "checkpoint": lambda function: jax.checkpoint(function),
    "scan": lambda function: lambda x: jax.lax.scan(lambda x, _: (function(x), None), x, None, length=2)[0],
    "cond": lambda function: lambda x: jax.lax.cond(True, function, jnp.cos, x),
    "while": lambda function: lambda x: jax.lax.while_loop(lambda x: x.sum() < 9.0, function, x),
}


@pytest.mark.parametrize("transform", INNER.values(), ids=list(INNER))
def test_inner_traces_hold_no_marks(transform):
    function = fresh()
    recording = record(transform(function), V)
    assert recording.program is not None and "viz_trace_mark" not in "".join(recording.equations)
    assert "viz_trace_mark" not in str(jax.make_jaxpr(transform(function))(V)), "JAX keeps the marked trace"


def test_lines_inside_jit_are_inner():
    recording = record(jax.vmap(jax.jit(fresh())), V)
    assert [step.inner for step in recording.steps] == [True, True, False]
    assert "mul" in recording.equations[0]


@pytest.mark.parametrize(
    ("function", "args", "message", "recorded"),
    [
        (raises, (F,), "TracerBoolConversionError", ["sin", "gt"]),
        (raises_in_shapes, (V,), "TypeError", ["mul"]),
    ],
)
def test_a_function_that_raises_shows_how_far_it_came(function, args, message, recorded):
    with jax.checking_leaks():
        shown = viz.trace(function, *args)
    recording = shown.recording
    assert message in recording.error and recording.program is None
    assert [text.split(" = ")[1].split()[0] for text in recording.equations][: len(recorded)] == recorded
    assert "stopped: " + message in repr(shown) and "Tracing stopped" in shown._repr_html_()
    assert 'viz-trace-toggle"' not in shown._repr_html_()


def test_the_readers_text_is_escaped():
    def risky(x):
        return x * 1.0  # <script>alert("no")</script>

    markup = viz.trace(risky, F)._repr_html_()
    assert "<script>alert" not in markup and "&lt;script&gt;alert" in markup
    assert json.loads(re.search(r'data-figure="([^"]*)"', markup)[1].replace("&quot;", '"'))["error"] == ""


def test_the_program_drops_what_is_unused_and_fuses():
    recording = record(unused, V, V)
    text = " ".join((block.text + " ".join(block.fused)) for block in recording.program.blocks)
    assert "exponential" not in text and "add(" in text
    blocks = record(lambda x: jnp.sin(x) * 2.0 + jnp.cos(x), jnp.ones(1000)).program.blocks
    assert any(len(block.fused) >= 3 for block in blocks)


def test_a_program_is_read_from_its_text():
    text = """HloModule m
%f (p0: f32[3]) -> f32[3] {
  %p0 = f32[3]{0} parameter(0)
  ROOT %e = f32[3]{0} exponential(%p0), metadata={op_name="jit(f)/exp"}
}

ENTRY %main (x: f32[3]) -> (f32[3], s32[]) {
  %x = f32[3]{0} parameter(0)
  %c = s32[] constant(4)
  %g = f32[3]{0:T(128)} fusion(%x), kind=kLoop, calls=%f
  ROOT %t = (f32[3]{0}, s32[]) tuple(%g, %c)
}
"""
    blocks = parse(text)
    assert [block.text for block in blocks] == [
        "c = s32[] constant(4)", "g = f32[3] fusion(x)", "t = (f32[3], s32[]) tuple(g, c)",
    ]  # fmt: skip
    assert blocks[1].fused == ("e = f32[3] exponential(p0)",)


def test_a_tracer_of_others_is_put_back():
    import sys

    def other(*_):
        return None

    before = sys.gettrace()
    sys.settrace(other)
    try:
        record(raises, F)
        assert sys.gettrace() is other
    finally:
        sys.settrace(before)


def test_in_a_browser(browser):
    markup = viz.trace(plain, F)._repr_html_() * 2 + viz.trace(raises, F)._repr_html_()
    page = browser.open(markup)
    figure, second, third = (page.locator(".viz-trace").nth(index) for index in range(3))
    hidden = ".viz-trace-equations > .viz-later"
    assert figure.locator(hidden).count() == 3
    figure.locator(".viz-next").click()
    assert figure.locator(hidden).count() == 2 and second.locator(hidden).count() == 3
    assert "adds 1 equation" in figure.locator(".viz-status").inner_text()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("End")
    assert figure.locator(hidden).count() == 0 and figure.locator(".viz-next").is_disabled()
    figure.locator(".viz-previous").click()
    assert figure.locator(hidden).count() == 1
    figure.locator("input").fill("0")
    assert figure.locator(hidden).count() == 3
    assert not figure.locator(".viz-trace-program").is_visible()
    figure.locator(".viz-trace-toggle").click()
    assert figure.locator(".viz-trace-program").is_visible()
    assert not figure.locator(".viz-trace-panes").is_visible()
    third.locator("input").fill("3")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert browser.errors == []
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-trace-equations code").first.is_visible()
    assert not page.locator(".viz-bar").first.is_visible()
