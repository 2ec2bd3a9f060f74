"""Surgery: every layer can be reached and replaced, and names can be had that stay."""

import dataclasses
import inspect
import operator
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn
from mlax_tutorial.precision import Policy
from tests.nn.test_composite import close

QUICK_TO_COMPILE = True
X = jax.random.normal(jax.random.key(0), (3, 4))


class Perceptron(nn.Composite):
    """Children in a field, in a tuple, and from a hyperparameter."""

    norm: nn.Layer
    blocks: tuple
    sizes: tuple

    def children(self):
        return {"hidden": tuple(nn.Linear(size) for size in self.sizes), "head": nn.Linear(2)}

    def forward(self, call, x):
        x = call.norm(x)
        for layer in (*call.blocks, *call.hidden):
            x = layer(x)
        return call.head(x)


def bigger(path, layer):
    return nn.Series(layer, nn.Bias()) if isinstance(layer, nn.Linear) else layer


def paths_of(tree):
    return [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(tree)]


def count(tree, name):
    return sum(path.endswith(f"['{name}']") for path in paths_of(tree))


def everywhere(layer):
    """One model that holds ``layer`` in every way there is: eleven times."""
    block = nn.Residual(nn.Series(layer, nn.F(jnp.tanh)), shortcut=layer)
    return nn.Series(
        nn.Stack(block, 2),
        nn.Vmap(nn.Remat(layer), 2, shared=True),
        nn.F(lambda x: x.sum(-2)),
        nn.Parallel(a=layer, b=nn.Inference(layer)),
        nn.F(sum),
        Policy("bfloat16").apply(nn.Series(layer, Policy("float32").apply(layer))),
        Perceptron(nn.LayerNorm(), (layer, nn.Series(layer)), (4,)),
    )


def test_replace_reaches_every_layer():
    model = everywhere(nn.Linear(4))
    changed, paths = nn.replace(model, bigger), []
    nn.replace(changed, lambda path, layer: paths.append((path, type(layer))) or bigger(path, layer))
    assert sum(kind is nn.Linear for _, kind in paths) == 11
    assert sum(kind is nn.Bias for _, kind in paths) == 11
    assert {"[0][…].layer[0]", "[1][…]", "[3].a", "[5][1]", "[6].hidden[0]", "[6].head"} <= {
        path for path, _ in paths
    }
    before, after = (m.init(jax.random.key(1), X)[0] for m in (model, changed))
    assert count(after, "kernel") == count(before, "kernel") == 11
    assert count(after, "bias") - count(before, "bias") == 11
    assert changed.fwd(X, *changed.init(jax.random.key(1), X))[0].shape == (3, 2)


def test_what_children_makes_is_an_attribute_and_shows_when_it_was_replaced():
    model = Perceptron(nn.LayerNorm(), (), (4, 8))
    assert model.hidden == (nn.Linear(4), nn.Linear(8)) and model.head == nn.Linear(2)
    changed = nn.replace(model, lambda path, layer: nn.Linear(5) if path == ".head" else layer)
    assert changed.head == nn.Linear(5) and changed.hidden == model.hidden
    assert changed != model and hash(changed) != hash(model)
    assert repr(changed) == repr(model)[:-1] + ", head=Linear(5))" and "head" not in repr(model)
    back = pickle.loads(pickle.dumps(changed))
    assert back == changed and back.head == nn.Linear(5)
    assert nn.replace(
        changed, lambda path, layer: nn.Linear(2) if path == ".head" else layer
    ).head == nn.Linear(2)
    assert changed.fwd(X, *changed.init(jax.random.key(1), X))[0].shape == (3, 5)


def test_the_weights_of_what_was_not_replaced_still_fit():
    model = Perceptron(nn.LayerNorm(), (nn.Linear(4),), (4,))
    trainables, rest = model.init(jax.random.key(1), X)
    changed = nn.replace(
        model, lambda path, layer: nn.Series(layer, nn.F(jnp.negative)) if path == ".head" else layer
    )
    y, _ = changed.fwd(X, trainables | {"head": (trainables["head"], ())}, rest)
    close(y, -model.fwd(X, trainables, rest)[0])


class Constructed(nn.Composite):
    """Has a constructor of its own."""

    size: int

    def __init__(self, size):
        vars(self).update(size=size)
        self.__post_init__()

    def children(self):
        return {"head": nn.Linear(self.size)}

    def forward(self, call, x):
        return call.head(x)


def test_another_field_keeps_what_was_replaced():
    """``dataclasses.replace`` builds the layer anew, by its fields."""

    def change(path, layer):
        return nn.LoRA(layer, 1) if path == ".head" else layer

    changed = nn.replace(Perceptron(nn.LayerNorm(), (), (4, 8)), change)
    other = dataclasses.replace(changed, norm=nn.RMSNorm())
    assert other == nn.replace(Perceptron(nn.RMSNorm(), (), (4, 8)), change) != changed
    assert "_replaced" not in str(inspect.signature(Perceptron)) and "_replaced" not in Perceptron._fields
    assert dataclasses.replace(Constructed(3), size=4) == Constructed(4)
    assert nn.replace(Constructed(3), change).head == nn.LoRA(nn.Linear(3), 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda path, layer: layer,
            r"^replace: change left all layers as they are; their paths are '\[0\]', ''\.",
        ),
        (
            lambda path, layer: jnp.sin,
            r"^replace: change must return a layer, got ufunc sin|got .* for model\[0\]",
        ),
    ],
)
def test_a_change_of_nothing_or_into_nothing_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        nn.replace(nn.Series(nn.Linear(3)), change)
    with pytest.raises(ValueError, match="replace: model must be a layer"):
        nn.replace(nn.Linear, change)


