"""A residual block whose path stays free from end to end."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks, laws
from mlax_tutorial.checking.describe import is_array
from mlax_tutorial.checking.laws import LayerSubject
from mlax_tutorial.exercises.resnet._reference import close, conv, filled, norm, standardized, waves


class Block(nn.Composite):
    channels: int
    strides: int = 1

    def children(self):
        def conv(size, strides=1):
            return nn.Conv(self.channels, (size, size), strides=strides, padding=size // 2)

        made = {
            "norm_1": nn.BatchNorm(affine=True),
            "conv_1": conv(3, self.strides),
            "norm_2": nn.BatchNorm(affine=True),
            "conv_2": conv(3),
        }
        return made | ({"shortcut": conv(1, self.strides)} if self.strides > 1 else {})

    def forward(self, call, x):
        y = jax.nn.relu(call.norm_1(x))
        shortcut = call.shortcut(y) if self.strides > 1 else x
        y = call.conv_1(y)
        return shortcut + call.conv_2(jax.nn.relu(call.norm_2(y)))


# Laws for which programs are compiled; what they show, the values below show already.
COSTLY = set(laws.LAYER) - {
    "frozen", "hashable", "equal by value", "static", "init repeats", "init from shapes", "plain containers", "another key",
    "as eval_shape says",
}  # fmt: skip
NAMES = {"norm_1", "conv_1", "norm_2", "conv_2"}


def check(Block):
    for strides, channels in ((1, 2), (2, 3)):
        layer = checks.make(Block, channels, *([strides] if strides > 1 else []))  # 1 is the default
        x = waves(3, 4, 4, 2)
        guarded = LayerSubject(layer, x.shape[1:])
        laws.LAYER["signature"](guarded)
        names = NAMES | ({"shortcut"} if strides > 1 else set())
        outlines = jax.eval_shape(guarded.init, jax.random.key(0), x)
        _shapes(outlines, names, channels, strides)
        trainables, non_trainables = filled(outlines)
        for inference_mode in (True, False) if strides > 1 else (True,):
            y, updated = jax.jit(guarded.fwd, static_argnames="inference_mode")(
                x, trainables, non_trainables, inference_mode=inference_mode
            )
            given = {"x": x, "strides": strides, "inference_mode": inference_mode}
            wanted = _block(x, trainables, non_trainables, strides, inference_mode)
            _compare(y, wanted, given, x, trainables, non_trainables, strides, inference_mode)
            _updates(updated, non_trainables, inference_mode, given)
    checks.obeys_laws(layer, x, averages=True, but=COSTLY)


def _shapes(outlines, names, channels, strides):
    trainables, non_trainables = outlines
    for role, tree, wanted in (
        ("trainables", trainables, names),
        ("non_trainables", non_trainables, names),
    ):
        if not isinstance(tree, dict) or set(tree) != wanted:
            found = sorted(tree) if isinstance(tree, dict) else type(tree).__name__
            said = f"With strides={strides} the {role} should be a dict with {sorted(wanted)}, got {found}."
            if isinstance(tree, dict) and wanted - set(tree) == {"shortcut"}:
                said += " Where the block changes the shape, the path needs a convolution of its own."
            raise Failed(said)
    for name in sorted(names):
        _kind(name, trainables[name], non_trainables[name])
    kernel = {name: trainables[name]["kernel"].shape for name in names if name.startswith(("conv", "short"))}
    wanted = {"conv_1": (channels, 3, 3, 2), "conv_2": (channels, 3, 3, channels)}
    wanted |= {"shortcut": (channels, 1, 1, 2)} if strides > 1 else {}
    if kernel != wanted:
        raise Failed(f"The kernels should have the shapes {wanted}, got {kernel}.")
    features = {name: trainables[name]["scale"].shape for name in ("norm_1", "norm_2") if trainables[name]}
    if features != {"norm_1": (2,), "norm_2": (channels,)}:
        raise Failed(
            "`norm_1` normalizes x, and `norm_2` what `conv_1` returns, each with a scale and a bias (`affine=True`): their scales "
            f"should have the shapes (2,) and ({channels},), got {features or 'none'}."
        )


def _kind(name, trainables, averages):
    """Whether a child holds what a convolution holds, or a norm (one without a scale is spoken of later)."""
    has = {role: sorted(tree) if isinstance(tree, dict) else [] for role, tree in (("trainables", trainables), ("averages", averages))}  # fmt: skip
    if name.startswith("norm"):
        affine = not jax.tree.leaves(trainables) or {"bias", "scale"} <= set(has["trainables"])
        if not affine or not {"mean", "variance"} <= set(has["averages"]):
            raise Failed(
                f"`{name}` should be one `nn.BatchNorm(affine=True)`, with a scale, a bias and running averages."
            )
    elif has["trainables"] != ["kernel"] or jax.tree.leaves(averages):
        raise Failed(
            f"`{name}` should be one `nn.Conv`, which holds a kernel and nothing else: no norm, and no `nn.Series`."
        )


def _block(x, trainables, non_trainables, strides, inference, wrong=""):
    """The block in NumPy, or one with a mistake."""

    def normalize(name, x):
        affine = [np.asarray(trainables[name][leaf]) for leaf in ("scale", "bias")]
        if not inference:
            return standardized(x, *affine)
        averages = [np.asarray(non_trainables[name][leaf]) for leaf in ("mean", "variance")]
        return norm(x, *averages, *affine)

    def convolve(name, x, stride=1):
        return conv(x, np.asarray(trainables[name]["kernel"]), stride)

    relu = lambda x: np.maximum(x, 0)  # noqa: E731
    first = normalize("norm_1", x)
    y = first if wrong == "no first ReLU" else relu(first)
    path = x
    if strides > 1:
        path = convolve("shortcut", x if wrong == "raw shortcut" else y, strides)
    elif wrong == "activated path":
        path = y
    y = normalize("norm_2", convolve("conv_1", y, strides))
    y = convolve("conv_2", y if wrong == "no second ReLU" else relu(y))
    if wrong == "no path":
        return y
    return relu(path + y) if wrong == "ReLU after" else path + y


MISTAKES = {
    "no path": "The sum is missing: this is the branch alone.",
    "ReLU after": "There is a ReLU after the sum. In this block nothing follows it: that is what keeps the path free.",
    "raw shortcut": "The shortcut is given x itself. It gets what the branch gets: x after `norm_1` and the ReLU.",
    "activated path": "Without a shortcut the path is x itself, not x after `norm_1` and the ReLU.",
    "no first ReLU": "The ReLU after `norm_1` is missing.",
    "no second ReLU": "The ReLU after `norm_2` is missing.",
}


def _compare(y, wanted, given, x, trainables, non_trainables, strides, inference):
    if not is_array(y):
        raise Failed("`fwd` should return an array and non_trainables.", input=given, got=y)
    if close(y, wanted, 1e-4):
        return
    if close(y, wanted):
        raise Failed(
            "The output has lost digits: it is rounded to half precision.",
            input=given,
            expected=wanted,
            got=y,
        )
    for wrong, said in MISTAKES.items():
        if close(y, _block(x, trainables, non_trainables, strides, inference, wrong)):
            raise Failed(said, input=given, expected=wanted, got=y)
    raise Failed("The output is wrong.", input=given, expected=wanted, got=y)


def _updates(updated, before, inference, given):
    same = jax.tree.map(lambda one, two: bool(jnp.all(one == two)), updated, before)
    moved = not all(jax.tree.leaves(same))
    if inference and moved:
        raise Failed("Inference changes the running averages.", input=given)
    if not inference and any(jax.tree.leaves(same)):
        raise Failed("Some running averages do not move in training: return the new ones.", input=given)


exercise = Exercise(
    title="A block that leaves the path free",
    stars=3,
    minutes=20,
    why="Nothing but sums lies between the first block and the last: that is how networks of a thousand layers were trained.",
    hints=(
        "`children()` returns the dict of layers; leave `shortcut` out where strides is 1. Then `call.conv_1(x)` applies a child.",
        "First `y = jax.nn.relu(call.norm_1(x))`. From it go both the branch and, where there is one, the shortcut.",
        "`path = call.shortcut(y) if self.strides > 1 else x`, then `path + call.conv_2(jax.nn.relu(call.norm_2(call.conv_1(y))))`.",
    ),
    solution=Block,
    check=check,
)
