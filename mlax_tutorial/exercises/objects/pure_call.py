"""A pure function made of an object that is no pytree."""

import copy

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under


def solution(model, values, x):
    other = copy.copy(model)  # a second object with the same attributes
    vars(other).update(values)
    y = other(x)
    return y, {name: vars(other)[name] for name in values}


class Averaging:
    """An object as another library might have it."""

    def __init__(self):
        self.weight, self.mean, self.name = jnp.array([2.0, 3.0]), jnp.zeros(2), "averaging"

    def __call__(self, x):
        self.mean = 0.5 * self.mean + 0.5 * x
        return self.weight * (x - self.mean)


class Failing(Averaging):
    def __call__(self, x):
        self.mean = x
        raise ValueError("this model raises on purpose")


def check(pure_call):
    x, model = jnp.array([4.0, -2.0]), Averaging()
    first = dict(vars(model))
    values = {"weight": jnp.array([1.0, 10.0]), "mean": jnp.array([2.0, 0.0])}
    given = dict(values)
    y, new = checks.returned(pure_call(model, values, x), "output y", "new values")
    if values.keys() != given.keys() or any(values[name] is not given[name] for name in given):
        raise Failed("The dict `values` of the caller is changed: return a new one.", got=values)
    if not isinstance(new, dict) or set(new) != set(values):
        raise Failed("The new values should be a dict with the names of `values`, and no others.", got=new)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((y, new))):
        raise Failed(
            "A tracer leaks into what you return: the attributes after the call are those of a trace.",
            got=(y, new),
        )
    wanted = np.array([1.0, -10.0])
    if np.allclose(y, [4.0, -3.0]):
        raise Failed(
            "The model ran with its own attributes: put `values` in their place first.",
            expected=wanted,
            got=y,
        )
    if np.shape(y) != (2,) or not np.allclose(y, wanted):
        raise Failed("The result is wrong.", input={"values": values, "x": x}, expected=wanted, got=y)
    _same_object(model, first)
    if not np.allclose(new["mean"], [3.0, -1.0]):
        raise Failed(
            "`new_values` holds the attributes as they are *after* the call: the mean has moved.",
            expected=np.array([3.0, -1.0]), got=new["mean"],
        )  # fmt: skip
    failing = Failing()
    kept = dict(vars(failing))
    try:
        pure_call(failing, values, x)
    except Exception:
        pass
    else:
        raise Failed("The model raised an error, and your function hid it: let it pass on.")
    _same_object(failing, kept, "the call raised, and ")
    with under("`jax.jit`"):
        jitted, _ = jax.jit(lambda values: pure_call(model, values, x))(values)
    if not np.allclose(jitted, wanted):
        raise Failed("Under `jax.jit` the result is another one.", expected=wanted, got=jitted)
    _same_object(model, first, "under `jax.jit` ")
    with under("`jax.grad`"):
        gradient = jax.grad(lambda values: pure_call(model, values, x)[0].sum())(values)["weight"]
    if not np.allclose(gradient, [1.0, -1.0]):
        raise Failed("The gradient for `weight` is wrong.", expected=np.array([1.0, -1.0]), got=gradient)
    with under("`jax.grad`"):
        through = jax.grad(lambda values: pure_call(model, values, x)[1]["mean"].sum())(values)["mean"]
    if not np.allclose(through, 0.5):
        said = "The gradient of `new_values` with respect to `values` is lost."
        raise Failed(said, expected=np.array([0.5, 0.5]), got=through)
    _fewer_and_more(pure_call, x)


def _fewer_and_more(pure_call, x):
    model = Averaging()
    model.weight = jnp.array([10.0, 100.0])
    y, new = pure_call(model, {"mean": jnp.array([2.0, 0.0])}, x)
    if not np.allclose(y, [10.0, -100.0]):
        said = "Attributes that are not in `values` should be those of `model`, as they are now."
        raise Failed(said, expected=np.array([10.0, -100.0]), got=y)
    if set(new) != {"mean"}:
        raise Failed("The new values should be a dict with the names of `values`, and no others.", got=new)

    class Counts(Averaging):
        def __init__(self, start):
            super().__init__()
            self.count = start

        def __call__(self, x):
            self.last = x  # an attribute that was not there
            return super().__call__(x)

    model = Counts(3)
    kept = dict(vars(model))
    try:
        pure_call(model, {"weight": jnp.ones(2)}, x)
    except Exception as error:
        if "start" not in f"{error} {error.__cause__}":
            raise
        raise Failed(
            "A second object made by `type(model)()` needs the arguments of its `__init__`, which you do not know: `copy.copy(model)` "
            "calls no `__init__`."
        ) from None
    _same_object(model, kept)


def _same_object(model, first, when=""):
    now = vars(model)
    changed = [name for name in first if name not in now or now[name] is not first[name]]
    changed += [name for name in now if name not in first]
    if changed:
        held = now.get(changed[0])
        leaked = " It holds a tracer now." if isinstance(held, jax.core.Tracer) else ""
        raise Failed(
            f"Afterwards the object should be as it was, but {when}its attribute `{changed[0]}` is not.{leaked}"
        )


exercise = Exercise(
    title="A pure function made of an object",
    stars=2,
    minutes=10,
    why="This is how any object becomes a function: run it with other values in its attributes, and return what they are afterwards. PyTorch calls it functional_call.",
    hints=(
        "Whatever the call does to another object with the same attributes leaves `model` as it is.",
        "`copy.copy(model)` makes that object, and `vars(other).update(values)` sets its attributes.",
    ),
    solution=solution,
    check=check,
)
