"""Each check is seen to pass on a right answer, and to fail, with its reason, on a wrong one."""

import functools
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim
from mlax_tutorial.checking import Failed, checks, describe, inputs
from mlax_tutorial.optim.tunable import number

X = jnp.arange(1.0, 4.0)
KEY = jax.random.key(0)


def double(x):
    return 2 * x


def fails(grade, function, check, *says, solution=None):
    outcome = grade(function, check, solution=solution)
    assert outcome.status == "failed", str(outcome)
    for text in says:
        assert text in outcome.text, f"expected {text!r} in\n{outcome}"
    return outcome


def passes(grade, function, check, solution=None):
    outcome = grade(function, check, solution=solution)
    assert outcome.status == "passed", str(outcome)


# values


def test_values_on_examples(grade):
    check = functools.partial(checks.values, reference=double, examples=[(X,)])
    passes(grade, lambda x: x + x, check)
    fails(
        grade,
        lambda x: x**2,
        check,
        "x = [1. 2. 3.]",
        "expected  [2. 4. 6.]",
        "got       [1. 4. 9.]",
        "at [2]:",
    )
    fails(grade, lambda x: 2 * x[:, None], check, "The shape is wrong: expected (3,), got (3, 1).")
    fails(
        grade, lambda x: (2 * x).astype(jnp.bfloat16), check, "dtype is wrong: expected float32, got bfloat16"
    )
    fails(grade, lambda x: (2 * x).astype(int), check, "dtype is wrong: expected float32, got int32")
    fails(grade, lambda x: jnp.nan * x, check, "The result is wrong")


def test_values_that_look_alike_get_more_digits(grade):
    for wrong, right, *says in (
        (1e-6, 0.0, "expected  0.  (float32", "got       1.e-06  (float32"),
        (0.10000002, 0.1, "expected  0.1  (float32", "got       0.10000002  (float32"),
    ):
        fails(
            grade,
            lambda x, y=wrong: jnp.float32(y),
            lambda f, y=right: checks.same(f(X), jnp.float32(y), atol=0, rtol=0),
            *says,
        )
    fails(
        grade,
        lambda x: x + 1e-6,
        lambda f: checks.same(f(X), X, atol=0, rtol=0),
        "got       [1.000001 2.000001 3.000001]",
    )


def test_values_finds_and_shrinks(grade):
    def wrong_from_three_on(x):
        return jnp.where(x >= 3, x, 2 * x)

    outcome = fails(
        grade, wrong_from_three_on, lambda f: checks.values(f, double, inputs.arrays("n", high=8)), "x = [3"
    )
    assert "shape (1,)" in outcome.text, "one entry is enough to show it"
    assert (
        outcome.text
        == fails(
            grade, wrong_from_three_on, lambda f: checks.values(f, double, inputs.arrays("n", high=8))
        ).text
    ), "the same search finds the same"


def test_values_tries_the_nasty_sizes(grade):
    def fails_on_nothing(x):
        return 2 * x if x.size else jnp.zeros(1)

    def wrong_on_one(x):
        return 2 * x if x.size != 1 else x

    def check(f):
        checks.values(f, double, inputs.arrays("n"))

    fails(grade, fails_on_nothing, check, "expected (0,), got (1,)")
    fails(grade, wrong_on_one, check, "(float32, shape (1,))")
    passes(grade, double, check)


def test_values_with_special_values(grade):
    def check(f):
        checks.values(f, lambda x: jnp.nansum(x), inputs.arrays("n", special=(np.nan,)), count=30)

    passes(grade, lambda x: jnp.where(jnp.isnan(x), 0, x).sum(), check)
    fails(grade, lambda x: jnp.sum(x), check, "got       nan")


def test_recognising_does_not_call_the_answer_again(grade):
    calls = []

    def square(x):
        calls.append(x)
        return x**2

    recognise = [(lambda x: x + 1, "One more."), (lambda x: x**2, "This is the square.")]
    check = functools.partial(checks.values, reference=double, examples=[(X,)], recognise=recognise)
    fails(grade, square, check, "This is the square.")
    assert len(calls) == 1


def test_nothing_is_recognised_without_a_wrong_result(grade):
    """What fails before there is a result, on the first input or on a later one, is not what `wrong` does."""
    recognise = [(lambda x: x + x, "You add.")]

    def check(refused):
        def check(f):
            def careful(x):
                if x.size == refused:
                    raise Failed("This is refused.")
                return f(x)

            examples = [(X,), (X[:2],)]
            checks.values(careful, double, examples=examples, recognise=recognise)

        return check

    for size in (3, 2):
        outcome = fails(grade, double, check(size), "This is refused.")
        assert "You add." not in outcome.text


