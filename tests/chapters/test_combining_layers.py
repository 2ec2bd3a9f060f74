"""*Combining layers*: the containers that its reader writes hold a network that learns, and agree with the package's."""

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import data, nn
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/combining_layers.ipynb", "Series", "Composite", "Gated", "FromShape", "Stack", "Remat"
    )


def test_a_network_in_the_readers_containers_trains(code):
    images, labels = data.fashion_mnist()[0]
    images, labels = jnp.asarray(images[:1000], jnp.float32) / 255, jnp.asarray(labels[:1000])
    Series, Stack, Remat = code["Series"], code["Stack"], code["Remat"]
    block = nn.Residual(Series((nn.Linear(32), nn.F(jax.nn.relu))))
    model = Series((nn.Flatten(2), nn.Linear(32), Stack(Remat(block), 3), nn.Dropout(0.1), nn.Linear(10)))
    trainables, non_trainables = model.init(jax.random.key(0), images[:1])

    def loss(trainables, key):
        logits, _ = model.fwd(images, trainables, non_trainables, key=key)
        return -jnp.mean(jax.nn.log_softmax(logits)[jnp.arange(1000), labels])

    @jax.jit
    def step(trainables, key):
        value, gradients = jax.value_and_grad(loss)(trainables, key)
        return jax.tree.map(lambda w, g: w - 0.02 * g, trainables, gradients), value

    losses = []
    for key in jax.random.split(jax.random.key(1), 40):
        trainables, value = step(trainables, key)
        losses.append(float(value))
    assert losses[-1] < 0.6 * losses[0]


def test_the_readers_stack_is_a_series(code):
    block, x = nn.Linear(4), jax.random.normal(jax.random.key(0), (3, 4))
    trainables, _ = code["Stack"](block, 3).init(jax.random.key(1), x)
    y, _ = code["Stack"](block, 3).fwd(x, trainables, ())
    each = tuple({"kernel": kernel} for kernel in trainables["kernel"])
    assert jnp.allclose(y, nn.Series(*[block] * 3).fwd(x, each, ())[0], atol=1e-5)


def test_the_readers_composite_is_the_packages(code):
    class FromShape(code["FromShape"]):
        value: nn.Layer
        gate: nn.Layer
        forward = code["Gated"].forward

    class Gated(nn.Composite):
        value: nn.Layer
        gate: nn.Layer

        def forward(self, call, x):
            return call.value(x) * jax.nn.sigmoid(call.gate(x))

    children, x = (nn.Linear(3), nn.Linear(3)), jnp.ones((2, 4))
    variables = Gated(*children).init(jax.random.key(0), x)
    expected, _ = Gated(*children).fwd(x, *variables)
    spec = jax.ShapeDtypeStruct(x.shape, x.dtype)
    for cls, given in [(code["Gated"], x), (FromShape, spec)]:
        trainables, non_trainables = cls(*children).init(jax.random.key(0), given)
        assert jax.tree.all(jax.tree.map(jnp.array_equal, trainables, variables[0]))
        assert jnp.allclose(cls(*children).fwd(x, trainables, non_trainables)[0], expected)
