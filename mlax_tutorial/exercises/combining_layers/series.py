"""A Series with names."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks, guarding
from mlax_tutorial.exercises.combining_layers._watched import (
    OF_THE_LAYERS_INSIDE,
    Count,
    Draws,
    Fixed,
    Noise,
    agrees,
    counts,
    keeps_what_init_made,
    method,
    passes_gradients_on,
    says_whether_it_needs_a_key,
)


class NamedSeries(nn.Layer):
    names: tuple
    layers: tuple

    @property
    def needs_key(self):
        return any(layer.needs_key for layer in self.layers)

    def init(self, key, x):
        trainables, non_trainables = {}, {}
        keys = jax.random.split(key, len(self.layers))
        for name, layer, key in zip(self.names, self.layers, keys):
            pair = trainables[name], non_trainables[name] = layer.init(key, x)
            fwd = partial(layer.fwd, inference_mode=True)
            x = jax.eval_shape(fwd, x, *pair)[0]
        return trainables, non_trainables

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        needing = [name for name, layer in zip(self.names, self.layers) if layer.needs_key]
        keys, updated = {}, {}
        if key is not None and needing:
            keys = dict(zip(needing, jax.random.split(key, len(needing))))
        for name, layer in zip(self.names, self.layers):
            fwd = partial(layer.fwd, key=keys.get(name), inference_mode=inference_mode)
            try:
                x, updated[name] = fwd(x, trainables[name], non_trainables[name])
            except Exception as error:
                error.add_note(f"in {name}, {layer}")
                raise
        return x, updated


def check(NamedSeries):
    x = jax.device_put(np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32))
    _sizes_follow(NamedSeries, x)
    model = checks.make(NamedSeries, ("first", "second"), (nn.Linear(3), nn.Linear(3)))
    _right_trees(model, x)
    says_whether_it_needs_a_key(lambda child: checks.make(NamedSeries, ("noise",), (child,)))
    counting = checks.make(NamedSeries, ("a", "b"), (Count(), Count()))
    counts(counting, lambda tree: tree["b"], x)
    _in_its_own_order(NamedSeries, x)
    _nested(NamedSeries, x)
    _place_of_an_error(NamedSeries, x)
    _note_on_any_error(NamedSeries, x)
    whole = checks.make(NamedSeries, ("a", "b", "c"), (Noise(), Count(), Noise()))
    checks.obeys_laws(whole, x, but=OF_THE_LAYERS_INSIDE)
    _masks_stay(NamedSeries, x)
    _four(NamedSeries, x)
    keeps_what_init_made(checks.make(NamedSeries, ("a",), (Fixed(),)), lambda tree: tree["a"], x)
    passes_gradients_on(
        model,
        lambda x, tree: x @ tree["first"]["kernel"] @ tree["second"]["kernel"],
        x,
        *method(model, "init")(jax.random.key(0), x),
    )


def _sizes_follow(NamedSeries, x):
    """Each layer is initialized for what the one before it returns. By shapes alone, so that nothing is compiled."""
    model = checks.make(NamedSeries, ("first", "second"), (nn.Linear(5), nn.Linear(3)))
    trainables, _ = jax.eval_shape(method(model, "init"), jax.random.key(0), x)
    got = jax.tree.map(jnp.shape, trainables)
    if got == {"first": {"kernel": (3, 5)}, "second": {"kernel": (3, 3)}}:
        raise Failed(
            "`init` shows every layer the input of the whole. The second layer gets what the first one returns: ask "
            "`jax.eval_shape` for its shape, and go on with that.",
            expected={"first": {"kernel": (3, 5)}, "second": {"kernel": (5, 3)}},
            got=got,
        )


def _right_trees(model, x):
    trainables, non_trainables = method(model, "init")(jax.random.key(0), x)
    wanted = {"first": {"kernel": (3, 3)}, "second": {"kernel": (3, 3)}}
    for role, tree, shapes in [
        ("trainables", trainables, wanted),
        ("non_trainables", non_trainables, {"first": (), "second": ()}),
    ]:
        if not isinstance(tree, dict) or set(tree) != {"first", "second"}:
            raise Failed(
                f"The {role} should be a dict with one entry for each name, here 'first' and 'second'.",
                got=tree,
            )
        got = jax.tree.map(jnp.shape, tree)
        if got != shapes:
            raise Failed(
                f"An entry of the {role} is not what its layer's `init` returned for it.",
                expected=shapes,
                got=got,
            )
    first, second = (np.asarray(trainables[name]["kernel"]) for name in ("first", "second"))
    if np.array_equal(first, second):
        raise Failed(
            "Two layers of the same size begin with the same weights: in `init`, too, each layer needs a key of its own."
        )
    y, _ = method(model, "fwd")(x, trainables, non_trainables)
    agrees(y, np.asarray(x) @ first @ second, "for two Linears")


def _in_its_own_order(NamedSeries, x):
    """JAX sorts the entries of a dict whenever it rebuilds one, so the order of the layers is that of the names."""
    model = checks.make(NamedSeries, ("second", "first"), (nn.Linear(2), nn.Linear(3)))
    kernels = (
        np.sin(np.arange(6, dtype=np.float32)).reshape(3, 2),
        np.cos(np.arange(6, dtype=np.float32)).reshape(2, 3),
    )
    trainables = jax.device_put({"first": {"kernel": kernels[1]}, "second": {"kernel": kernels[0]}})
    expected = np.asarray(x) @ kernels[0] @ kernels[1]
    with checks.says(
        'The names here are ("second", "first"), and the dicts have been through `jax.tree.map`, which sorts their entries: take each '
        "entry by its name, and not in the order in which the dict holds it."
    ):
        y, _ = method(model, "fwd")(x, trainables, {"first": (), "second": ()})
        agrees(y, expected, 'for the names ("second", "first")')


def _four(NamedSeries, x):
    """More layers, and more that draw."""
    names = ("a", "b", "c", "d")
    model = checks.make(NamedSeries, names, (Draws(),) * len(names))
    variables = method(model, "init")(jax.random.key(6), x)
    for tree in variables:
        if set(tree) != set(names):
            raise Failed(
                "Of four layers `init` leaves some out: does `zip` stop early, since there are fewer keys than layers?",
                expected=f"the entries {', '.join(names)}",
                got=tree,
            )
    _, updated = method(model, "fwd")(x, *variables, key=jax.random.key(7))
    drawn = [np.asarray(updated[name]["drawn"]) for name in names]
    if any(np.array_equal(one, other) for one, other in itertools.combinations(drawn, 2)):
        raise Failed(
            "Two layers draw the same random numbers in `fwd`: each needs a key of its own, by `jax.random.split`."
        )


def _nested(NamedSeries, x):
    inner = checks.make(NamedSeries, ("a", "b"), (Noise(), Count()))
    model = checks.make(NamedSeries, ("inner", "tail"), (inner, nn.Linear(3)))
    method(model, "fwd")(x, *method(model, "init")(jax.random.key(3), x), key=jax.random.key(4))


def _same(x):
    return x


def _masks_stay(NamedSeries, x):
    """A layer in front that draws nothing shifts no key."""
    alone = checks.make(NamedSeries, ("noise",), (Noise(),))
    behind = checks.make(NamedSeries, ("quiet", "noise"), (nn.F(_same), Noise()))
    noises = [
        method(model, "fwd")(
            x, dict.fromkeys(model.names, ()), dict.fromkeys(model.names, ()), key=jax.random.key(8)
        )
        for model in (alone, behind)
    ]
    if not np.allclose(noises[0][0], noises[1][0], atol=1e-6):
        raise Failed(
            "With one more layer in front, which draws nothing, the layer behind it draws other numbers: split the key only into as "
            "many as there are layers that need one, as `keys_for` does.",
            expected=noises[0][0],
            got=noises[1][0],
        )


class Broken(nn.Layer):
    """Raises what a layer may raise besides a `ValueError`."""

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        raise TypeError("made to fail")


def _note_on_any_error(NamedSeries, x):
    model = checks.make(NamedSeries, ("body", "tail"), (nn.F(_same), Broken()))
    nothing = {"body": (), "tail": ()}
    try:
        model.fwd(x, nothing, nothing)
    except Exception as error:
        if "tail" not in " ".join([str(error), *getattr(error, "__notes__", ())]):
            raise Failed(
                "A layer raised a TypeError, and no note says which. A layer may raise any error: `except Exception as error`."
            ) from None
        return
    raise Failed("A layer raised a TypeError, and `fwd` swallowed it: after the note, `raise` it again.")


def _place_of_an_error(NamedSeries, x):
    model = checks.make(NamedSeries, ("body", "tail"), (nn.Linear(3), nn.Linear(3)))
    for broken, sound in [("tail", "body"), ("body", "tail")]:
        _names_the_broken_one(model, x, broken, sound)


def _names_the_broken_one(model, x, broken, sound):
    variables = method(model, "init")(jax.random.key(5), x)
    variables[0][broken] = {"kernel": jax.device_put(np.ones((4, 3), np.float32))}  # of another model
    try:
        model.fwd(x, *variables)
    except ValueError as error:
        said = " ".join([str(error), *getattr(error, "__notes__", ())])
        if broken not in said:
            raise Failed(
                f"The layer called '{broken}' raised an error, and neither its message nor a note on it says so: catch it, "
                "`error.add_note(…)` with the name, and `raise` it again.",
                shown=[("the error", said)],
            ) from None
        if sound in said:
            raise Failed(
                f"The layer called '{broken}' raised an error, and its note also names '{sound}', which did nothing wrong.",
                shown=[("the error", said)],
            ) from None
        return
    except Exception as error:
        raise guarding.as_theirs(error) from None
    raise Failed("A layer raised a ValueError, and `fwd` swallowed it: after the note, `raise` it again.")


exercise = Exercise(
    title="A Series with names",
    stars=2,
    minutes=15,
    why="Weights by name survive a new layer in the middle, and an error that says where saves the search: this is nn.Series.",
    hints=(
        "Begin with the second `Series` of this page, and replace each list or tuple by a dict.",
        "`keys_for(self.layers, key)` gives a list of keys and Nones: zip it with the names and the layers.",
        'Around the call of a layer\'s `fwd`: `try: …`, `except Exception as error: error.add_note(f"in {name}"); raise`.',
    ),
    solution=NamedSeries,
    check=check,
)