def test_a_number_in_a_tree_is_among_the_differences(grade):
    def check(f):
        checks.values(f, lambda x: {"loss": x.sum(), "twice": 2 * x}, examples=[(X,)])

    outcome = fails(grade, lambda x: {"loss": x.max(), "twice": 2 * x}, check, "['loss'] expected 6., got 3.")
    assert "['twice'] at" not in outcome.text


def test_values_recognises_only_what_agrees_everywhere(grade):
    recognise = [
        (lambda x: x**2, "You square."),
        (lambda x: x**3, "You cube."),
    ]

    def check(f):
        checks.values(f, double, inputs.arrays(3), examples=[(X,)], recognise=recognise)

    outcome = fails(grade, lambda x: x * x * x, check, "You cube.")
    assert "You square" not in outcome.text
    outcome = fails(grade, lambda x: jnp.where(x == 1, 1, x), check)  # agrees with both at 1 only
    assert "You cube" not in outcome.text and "You square" not in outcome.text


def test_values_of_trees(grade):
    def reference(x):
        return {"sum": x.sum(), "parts": (x, x + 1)}

    def check(f):
        checks.values(f, reference, examples=[(X,)])

    passes(grade, lambda x: {"parts": (x, 1 + x), "sum": jnp.sum(x)}, check, solution=reference)
    fails(
        grade, lambda x: {"sum": x.sum(), "parts": [x, x + 1]}, check, "another structure", solution=reference
    )
    fails(
        grade,
        lambda x: {"sum": x.sum(), "parts": (x, x)},
        check,
        "in the part ['parts'][1]",
        "['parts'][1] at [0]: expected 2., got 1.",
        solution=reference,
    )


def test_values_with_several_and_dependent_arguments(grade):
    def take(x, i):
        return x[i]

    def pair(draw):
        x = draw(inputs.arrays("n", sizes=(1, 3, 5)))
        return x, draw(inputs.integers(0, len(x) - 1))

    def check(f):
        checks.values(f, take, inputs.together(pair))
        checks.values(f, take, inputs.arrays(3), inputs.one_of(0, 2))
        checks.values(f, take, inputs.arrays(3), 1)

    passes(grade, lambda x, i: jnp.take(x, i), check, solution=take)
    fails(grade, lambda x, i: x[0], check, "i = ", "x = [", solution=take)


def test_right_answers_that_round_otherwise_pass(grade):
    """Sums in another order, products in another way: float32 differs in the last bits."""

    def reference(x):
        return jnp.sum(x**2) / 3 - jnp.mean(x) ** 2

    def backwards(x):
        return functools.reduce(jnp.add, [v * v / 3 for v in x[::-1]], 0.0) - (x.sum() / x.size) ** 2

    for scale in (1e-3, 1.0, 1e4):
        passes(
            grade,
            lambda x: backwards(x).astype(x.dtype),
            lambda f, scale=scale: checks.values(f, reference, examples=[(scale * jnp.sin(X * 7),)]),
            solution=reference,
        )


def test_a_small_error_is_an_error(grade):
    for scale in (1e-3, 1.0, 1e4):
        fails(
            grade,
            lambda x: 2.001 * x + 1e-4,
            lambda f, scale=scale: checks.values(f, double, examples=[(scale * X,)]),
            "is wrong",
        )


