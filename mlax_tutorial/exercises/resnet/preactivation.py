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
            _updates(updated, x, trainables, non_trainables, strides, inference_mode, given)
    _dtype(layer, x)
    _other_strides(Block, x)
    checks.obeys_laws(layer, x, averages=True, but=COSTLY)


def _dtype(layer, x):
    """Whether half precision stays; only traced."""
    half = LayerSubject(layer, x.shape[1:])
    x = jax.ShapeDtypeStruct(x.shape, jnp.bfloat16)
    trainables, non_trainables = jax.eval_shape(half.init, jax.random.key(0), x)
    y, _ = jax.eval_shape(half.fwd, x, trainables, non_trainables)
    wrong = {f"an output of {y.dtype}"} if y.dtype != jnp.bfloat16 else set()
    wrong |= {
        f"weights of {leaf.dtype}" for leaf in jax.tree.leaves(trainables) if leaf.dtype != jnp.bfloat16
    }
    if wrong:
        raise Failed(
            f"For x in bfloat16 the block has {' and '.join(sorted(wrong))}: a layer keeps the dtype of its input (a law). "
            "Convert nothing, and leave the layers' dtypes as they are."
        )


def _other_strides(Block, x):
    """Strides of 3, which need a shortcut, too; only traced."""
    x = jax.ShapeDtypeStruct((3, 7, 7, 2), x.dtype)  # where strides of 2 give another shape
    layer = LayerSubject(checks.make(Block, 2, 3), x.shape[1:])
    outlines = jax.eval_shape(layer.init, jax.random.key(0), x)
    _shapes(outlines, NAMES | {"shortcut"}, 2, 3)
    y, _ = jax.eval_shape(layer.fwd, x, *outlines)
    if y.shape != (3, 3, 3, 2):
        raise Failed(
            "With strides=3 the output has the wrong shape: `conv_1` and the shortcut have the strides that the block is given.",
            input={"x": x.shape, "strides": 3},
            expected=(3, 3, 3, 2),
            got=y.shape,
        )


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


def _updates(updated, x, trainables, before, strides, inference, given):
    if jax.tree.structure(updated) != jax.tree.structure(before):
        raise Failed("`fwd` should return the non_trainables as they are built.", input=given, got=updated)
    updated, before = (jax.tree.map(np.asarray, tree) for tree in (updated, before))
    flat = jax.tree_util.tree_flatten_with_path(before)[0]
    moved = [bool(np.any(one != two)) for one, two in zip(jax.tree.leaves(updated), jax.tree.leaves(before))]
    if inference and any(moved):
        raise Failed("Inference changes the running averages.", input=given)
    if inference:
        return
    if not all(moved):
        raise Failed("Some running averages do not move in training: return the new ones.", input=given)
    normed = _normed(x, trainables, strides)
    for (path, old), new in zip(flat, jax.tree.leaves(updated)):
        name, kind = (key.key for key in path)
        batch = normed[name].mean((0, 1, 2)) if kind == "mean" else normed[name].var((0, 1, 2))
        once = 0.9 * old + 0.1 * batch
        if close(new, once, 1e-4):
            continue
        shown = {"input": given, "expected": once, "got": new}
        if close(new, 0.9 * once + 0.1 * batch, 1e-4):
            said = f"The running {kind} of `{name}` moves twice: call the norm once, and use what it returns in both places."
        elif np.allclose(
            (new - old) * 0.1, (once - old) * np.mean((new - old) / (once - old)) * 0.1, atol=1e-5
        ):
            said = f"The running {kind} of `{name}` moves by another share than a tenth: leave the norm's `momentum` as it is."
        else:
            said = f"The running {kind} of `{name}` is wrong: is the norm also called on something else than what it normalizes here?"
        raise Failed(said, **shown)


def _normed(x, trainables, strides):
    """What the two norms are given in training."""
    affine = [np.asarray(trainables["norm_1"][leaf]) for leaf in ("scale", "bias")]
    y = np.maximum(standardized(x, *affine), 0)
    return {"norm_1": np.asarray(x), "norm_2": conv(y, np.asarray(trainables["conv_1"]["kernel"]), strides)}


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
