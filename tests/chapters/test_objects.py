"""*From functions to objects*: the module class that its reader writes trains a network, keeps state, and is the one that exercises are graded with."""

import ast
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.checking import laws
from mlax_tutorial.exercises.objects import _modules, limiter
from tests.chapters import assembled

WRITTEN = (
    "Box", "Variable", "Parameter", "is_variable", "is_part", "has_parts", "Module", "variables", "partition",
    "combine", "with_state", "update", "jit", "value_and_grad", "Dense", "Network", "values", "Object", "Tied",
)  # fmt: skip


@pytest.fixture(scope="module")
def code():
    return assembled.definitions("book/objects.ipynb", *WRITTEN)


def test_the_readers_network_trains(code):
    network = code["Network"](jax.random.key(0), (4, 16, 3))
    x = jax.random.normal(jax.random.key(1), (60, 4))
    labels = x[:, :3].argmax(axis=1)

    def loss(network, x, labels):
        return -jnp.mean(jax.nn.log_softmax(network(x))[jnp.arange(len(x)), labels])

    @code["jit"]
    def step(network, x, labels):
        value, gradients = code["value_and_grad"](loss)(network, x, labels)
        gradients = code["variables"](gradients)
        for path, item in code["variables"](network, code["Parameter"]).items():
            item.value -= 0.5 * gradients[path].value
        return value

    values = [float(step(network, x, labels)) for _ in range(50)]
    assert values[-1] < 0.4 * values[0]
    assert network.calls.value == 50


def test_partition_and_combine_undo_each_other(code):
    network = code["Network"](jax.random.key(0), (4, 3, 2))
    parts = code["partition"](network, code["Parameter"])
    assert [len(jax.tree.leaves(part)) for part in parts] == [4, 1]
    whole = code["combine"](*parts)
    assert jax.tree.structure(whole) == jax.tree.structure(network)
    assert all(map(jnp.array_equal, jax.tree.leaves(whole), jax.tree.leaves(network)))


@pytest.mark.parametrize(
    "layer",
    [nn.Series(nn.Linear(3), nn.Bias(), nn.BatchNorm()), nn.Recurrent(nn.LSTMCell(3)), nn.F(jnp.tanh)],
    ids=["series", "recurrent", "function"],
)
def test_any_layer_becomes_an_object(code, layer):
    x = jax.random.normal(jax.random.key(0), (5, 2, 4))
    trainables, non_trainables = layer.init(jax.random.key(1), x)
    y, new = layer.fwd(x, trainables, non_trainables)
    module = code["Object"](layer, jax.random.key(1), x)
    got = code["jit"](lambda module, x: module(x))(module, x)
    np.testing.assert_allclose(got, y, rtol=1e-4, atol=1e-5)
    for one, two in zip(jax.tree.leaves(code["values"](module.state)), jax.tree.leaves(new), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


def test_the_boxes_of_a_layer_stay_the_same_boxes(code):
    x = jax.random.normal(jax.random.key(0), (8, 3))
    module = code["Object"](nn.BatchNorm(), jax.random.key(1), x)
    held = module.state["mean"]
    code["jit"](lambda module, x: module(x))(module, x)
    assert module.state["mean"] is held
    assert not jnp.allclose(held.value, 0)


def test_a_write_that_would_be_lost_is_refused(code):
    class Counts(code["Module"]):
        def __init__(self):
            self.n, self.weight = 0, code["Parameter"](jnp.ones(3))

    def sets(module):
        module.n += 1

    def adds(module):
        module.last = code["Variable"](module.weight.value)

    def changes_the_kind(module):
        module.weight = code["Variable"](module.weight.value)

    for wrong in (sets, adds, changes_the_kind):
        with pytest.raises(ValueError, match="only values of boxes"):
            code["jit"](wrong)(module := Counts())
        assert module.n == 0 and list(vars(module)) == ["n", "weight"]


def test_a_new_box_in_the_place_of_an_old_one_is_written_back(code):
    module = code["Network"](jax.random.key(0), (4, 3, 2))
    held = module.calls

    def replaces(module):
        module.calls = code["Variable"](module.calls.value + 5)

    code["jit"](replaces)(module)
    assert module.calls is held and held.value == 5


def test_an_array_outside_of_a_box_is_refused(code):
    class Masked(code["Module"]):
        def __init__(self):
            self.mask, self.weight = jnp.ones(3), code["Parameter"](jnp.ones(3))

    weight_of = jax.jit(lambda module: module.weight.value)
    weight_of(Masked())
    with pytest.raises(ValueError, match="equality"):  # of one mask and another
        weight_of(Masked())


def test_static_attributes_are_in_the_key(code):
    network, traces = code["Network"](jax.random.key(0), (4, 3, 2)), []

    @jax.jit
    def call(network, x):
        traces.append(1)
        return network(x)

    for activation in (jax.nn.relu, jax.nn.relu, jnp.tanh, jax.nn.relu):
        network.activation = activation
        call(network, jnp.ones((1, 4)))
    assert len(traces) == 2


def test_exercises_are_graded_with_the_chapters_class():
    """What the exercises share is what the cells define, but for layout."""
    cells = {
        statement.name: ast.unparse(statement)
        for statement in assembled._statements("book/objects.ipynb")  # the last definition of each name
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef))
    }
    for statement in ast.parse(inspect.getsource(_modules)).body:
        if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            assert ast.unparse(statement) == cells[statement.name], statement.name


def test_the_ported_layer_obeys_the_laws():
    assert not laws.report(limiter.answer(), jnp.ones((2, 4))).broken