def test_nothing_is_left_in_the_folder(grade, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fails(grade, lambda x: x, lambda f: checks.values(f, double, inputs.arrays("n")))
    assert not [name for name in os.listdir(tmp_path) if name != "data"]


def test_random_inputs_do_not_depend_on_loaded_modules(grade, monkeypatch):
    """By itself, hypothesis collects constants from the source of all local modules that are loaded."""
    from hypothesis.internal.conjecture import providers

    collected = []

    def collect():
        collected.append(1)
        return providers.Constants()

    monkeypatch.setattr(providers, "_get_local_constants", collect)
    passes(grade, double, lambda f: checks.values(f, double, inputs.arrays("n"), count=50))
    assert not collected and providers._get_local_constants is collect


# inputs


def test_inputs_are_of_the_shape_and_dtype_asked_for():
    import hypothesis

    def draw(strategy):
        found = []
        settings = hypothesis.settings(max_examples=30, derandomize=True, database=None, deadline=None)
        settings(hypothesis.given(strategy)(lambda value: found.append(value)))()
        return found

    for x in draw(inputs.arrays("n", "m", "n", dtype="bfloat16", sizes=(1, 2))):
        assert isinstance(x, jax.Array) and x.dtype == jnp.bfloat16
        assert x.shape[0] == x.shape[2] and set(x.shape) <= {1, 2}
    assert {x.shape[0] for x in draw(inputs.arrays("n"))} == set(inputs.SIZES)
    for dtype in ("int32", "uint8", "bool", "float16", "complex64"):
        assert {str(x.dtype) for x in draw(inputs.arrays(3, dtype=dtype))} == {dtype}
    assert all((x >= 1).all() and (x <= 2).all() for x in draw(inputs.arrays(4, low=1, high=2)))
    assert all(describe.is_key(key) for key in draw(inputs.keys()))
    assert set(draw(inputs.integers(1, 3))) == {1, 2, 3} and set(draw(inputs.one_of("a", "b"))) == {"a", "b"}


# returns, refuses, equals, answers


def test_returns(grade):
    def check(f):
        checks.returns(f, X, shape=(3,), dtype=jnp.float32)

    passes(grade, double, check)
    fails(grade, lambda x: x[:2], check, "expected (3,), got (2,)")
    fails(grade, lambda x: x.astype(jnp.float16), check, "expected float32, got float16")
    fails(grade, lambda x: None if x.size else x, check, "is a `return` missing?")
    fails(grade, lambda x: np.asarray(x), check, "NumPy array")


def test_refuses(grade):
    def right(n):
        if n < 0:
            raise ValueError("n must not be negative")
        return n

    def raises(error):
        def refuse(n):
            raise error

        return refuse

    def check(f):
        checks.refuses(f, -1, error=ValueError, says="Negative")

    passes(grade, right, check)
    fails(grade, lambda n: n, check, "must refuse this input with `ValueError`", "n = -1")
    fails(grade, raises(TypeError("negative")), check, "Your code raised TypeError: negative")
    fails(
        grade, raises(ValueError("no")), check, "does not say `negative`" if False else "does not say", "no"
    )
    passes(grade, right, lambda f: checks.refuses(f, -1, error=(TypeError, ValueError)))


def test_equals(grade):
    why = {"float64": "That is NumPy's rule."}

    def check(given):
        checks.equals(given, "float32", why)

    passes(grade, "float32", check)
    passes(grade, jnp.float32, check, solution="float32")
    passes(grade, " Float32 ", check, solution="float32")
    outcome = fails(grade, "float64", check, "That is NumPy's rule.", solution="float32")
    assert "float32" not in outcome.text
    fails(grade, 3, check, "3 is not the answer", solution="float32")


def test_answers(grade):
    expected = {"a": "float32", "b": 3, "c": True}

    def check(given):
        checks.answers(given, expected, why={"b": {4: "One too many."}})

    passes(grade, dict(expected), check)
    outcome = fails(
        grade,
        {"a": "int32", "b": 4, "c": True},
        check,
        "2 of 3",
        "a  not 'int32'",
        "One too many.",
        solution=expected,
    )
    assert "float32" not in outcome.text
    passes(grade, {"a": jnp.float32, "b": np.int64(3), "c": np.bool_(True)}, check)
    passes(grade, {"a": np.dtype("float32"), "b": jnp.int32(3), "c": jnp.array(True)}, check)
    fails(grade, {**expected, "c": 1}, check, "`c` is not right yet", "`True` or `False`", solution=expected)
    fails(grade, {**expected, "c": np.bool_(False)}, check, "`c` is not right yet", solution=expected)
    for other, kind in (
        ("3", "a str"),
        (True, "a bool"),
        (None, "None"),
        ([3], "a list"),
        ([[1], [1, 2]], "a list"),
    ):
        fails(
            grade, {**expected, "b": other}, check, f"A number is asked for, not {kind}.", solution=expected
        )
    fails(grade, {**expected, "b": 3.5}, check, "`b` is not right yet", solution=expected)
    fails(grade, {"a": "float32"}, check, "No answer for `b`, `c`", solution=expected)
    fails(grade, {**expected, "d": 1}, check, "no question `d`", solution=expected)
    fails(grade, ["float32", 3, True], check, "a dict is asked for", solution=expected)


def test_answers_that_name_dtypes(grade, recwarn):
    expected = {"a": jnp.dtype("float32"), "b": jnp.dtype("bool"), "c": jnp.dtype("bfloat16")}

    def check(given):
        checks.answers(given, expected)

    passes(grade, {"a": np.float32, "b": bool, "c": jnp.bfloat16}, check)
    passes(grade, {"a": "jnp.Float32", "b": np.bool_, "c": "bfloat16"}, check, solution=expected)
    for other in (np.floating, np.inexact, np.generic, float, "float", dict, None, 32):
        fails(grade, {**expected, "a": other}, check, "with its width", solution=expected)
    fails(grade, {**expected, "a": np.float64}, check, "`a` is not right yet", solution=expected)
    assert not recwarn.list


# Transformations


def test_works_under_jit(grade):
    def check(f):
        checks.works_under_jit(f, X)

    def only_eager(x):
        return 2 * jnp.asarray(np.asarray(x))

    passes(grade, double, check)
    passes(grade, jax.jit(double), check)
    fails(grade, only_eager, check, "Under `jax.jit`", "TracerArrayConversionError", "given to NumPy")
    fails(grade, lambda x: x[x > 1], check, "NonConcreteBooleanIndexError", "use `jnp.where`")
    fails(grade, lambda x: x[: int(x[0])], check, "Under `jax.jit`", "int(x[0])")
    fails(grade, lambda x: ["no array", x], check, "`jax.jit` refuses your function")
    other = iter(range(100))
    fails(grade, lambda x: x + next(other), check, "under `jax.jit`")
    passes(
        grade,
        lambda x, n: x[:n],
        lambda f: checks.works_under_jit(f, X, 2, static_argnums=1),
    )


def test_works_under_vmap(grade):
    batch = jnp.arange(6.0).reshape(2, 3)

    def check(f):
        checks.works_under_vmap(f, batch)

    passes(grade, lambda x: x / x.sum(), check)
    fails(grade, lambda x: x if float(x.sum()) > 0 else -x, check, "Under `jax.vmap`", "float(x.sum())")
    looks = []
    fails(
        grade,
        lambda x: x + (looks.append(0) or 0.5 * len(looks)),
        check,
        "The result is wrong under `jax.vmap`",
    )
    passes(
        grade, lambda x, y: x @ y, lambda f: checks.works_under_vmap(f, batch, batch[0], in_axes=(0, None))
    )


def test_takes_batches(grade):
    batch = jnp.arange(1.0, 25.0).reshape(2, 4, 3)

    def check(f):
        checks.takes_batches(f, batch[0])
        checks.takes_batches(f, batch, axes=2)

    passes(grade, lambda x: x / x.sum(-1, keepdims=True), check)
    fails(grade, lambda x: x / x.sum(), check, "wrong for a leading batch axis")
    fails(grade, lambda x: x if x.ndim < 3 else x[0], check, "for 2 leading batch axes")
    passes(grade, lambda x, w: x @ w, lambda f: checks.takes_batches(f, batch, jnp.ones((3, 5)), axes=2))


def test_gradients(grade):
    def reference(x):
        return jnp.sin(x) * x

    def check(f):
        checks.gradients(f, reference, X)

    def by_differences(f):
        checks.gradients(f, None, X)

    @jax.custom_vjp
    def wrong_rule(x):
        return reference(x)

    wrong_rule.defvjp(lambda x: (reference(x), x), lambda x, ct: (ct * jnp.cos(x),))

    passes(grade, lambda x: x * jnp.sin(x), check)
    passes(grade, lambda x: x * jnp.sin(x), by_differences)
    for check_ in (check, by_differences):
        fails(grade, wrong_rule, check_, "gradient", "got", solution=reference)
        fails(grade, lambda x: jnp.sin(x) * jax.lax.stop_gradient(x), check_, "gradient")
    fails(grade, wrong_rule, by_differences, "a small step", "measured", solution=reference)
    fails(
        grade,
        lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0),
        lambda f: checks.gradients(f, None, jnp.array([1.0, -1.0])),
        "not finite",
    )
    fails(grade, lambda x: jnp.round(x).astype(int), check, "not floating")
    both = lambda f: checks.gradients(f, None, X, X, argnums=(0, 1))  # noqa: E731
    fails(
        grade, lambda x, small: x + 1e-3 * jax.lax.stop_gradient(small), both, "No gradient reaches `small`"
    )
    passes(grade, lambda x, small: x + 0 * small, both)
    passes(
        grade,
        lambda w, x: {"y": w["a"] * x + w["b"]},
        lambda f: checks.gradients(
            f, lambda w, x: {"y": x * w["a"] + w["b"]}, {"a": X, "b": 2.0}, X, argnums=(0, 1)
        ),
    )


