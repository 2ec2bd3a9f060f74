"""Hyperparameters count by value and type, functions by identity; they travel by pickle, and a copy of a layer is the layer."""

import copy
import dataclasses
import enum
import functools
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from mlax_tutorial import nn

initializers = jax.nn.initializers


class Holder(nn.Layer):
    """Holds any value and multiplies by it."""

    value: object = 1

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * self.value, non_trainables


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.float64(2), 2.0),
        (np.float32(2), np.float64(2)),
        (np.int32(2), np.int64(2)),
        (np.bool_(True), True),
        (ml_dtypes.bfloat16(2), np.float16(2)),
        (complex(0.0, 0.0), complex(0.0, -0.0)),
        (complex(0.0, 0.0), complex(-0.0, 0.0)),
        (complex(1), 1.0),
        (np.float32(0.0), np.float32(-0.0)),
        (frozenset({1}), frozenset({1.0})),
        (frozenset({1}), frozenset({True})),
        ((1, (2,)), (1, (2.0,))),
        (functools.partial(max, 1), functools.partial(max, 1.0)),
        (functools.partial(max, default=1), functools.partial(max, default=True)),
        (functools.partial(max, 1), functools.partial(min, 1)),
        (functools.partial(max, default=1), functools.partial(max, key=1)),
        (initializers.normal(1), initializers.normal(1.0)),
        (initializers.lecun_normal(), initializers.he_normal()),
    ],
)
def test_values_that_python_or_the_eye_confuses_are_told_apart(a, b):
    assert Holder(a) != Holder(b) and jax.tree.structure(Holder(a)) != jax.tree.structure(Holder(b))


@pytest.mark.parametrize(
    "make",
    [
        lambda: float("nan"),
        lambda: np.float32("nan"),
        lambda: complex("nan"),
        lambda: frozenset({1, "a"}),
        lambda: (np.float32(2), (None, "b")),
        lambda: functools.partial(jax.nn.leaky_relu, negative_slope=0.2),
        lambda: functools.partial(functools.partial(max, 1), 2),
        initializers.lecun_normal,
        initializers.he_uniform,
        lambda: initializers.truncated_normal(0.02),
        lambda: initializers.orthogonal(2.0),
        lambda: initializers.constant(0.5),
    ],
)
def test_the_same_value_made_twice_is_the_same_layer(make):
    first, second = Holder(make()), Holder(make())
    assert first == second and hash(first) == hash(second)


def run_cell(source, variables):
    """What a notebook does with a cell: run it again, and the same names point to new functions."""
    exec(compile(source, "cell", "exec"), variables)
    return variables["f"]


def cell(source, before, after):
    """The layers that a cell makes, before and after other cells changed the variables that it reads."""
    variables = dict(before)
    first = nn.F(run_cell(source, variables))
    variables.update(after)
    return first, nn.F(run_cell(source, variables))


@pytest.mark.parametrize(
    "source",
    [
        "f = lambda x: scale * x",
        "def f(x):\n    return (lambda y: scale * y)(x)",
        "def f(x, by=scale):\n    return by * x",
        "def f(x, *, by=scale):\n    return by * x",
        "def make(scale):\n    return lambda x: scale * x\nf = make(scale)",
    ],
    ids=["global", "read by an inner function", "default", "keyword default", "enclosed"],
)
def test_a_cell_run_again_means_what_its_variables_say_now(source):
    first, second = cell(source, {"scale": 2.0}, {"scale": 3.0})
    assert first != second
    apply = jax.jit(lambda layer, x: layer.fwd(x, (), ())[0])
    assert apply(second, 1.0) == 3.0
    assert first != cell(source, {"scale": 2}, {})[0]


def test_a_stale_program_is_not_run():
    apply, variables = jax.jit(lambda layer, x: layer.fwd(x, (), ())[0]), {"scale": 2.0}
    source = "f = lambda x: scale * x"
    assert apply(nn.F(run_cell(source, variables)), 1.0) == 2.0
    variables["scale"] = 3.0
    assert apply(nn.F(run_cell(source, variables)), 1.0) == 3.0


def test_what_is_not_there_yet_may_differ_later():
    source = "f = lambda x: scale * x"
    assert nn.F(run_cell(source, {})) != nn.F(run_cell(source, {}))


class Settings:
    scale = 2.0

    def __init__(self):
        self.scale = 2.0

    def model(self):
        return nn.F(lambda x: self.scale * x)

    def times(self, x):
        return self.scale * x


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: float

    def times(self, x):
        return self.scale * x


