"""``Series``: layers one after the other."""

import jax

from mlax_tutorial.nn.errors import LayerError, describe, locate
from mlax_tutorial.nn.hyperparameters import hyperparameter, show
from mlax_tutorial.nn.layer import Layer, abstract


def _layers(value):
    for index, layer in enumerate(value):
        if not isinstance(layer, Layer):
            mend = "wrap a function in nn.F(…)" if callable(layer) else "pass layers, not a list of them"
            raise ValueError(f"must all be layers, but number {index} is {show(layer)}: {mend}")
    return tuple(value)


class Series(Layer):
    """Apply layers one after the other; the output of each is the input of the next.

    The trainables are a tuple, one entry a layer, ``()`` where a layer has none; likewise the non-trainables.
    If no layer has any, the whole is ``()``. So ``trainables[3]`` belongs to ``model[3]``.

    Keys go to the layers that need one, each its own by ``jax.random.split``. Further inputs go to the
    layers that take an input of that name.

    Args:
      *layers: the layers. Indexing and slicing work: ``model[3]``, ``model[:2]``.

    Raises:
      LayerError: on trainables of another model, on an input that no layer takes, and whatever a layer
        finds wrong, with its place in front: ``model[3].Linear: …``.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> model, x = nn.Series(nn.Linear(8), nn.Bias(), nn.F(jax.nn.relu), nn.Linear(2)), jnp.ones((5, 4))
      >>> trainables, non_trainables = model.init(jax.random.key(0), x)
      >>> jax.tree.map(jnp.shape, trainables)
      ({'kernel': (4, 8)}, {'bias': (8,)}, (), {'kernel': (8, 2)})
      >>> model.fwd(x, trainables, non_trainables)[0].shape
      (5, 2)
    """

    layers: tuple[Layer, ...] = hyperparameter(_layers)

    def __init__(self, *layers: Layer):
        object.__setattr__(self, "layers", layers)
        self.__post_init__()

    @property
    def needs_key(self):
        return any(layer.needs_key for layer in self.layers)

    @property
    def inputs(self):
        return frozenset().union(*(layer.inputs for layer in self.layers))

    def init(self, key, x, **inputs):
        # Phase one passes abstract values through the whole model once, and notes what each leaf is given.
        # Phase two makes the variables. Were each container to run its children's init and fwd by itself,
        # the work would double with every level of nesting.
        self.check_init_key(key)
        self.check_inputs(x, inputs)
        records = {}
        specs = jax.tree.map(abstract, (key, x, inputs))
        jax.eval_shape(lambda key, x, inputs: self._outline(records, "", key, x, **inputs), *specs)
        return self._build(records, "", key)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        trainables = self._children(trainables, "trainables")
        non_trainables = self._children(non_trainables, "non_trainables")
        keys = self._keys(None if inference_mode is True else key)
        self._check_inputs(inputs)
        updated = []
        for index, layer in enumerate(self.layers):
            try:
                result = layer.fwd(
                    x,
                    trainables[index],
                    non_trainables[index],
                    key=keys[index],
                    inference_mode=inference_mode,
                    **self._inputs_of(layer, inputs),
                )
                x, state = layer.check_pair("fwd", result)
            except Exception as error:
                locate(error, f"[{index}]", layer)
                raise
            updated.append(state)
        return x, _collapse(updated)

    def _outline(self, records, path, key, x, **inputs):
        self._check_inputs(inputs)
        keys = jax.random.split(key, len(self.layers))
        for index, layer in enumerate(self.layers):
            try:
                x = layer._outline(
                    records, f"{path}[{index}]", keys[index], x, **self._inputs_of(layer, inputs)
                )
            except Exception as error:
                locate(error, f"[{index}]", layer)
                raise
        return x

    def _build(self, records, path, key):
        keys = jax.random.split(key, len(self.layers))
        built = [
            layer._build(records, f"{path}[{index}]", keys[index]) for index, layer in enumerate(self.layers)
        ]
        return _collapse(t for t, _ in built), _collapse(n for _, n in built)

    def _children(self, variables, role):
        """The variables of each layer; ``()`` stands for a tuple of ``()``."""
        if isinstance(variables, tuple) and len(variables) == len(self.layers):
            return variables
        if isinstance(variables, tuple) and not variables:
            return ((),) * len(self.layers)
        raise LayerError(
            self,
            f"{role} expect a tuple with one entry for each of {len(self.layers)} layers, got "
            f"{describe(variables)}: pass the {role} that this model's own init returned.",
        )

    def _keys(self, key):
        """One key for each layer that needs one, ``None`` for the others."""
        needs = [layer.needs_key for layer in self.layers]
        if key is None or not any(needs):
            return [None] * len(needs)
        self.check_key(key)
        keys = iter(jax.random.split(key, sum(needs)))
        return [next(keys) if need else None for need in needs]

    def _inputs_of(self, layer, inputs):
        return {name: value for name, value in inputs.items() if name in layer.inputs}

    def _check_inputs(self, inputs):
        unknown = inputs.keys() - self.inputs
        if unknown:
            raise LayerError(
                self,
                f"no layer takes the input {sorted(unknown)[0]!r}; the layers take {sorted(self.inputs)}.",
            )

    def __getitem__(self, index):
        return Series(*self.layers[index]) if isinstance(index, slice) else self.layers[index]

    def __len__(self):
        return len(self.layers)

    def __repr__(self):
        return f"Series({', '.join(map(repr, self.layers))})"


def _collapse(children):
    """A tuple of the children's variables, or ``()`` if all of them are empty."""
    children = tuple(children)
    return () if all(isinstance(child, tuple) and not child for child in children) else children