# Traces


def test_traces(grade):
    calls = [(X,), (X + 1,), (X[:2],), (X,)]

    def twice(f):
        checks.traces(f, *calls, exactly=2)

    passes(grade, double, twice)
    passes(grade, jax.jit(double), twice)
    passes(grade, jax.jit(jax.jit(double)), twice)
    passes(grade, functools.partial(double), twice)
    passes(grade, double, lambda f: checks.traces(f, *calls, at_most=2))
    outcome = fails(
        grade,
        double,
        lambda f: checks.traces(f, *calls, exactly=1),
        "traced twice over 4 calls; it should be once",
    )
    assert dict(outcome.shown)["calls"].splitlines() == [
        "float32[3]: traced",
        "float32[3]: from the cache",
        "float32[2]: traced (x: f32[3] -> f32[2], another shape)",
        "float32[3]: from the cache",
    ]
    fails(grade, jax.jit(double), lambda f: checks.traces(f, *calls, at_most=1), "at most once")

    def anew_each_time(x):
        return jax.jit(lambda x: double(x))(x)

    passes(grade, anew_each_time, twice)  # its own body, not what it calls


def test_traces_are_counted_anew_in_each_check(grade):
    jitted = jax.jit(lambda x: 3 * x)
    jitted(X)
    for _ in range(3):
        passes(grade, jitted, lambda f: checks.traces(f, (X,), (X,), exactly=1))


