"""Answers to the exercise resnet.port."""

import numpy as np

from mlax_tutorial.exercises.resnet.port import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


class Port:
    """A right answer in parts, of which each wrong one changes one."""

    axes = (0, 2, 3, 1)

    def __call__(self, tensors):
        self.tensors = tensors
        trainables = {
            "layer": (self.conv("conv1"), self.norm("bn1"), (), self.conv("conv2"), self.norm("bn2"))
        }
        rest = {"layer": ((), self.averages("bn1"), (), (), self.averages("bn2"))}
        if "downsample.0.weight" in tensors:
            trainables["shortcut"] = self.conv("downsample.0"), self.norm("downsample.1")
            rest["shortcut"] = (), self.averages("downsample.1")
        return trainables, rest

    def conv(self, name):
        return {"kernel": self.tensors[f"{name}.weight"].transpose(self.axes)}

    def norm(self, name):
        return {"scale": self.tensors[f"{name}.weight"], "bias": self.tensors[f"{name}.bias"]}

    def averages(self, name):
        return {
            "mean": self.tensors[f"{name}.running_mean"],
            "variance": self.tensors[f"{name}.running_var"],
        }


@answers.wrong("in the order OIHW")
def as_it_is(tensors):
    class AsItIs(Port):
        axes = (0, 1, 2, 3)

    return AsItIs()(tensors)


@answers.wrong("in the order HWIO")
def as_in_flax(tensors):
    class AsInFlax(Port):
        axes = (2, 3, 1, 0)

    return AsInFlax()(tensors)


@answers.wrong("`reshape` only renames places")
def reshapes(tensors):
    class Reshapes(Port):
        def conv(self, name):
            kernel = self.tensors[f"{name}.weight"]
            out, inputs, height, width = kernel.shape
            return {"kernel": kernel.reshape(out, height, width, inputs)}

    return Reshapes()(tensors)


@answers.wrong("is `bn1.weight`, and should be `bn1.bias`")
def scale_and_bias_swapped(tensors):
    class Swapped(Port):
        def norm(self, name):
            return {"scale": self.tensors[f"{name}.bias"], "bias": self.tensors[f"{name}.weight"]}

    return Swapped()(tensors)


@answers.wrong("is `bn1.running_var`, and should be `bn1.running_mean`")
def averages_swapped(tensors):
    class Swapped(Port):
        def averages(self, name):
            found = super().averages(name)
            return {"mean": found["variance"], "variance": found["mean"]}

    return Swapped()(tensors)


@answers.wrong("both libraries keep the variance itself")
def deviation(tensors):
    class Deviation(Port):
        def averages(self, name):
            found = super().averages(name)
            return found | {"variance": np.sqrt(found["variance"])}

    return Deviation()(tensors)


@answers.wrong("is a count that nothing here needs")
def keeps_the_count(tensors):
    class Count(Port):
        def averages(self, name):
            return super().averages(name) | {"count": self.tensors[f"{name}.num_batches_tracked"]}

    return Count()(tensors)


@answers.wrong("should be a dict with ['layer', 'shortcut']")
def no_shortcut(tensors):
    kept = {name: array for name, array in tensors.items() if "downsample" not in name}
    return Port()(kept)


@answers.wrong("not built like the block's")
def names_instead_of_places(tensors):
    trainables, rest = Port()(tensors)
    names = ("conv1", "bn1", "relu", "conv2", "bn2")
    return trainables | {"layer": dict(zip(names, trainables["layer"]))}, rest


@answers.wrong("Return a pair")
def trainables_alone(tensors):
    return Port()(tensors)[0]


@answers.wrong()
def pops(tensors):
    found = Port()(tensors)
    tensors.pop("conv1.weight")
    return found


@answers.wrong("is `bn1.bias`, and should be `downsample.1.bias`")
def norm_of_the_branch(tensors):
    trainables, rest = Port()(tensors)
    if "shortcut" in trainables:
        trainables["shortcut"] = trainables["shortcut"][0], trainables["layer"][1]
    return trainables, rest


