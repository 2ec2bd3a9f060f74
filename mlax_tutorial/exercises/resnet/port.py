"""A residual block of torchvision, by its names, as variables of ours."""

import itertools

import jax
import numpy as np

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.checking.describe import is_array
from mlax_tutorial.exercises.resnet._reference import waves


def solution(tensors):
    def conv(name):
        return {"kernel": tensors[f"{name}.weight"].transpose(0, 2, 3, 1)}

    def norm(name):
        return {"scale": tensors[f"{name}.weight"], "bias": tensors[f"{name}.bias"]}

    def averages(name):
        return {"mean": tensors[f"{name}.running_mean"], "variance": tensors[f"{name}.running_var"]}

    trainables = {"layer": (conv("conv1"), norm("bn1"), (), conv("conv2"), norm("bn2"))}
    rest = {"layer": ((), averages("bn1"), (), (), averages("bn2"))}
    if "downsample.0.weight" in tensors:
        trainables["shortcut"] = conv("downsample.0"), norm("downsample.1")
        rest["shortcut"] = (), averages("downsample.1")
    return trainables, rest


def _tensors(inputs, channels, shortcut, dtype):
    made = {}

    def wave(name, *shape, least=0):
        made[name] = (least + waves(*shape) / 2 + len(made)).astype(dtype)  # no two alike

    def norm(name, channels):
        for part in ("weight", "bias", "running_mean", "running_var"):
            wave(f"{name}.{part}", channels, least=1)
        made[f"{name}.num_batches_tracked"] = np.int64(1000)

    wave("conv1.weight", channels, inputs, 3, 3)
    norm("bn1", channels)
    wave("conv2.weight", channels, channels, 3, 3)
    norm("bn2", channels)
    if shortcut:
        wave("downsample.0.weight", channels, inputs, 1, 1)
        norm("downsample.1", channels)
    return made


# Inputs, channels, whether there is a shortcut (also where the number of channels stays, for strides), and the dtype.
FILES = (2, 4, True, "float32"), (3, 3, False, "float32"), (3, 3, True, "float16")


def check(port):
    for number, file in enumerate(FILES):
        tensors = _tensors(*file)
        if number:
            tensors = dict(sorted(tensors.items()))  # as in a file of safetensors
        before = {name: (array, np.array(array)) for name, array in tensors.items()}
        got = port(tensors)
        shown = {"input": {name: str(np.shape(array)) for name, (array, _) in before.items()}}
        if tensors.keys() - before.keys() or before.keys() - tensors.keys():
            raise Failed(
                "Your function takes entries out of the dict that it is given, or adds some: leave it as it is.",
                **shown,
            )
        if any(
            tensors[name] is not one or not np.array_equal(one, copy) for name, (one, copy) in before.items()
        ):
            raise Failed(
                "Your function changes an array of the dict that it is given: leave it as it is.", **shown
            )
        if not isinstance(got, tuple) or len(got) != 2:
            raise Failed("Return a pair, the trainables and the non_trainables.", got=got, **shown)
        given = {name: copy for name, (_, copy) in before.items()}
        wanted = solution(given)
        for role, tree, expected in zip(("trainables", "non_trainables"), got, wanted):
            _structure(role, tree, expected, file[2], shown)
            paths = jax.tree_util.tree_flatten_with_path(expected)[0]
            for (path, right), leaf in zip(paths, jax.tree.leaves(tree)):
                _leaf(f"{role}{jax.tree_util.keystr(path)}", leaf, right, given, shown)


