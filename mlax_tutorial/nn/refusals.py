"""What layers refuse: their checks look at shapes, dtypes and types only, so they cost nothing under ``jax.jit``."""

from collections.abc import Iterator
from typing import Any, NoReturn

import jax
import numpy as np

from mlax_tutorial.nn.arrays import canonical, is_array, is_floating, is_key
from mlax_tutorial.nn.errors import LayerError, describe


def named_leaves(trees: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The leaves of named trees, with names such as ``trainables['kernel']``."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(trees):
        yield path[0].key + jax.tree_util.keystr(path[1:]), leaf


class Checks:
    """The checks that layers share, each a line at the top of a method."""

    def refuse(self, message: str) -> NoReturn:
        """Raise a :class:`LayerError` in the name of this layer; containers put its path in front."""
        raise LayerError(type(self).__name__, message)

    def expects(self, what: str, wanted: str, got, mend: str) -> NoReturn:
        """Refuse ``got`` in the words that most errors have: what was wanted, what came, the likely mend."""
        self.refuse(f"{what} expects {wanted}, got {describe(got)}: {mend}.")

    def check_array(self, x, minimum_ndim: int = 0, mend: str = "add some, as x[None] does") -> Any:
        """Refuse what is no array (a list, say) or has fewer than ``minimum_ndim`` axes; return it as JAX's."""
        if not is_array(x):
            self.expects("x", "an array", x, "wrap it in jnp.asarray(…)")
        if len(x.shape) < minimum_ndim:
            axes = "1 axis" if minimum_ndim == 1 else f"{minimum_ndim} axes"
            self.expects("x", f"at least {axes}", x, mend)
        return canonical(x)

    def check_floating(self, x, minimum_ndim: int = 0, **words) -> Any:
        """Refuse what is no array of floating-point numbers; return it as JAX's, in a dtype that JAX has."""
        x = self.check_array(x, minimum_ndim, **words)
        if not is_floating(x):
            mend = "convert it first, for instance with x.astype(jnp.float32)"
            self.expects("x", "floating-point numbers", x, mend)
        return x

    def check_variables(self, variables, shapes: dict, role: str = "trainables", x=None) -> None:
        """Refuse variables whose names or shapes do not fit (an input ``x``); ``None`` stands for any size."""
        self.check_names(variables, shapes, role)
        for name, wanted in shapes.items():
            value = variables[name]
            if not is_floating(value):
                mend = f"pass the {role} that this model's own init returned, or convert them"
                self.expects(name, "an array of floating-point numbers", value, mend)
            fits = [w in (None, g) for g, w in zip(value.shape, wanted)]
            if len(value.shape) != len(wanted) or not all(fits):
                shape = str(wanted).replace("None", "…") + (f" for x, {describe(x)}" if is_array(x) else "")
                mend = f"these {role}, or this input, belong to another model"
                self.expects(name, f"shape {shape}", value, mend)

    def check_names(self, variables, names, role: str = "trainables") -> None:
        """Refuse variables of other names."""
        if not isinstance(variables, dict) or variables.keys() != set(names):
            self.refuse_variables(role, f"a dict with keys {sorted(names)}", variables)

    def refuse_variables(self, role: str, wanted: str, got, place: str = "") -> NoReturn:
        """Refuse a tree that is not built as ``init``, or for a cache ``init_cache``, builds it."""
        expect, method = ("expects", "init_cache") if role == "cache" else ("expect", "init")
        mend = f"pass the {role} that this model's own {method} returned"
        self.refuse(f"{role}{place} {expect} {wanted}, got {describe(got)}: {mend}.")

    def check_pair(self, method: str, result) -> tuple[Any, Any]:
        """Refuse what ``init``, ``fwd`` or one like it may not return: a dict of two, say, would come apart into its names."""
        if not isinstance(result, tuple) or len(result) != 2:
            first, empty = ("trainables", "()") if method == "init" else ("y", "non_trainables as it came")
            second, empty = ("cache", "() as it came") if method == "decode" else ("non_trainables", empty)
            mend = f"end it with a pair, whose second is {empty} if the layer has none"
            self.refuse(f"{method} must return ({first}, {second}), got {describe(result)}: {mend}.")
        return result

    def check_inputs(self, x, inputs) -> None:
        """Refuse inputs that are neither arrays nor containers of arrays, and those that the layer does not take."""
        for name, leaf in named_leaves({"x": x, **inputs}):
            if not is_array(leaf):
                mend = "wrap it in jnp.asarray(…), or pass a jax.ShapeDtypeStruct(shape, dtype)"
                self.expects(name, "an array", leaf, mend)
        self._check_names(inputs)

    def _check_names(self, inputs):
        if unknown := sorted(inputs.keys() - self.inputs):
            self.refuse(f"takes no input {unknown[0]!r}; further inputs are {sorted(self.inputs)}.")

    def check_key(self, key) -> None:
        """Refuse a missing key, a raw one, or several."""
        if key is None:
            mend = "pass key=…, a fresh one each step (jax.random.split), or inference_mode=True"
            self.refuse(f"needs a key in training, got None: {mend}.")
        self.check_init_key(key)

    def training_key(self, key, inference_mode) -> Any:
        """The key, checked, of a layer that draws in training; ``None`` where it draws nothing."""
        if self.needs_key:
            self.check_inference_mode(inference_mode)
            if not inference_mode:
                self.check_key(key)
                return key

    def check_init_key(self, key) -> None:
        """Refuse what is not one typed key."""
        if not is_key(key):
            mend = "make one with jax.random.key(seed), or wrap an old one with jax.random.wrap_key_data"
            self.refuse(f"expects a typed key, got {describe(key)}: {mend}.")
        if key.shape:
            self.refuse(f"expects one key, got {describe(key)}: pass one, or vmap over keys and inputs.")

    def check_inference_mode(self, inference_mode) -> None:
        """Refuse a traced ``inference_mode``: the layer branches on it while it is traced."""
        if not isinstance(inference_mode, (bool, np.bool_)):
            mend = 'close over it, or name it in jax.jit\'s static_argnames ("inference_mode")'
            self.refuse(f"inference_mode must be a Python bool, got {describe(inference_mode)}: {mend}.")
