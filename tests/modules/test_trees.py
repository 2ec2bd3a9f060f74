"""Utilities for trees of arrays: what they compute, what they never do, and wrong uses."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from mlax_tutorial import nn, optim, trees

MODEL = nn.Series(nn.Linear(3), nn.Bias(), nn.F(jnp.tanh), nn.Series(nn.Linear(2), nn.Bias()))
X = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
WEIGHTS, _ = MODEL.init(jax.random.key(0), X)
PATHS = ["[0]['kernel']", "[1]['bias']", "[3][0]['kernel']", "[3][1]['bias']"]
ABSTRACT = jax.eval_shape(lambda: WEIGHTS)


def biases(path):
    return path.endswith("['bias']")


def matrices(tree):
    return jax.tree.map(lambda leaf: leaf.ndim == 2, tree)


# Each way to say the same.
BIASES = {
    "pattern": "*['bias']",
    "function": biases,
    "tree of bools": jax.tree.map(lambda leaf: leaf.ndim == 1, WEIGHTS),
    "tree of NumPy's bools": jax.tree.map(lambda leaf: np.bool_(leaf.ndim == 1), WEIGHTS),
}
each_where = pytest.mark.parametrize("where", BIASES.values(), ids=BIASES)
each_tree = pytest.mark.parametrize("tree", [WEIGHTS, ABSTRACT], ids=["arrays", "placeholders"])


@each_tree
def test_count_and_nbytes(tree):
    assert trees.count(tree) == 4 * 3 + 3 + 3 * 2 + 2
    assert trees.nbytes(tree) == 4 * trees.count(tree)
    assert trees.count(()) == trees.nbytes(()) == 0
    half = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, jnp.bfloat16), tree)
    assert trees.nbytes(half) == 2 * trees.count(tree)


def test_keys_and_scalars_count():
    keys = jax.random.split(jax.random.key(0), 3)
    tree = {"keys": keys, "count": jnp.zeros((), jnp.int32), "flag": np.ones(2, bool)}
    assert trees.count(tree) == 3 + 1 + 2
    assert trees.nbytes(tree) == jax.random.key_data(keys).nbytes + 4 + 2
    assert trees.nbytes(jax.eval_shape(lambda: tree)) == trees.nbytes(tree)


def test_what_is_too_large_for_int32():
    huge = jax.ShapeDtypeStruct((2**20, 2**20), jnp.float32)
    assert trees.count([huge, huge]) == 2**41 and trees.nbytes(huge) == 2**42


@each_where
@each_tree
def test_select(tree, where):
    assert list(trees.select(tree, where)) == [PATHS[1], PATHS[3]]
    assert trees.select(tree, where)[PATHS[3]] is tree[3][1]["bias"]


@each_where
def test_update_touches_nothing_else(where):
    new = trees.update(WEIGHTS, where, lambda leaf: leaf + 1)
    assert jax.tree.structure(new) == jax.tree.structure(WEIGHTS)
    np.testing.assert_array_equal(new[1]["bias"], np.ones(3))
    assert new[0]["kernel"] is WEIGHTS[0]["kernel"]
    np.testing.assert_array_equal(WEIGHTS[1]["bias"], np.zeros(3))


@each_where
@each_tree
def test_partition_and_combine_are_inverse(tree, where):
    chosen, rest = trees.partition(tree, where)
    assert list(trees.select(chosen, lambda path: True)) == [PATHS[1], PATHS[3]]
    assert list(trees.select(rest, lambda path: True)) == [PATHS[0], PATHS[2]]
    for whole in (trees.combine(chosen, rest), trees.combine(rest, chosen)):
        assert jax.tree.structure(whole) == jax.tree.structure(tree)
        assert all(a is b for a, b in zip(jax.tree.leaves(whole), jax.tree.leaves(tree)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_an_average_is_rounded_once(dtype):
    draw = np.random.default_rng(0).normal
    old, new = (jnp.asarray(draw(size=200), dtype) for _ in range(2))
    found = jax.jit(trees.average)({"w": (old,)}, {"w": (new,)}, 0.9)["w"][0]
    wide = np.complex128 if dtype == "complex64" else np.float64
    exact = 0.9 * np.asarray(old, wide) + 0.1 * np.asarray(new, wide)
    assert found.dtype == dtype
    rtol = 1e-5 if dtype == "float32" or dtype == "complex64" else jnp.finfo(dtype).eps
    np.testing.assert_allclose(np.asarray(found, wide), exact, rtol=rtol, atol=1e-6)


def test_integers_and_keys_of_an_average_are_the_new_ones():
    old, new = ((jnp.int32(n), jax.random.key(n), jnp.bool_(n)) for n in (0, 1))
    assert not trees.differences(new, trees.average(old, new, 0.9))


def test_partition_of_everything_of_nothing_and_of_a_leaf():
    nothing = jax.tree.map(lambda leaf: False, WEIGHTS)
    chosen, rest = trees.partition(WEIGHTS, nothing)
    assert jax.tree.leaves(chosen) == [] and not trees.differences(rest, WEIGHTS)
    assert not trees.differences(trees.combine(chosen, rest), WEIGHTS)
    assert trees.partition((), "*") == ((), ()) and trees.combine((), ()) == ()
    leaf = jnp.ones(2)
    assert trees.partition(leaf, "*")[0] is leaf and trees.partition(leaf, True)[1] == ()
    assert trees.combine((), leaf) is leaf


def test_three_parts():
    first, rest = trees.partition(WEIGHTS, "[0]*")
    second, third = trees.partition(rest, "*['bias']")
    assert not trees.differences(trees.combine(second, third, first), WEIGHTS)


@pytest.mark.parametrize("optimizer", [optim.Adam(1e-2), optax.sgd(1e-1, 0.9)], ids=["ours", "optax"])
def test_a_part_is_a_tree_to_differentiate_and_to_train(optimizer):
    chosen, rest = trees.partition(WEIGHTS, "[3]*")
    step = getattr(optimizer, "step", None) or optimizer.update

    def loss(chosen, rest):
        return jnp.mean(jnp.square(MODEL.fwd(X, trees.combine(chosen, rest), ())[0]))

    @jax.jit
    def train(chosen, rest, state):
        gradients = jax.grad(loss)(chosen, rest)
        updates, state = step(gradients, state, chosen)
        return optim.apply_updates(chosen, updates), state, gradients

    new, _, gradients = train(chosen, rest, optimizer.init(chosen))
    whole = jax.grad(lambda weights: loss(weights, jax.tree.map(lambda leaf: (), rest)))(WEIGHTS)
    assert not trees.differences(trees.partition(whole, "[3]*")[0], gradients, rtol=1e-5, atol=1e-6)
    assert len(trees.differences(WEIGHTS, trees.combine(new, rest))) == 2  # the head's two weights
    assert loss(new, rest) < loss(chosen, rest)


def test_a_part_passes_through_vmap():
    chosen, rest = trees.partition(WEIGHTS, "*['kernel']")
    many = jax.tree.map(lambda leaf: jnp.stack([leaf, 2 * leaf]), chosen)
    outputs = jax.vmap(lambda part: MODEL.fwd(X, trees.combine(part, rest), ())[0])(many)
    np.testing.assert_allclose(outputs[0], MODEL.fwd(X, WEIGHTS, ())[0], rtol=1e-5, atol=1e-6)


def test_holes_are_those_of_freeze():
    frozen = optim.Freeze(optim.SGD(0.1, momentum=0.9), where=biases).init(WEIGHTS)
    _, rest = trees.partition(WEIGHTS, biases)
    assert jax.tree.structure(frozen.inner.velocity) == jax.tree.structure(rest)


def test_no_differences():
    same = jax.tree.map(jnp.copy, WEIGHTS)
    assert trees.differences(WEIGHTS, same) == []
    assert trees.differences(WEIGHTS, ABSTRACT) == trees.differences(ABSTRACT, ABSTRACT) == []
    assert trees.differences(jnp.array([jnp.nan, jnp.inf]), np.float32([np.nan, np.inf])) == []
    assert trees.differences(jax.random.key(0), jax.random.key(0)) == []
    assert trees.differences((), ()) == []
    assert trees.differences(jnp.zeros((0, 3)), jnp.zeros((0, 3))) == []


def test_all_differences_at_once():
    expected = {
        "gone": jnp.ones(2),
        "shape": jnp.ones((4, 3)),
        "dtype": jnp.ones(3),
        "both": jnp.ones(3),
        "key": jax.random.key(0),
        "same": jnp.ones(3),
        "values": jnp.zeros((2, 2)),
    }
    got = {
        "both": jnp.ones(4, jnp.int32),
        "dtype": jnp.ones(3, jnp.bfloat16),
        "key": jax.random.key(1),
        "new": jnp.ones((), jnp.int32),
        "same": jnp.ones(3),
        "shape": jnp.ones((4, 2)),
        "values": jnp.array([[0, -0.5], [0.25, 0]]),
    }
    assert trees.differences(expected, got) == [
        "missing: ['gone'], float32[2]",
        "unexpected: ['new'], int32[]",
        "shape and dtype: ['both'] expects float32[3], got int32[4]",
        "dtype: ['dtype'] expects float32[3], got bfloat16[3]",
        "values: ['key'] differs",
        "shape: ['shape'] expects float32[4,3], got float32[4,2]",
        "values: ['values'] in 2 of 4, by at most 0.5",
    ]


VALUES = {
    "a bool": (np.array(True), np.array(False), "1 of 1, by at most 1"),
    "uint8 does not wrap round": (np.uint8(1), np.uint8(3), "1 of 1, by at most 2"),
    "large integers": (np.int32(2**31 - 1), np.int32(-(2**31)), "1 of 1, by at most 4.29e+09"),
    "bfloat16": (jnp.bfloat16(1), jnp.bfloat16(1.5), "1 of 1, by at most 0.5"),
    "complex": (np.complex64([3j, 1]), np.complex64([-1j, 1]), "1 of 2, by at most 4"),
    "NaN on one side": (np.float32([np.nan, 1]), np.float32([2, 1]), "1 of 2, by at most nan"),
    "two dtypes": (np.float32([1, 2]), np.float16([1, 3]), "1 of 2, by at most 1"),
    "infinity and a number": (np.float32(np.inf), np.float32(1), "1 of 1, by at most inf"),
}


@pytest.mark.parametrize("case", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("rtol", [0.0, 0.1])
def test_values(case, rtol):
    expected, got, line = case
    assert trees.differences(expected, got, rtol=rtol)[-1] == f"values: the root in {line}"


def test_tolerances():
    expected, got = jnp.array([1.0, 100.0]), jnp.array([1.05, 101.0])
    assert trees.differences(expected, got, rtol=0.1) == []
    assert trees.differences(expected, got, atol=0.1) == ["values: the root in 1 of 2, by at most 1"]
    assert trees.differences(expected, got, atol=2) == []


def test_containers_alone_may_differ():
    assert trees.differences([1 * jnp.ones(1)], (jnp.ones(1),)) == [
        "containers: expects PyTreeDef([*]), got PyTreeDef((*,))"
    ]


def test_nothing_is_copied_to_the_host():
    with jax.transfer_guard_device_to_host("disallow"):
        for function in (trees.count, trees.nbytes, lambda tree: repr(trees.describe(tree))):
            function(WEIGHTS)
        chosen, rest = trees.partition(WEIGHTS, matrices(WEIGHTS))
        trees.combine(chosen, trees.update(rest, "*", lambda leaf: leaf))
        trees.differences(WEIGHTS, ABSTRACT)
    # A CPU has nothing to copy, so the guard is blind there; tracers are not.
    seen = jax.make_jaxpr(lambda tree: [trees.count(tree), trees.nbytes(tree)])(WEIGHTS)
    assert not seen.jaxpr.eqns
    jax.jit(lambda tree: print(end=str(trees.describe(tree))[:0]))(WEIGHTS)
    jax.jit(lambda tree: trees.combine(*trees.partition(tree, "*['bias']")))(WEIGHTS)
    with pytest.raises(jax.errors.TracerArrayConversionError):
        jax.jit(lambda tree: trees.differences(tree, WEIGHTS))(WEIGHTS)


def test_describe():
    described = trees.describe({**WEIGHTS[0], "key": jax.random.key(0), "<n>": jnp.int32(0)})
    assert [row.path for row in described.rows] == ["['<n>']", "['kernel']", "['key']"]
    assert described.rows[1] == ("['kernel']", (4, 3), "float32", 12, 48)
    assert described.numbers == 12 + 1 + 1 and described.bytes == 48 + 8 + 4
    lines = repr(described).splitlines()
    assert lines[0].split() == [*trees.Leaf._fields] and lines[-1].split() == ["total", "14", "60"]
    assert len({len(line) for line in lines}) == 1
    assert "[&#x27;&lt;n&gt;&#x27;]" in described._repr_html_() and "<n>" not in described._repr_html_()
    assert trees.describe(()).rows == () and "total" in repr(trees.describe(()))


WRONG = {
    "an average of unlike trees": (lambda: trees.average({"w": jnp.ones(2)}, {"v": jnp.ones(2)}, 0.5), r"^average: new\['w'\] expects \(2,\), got nothing"),
    "an average of other shapes": (lambda: trees.average(jnp.ones(2), jnp.ones(1), 0.5), r"^average: new expects \(2,\), got \(1,\)"),
    "an average of integers with floats": (lambda: trees.average({"n": jnp.int32(1)}, {"n": jnp.float32(3.5)}, 0.5), r"^average: new\['n'\] expects integer, got floating: convert one of them"),
    "an average of floats with integers": (lambda: trees.average(jnp.ones(2), jnp.arange(2), 0.5), r"^average: new expects floating, got integer"),
    "an average of real numbers with complex ones": (lambda: trees.average(jnp.ones(2), jnp.full(2, 1j), 0.5), r"^average: new expects floating, got complexfloating"),
    "a decay above 1": (lambda: trees.average(jnp.ones(2), jnp.ones(2), 1.5), r"^average: decay must be a finite number in \[0, 1\], got 1.5"),
    "an average of numbers": (lambda: trees.average(1.0, 2.0, 0.5), r"^average: the root expects an array, got float 1.0"),
    "an index in layers of different kinds": (lambda: trees.select([{"a": [jnp.ones(2)] * 2}, jnp.ones(2)], "*[1]*"), r"^select: where, '\*\[1\]\*', fits layers"),
    "count of a number": (lambda: trees.count({"a": 1.0}), r"^count: \['a'\] expects an array, got float 1\.0: use jnp"),
    "count of None's neighbour": (lambda: trees.count([None, "a"]), r"^count: \[1\] expects an array, got str 'a'"),
    "count of a function": (lambda: trees.count(len), r"^count: the root expects an array, got .*len"),
    "nbytes of a number": (lambda: trees.nbytes(3), r"^nbytes: the root expects an array, got int 3"),
    "nbytes of a list of numbers": (lambda: trees.nbytes([1, 2]), r"^nbytes: \[0\] expects an array, got int 1"),
    "nbytes of an abstract shape": (lambda: trees.nbytes({"a": (4, 3)}), r"^nbytes: \['a'\]\[0\] expects an array"),
    "describe of a number": (lambda: trees.describe([jnp.ones(1), 2.0]), r"^describe: \[1\] expects an array"),
    "describe of text": (lambda: trees.describe("kernel"), r"^describe: the root expects an array, got str"),
    "describe of a flag": (lambda: trees.describe({"on": True}), r"^describe: \['on'\] expects an array, got bool"),
    "a misspelt pattern": (
        lambda: trees.select(WEIGHTS, "*['kernle']"),
        r"^select: where must choose at least one leaf, but chose none of 4: their paths are \[0\]\['kernel'\], ",
    ),
    "a part of a path": (lambda: trees.select(WEIGHTS, "bias"), r"^select: where must choose at least one leaf"),
    "no pattern": (lambda: trees.select(WEIGHTS, 3), r"^select: where must be a pattern, .* got int 3"),
    "update of nothing": (lambda: trees.update(WEIGHTS, "[9]*", abs), r"^update: where must choose at least one"),
    "update by no function": (
        lambda: trees.update(WEIGHTS, "*", 0.0),
        r"^update: function must be one of a leaf, got float 0\.0",
    ),
    "update by another tree": (lambda: trees.update(WEIGHTS, [True], abs), r"^update: where must be a pattern, "),
    "a function that chooses nothing": (
        lambda: trees.partition(WEIGHTS, lambda path: False),
        r"^partition: where must choose at least one leaf, but chose none of 4",
    ),
    "bools of another tree": (
        lambda: trees.partition(WEIGHTS, matrices(WEIGHTS[0])),
        r"^partition: where must be a pattern, .*like the tree itself, got a dict with keys \['kernel'\]",
    ),
    "numbers for bools": (
        lambda: trees.partition(WEIGHTS, jax.tree.map(lambda leaf: 1, WEIGHTS)),
        r"^partition: where must be .* a tree of Python bools",
    ),
    "traced bools": (
        lambda: jax.jit(lambda w: trees.partition(w, jax.tree.map(lambda x: x.sum() > 0, w)))(WEIGHTS),
        r"^partition: where must be .* a tree of Python bools",
    ),
    "nothing to combine": (lambda: trees.combine(), r"^combine: expects at least one tree"),
    "a leaf twice": (
        lambda: trees.combine({"a": jnp.ones(2)}, {"a": jnp.ones(3)}),
        r"^combine: \['a'\] is there 2 times, float32\[2\], float32\[3\]: .*must have a hole",
    ),
    "trees that are not alike": (
        lambda: trees.combine({"a": ()}, {"b": 1.0}),
        r"^combine: the trees must be alike .*\n.*'a'.*\n.*'b'",
    ),
    "a tree in a hole": (lambda: trees.combine({"a": ()}, {"a": [1.0]}), r"^combine: the trees must be alike"),
    "None for a hole": (lambda: trees.combine({"a": None}, {"a": 1.0}), r"^combine: the trees must be alike"),
    "differences of numbers": (lambda: trees.differences([1.0], [1.0]), r"^differences: \[0\] expects an array"),
    "a negative tolerance": (
        lambda: trees.differences(X, X, rtol=-1),
        r"^differences: rtol and atol must be at least 0, got -1 and 0",
    ),
    "a tolerance that is none": (
        lambda: trees.differences(X, X, atol=float("nan")),
        r"^differences: rtol and atol must be at least 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_uses(case):
    call, message = case
    with pytest.raises(ValueError, match=message):
        call()