def test_traces_with_static_arguments(grade):
    def repeat(x, n):
        return jnp.tile(x, n)

    calls = [(X, 2), (X, 3), (X, 2)]
    passes(grade, repeat, lambda f: checks.traces(f, *calls, exactly=2, static_argnums=1))
    jitted = functools.partial(jax.jit, static_argnames="n")(repeat)
    passes(grade, jitted, lambda f: checks.traces(f, *calls, exactly=2))


def test_counting_leaves_no_tool_behind(grade):
    import sys

    before = [sys.monitoring.get_tool(i) for i in range(6)]
    passes(grade, double, lambda f: checks.traces(f, (X,), exactly=1))
    assert [sys.monitoring.get_tool(i) for i in range(6)] == before


def test_is_jitted(grade):
    passes(grade, jax.jit(double), checks.is_jitted)
    fails(grade, double, checks.is_jitted, "put `@jax.jit` above it")


# Jaxprs


def test_jaxpr(grade):
    def product(x, y):
        return jnp.tanh(x @ y)

    def twice(x, y):
        return jnp.tanh(x @ y) + x @ y

    shape = jax.ShapeDtypeStruct((3, 3), jnp.float32)

    def check(**options):
        return lambda f: checks.jaxpr(f, shape, shape, **options)

    passes(
        grade,
        product,
        check(requires=("dot_general", ("sin", "tanh")), forbids=("while", "scan"), equations=2),
    )
    passes(grade, product, check(counts={"dot_general": 1, "sin": 0}, at_most={"tanh": 1}))
    passes(grade, jax.jit(product), check(counts={"dot_general": 1}, equations=2))
    fails(grade, product, check(requires=["sin"]), "holds no `sin`", "equations  dot_general, tanh")
    fails(grade, product, check(requires=[("sin", "cos")]), "`sin` or `cos`")
    fails(grade, product, check(forbids=["tanh"]), "holds `tanh`, which it should do without")
    fails(grade, twice, check(counts={"dot_general": 1}), "holds `dot_general` twice; expected: once")
    fails(grade, twice, check(at_most={"dot_general": 1}), "at most: once")
    fails(grade, twice, check(equations=2), "has 4 equations; 2 are enough")
    fails(
        grade,
        lambda x, y: jax.lax.scan(lambda c, row: (c + jnp.sin(row), 0), x[0], y)[0],
        check(forbids=["sin"]),
        "`sin`",
        "scan",
    )
    fails(grade, lambda x, y: x if x.sum() > 0 else y, check(), "Under `jax.make_jaxpr`")


# Keys


def test_keys(grade):
    def right(key):
        one, other = jax.random.split(key)
        return jax.random.normal(one) + jax.random.uniform(other)

    def twice(key):
        return jax.random.normal(key) + jax.random.uniform(key)

    def parent(key):
        one, _ = jax.random.split(key)
        return jax.random.normal(one) + jax.random.uniform(key)

    def in_a_loop(key):
        return jnp.stack([jax.random.normal(key) for _ in range(3)])

    def own(key):
        return jax.random.normal(jax.random.key(0))

    def check(f):
        checks.keys(f, KEY)

    passes(grade, right, check)
    passes(grade, jax.jit(right), check)
    for wrong in (twice, parent, in_a_loop, jax.jit(twice), lambda key: jax.jit(twice)(key)):
        fails(grade, wrong, check, "A random key is used twice")
    outcome = fails(grade, twice, check)
    assert "in twice:  return jax.random.normal(key) + jax.random.uniform(key)" in outcome.text
    nested = fails(grade, twice, lambda f: checks.keys(lambda key: 2 * f(key), KEY), "KeyReuseError")
    assert nested.text.count("Your code raised") == 1
    fails(grade, own, check, "does not depend on the key `key`")
    passes(grade, own, lambda f: checks.keys(f, KEY, depends=False))
    fails(grade, lambda key: key + 1, check, "Your code raised")
    check(right)
    check(right)  # the key given to the check is not used up by it


# Purity


def test_pure(grade):
    log, table = [], {"n": 0}
    count = 0

    def appends(x):
        log.append(1)
        return x

    def counts(x):
        nonlocal count
        count += 1
        return x

    def fills(x):
        table["n"] += 1
        return x

    def stores(x):
        global stored
        stored = x
        return x

    def draws(x):
        return x + np.random.default_rng().normal()

    def in_place(x):
        x += 1
        return x

    def sorts(items):
        items.sort()
        return jnp.array(items)

    def check(f):
        checks.pure(f, X)

    def reads(x):
        return x + len(log)

    passes(grade, double, check)
    passes(grade, reads, check)
    passes(grade, lambda x: x.at[0].set(5), check)
    fails(grade, appends, check, "changes `log`", "before  []", "after   [1]")
    fails(grade, counts, check, "changes `count`")
    fails(grade, fills, check, "changes `table`")
    fails(grade, stores, check, "assigns the global `stored`")
    fails(grade, draws, check, "another result when it is called again")
    fails(grade, in_place, check, "changed its input `x` in place")
    fails(grade, in_place, lambda f: checks.pure(f, np.zeros(2)), "changed its input `x` in place", "[1. 1.]")
    fails(grade, sorts, lambda f: checks.pure(f, [2.0, 1.0]), "changed its input `items`")
    fails(grade, jax.jit(lambda x: x + 1, donate_argnums=0), check, "deletes its input", solution=double)


