"""What is held against the laws: a layer, or an optimizer, with what several laws look at, computed once."""

import copy
import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import guarding
from mlax_tutorial.checking.describe import kind
from mlax_tutorial.checking.laws.law import x64
from mlax_tutorial.checking.outcome import Failed, NotAttempted
from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.inspection.dtypes import DTYPES, floating_leaves

BATCH = (3, 2)
# What a sum and its gradient may hold in float32 for an input in half precision.
SUMS = frozenset(
    "convert_element_type reduce_sum dot_general conv_general_dilated broadcast_in_dim add_any div reshape "
    "squeeze expand_dims transpose gather scatter-add cumsum reduce_window_sum".split()
)
# And what a normalization may, from its statistics to its result.
STATISTICS = SUMS | frozenset(
    "sub square mul rsqrt sqrt stop_gradient add neg integer_pow pow max reduce_max exp log".split()
)
# And what the drawing of random numbers may, as in `jax.random.bernoulli`.
DRAWS = SUMS | frozenset("bitcast_convert_type sub mul add max erf_inv select_n".split())
# And what the gates of a recurrent cell may, which keeps its state in float32.
GATES = frozenset("split logistic tanh one_minus_square mul add sub neg concatenate pad".split())
# What is differentiated by a rule of its author. (JAX 0.7 has another name for the second.)
OWN_RULES = {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "linear_call", "stop_gradient"}


class Guarded:
    """A layer whose errors are shown as its author's, and whose results are pairs."""

    def __init__(self, layer):
        self.layer = layer
        self._init = guarding.guard(layer.init, "init")
        self._fwd = guarding.guard(layer.fwd, "fwd")

    def init(self, key, x):
        return pair("init", self._init(key, x))

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        result = self._fwd(x, trainables, non_trainables, key=key, inference_mode=inference_mode)
        return pair("fwd", result)


def pair(method, result):
    """A method's result, if it is a pair."""
    if isinstance(result, tuple) and len(result) == 2:
        return result
    wanted = "(trainables, non_trainables)" if method == "init" else "(y, non_trainables)"
    if result is None:
        raise Failed(
            f"`{method}` returned None: is a `return` missing? It has to end with `return {wanted}`."
        )
    last = "`()`" if method == "init" else "`non_trainables` as it came"
    raise Failed(
        f"`{method}` must return a pair, `{wanted}`, but it returned {kind(result)}. If the layer has no "
        f"non_trainables, the second is {last}.",
        got=result,
    )


