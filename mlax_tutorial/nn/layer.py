"""What every layer is: a frozen dataclass of hyperparameters with two pure functions, ``init`` and ``fwd``."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, dataclass_transform

import jax
import jax.numpy as jnp
from jax.dtypes import canonicalize_dtype

from mlax_tutorial.nn.arrays import accumulator
from mlax_tutorial.nn.errors import LayerError, describe
from mlax_tutorial.nn.hyperparameters import Fields, canonicalize_fields, checked, hyperparameter, is_own
from mlax_tutorial.nn.refusals import Checks
from mlax_tutorial.nn.rules import integer


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(hyperparameter,))
class Layer(Checks, Fields):
    """Base of all layers. A subclass lists its hyperparameters as fields and writes ``init`` and ``fwd``.

    Subclassing makes the class a frozen dataclass and registers it with JAX as static, so an instance
    may be passed to a jitted function like any argument: it is part of the cache key, compared by value.

    Attributes:
      needs_key: whether ``fwd`` wants a key when it trains; ``"always"``, in inference, too. Containers hand keys only to
        such children.
      inputs: names of the further inputs, besides ``x``, that ``init`` and ``fwd`` take as keywords.
      decodes: whether ``decode`` of some steps after the others equals ``fwd`` of the whole sequence. Set it where ``fwd``
        treats each step by itself; a layer that remembers earlier steps writes ``build_cache`` and ``decode``, too.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> class Scale(nn.Layer):
      ...     initial: float = 1.0
      ...     def init(self, key, x):
      ...         return {"scale": jnp.full(x.shape[-1:], self.initial, x.dtype)}, ()
      ...     def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
      ...         return x * trainables["scale"], non_trainables
      >>> Scale(2.0) == Scale(2.0), Scale(2.0)
      (True, Scale(initial=2.0))
    """

    needs_key = False
    inputs = frozenset()
    decodes = False
    holds_layers = False  # containers do
    _writes_init = _writes_inputs = False
    _reserved = frozenset({"inputs"})

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        _refuse_hiding(cls)
        # What a class writes itself, __init__ (as Series does) or inputs, holds for those derived from it, too.
        cls._writes_init |= "__init__" in vars(cls)
        cls._writes_inputs |= "inputs" in vars(cls)
        dataclasses.dataclass(frozen=True, eq=False, repr=False, init=not cls._writes_init)(cls)
        cls.__setattr__ = cls.__delattr__ = _refuse_change
        jax.tree_util.register_static(cls)
        cls._fields = tuple(field.name for field in dataclasses.fields(cls) if is_own(field))
        if vars(cls).keys() & {"fwd", "forward"} and "decodes" not in vars(cls):
            cls.decodes = False  # said of another function, if it was said
        if "fwd" in vars(cls) and not cls._writes_inputs:
            cls.inputs = further_inputs(cls.fwd)

    def __post_init__(self):
        canonicalize_fields(self)

    def __call__(self, *_, **__):
        raise TypeError(
            f"{type(self).__name__}: a layer is not called, for it holds no weights: make them with trainables, non_trainables = "
            "model.init(key, x), and write y, non_trainables = model.fwd(x, trainables, non_trainables). In the forward of a "
            "Composite, write call.child(x), not self.child(x)."
        )

    def init(self, key: jax.Array, x: Any, **inputs) -> tuple[Any, Any]:
        """Make the variables that fit an input like ``x``; pure, so ``jax.jit(layer.init)`` works.

        Args:
          key: one typed key, as from ``jax.random.key(seed)``.
          x: an array, or a ``jax.ShapeDtypeStruct``: only its shape and dtype count.
          **inputs: the further inputs, if the layer takes any.

        Returns:
          ``(trainables, non_trainables)``, two pytrees of arrays; ``()`` where there are none.
        """
        self.check_input(x)
        return (), ()

    def check_input(self, x: Any) -> Any:
        """Refuse an ``x`` that does not fit, or return it; for the top of ``fwd``, and of an ``init`` that makes nothing."""
        return x

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False) -> tuple[Any, Any]:
        """Apply the layer; pure.

        Args:
          x: the input.
          trainables, non_trainables: the variables, as ``init`` or an update made them.
          key: one typed key, where the layer draws random numbers in training.
          inference_mode: a Python ``bool``, never traced.

        Returns:
          ``(y, non_trainables)``, the latter updated.
        """
        raise NotImplementedError(f"{type(self).__name__} must define fwd")

    def init_cache(self, x: Any, length: int, **inputs) -> Any:
        """Make the cache with which :meth:`decode` handles one request; it is no part of the weights.

        Args:
          x: an input of one step, an array or a ``jax.ShapeDtypeStruct``.
          length: for how many steps there must be room.
          **inputs: the further inputs, if the layer takes any.

        Returns:
          A pytree of arrays; ``()`` for a layer that remembers nothing.

        Raises:
          LayerError: if ``length`` is no positive integer, or a layer does not decode, or writes only one of ``build_cache`` and
            ``decode``, by its path.
        """
        self.check_inputs(x, inputs)
        length = checked("length", integer, length, lambda message: LayerError(type(self).__name__, message))
        self.check_decodes()
        return self._build_cache(outline(self, x, inputs, jax.random.key(0)), "", length)

    def build_cache(self, x, length: int, **inputs) -> Any:
        """Make this layer's own part of the cache; a layer that remembers earlier steps writes it, beside :meth:`decode`.

        Containers ask it of each layer inside, wherever it stands.

        Args:
          x, inputs: what the layer itself is given in the model: a ``jax.ShapeDtypeStruct`` each.
          length: for how many steps there must be room.

        Returns:
          A pytree of arrays. What is called ``"place"`` in it, the number of steps that each row has seen, int32, of the shape of
          the batch, :func:`with_place` may set.

        Example: the sum of all steps so far.
          >>> from mlax_tutorial import nn
          >>> class Sum(nn.Layer):
          ...     decodes = True
          ...     def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
          ...         return jnp.cumsum(x, axis=-2), non_trainables
          ...     def build_cache(self, x, length):
          ...         return jnp.zeros((*x.shape[:-2], 1, x.shape[-1]), x.dtype)
          ...     def decode(self, x, trainables, non_trainables, cache):
          ...         y = cache + jnp.cumsum(x, axis=-2)
          ...         return y, y[..., -1:, :]
          >>> import jax, jax.numpy as jnp
          >>> model, x = nn.Series(nn.Linear(2), Sum()), jnp.ones((3, 1, 4))
          >>> variables, cache = model.init(jax.random.key(0), x), model.init_cache(x, length=8)
          >>> y, cache = model.decode(x, *variables, cache)
          >>> jax.tree.map(jnp.shape, cache)
          ((), (3, 1, 2))
        """
        return ()

    def decode(self, x, trainables, non_trainables, cache, **inputs) -> tuple[Any, Any]:
        """Apply the layer in inference to the next steps of a sequence; pure.

        Steps lie on the axis before the last one, or on the last one of integers: ``(..., length, features)``, ids
        ``(..., length)``. By default there is no cache, and this is ``fwd``: for layers that treat each step by itself.

        Returns:
          ``(y, cache)``, the latter updated.
        """
        self.check_decodes()
        return self.fwd(x, trainables, non_trainables, inference_mode=True, **inputs)[0], cache

    def check_decodes(self) -> None:
        """Refuse a layer that does not declare that it ``decodes``."""
        if self.needs_key == "always":
            self.refuse("does not decode: it draws random numbers in inference, and decode has no key.")
        if self.decodes is False:
            self.refuse(
                "does not decode: it may mix steps, or depend on their place. Use fwd on the whole sequence, or in its place a "
                "Recurrent or a causal MultiHeadAttention, or say decodes = True in a class that treats each step by itself."
            )

    # Containers override the next three, so that init runs in two phases at any depth (see Composite).

    def _outline(self, records, path, key, x, **inputs):
        """Phase one, inside ``jax.eval_shape``: note what this layer is given; return ``(y, *variables)``."""
        records[path] = jax.tree.map(abstract, (x, inputs))
        trainables, non_trainables = self.check_pair("init", self.init(key, x, **inputs))
        key, trainables = key if self.needs_key else None, records.cast(trainables)
        y, non_trainables = self.check_pair("fwd", self.fwd(x, trainables, non_trainables, key=key, **inputs))
        return y, trainables, non_trainables

    def _build(self, records, path, key):
        """Phase two: make the variables from what phase one noted."""
        x, inputs = records[path]
        return self.init(key, x, **inputs)

    def _build_cache(self, records, path, length):
        """The same for a cache."""
        written = [
            getattr(type(self), name) is not getattr(Layer, name) for name in ("build_cache", "decode")
        ]
        if written == [True, False]:
            self.refuse("writes build_cache but no decode, which would use the cache: write both.")
        if written == [False, True]:
            mend = "write both; what remembers nothing builds ()"
            self.refuse(f"writes decode but no build_cache, which makes what it is given: {mend}.")
        x, inputs = records[path]
        return self.build_cache(x, length, **inputs)

    def __eq__(self, other):
        return self is other or (type(self) is type(other) and self._value == other._value)

    def __hash__(self):
        return self._hash

    def __setstate__(self, state):
        vars(self).update(state)
        self.__post_init__()  # what a class derives from its fields, too: a container's children

    def _rebuilt(self, **changes):
        made = object.__new__(type(self))  # not by its constructor, which may have other parameters
        held = {name: value for name, value in vars(self).items() if name in (*self._fields, "_replaced")}
        made.__setstate__(held | changes)
        return made

    def with_children(self, function: Callable[[str, "Layer"], "Layer"]) -> "Layer":
        """The same layer with ``function(place, child)`` in place of each layer that it holds; see also :func:`replace`."""

        def one(place, value):
            if type(value) is tuple:
                return tuple(one(f"{place}[{i}]", item) for i, item in enumerate(value))
            return function(place, value) if isinstance(value, Layer) else value

        return self._rebuilt(**{name: one(f".{name}", getattr(self, name)) for name in self._fields})

    def observe(self, x, trainables, non_trainables, **options) -> dict[str, Any]:
        """What :func:`capture` may ask for besides the output, by name: nothing, for most layers. Takes what ``fwd`` takes."""
        return {}

    def __copy__(self, *_):  # nothing can change, and a deep copy of a function may be another function
        return self

    __deepcopy__ = __copy__

    def initialize(self, name: str, key, shape: tuple[int, ...], dtype) -> jax.Array:
        """Call the initializer ``name``, and refuse what is no array of that shape and dtype.

        It is asked for float32 where ``dtype`` is narrower, and what it returns is rounded once: JAX draws a bfloat16 normal from seven
        random bits, with 128 values and a mean of -0.02 standard deviations. It may return ``dtype`` itself, a table that was trained.
        """
        dtype = canonicalize_dtype(dtype)  # NumPy's float64 is float32 to JAX
        asked = jax.ShapeDtypeStruct(shape, accumulator(dtype))
        value = getattr(self, name)(key, shape, asked.dtype)
        if describe(value) not in (describe(asked), describe(jax.ShapeDtypeStruct(shape, dtype))):
            makes = "call what makes the initializer, as in jax.nn.initializers.he_normal()"
            mend = makes if callable(value) else "make it of the shape and the dtype that it is given"
            self.refuse(f"{name} must return {describe(asked)}, got {describe(value)}: {mend}.")
        return jnp.asarray(value).astype(dtype)


def _refuse_hiding(cls):
    """A field that is called like a method, ``decode``, say, would stand in its place."""
    bases = super(cls, cls)
    for name in inspect.get_annotations(cls).keys() - getattr(bases, "_fields", ()):
        if callable(getattr(bases, name, None)) or name in cls._reserved:
            message = f"a field must not be called {name}, which layers have already: rename it"
            raise TypeError(f"{cls.__name__}: {message}.")


def _refuse_change(self, name, *_):
    raise dataclasses.FrozenInstanceError(
        f"{type(self).__name__}: {name} cannot be set, for a layer never changes: build another. In a class of your own, declare "
        f"{name} as a field (a line such as {name}: int in the class) in place of an __init__."
    )


def wants(need, inference_mode) -> bool:
    """Whether what ``needs_key``, or ``draws``, by ``need`` wants a key in this mode."""
    return need == "always" or bool(need and inference_mode is not True)


def check_layer(name: str, layer: Any) -> None:
    """Refuse what is no layer, the class of one, say.

    Raises:
      ValueError: in the name of ``name``.
    """
    if not isinstance(layer, Layer):
        raise ValueError(f"{name}: model must be a layer, an nn.Series(…), say, got {describe(layer)}.")


def mend_layer(value) -> str:
    """What to do with a value that stands in the place of a layer."""
    if isinstance(value, type):
        return ": build one of this class, as nn.Flatten(2) is of nn.Flatten"
    if value is None:
        return ": for a field that may be None, declare it nn.Layer | None"
    if isinstance(value, list):
        return ": pass layers, not a list of them"
    return ": wrap a function in nn.F(…)" if callable(value) else ""


def further_inputs(fwd) -> frozenset[str]:
    """The keyword-only parameters of ``fwd`` beyond those that all layers share."""
    parameters = inspect.signature(fwd).parameters.values()
    names = {parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY}
    return frozenset(names - {"key", "inference_mode"})


def abstract(leaf):
    """What init needs to know of an array or a key: its shape, and its dtype once it is JAX's."""
    is_extended = jnp.issubdtype(leaf.dtype, jax.dtypes.extended)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype if is_extended else canonicalize_dtype(leaf.dtype))


class Records(dict):
    """What each leaf was given, by its path, and what a policy makes of weights before they are used."""

    cast = staticmethod(lambda weights: weights)


def outline(layer: Layer, x, inputs, key) -> Records:
    """Pass abstract values through ``layer``, and return what each leaf was given, by its path."""
    records, specs = Records(), jax.tree.map(abstract, (key, x, inputs))
    with jax.debug_key_reuse(False):  # shapes do not depend on keys, so one is enough for all
        jax.eval_shape(lambda key, x, inputs: layer._outline(records, "", key, x, **inputs)[0], *specs)
    return records
