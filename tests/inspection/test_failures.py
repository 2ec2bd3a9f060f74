"""`mlax_tutorial.inspection.failures`: errors of twenty kinds and more, read; and code that should fail and does not."""

import functools
import gc
import re
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import checkify

from mlax_tutorial.inspection import failures
from mlax_tutorial.inspection.failures import fails
from tests.settings import configured

X = jnp.arange(3.0)


def leak():
    kept = []
    with jax.check_tracer_leaks(False):
        jax.jit(lambda x: kept.append(x * 2.0))(1.0)
    return kept[0] + 1.0


def caught_leak():
    kept = []
    with jax.check_tracer_leaks(True):
        jax.jit(lambda x: kept.append(x * 3.0))(1.0)


def reuse():
    jax.clear_caches()  # what was compiled without the check is run without it
    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        return jax.random.normal(key) + jax.random.uniform(key)


def callback():
    def refuse(x):
        raise ValueError("not today")

    shape = jax.ShapeDtypeStruct((), jnp.float32)
    return jax.jit(lambda x: jax.pure_callback(refuse, shape, x))(1.0).block_until_ready()


def donated():
    x = jnp.ones(3)
    jax.jit(lambda x: x + 1.0, donate_argnums=0)(x)
    return x + 1.0


def checked():
    def check(x):
        checkify.check(x > 0, "{x} is not positive", x=x)

    error, _ = checkify.checkify(check)(jnp.float32(-1.0))
    error.throw()


def caused():
    try:
        {}["missing"]
    except KeyError as error:
        raise ValueError("one error from another") from error


WINDOWS = r"while tracing f at C:\Users\me\a.py:3 for jit"


def windows():
    raise ValueError(WINDOWS)


def deep(n):
    return deep(n - 1) if n else [][0]


class Method:
    @jax.jit
    def call(self, x):
        return x


# what fails, its class, a part of its message, the arguments that it hangs on
KINDS = {
    "bool": (lambda: jax.jit(lambda x: 1 if x > 0 else 2)(1.0), "TracerBoolConversionError", "boolean", ("x",)),
    "bool of two": (lambda: jax.jit(lambda a, b: 1 if a > b else 2)(1.0, 2.0), "TracerBoolConversionError", "for jit", ("a", "b")),
    "index": (lambda: jax.jit(lambda n: list(range(n)))(3), "TracerIntegerConversionError", "__index__", ("n",)),
    "float": (lambda: jax.jit(lambda x: float(x))(1.0), "ConcretizationTypeError", "`float`", ("x",)),
    "axis": (lambda: jax.jit(lambda x, a: x.min(a))(X, 0), "ConcretizationTypeError", "axis", ("a",)),
    "in a tree": (lambda: jax.jit(lambda p: bool(p["w"] > 0))({"w": 1.0}), "TracerBoolConversionError", "boolean", ("p['w']",)),
    "numpy": (lambda: jax.jit(lambda x: np.sin(x))(X), "TracerArrayConversionError", "__array__", ("x",)),
    "mask": (lambda: jax.jit(lambda x: x[x > 0])(X), "NonConcreteBooleanIndexError", "bool[3]", ()),
    "slice": (lambda: jax.jit(lambda x, i: x[i : i + 2])(X, 0), "IndexError", "static", None),
    "leak": (leak, "UnexpectedTracerError", "side effect", ()),
    "caught leak": (caught_leak, "Exception", "Leaked trace", None),
    "key": (reuse, "KeyReuseError", "consumed", ()),
    "memory": (lambda: jnp.zeros((10**7, 10**6)).block_until_ready(), "JaxRuntimeError", "RESOURCE_EXHAUSTED", ()),
    "callback": (callback, "JaxRuntimeError", "ValueError: not today", ()),
    "donated": (donated, "RuntimeError", "deleted", ()),
    "carry": (lambda: lax.scan(lambda c, x: (c + x, None), jnp.zeros(2), jnp.ones((4, 3, 2))), "TypeError", "float32[3,2]", ()),
    "sides": (lambda: lax.cond(True, lambda: 1.0, lambda: X), "TypeError", "equal output types", ()),
    "vmap": (lambda: jax.vmap(jnp.add)(jnp.ones(2), jnp.ones(3)), "ValueError", "inconsistent sizes", ()),
    "grad": (lambda: jax.grad(lambda x: x)(X), "TypeError", "scalar-output", ()),
    "shapes": (lambda: X + jnp.ones(4), "TypeError", "(3,), (4,)", ()),
    "unhashable": (lambda: jax.jit(lambda x, s: x, static_argnames="s")(1.0, s=[1]), "ValueError", "hashable", ()),
    "method": (lambda: Method().call(1.0), "TypeError", "abstract array", ()),
    "set": (lambda: X.__setitem__(0, 1.0), "TypeError", ".at[", ()),
    "checkify": (checked, "JaxRuntimeError", "not positive", ()),
    "Python": (lambda: 1 / 0, "ZeroDivisionError", "division by zero", ()),
    "NumPy's own": (lambda: np.ones(2) + np.ones(3), "ValueError", "broadcast", ()),
    "caused": (caused, "ValueError", "one error from another", ()),
    "deep": (lambda: deep(50), "IndexError", "list index out of range", ()),
    "no message": (lambda: (_ for _ in ()).throw(ValueError), "ValueError", "", ()),
    "Windows": (windows, "ValueError", "tracing f for jit", ()),
}  # fmt: skip
MACHINE = r"/tmp|/home|/root|Users|site-packages|0x[0-9a-f]{6}|\x1b|(?<!\d)[0-9]{15}(?!\d)"


