"""Wrong uses, each with the message it must get: where, what was wanted, what came, how to mend it."""

import dataclasses
import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, optim

MODEL = nn.Series(nn.Flatten(2), nn.Linear(8), nn.Bias(), nn.Series(nn.Dropout(0.5), nn.Linear(3)))
X = jnp.ones((5, 4, 4))
TRAINABLES, NON_TRAINABLES = MODEL.init(jax.random.key(0), X)
NESTED = nn.Series(nn.Series(nn.F(lambda x: x @ jnp.ones((3, 3)))))


class Returns(nn.Layer):
    """Returns what it is told to, right or wrong."""

    made: tuple = ((), ())
    given: object = None

    def init(self, key, x):
        return {"w": 1, "b": 2} if self.made == "a dict" else self.made

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x if self.given is None else (x, non_trainables, 3)[: self.given]


def initialized(layer, x=X):
    return layer.init(jax.random.key(0), x)


CALLS = {
    "fwd of one's own without non_trainables": (
        lambda: nn.Series(nn.F(jnp.sin), Returns()).fwd(jnp.ones((2, 3)), (), ()),
        r"^model\[1\]\.Returns: fwd must return \(y, non_trainables\), got float32\[2,3\]: .*as it came",
    ),
    "fwd of one's own with three results": (
        lambda: nn.Series(Returns(given=3)).fwd(X, (), ()),
        r"^model\[0\]\.Returns: fwd must return .* got a tuple of length 3",
    ),
    "fwd of one's own, found by init": (
        lambda: initialized(nn.Series(nn.Series(Returns()), nn.Linear(2))),
        r"^model\[0\]\[0\]\.Returns: fwd must return \(y, non_trainables\), got float32\[5,4,4\]",
    ),
    "init of one's own without non_trainables": (
        lambda: initialized(nn.Series(Returns("a dict", given=2))),
        r"^model\[0\]\.Returns: init must return \(trainables, non_trainables\), got a dict with keys \['b', 'w'\]",
    ),
    "a list into init": (
        lambda: initialized(MODEL, [1.0, 2.0]),
        r"^Series: x\[0\] expects an array, got float 1\.0: wrap it in jnp\.asarray",
    ),
    "a number into init": (lambda: initialized(MODEL, 1.0), r"^Series: x expects an array, got float 1\.0"),
    "another input that is no array": (
        lambda: MODEL.init(jax.random.key(0), X, mask=True),
        r"^Series: mask expects an array, got bool True",
    ),
    "what makes an initializer for an initializer": (
        lambda: initialized(nn.Series(nn.Linear(3, jax.nn.initializers.lecun_normal))),
        r"^model\[0\]\.Linear: kernel_initializer must return float32\[4,3\], got function init: call what makes",
    ),
    "an initializer of another dtype": (
        lambda: initialized(
            nn.Linear(3, lambda key, shape, dtype: jnp.ones(shape, int)), X.astype(jnp.bfloat16)
        ),
        r"^Linear: kernel_initializer must return float32\[4,3\], got int32\[4,3\]: make it of the shape",
    ),
    "an initializer of another shape": (
        lambda: initialized(nn.Bias(bias_initializer=lambda key, shape, dtype: jnp.ones((1, *shape), dtype))),
        r"^Bias: bias_initializer must return float32\[4\], got float32\[1,4\]: make it of the shape",
    ),
    "input too wide": (
        lambda: MODEL.fwd(jnp.ones((5, 4, 5)), TRAINABLES, NON_TRAINABLES, inference_mode=True),
        r"^model\[1\]\.Linear: kernel expects shape \(20, 8\) for x, float32\[5,20\], got float32\[16,8\]: .*this input, bel",
    ),
    "other trainables": (
        lambda: MODEL.fwd(X, (TRAINABLES[0], {"kernel": jnp.ones((16, 9))}, *TRAINABLES[2:]), ()),
        r"^model\[1\]\.Linear: kernel expects shape \(16, 8\) for x, float32\[5,16\], got float32\[16,9\]: .*another model",
    ),
    "a kernel with an axis too many": (
        lambda: nn.Linear(8).fwd(jnp.ones(16), {"kernel": jnp.ones((16, 8, 1))}, ()),
        r"^Linear: kernel expects shape \(16, 8\) for x, float32\[16\], got float32\[16,8,1\]",
    ),
    "a plain kernel for a transposed one": (
        lambda: nn.Linear(3, transposed_kernel=True).fwd(jnp.ones(4), {"kernel": jnp.ones((4, 3))}, ()),
        r"^Linear: kernel expects shape \(3, 4\) for x, float32\[4\], got float32\[4,3\]: ",
    ),
    "input too wide for a transposed kernel": (
        lambda: nn.Linear(3, transposed_kernel=True).fwd(jnp.ones(5), {"kernel": jnp.ones((3, 4))}, ()),
        r"^Linear: kernel expects shape \(3, 5\) for x, float32\[5\], got float32\[3,4\]: ",
    ),
    "trainables with other names": (
        lambda: nn.Linear(3).fwd(jnp.ones(4), {"weight": jnp.ones((4, 3))}, ()),
        r"^Linear: trainables expect a dict with keys \['kernel'\], got a dict with keys \['weight'\]: .*own init",
    ),
    "a nested list as trainables": (
        lambda: MODEL.fwd(X, list(TRAINABLES), ()),
        r"^Series: trainables expect a tuple with one entry for each of 4 layers, got a list of length 4: ",
    ),
    "too few trainables": (
        lambda: MODEL.fwd(X, TRAINABLES[:2], ()),
        r"^Series: trainables expect a tuple .* got a tuple of length 2: pass the trainables",
    ),
    "non_trainables of another model": (
        lambda: MODEL.fwd(X, TRAINABLES, ((),), inference_mode=True),
        r"^Series: non_trainables expect a tuple .* got a tuple of length 1",
    ),
    "integers into Linear": (
        lambda: nn.Linear(3).init(jax.random.key(0), jnp.ones((2, 3), int)),
        r"^Linear: x expects floating-point numbers, got int32\[2,3\]: .*astype",
    ),
    "integers into a nested Linear": (
        lambda: MODEL.init(jax.random.key(0), jnp.ones((5, 4, 4), jnp.uint8)),
        r"^model\[1\]\.Linear: x expects floating-point numbers, got uint8\[5,16\]",
    ),
    "integers into Bias": (
        lambda: nn.Bias().fwd(jnp.arange(3), {"bias": jnp.ones(3)}, ()),
        r"^Bias: x expects floating-point numbers, got int32\[3\]",
    ),
    "integers into Dropout": (
        lambda: nn.Dropout(0.1).fwd(jnp.arange(3), (), (), key=jax.random.key(0)),
        r"^Dropout: x expects floating-point numbers",
    ),
    "integers into init of Dropout": (
        lambda: initialized(nn.Dropout(0.1), jnp.arange(3)),
        r"^Dropout: x expects floating-point numbers",
    ),
    "too few axes to share a draw along": (
        lambda: nn.Series(nn.Dropout(0.1, (-3, -2))).fwd(jnp.ones((4, 4)), (), (), key=jax.random.key(0)),
        r"^model\[0\]\.Dropout: x expects at least 3 axes, got float32\[4,4\]: add",
    ),
    "too few axes to share a draw along, found by init": (
        lambda: initialized(nn.Dropout(0.1, -2), jnp.ones(4)),
        r"^Dropout: x expects at least 2 axes, got float32\[4\]: add",
    ),
    "too few axes into init of Flatten alone": (
        lambda: initialized(nn.Flatten(2), jnp.arange(3)),
        r"^Flatten: x expects at least 2 axes, got int32\[3\]",
    ),
    "a list for an array": (
        lambda: nn.Linear(3).fwd([1.0, 2.0], {"kernel": jnp.ones((2, 3))}, ()),
        r"^Linear: x expects an array, got a list of length 2: wrap it in jnp\.asarray",
    ),
    "a list for an array, Flatten": (
        lambda: nn.Flatten(1).fwd([1.0, 2.0], (), ()),
        r"^Flatten: x expects an array, got a list of length 2",
    ),
    "a scalar into Linear": (
        lambda: nn.Linear(3).init(jax.random.key(0), jnp.float32(1)),
        r"^Linear: x expects at least 1 axis, got float32\[\]: add",
    ),
    "too few axes": (
        lambda: MODEL.init(jax.random.key(0), jnp.ones(4)),
        r"^model\[0\]\.Flatten: x expects at least 2 axes, got float32\[4\]: add",
    ),
    "too few axes into fwd": (
        lambda: nn.Flatten(3).fwd(jnp.ones((2, 2)), (), ()),
        r"^Flatten: x expects at least 3 axes, got float32\[2,2\]",
    ),
    "Bias of other sizes": (
        lambda: nn.Bias((2, -1)).init(jax.random.key(0), jnp.ones((5, 3, 4))),
        r"^Bias: in_features=\(2, -1\) expects trailing axes \(2, 4\), got float32\[5,3,4\]: use -1",
    ),
    "bias of another shape": (
        lambda: nn.Bias().fwd(jnp.ones((2, 4)), {"bias": jnp.ones(3)}, ()),
        r"^Bias: bias expects shape \(4,\), got float32\[3\]",
    ),
    "no key in training": (
        lambda: MODEL.fwd(X, TRAINABLES, NON_TRAINABLES),
        r"^model\[3\]\[0\]\.Dropout: needs a key in training, got None: pass key=.*inference_mode=True",
    ),
    "a raw key": (
        lambda: MODEL.fwd(X, TRAINABLES, NON_TRAINABLES, key=jax.random.PRNGKey(0)),
        r"^Series: expects a typed key, got uint32\[2\]: make one with jax\.random\.key",
    ),
    "a raw key into Dropout": (
        lambda: nn.Dropout(0.5).fwd(X, (), (), key=jax.random.PRNGKey(0)),
        r"^Dropout: expects a typed key, got uint32\[2\]",
    ),
    "a seed for a key": (
        lambda: nn.Linear(3).init(0, jnp.ones(4)),
        r"^Linear: expects a typed key, got int 0: make one with jax\.random\.key\(seed\)",
    ),
    "no key for init": (lambda: MODEL.init(None, X), r"^Series: expects a typed key, got None"),
    "no key for init of Bias": (
        lambda: nn.Bias().init(None, X),
        r"^Bias: expects a typed key, got None",
    ),
    "several keys": (
        lambda: MODEL.fwd(X, TRAINABLES, NON_TRAINABLES, key=jax.random.split(jax.random.key(0))),
        r"^Series: expects one key, got key<fry>\[2\]: .*vmap",
    ),
    "an input nobody takes": (
        lambda: MODEL.fwd(X, TRAINABLES, NON_TRAINABLES, mask=X, inference_mode=True),
        r"^Series: takes no input 'mask'; further inputs are \[\]",
    ),
    "an input that nobody takes, into what holds one layer": (
        lambda: nn.Stack(nn.Linear(4), 2).init(jax.random.key(0), jnp.ones(4), mask=jnp.ones(4)),
        r"^Stack: takes no input 'mask'; further inputs are \[\]",
    ),
    "traced inference_mode": (
        lambda: jax.jit(MODEL.fwd)(X, TRAINABLES, NON_TRAINABLES, key=None, inference_mode=True),
        r"^model\[3\]\[0\]\.Dropout: inference_mode must be a Python bool, got bool\[\]: .*static_argnames",
    ),
    "traced inference_mode into F": (
        lambda: jax.jit(nn.F(jnp.tanh, jnp.sin).fwd)(X, (), (), inference_mode=True),
        r"^F: inference_mode must be a Python bool",
    ),
    "inference_mode that is no bool": (
        lambda: nn.Dropout(0.5).fwd(jnp.ones(3), (), (), inference_mode="yes"),
        r"^Dropout: inference_mode must be a Python bool, got str 'yes'",
    ),
}

