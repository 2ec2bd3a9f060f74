"""What layers note, and further entries of a Composite."""

import operator
import pickle

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import nn
from mlax_tutorial.precision import Policy
from tests.nn.test_composite import close

QUICK_TO_COMPILE = True
X = jax.random.normal(jax.random.key(0), (3, 4))


class Noted(nn.Composite):
    layer: nn.Layer

    def forward(self, call, x):
        y = call.layer(x)
        call.note("size", jnp.sum(y**2))
        return y


BLOCK = Noted(nn.Linear(4))
MODEL = nn.Series(
    BLOCK,
    nn.Stack(BLOCK, 2),
    nn.Vmap(BLOCK, 3, shared=True),
    nn.F(lambda x: x.sum(-2)),
    nn.Remat(BLOCK),
    Policy("float32").apply(BLOCK),
)


def test_notes_come_out_of_every_container():
    variables = MODEL.init(jax.random.key(1), X)
    (y, updated), noted = jax.jit(nn.notes(MODEL))(X, *variables)
    close((y, updated), MODEL.fwd(X, *variables))
    _, captured = nn.capture(MODEL)(X, *variables)
    assert {path: value.shape for path, value in noted["size"].items()} == {
        "[0]": (), "[1][…]": (2,), "[2][…]": (3,), "[4]": (), "[5]": ()
    }  # fmt: skip
    assert noted.keys() == {"size"}
    close(noted["size"]["[0]"], jnp.sum(captured["[0]"] ** 2))
    close(noted["size"]["[1][…]"], jnp.sum(captured["[1][…]"] ** 2, axis=(1, 2)))
    _, sizes = nn.capture(MODEL, "size")(X, *variables)
    close(sizes, noted["size"])


def test_a_loss_of_notes_has_gradients():
    trainables, rest = BLOCK.init(jax.random.key(1), X)

    def loss(trainables):
        _, noted = nn.notes(BLOCK)(X, trainables, rest)
        return sum(noted["size"].values())

    def by_hand(trainables):
        return jnp.sum((X @ trainables["layer"]["kernel"]) ** 2)

    close(jax.grad(loss)(trainables), jax.grad(by_hand)(trainables))


def test_the_same_note_twice_and_a_child_called_twice():
    def forward(self, call, x):
        call.note("size", 1)
        call.note("size", 2)
        return call.layer(call.layer(x))

    Twice = type("Twice", (nn.Composite,), {"__annotations__": {"layer": nn.Layer}, "forward": forward})
    model = nn.Series(Twice(BLOCK))
    _, noted = nn.notes(model)(X, *model.init(jax.random.key(1), X))
    assert (
        noted["size"].keys() == {"[0]", "[0]#2", "[0].layer", "[0].layer#2"} and noted["size"]["[0]#2"] == 2
    )


def test_wrong_uses():
    variables = MODEL.init(jax.random.key(1), X)
    with pytest.raises(ValueError, match=r"capture: no layer notes 'sizes'; what is noted is \['size'\]"):
        nn.capture(MODEL, "sizes")(X, *variables)
    with pytest.raises(ValueError, match="notes: model must be a layer"):
        nn.notes(jnp.sin)

    def forward(self, call, x):
        return jax.vmap(lambda x: call.note("size", x.sum()) or x)(call.layer(x))

    Inside = type("Inside", (nn.Composite,), {"__annotations__": {"layer": nn.Layer}, "forward": forward})
    with pytest.raises(
        nn.LayerError,
        match=r"Inside: call.note\('size', …\) was used inside another transformation: return the value",
    ):
        Inside(nn.Linear(4)).init(jax.random.key(0), X)


class Mapped(nn.Composite):
    layer: nn.Layer

    def forward(self, call, x):
        return jax.vmap(call.layer)(x)


def test_what_is_noted_inside_a_transformation_is_not_lost_in_silence():
    model = Mapped(BLOCK)
    variables = model.init(jax.random.key(1), X)
    y, _ = model.fwd(X, *variables)
    close(nn.capture(model)(X, *variables)[0][0], y)  # which leaves the outputs there out
    for look in (nn.notes(model), nn.capture(model, "size")):
        with pytest.raises(
            nn.LayerError,
            match=r"^Mapped: call.layer was used inside .*, but it notes 'size', which would be lost",
        ):
            look(X, *variables)
    silent = Mapped(nn.Linear(4))
    assert nn.notes(silent)(X, *silent.init(jax.random.key(1), X))[1] == {}


def test_what_layers_compute_only_to_show_it_stands_beside_the_notes():
    attention = nn.Residual(nn.MultiHeadAttention(2))
    model = nn.Series(BLOCK, nn.Stack(attention, 3), nn.Remat(attention))
    variables = model.init(jax.random.key(1), X)
    (y, _), noted = jax.jit(nn.notes(model, observe="weights"))(X, *variables)
    close(y, model.fwd(X, *variables)[0])
    assert jax.tree.map(jnp.shape, noted) == {
        "size": {"[0]": ()},
        "weights": {"[1][…].layer": (3, 2, 3, 3), "[2].layer": (2, 3, 3)},
    }
    close(noted["weights"], nn.capture(model, "weights")(X, *variables)[1])
    assert nn.notes(model)(X, *variables)[1].keys() == {"size"}
    assert nn.capture(model, "size")(X, *variables)[1].keys() == {"[0]"}
    with pytest.raises(ValueError, match=r"^notes: no layer notes 'wieghts'; what is noted is \['size'\]"):
        nn.notes(model, observe=("wieghts",))(X, *variables)
    with pytest.raises(ValueError, match=r"^notes: observe must be names of what layers show, .*, got 3"):
        nn.notes(model, observe=3)