class LayerSubject:
    """A layer, with example inputs, and how it departs from the plain laws.

    Args:
      layer: the layer.
      shape: of one example, without batch axes.
      draws: whether it draws random numbers in training, so that batched laws need a key for each example. By default what its
        ``needs_key`` says, or its program.
      averages: whether it mixes the examples of a training batch, so that there only ``vmap`` equals a loop; and its non_trainables
        are running averages, held in the dtype of the sums (float32 for a half-precision input).
      accumulates: primitives that may hold float32 for a half-precision input: ``laws.SUMS`` by default (`laws.DRAWS` for a layer
        that draws), ``laws.STATISTICS``, ``laws.SUMS | laws.GATES``, or others.
      ids: the input holds integers below this number; the dtype laws then vary ``param_dtype``.
      of_dtype: makes the layer that works in a dtype throughout, where a policy says so and not the input; the
        output of ``layer`` then has the policy's dtype, whatever comes in.
      unlike: layers that must not equal it.
      same: makes an equal layer by other means.
      thorough: whether derivatives are held against finite differences to the second order where there are rules of its own (see
        `has_own_rules`), and all dtypes audited with float64 switched on, as the package's own tests do.
      deterministic: whether it ignores its keys although it takes them, as dropout at rate 1 does.
    """

    def __init__(
        self,
        layer: Any,
        shape: tuple[int, ...],
        *,
        draws: bool | None = None,
        averages: bool = False,
        accumulates: frozenset[str] | None = None,
        ids: int | None = None,
        of_dtype: Callable[[Any], Any] | None = None,
        unlike: tuple = (),
        same: Any = None,
        thorough: bool = False,
        deterministic: bool = False,
    ):
        check_is_layer(layer)
        self.layer, self.shape = layer, tuple(shape)
        self.averages, self._accumulates, self.ids = averages, accumulates, ids
        self.of_dtype, self.unlike, self.same = of_dtype, tuple(unlike), same
        self.thorough, self.deterministic = thorough, deterministic
        self._draws, self._eager, self._programs = draws, {}, {}
        self._guarded = Guarded(layer)
        self.init, self.fwd = self._guarded.init, self._guarded.fwd

    @property
    def name(self):
        return type(self.layer).__name__

    def declared(self, dtype) -> Guarded:
        """The layer, set to ``dtype`` where its input, being integers, does not, or a policy stands against it."""
        if self.of_dtype is not None:
            return Guarded(self.of_dtype(dtype))
        if self.ids is None:
            return self._guarded
        if not has_param_dtype(self.layer):
            raise Failed(
                "The input of this layer holds integers, so `param_dtype` must say in which dtype its weights are; but "
                f"`{self.name}` has no such field."
            )
        return Guarded(with_param_dtype(self.layer, dtype))

    @property
    def accumulates(self):
        if self._accumulates is not None:
            return frozenset(self._accumulates)
        return DRAWS if self.draws else SUMS

    # Inputs

    def example(self, dtype="float32", batch=BATCH):
        """An input with values away from the kinks of relu and the like."""
        if self.ids is not None:
            drawn = np.random.default_rng(0).integers(self.ids, size=(*batch, *self.shape))
            return jax.device_put(drawn.astype("int32"))
        values = np.random.default_rng(0).uniform(0.2, 1.0, (*batch, *self.shape))
        signs = np.random.default_rng(1).choice([-1, 1], values.shape)
        # `jnp.asarray` would compile something.
        return jax.device_put((values * signs).astype(jnp.dtype(dtype)))

    @functools.cached_property
    def x(self):
        return self.example()

    def outline(self, dtype="float32", batch=BATCH):
        """The type of such an input."""
        dtype = "int32" if self.ids is not None else dtype
        return jax.ShapeDtypeStruct((*batch, *self.shape), dtype)

    def keys(self, inference_mode=False, shape=()):
        """A key, or keys of a shape, for a layer that draws in this mode, else None."""
        if not self.draws or (inference_mode and not self.always):
            return None
        key = jax.random.key(7)
        return jax.random.split(key, shape) if shape else key

    @property
    def always(self):
        return getattr(self.layer, "needs_key", False) == "always"

    @functools.cached_property
    def draws(self):
        if self._draws is not None:
            return self._draws
        return bool(getattr(self.layer, "needs_key", False)) or self.uses_key

    @functools.cached_property
    def uses_key(self):
        """Whether the program of training uses the key that it is given."""
        try:
            variables = self.variables
            fwd = jax.make_jaxpr(lambda x, key: self.fwd(x, *variables, key=key))
            program = fwd(self.outline(), jax.random.key(7))
        except Exception:  # a law will say so
            return False
        used = {id(v) for equation in program.jaxpr.eqns for v in equation.invars}
        return id(program.jaxpr.invars[-1]) in used

    @functools.cached_property
    def has_own_rules(self):
        """Whether ``fwd`` differentiates by a rule of its own somewhere: ``custom_jvp``, ``custom_vjp``, ``stop_gradient``."""
        fwd = jax.make_jaxpr(lambda x, variables, key: self.fwd(x, *variables, key=key))
        program = fwd(self.outline(), self.outlines, self.keys()).jaxpr
        return any(equation.primitive.name in OWN_RULES for _, equation in jaxprs.walk(program))

    @property
    def differentiable(self):
        """The arguments ``(x, trainables)`` that have a gradient: ids have none."""
        return (0, 1) if self.ids is None else (1,)

    # Results that several laws look at. Nearly all of the time goes into compiling.

    @functools.cached_property
    def variables(self):
        return self.init(jax.random.key(0), self.x)

    @functools.cached_property
    def outlines(self):
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), self.variables)

    def eager(self, inference_mode):
        """What ``fwd`` gives without ``jit``."""
        if inference_mode not in self._eager:
            key = self.keys(inference_mode)
            self._eager[inference_mode] = self.fwd(
                self.x, *self.variables, key=key, inference_mode=inference_mode
            )
        return self._eager[inference_mode]

    @functools.cached_property
    def one_by_one(self):
        """Each example of a batch alone: outputs by mode, and the gradients of training.

        Returns:
          ``outputs[inference_mode]``, stacked as the batch; gradients by ``x``, stacked as well, and by ``trainables``, summed.
        """
        x, (trainables, non_trainables), each = np.asarray(self.x), self.variables, self.keys(shape=BATCH)

        @jax.jit
        def run(x, trainables, each, i):
            key = None if each is None else each[i]

            def loss(x, trainables):
                y, _ = self.fwd(x, trainables, non_trainables, key=key)
                return sin_sum(y), y

            (_, y), gradients = jax.value_and_grad(loss, self.differentiable, has_aux=True)(x, trainables)
            at = key if self.always else None
            return {
                False: y,
                True: self.fwd(x, trainables, non_trainables, key=clone(at), inference_mode=True)[0],
            }, gradients

        found = [run(x[i], trainables, clone(each), i) for i in np.ndindex(BATCH)]
        outputs, gradients = jax.tree.map(lambda *leaves: np.stack(leaves), *found)
        *by_x, by_trainables = gradients
        whole = jax.tree.map(lambda leaf: leaf.reshape(*BATCH, *leaf.shape[1:]), (outputs, by_x))
        return *whole, jax.tree.map(lambda leaf: leaf.sum(0), by_trainables)

    def parts(self):
        """Functions of a batch and its keys, which `at_once` computes: under ``vmap``, as it is, and an empty one."""
        trainables, non_trainables = self.variables

        def fwd(x, key, inference_mode):
            return self.fwd(x, trainables, non_trainables, key=key, inference_mode=inference_mode)[0]

        def mapped(x, keys, inference_mode):
            one = functools.partial(fwd, inference_mode=inference_mode)
            for _ in BATCH:
                one = jax.vmap(one, in_axes=(0, None if keys is None else 0))
            return one(x, keys)

        found = {
            "mapped": lambda x, each: {
                False: mapped(x, each, False),
                True: mapped(x, clone(each) if self.always else None, True),
            }
        }
        if not self.always:
            # With random numbers, a batch has one key and so another mask; and averages are over all of it.
            plain = not (self.draws or self.averages)
            found["batch"] = lambda x, each: {
                True: fwd(x, None, True),
                **({False: fwd(x, None, False)} if plain else {}),
            }
            found["empty"] = lambda x, each: fwd(x[:0], None, True)
        return found

    @functools.cached_property
    def at_once(self):
        """The results of `parts`, by name; a `Failed` where a part could not be traced."""
        parts, each = self.parts(), self.keys(shape=BATCH)

        def run(parts):
            return jax.jit(lambda x, each: {name: part(x, each) for name, part in parts.items()})(
                self.x, each
            )

        try:
            return run(parts)
        except Exception:
            failures = {}
            for name, part in parts.items():
                try:
                    jax.eval_shape(part, self.x, each)
                except Exception as error:
                    failures[name] = as_failure(error)
            return run({name: part for name, part in parts.items() if name not in failures}) | failures

    def drawn(self, dtype, wide=None):
        """The variables of float32 in those types that ``init`` gives for ``dtype``: to draw them anew takes longer to compile."""
        types, _ = self.program(dtype, wide)
        return jax.tree.map(lambda leaf, kind: np.asarray(leaf).astype(kind.dtype), self.variables, types)

    def pull(self, dtype):
        """The output of the layer, set to a dtype, and its gradients."""
        layer = self.declared(dtype)

        def run(x, trainables, non_trainables, key):
            def fwd(x, trainables):
                return layer.fwd(x, trainables, non_trainables, key=key)[0]

            y, back = jax.vjp(fwd, x, trainables)
            return y, floating_leaves(back(y))

        return run

    @property
    def settings(self):
        """In which dtypes the program is audited, and whether float64 is switched on there.

        Where it is, numbers without a dtype become float64, so it is the stricter setting; reports read better without.
        """
        if self.thorough:
            return [(dtype, True) for dtype in DTYPES]
        return [
            ("float16", False),
            ("bfloat16", False),
            ("float32", False),
            ("float32", True),
            ("float64", True),
        ]

    def program(self, dtype, wide=None):
        """The types of the variables, and the traced program of the layer and its gradients. Nothing is computed."""
        wide = self.thorough if wide is None else wide
        if (dtype, wide) not in self._programs:
            x, key, first = self.outline(dtype), self.keys(), jax.random.key(0)
            with x64(wide):
                variables = jax.eval_shape(self.declared(dtype).init, first, x)
                traced = jax.jit(self.pull(dtype)).trace(x, *variables, key)
            self._programs[dtype, wide] = variables, traced
        return self._programs[dtype, wide]

    @functools.cached_property
    def halves(self):
        """Outputs and gradients in half precision, by dtype: one program, since compiling takes the time."""

        @jax.jit
        def run(given, key):
            return {dtype: self.pull(dtype)(*arrays, clone(key)) for dtype, arrays in given.items()}

        given = {dtype: (self.example(dtype), *self.drawn(dtype)) for dtype in ("float16", "bfloat16")}
        return run(given, self.keys())


