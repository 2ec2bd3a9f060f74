"""Mixed precision: compute in half precision, keep the weights in float32, lose no small gradient.

A :class:`Policy` says which dtype is used where, and applies that to a model whose layers know
nothing of it. bfloat16 needs no more. float16 does: it has no numbers below ``6e-8``, so small
gradients would be zero. A *loss scale* multiplies the loss, and with it every gradient on its
way back, and divides afterwards; what overflows is noticed, and that step is skipped.

References: Micikevicius et al., *Mixed Precision Training*, ICLR (2018); Kalamkar et al., *A
Study of BFLOAT16 for Deep Learning Training* (2019).
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from mlax_tutorial import meshes
from mlax_tutorial.nn.arrays import accumulator, is_floating
from mlax_tutorial.nn.capture import Captured, apply
from mlax_tutorial.nn.composite import Composite
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import canonicalize_fields, checked, hyperparameter, optional, show
from mlax_tutorial.nn.layer import Layer
from mlax_tutorial.nn.paths import check_like, refuse_layers
from mlax_tutorial.nn.places import gather, spread
from mlax_tutorial.nn.rules import Dtype, floating_dtype, function
from mlax_tutorial.nn.series import Child, Parallel, Series
from mlax_tutorial.nn.stack import Entered, Inference, Remat, Vmap, Wrapper
from mlax_tutorial.optim import Optimizer, OptimizerError
from mlax_tutorial.optim.tunable import Tunable, at_least, number, positive, whole
from mlax_tutorial.training import State
from mlax_tutorial.training.step import advance, compile_step, differentiate
from mlax_tutorial.trees import arrays


def _names(value) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise ValueError("must be names of inputs, a tuple of strings")
    return tuple(sorted(names))


@dataclasses.dataclass(frozen=True, repr=False)
class Policy:
    """Which dtype is used where; :meth:`apply` makes a model keep to it.

    Args:
      compute_dtype: of activations, and of the weights that they meet.
      param_dtype: of all trainables and their gradients, whatever the layers say.
      accum_dtype: of sums, wherever a layer has a hyperparameter ``accum_dtype`` that was left
        at ``None``; one that is set stands. ``None`` is each layer's own choice: at least
        float32 nearly everywhere.
      output_dtype: of the model's output; ``None`` is ``param_dtype``, so that a loss is exact, and inside another policy
        the other's ``compute_dtype``, so that what follows has its dtype, but at the end of the model, where nothing does.
      exempt: names of inputs that stay as they are, such as times or positions, of which bfloat16 cannot tell 500 from 501.

    A layer inside that needs full precision, a head or a router, is exempt if it has a policy of its own:
    ``nn.Series(body, Policy("float32").apply(head))``. It sees its weights as they are stored, and at the end of a
    ``Series``, or side by side with others there, its output keeps its precision. At the end of a ``forward`` of your
    own, where a policy cannot see that nothing follows, give it an ``output_dtype``.

    Raises:
      ValueError: if one of them is no floating-point dtype, or ``exempt`` no names.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, precision
      >>> policy = precision.Policy("bfloat16")
      >>> model, x = policy.apply(nn.Series(nn.Linear(3), nn.Bias())), jnp.ones((2, 4))
      >>> trainables, _ = model.init(jax.random.key(0), x)
      >>> y, _ = model.fwd(x, trainables, ())
      >>> trainables[0]["kernel"].dtype, y.dtype
      (dtype('float32'), dtype('float32'))
      >>> y == model.layer.fwd(x, trainables, ())[0]  # rounded to bfloat16 inside
      Array([[False, False, False],
             [False, False, False]], dtype=bool)
    """

    compute_dtype: Dtype
    param_dtype: Dtype = "float32"
    accum_dtype: Dtype | None = None
    output_dtype: Dtype | None = None
    exempt: tuple[str, ...] = hyperparameter(_names, default=())

    def __post_init__(self):
        canonicalize_fields(self)

    def apply(self, layer: Layer) -> "MixedPrecision":
        """The same layer, or model, in these dtypes: a layer like any other.

        Raises:
          ValueError: if ``layer`` is no layer, or takes no input that ``exempt`` names.
        """
        return MixedPrecision(layer, self)

    def __repr__(self):
        names = [field.name for field in dataclasses.fields(self)]
        return f"Policy({', '.join(f'{name}={show(getattr(self, name))}' for name in names)})"


class MixedPrecision(Wrapper):
    """What :meth:`Policy.apply` returns: a layer that keeps to a policy. Shape as the layer's.

    ``init`` makes the trainables that the layer itself would, in ``param_dtype``. ``fwd`` casts
    them, the input and further inputs to ``compute_dtype``, and the output to
    ``output_dtype``; so the gradients come back in ``param_dtype``. Integers, booleans and keys
    stay what they are, and so do the non_trainables, which ``init`` makes as for an input of
    ``param_dtype``. The variables are the layer's own: weights trained without a policy fit. ``model[3]`` is
    the layer ``[3]``, under the same policy.

    Args:
      layer: any layer.
      policy: the dtypes.

    Raises:
      LayerError: whatever the layer finds wrong.

    Example: ids in, float32 logits out, bfloat16 between.
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, precision
      >>> model = nn.Series(nn.Embed(10, 4), nn.F(jnp.tanh), nn.Linear(10))
      >>> model, ids = precision.Policy("bfloat16").apply(model), jnp.arange(3)
      >>> trainables, _ = model.init(jax.random.key(0), ids)
      >>> gradients = jax.grad(lambda t: model.fwd(ids, t, ())[0].sum())(trainables)
      >>> jax.tree.map(lambda gradient: gradient.dtype.name, gradients)
      ({'embed': 'float32'}, (), {'kernel': 'float32'})
    """

    layer: Child
    policy: Policy
    decodes = Wrapper.decodes

    def __post_init__(self):
        super().__post_init__()
        if unknown := sorted(set(self.policy.exempt) - self.layer.inputs - {"x"}):
            self.refuse(f"exempt names {unknown[0]!r}, which the layer does not take.")
        vars(self)["_layer"] = _adapt(self.layer, self.policy)

    def __getitem__(self, index):
        layer = self.layer[index]
        exempt = tuple(name for name in self.policy.exempt if name in layer.inputs)
        return dataclasses.replace(self.policy, exempt=exempt).apply(layer)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False, **inputs):
        x, inputs = self._enter(x, inputs)
        options = {"key": key, "inference_mode": inference_mode, **inputs}
        weights = _cast_weights(self._layer, trainables, self.policy.compute_dtype)
        y, updated = apply(self._layer, "", "fwd", x, weights, non_trainables, **options)
        return self._leave(y), _like(updated, non_trainables)

    def decode(self, x, trainables, non_trainables, cache, **inputs):
        x, inputs = self._enter(x, inputs)
        weights = _cast_weights(self._layer, trainables, self.policy.compute_dtype)
        y, cache = apply(self._layer, "", "decode", x, weights, non_trainables, cache, **inputs)
        return self._leave(y), cache

    def _enter(self, x, inputs):
        given = {"x": x, **inputs}
        stays, dtype = self.policy.exempt, self.policy.compute_dtype
        given = {name: value if name in stays else cast(value, dtype) for name, value in given.items()}
        return given.pop("x"), given

    def _leave(self, y):
        return cast(y, self.policy.output_dtype or self.policy.param_dtype)

    def _outline(self, records, path, key, x, **inputs):
        # Phase one does as fwd does, with weights in compute_dtype: what it notes is what each layer will meet.
        x, inputs = self._enter(x, inputs)
        before, records.cast = records.cast, functools.partial(cast, dtype=self.policy.compute_dtype)
        try:
            y, *variables = self._layer._outline(records, path, key, x, **inputs)
        finally:
            records.cast = before
        return self._leave(y), *variables

    def _build(self, records, path, key):
        # A layer makes its trainables in the dtype of its input, if it does not say otherwise.
        records = {path: cast(given, self.policy.param_dtype) for path, given in records.items()}
        trainables, non_trainables = self._layer._build(records, path, key)
        return _cast_weights(self._layer, trainables, self.policy.param_dtype), non_trainables

    def _build_cache(self, records, path, length):
        return self._layer._build_cache(records, path, length)


def cast(tree: Any, dtype: Any) -> Any:
    """Convert the floating-point arrays of a tree to ``dtype``, and leave all else as it is; pure.

    Placeholders (``jax.ShapeDtypeStruct``) are converted, too.

    Raises:
      ValueError: if ``dtype`` is no floating-point dtype.

    Example:
      >>> import jax.numpy as jnp
      >>> cast({"x": jnp.ones(2), "ids": jnp.arange(2)}, "bfloat16")
      {'ids': Array([0, 1], dtype=int32), 'x': Array([1, 1], dtype=bfloat16)}
    """
    dtype = checked("cast: dtype", floating_dtype, dtype)
    refuse_layers("cast", tree)

    def one(leaf):
        if not is_floating(leaf):
            return leaf
        if isinstance(leaf, jax.ShapeDtypeStruct):
            return jax.ShapeDtypeStruct(leaf.shape, dtype, sharding=leaf.sharding)
        return jnp.asarray(leaf, dtype)

    return jax.tree.map(one, tree)


class LossScale(Tunable):
    """Base of the loss scales: pytrees of scalars, whose methods are pure.

    Attributes:
      value: the factor by which losses are multiplied now, a float32 scalar.
    """

    value: jax.Array = number(positive)

    def scale(self, loss: jax.Array) -> jax.Array:
        """Multiply a loss, before it is differentiated; the result is at least float32."""
        dtype = accumulator(loss.dtype)
        return jnp.asarray(loss, dtype) * self.value.astype(dtype)

    def unscale(self, gradients: Any) -> Any:
        """Divide gradients of a scaled loss; the results are at least float32, since float16
        would lose once more what scaling has saved.
        """

        def divide(gradient):
            dtype = accumulator(gradient.dtype)
            return jnp.asarray(gradient, dtype) / self.value.astype(dtype)

        refuse_layers(f"{type(self).__name__}: gradients", gradients, OptimizerError)
        return jax.tree.map(divide, gradients)

    def adjust(self, finite: jax.Array) -> "LossScale":
        """The scale for the next step.

        Args:
          finite: whether all gradients of this step were, a scalar ``bool``: :func:`all_finite`.

        Raises:
          OptimizerError: if ``finite`` is something else.
        """
        _check_finite(type(self).__name__, finite)
        return self


class StaticLossScale(LossScale):
    """Multiply the loss by the same number at every step.

    Args:
      value: the number, above 0. A power of 2 rounds nothing.

    Raises:
      OptimizerError: if it is not, and as the methods say.

    Example: a gradient that float16 cannot hold.
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import precision
      >>> def loss(w):
      ...     return jnp.float32(1e-4) * (jnp.float16(1e-4) * w).astype(jnp.float32)
      >>> jax.grad(loss)(jnp.float16(1))
      Array(0., dtype=float16)
      >>> scale = precision.StaticLossScale(2**15)
      >>> gradient = jax.grad(lambda w: scale.scale(loss(w)))(jnp.float16(1))
      >>> print(f"{scale.unscale(gradient):.1e}")
      1.0e-08

    Reference: Micikevicius et al., *Mixed Precision Training*, ICLR (2018), section 3.2.
    """


class DynamicLossScale(LossScale):
    """Multiply the loss by as much as the gradients bear, found by trial.

    After ``period`` steps in a row with finite gradients the value grows by ``factor``; after
    a step with others it shrinks by it. Such a step must be skipped: see :func:`accept`.

    Args:
      value: to begin with. (The scale of a later step holds the value of then.)
      factor: by which the value grows and shrinks, at least 1. Powers of 2 round nothing.
      period: how many finite steps make it grow, a whole number.
      minimum: below which the value does not shrink.
      count: how many finite steps came in a row since the scale last grew, or a step overflowed.

    Raises:
      OptimizerError: on other numbers, and as the methods say.

    Example:
      >>> from mlax_tutorial import precision
      >>> scale = precision.DynamicLossScale(period=2)
      >>> for finite in (False, True, True):
      ...     scale = scale.adjust(finite)
      ...     print(scale.value, scale.count)
      16384.0 0
      16384.0 1
      32768.0 0

    Reference: Micikevicius et al., *Mixed Precision Training*, ICLR (2018), section 3.2; numbers
    and rules are those of DeepMind's library jmp.
    """

    value: jax.Array = number(positive, default=2.0**15, kw_only=False)
    factor: jax.Array = number(at_least(1), default=2.0)
    period: jax.Array = number(whole, default=2000)
    minimum: jax.Array = number(positive, default=1.0)
    count: jax.Array = number(functools.partial(whole, minimum=0), default=0)

    def adjust(self, finite):
        _check_finite(type(self).__name__, finite)
        count = self.count + 1
        grown = self.value * self.factor
        grows = (count >= self.period) & jnp.isfinite(grown)
        shrunk = jnp.maximum(self.value / self.factor, jnp.minimum(self.value, self.minimum))
        value = jnp.where(finite, jnp.where(grows, grown, self.value), shrunk)
        count = jnp.where(finite & (count < self.period), count, 0)
        # Not by the constructor, which looks at the numbers and would wait for them.
        leaves = (value, self.factor, self.period, self.minimum, count)
        return jax.tree.unflatten(jax.tree.structure(self), leaves)


def all_finite(tree: Any) -> jax.Array:
    """Whether no floating-point number of a tree is infinite or NaN, a scalar ``bool``; pure.

    Raises:
      ValueError: if a leaf is no array.

    Example:
      >>> import jax.numpy as jnp
      >>> all_finite({"kernel": jnp.ones(3), "bias": jnp.array([0.0, jnp.inf])})
      Array(False, dtype=bool)
    """
    leaves = arrays("all_finite", tree).values()
    return _all_finite([leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.inexact)])


@meshes.door
def _all_finite(inexact):
    return jnp.all(jnp.array([jnp.all(jnp.isfinite(leaf)) for leaf in inexact], bool))


def accept(finite: jax.Array, new: Any, old: Any) -> Any:
    """``new`` if ``finite``, else ``old``, decided on the device; pure.

    Give it all that a step changes, and the step is skipped as a whole: trainables, state of
    the optimizer and non_trainables, the running statistics of what has just overflowed.

    Args:
      finite: a scalar ``bool``.
      new, old: two trees of the same structure, shapes and dtypes.

    Raises:
      ValueError: if ``finite`` is no scalar ``bool``, or the trees differ.

    Example:
      >>> import jax.numpy as jnp
      >>> accept(jnp.array(False), {"w": jnp.full(2, jnp.nan)}, {"w": jnp.ones(2)})
      {'w': Array([1., 1.], dtype=float32)}
    """
    _check_finite("accept", finite)
    refuse_layers("accept", (new, old))
    check_like("accept: new", new, old, "a step must keep structure, shapes and dtypes.", of=describe)
    # Not jax.lax.cond, which copies: this is one more operation in the loop of the update.
    return jax.tree.map(functools.partial(jax.lax.select, jnp.asarray(finite)), new, old)


class ScaledState(NamedTuple):
    """What :func:`make_scaled_step` carries from step to step.

    Attributes:
      scale: the loss scale.
      inner: the state of the optimizer.
    """

    scale: LossScale
    inner: Any


def make_scaled_step(
    model: Layer,
    loss: Callable,
    shardings: Any = None,
    *,
    has_aux: bool = False,
    weight: Callable | None = None,
    observe: str | tuple[str, ...] = (),
) -> Callable:
    """``training.make_step`` with a loss scale; what overflows changes nothing.

    All in one program: nobody waits for the device to learn whether a step was skipped.

    Args:
      model: any layer, as a rule what a :class:`Policy` made of one.
      loss, has_aux, weight, observe: as for ``training.make_step``.
      shardings: as for ``training.make_step``, the third of the optimizer's state alone. Put the loss scale on all devices of
        the mesh, too, or the step is compiled once more when it has got there: ``jax.device_put(scale,
        NamedSharding(mesh, PartitionSpec()))``.

    Returns:
      ``step(optimizer, state, key, x, targets, **inputs)`` as ``training.make_step`` returns it, for ``training.fit``, too. The
      state of the optimizer is ``ScaledState(scale, optimizer.init(trainables))``. The loss that comes back is not scaled.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn, optim, precision, training
      >>> model, x, y = nn.Linear(1), jnp.ones((8, 3)), jnp.ones((8, 1))
      >>> model = precision.Policy("float16").apply(model)
      >>> step = precision.make_scaled_step(model, lambda y, t: jnp.mean((y - t) ** 2))
      >>> trainables, rest = model.init(jax.random.key(0), x)
      >>> optimizer = optim.SGD(0.1)
      >>> scale = precision.DynamicLossScale()
      >>> state = training.State(trainables, rest, precision.ScaledState(scale, optimizer.init(trainables)))
      >>> for _ in range(20):
      ...     state, value = step(optimizer, state, None, x, y)
      >>> bool(value < 1e-3)
      True
    """

    checked("make_scaled_step: weight", optional(function), weight)
    gradient = differentiate("make_scaled_step", model, loss, has_aux, weight, observe)

    def step(optimizer, state, key, x, targets, inputs):
        trainables, non_trainables, scaled = state
        if not isinstance(scaled, ScaledState) or not isinstance(scaled.scale, LossScale):
            wanted = "ScaledState(scale, optimizer.init(trainables))"
            raise ValueError(f"make_scaled_step: optimizer_state must be {wanted}, got {describe(scaled)}.")
        given = trainables, non_trainables, key, x, targets, inputs
        gradients, (found, updated), extra = gradient(*given, scale=scaled.scale.scale)
        gradients = scaled.scale.unscale(gradients)
        # What is frozen has gradients, too, but nobody uses them.
        finite = all_finite(optimizer.used(gradients) if isinstance(optimizer, Optimizer) else gradients)
        new, inner = advance("make_scaled_step", optimizer, gradients, scaled.inner, trainables, extra)
        new = accept(finite, (new, updated, inner), (trainables, non_trainables, scaled.inner))
        if shardings is not None:
            new = jax.lax.with_sharding_constraint(new, shardings)
        return State(*new[:2], ScaledState(scaled.scale.adjust(finite), new[2])), found

    return compile_step("make_scaled_step", step, model, loss)


def _check_finite(name, finite):
    is_scalar = getattr(finite, "shape", None) == () and finite.dtype == jnp.bool_
    if not (is_scalar or isinstance(finite, bool)):
        mend = "make it with precision.all_finite(gradients)"
        raise OptimizerError(f"{name}: finite must be one bool, got {describe(finite)}: {mend}.")


def _like(updated, old):
    """Non-trainables in the dtypes that they had."""
    if isinstance(updated, Captured):
        return dataclasses.replace(updated, tree=_like(updated.tree, old.tree))
    leaves, structure = jax.tree.flatten(updated)
    pairs = zip(
        leaves, jax.tree.leaves(old), strict=True
    )  # a Series without state takes `()` and `((), ())` alike
    return structure.unflatten([new.astype(old.dtype) if is_floating(old) else new for new, old in pairs])


def _cast_weights(layer, trainables, dtype):
    """Cast the weights, but for those of layers that have a policy of their own."""
    if isinstance(layer, MixedPrecision):
        return trainables
    if isinstance(layer, Wrapper):
        return _cast_weights(layer.layer, trainables, dtype)
    if not isinstance(layer, Composite):
        return cast(trainables, dtype)
    each = spread(layer, trainables, "trainables")
    casts = {place: _cast_weights(layer._flat[place], each[place], dtype) for place in each}
    return gather(layer._tree, casts)


def _adapt(layer, policy, last=True):
    """A layer, and all it holds, with the policy's ``accum_dtype`` where it has none; and policies inside with its dtype for
    their outputs, so that what follows has it. After the ``last`` nothing does: there, they keep their own."""
    if isinstance(layer, MixedPrecision):
        dtype = layer.policy.output_dtype or (None if last else policy.compute_dtype)
        return dataclasses.replace(layer.policy, output_dtype=dtype).apply(layer.layer)
    last = last and isinstance(layer, (Series, Parallel, Inference, Remat, Vmap, Entered))
    end = [*layer._flat][-1:] if isinstance(layer, Series) else None  # each of Parallel is an output
    made = layer.with_children(
        lambda place, child: _adapt(child, policy, last and (end is None or place in end))
    )
    if policy.accum_dtype and "accum_dtype" in made._fields and made.accum_dtype is None:
        made = made._rebuilt(accum_dtype=policy.accum_dtype)
    return made