@pytest.mark.parametrize("name, got", [("", "str ''"), (3, "int 3")])
def test_a_note_has_a_name(name, got):
    def forward(self, call, x):
        call.note(name, 1.0)
        return call.layer(x)

    Noting = type("Noting", (nn.Composite,), {"__annotations__": {"layer": nn.Layer}, "forward": forward})
    with pytest.raises(
        nn.LayerError, match=f'^Noting: call.note expects a name, "penalty", say, got {got}: '
    ):
        Noting(nn.Linear(4)).init(jax.random.key(0), X)


class Autoencoder(nn.Composite):
    encoder: nn.Layer
    decoder: nn.Layer

    def forward(self, call, x):
        return call.decoder(call.encoder(x))

    @nn.entry
    def encode(self, call, x, *, scale=1.0):
        """The code of an image."""
        return call.encoder(x) * scale


class Outer(nn.Composite):
    model: nn.Layer

    def forward(self, call, x):
        return call.model(x), call.model.encode(x, scale=2.0)


def test_a_second_entry():
    model = Autoencoder(nn.Series(nn.Linear(2), nn.BatchNorm(), nn.Dropout(0.5)), nn.Linear(4))
    trainables, rest = model.init(jax.random.key(1), X)
    y, updated = jax.jit(model.encode, static_argnames="inference_mode")(
        X, trainables, rest, key=jax.random.key(2)
    )
    wanted, inner = model.encoder.fwd(X, trainables["encoder"], rest["encoder"], key=jax.random.key(2))
    assert y.shape == wanted.shape and updated.keys() == rest.keys()
    close(updated["encoder"], inner)
    y, _ = model.encode(X, trainables, rest, inference_mode=True, scale=3.0)
    close(y, 3 * model.encoder.fwd(X, trainables["encoder"], rest["encoder"], inference_mode=True)[0])
    assert model.encode.__doc__ == "The code of an image."

    outer = Outer(model)
    (_, code), _ = outer.fwd(X, {"model": trainables}, {"model": rest}, inference_mode=True)
    close(code, 2 / 3 * y)
    (found, _), captured = nn.capture(model.encode)(X, trainables, rest, inference_mode=True)
    assert {".encoder", ".encoder[0]"} <= captured.keys() and found.shape == (3, 2)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        model.encode(X, trainables, rest, size=1, inference_mode=True)


INNER = Autoencoder(nn.Series(nn.Linear(2), nn.BatchNorm(), nn.Dropout(0.5)), nn.Linear(4))
AROUND = {
    "Policy": (Policy("float32").apply, False),
    "Remat": (nn.Remat, False),
    "Inference": (nn.Inference, True),
    "all": (lambda model: Policy("float32").apply(nn.Remat(nn.Inference(model))), True),
}


@pytest.mark.parametrize("name", AROUND)
def test_a_second_entry_through_a_layer_around(name):
    around, inference = AROUND[name]
    model = around(INNER)
    variables = model.init(jax.random.key(1), X)
    wanted = INNER.encode(X, *variables, key=jax.random.key(2), inference_mode=inference, scale=2.0)
    close(model.encode(X, *variables, key=jax.random.key(2), scale=2.0), wanted)
    close(jax.jit(model.encode)(X, *variables, key=jax.random.key(2), scale=2.0), wanted)
    assert model.encode == model.encode  # so jax.jit traces once
    (y, _), captured = nn.capture(model.encode)(X, *variables, key=jax.random.key(2))
    assert y.shape == (3, 2) and any(path.endswith(".encoder") for path in captured)
    outer = Outer(model)
    (_, code), _ = outer.fwd(X, *outer.init(jax.random.key(1), X), key=jax.random.key(2))
    assert code.shape == (3, 2)
    assert pickle.loads(pickle.dumps(model)) == model
    with pytest.raises(AttributeError, match="object has no attribute 'decrypt'"):
        _ = model.decrypt


def test_a_second_entry_of_copies_and_of_a_stack():
    model = nn.Vmap(INNER, 3, shared=True)
    variables = model.init(jax.random.key(1), X)
    y, updated = model.encode(X, *variables, inference_mode=True)
    assert y.shape == (3, 3, 2) and jax.tree.map(jnp.shape, updated) == jax.tree.map(jnp.shape, variables[1])
    for copy in range(3):
        one = jax.tree.map(operator.itemgetter(copy), variables)
        close(y[:, copy], INNER.encode(X, *one, inference_mode=True)[0])
    half = Policy("bfloat16").apply(INNER)
    found, _ = half.encode(X, *half.init(jax.random.key(1), X), inference_mode=True)
    assert found.dtype == jnp.float32 and (found == found.astype(jnp.bfloat16).astype(jnp.float32)).all()
    exempt = Policy("bfloat16").apply(Policy("float32").apply(INNER))  # at the end it keeps its precision
    variables = exempt.init(jax.random.key(1), X)
    close(
        exempt.encode(X, *variables, inference_mode=True),
        INNER.encode(X.astype(jnp.bfloat16).astype(jnp.float32), *variables, inference_mode=True),
    )
    with pytest.raises(
        AttributeError, match=r"^Stack has no entry 'encode', for each layer in it goes on with"
    ):
        _ = nn.Stack(INNER, 2).encode