# Leaks


def test_no_leaks(grade):
    kept = []

    class Holder:
        value = None

    def keeps(x):
        y = 2 * x
        kept.append(y)
        return y

    def on_an_attribute(x):
        Holder.value = x * 2
        return x

    def on_itself(x):
        on_itself.value = x * 2
        return x

    def out_of_range(x):
        return [x][1]

    def check(f):
        checks.no_leaks(f, X)

    passes(grade, double, check)
    passes(grade, jax.jit(double), check)
    fails(grade, keeps, check, "A tracer leaks")
    fails(grade, on_an_attribute, check, "A tracer leaks")
    fails(grade, on_itself, check, "A tracer leaks")
    fails(grade, out_of_range, check, "IndexError")
    fails(grade, lambda x: x if x.sum() > 0 else -x, check, "TracerBoolConversionError")


# Classes


class Scaler(nn.Layer):
    initial: float = 1.0

    def init(self, key, x):
        return {"scaler": jnp.full(x.shape[-1:], self.initial, x.dtype)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scaler"].astype(x.dtype), non_trainables


class Momentum(optim.Optimizer):
    learning_rate: jax.Array = number(lambda value: jnp.asarray(value, jnp.float32))

    def init(self, trainables):
        return jax.tree.map(jnp.zeros_like, trainables)

    def step(self, gradients, state, trainables):
        state = jax.tree.map(lambda old, new: old + new.astype(old.dtype), state, gradients)
        return jax.tree.map(lambda leaf: -self.learning_rate * leaf.astype(jnp.float32), state), state


def test_make(grade):
    class NeedsMore(nn.Layer):
        initial: float
        features: int

    class Refuses(Scaler):
        def __post_init__(self):
            raise ValueError("not today")

    class Stub(Scaler):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False): ...

    class HalfAStub(Scaler):
        def init(self, key, x):
            shape = ...
            return {"scaler": jnp.ones(shape)}, ()

    def check(cls):
        assert checks.make(cls, initial=2.0).initial == 2

    passes(grade, Scaler, check)
    fails(grade, NeedsMore, check, "missing 1 required positional argument: 'features'", solution=Scaler)
    fails(
        grade, Refuses, check, "Your code raised ValueError: not today", "in __post_init__", solution=Scaler
    )
    for stub in (Stub, HalfAStub):
        assert grade(stub, check, solution=Scaler).status == "not attempted"
    fails(grade, Scaler(), check, "a class is asked for: hand in `Scaler`, not `Scaler(…)`", solution=Scaler)
    fails(grade, double, check, "You gave a function, but a class is asked for.", solution=Scaler)


def test_obeys_laws(grade):
    class Centered(Scaler):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            return super().fwd(x - jnp.mean(x, axis=0), trainables, non_trainables)

    class Raises(Scaler):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            return x @ trainables["kernel"], non_trainables

    class NoPair(Scaler):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            return x * trainables["scaler"]

    class NoReturn(Scaler):
        def init(self, key, x):
            key, x  # noqa: B018

    class NoFwd:
        def init(self, key, x):
            return (), ()

    class Endless(Scaler):
        def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
            while True:
                pass

    def check(cls, **options):
        checks.obeys_laws(checks.make(cls), jnp.ones((2, 3)), **options)

    passes(grade, Scaler, check)
    outcome = fails(
        grade,
        Centered,
        check,
        "The law *batch equals loop* is broken: A batch gives what a loop over its examples gives.",
        "an operation mixes the examples",
        "(float32, shape (3, 2, 3))",
        "differs   at [0, 0, 0]",
        solution=Scaler,
    )
    assert [label for label, _ in outcome.shown] == ["input", "expected", "got", "differs"]
    passes(grade, Centered, functools.partial(check, but="batch equals loop"), solution=Scaler)
    passes(grade, Centered, functools.partial(check, but={"batch equals loop", "static"}), solution=Scaler)
    fails(
        grade,
        Raises,
        check,
        "Your code raised KeyError: 'kernel'",
        'x @ trainables["kernel"]',
        solution=Scaler,
    )
    fails(grade, NoPair, check, "must return a pair, `(y, non_trainables)`", solution=Scaler)
    fails(grade, NoReturn, check, "`init` returned None: is a `return` missing?", solution=Scaler)
    fails(grade, NoFwd, check, "there is no `fwd`", solution=Scaler)
    outcome = grade(Endless, check, solution=Scaler, seconds=1)
    assert outcome.status == "failed" and "was stopped after 1 seconds" in outcome.text

    def on_the_class(cls):
        checks.obeys_laws(cls, jnp.ones((2, 3)))

    fails(grade, Scaler, on_the_class, "You gave the class `Scaler`, but a layer is asked for")
    with pytest.raises(
        ValueError, match="there is no law 'batch equal loop'; the laws are signature, frozen"
    ):
        checks.obeys_laws(Scaler(), X[None], but="batch equal loop")