HYPERPARAMETERS = {
    "no size": (lambda: nn.Linear(0), r"^Linear: out_features must be an integer of at least 1, got 0"),
    "a bool for a size": (lambda: nn.Linear(True), r"^Linear: out_features must be an integer .* got True"),
    "a float for a size": (lambda: nn.Linear(3.0), r"^Linear: out_features must be an integer .* got 3.0"),
    "a tuple for a size": (
        lambda: nn.Linear((3, 4)),
        r"^Linear: out_features must be an integer .* got \(3, 4\)",
    ),
    "a traced size": (
        lambda: jax.jit(lambda size: nn.Linear(size).out_features)(3),
        r"^Linear: out_features must be an integer of at least 1, not a traced value: it is static",
    ),
    "an integer dtype": (
        lambda: nn.Linear(3, param_dtype=int),
        r"^Linear: param_dtype must be a floating-point dtype, such as jnp.float32, got int",
    ),
    "no dtype at all": (
        lambda: nn.Linear(3, param_dtype="f99"),
        r"^Linear: param_dtype must be a floating-point",
    ),
    "float64 without x64": (
        lambda: nn.Bias(param_dtype="float64"),
        r"^Bias: param_dtype is float64, which JAX has only after .*jax_enable_x64",
    ),
    "no initializer": (
        lambda: nn.Linear(3, kernel_initializer=jnp.ones(3)),
        r"^Linear: kernel_initializer must be a function",
    ),
    "unknown precision": (lambda: nn.Linear(3, precision="exact"), r"^Linear: precision "),
    "the size of the input": (
        lambda: nn.Linear(784, 64),
        r"^Linear: kernel_initializer must be a function \(the size of the input is no argument: .*\), got 64",
    ),
    "no function": (lambda: nn.F("relu"), r"^F: train_fn must be a function, got 'relu'"),
    "no function for inference": (lambda: nn.F(jnp.tanh, 3), r"^F: infer_fn must be a function, got 3"),
    "a rate over 1": (lambda: nn.Dropout(1.5), r"^Dropout: rate must be a number in \[0, 1\], got 1.5"),
    "a NaN rate": (lambda: nn.Dropout(float("nan")), r"^Dropout: rate must be a number in \[0, 1\], got nan"),
    "a rate as text": (lambda: nn.Dropout("0.5"), r"^Dropout: rate must be a number in \[0, 1\], got '0.5'"),
    "a rate as bytes": (lambda: nn.Dropout(b"0.5"), r"^Dropout: rate must be a number in"),
    "a rate as NumPy's bool": (lambda: nn.Dropout(np.True_), r"^Dropout: rate must be .* got np\.True_"),
    "a rate as JAX' bool": (lambda: nn.Dropout(jnp.array(True)), r"^Dropout: rate must be a number in"),
    "a complex rate": (lambda: nn.Dropout(np.complex64(0.5 + 1j)), r"^Dropout: rate must be a number in"),
    "a rate with axes": (lambda: nn.Dropout(np.array([0.5])), r"^Dropout: rate must be a number in"),
    "a huge rate": (lambda: nn.Dropout(10**400), r"^Dropout: rate must be a number in"),
    "a negative rate": (lambda: nn.Dropout(-0.1), r"^Dropout: rate must be .* got -0.1"),
    "shared axes from the front": (
        lambda: nn.Dropout(0.1, 1),
        r"^Dropout: shared_axes must be a negative integer, counted from the end: .*, got 1\.",
    ),
    "one of the shared axes from the front": (
        lambda: nn.Dropout(0.1, (0, -1)),
        r"^Dropout: shared_axes must be a negative integer, .*, got \(0, -1\)",
    ),
    "a shared axis twice": (
        lambda: nn.Dropout(0.1, (-1, -1)),
        r"^Dropout: shared_axes must be different from each other, got \(-1, -1\)",
    ),
    "shared axes by name": (
        lambda: nn.Dropout(0.1, "channels"),
        r"^Dropout: shared_axes must be a negative integer, .* got 'channels'",
    ),
    "a number for a switch": (
        lambda: nn.Linear(3, transposed_kernel=1),
        r"^Linear: transposed_kernel must be True or False, got 1\.",
    ),
    "a traced rate": (
        lambda: jax.jit(lambda rate: nn.Dropout(rate).rate)(0.5),
        r"^Dropout: rate must be a number in \[0, 1\], not a traced value: it is static",
    ),
    "no axes to merge": (lambda: nn.Flatten(0), r"^Flatten: axes must be an integer of at least 1, got 0"),
    "negative axes": (lambda: nn.Flatten(-1), r"^Flatten: axes must be an integer of at least 1, got -1"),
    "axes as a tuple": (lambda: nn.Flatten((1, 2)), r"^Flatten: axes must be an integer"),
    "bias axes": (lambda: nn.Bias(0), r"^Bias: in_features must be a positive integer or -1, .* got 0"),
    "bias axes, empty": (lambda: nn.Bias(()), r"^Bias: in_features must be a positive integer or -1"),
    "bias axes, -2": (lambda: nn.Bias((-2, 3)), r"^Bias: in_features must be an integer of at least -1"),
    "a function for a layer": (
        lambda: nn.Series(nn.Linear(3), jax.nn.relu),
        r"^Series: layers must all be layers, but number 1 is relu: wrap a function in nn\.F",
    ),
    "a list of layers": (
        lambda: nn.Series([nn.Linear(3), nn.Bias()]),
        r"^Series: layers must all be layers, but number 0 is \[.*: pass layers, not a list",
    ),
    "a class for a layer": (
        lambda: nn.Series(nn.Bias),
        r"^Series: layers must all be layers, but number 0 is Bias: ",
    ),
}

