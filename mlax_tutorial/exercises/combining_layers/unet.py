"""One level of a U-shaped network."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import Raised
from mlax_tutorial.exercises.combining_layers._watched import method


class Level(nn.Composite):
    down: nn.Layer
    inner: nn.Layer
    up: nn.Layer

    def forward(self, call, x):
        inside = call.inner(call.down(x))
        return call.up(jnp.concatenate([x, inside], axis=-1))


def check(Level):
    if not issubclass(Level, nn.Composite):
        raise Failed("Derive the class from `nn.Composite`, which makes `init` and `fwd` of your `forward`.")
    x = jax.device_put(np.array([[1.0, -2.0, 0.5, 4.0], [0.25, 3.0, -1.0, 0.0]], np.float32))
    model = checks.make(Level, nn.Linear(3), nn.F(jnp.tanh), nn.Linear(2))
    try:
        outlines = jax.eval_shape(method(model, "init"), jax.random.key(0), x)
    except Raised as raised:
        if "Call.__call__()" in str(raised.error):
            raised.message = 'In the package a child is called like a method, `call.down(x)`, and not by its name as a string, `call("down", x)`.'
        raise
    wanted = {"down": {"kernel": (4, 3)}, "inner": (), "up": {"kernel": (7, 2)}}
    got = jax.tree.map(jnp.shape, outlines[0])
    if got != wanted:
        _wrong_sizes(got)
        raise Failed("The weights have other names or sizes than expected.", expected=wanted, got=got)
    draw = np.random.default_rng(0)
    trainables, non_trainables = jax.tree.map(lambda leaf: np.float32(draw.normal(size=leaf.shape)), outlines)
    trainables, non_trainables = jax.device_put((trainables, non_trainables))
    y, _ = method(model, "fwd")(x, trainables, non_trainables)
    _right_value(y, x, trainables["down"]["kernel"], trainables["up"]["kernel"])
    _gradient_and_dtype(method(model, "fwd"), x, trainables, non_trainables)
    _nested(Level, x)


def _wrong_sizes(got):
    kernel = got.get("up", {}).get("kernel") if isinstance(got, dict) and got.get("up") else None
    if kernel == (3, 2):
        raise Failed(
            "`up` sees only what comes from below: put x beside it, with `jnp.concatenate`.", got=got
        )
    if kernel == (6, 2):
        raise Failed(
            "What `up` sees has 6 features, so it is not x, with 4, beside what came from `inner`, with 3. Is `down(x)` in "
            "the place of x?",
            got=got,
        )


def _right_value(y, x, down, up):
    x, down, up = (np.asarray(array) for array in (x, down, up))
    inside = np.tanh(x @ down)
    expected = jax.device_put(np.concatenate([x, inside], axis=-1) @ up)
    others = {
        "The two parts are in the other order: first x, then what came from `inner`.": (
            np.concatenate([inside, x], axis=-1) @ up
        ),
        "`inner` is left out: what `down` gave goes straight up.": (
            np.concatenate([x, x @ down], axis=-1) @ up
        ),
    }
    for text, wrong in others.items():
        if getattr(y, "shape", None) == wrong.shape and np.allclose(y, wrong, atol=1e-5):
            raise Failed(text, expected=expected, got=y)
    checks.same(y, expected, rtol=1e-5, atol=1e-5)


def _gradient_and_dtype(fwd, x, trainables, non_trainables):
    down, up = trainables["down"]["kernel"], trainables["up"]["kernel"]
    got = jax.jit(jax.grad(lambda x: fwd(x, trainables, non_trainables)[0].sum()))(x)
    values, down, up = (np.asarray(array) for array in (x, down, up))
    beside, through = up.sum(1)[:4], ((1 - np.tanh(values @ down) ** 2) * up.sum(1)[4:]) @ down.T
    if np.allclose(got, through, atol=1e-4):
        raise Failed(
            "No gradient reaches x through the part that stands beside `inner`.",
            expected=beside + through,
            got=got,
        )
    checks.same(got, jax.device_put(beside + through), where="for the gradient by x", rtol=1e-4, atol=1e-4)
    outline = jax.ShapeDtypeStruct(x.shape, jnp.bfloat16)
    dtype = jax.eval_shape(lambda x: fwd(x, trainables, non_trainables)[0], outline).dtype
    if dtype != jnp.bfloat16:
        raise Failed(f"For an x of bfloat16 the output is {dtype}: concatenate x as it comes.")


def _nested(Level, x):
    """A level inside of a level, on images: the last axis holds the features, whatever stands before it."""
    inner = checks.make(Level, nn.Linear(2), nn.F(jnp.tanh), nn.Linear(3))
    model = checks.make(Level, nn.Linear(3), inner, nn.Linear(4))
    with checks.says("It works for an x with two axes; with one of shape (2, 5, 4):"):
        image = jax.ShapeDtypeStruct((2, 5, 4), jnp.float32)
        variables = jax.eval_shape(method(model, "init"), jax.random.key(1), image)
    got = jax.tree.map(jnp.shape, variables[0])
    wanted = {
        "down": {"kernel": (4, 3)},
        "inner": {"down": {"kernel": (3, 2)}, "inner": (), "up": {"kernel": (5, 3)}},
        "up": {"kernel": (7, 4)},
    }
    if got != wanted:
        raise Failed(
            "With a level inside of a level and an x of shape (2, 5, 4), the weights have other sizes than expected. "
            "Concatenate along the last axis.",
            expected=wanted,
            got=got,
        )


exercise = Exercise(
    title="One level of a U-shaped network",
    stars=2,
    minutes=15,
    why="Three lines of Python, and every level nests in the next: that is what a Composite is for.",
    hints=(
        "`call.down(x)` applies the child in the field `down`; the others likewise.",
        "What goes up is `jnp.concatenate([x, …], axis=-1)`, with what `inner` returned in the second place.",
    ),
    solution=Level,
    check=check,
)
