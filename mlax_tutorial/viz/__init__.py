"""Figures that teach: drawings that a page can hold in light and in dark, with words for who cannot see them.

- :func:`subplots` begins a figure in the book's style, :func:`show` puts it on the page.
- ``trace`` steps through a function and the program that JAX records of it.
- ``key_tree`` shows which random keys a function derives, and which it uses twice.
- ``batch`` shows what ``jax.vmap`` makes of a function, equation by equation.
- ``jit_cache`` shows which calls of a function are traced, why, and which find their program in the cache.
- ``passes`` shows the forward and the backward pass of a function, and what is stored and computed again.
- ``ranges`` shows which floating-point formats can hold the numbers of a tree, and what a loss scale would change.
- ``tree`` unfolds a pytree: its containers, and its leaves with shapes, dtypes and bytes.
- ``model`` unfolds a model: its layers, what flows between them, weights, bytes, FLOPs, and who gets a random key.
- ``convolution`` shows which inputs each output of a convolution or a pooling sees, through a series of layers.
- ``descent`` follows optimizers over a function of two numbers, step by step.
- ``attention`` shows who looks at whom: the attention weights of each layer and head, for one input.
- ``gates`` shows the gates and the state of a recurrent cell while it reads, step by step.
- ``accuracies`` shows which of two models is better, and how often a test would say so.
- ``prefixes`` shows what classifiers make of a text, letter by letter.
- ``blocks`` shows what a trained residual network still knows without some of its blocks.
- ``denoising`` shows what denoisers make of images under more and more noise.
- ``next_token`` shows which token language models expect next, and which would be drawn.
- ``placement`` shows which part of an array lives on which device, and what other shardings would do.
- ``exchange`` shows what devices send each other in a step, and the bytes on each link.
- ``roofline`` shows what bounds some kernels, arithmetic or memory, and how near they come to it.
- ``grid_steps`` shows which blocks a Pallas kernel sees at each step, and what is copied.
- ``processes`` shows who waited for whom in a run of several processes, and whose numbers differ.
- ``timeline`` shows what the host and the device do while a loop runs.
- ``traceback`` takes an error apart, and marks one's own lines in it.
- :func:`show_source` shows code of the installed package.

Each of those in code is drawn by a module of its name in `figures`. Matplotlib is imported by the first figure, not by this package.
"""

from mlax_tutorial.viz.show import show
from mlax_tutorial.viz.source import show_source
from mlax_tutorial.viz.style import subplots

__all__ = [
    "accuracies",
    "attention",
    "batch",
    "blocks",
    "convolution",
    "denoising",
    "descent",
    "exchange",
    "gates",
    "grid_steps",
    "jit_cache",
    "key_tree",
    "model",
    "next_token",
    "passes",
    "placement",
    "prefixes",
    "processes",
    "ranges",
    "roofline",
    "show",
    "show_source",
    "subplots",
    "timeline",
    "trace",
    "traceback",
    "tree",
]


def __getattr__(name):
    """A figure, by its function's name. Their modules are not small ones, so each is imported when it is asked for."""
    if name in __all__:
        from importlib import import_module

        globals()[name] = function = getattr(import_module(f"{__name__}.figures.{name}"), name)
        return function
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