def _structure(role, tree, wanted, shortcut, shown):
    if jax.tree.structure(tree) == jax.tree.structure(wanted):
        return
    if isinstance(tree, dict) and set(tree) != set(wanted):
        if not shortcut and "shortcut" in tree:
            raise Failed(
                f'Without a downsampling layer in the file there is no `"shortcut"` in the {role}.',
                got=tree,
                **shown,
            )
        raise Failed(
            f"The {role} should be a dict with {sorted(wanted)}, got {sorted(map(str, tree))}.", **shown
        )
    if "num_batches_tracked" in str(tree) or len(jax.tree.leaves(tree)) > len(jax.tree.leaves(wanted)):
        raise Failed(
            f"There is more in the {role} than our layers have. PyTorch's `num_batches_tracked` is a count that nothing here needs.",
            got=tree,
            **shown,
        )
    outline = jax.tree.map(np.shape, wanted)
    raise Failed(
        f"The {role} are not built like the block's: a tuple for each Series, with `()` where a layer has none. `model.init` shows it.",
        expected=outline,
        got=jax.tree.map(np.shape, tree),
        **shown,
    )


def _leaf(name, leaf, right, tensors, shown):
    if not is_array(leaf) and not isinstance(leaf, np.ndarray):
        raise Failed(f"`{name}` should be an array.", got=leaf, **shown)
    leaf = np.asarray(leaf)
    if leaf.dtype != right.dtype and leaf.shape == right.shape and np.allclose(leaf, right, rtol=1e-2):
        raise Failed(
            f"`{name}` is {leaf.dtype}, and in the file it is {right.dtype}: dtypes stay, as our layers take over that of the weights.",
            **shown,
        )
    if leaf.shape == right.shape and np.array_equal(leaf, right):
        return
    if right.ndim == 4:
        for axes in itertools.permutations(range(4)):
            if any(
                np.array_equal(leaf, array.transpose(axes)) for array in tensors.values() if array.ndim == 4
            ):
                said = "".join("OIHW"[axis] for axis in axes)
                if said == "OHWI":
                    break
                raise Failed(
                    f"`{name}` has its axes in the order {said}. PyTorch's is OIHW, out, in, height, width; that of our Conv is OHWI.",
                    expected=right.shape,
                    got=leaf.shape,
                    **shown,
                )
        if leaf.shape == right.shape and not any(
            np.array_equal(leaf, array.transpose(0, 2, 3, 1)) for array in tensors.values() if array.ndim == 4
        ):
            raise Failed(
                f"`{name}` has the right shape, but its numbers are in other places: `transpose` moves axes, `reshape` only renames places.",
                **shown,
            )
    source = next((key for key, array in tensors.items() if _came_from(leaf, array)), None)
    wanted = next(key for key, array in tensors.items() if _came_from(right, array))
    if source:
        raise Failed(f"`{name}` is `{source}`, and should be `{wanted}`.", **shown)
    if right.ndim == 1 and leaf.shape == right.shape and np.allclose(leaf, np.sqrt(np.abs(right)), atol=1e-6):
        raise Failed(f"`{name}` is a root: both libraries keep the variance itself.", **shown)
    raise Failed(
        f"`{name}` should be `{wanted}`, and its numbers are others.", expected=right, got=leaf, **shown
    )


def _came_from(leaf, array):
    if np.ndim(array) == 4:
        array = array.transpose(0, 2, 3, 1)
    return np.shape(array) == leaf.shape and np.array_equal(leaf, array)


exercise = Exercise(
    title="Weights of a PyTorch block",
    stars=3,
    minutes=20,
    why="Published weights are names, shapes and a layout; once these are mapped, what others have trained for weeks is yours.",
    hints=(
        "Write three small functions, for a convolution, for a norm's scale and bias, and for its averages, each from a name such as `bn1`.",
        "PyTorch keeps kernels as `(out, in, height, width)`, ours are `(out, height, width, in)`: `transpose(0, 2, 3, 1)`.",
        'The trainables are `{"layer": (conv1, bn1, (), conv2, bn2)}`, and `"shortcut": (conv, norm)` if `downsample.0.weight` is there; '
        "the non_trainables have `()` in the place of each convolution and of the ReLU.",
    ),
    solution=solution,
    check=check,
)