def check_is_layer(layer):
    """Refuse what has no two methods ``init`` and ``fwd``."""
    if isinstance(layer, type):
        raise Failed(
            f"You gave the class `{layer.__name__}`, but a layer is asked for: make one, as in `{layer.__name__}(…)`."
        )
    if layer is None:
        raise Failed("You gave None, but a layer is asked for: is a `return` missing?")
    for name in ("init", "fwd"):
        if not callable(getattr(layer, name, None)):
            raise Failed(
                f"You gave {kind(layer)}, but a layer is asked for, which has two methods, `init` and `fwd`: there is "
                f"no `{name}`.",
                got=layer,
            )
        if guarding.is_open(getattr(layer, name)):
            raise NotAttempted


def with_param_dtype(layer, dtype):
    """A layer, and those that it holds, with another ``param_dtype``."""
    changed = {name: with_param_dtype(held, dtype) for name, held in _held(layer)}
    if "param_dtype" in fields(layer):
        changed["param_dtype"] = dtype
    return dataclasses.replace(layer, **changed)


def has_param_dtype(layer):
    return "param_dtype" in fields(layer) or any(has_param_dtype(held) for _, held in _held(layer))


def _held(layer):
    return [(name, value) for name, value in fields(layer).items() if callable(getattr(value, "fwd", None))]