SGD = optim.SGD(0.1, momentum=0.9)
STATE = SGD.init(TRAINABLES)

OPTIMIZERS = {
    "a NaN rate": (
        lambda: optim.SGD(np.nan),
        r"^SGD: learning_rate must be a finite number of at least 0, an optim.Schedule, or a function of the count, got nan",
    ),
    "an infinite rate": (lambda: optim.SGD(np.inf), r"^SGD: learning_rate must be a finite number"),
    "a negative rate": (
        lambda: optim.SGD(-0.1),
        r"^SGD: learning_rate must be a finite number of at least 0, .* got -0.1",
    ),
    "no rate": (
        lambda: optim.SGD(None),
        r"^SGD: learning_rate must be a finite number of at least 0, .* got None",
    ),
    "a rate as text": (lambda: optim.SGD("0.1"), r"^SGD: learning_rate must be a finite number .* got '0.1'"),
    "a rate with axes": (lambda: optim.SGD(jnp.ones(2)), r"^SGD: learning_rate must be a finite number"),
    "momentum over 1": (
        lambda: optim.SGD(0.1, momentum=1.1),
        r"^SGD: momentum must be a finite number in \[0, 1\], got 1.1",
    ),
    "a number for a switch": (
        lambda: optim.SGD(0.1, momentum=0.9, nesterov=1),
        r"^SGD: nesterov must be True or False, got 1",
    ),
    "nesterov without momentum": (
        lambda: optim.SGD(0.1, nesterov=True),
        r"^SGD: nesterov .* needs a momentum",
    ),
    "gradients of another model": (
        lambda: SGD.step(TRAINABLES[:2], STATE, TRAINABLES),
        r"^SGD: gradients\[2\]\['bias'\] expects \(8,\), got nothing: .*one model",
    ),
    "gradients of another shape": (
        lambda: SGD.step(jax.tree.map(lambda t: t[0], TRAINABLES), STATE, TRAINABLES),
        r"^SGD: gradients\[1\]\['kernel'\] expects \(16, 8\), got \(8,\)",
    ),
    "gradients of another model, plain": (
        lambda: optim.SGD(0.1).step({"v": jnp.ones(2)}, optim.SGD(0.1).init(()), {"w": jnp.ones(2)}),
        r"^SGD: gradients\['w'\] expects \(2,\), got nothing",
    ),
    "gradients that would be repeated, plain": (
        lambda: optim.SGD(0.1).step({"w": jnp.ones(1)}, optim.SGD(0.1).init(()), {"w": jnp.ones(2)}),
        r"^SGD: gradients\['w'\] expects \(2,\), got \(1,\)",
    ),
    "state of another optimizer": (
        lambda: SGD.step(TRAINABLES, optim.SGD(0.1).init(TRAINABLES), TRAINABLES),
        r"^SGD: state\.velocity\[1\]\['kernel'\] expects \(16, 8\), got nothing",
    ),
    "no state at all": (
        lambda: SGD.step(TRAINABLES, None, TRAINABLES),
        r"^SGD: state must be what init returned",
    ),
    "integers for trainables": (
        lambda: SGD.step({"w": jnp.ones(2)}, SGD.init({"w": jnp.ones(2)}), {"w": jnp.arange(2)}),
        r"^SGD: trainables\['w'\] expects an array of floating-point numbers, got int32: ",
    ),
    "a Python number for trainables": (
        lambda: SGD.step({"w": 1.0}, SGD.init({"w": 1.0}), {"w": 1.0}),
        r"^SGD: trainables\['w'\] expects an array of floating-point numbers, got float: ",
    ),
    "gradients with more": (
        lambda: SGD.step(
            {"w": jnp.ones(2), "x": jnp.ones(1)}, SGD.init({"w": jnp.ones(2)}), {"w": jnp.ones(2)}
        ),
        r"^SGD: gradients\['x'\] expects nothing, got \(1,\)",
    ),
    "updates that would make a weight grow": (
        lambda: optim.apply_updates({"w": [jnp.ones(())]}, {"w": [jnp.ones(3)]}),
        r"^apply_updates: updates\['w'\]\[0\] expects \(\), got \(3,\): updates and trainables must",
    ),
    "updates that would be repeated": (
        lambda: optim.apply_updates((jnp.ones((3, 2)),), (jnp.ones((1, 2)),)),
        r"^apply_updates: updates\[0\] expects \(3, 2\), got \(1, 2\)",
    ),
    "updates of another structure": (
        lambda: optim.apply_updates(TRAINABLES, TRAINABLES[:2]),
        r"^apply_updates: updates\[2\]\['bias'\] expects \(8,\), got nothing: updates and",
    ),
}