def test_obeys_optimizer_laws(grade):
    class NoPair(Momentum):
        def step(self, gradients, state, trainables):
            return gradients

    class Stub(Momentum):
        def step(self, gradients, state, trainables): ...

    def check(cls, **options):
        checks.obeys_optimizer_laws(cls, **{"but": {"dtypes", "rounded once"}, **options})

    passes(grade, Momentum, check)
    passes(grade, Momentum, functools.partial(check, peer=optax.sgd(0.1, momentum=1.0)))
    fails(grade, Momentum, functools.partial(check, peer=optax.sgd(0.1)), "The law *equals Optax* is broken")
    fails(
        grade,
        Momentum,
        functools.partial(check, but=()),
        "The law *dtypes* is broken",
        "weights of float64 should be float64, and are float32",
    )
    fails(grade, NoPair, check, "`step` must return a pair, `(updates, state)`", solution=Momentum)
    assert grade(Stub, check, solution=Momentum).status == "not attempted"
    fails(grade, Momentum, lambda cls: check(cls(0.1)), "a function that makes the optimizer")


# All of them


def test_every_check_is_listed_and_tested():
    here = pathlib.Path(__file__).read_text(encoding="utf-8")
    for name in checks.__all__:
        assert f"`{name}`" in checks.__doc__, f"{name} is not in the table"
        assert f"def test_{name}" in here or name == "same", f"{name} has no test"
        assert getattr(checks, name).__doc__


def test_same_takes_numbers_and_text():
    checks.same(3, 3)
    checks.same("a", "a")
    for got, expected in ((3, 4), ("a", "b"), (None, 3), ([3], 3)):
        with pytest.raises(Failed):
            checks.same(got, expected)


@pytest.mark.parametrize(
    "one, two, does",
    [
        (X, X + 1e-7, True),
        (X, X + 1e-2, False),
        (X, X[:2], False),
        (X, X[:, None], False),
        (X, X.astype(int), False),
        (X, X.astype(jnp.bfloat16), False),
        (X, np.array([1.0, 2.0, 3.0]), True),  # in 64 bits: its numbers alone count
        (X, np.array([1, 2, 3]), True),
        (X, np.array([1.0, 2.0, 4.0]), False),
        (X, np.array([[1.0, 2.0, 3.0]]), False),
        (X, np.float32([1, 2, 3]), True),
        (X, np.float16([1, 2, 3]), False),
        (np.float32([1, 2, 3]), X, False),  # what a reader computes in NumPy is no array of JAX
        (np.float32([1, 2, 3]), np.float32([1, 2, 3]), True),
        ([1.0, 2.0, 3.0], X, False),
        ((X, 3), (X, 3), True),
        ((X, 3), [X, 3], False),
        ({"a": X}, {"a": np.array([1.0, 2.0, 3.0])}, True),
        ({"a": X}, {"b": X}, False),
        (None, None, True),
        (None, X, False),
        (jnp.ones(()), 1.0, True),
        (jnp.ones(3), 1.0, False),
        ("a", "a", True),
        ("a", "b", False),
        (KEY, jax.random.key(0), True),
        (KEY, jax.random.key(1), False),
        (KEY, np.zeros(2), False),
        (jnp.array(jnp.nan), jnp.array(jnp.nan), True),
        (np.array(["a"]), np.array(["a"]), True),
    ],
)
def test_agrees(one, two, does):
    assert checks.agrees(one, two) is does


def test_agrees_within_what_is_allowed():
    assert checks.agrees(X, X + 0.01, rtol=0.1) and checks.agrees(X, X + 0.01, rtol=0, atol=0.02)
    assert not checks.agrees(X, X + 1e-6, rtol=0, atol=0)


def test_same_recognises(grade):
    made = []

    def twice():
        made.append(1)
        return 4 * X

    def check(f):
        checks.same(f(X), 2 * X, recognise=[(X**2, "This squares."), (twice, "This doubles twice.")])

    passes(grade, double, check)
    assert not made, "nothing is computed of what is not needed"
    assert fails(grade, lambda x: x**2, check).message == "This squares.\nThe result is wrong."
    assert fails(grade, lambda x: 4 * x, check).message == "This doubles twice.\nThe result is wrong."
    assert fails(grade, lambda x: x, check).message == "The result is wrong."
    assert "is a `return` missing?" in fails(grade, lambda x: print(), check).message