def fail(function):
    try:
        function()
    except Exception as error:
        return failures.read(error)
    raise AssertionError("it did not fail")


@pytest.fixture(params=["off", "tracebackhide", "quiet_remove_frames", "remove_frames"])
def filtering(request):
    with configured(jax_traceback_filtering=request.param):
        yield request.param


@pytest.mark.parametrize(("function", "kind", "says", "arguments"), KINDS.values(), ids=list(KINDS))
def test_all_kinds_of_errors(function, kind, says, arguments, capfd):
    failure = fail(function)
    assert failure.kind == kind and says in failure.message
    if arguments is not None:
        assert failure.arguments == arguments
    text = f"{failure}\n{failure.message}"
    assert not re.search(MACHINE, text), text
    assert max(map(len, str(failure).splitlines())) <= failures.WIDTH
    assert all("/" not in frame.file or frame.owner != "yours" for frame in failure.frames)
    assert failure.yours and failure.yours[0].source == "function()"


@pytest.mark.parametrize("name", ["bool", "leak", "carry", "sides", "grad"])
def test_the_last_line_of_ones_own(name, filtering):
    failure = fail(KINDS[name][0])
    own = [frame for frame in failure.frames if frame.owner == "yours"]
    assert failure.source == own[-1].source and len(own) >= 2
    assert failure.kind == KINDS[name][1]
    if filtering in ("off", "tracebackhide"):
        assert "jax" in {frame.owner for frame in failure.frames}
        assert all(frame.file.startswith("jax") for frame in failure.frames if frame.owner == "jax")


def test_links():
    assert fail(KINDS["bool"][0]).link.endswith("#jax.errors.TracerBoolConversionError")
    assert "http" not in fail(KINDS["bool"][0]).message
    assert fail(KINDS["Python"][0]).link == ""


def test_parents():
    assert fail(KINDS["bool"][0]).parents == ("ConcretizationTypeError", "JAXTypeError", "TypeError")
    assert fail(KINDS["mask"][0]).parents == ("JAXIndexError", "IndexError", "LookupError")
    assert fail(KINDS["Python"][0]).parents == ("ArithmeticError",)


def test_a_private_class_counts_as_its_public_parent(monkeypatch, capsys):
    class Private(jax.errors.KeyReuseError):
        pass

    with fails(jax.errors.KeyReuseError) as failure:
        raise Private("below a public one")
    assert failure.kind == "KeyReuseError" and "Private" not in failure.parents
    assert capsys.readouterr().out.startswith("KeyReuseError in test_a_private")


def test_what_does_not_fail_is_a_failure():
    with pytest.raises(AssertionError, match="fail with TypeError, and did not fail"):
        with fails(TypeError):
            abs(-3)


@pytest.mark.parametrize("raised", [ValueError, jax.errors.KeyReuseError, Exception])
def test_another_error_is_a_failure(raised):
    with pytest.raises(AssertionError, match="fail with TypeError") as info:
        with fails(TypeError):
            raise raised("another")
    assert type(info.value.__cause__) is raised