def clone(key):
    """The same key for a second, deliberate use: these laws compare two runs of the same randomness."""
    return None if key is None else jax.random.clone(key)


def sin_sum(y):
    """A loss whose gradient tells all outputs apart."""
    return jnp.sum(jnp.sin(y))


def as_failure(error):
    """An error of the reader's, or one that JAX raised for what they returned, to be raised as a `Failed`."""
    return error if isinstance(error, Failed) else guarding.as_theirs(error)


def fields(layer):
    """The hyperparameters of a layer, by name."""
    if dataclasses.is_dataclass(layer):
        return {field.name: getattr(layer, field.name) for field in dataclasses.fields(layer)}
    return {name: value for name, value in getattr(layer, "__dict__", {}).items() if name[0] != "_"}


def twin(layer):
    """A layer of the same hyperparameters that is another object, or the layer itself where none can be made."""
    try:
        other = copy.copy(layer)
        if other is layer and dataclasses.is_dataclass(layer):
            other = dataclasses.replace(layer)
    except Exception:
        return layer
    return other


def changes(layer):
    """``(field, layer)`` for layers of which one number is another."""
    if not dataclasses.is_dataclass(layer):
        return
    for field in dataclasses.fields(layer):
        value = getattr(layer, field.name)
        if not field.init or type(value) not in (int, float):
            continue
        number = value + 1 if isinstance(value, int) or value >= 1 else value / 2 or 0.5
        try:
            other = dataclasses.replace(layer, **{field.name: number})
        except Exception:  # the layer may refuse the number
            continue
        if getattr(other, field.name) != value:  # or make it the same one
            yield field.name, other


def parameters_of(function):
    """The signature of a method, or None."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None
