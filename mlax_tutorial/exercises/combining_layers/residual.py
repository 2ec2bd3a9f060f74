"""A residual connection with a shortcut."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks, guarding
from mlax_tutorial.exercises.combining_layers._watched import (
    OF_THE_LAYERS_INSIDE,
    Count,
    Fixed,
    Noise,
    agrees,
    counts,
    different_noise,
    keeps_what_init_made,
    method,
    says_whether_it_needs_a_key,
)


class Residual(nn.Layer):
    layer: nn.Layer
    shortcut: nn.Layer | None = None

    @property
    def children(self):
        both = {"layer": self.layer, "shortcut": self.shortcut}
        return {name: child for name, child in both.items() if child is not None}

    @property
    def needs_key(self):
        return any(child.needs_key for child in self.children.values())

    def init(self, key, x):
        keys = jax.random.split(key, len(self.children))
        pairs = [child.init(key, x) for child, key in zip(self.children.values(), keys)]
        trainables, non_trainables = zip(*pairs)
        return dict(zip(self.children, trainables)), dict(zip(self.children, non_trainables))

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        needing = [name for name, child in self.children.items() if child.needs_key]
        keys, terms, updated = {}, {"shortcut": x}, {}
        if key is not None and needing:
            keys = dict(zip(needing, jax.random.split(key, len(needing))))
        for name, child in self.children.items():
            fwd = partial(child.fwd, key=keys.get(name), inference_mode=inference_mode)
            terms[name], updated[name] = fwd(x, trainables[name], non_trainables[name])
        shapes = terms["layer"].shape, terms["shortcut"].shape
        if shapes[0] != shapes[1]:
            raise ValueError(f"layer gives {shapes[0]}, the shortcut {shapes[1]}: they must agree")
        return terms["shortcut"] + terms["layer"], updated


def check(Residual):
    x = jax.device_put(np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32))
    _plain(checks.make(Residual, nn.Linear(3)), x)
    _with_shortcut(checks.make(Residual, nn.Linear(4), nn.Linear(4)), x)
    says_whether_it_needs_a_key(lambda child: checks.make(Residual, child))
    says_whether_it_needs_a_key(lambda child: checks.make(Residual, nn.F(jnp.tanh), child))
    counts(checks.make(Residual, Count()), lambda tree: tree["layer"], x)
    counts(checks.make(Residual, nn.Linear(3), Count()), lambda tree: tree["shortcut"], x)
    _keys(Residual, x)
    _gradient(Residual, x)
    _refuses(Residual, x)
    checks.obeys_laws(checks.make(Residual, Count(), Noise()), x, but=OF_THE_LAYERS_INSIDE)
    keeps_what_init_made(checks.make(Residual, Fixed()), lambda tree: tree["layer"], x)


def _trees(model, x, names, shapes):
    trainables, non_trainables = method(model, "init")(jax.random.key(0), x)
    for role, tree in [("trainables", trainables), ("non_trainables", non_trainables)]:
        if not isinstance(tree, dict) or set(tree) != names:
            raise Failed(
                f"The {role} should be a dict with the entries {sorted(names)}.",
                got=tree,
            )
    got = jax.tree.map(jnp.shape, trainables)
    if got != shapes:
        raise Failed("An entry of the trainables is not its layer's.", expected=shapes, got=got)
    return trainables, non_trainables


def _plain(model, x):
    trainables, non_trainables = _trees(model, x, {"layer"}, {"layer": {"kernel": (3, 3)}})
    y, _ = method(model, "fwd")(x, trainables, non_trainables)
    x, kernel = np.asarray(x), np.asarray(trainables["layer"]["kernel"])
    agrees(y, x + x @ kernel, "without a shortcut")


def _with_shortcut(model, x):
    shapes = {"layer": {"kernel": (3, 4)}, "shortcut": {"kernel": (3, 4)}}
    trainables, non_trainables = _trees(model, x, {"layer", "shortcut"}, shapes)
    kernels = [np.asarray(trainables[name]["kernel"]) for name in ("layer", "shortcut")]
    if np.array_equal(*kernels):
        raise Failed(
            "The layer and the shortcut begin with the same weights: in `init`, too, each needs a key of its own."
        )
    y, _ = method(model, "fwd")(x, trainables, non_trainables)
    x = np.asarray(x)
    expected = x @ kernels[0] + x @ kernels[1]
    for wrong, text in [(x @ kernels[0], "shortcut"), (x @ kernels[1], "layer")]:
        if y.shape == wrong.shape and np.allclose(y, wrong, atol=1e-5):
            raise Failed(f"The {text} is left out of the sum.", expected=expected, got=y)
    agrees(y, expected, "with a Linear as shortcut")


def _keys(Residual, x):
    """With two layers of noise the output is 2 x + a + b."""
    both = checks.make(Residual, Noise(), Noise())
    variables = method(both, "init")(jax.random.key(1), x)
    y, _ = method(both, "fwd")(x, *variables, key=jax.random.key(2))
    quiet = checks.make(Residual, Count(), Noise())  # which complains if it is given a key
    method(quiet, "fwd")(x, *method(quiet, "init")(jax.random.key(3), x), key=jax.random.key(2))
    noise = np.asarray(y) - 2 * np.asarray(x)
    # one key for both would give twice the same numbers: then every entry is twice a draw of that key
    for key in (jax.random.key(2), *jax.random.split(jax.random.key(2))):
        if np.allclose(noise, 2 * np.asarray(jax.random.uniform(key, x.shape)), atol=1e-5):
            different_noise(noise, noise, "The layer and the shortcut draw")


def _refuses(Residual, x):
    """Terms that differ in shape, each pair in a way that broadcasting would make fit."""
    narrow, deeper = nn.F(lambda x: x[:, :1]), nn.F(lambda x: x[None])
    cases = [
        (narrow, None, (2, 1), (2, 3)),
        (nn.F(lambda x: x), narrow, (2, 3), (2, 1)),
        (deeper, None, (1, 2, 3), (2, 3)),
    ]
    for layer, shortcut, long, short in cases:
        model = checks.make(Residual, layer, shortcut)
        nothing = {"layer": ()} | ({} if shortcut is None else {"shortcut": ()})
        where = "" if shortcut is None else ", which is what the shortcut returned"
        try:
            y, _ = model.fwd(x, nothing, nothing)
        except ValueError as error:
            said = " ".join([str(error), *getattr(error, "__notes__", ())])
            if not all(_names(shape, said) for shape in (long, short)):
                raise Failed(
                    "The two terms differ in shape, and the message does not name both shapes.",
                    shown=[("message", said)],
                ) from None
        except Exception as error:
            failure = guarding.as_theirs(error)
            failure.say_first(f"For terms of shape {long} and {short} a `ValueError` is asked for.")
            raise failure from None
        else:
            raise Failed(
                f"A layer that returns {long} was added to an array of shape {short}{where}: broadcasting made the two fit. Compare "
                "the whole shapes first, and raise a `ValueError`.",
                got=y,
            )


def _gradient(Residual, x):
    model = checks.make(Residual, nn.F(jnp.sin))
    total = lambda x: method(model, "fwd")(x, {"layer": ()}, {"layer": ()})[0].sum()  # noqa: E731
    got = jax.jit(jax.grad(total))(x)
    checks.same(
        got,
        jax.device_put(1 + np.cos(np.asarray(x))),
        where="for the gradient of x + sin(x)",
        rtol=1e-4,
        atol=1e-4,
    )


def _names(shape, said):
    said = said.replace(" ", "")
    return any(left + ",".join(map(str, shape)) + right in said for left, right in ("()", "[]"))


exercise = Exercise(
    title="A residual connection with a shortcut",
    stars=2,
    minutes=10,
    why="Where a block changes the number of features, only a shortcut keeps a direct path for the gradient.",
    hints=(
        "Make a dict of the children first, with one entry or two; the rest is a loop over it, as in `Series`.",
        "Both children get the same `x`: no need to know what the first one returns before the second is initialized.",
        "Keys: `keys_for(children.values(), key)` from this page. Shapes: compare them before you add.",
    ),
    solution=Residual,
    check=check,
)
