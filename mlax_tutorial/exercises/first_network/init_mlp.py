"""Weights for any number of layers."""

import functools
import inspect
import itertools
import math

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks, guarding


def solution(key, sizes):
    params = []
    keys = jax.random.split(key, len(sizes) - 1)
    for layer_key, n_in, n_out in zip(keys, sizes[:-1], sizes[1:]):
        kernel = jax.random.normal(layer_key, (n_in, n_out)) * jnp.sqrt(2 / n_in)
        params.append({"kernel": kernel, "bias": jnp.zeros(n_out)})
    return params


def check(init_mlp):
    sizes, large = (3, 3, 3, 3), (300, 100, 60)  # few shapes: each compiles its random numbers anew
    of_large = jax.jit(lambda key: init_mlp(key, large))
    _structure_of_params(init_mlp(jax.random.key(0), sizes), sizes)
    _structure_of_params(of_large(jax.random.key(0)), large)
    for many in ((3,) * 7, (3, 3)):
        _structure_of_params(init_mlp(jax.random.key(0), many), many)
    theirs = guarding.original(init_mlp)
    names = list(inspect.signature(theirs).parameters)
    bound = (
        functools.partial(theirs, **{names[1]: sizes}) if len(names) == 2 else lambda key: theirs(key, sizes)
    )
    of_key = guarding.guard(bound, "init_mlp")
    checks.pure(of_key, jax.random.key(0))
    checks.keys(of_key, jax.random.key(0))
    for one, other in itertools.combinations(init_mlp(jax.random.key(1), sizes), 2):
        if np.array_equal(one["kernel"], other["kernel"]):
            raise Failed(
                "Two layers of the same size get the same kernel: each layer must draw from a key of its own.",
                input={"sizes": sizes},
                shown=[("both kernels", str(one["kernel"]))],
            )
    drawn = of_large(jax.random.key(2))
    _spread_of_kernels(drawn, large)
    # A shape takes as many of a key's numbers as it needs.
    one, other = (np.ravel(layer["kernel"])[:100] for layer in drawn)
    if np.allclose(one / one.std(), other / other.std(), atol=1e-4):
        raise Failed(
            "Two layers of different sizes draw the same random numbers, as many as each needs: give each layer a key of its own.",
            input={"sizes": large},
        )


def _structure_of_params(params, sizes):
    shown = {"input": {"sizes": sizes}}
    checks.returned(params, **shown)
    if isinstance(params, tuple) and params and all(isinstance(layer, dict) for layer in params):
        raise Failed(
            "You return a tuple of dicts, and a list is asked for. To JAX they are different trees: `jax.tree.map` over "
            "one of each refuses.",
            **shown,
        )
    if not isinstance(params, list) or not all(isinstance(layer, dict) for layer in params):
        raise Failed(
            'A list is asked for, with a dict for each layer: `[{"kernel": …, "bias": …}, …]`.',
            got=jax.tree.structure(params) if not isinstance(params, jax.Array) else params,
            **shown,
        )
    if len(params) != len(sizes) - 1:
        raise Failed(
            f"Between {len(sizes)} sizes there are {len(sizes) - 1} layers, but you return {len(params)}.",
            **shown,
        )
    for index, (layer, n_in, n_out) in enumerate(zip(params, sizes[:-1], sizes[1:])):
        if set(layer) != {"kernel", "bias"}:
            raise Failed(
                f"Layer {index} should have the entries 'bias' and 'kernel', but it has {sorted(map(str, layer))}.",
                **shown,
            )
        _shape_of_kernel(index, layer, n_in, n_out, shown)
        if np.any(np.asarray(layer["bias"])):
            raise Failed(f"The bias of layer {index} should be all 0.", got=layer["bias"], **shown)


def _shape_of_kernel(index, layer, n_in, n_out, shown):
    for name, shape in [("kernel", (n_in, n_out)), ("bias", (n_out,))]:
        got = layer[name]
        if not isinstance(got, jax.Array):
            raise Failed(
                f"The {name} of layer {index} should be a jax.Array, but it is a {type(got).__name__}.",
                **shown,
            )
        if got.shape == shape and got.dtype == jnp.float32:
            continue
        if name == "kernel" and got.shape == (n_out, n_in) != shape:
            raise Failed(
                f"The kernel of layer {index} lies on its side: it should be (inputs, outputs) = {shape}, so that "
                f"`x @ kernel` works, and it is {got.shape}.",
                **shown,
            )
        raise Failed(
            f"The {name} of layer {index} should have shape {shape} and dtype float32, but it has {got.shape} and "
            f"{got.dtype}.",
            **shown,
        )


def _spread_of_kernels(params, sizes):
    for index, (layer, n_in, n_out) in enumerate(zip(params, sizes[:-1], sizes[1:])):
        kernel, wanted = np.asarray(layer["kernel"]), math.sqrt(2 / n_in)
        mean, spread = float(kernel.mean()), float(kernel.std())
        if abs(spread / wanted - 1) > 0.07:
            found = [
                (1, "The standard normal numbers are not scaled at all."),
                (
                    wanted**2,
                    "You multiplied by 2/n, which is the variance: the standard deviation is its root.",
                ),
                (1 / wanted, "You divided by the root of 2/n instead of multiplying by it."),
                (math.sqrt(1 / n_in), "This is the root of 1/n, as in the chapter; He's rule asks for 2/n."),
                (math.sqrt(2 / n_out), "n is the layer's number of inputs; you took that of its outputs."),
                (math.sqrt(2) / n_in, "The root is taken of the 2 only, not of the n."),
                (
                    math.sqrt(2 / sizes[0]),
                    "n is the number of inputs of *this* layer; you took that of the first one.",
                ),
                (
                    math.sqrt(2 / (n_in + n_out)),
                    "This is Glorot's rule, with inputs plus outputs; He's has the inputs only.",
                ),
            ]
            said = [text for value, text in found if abs(spread / value - 1) < 0.04]
            lead = f"{said[0]} " if len(said) == 1 else ""
            raise Failed(
                f"{lead}The standard deviation of the kernel of layer {index} is wrong.",
                input={"sizes": sizes},
                shown=[("expected", f"about {wanted:.4f}"), ("got", f"{spread:.4f}")],
            )
        if abs(mean) > 0.1 * wanted:
            raise Failed(
                f"The mean of the kernel of layer {index} should be about 0, but it is {mean:.4f}.",
                input={"sizes": sizes},
            )
        # Of 30,000 normal numbers the largest is beyond 3.2 standard deviations, of 6,000 beyond 2.8, but once in 10^13.
        farthest = float(abs(kernel).max()) / wanted
        if farthest < (3.2 if kernel.size >= 30_000 else 2.8):
            raise Failed(
                f"The kernel of layer {index} has the right spread, but it is not normally distributed: of its "
                f"{kernel.size:,} entries none is further than {farthest:.2f} standard deviations from 0. Is it uniform, or "
                "truncated?",
                input={"sizes": sizes},
            )


exercise = Exercise(
    title="Weights for any number of layers",
    stars=2,
    minutes=10,
    why=(
        "Your `init` is pure: the same key gives the same network on every machine, and every layer has random numbers "
        "of its own."
    ),
    hints=(
        "There is one layer between two neighboring sizes: `zip(sizes[:-1], sizes[1:])` gives their pairs.",
        "`jax.random.split(key, n)` gives n keys at once: one for each layer, and `key` itself is not used again.",
        "`jax.random.normal(layer_key, (n_in, n_out)) * jnp.sqrt(2 / n_in)` is one kernel.",
    ),
    solution=solution,
    check=check,
)