class Kind(enum.Enum):
    RELU = 1


SETTINGS = Settings()


def helper(x):
    return SETTINGS.scale * x


@jax.jit
def jitted(x):
    return 2.0 * x


MUTABLE = {
    "an object, by a helper": lambda: nn.F(lambda x: helper(x)),
    "an object": lambda: nn.F(lambda x: SETTINGS.scale * x),
    "an object, in a partial": lambda: nn.F(functools.partial(Settings.times, SETTINGS)),
    "an object, by its method": lambda: nn.F(lambda x: SETTINGS.times(x)),
    "a method": lambda: (lambda times: nn.F(lambda x: times(x)))(SETTINGS.times),
    "self": SETTINGS.model,
    "in a default": lambda: nn.F(lambda x, settings=SETTINGS: settings.scale * x),
    "in a tuple": lambda: (lambda pair: nn.F(lambda x: pair[0].scale * x))((SETTINGS,)),
}
CLASS = {"a class": lambda: nn.F(lambda x: Settings.scale * x)}


@pytest.mark.parametrize("name", [*MUTABLE, *CLASS])
def test_what_may_change_unseen_is_traced_again(name):
    """Plain JAX traces a new lambda again, so a layer must not stand for one that read something else."""
    make = (MUTABLE | CLASS)[name]
    owner = Settings if name in CLASS else SETTINGS
    apply = jax.jit(lambda layer, x: layer.fwd(x, (), ())[0])
    layer = make()
    assert apply(layer, 1.0) == 2.0 and layer == layer and hash(layer) == hash(layer)
    owner.scale = 3.0
    try:
        assert apply(make(), 1.0) == 3.0
    finally:
        owner.scale = 2.0


def test_helpers_are_looked_into():
    for helper in (
        "def helper(x):\n    return scale * x",
        "import jax\nhelper = jax.jit(lambda x: scale * x)",
    ):
        source = helper + "\nf = lambda x: helper(x)"
        apply, variables = jax.jit(lambda layer, x: layer.fwd(x, (), ())[0]), {"scale": 2.0}
        assert apply(nn.F(run_cell(source, variables)), 1.0) == 2.0
        variables["scale"] = 3.0
        assert apply(nn.F(run_cell(source, variables)), 1.0) == 3.0


def test_a_function_counts_by_identity():
    """What is defined once is one; what is defined again is traced again, however equal it looks."""

    def make(width):
        return nn.F(lambda x: width * x)

    once = make(3)
    assert once == once and nn.F(once.train_fn) == once != make(3)
    assert nn.F(jax.nn.relu) == nn.F(jax.nn.relu) != nn.F(jnp.tanh)
    frozen = Frozen(2.0)  # a bound method is its object's
    assert nn.F(frozen.times) == nn.F(frozen.times) != nn.F(Frozen(3.0).times)


def test_a_wrapper_does_not_pass_for_what_it_wraps():
    """functools.wraps copies the name of the module, too."""
    variables = {"scale": 2.0, "functools": functools, "jnp": jnp}
    source = "@functools.wraps(jnp.sin)\ndef f(x):\n    return scale * x"
    first, second = cell(source, variables, {"scale": 3.0})
    assert first != second


def test_the_order_of_keywords_does_not_count():
    first, second = functools.partial(max, key=abs, default=1), functools.partial(max, default=1, key=abs)
    assert nn.F(first) == nn.F(second)


def test_what_cannot_be_compared_counts_by_identity():
    variables = {"table": jnp.ones(2)}
    source = "f = lambda x: table * x"
    first, second = nn.F(run_cell(source, variables)), nn.F(run_cell(source, variables))
    assert first == first and first != second  # an array may hold anything
    variables = {"table": {}}
    assert nn.F(run_cell(source, variables)) != nn.F(run_cell(source, variables))  # nor a dict

    lost = "def helper(x):\n    return helper(x) if x else table * x\nf = lambda x: helper(x)"
    assert nn.F(run_cell(lost, variables)) != nn.F(run_cell(lost, variables))

    def make():
        def f(x):
            return f(x - 1) if x > 0 else x

        return f

    recursive = make()
    assert nn.F(recursive) == nn.F(recursive) != nn.F(make())

    def unfilled():
        layer = nn.F(lambda x: later(x))
        later = jnp.sin
        return layer, later

    assert unfilled()[0] != unfilled()[0]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ((jax.nn.relu, (jnp.tanh, 2)), "(relu, (tanh, 2))"),
        ((jax.nn.relu,), "(relu,)"),
        (functools.partial(jax.nn.leaky_relu, negative_slope=0.2), "partial(leaky_relu, negative_slope=0.2)"),
        (jnp.dtype("bfloat16"), "bfloat16"),
    ],
)
def test_what_a_layer_shows(value, shown):
    assert repr(Holder(value)) == f"Holder(value={shown})"