def cases(table):
    return pytest.mark.parametrize(("wrong", "message"), table.values(), ids=list(table))


@cases(CALLS)
def test_wrong_calls(wrong, message):
    with pytest.raises(nn.LayerError, match=message):
        wrong()


@cases(HYPERPARAMETERS)
def test_wrong_hyperparameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@cases(OPTIMIZERS)
def test_wrong_optimizers(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


def test_unhashable_hyperparameters_are_refused():
    class Table(nn.Layer):
        values: object

    with pytest.raises(
        TypeError, match=r"^Table: values must be hashable, .*got list \[1, 2\]\. Use a tuple"
    ):
        Table([1, 2])


def test_a_field_that_is_neither_leaf_nor_switch_is_refused_when_the_class_is_made():
    with pytest.raises(
        TypeError, match=r"^Odd: rate must be declared a leaf, rate: … = number\(…\), or static"
    ):

        class Odd(optim.Optimizer):
            rate: float = 0.1


def test_what_came_is_told_without_an_address():
    with pytest.raises(nn.LayerError, match=r"got function <lambda>: ") as caught:
        nn.Linear(2).fwd(lambda x: x, {"kernel": X}, ())
    assert " at 0x" not in str(caught.value)


def test_a_foreign_error_keeps_its_type_and_tells_the_path():
    with pytest.raises(TypeError, match="dot_general") as caught:
        NESTED.init(jax.random.key(0), jnp.ones((2, 4)))
    notes = [note for note in caught.value.__notes__ if "model" in note]
    assert notes == ["This was raised in model[0][0].F."]


def test_a_foreign_error_in_fwd_tells_the_path():
    with pytest.raises(TypeError, match="dot_general") as caught:
        NESTED.fwd(jnp.ones((2, 4)), (), ())
    assert "This was raised in model[0][0].F." in caught.value.__notes__


def test_errors_survive_pickling():
    with pytest.raises(nn.LayerError) as caught:
        MODEL.fwd(jnp.ones((5, 4, 5)), TRAINABLES, NON_TRAINABLES, inference_mode=True)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_at_trace_time_too():
    with pytest.raises(nn.LayerError, match=r"^model\[1\]\.Linear: kernel expects shape"):
        jax.eval_shape(functools.partial(MODEL.fwd, inference_mode=True), jnp.ones((5, 4, 5)), TRAINABLES, ())


def test_layers_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        nn.Linear(3).out_features = 4
