"""What a reader can hand in, and what the report says about it."""

import asyncio
import contextlib
import functools
import io
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.checking.guarding import bare
from mlax_tutorial.checking.outcome import FAILED, NOT_ATTEMPTED, NOT_GRADED, PASSED
from mlax_tutorial.exercises import welcome

X = jnp.arange(1.0, 4.0)


def double(x):
    return 2 * x


def call(function):
    function(X)


def compare(function):
    checks.values(function, double, examples=[(X,)])


# Stubs


def dots(x): ...


def dots_and_comment(x):
    """Doubles."""
    ...  # your code


def passing(x):
    pass


def only_docstring(x):
    """Doubles."""


def not_implemented(x):
    raise NotImplementedError


def not_implemented_called(x):
    raise NotImplementedError()


def not_implemented_text(x):
    raise NotImplementedError("your code")


def returns_dots(x):
    return ...


def returns_none(x):
    return None


def gap_in_the_middle(x):
    y = 2 * x
    result = ...
    return result + y


def gap_at_the_end(x):
    y = 2 * x  # noqa: F841
    ...


def raises_later(x):
    if x.ndim == 1:
        raise NotImplementedError
    return x


def returns_dots_later(x):
    return ... if x.ndim == 1 else x


STUBS = [
    dots,
    dots_and_comment,
    passing,
    only_docstring,
    not_implemented,
    not_implemented_called,
    not_implemented_text,
    returns_dots,
    returns_none,
    gap_in_the_middle,
    gap_at_the_end,
    raises_later,
    returns_dots_later,
    jax.jit(dots),
    functools.partial(dots),
    lambda x: ...,
    ...,
]


@pytest.mark.parametrize("stub", STUBS, ids=lambda s: getattr(s, "__name__", type(s).__name__))
def test_stubs_are_not_attempted(grade, stub):
    outcome = grade(stub, call, solution=double)
    assert outcome.status == NOT_ATTEMPTED, str(outcome)
    assert "not attempted yet" in outcome.text


@pytest.mark.parametrize("answer", [..., {"a": ..., "b": ...}, [..., ...], (...,)])
def test_open_values_are_not_attempted(grade, answer):
    assert grade(answer, lambda given: None, solution={"a": 1}).status == NOT_ATTEMPTED


def test_an_answer_that_is_half_filled_is_an_attempt(grade):
    def check(given):
        checks.answers(given, {"a": 1, "b": 2, "c": 3})

    said = grade({"a": 1, "b": ..., "c": 3}, check, solution={"a": 1})
    assert said.status == FAILED and "No answer yet for `b`; the others are right." in said.text
    said = grade({"a": 5, "b": ..., "c": 3}, check, solution={"a": 1})
    assert said.status == FAILED and "`a` is not right yet" in said.text and "no answer yet" in said.text
    said = grade((1, ...), lambda given: None, solution=(1, 2))
    assert said.status == FAILED and "still `...`" in said.text


def ellipsis_as_index(x):
    y = x[..., 0:]
    return y * 2


def empty_but_for_a_call(x):
    return double(x)


@pytest.mark.parametrize(
    "answer", [ellipsis_as_index, empty_but_for_a_call, lambda x: x + x, jax.jit(double)]
)
def test_real_code_is_no_stub(grade, answer):
    assert grade(answer, compare, solution=double).status == PASSED


def test_code_without_source_is_graded(grade):
    scope = {}
    exec("def f(x): return 2 * x\ndef g(x): ...\ndef h(x):\n  'doc'\n  raise NotImplementedError", scope)
    assert grade(scope["f"], compare, solution=double).status == PASSED
    assert grade(scope["g"], compare, solution=double).status == NOT_ATTEMPTED
    assert grade(scope["h"], compare, solution=double).status == NOT_ATTEMPTED


# What is no function, or another one


class Double:
    def __init__(self, x):
        self.x = x


def generator(x):
    yield 2 * x


async def coroutine(x):
    return 2 * x


@pytest.mark.parametrize(
    "answer, says",
    [
        (Double, "class `Double`"),
        (generator, "generator"),
        (coroutine, "async"),
        (jnp.ones(3), "You gave a jax.Array, but a function is asked for"),
        ("double", "You gave a str"),
        (None, "You gave None"),
        (lambda: 1, "takes `()`, but the exercise calls it with `(x)`"),
        (lambda x, y: x, "takes `(x, y)`, but the exercise calls it with `(x)`"),
        (lambda *, x: x, "takes `(*, x)`"),
    ],
)
def test_what_cannot_be_called_is_told_at_once(grade, answer, says):
    outcome = grade(answer, call, solution=double)
    assert outcome.status == FAILED
    assert says in outcome.text, str(outcome)
    assert "your code" not in outcome.text


def test_the_coroutine_was_never_run():
    assert asyncio.iscoroutinefunction(coroutine) if sys.version_info < (3, 13) else True


