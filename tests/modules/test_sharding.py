"""Sharding rules: which fits, what is refused, and that states lie beside their weights. (Whole training steps on
several devices and in several processes are in tests/distributed.)"""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import meshes, nn, optim, precision, saving, sharding, training, trees
from mlax_tutorial.nn.paths import fits

MESH = AbstractMesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
MODEL = nn.Series(nn.Linear(8), nn.Bias(), nn.Stack(nn.Residual(nn.Series(nn.Linear(8), nn.Bias())), 6))
X = jax.ShapeDtypeStruct((3, 4), jnp.float32)
KEY = jax.eval_shape(lambda: jax.random.key(0))
WEIGHTS, _ = jax.eval_shape(MODEL.init, KEY, X)
RULES = [("*['kernel']", P(..., "data", "model")), ("[2]*['bias']", P(None, "data"))]


def specs(tree):
    return {
        jax.tree_util.keystr(path): tuple(leaf.spec)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def test_patterns():
    assert fits("*", "") and fits("*['kernel']", "[0]['kernel']") and fits("[0]*", "[0]['kernel']")
    assert not fits("['kernel']", "[0]['kernel']")
    assert not fits("*['kernel']", "[0]['k']")  # brackets are no class of letters
    assert not fits("[0]?*", "[0]['kernel']") and not fits("*e*e*e*", "[0]['kernel']")
    assert fits(lambda path: "kernel" in path, "[0]['kernel']")


def test_the_first_rule_that_fits_places_a_weight():
    found = specs(sharding.shardings(WEIGHTS, MESH, RULES))
    assert found == {
        "[0]['kernel']": ("data", "model"),
        "[1]['bias']": (),
        "[2]['layer'][0]['kernel']": (None, "data", "model"),
        "[2]['layer'][1]['bias']": (None, "data"),
    }
    found = specs(sharding.shardings(WEIGHTS, MESH, [("*", P()), *RULES]))
    assert set(found.values()) == {()}
    everywhere = sharding.shardings(WEIGHTS, MESH, [])
    assert all(leaf == NamedSharding(MESH, P()) for leaf in jax.tree.leaves(everywhere))


SPECS = {
    "of the depth": (P("model", ...), ("model", None, None)),
    "in the middle": (P("model", ..., "data"), ("model", None, "data")),
    "of no axis": (P("model", ..., None, "data"), ("model", None, "data")),
    "two axes for one": (P(..., ("data", "model")), (None, None, ("data", "model"))),
    "a plain tuple": ((..., "data"), (None, None, "data")),
}


@pytest.mark.parametrize(("spec", "wanted"), SPECS.values(), ids=SPECS)
def test_specs(spec, wanted):
    weights = {"kernel": jax.ShapeDtypeStruct((6, 8, 8), jnp.float32)}
    (found,) = jax.tree.leaves(sharding.shardings(weights, MESH, [("*", spec)]))
    assert tuple(found.spec) == wanted


def loose(path):
    return "kernel" in path


OPTIMIZERS = {
    "Adam": optim.Adam(1e-3),
    "AdamW": optim.AdamW(1e-3, where=loose),
    "Adagrad": optim.Adagrad(1e-3),
    "Lion": optim.Lion(1e-3),
    "RMSProp": optim.RMSProp(1e-3),
    "SGD": optim.SGD(1e-3),
    "SGD with momentum": optim.SGD(optim.CosineDecay(1e-3, 9), momentum=0.9),
    "Chain": optim.Chain(optim.ClipByGlobalNorm(1.0), optim.WeightDecay(0.1), optim.Adam(1e-3)),
    "Accumulate": optim.Accumulate(optim.Adam(1e-3), 2),
    "MasterWeights": optim.MasterWeights(optim.Lion(1e-3)),
    "ExponentialMovingAverage": optim.ExponentialMovingAverage(optim.Adam(1e-3)),
    "Freeze": optim.Freeze(optim.Adam(1e-3), where=loose),
    "all wrappers": optim.ExponentialMovingAverage(
        optim.Freeze(
            optim.MasterWeights(optim.Accumulate(optim.Chain(optim.Adam(1e-3)), 2)),
            where=lambda path: "bias" in path,
        )
    ),
    "optax.adamw": optax.adamw(1e-3),
    "optax.chain": optax.chain(optax.clip_by_global_norm(1.0), optax.trace(0.9), optax.scale(-1.0)),
    "optax.masked": optax.masked(
        optax.adam(1e-3), lambda tree: jax.tree.map(lambda leaf: leaf.ndim > 1, tree)
    ),
    "optax.MultiSteps": optax.MultiSteps(optax.adam(1e-3), 2),
    "optax.inject_hyperparams": optax.inject_hyperparams(optax.adam)(1e-3),
    "optax.partition": optax.multi_transform(
        {"a": optax.adam(1e-3), "b": optax.sgd(1e-3, momentum=0.9)}, ({"kernel": "a"}, {"bias": "b"}, "a")
    ),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_moments_lie_beside_their_weights(optimizer):
    weights, places = jax.eval_shape(MODEL.init, KEY, X)[0], sharding.shardings(WEIGHTS, MESH, RULES)
    state = jax.eval_shape(optimizer.init, weights)
    found = sharding.mirror(state, weights, MESH, places)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    # Independent of structures: the path of a moment ends in that of its weight.
    wanted, moments = specs(places), 0
    for (path, spec), leaf in zip(specs(found).items(), jax.tree.leaves(state), strict=True):
        ends = [weight for weight in wanted if path.endswith(weight)]
        assert spec == (wanted[max(ends, key=len)] if ends else ()), path
        assert bool(ends) == bool(leaf.shape), path
        moments += len(ends) > 0
    assert moments or optimizer is OPTIMIZERS["SGD"]


def test_a_state_that_looks_like_the_weights_from_afar():
    """A chain of two states, and two weights: both are tuples of two."""
    weights = jnp.ones((4, 2)), jnp.ones((4, 2))
    places = sharding.shardings(weights, MESH, [("[0]", P("data")), ("[1]", P(None, "model"))])
    optimizer = optax.chain(optax.trace(0.9), optax.ema(0.9))
    found = specs(sharding.mirror(optimizer.init(weights), weights, MESH, places))
    assert [spec for path, spec in found.items() if path.endswith("[0]")] == [("data",)] * 2
    assert [spec for path, spec in found.items() if path.endswith("[1]")] == [(None, "model")] * 2


def test_other_shapes_and_single_arrays():
    weights = jnp.ones((256, 128))
    places = sharding.shardings(weights, MESH, [("*", P("data", "model"))])
    state = jax.eval_shape(optax.adafactor(1e-3).init, weights)  # a row and a column in place of the matrix
    found = sharding.mirror(state, weights, MESH, places)
    assert {tuple(leaf.spec) for leaf in jax.tree.leaves(found)} == {()}
    found = sharding.mirror(jax.eval_shape(optim.Adam(1e-3).init, weights), weights, MESH, places)
    assert [tuple(leaf.spec) for leaf in jax.tree.leaves(found)] == [(), ("data", "model"), ("data", "model")]
    assert sharding.mirror(jnp.ones(()), (), MESH, ()) == NamedSharding(MESH, P())  # no weights


def mesh():
    return jax.make_mesh((2, 1), ("data", "model"), axis_types=(AxisType.Auto,) * 2)


def test_init_makes_each_variable_in_place():
    model = nn.Series(nn.Linear(8), nn.BatchNorm(), nn.Bias())
    optimizer = optim.ExponentialMovingAverage(optim.MasterWeights(optim.Adam(1e-3)))
    x = jnp.ones((3, 4))
    arguments = model, optimizer, jax.random.key(0), x, mesh(), RULES[:1]
    made, described = sharding.init(*arguments), sharding.abstract(*arguments)
    trainables, non_trainables = model.init(jax.random.key(0), x)
    for a, b in zip(
        jax.tree.leaves(made), jax.tree.leaves((trainables, non_trainables, optimizer.init(trainables)))
    ):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    for a, b in zip(jax.tree.leaves(made), jax.tree.leaves(described), strict=True):
        assert (a.shape, a.dtype, a.sharding) == (b.shape, b.dtype, b.sharding) and isinstance(
            b, jax.ShapeDtypeStruct
        )
    weights, rest, state = made
    assert (
        weights[0]["kernel"].sharding.spec == P("data", "model")
        and not weights[0]["kernel"].is_fully_replicated
    )
    assert all(leaf.is_fully_replicated for leaf in jax.tree.leaves(rest)) and jax.tree.leaves(rest)
    # Weights, masters and averages are equal, yet arrays of their own, so all may be donated.
    step = jax.jit(lambda weights, state: optimizer.step(weights, state, weights)[1], donate_argnums=(0, 1))
    step(weights, state)


@pytest.mark.parametrize("context", [False, True], ids=["arrays", "set_mesh"])
def test_explicit_meshes_train_as_automatic_ones(context):
    """The default of ``jax.make_mesh`` in JAX 0.12: weights, data and key on it, or in the context of ``jax.set_mesh``."""
    model, x = (
        nn.Series(nn.Linear(8), nn.BatchNorm(), nn.Dropout(0.5), nn.Linear(2)),
        np.random.default_rng(0).normal(size=(4, 6)),
    )
    rules, statistics = [("*['kernel']", P(..., "model", None))], [("*", P("model"))]

    def train(mesh):
        optimizer = optim.Adam(1e-1)
        data = NamedSharding(mesh, P("data"))
        inputs = jax.device_put(x.astype("float32"), data), jax.device_put(jnp.arange(4) % 2, data)
        begun = sharding.init(
            model, optimizer, jax.random.key(0), inputs[0], mesh, rules, non_trainables_rules=statistics
        )
        assert begun[1][1]["mean"].sharding.spec == P("model")
        assert all(leaf.sharding.mesh.axis_types == (AxisType.Auto,) * 2 for leaf in jax.tree.leaves(begun))
        places = jax.tree.map(lambda leaf: NamedSharding(mesh, leaf.sharding.spec), begun)
        begun = jax.device_put(begun, places)  # back to the mesh as it was given
        step = training.make_step(
            model, lambda y, labels: -jax.nn.log_softmax(y)[jnp.arange(4), labels].mean(), places
        )
        state, told = training.State(*begun), []
        for key in jax.random.split(jax.random.key(1), 2):
            state, value = step(optimizer, state, key, *inputs)
            told.append(float(value))
        trained = training.fit(jax.random.key(2), step, optimizer, state, *inputs, epochs=2, batch_size=4)
        accuracy = training.make_evaluation(model, training.is_right)(*trained[:2], *inputs)
        assert (
            trained[1][1]["mean"].sharding.spec == P("model")
            and not trained[1][1]["mean"].is_fully_replicated
        )
        return jax.tree.map(np.asarray, (trained, told, accuracy))

    def on(kind):
        mesh = jax.make_mesh((1, 2), ("data", "model"), axis_types=(kind,) * 2)
        with jax.set_mesh(mesh) if context else contextlib.nullcontext():
            return train(mesh)

    for a, b in zip(*map(jax.tree.leaves, (on(AxisType.Auto), on(AxisType.Explicit))), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("twin", [False, True], ids=["explicit", "twin"])
@pytest.mark.parametrize("context", [False, True], ids=["arrays", "set_mesh"])
def test_what_is_done_with_weights_works_on_explicit_meshes(context, twin, tmp_path):
    """With weights on the mesh as it was given, or on its twin, where a step leaves them."""
    mesh = jax.make_mesh((1, 2), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
    w = np.arange(8, dtype="float32").reshape(4, 2)
    with jax.set_mesh(mesh) if context else contextlib.nullcontext():

        def put(array):
            place = NamedSharding(mesh, P("model"))
            return {"w": jax.device_put(array, meshes.accept(place) if twin else place)}

        average = trees.average(put(w), put(w + 1), 0.5)
        np.testing.assert_array_equal(average["w"], w + 0.5)
        assert average["w"].sharding.spec == P("model")
        followed = training.follow((put(w), put(w)), training.State(put(w + 1), put(w + 2), ()), 0.5)
        np.testing.assert_array_equal(followed[0]["w"], w + 0.5)
        np.testing.assert_array_equal(followed[1]["w"], w + 1)
        assert precision.all_finite(put(w)) and not precision.all_finite(put(w + np.float32("inf")))
        saving.save_weights(tmp_path / "w", put(w))
        for rename in (None, {"w": ("w", lambda w: w * 1)}):
            found = saving.load_weights(tmp_path / "w", put(w), rename=rename)["w"]
            np.testing.assert_array_equal(found, w)
            assert (
                found.sharding.spec == P("model") and found.sharding.mesh.axis_types == (AxisType.Auto,) * 2
            )
            trees.average(put(w), {"w": found}, 0.5)


def test_init_takes_shapes_further_inputs_and_optax():
    model = nn.MultiHeadAttention(heads=2)
    x = jax.ShapeDtypeStruct((1, 3, 4), jnp.float32)
    rules = [("['query_kernel']", P("data"))]
    key = jax.random.key(0)
    trainables, _, (state, _) = sharding.init(model, optax.adam(1e-3), key, x, mesh(), rules, context=x)
    assert (
        state.mu["query_kernel"].sharding
        == trainables["query_kernel"].sharding
        == NamedSharding(mesh(), P("data"))
    )


def call(rules, strict=False, weights=WEIGHTS, where=MESH):
    return lambda: sharding.shardings(weights, where, rules, strict=strict)


def begin(function, **others):
    arguments = dict(model=MODEL, optimizer=optim.SGD(0.1), key=KEY, x=X, mesh=MESH, rules=[]) | others
    return lambda: function(**arguments)


WRONG = {
    "an index in layers of different kinds": (
        call([("*[0]['kernel']", P())], weights=[{"kernel": jnp.ones(2), "head": [{"kernel": jnp.ones(2)}]}]),
        r"rules\[0\], .*, fits layers of different kinds, \[0\]\['head'\]\[0\]\['kernel'\] and \[0\]\['kernel'\]: write ",
    ),
    "a misspelt pattern": (
        call([("*['kernal']", P("data"))]),
        r"rules\[0\], \"\*\['kernal'\]\", fits no weight: their paths are \[0\]\['kernel'\], .*; mend the pattern",
    ),
    "a spec that is too long": (
        call([("*['bias']", P("data", None))]),
        r"\[1\]\['bias'\] of shape \(8,\), rules\[0\]: the spec \('data', None\) is for 2 axes, but it has 1: shorten",
    ),
    "too long, but for dots": (call([("*", P(..., None, None))]), r"\[1\]\['bias'\].* is for 2 axes, but it has 1"),
    "no such axis": (
        call([("[0]*", P("modle"))]),
        r"\[0\]\['kernel'\] of shape \(4, 8\), rules\[0\]: the mesh has no axis 'modle': its axes are \{'data': 4, 'model': 2\}",
    ),
    "an axis twice": (call([("[0]*", P(("data", "model"), "data"))]), r"the mesh axis 'data' is named twice"),
    "an axis that does not divide": (
        call([("[2]*", P("data"))]),
        r"axis 0 of size 6 cannot be shared out evenly over 4 devices, the size of 'data' in the mesh: choose another",
    ),
    "two that do not divide": (
        call([("[2]*", P(("data", "model")))]),
        r"axis 0 of size 6 cannot be shared out evenly over 8 devices, the size of 'data' x 'model'",
    ),
    "no rule, strictly": (
        call(RULES, strict=True),
        r"\[1\]\['bias'\] of shape \(8,\) fits no rule: write one, such as \('\*', PartitionSpec\(\)\)",
    ),
    "a number for a weight": (call([], weights={"w": 1.0}), r"\['w'\] expects an array .*, got float"),
    "a dict of rules": (call({"*": P()}), r"rules must be a list of pairs .*, got \{'\*': "),
    "a rule without a spec": (call(["*"]), r"rules\[0\] must be a pair \(pattern, PartitionSpec\), got '\*'"),
    "a number for a pattern": (call([(0, P())]), r"rules\[0\]: the pattern must be text .*, got 0"),
    "text for a spec": (call([("*", "data")]), r"rules\[0\]: the spec must be a PartitionSpec .*, got 'data'"),
    "dots twice": (call([("*", (..., "data", ...))]), r"rules\[0\]: the spec must be .* at most one '\.\.\.'"),
    "devices for a mesh": (call([], where=jax.devices()), r"^shardings: mesh must be a jax\.sharding\.Mesh, .*got \["),
    "mirror without a mesh": (lambda: sharding.mirror((), (), None, ()), r"^mirror: mesh must be .*, got None"),
    "mirror of another model": (
        lambda: sharding.mirror((), WEIGHTS, MESH, {}),
        r"^mirror: shardings expects one sharding a weight, in the structure of the trainables, .*make them with",
    ),
    "mirror with specs": (
        lambda: sharding.mirror((), jnp.ones(3), MESH, 3),
        r"^mirror: shardings expects one sharding a weight",
    ),
    "init without an optimizer": (begin(sharding.init, optimizer=None), r"^init: optimizer must be .*, got None"),
    "init with a class": (begin(sharding.init, optimizer=optim.SGD), r"^init: optimizer must be .*, got SGD"),
    "axes in a list": (call([("[2]*", (["data", "model"],))]), r"axis 0 of size 6 cannot .* over 8 devices"),
    "init with an axis for a mesh": (begin(sharding.init, mesh="data"), r"^init: mesh must be .*, got 'data'"),
    "init with a class for a model": (begin(sharding.init, model=nn.Linear), r"^init: model must be a layer, .*, got the class Lin"),
    "init with wrong rules": (begin(sharding.init, rules=[("*", P("data"))]), r"^shardings: .*\n  \[2\].* of size 6"),
    "init of a list": (begin(sharding.init, x=[1.0]), r"^Series: x\[0\] expects an array"),
    "abstract without an optimizer": (begin(sharding.abstract, optimizer=1), r"^abstract: optimizer must be .*, got 1"),
    "abstract without a mesh": (begin(sharding.abstract, mesh=None), r"^abstract: mesh must be .*, got None"),
    "abstract with wrong rules": (begin(sharding.abstract, rules=[("a", P())]), r"rules\[0\], 'a', fits no weight"),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_uses(wrong, message):
    with pytest.raises(ValueError, match="(?s)" + message):
        wrong()


def test_an_earlier_rule_makes_an_index_clear():
    weights = ({"kernel": X}, {"kernel": X}, {"mlp": ((), {"kernel": X})})
    found = sharding.shardings(weights, MESH, [("[1]*", P()), ("*[1]['kernel']", P(None, "model"))])
    assert [tuple(leaf.spec) for leaf in jax.tree.leaves(found)] == [(), (), (None, "model")]


def test_everything_that_is_wrong_is_said_at_once():
    rules = [("[0]*", P("dota", "data", "model")), ("nothing", P()), ("[2]*", P("data"))]
    with pytest.raises(ValueError) as caught:
        sharding.shardings(WEIGHTS, MESH, rules, strict=True)
    lines = str(caught.value).splitlines()
    assert len(lines) == 6 and [line.strip()[:3] for line in lines[1:5]] == ["[0]", "[1]", "[2]", "[2]"]
    assert "rules[1], 'nothing', fits no weight" in lines[5]