def test_one_of_several(capsys):
    for kind in (ValueError, KeyError):
        with fails(ValueError, KeyError) as failure:
            raise kind("one")
        assert failure.kind == kind.__name__
    with pytest.raises(AssertionError, match="ValueError or KeyError"):
        with fails(ValueError, KeyError):
            pass
    with pytest.raises(TypeError, match="which error"):
        fails()


def test_an_interrupt_passes():
    with pytest.raises(KeyboardInterrupt):
        with fails(TypeError):
            raise KeyboardInterrupt


def test_what_is_printed(capsys):
    with fails(ValueError, lines=2):
        raise ValueError("one\ntwo\nthree")
    printed = capsys.readouterr().out
    line = re.search(r"line (\d+)", printed)[1]
    head = f"ValueError in test_what_is_printed, line {line}:\n    "
    assert printed == head + r'raise ValueError("one\ntwo\nthree")' + "\n  one\n  two\n  …\n"
    with fails(ZeroDivisionError):
        1 / 0  # noqa: B018
    assert ": 1 / 0  # noqa" in capsys.readouterr().out
    with fails(ValueError):
        raise ValueError("a line that is long, so long that it does not fit beside the class and the place")
    assert ":\n    raise ValueError(" in capsys.readouterr().out
    assert repr(fails(ValueError)) == "<no error yet>"


def test_nothing_is_kept_alive(capsys):
    class Thing:
        pass

    def function():
        thing = Thing()
        function.seen = weakref.ref(thing)
        raise ValueError("no")

    with fails(ValueError) as failure:
        function()
    gc.collect()
    assert function.seen() is None and failure.error.args == ("no",)


def test_every_public_class_has_a_name():
    assert {"KeyReuseError", "JaxRuntimeError", "TracerBoolConversionError"} <= set(failures.public())
    assert all(failures.name_of(kind) == name for name, kind in failures.public().items())


def test_partial_functions_and_classes_have_frames(capsys):
    class Model:
        def __call__(self, x):
            raise ValueError("in a call")

    with fails(ValueError) as failure:
        functools.partial(Model(), 1.0)()
    assert failure.yours[-1].function == "__call__"


# Errors in what a transformation made


def root_of_zero(x):
    doubled = 2.0 * x
    return jnp.sqrt(doubled)  # its derivative is infinite at 0 …


def times_zero(x):
    return root_of_zero(x * 0.0)  # … and is multiplied by 0 here


@pytest.fixture
def nans():
    with jax.debug_nans(True):
        yield


def test_a_nan_in_a_gradient_is_found_by_the_cause(nans, filtering):
    failure = fail(lambda: jax.grad(times_zero)(1.0))
    assert failure.source.startswith("return root_of_zero(x * 0.0)") and failure.before
    assert [frame.function for frame in failure.before if frame.owner == "yours"] == ["times_zero"]
    assert "in times_zero, line" in str(failure).splitlines()[0]
    assert "times_zero" not in [frame.function for frame in failure.frames]


def test_under_jit_the_cause_is_there_only_without_it(nans):
    gradient = jax.jit(jax.grad(times_zero))
    under_jit = fail(lambda: gradient(1.0))
    assert not under_jit.before and "times_zero" not in under_jit.source
    with jax.disable_jit():
        assert fail(lambda: gradient(1.0)).source.startswith("return root_of_zero(x * 0.0)")


def test_a_cause_that_leads_no_further_is_left_out(nans):
    failure = fail(lambda: jax.grad(jax.jit(times_zero))(1.0))
    assert failure.before == () and failure.source.startswith("failure = fail(lambda")


def test_an_error_in_a_derivative_rule_is_shown_in_the_rule():
    @jax.custom_vjp
    def tame(x):
        return x

    def backward(residual, cotangent):
        raise ValueError("in the rule")

    tame.defvjp(lambda x: (x, None), backward)
    failure = fail(lambda: jax.grad(lambda x: tame(jnp.sin(x)))(1.0))
    assert failure.source == 'raise ValueError("in the rule")' and failure.before == ()


def test_the_traceback_of_the_cause_is_let_go(nans):
    failure = fail(lambda: jax.grad(times_zero)(1.0))
    cause = failure.error.__cause__
    while cause is not None:
        assert cause.__traceback__ is None
        cause = cause.__cause__
