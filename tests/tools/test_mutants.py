"""The tool that changes solutions, and sees whether their checks notice."""

import ast

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial.checking import Exercise, checks
from tools import mutants


def steps(source, sizes=()):
    return {name: ast.unparse(tree) for name, tree in mutants.mutants(source, dict(sizes))}


def test_each_kind_of_step():
    found = steps("def f(x, n=3):\n    return jnp.sum(x[1:] * -n, axis=0) / x.shape[0]", {"x.shape[0]": 7})
    whole = "return jnp.sum(x[1:] * -n, axis=0) / x.shape[0]"
    assert {
        "x, n=3 -> x, n=2",
        "x, n=3 -> x, n=4",
        "jnp.sum(x[1:] * -n, axis=0) / x.shape[0] -> jnp.sum(x[1:] * -n, axis=0) * x.shape[0]",
        "jnp.sum(x[1:] * -n, axis=0) -> jnp.sum(x[1:] * -n)",
        "jnp.sum(x[1:] * -n, axis=0) -> x[1:] * -n",
        "x[1:] * -n -> x[1:] / -n",
        "-n -> n",
        "1: -> 2:",
        "x.shape[0] -> 7",
        f"{whole}: without a gradient",
        f"{whole}: rounded to float16",
    } <= set(found)
    assert found[f"{whole}: without a gradient"].endswith(f"_no_gradient({whole.removeprefix('return ')})")


def test_a_step_that_is_there_twice_has_two_names():
    assert {"a + b -> a - b", "a + b -> a - b (2)"} <= set(
        steps("def f(a, b):\n    return (a + b) * (a + b)")
    )


@pytest.mark.parametrize(
    "source, sizes, name",
    [
        ("def f(x):\n    n, d = x.shape\n    return n", {"n, d = x.shape[1]": 4}, "n, d = x.shape -> n, d = _with_size(1, 4)(x.shape)"),
        ("def f(x):\n    return len(x)", {"len(x)": 3}, "len(x) -> 3"),
        ("def f(key):\n    return jax.random.split(key)", {}, "jax.random.split(key) -> _one_key(jax.random.split(key))"),
        ("def f(x):\n    return x.astype(int)", {}, "x.astype(int) -> x"),
        ("def f(x):\n    return lax.stop_gradient(x)", {}, "lax.stop_gradient(x) -> x"),
        ("def f(x):\n    return x > 0", {}, "x > 0 -> x >= 0"),
        ("def f(x):\n    return x is None or x", {}, "x is None -> x is not None"),
        ("def f(x):\n    return g(x, scale=2.0)", {}, "g(x, scale=2.0) -> g(x, scale=4.0)"),
    ],
)  # fmt: skip
def test_steps_of_other_kinds(source, sizes, name):
    assert name in steps(source, sizes)


def exercise(solution, check):
    return Exercise(
        title="A test",
        stars=1,
        minutes=1,
        why="Because it is tested.",
        hints=("One.", "Two."),
        solution=solution,
        check=check,
    )


def mean_of_squares(x):
    return jnp.sum(x**2) / len(x)


def report(check):
    """What is said of `mean_of_squares` and a check."""
    return mutants.report_on(exercise(mean_of_squares, check), "chapter.one")


def test_a_check_that_lets_everything_pass_leaves_all_alive():
    found = report(lambda f: f(jnp.arange(3.0)) and None)
    assert "jnp.sum(x ** 2) / len(x) -> jnp.sum(x ** 2) * len(x)" in found.alive
    assert "len(x) -> 3" in found.alive


def test_one_size_leaves_that_size_alive():
    found = report(lambda f: checks.values(f, mean_of_squares, examples=[(jnp.arange(3.0),)]))
    assert found.alive == ["len(x) -> 3"]


def test_two_sizes_leave_nothing_alive():
    found = report(
        lambda f: checks.values(f, mean_of_squares, examples=[(jnp.arange(3.0),), (jnp.arange(4.0),)])
    )
    assert found.alive == [] and found.count >= 7 and found.broke == []


def test_what_a_step_calls():
    x, key = {"a": jnp.float32(0.1), "n": 3}, jax.random.key(0)
    assert mutants.HELPERS["_halved"](x)["a"] == jnp.float16(0.1) and mutants.HELPERS["_halved"](x)["n"] == 3
    keys = mutants.HELPERS["_one_key"](jax.random.split(key, 3))
    assert keys.shape == (3,) and bool((keys == keys[0]).all())
    assert mutants.HELPERS["_with_size"](1, 4)((2, 3, 5)) == (2, 4, 5)
    remembering = mutants._remembering(lambda x: 2 * x)
    assert remembering(1.0) == 2.0 == remembering(1.0) and remembering(jnp.ones(1)) == 2 == remembering(
        jnp.zeros(1)
    )