def test_says(grade):
    def check(f):
        with checks.says("It should double."):
            checks.values(f, double, examples=[(X,)])

    passes(grade, double, check)
    assert fails(grade, lambda x: x, check).message == "It should double.\nThe result is wrong."
    raised = fails(grade, lambda x: x[None, 0, "a"], check).message
    assert raised.startswith("It should double.\n") and "raised" in raised


@pytest.mark.parametrize(
    "sentence, about, message",
    [
        ("For three:", "", "For three: It is wrong."),
        ("", "", "It is wrong."),
        ("Of this.", "is wrong", "Of this.\nIt is wrong."),
        ("Of that.", "is right", "It is wrong."),
        (lambda failure: f"{len(failure.message)} characters.", "", "12 characters.\nIt is wrong."),
        (lambda failure: "", "", "It is wrong."),
    ],
)
def test_says_what_is_asked_for(sentence, about, message):
    with pytest.raises(Failed) as caught, checks.says(sentence, about):
        raise Failed("It is wrong.")
    assert caught.value.message == str(caught.value) == message


def test_says_leaves_other_errors_alone():
    with pytest.raises(KeyError, match="^'here'$"), checks.says("It should double."):
        raise KeyError("here")


def test_returned(grade):
    pair = {"count": 1}, X
    assert checks.returned(0) == 0
    assert checks.returned(pair, "state", "result") is pair
    assert checks.returned(pair, "state", "result", like=({"count": 5}, X[:1])) is pair
    assert checks.returned(list(pair), "state", "result", lists=True) == list(pair)
    for got, names, options, message in (
        (None, (), {}, "Your function returned None: is a `return` missing?"),
        (None, ("state", "result"), {"by": "`step`"}, "`step` returned None: is a `return` missing?"),
        (X, ("state", "result"), {}, "Return two things, in this order: the state, the result."),
        (pair, ("a", "b", "c"), {}, "Return three things, in this order: the a, the b, the c."),
        (list(pair), ("state", "result"), {}, "Return two things, in this order: the state, the result."),
        (X, ("state", "result"), {"lists": True}, "Return two things, in this order: the state, the result."),
        (X, ("state", "result"), {"asked": "A pair is asked for."}, "A pair is asked for."),
        (
            pair[::-1],
            ("state", "result"),
            {"like": pair},
            "The order is: first the state, then the result.",
        ),
        (
            ({"counts": 1}, X),
            ("state", "result"),
            {"like": pair},
            "The state should be built like the one that came in: PyTreeDef({'count': *}).",
        ),
    ):
        with pytest.raises(Failed) as caught:
            checks.returned(got, *names, **options)
        assert caught.value.message == message
    says = "Return two things", "x = [1. 2. 3.]", "got    3"
    fails(grade, lambda x: 3, lambda f: checks.returned(f(X), "state", "result", input={"x": X}), *says)


def test_checks_do_not_see_the_readers_settings(grade):
    """A right answer passes whatever guards the notebook has on."""
    with jax.debug_key_reuse(True), jax.check_tracer_leaks(True):
        passes(grade, double, lambda f: checks.traces(f, (X,), (X + 1,), exactly=1))
        passes(grade, jax.jit(double), lambda f: checks.traces(f, (X,), (X + 1,), exactly=1))
        passes(grade, jax.random.normal, lambda f: checks.same(f(KEY), f(KEY)), solution=lambda key: key)


@pytest.mark.parametrize(
    "value, text",
    [
        (jnp.float32(1.23456), "1.2346  (float32, shape ())"),
        (jnp.ones((2, 2), jnp.bfloat16), "[[1. 1.]\n [1. 1.]]  (bfloat16, shape (2, 2))"),
        (np.float64(2), "2.  (NumPy float64)"),
        (np.array(["a"]), "['a']  (<U1, shape (1,), NumPy)"),
        ((1, 2.5, "a"), "(1, 2.5, 'a')"),
        ([], "[]"),
        ({"a": (1,)}, "{'a': (1,)}"),
        (double, "the function double"),
        (dict, "the class dict"),
        (object(), "an object"),
        (jax.random.key(0), "a random key"),
        (jax.ShapeDtypeStruct((2,), jnp.float32), "any float32 of shape (2,)"),
    ],
)
def test_describe(value, text):
    assert describe.describe(value) == text


def test_describe_stays_short():
    assert len(describe.describe(jnp.zeros((100, 100)))) < 400
    assert len(describe.describe(list(range(1000)))) <= 400
    assert len(describe.describe({i: jnp.zeros(3) for i in range(100)})) <= 400