def test_callable_objects_and_partials_are_functions(grade):
    class Doubler:
        def __call__(self, x):
            return 2 * x

        def method(self, x):
            return 2 * x

    for answer in (Doubler(), Doubler().method, functools.partial(jnp.multiply, 2), lambda x, n=2: n * x):
        assert grade(answer, compare, solution=double).status == PASSED


@pytest.mark.parametrize(
    "answer, says",
    [
        (lambda x: [2 * v for v in x], "returned a list"),
        (lambda x: (2 * x, 1), "returned a tuple"),
        (lambda x: print("lost"), "returned None: is a `return` missing?"),
        (lambda x: 2 * np.asarray(x), "returned a NumPy array"),
        (lambda x: np.float32(2), "returned a NumPy scalar"),
        (lambda x: 2.0, "returned a float"),
        (lambda x: "2", "returned a str"),
        (lambda x: object(), "returned an object"),
        (lambda x: double, "returned a function"),
        (lambda x: {"x": 2 * x}, "returned a dict"),
        (lambda x: jax.random.key(0), "a random key"),
        (lambda x: np.array([x, None], dtype=object), "returned a NumPy array"),
        (lambda x: np.array(["2", "4"]), "returned a NumPy array"),
    ],
)
def test_results_of_another_kind_are_named(grade, answer, says):
    outcome = grade(answer, compare, solution=double)
    assert outcome.status == FAILED
    assert says in outcome.text, str(outcome)


def test_a_donated_input_is_told():
    """A second use of the array fails in the check, but through no fault of the check."""
    outcome = welcome.double.grade(jax.jit(double, donate_argnums=0))
    assert outcome.status == FAILED and outcome.fault is None
    assert "donates its input" in outcome.text


# The reader's own errors


def helper(x):
    return x + undefined_name  # noqa: F821


def raising(x):
    y = helper(x)
    return y


def recursive(x):
    return recursive(x + 1)


def exiting(x):
    sys.exit("bye")


def wrong_shapes(x):
    return x @ jnp.ones(5)


def of_its_own(x):
    raise ValueError("this is mine")


def chained(x):
    try:
        helper(x)
    except NameError as error:
        raise KeyError("second") from error


@pytest.mark.parametrize(
    "answer, says, line",
    [
        (raising, "NameError: name 'undefined_name' is not defined", "return x + undefined_name"),
        (recursive, "RecursionError", "return recursive(x + 1)"),
        (exiting, "SystemExit", 'sys.exit("bye")'),
        (wrong_shapes, "(3,) and (5,)", "return x @ jnp.ones(5)"),
        (of_its_own, "ValueError: this is mine", 'raise ValueError("this is mine")'),
        (chained, "KeyError: 'second'", 'raise KeyError("second") from error'),
    ],
)
def test_the_readers_error_is_shown_as_theirs(grade, answer, says, line):
    outcome = grade(answer, call, solution=double)
    assert outcome.status == FAILED
    assert says in outcome.text and line in outcome.text, str(outcome)
    assert "Traceback" not in outcome.text and "site-packages" not in outcome.text
    shown = dict(outcome.shown)["your code"].splitlines()
    assert len(shown) <= 4 and all("checking" not in text for text in shown)


def test_the_way_to_the_error_is_shown(grade):
    first, second = dict(grade(raising, call, solution=double).shown)["your code"].splitlines()
    assert "in raising:  y = helper(x)" in first
    assert "in helper:  return x + undefined_name" in second


def test_the_way_begins_with_the_readers_code_where_a_check_calls_it_bare(grade):
    def noisy(key, size):
        return jax.random.normal(key, size) + jax.random.uniform(key, size)

    def solution(key, size):
        return jax.random.normal(key, size)

    def keys_of_one_argument(function):
        own = bare(function)
        checks.keys(lambda key: own(key, (3,)), jax.random.key(0))

    outcome = grade(noisy, keys_of_one_argument, solution=solution)
    assert outcome.status == FAILED and "used twice" in outcome.text, str(outcome)
    (line,) = dict(outcome.shown)["your code"].splitlines()
    assert "in noisy:  return jax.random.normal" in line


def test_an_error_under_a_transformation_says_so(grade):
    def branching(x):
        if x.sum() > 0:
            return 2 * x
        return x * 2

    outcome = grade(branching, lambda f: checks.works_under_jit(f, X), solution=double)
    assert "Under `jax.jit`: Your code raised TracerBoolConversionError" in outcome.text
    assert "asks for the value of a traced array" in outcome.text
    assert "if x.sum() > 0:" in outcome.text


def test_an_error_inside_hypothesis_is_theirs_too(grade):
    def fails_on_empty(x):
        return 2 * x + 0 * x[:1].reshape(())

    outcome = grade(fails_on_empty, lambda f: checks.values(f, double, inputs.arrays("n")), solution=double)
    assert outcome.status == FAILED
    assert "return 2 * x + 0 * x[:1].reshape(())" in outcome.text


