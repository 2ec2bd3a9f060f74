"""Ours to a module: a layer with state as an object."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.objects._modules import Module, Parameter, Variable


class Center(Module):
    def __init__(self, features, rate=0.1):
        self.shift = Parameter(jnp.zeros(features))
        self.mean = Variable(jnp.zeros(features))
        self.rate = rate

    def __call__(self, x, training=True):
        y = x - self.mean.value + self.shift.value
        if training:
            new = x.reshape(-1, x.shape[-1]).mean(axis=0)
            self.mean.value += self.rate * (new - self.mean.value)
        return y


X = np.array([[[4.0, 0.0, 1.0], [2.0, -2.0, 3.0]]], np.float32)  # (1, 2, 3)


def check(Center):
    if not hasattr(Center, "take_apart"):
        raise Failed("`Center` should derive from `Module`, the second class of that name in the chapter.")
    module = checks.make(Center, 3, rate=0.25)
    shift, mean = (_box(module, name) for name in ("shift", "mean"))
    if type(shift).__name__ != "Parameter":
        raise Failed("`shift` is trained, so its box should be a `Parameter`.", got=shift)
    if type(mean).__name__ != "Variable":
        raise Failed(
            "`mean` is not trained, so its box should be a `Variable`, and no `Parameter`.", got=mean
        )
    if isinstance(module.__dict__.get("rate"), (jax.Array, np.ndarray)):
        said = "The rate is an array outside of a box: static values are compared by `==`, so keep a plain number."
        raise Failed(said, got=module.rate)
    if getattr(module, "rate", None) != 0.25:
        raise Failed("`Center(3, rate=0.25)` should have an attribute `rate` with the value 0.25.")
    names, leaves = set(vars(module)), jax.tree.leaves(module)
    if len(leaves) != 2:
        extra = "The rate should be static: a plain number as an attribute."
        raise Failed(f"The module should have two leaves, and has {len(leaves)}. {extra}")
    shift.value, mean.value = jax.device_put((np.float32([1.0, 2.0, 3.0]), np.float32([1.0, 1.0, 1.0])))
    expected, moved = X - 1 + np.array([1.0, 2.0, 3.0]), np.array([1.5, 0.5, 1.25])
    y = module(jax.device_put(X), training=False)
    checks.returned(y, by="`__call__`")
    if isinstance(y, tuple):
        raise Failed("`__call__` should return y alone: the state stays in the module.", got=y)
    _compare(y, expected, "in inference")
    if not np.allclose(module.mean.value, 1):
        raise Failed("With `training=False` the mean should stay as it is.", got=module.mean.value)
    held = module.mean
    y = module(jax.device_put(X))
    new = X - moved + np.array([1.0, 2.0, 3.0])
    if np.shape(y) == X.shape and np.allclose(y, new):
        raise Failed(
            "This subtracts the new mean. The layer subtracts the old one, and updates it afterwards."
        )
    _compare(y, expected, "in training")
    if module.mean is not held and not hasattr(module.mean, "value"):
        raise Failed("The box is gone: assign to `self.mean.value`, not to `self.mean`.", got=module.mean)
    if type(module.mean).__name__ != "Variable":
        raise Failed("After a call the box of `mean` is no `Variable` any more.", got=module.mean)
    if added := set(vars(module)) - names:
        raise Failed(
            f"A call adds the attribute `{min(added)}`: the chapter's `jit` keeps what is written to boxes, and nothing else."
        )
    if np.shape(module.mean.value) != (3,):
        raise Failed("The mean is over all axes but the last.", expected=moved, got=module.mean.value)
    if not np.allclose(module.mean.value, moved):
        text = "The mean should move by `rate` of the way to the mean of the batch."
        if np.allclose(module.mean.value, 1):
            text = "The mean did not move in training."
        raise Failed(text, input={"x": X, "rate": 0.25}, expected=moved, got=module.mean.value)
    _under_jit(module)
    gradient_of = jax.jit(jax.grad(lambda x, module: module(x, training=False).sum()))
    slope = gradient_of(jax.device_put(X), module)
    if not np.allclose(slope, 1):
        raise Failed("The output is right, but its gradient with respect to x is lost.", got=slope)
    _trains(module)
    other = checks.make(Center, 2)
    other(jax.device_put(np.float32([[1.0, 3.0], [1.0, 1.0]])))
    mean = np.asarray(other.mean.value)
    if mean.shape != (2,) or not np.isclose(mean[1], 2 * mean[0]):
        raise Failed(
            "This is wrong for two features and an input of two axes: take the sizes from `features` and `x`.",
            expected=np.array([0.1, 0.2]), got=mean,
        )  # fmt: skip
    if not np.isclose(mean[0], 0.1):
        raise Failed("The rate should be 0.1 unless another one is given.")
    x = np.float32([[1 / 3, 2 / 7]])
    y = other(jax.device_put(x), training=False)
    if not np.allclose(y, x - mean, rtol=1e-5):
        raise Failed(
            "The output has lost digits: something on the way is rounded to half precision.",
            input={"x": x, "mean": mean},
            expected=x - mean,
            got=y,
        )


def _trains(module):
    """The gradient with respect to both boxes, by `jax.grad` of the module itself."""
    with under("`jax.grad`"):
        given = jax.jit(jax.grad(lambda module: module(X, training=False).sum()))(module)
    if not np.allclose(given.shift.value, 2):  # of two rows
        said = "`shift` is a `Parameter`, but it gets another gradient than it should: does y depend on it?"
        raise Failed(said, expected=np.full(3, 2.0), got=given.shift.value)


def _box(module, name):
    item = getattr(module, name, None)
    if not hasattr(item, "value"):
        raise Failed(f"The module should have a box `{name}`, such as `self.{name} = Variable(…)`.", got=item)
    if np.shape(item.value) != (3,) or not np.all(np.asarray(item.value) == 0):
        raise Failed(f"`{name}` should hold zeros at first, one for each feature.", got=item.value)
    return item


def _compare(y, expected, when):
    if np.shape(y) != expected.shape or not np.allclose(y, expected):
        raise Failed(f"The output {when} is wrong.", input={"x": X}, expected=expected, got=y)


def _under_jit(module):
    with under("`jax.jit`"):
        _, new = jax.jit(lambda module, x: (module(x), module))(module, X)
    if not np.allclose(new.mean.value, [1.875, 0.125, 1.4375]):
        raise Failed(
            "Under `jax.jit` the returned module has another mean: the update must depend on the boxes alone.",
            expected=np.array([1.875, 0.125, 1.4375]), got=new.mean.value,
        )  # fmt: skip


exercise = Exercise(
    title="Ours to a module",
    stars=2,
    minutes=10,
    why="Trainables become parameters, non-trainables variables, hyperparameters plain attributes; returning becomes writing.",
    hints=(
        "Two boxes and a plain attribute in `__init__`. The object knows its sizes at once, hence `features`.",
        "`self.mean.value = self.mean.value + self.rate * (new - self.mean.value)`, after y is computed, if `training`.",
    ),
    solution=Center,
    check=check,
)
