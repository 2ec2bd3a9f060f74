"""Which exercises there are, in the order of the book."""

import importlib
import pathlib
import pkgutil

from mlax_tutorial.checking.exercise import Exercise

# Chapters in the order of the book, with their titles. A module that is not named here comes after them, by its name.
TITLES = {
    "welcome": "Welcome",
    "arrays": "Arrays",
    "randomness": "Randomness",
    "tracing": "Tracing",
    "jit": "jit",
    "compiling": "Shapes, memory, compiling ahead",
    "control_flow": "Control flow",
    "pytrees": "Pytrees",
    "autodiff": "Autodiff",
    "derivative_rules": "Derivative rules of your own",
    "vmap": "vmap",
    "transformations": "Your own transformation",
    "errors": "Errors, and how to read them",
    "first_network": "A first network",
    "layers": "Layers",
    "combining_layers": "Combining layers",
    "precision": "Precision",
    "optimizers": "Optimizers",
    "training_loop": "The training loop",
    "convolution": "Convolution and pooling",
    "normalization": "Normalization and dropout",
    "recurrent": "Recurrent layers",
    "attention": "Attention",
    "objects": "From functions to objects",
    "mlp": "An MLP, and what its accuracy means",
    "resnet": "ResNet",
    "names_and_text": "Recurrent networks on names and text",
    "encoder": "A Transformer encoder",
    "gpt": "GPT: a language model with a cache",
    "diffusion": "Diffusion",
    "placement": "Where arrays live",
    "measuring": "Measuring",
    "many_devices": "Many devices",
    "many_hosts": "Many hosts",
    "pallas": "TPU and Pallas",
}


def chapters():
    """The names of the chapters that have exercises."""
    found = pkgutil.iter_modules([str(pathlib.Path(__file__).parent)])
    names = [module.name for module in found if module.ispkg]
    order = list(TITLES)
    return sorted(names, key=lambda name: (order.index(name) if name in order else len(order), name))


def of(chapter):
    """The exercises of a chapter, in the order in which its module defines them."""
    name = f"{__package__}.{chapter}"
    module = importlib.import_module(name)
    return [value for value in vars(module).values() if isinstance(value, Exercise)]


def title(chapter):
    """A chapter's title; that of one which is not named above is made of its module's name."""
    return TITLES.get(chapter) or chapter.replace("_", " ").capitalize()