def test_keyboard_interrupt_goes_through(grade):
    """Ctrl-C means the reader wants to stop, in a script and in *Run all*; and nothing is left behind."""

    def interrupted(x):
        raise KeyboardInterrupt

    stdout, precision = sys.stdout, jax.config.jax_default_matmul_precision
    with pytest.raises(KeyboardInterrupt):
        grade(interrupted, call, solution=double)
    assert sys.stdout is stdout and jax.config.jax_default_matmul_precision == precision
    assert grade(double, compare).status == PASSED


# What is printed


def test_prints_are_shown_apart():
    def double(x):
        print("x is", x.shape)
        print("to stderr", file=sys.stderr)
        jax.debug.print("traced {}", x.sum())
        return 2 * x

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        outcome = welcome.double.grade(double)
    assert outcome.passed and printed.getvalue() == ""
    assert outcome.printed.splitlines()[0] == "x is (3,)"
    assert "to stderr" in outcome.printed and "traced 6.0" in outcome.printed
    assert "Your code printed:\n  | x is (3,)" in outcome.text


def test_a_flood_of_prints_is_cut(grade):
    def flood(x):
        for i in range(100_000):
            print("line", i)
        return 2 * x

    outcome = grade(flood, compare, solution=double)
    assert outcome.passed
    assert outcome.printed.splitlines()[-1] == "... and 99988 more lines"
    assert len(outcome.printed) < 2_000


def test_a_long_line_is_cut(grade):
    def long_line(x):
        print("y" * 100_000)
        return 2 * x

    assert len(grade(long_line, compare, solution=double).printed) <= 2_000


# The frame of a check


def test_settings_are_fixed_and_put_back(grade):
    seen = {}

    def look(function):
        seen.update(
            precision=jax.config.jax_default_matmul_precision,
            reuse=jax.config.jax_debug_key_reuse,
            leaks=jax.config.jax_check_tracer_leaks,
            x64=jax.config.jax_enable_x64,
            promotion=jax.config.jax_numpy_dtype_promotion,
        )
        function(X)

    before = {name: jax.config.values[name] for name in ("jax_debug_key_reuse", "jax_enable_x64")}
    with jax.debug_key_reuse(True), jax.check_tracer_leaks(True), jax.numpy_dtype_promotion("strict"):
        grade(double, look)
        assert jax.config.jax_debug_key_reuse and jax.config.jax_check_tracer_leaks
    assert seen == dict(precision="highest", reuse=False, leaks=False, x64=False, promotion="standard")
    assert before == {name: jax.config.values[name] for name in before}


def test_a_check_that_breaks_is_not_the_readers_fault():
    def broken(function):
        raise ZeroDivisionError("in the check")

    exercise = Exercise(
        title="t", stars=1, minutes=1, why="w", hints=("a", "b"), solution=double, check=broken
    )
    outcome = exercise.grade(double)
    assert outcome.status == NOT_GRADED and isinstance(outcome.fault, ZeroDivisionError)
    assert "could not be graded" in outcome.text and "gap in the check" in outcome.text
    assert "Traceback" not in outcome.text


def test_a_missing_hypothesis_is_explained(monkeypatch):
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    outcome = welcome.double.grade(double)
    assert outcome.status == NOT_GRADED
    assert 'pip install "hypothesis' in outcome.text


def test_failed_shows_the_difference(grade):
    def check(function):
        raise Failed(
            "Not so.", input={"x": X, "n": 2}, expected=jnp.array([1.0, 2, 3]), got=jnp.array([1.0, 5, 3])
        )

    text = grade(double, check).text
    assert "x = [1. 2. 3.]  (float32, shape (3,))" in text and "n = 2" in text
    assert "differs   at [1]: expected 2., got 5." in text
    assert "[0]" not in text


# Hints, solutions, names


def test_hints_come_one_at_a_time(capsys):
    exercise, total = welcome.double, len(welcome.double.hints)
    exercise._hints_given = 0
    said = []
    for _ in range(total + 2):
        exercise.hint()
        said.append(capsys.readouterr().out)
    assert said[0].startswith(f"Hint 1 of {total}\n{exercise.hints[0]}") and "1 more hint" in said[0]
    assert "that was the last hint" in said[total - 1]
    assert all(hint in said[total] for hint in exercise.hints)
    assert said[total + 1] == said[0]


def test_the_solution_carries_the_name_of_the_exercise(capsys):
    welcome.double.solution()
    assert capsys.readouterr().out == "A solution of double\ndef double(x):\n    return 2 * x\n"


def test_name_and_chapter():
    assert (welcome.double.chapter, welcome.double.name) == ("welcome", "double")
    assert repr(welcome.double) == "<exercise welcome.double: Double every element>"