@answers.wrong("is `bn1.running_mean`, and should be `downsample.1.running_mean`")
def averages_of_the_branch(tensors):
    trainables, rest = Port()(tensors)
    if "shortcut" in rest:
        rest["shortcut"] = (), rest["layer"][1]
    return trainables, rest


@answers.wrong("should be a dict with ['layer', 'shortcut']")
def shortcut_where_channels_change(tensors):
    trainables, rest = Port()(tensors)
    out, inputs, _, _ = tensors["conv1.weight"].shape
    return (trainables, rest) if out != inputs else ({"layer": trainables["layer"]}, {"layer": rest["layer"]})


@answers.wrong("dtypes stay")
def always_float32(tensors):
    return Port()({name: np.asarray(array, np.float32) for name, array in tensors.items()})


@answers.wrong("dtypes stay")
def doubles(tensors):
    return Port()({name: np.asarray(array, np.float64) for name, array in tensors.items()})


@answers.wrong("changes an array of the dict")
def puts_kernels_back(tensors):
    found = Port()(tensors)
    tensors["conv1.weight"] = tensors["conv1.weight"].transpose(0, 2, 3, 1)
    return found


@answers.wrong("changes an array of the dict")
def adds_epsilon_in_place(tensors):
    tensors["bn1.running_var"] += 1e-3
    return Port()(tensors)


@answers.wrong()
def by_the_order_of_the_file(tensors):
    names = [name for name in _order if name.split(".")[0] != "downsample" or len(tensors) > 12]
    return Port()(dict(zip(names, tensors.values())))


_norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
_order = [
    "conv1.weight", *(f"bn1.{part}" for part in _norm), "conv2.weight", *(f"bn2.{part}" for part in _norm),
    "downsample.0.weight", *(f"downsample.1.{part}" for part in _norm),
]  # fmt: skip


# Right ones of unusual style


@answers.right
def copies(tensors):
    return Port()({name: np.array(array, order="C") for name, array in tensors.items()})


@answers.right
def by_einsum(tensors):
    class ByEinsum(Port):
        def conv(self, name):
            return {"kernel": np.einsum("oihw->ohwi", self.tensors[f"{name}.weight"])}

    return ByEinsum()(tensors)


@answers.right
def by_swaps(tensors):
    class BySwaps(Port):
        def conv(self, name):
            return {"kernel": np.swapaxes(np.swapaxes(self.tensors[f"{name}.weight"], 1, 2), 2, 3)}

    return BySwaps()(tensors)


@answers.right
def in_parts(tensors):
    return Port()(tensors)


@answers.right
def by_moveaxis(tensors):
    def conv(name):
        return {"kernel": np.moveaxis(tensors[name + ".weight"], 1, -1)}

    def both(name):
        parts = ("weight", "bias", "running_mean", "running_var")
        scale, bias, mean, variance = (tensors[f"{name}.{part}"] for part in parts)
        return {"scale": scale, "bias": bias}, {"mean": mean, "variance": variance}

    (first, first_rest), (second, second_rest) = both("bn1"), both("bn2")
    trainables = {"layer": (conv("conv1"), first, (), conv("conv2"), second)}
    rest = {"layer": ((), first_rest, (), (), second_rest)}
    if any(name.startswith("downsample") for name in tensors):
        norm, averages = both("downsample.1")
        trainables |= {"shortcut": (conv("downsample.0"), norm)}
        rest |= {"shortcut": ((), averages)}
    return trainables, rest


@answers.right
def as_jax_arrays(tensors):
    import jax

    return jax.tree.map(jax.numpy.asarray, Port()(tensors))


answers.equivalent(
    "return {'kernel': tensors[f'{name}.weight'].transpose(0, 2, 3, 1)}: without a gradient",
    "return {'scale': tensors[f'{name}.weight'], 'bias': tensors[f'{name}.bias']}: without a gradient",
    "return {'mean': tensors[f'{name}.running_mean'], 'variance': tensors[f'{name}.running_var']}: without a gradient",
    because="the tensors of a file are NumPy arrays, and nobody differentiates by them",
)