def test_a_long_array_is_shown_by_its_shape():
    with pytest.raises(ValueError, match=r"^Dropout: rate must be a number in \[0, 1\], got float32\[9\]\."):
        nn.Dropout(jnp.ones(9))


@pytest.mark.parametrize("value", [[1], {}, np.ones(2), jnp.ones(2), (1, [2]), functools.partial(max, [1])])
def test_unhashable_values_are_refused(value):
    with pytest.raises(TypeError, match=r"^Holder: value must be hashable, .*Use a tuple for a list"):
        Holder(value)


def test_a_traced_value_is_told_as_such():
    with pytest.raises(ValueError, match=r"^Holder: value must not be a traced value: it is static, so"):
        jax.jit(lambda value: Holder(value).fwd(1.0, (), ())[0])(2.0)


LAYERS = [
    nn.F(jax.nn.relu),  # an object of jax.custom_jvp
    nn.F(jnp.tanh, jax.nn.silu),  # of jax.jit
    nn.F(functools.partial(jax.nn.leaky_relu, negative_slope=0.2)),
    nn.F(functools.partial(functools.partial(max, 1), default=jnp.tanh)),
    Holder((jnp.sin, (jnp.cos, 1))),
    nn.Linear(3, param_dtype=jnp.bfloat16, precision="highest"),
    nn.Linear(3, initializers.zeros),
    nn.Series(nn.Flatten(2), nn.Series(nn.F(jax.nn.relu)), nn.Dropout(0.5)),
]


@pytest.mark.parametrize("layer", LAYERS, ids=repr)
def test_copies_and_pickles_are_equal(layer):
    assert copy.copy(layer) == layer and copy.deepcopy(layer) == layer
    assert copy.deepcopy({"model": layer})["model"] == layer
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copied = pickle.loads(pickle.dumps(layer, protocol))
        assert copied == layer and hash(copied) == hash(layer) and repr(copied) == repr(layer)


def test_a_pickle_from_another_process_has_this_process_hash():
    """The hash of a string differs from process to process."""
    script = (
        "import pickle, sys, jax; from mlax_tutorial import nn; "
        "sys.stdout.buffer.write(pickle.dumps(nn.Series(nn.Linear(3), nn.F(jax.nn.relu), nn.Bias(param_dtype='float16'))))"
    )
    content = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    layer = nn.Series(nn.Linear(3), nn.F(jax.nn.relu), nn.Bias(param_dtype="float16"))
    assert pickle.loads(content) == layer and len({pickle.loads(content), layer}) == 1


def test_what_has_no_name_does_not_pickle():
    with pytest.raises((AttributeError, pickle.PicklingError), match=r"local|lambda"):
        pickle.dumps(nn.F(lambda x: x))


class Doubled(nn.Series):
    """Derived from a container, without a word of its own on construction and inputs."""

    def fwd(self, x, trainables, non_trainables, **options):
        y, non_trainables = super().fwd(x, trainables, non_trainables, **options)
        return 2 * y, non_trainables


class Masked(nn.Layer):
    strength: float = 1.0

    def fwd(self, x, trainables, non_trainables, *, mask, key=None, inference_mode=False):
        return jnp.where(mask, x, jnp.zeros_like(x)), non_trainables


class Named(Masked):
    """Adds a field."""

    name: str = ""


def test_derived_classes_keep_what_their_base_wrote():
    model = Doubled(nn.Linear(3), Masked())
    assert model.inputs == {"mask"} and len(model) == 2 and model != nn.Series(*model.layers)
    x, mask = jnp.ones((2, 4)), jnp.array([True, False, True])[None].repeat(2, 0)
    trainables, state = model.init(jax.random.key(0), x, mask=mask)
    plain, _ = nn.Series(*model.layers).fwd(x, trainables, state, mask=mask)
    np.testing.assert_array_equal(model.fwd(x, trainables, state, mask=mask)[0], 2 * plain)
    assert nn.Series(model).inputs == {"mask"}
    assert Named(2.0, "a") == Named(strength=2.0, name="a") and Named().inputs == {"mask"}
    assert Masked.inputs == {"mask"} and nn.F(jnp.sin).inputs == frozenset()