def test_names_survive_an_inserted_dropout():
    plain = nn.Series(
        nn.Linear(8), nn.F(jnp.tanh), nn.Residual(nn.Series(nn.Linear(8), nn.Bias())), nn.Linear(2)
    )
    longer = nn.Series(nn.Dropout(0.5), nn.Linear(8), nn.F(jnp.tanh), nn.Dropout(0.1), *plain[2:])
    trainables, trained = (nn.name_layers(model).init(jax.random.key(1), X)[0] for model in (plain, longer))
    assert sorted(paths_of(trainables)) == sorted(paths_of(trained))
    assert "['linear_2']['kernel']" in paths_of(
        trained
    ) and "['residual']['layer']['bias']['bias']" in paths_of(trained)
    assert nn.name_layers(nn.name_layers(plain)) == nn.name_layers(plain)
    kept = nn.name_layers(nn.Series(body=nn.Series(nn.Linear(3)), head=nn.Linear(2)))
    assert repr(kept) == "Series(body=Series(linear=Linear(3)), head=Linear(2))"


def test_no_layer_is_lost_for_its_name():
    Linear_2 = type("Linear_2", (nn.Linear,), {})
    layers = (nn.Linear(1), Linear_2(3), nn.Linear(2), Linear_2(9))
    named = nn.name_layers(nn.Series(*layers))
    assert named.layers == layers and named.names == ("linear", "linear_2", "linear_3", "linear_2_2")
    with pytest.raises(ValueError, match=r"^name_layers: model must be a layer, .* got int 3"):
        nn.name_layers(3)


class Norm(nn.Composite):
    norm: nn.Layer
    teacher: object = False

    def forward(self, call, x):
        return call.norm(x, **({"inference_mode": self.teacher} if self.teacher else {}))


NORM = nn.Series(nn.BatchNorm(), nn.Dropout(0.5))


def test_one_child_in_inference():
    given = NORM.init(jax.random.key(1), X)[1]
    wanted, same = NORM.fwd(X, *NORM.init(jax.random.key(1), X), inference_mode=True)
    for model in (nn.Inference(NORM), Norm(NORM, teacher=True), Norm(nn.Inference(NORM))):
        trainables, rest = model.init(jax.random.key(1), X)
        y, updated = model.fwd(X, trainables, rest)  # no key
        close(y, wanted)
        close(updated, rest)
    model = Norm(NORM)
    y, updated = model.fwd(X, *model.init(jax.random.key(1), X), key=jax.random.key(2))
    assert (
        np.abs(y - wanted).max() > 0.1
        and jax.tree.leaves(updated)[0].sum() != jax.tree.leaves(given)[0].sum()
    )
    model = Norm(NORM, teacher=1)
    with pytest.raises(nn.LayerError, match="inference_mode must be a Python bool, got int 1"):
        model.init(jax.random.key(0), X)


@pytest.mark.parametrize("shared", [True, False])
def test_vmap_is_a_loop_over_its_copies(shared):
    layer = nn.Series(nn.Linear(4), nn.BatchNorm(), nn.Dropout(0.5))
    model = nn.Vmap(layer, 3, shared=shared)
    x = X if shared else jnp.stack([X, 2 * X, -X], axis=1)
    trainables, rest = model.init(jax.random.key(1), x)
    key = jax.random.key(2)
    y, updated = jax.jit(model.fwd)(x, trainables, rest, key=key)
    ys, states = [], []
    for i, each in enumerate(jax.random.split(jax.random.key(2), 3)):
        one = jax.tree.map(operator.itemgetter(i), (trainables, rest))
        found = layer.fwd(x if shared else x[:, i], *one, key=each)
        ys.append(found[0])
        states.append(found[1])
    close((y, updated), (jnp.stack(ys, axis=1), jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)))
    assert np.unique(jax.tree.leaves(trainables)[-1].round(4)).size > 12  # each drawn by itself


def test_copies_of_what_has_no_variables():
    x = jnp.ones(4)
    y, _ = nn.Vmap(nn.Dropout(0.5), 3, shared=True).fwd(x, (), (), inference_mode=True)
    assert y.shape == (3, 4)


def test_copies_decode_side_by_side():
    layer = nn.Recurrent(nn.GRUCell(3))
    model, x = nn.Vmap(layer, 2, shared=True, axis=-3), jax.random.normal(jax.random.key(0), (5, 4))
    trainables, rest = model.init(jax.random.key(1), x)
    cache, whole = model.init_cache(x[:1], 5), model.fwd(x, trainables, rest)[0]
    for step in range(5):
        y, cache = model.decode(x[step : step + 1], trainables, rest, cache)
        close(y[:, 0], whole[:, step])
    with pytest.raises(nn.LayerError, match="Vmap: does not decode, for its copies lie on axis -2"):
        nn.Vmap(layer, 2, shared=True).init_cache(x[:1], 5)
