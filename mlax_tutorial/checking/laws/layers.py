"""The laws of layers: what a layer must obey to be combined, compiled, trained and distributed like all others.

Cheap ones come first: what follows from types and programs alone, then what has to be computed.
"""

import functools
import pickle

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import guarding
from mlax_tutorial.checking.describe import kind
from mlax_tutorial.checking.guarding import Raised
from mlax_tutorial.checking.laws.derivatives import Disagreement, check_derivatives
from mlax_tutorial.checking.laws.law import Laws, Words, context, differing, equal, on_host, x64
from mlax_tutorial.checking.laws.subject import (
    BATCH,
    changes,
    clone,
    fields,
    parameters_of,
    sin_sum,
    twin,
)
from mlax_tutorial.checking.outcome import Failed
from mlax_tutorial.inspection.dtypes import strays
from mlax_tutorial.nn.arrays import accumulator

LAYER = Laws()
VARIABLES, RESULT = ("trainables", "non_trainables"), ("y", "non_trainables")
MODES = {False: "in training", True: "in inference mode"}


# The object


@LAYER.law()
def signature(subject):
    """A layer has `init(key, x)` and `fwd(x, trainables, non_trainables, *, key=None, inference_mode=False)`."""
    for name, positional, keywords in (
        ("init", ("key", "x"), ()),
        ("fwd", ("x", "trainables", "non_trainables"), ("key", "inference_mode")),
    ):
        method = getattr(subject.layer, name)
        parameters = parameters_of(method)
        if parameters is None:
            continue
        try:
            parameters.bind(*positional, **dict.fromkeys(keywords))
            parameters.bind(*positional)
        except TypeError as error:
            raise Failed(
                f"`{name}` cannot be called with {', '.join(positional)}"
                + (f" and the keywords {', '.join(keywords)}" if keywords else "")
                + f": {error}.",
                shown=[("yours", f"{name}{parameters}")],
            ) from None
        for keyword, default in (("key", None), ("inference_mode", False)):
            mine = parameters.parameters.get(keyword)
            if keyword in keywords and mine is not None and mine.default is not default:
                raise Failed(
                    f"Who leaves `{keyword}` out of `{name}` means `{keyword}={default}`, and here it is {mine.default!r}.",
                    shown=[("yours", f"{name}{parameters}")],
                )


@LAYER.law()
def frozen(subject):
    """Nothing about a layer can be changed once it is made."""
    layer = subject.layer
    for name in [*fields(layer), "another_field"]:
        try:
            before = getattr(layer, name, None)
            setattr(layer, name, before)
        except (AttributeError, TypeError):
            continue
        if name == "another_field":
            delattr(layer, name)
        raise Failed(
            f"`layer.{name} = …` is accepted. A jitted function that has seen the layer would go on with what it was before: "
            "derive it from `nn.Layer`, or put `@dataclasses.dataclass(frozen=True)` above the class."
        )


@LAYER.law()
def hashable(subject):
    """A layer has a hash, by which `jax.jit` finds the program that it compiled for it."""
    try:
        hash(subject.layer)
    except Exception as error:
        unhashable = [name for name, value in fields(subject.layer).items() if not _has_hash(value)]
        which = (
            f" The field `{unhashable[0]}` is {kind(fields(subject.layer)[unhashable[0]])}."
            if unhashable
            else ""
        )
        raise Failed(
            f"`hash(layer)` raises {type(error).__name__}: {error}.{which} Store a tuple where you have a list or an array, and let "
            "the class compare by value (`@dataclasses.dataclass(frozen=True)`)."
        ) from None


def _has_hash(value):
    try:
        hash(value)
    except Exception:
        return False
    return True


@LAYER.law(hashable)
def equal_by_value(subject):
    """Layers of the same class and hyperparameters are equal and have one hash; all others differ."""
    layer = subject.layer
    others = [layer, twin(layer), *([subject.same] if subject.same is not None else [])]
    for other in others:
        if layer != other or hash(layer) != hash(other):
            which = "are not equal" if layer != other else "are equal, but have different hashes"
            raise Failed(
                f"Two layers of the same hyperparameters {which}, so `jax.jit` compiles again for the second: derive it from "
                "`nn.Layer`, or put `@dataclasses.dataclass(frozen=True)` above the class.",
                shown=[("layers", f"{layer!r}\n{other!r}")],
            )
        if isinstance(layer, nn.Layer) and repr(layer) != repr(other):
            raise Failed(
                "Two equal layers are printed differently.", shown=[("layers", f"{layer!r}\n{other!r}")]
            )
    for name, other in [*((None, unlike) for unlike in subject.unlike), *changes(layer)]:
        if layer == other:
            which = f"of which only `{name}` differs" if name else "that differ"
            raise Failed(
                f"Two layers {which} are equal, so `jax.jit` would use the program of the first for the second.",
                shown=[("layers", f"{layer!r}\n{other!r}")],
            )
        if jax.tree.leaves(layer) == [] and jax.tree.structure(layer) == jax.tree.structure(other):
            raise Failed(
                "Two different layers have the same tree definition, so `jax.jit` would use the program of the first for the "
                "second: register the class with `jax.tree_util.register_static`.",
                shown=[("layers", f"{layer!r}\n{other!r}")],
            )
    if layer == "layer":
        raise Failed("The layer equals a string.")


@LAYER.law(hashable)
def static(subject):
    """To JAX a layer is a constant: it has no leaves, so it may be an argument of a jitted function."""
    leaves = jax.tree.leaves(subject.layer)
    if not leaves:
        return
    if leaves[0] is subject.layer:
        raise Failed(
            "JAX does not know your class, so `jax.jit` refuses it as an argument. Derive it from `nn.Layer`, or put "
            "`@jax.tree_util.register_static` above the class."
        )
    raise Failed(
        "The layer is a pytree, and its hyperparameters are leaves, so `jax.jit` would trace them: register it with "
        "`jax.tree_util.register_static`. Arrays belong to the trainables, which `init` returns.",
        got=leaves,
    )


# init


@LAYER.law(signature)
def init_repeats(subject):
    """`init` is a pure function: the same key and input give the same variables."""
    first = subject.variables
    equal(
        subject.init(jax.random.key(0), subject.x),
        first,
        "`init` was called twice with the same key and x, and gave other variables the second time: it depends on something that is "
        "not among its arguments.",
        names=VARIABLES,
        input={"key": Words("jax.random.key(0)"), "x": subject.outline()},
    )


@LAYER.law(init_repeats)
def init_from_shapes(subject):
    """`init` looks at the shape and dtype of x, never at its numbers, so it takes a `jax.ShapeDtypeStruct` and works under
    `jax.jit`.
    """
    first, outline = subject.variables, subject.outline()
    with context("Given a `jax.ShapeDtypeStruct`, which has a shape and a dtype and no numbers"):
        found = subject.init(jax.random.key(0), outline)
    message = "`init` gives other variables for {} than for an array of the same shape and dtype."
    shown = {"x": outline}
    equal(found, first, message.format("a `jax.ShapeDtypeStruct`"), names=VARIABLES, input=shown)
    hosted = np.asarray(subject.x)
    equal(
        subject.init(jax.random.key(0), hosted),
        first,
        message.format("a NumPy array"),
        names=VARIABLES,
        input={"x": hosted},
    )
    other = jax.device_put(hosted + 1 if subject.ids is None else hosted * 0)
    equal(
        subject.init(jax.random.key(0), other),
        first,
        "`init` gives other variables for other numbers in x; only the shape and the dtype may count.",
        names=VARIABLES,
        input={"x": other},
    )
    with context("Under `jax.eval_shape`"):
        traced = jax.eval_shape(subject.init, jax.random.key(0), subject.x)
    equal(
        traced,
        subject.outlines,
        "Under `jax.eval_shape` `init` gives variables of other types.",
        names=VARIABLES,
    )


@LAYER.law(signature)
def plain_containers(subject):
    """Trainables and non_trainables are tuples and dicts of `jax.Array`s, and `()` where there are none."""

    def fault(tree, path):
        if isinstance(tree, dict):
            for name, child in tree.items():
                if not isinstance(name, str):
                    return f"{path} has the key {name!r}, which is no string"
                if found := fault(child, f"{path}[{name!r}]"):
                    return found
        elif type(tree) is tuple:
            return next(filter(None, (fault(child, f"{path}[{i}]") for i, child in enumerate(tree))), "")
        elif not isinstance(tree, jax.Array):
            return f"{path} is {kind(tree)}"
        return ""

    for name, tree in zip(("trainables", "non_trainables"), subject.variables):
        if found := fault(tree, name):
            raise Failed(
                f"{found}. Whoever walks over the weights (an optimizer, a checkpoint, a rule for sharding) expects dicts with "
                "the fields' names, tuples, and `jax.Array`s.",
                got=tree,
            )
        if not jax.tree.leaves(tree) and tree != ():
            raise Failed(f"There are no {name}: `init` should return `()` for them.", got=tree)


@LAYER.law(init_repeats, plain_containers)
def another_key(subject):
    """Random weights are drawn from the key that `init` gets: another key gives other ones."""
    leaves = jax.tree_util.tree_leaves_with_path(subject.variables)
    arrays = [np.asarray(leaf, np.float64) for _, leaf in leaves]
    # An LSTM's bias is 1 at the forget gate, 0 elsewhere.
    constants = [a for a in arrays if a.size == 0 or np.ptp(a) == 0 or np.isin(a, (0, 1)).all()]
    if len(constants) == len(arrays):
        return
    other = subject.init(jax.random.key(1), subject.outline())
    for (path, _), a, b in zip(leaves, arrays, jax.tree.leaves(other)):
        if np.array_equal(a, np.asarray(b, np.float64)) and not any(np.array_equal(a, c) for c in constants):
            where = ("trainables", "non_trainables")[path[0].idx] + jax.tree_util.keystr(path[1:])
            raise Failed(
                f"`init` gives the same {where} for two keys, and it is no constant: draw it from the key that `init` gets.",
                input="key = jax.random.key(0), then jax.random.key(1)",
                got=a,
            )


# fwd, by its types


@LAYER.law(init_from_shapes, applies=lambda subject: not subject.always)
def inference_needs_no_key(subject):
    """In inference mode `fwd` is deterministic: the key makes no difference, and may be missing."""
    try:
        without = subject.eager(True)
    except Failed as failure:
        without = failure
    try:
        fwd = functools.partial(subject.fwd, key=jax.random.key(3), inference_mode=True)
        with_key = fwd(subject.x, *subject.variables)
    except Failed:
        return  # of no key's doing: another law will say so
    if isinstance(without, Failed):
        without.say_first("In inference mode, without a key:")
        raise without
    equal(
        with_key,
        without,
        "In inference mode `fwd` gives another result with a key than without: draw only `if not inference_mode`.",
        names=RESULT,
        input={"x": subject.x},
    )


@LAYER.law(init_from_shapes, inference_needs_no_key, name="as eval_shape says")
def as_eval_shape_says(subject):
    """`fwd` can be traced, and returns what its trace says; the non_trainables it returns have the types of those it got."""
    for mode, where in MODES.items():
        with context(f"Called {where}"):
            got = subject.eager(mode)
        fwd = functools.partial(subject.fwd, inference_mode=mode)
        with context(f"Traced {where}, under `jax.eval_shape`"):
            wanted = jax.eval_shape(fwd, subject.x, *subject.variables, key=subject.keys(mode))
        for leaf in jax.tree.leaves(got):
            if not isinstance(leaf, jax.Array):
                raise Failed(
                    f"`fwd` returned {kind(leaf)} {where}, where a `jax.Array` is expected.", got=got
                )
        types = _types(got)
        equal(
            types,
            _types(wanted),
            f"Called {where}, `fwd` gives other types than its trace says.",
            names=RESULT,
        )
        equal(
            types[1],
            subject.outlines[1],
            f"Called {where}, `fwd` returns non_trainables of other types than it got, so no loop can carry them.",
        )


def _types(tree):
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree)


@LAYER.law(as_eval_shape_says)
def any_batch_axes(subject):
    """`x` may have any number of leading batch axes, none too: the variables' shapes do not depend on them, and the output
    has them in front.
    """
    one = None
    for batch in ((), (4,), (2, 3), (0,)):
        outline = subject.outline(batch=batch)
        axes = {0: "no batch axis", 1: "one batch axis"}.get(len(batch), f"{len(batch)} batch axes")
        with context(f"With {axes}, x of shape {outline.shape}"):
            found = jax.eval_shape(subject.init, jax.random.key(0), outline)
            equal(
                found,
                subject.outlines,
                f"With {axes}, `init` makes variables of other shapes or dtypes than with {len(BATCH)}: their shapes should come from the trailing axes, `x.shape[-1]`.",
                names=VARIABLES,
                input={"x": outline},
            )
            fwd = functools.partial(subject.fwd, inference_mode=True)
            y, _ = jax.eval_shape(fwd, outline, *subject.outlines, key=subject.keys(True))
        one = y if one is None else one
        wanted = jax.tree.map(
            lambda leaf, batch=batch: jax.ShapeDtypeStruct((*batch, *leaf.shape), leaf.dtype), one
        )
        equal(
            y,
            wanted,
            f"With {axes}, the output has another shape than that of one example with these axes in front.",
            input={"x": outline},
        )


@LAYER.law(as_eval_shape_says)
def differentiable(subject):
    """`jax.grad` goes through `fwd`, by the trainables and by x."""
    with context("Under `jax.grad`"):
        subject.program("float32")


@LAYER.law(as_eval_shape_says, applies=lambda subject: hasattr(subject.layer, "needs_key"))
def says_that_it_draws(subject):
    """A layer that draws random numbers says so with `needs_key = True`; containers hand keys to such children only."""
    if not subject.layer.needs_key and subject.uses_key:
        raise Failed(
            "`fwd` uses its key in training, but `needs_key` is False, so `nn.Series` would give it none: write `needs_key = True` "
            "in the class."
        )


@LAYER.law(as_eval_shape_says, equal_by_value)
def one_trace(subject):
    """Two calls with inputs of the same types are one trace, and so is a call of an equal layer."""
    layer, traces = subject.layer, []
    static = jax.tree.leaves(layer) != []

    def fwd(layer, x, trainables, non_trainables, key):
        traces.append(layer)
        return layer.fwd(x, trainables, non_trainables, key=key)

    jitted = jax.jit(fwd, static_argnums=0 if static else None)

    def trace(layer, key):  # what a call does before it compiles
        jitted.trace(layer, subject.x, *subject.variables, key)
        if len(traces) > 1:
            raise Failed(
                "A second call with an equal layer and inputs of the same types traced `fwd` again: is a hyperparameter of it "
                "equal to itself alone, as an object without `__eq__` is?"
            )

    for seed in (1, 2):
        trace(layer, jax.random.key(seed) if subject.draws else None)
    others = [twin(layer), *([subject.same] if subject.same is not None else [])]
    try:
        others.append(pickle.loads(pickle.dumps(layer)))
    except Exception:  # not everything can be pickled: a lambda, or a class of a notebook
        pass
    for other in others:
        trace(other, subject.keys())


# dtypes, judged on programs; nothing is computed


@LAYER.law(differentiable, any_batch_axes)
def dtype_outside(subject):
    """Variables, outputs and gradients have the dtype of the input (or of `param_dtype`, where the input holds integers), in
    float16, bfloat16, float32 and float64.
    """
    for dtype, wide in subject.settings:
        switched = (
            " (jax_enable_x64 switched on)" if wide and dtype != "float64" and not subject.thorough else ""
        )
        with context(f"With x of {dtype}{switched}"):
            (trainables, non_trainables), traced = subject.program(dtype, wide)
        kept = str(accumulator(dtype)) if subject.averages else dtype
        y, gradients = traced.out_info
        for what, tree, wanted in (
            ("trainables", trainables, dtype),
            ("non_trainables", non_trainables, kept),
            ("y", y, dtype),
            ("gradients", gradients, dtype),
        ):
            _of_dtype(what, tree, wanted, dtype, switched, subject.ids is not None)


def _of_dtype(what, tree, wanted, dtype, switched, holds_ids):
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        if leaf.dtype != wanted and (what != "non_trainables" or jnp.issubdtype(leaf.dtype, jnp.floating)):
            mends = {
                "trainables": "make them of `x.dtype` in `init`",
                "non_trainables": "make them of `x.dtype` in `init`",
                "y": "convert the weights (`.astype(x.dtype)`) and numbers (`jnp.asarray(2, x.dtype)`) before you use them",
                "gradients": "convert to the dtype of the input inside of `fwd`",
            }
            case = f"For an input of {dtype}"
            if holds_ids:  # the input is of int32, and `param_dtype` decides
                case = f"With `param_dtype` {dtype}"
                mends = {
                    "trainables": "make them of `self.param_dtype` in `init`, and multiply them by Python numbers only (`np.sqrt(16)` is float64)",
                    "non_trainables": "make them of `self.param_dtype` in `init`",
                    "y": "in `fwd` the weights decide the dtype, so keep theirs (`np.sqrt(16)` is float64 and widens them)",
                    "gradients": "in `fwd` the weights decide the dtype, so keep theirs",
                }
            name = what if what in ("y", "gradients") else what + jax.tree_util.keystr(path)
            raise Failed(
                f"{case}{switched}, {name} should be {wanted}, and {'are' if what == 'gradients' else 'is'} {leaf.dtype}: "
                f"{mends[what]}.",
                input=f"param_dtype = {dtype}"
                if holds_ids
                else {"x": jax.ShapeDtypeStruct(leaf.shape, dtype)}
                if what == "y"
                else f"x of {dtype}",
                expected=Words(wanted),
                got=Words(leaf.dtype),
            )


@LAYER.law(dtype_outside)
def dtype_inside(subject):
    """Between input and output no other dtype comes up, but float32 where half precision is summed."""
    for dtype, wide in subject.settings:
        if (dtype, wide) == ("float32", True) and not subject.thorough:
            continue  # there a constant like `jnp.full(3, 2.0)` is float64 until it meets x, which does no harm
        _, traced = subject.program(dtype, wide)
        if found := strays(traced.jaxpr, dtype, subject.accumulates, accumulator(dtype)):
            raise Failed(
                f"For an input of {dtype}, `fwd` or its gradient computes in another dtype between: is a number or a weight not "
                "converted to `x.dtype`, or the input converted to float32 for more than a sum?",
                input=f"x of {dtype}",
                shown=[("computes", "\n".join([*dict.fromkeys(found)][:4]))],
            )


@LAYER.law(dtype_outside)
def weights_of_another_dtype(subject):
    """The input decides the dtype of the output, also where the weights have another one; gradients have that of the
    weights.
    """
    x = subject.outline("float16")
    made, non_trainables = jax.eval_shape(subject.init, jax.random.key(0), x)

    def loss(trainables, x, non_trainables):
        y, _ = subject.fwd(x, trainables, non_trainables, key=subject.keys())
        return jnp.sum(y), y

    for param_dtype in ("float32", "bfloat16"):
        trainables = jax.tree.map(lambda leaf, d=param_dtype: jax.ShapeDtypeStruct(leaf.shape, d), made)
        with context(f"With x of float16 and trainables of {param_dtype}"):
            gradients, y = jax.eval_shape(jax.grad(loss, has_aux=True), trainables, x, non_trainables)
        wanted = subject.layer.policy.output_dtype if subject.of_dtype else x.dtype
        wanted = wanted if subject.ids is None else jnp.dtype(param_dtype)
        shown = f"x of {x.dtype}, trainables of {param_dtype}"
        for leaf in jax.tree.leaves(y):
            if leaf.dtype != wanted:
                path = jax.tree_util.keystr(jax.tree_util.tree_leaves_with_path(made)[0][0]).replace("'", '"')
                mend = f"convert the weights in `fwd`, as in `trainables{path}.astype(x.dtype)`"
                if subject.ids is not None:
                    mend = "in `fwd` the weights decide the dtype, whatever `param_dtype` says: keep theirs"
                raise Failed(
                    f"With x of {x.dtype} and trainables of {param_dtype}, the output should be {wanted}, and is {leaf.dtype}: {mend}.",
                    input=shown,
                    expected=Words(wanted),
                    got=Words(leaf.dtype),
                )
        for leaf, weight in zip(jax.tree.leaves(gradients), jax.tree.leaves(trainables)):
            if leaf.dtype != weight.dtype:
                raise Failed(
                    f"The gradient of a weight of {weight.dtype} is {leaf.dtype}.",
                    input=shown,
                    expected=Words(weight.dtype),
                    got=Words(leaf.dtype),
                )


# What has to be computed


@LAYER.law(any_batch_axes, applies=lambda subject: subject.averages)
def averages_keep_moving(subject):
    """What a layer averages over the steps of training in bfloat16 is what it would be in float64, to one percent."""
    with x64(), on_host():
        x = subject.example("bfloat16")
        half = jax.jit(subject.init)(jax.random.key(0), x)
        floating = functools.partial(jnp.issubdtype, arg2=jnp.floating)
        exact = jax.tree.map(lambda leaf: leaf.astype("float64") if floating(leaf.dtype) else leaf, half)

        @jax.jit
        def after(x, variables):
            def step(_, state):
                return subject.fwd(x, variables[0], state, key=subject.keys())[1]

            return jax.lax.fori_loop(0, 300, step, variables[1])

        got, wanted = after(x, half), after(x.astype("float64"), exact)
        equal(
            jax.tree.map(lambda leaf, exact: leaf.astype(exact.dtype), got, wanted),
            wanted,
            "After 300 steps on one batch of bfloat16, the averages are not what they are in float64: what a step adds is rounded "
            "away. Keep and update them in float32.",
            rtol=1e-2,
            atol=2e-3,
        )


@LAYER.law(as_eval_shape_says)
def drawn_from_the_key(subject):
    """In training `fwd` depends on its arguments alone, and a layer that draws gives something else for another key."""
    x, (first, _) = subject.x, subject.eager(False)
    again, _ = subject.fwd(x, *subject.variables, key=subject.keys())
    equal(
        again,
        first,
        "Called twice with the same arguments, `fwd` gives two results: draw from the key, with `jax.random`, and from nothing else.",
        input={"x": x},
    )
    if subject.draws and not subject.deterministic:
        for seed in range(8, 28):  # chance may draw the same mask for a few examples
            other, _ = subject.fwd(x, *subject.variables, key=jax.random.key(seed))
            if differing(other, first) is not None:
                return
        raise Failed(
            "The layer draws random numbers (`needs_key`), but gives the same output for two keys.",
            input="key = jax.random.key(7), then jax.random.key(8)",
            got=first,
        )


@LAYER.law(drawn_from_the_key)
def eager_equals_jit(subject):
    """`fwd` means the same under `jax.jit`."""

    @jax.jit  # both modes are one program, since compiling takes the time
    def fwd(x, variables, keys):
        return {mode: subject.fwd(x, *variables, key=keys[mode], inference_mode=mode) for mode in MODES}

    with context("Under `jax.jit`"):
        jitted = fwd(subject.x, subject.variables, {mode: subject.keys(mode) for mode in MODES})
    for mode, where in MODES.items():
        equal(
            jitted[mode],
            subject.eager(mode),
            f"Under `jax.jit` `fwd` gives another result than without it, {where}: does it use something that is not among its "
            "arguments, or ask whether x is a tracer?",
            names=RESULT,
            input={"x": subject.x},
            rtol=1e-4,
            atol=1e-5,
        )


@LAYER.law(as_eval_shape_says)
def keys_used_once(subject):
    """No key is used twice, neither in `init` nor in `fwd`: numbers drawn from one key are the same numbers."""
    calls = [("init", lambda key: subject.init(key, subject.x))]
    if subject.draws:
        calls.append(("fwd", lambda key: subject.fwd(subject.x, *subject.variables, key=key)))
    for method, call in calls:
        # The trace of a jitted function is checked before anything is compiled. Without jit, JAX 0.7 looks past operations that
        # ran before, and every operation is compiled by itself: the package's own tests take the time.
        traced = functools.partial(jax.eval_shape, jax.jit(call))
        for run in (traced, call) if subject.thorough else (traced,):
            key = jax.random.key(5)  # outside of the block, where it would be compiled anew
            try:
                with jax.debug_key_reuse(True):
                    run(key)
            except jax.errors.KeyReuseError as error:
                raise _reuse(guarding.as_theirs(error), method) from None
            except Raised as raised:
                raise _reuse(raised, method) from None


def _reuse(raised, method):
    if not isinstance(raised.error, jax.errors.KeyReuseError):
        return raised
    return Failed(
        f"`{method}` uses a random key twice, so what is drawn second equals what is drawn first, or depends on it: split the key, as "
        "in `first, second = jax.random.split(key)`, and use each of the new ones once.",
        shown=raised.shown,
    )


@LAYER.law(
    keys_used_once, drawn_from_the_key, applies=lambda subject: subject.draws and not subject.deterministic
)
def a_reused_key_is_caught(subject):
    """Whoever passes one key to two calls is told so by JAX's check (`jax_debug_key_reuse`): the layer uses the key up."""

    def twice(key):
        return [subject.fwd(subject.x, *subject.variables, key=key)[0] for _ in range(2)]

    # Without jit, JAX 0.7 looks past operations that ran before its check was switched on; in the package's own tests it always is.
    without = [("", twice)] if subject.thorough else []
    for where, run in (*without, (" under `jax.jit`", functools.partial(jax.eval_shape, jax.jit(twice)))):
        key = jax.random.key(5)
        try:
            with jax.debug_key_reuse(True):
                run(key)
        except jax.errors.KeyReuseError:
            continue
        except Raised as raised:
            if isinstance(raised.error, jax.errors.KeyReuseError):
                continue
            raise
        raise Failed(
            f"`fwd` was called twice with one key{where}, and JAX's check found nothing: make keys with `jax.random.split`, for after "
            "`jax.random.fold_in` or `key_data` the check is blind."
        )


@LAYER.law(differentiable, any_batch_axes, drawn_from_the_key)
def batch_equals_loop(subject):
    """A batch gives what a loop over its examples gives."""
    with context("For one example, without batch axes"):
        outputs = subject.one_by_one[0]
    found = subject.at_once.get("batch", {})
    if isinstance(found, Failed):
        raise found
    for mode, batch in found.items():
        equal(
            batch,
            outputs[mode],
            f"For a batch, `fwd` gives another result than for its examples one by one, {MODES[mode]}: an operation mixes the "
            "examples, such as a mean or a sum over a batch axis (count axes from the end: `axis=-1`).",
            input={"x": subject.x},
            rtol=1e-4,
            atol=1e-5,
        )
    empty = subject.at_once.get("empty")
    if isinstance(empty, Failed):
        raise empty
    if empty is not None:
        for leaf, whole in zip(jax.tree.leaves(empty), jax.tree.leaves(outputs[True])):
            if leaf.shape != (0, *whole.shape[1:]):
                raise Failed("The output for an empty batch has a wrong shape.", got=leaf.shape)


@LAYER.law(differentiable, any_batch_axes, drawn_from_the_key)
def vmap_equals_loop(subject):
    """Under `jax.vmap` (with a key for each example) a layer gives what a loop over the examples gives."""
    found = subject.at_once["mapped"]
    if isinstance(found, Failed):
        with context("Under `jax.vmap`"):
            raise found
    for mode, mapped in found.items():
        equal(
            mapped,
            subject.one_by_one[0][mode],
            f"Under `jax.vmap`, `fwd` gives another result than a loop over the examples, {MODES[mode]}.",
            input={"x": subject.x},
            rtol=1e-4,
            atol=1e-5,
        )


@LAYER.law(differentiable, any_batch_axes, drawn_from_the_key)
def scan_and_checkpoint(subject):
    """Inside `jax.lax.scan` and `jax.checkpoint` a layer and its gradients mean the same."""
    x, (trainables, non_trainables) = subject.x, subject.variables
    outputs, by_x, by_trainables = subject.one_by_one

    @jax.checkpoint
    def one(x, trainables, key):
        return subject.fwd(x, trainables, non_trainables, key=key)[0]

    def loss(x, trainables, each):
        _, y = jax.lax.scan(lambda _, item: (None, one(item[0], trainables, item[1])), None, (x, each))
        return sin_sum(y), y

    @jax.jit
    def run(x, trainables, each):
        examples = x.reshape(-1, *subject.shape), trainables, None if each is None else each.reshape(-1)
        return jax.value_and_grad(loss, subject.differentiable, has_aux=True)(*examples)

    with context("Under `jax.lax.scan` and `jax.checkpoint`"):
        found = run(x, trainables, subject.keys(shape=BATCH))
    (_, y), gradients = jax.tree.map(np.asarray, found)
    *scanned_by_x, scanned_by_trainables = gradients
    message = "Under `jax.lax.scan` and `jax.checkpoint`, {} than in a loop over the examples."
    shown = {"x": subject.x}
    equal(
        y.reshape(outputs[False].shape),
        outputs[False],
        message.format("`fwd` gives another result"),
        input=shown,
        rtol=1e-5,
        atol=1e-6,
    )
    equal(
        [g.reshape(x.shape) for g in scanned_by_x],
        by_x,
        message.format("the gradient by x is another"),
        input=shown,
        rtol=1e-4,
        atol=1e-5,
    )
    # Gradients of weights in half precision are rounded each time that one is added.
    held = max([jnp.finfo(leaf.dtype).eps for leaf in jax.tree.leaves(by_trainables)], default=0)
    rounding = 4 * float(held) if held > 1e-6 else 1e-4
    equal(
        scanned_by_trainables,
        by_trainables,
        message.format("the gradient by the trainables is another"),
        input=shown,
        rtol=rounding,
        atol=rounding / 10,
    )
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients)):
        raise Failed("A gradient is not finite.", input=shown, got=gradients)


@LAYER.law(dtype_outside)
def finite_in_half_precision(subject):
    """For ordinary numbers, outputs and gradients are finite in float16 and bfloat16, too."""
    for dtype, tree in subject.halves.items():
        for leaf in jax.tree.leaves(tree):
            if not np.isfinite(np.asarray(leaf, np.float64)).all():
                raise Failed(
                    f"For an input of {dtype}, an output or a gradient is not finite: float16 ends at 65504, and below 6e-8 all is 0; "
                    "sum in float32, or scale before you sum.",
                    input={"x": subject.example(dtype)},
                    got=leaf,
                )


@LAYER.law(dtype_outside, drawn_from_the_key)
def gradients(subject):
    """The gradients are those that finite differences measure, in float64."""
    _, traced = subject.program("float64", True)
    rough = {"step": 5e-3, "tolerance": 2e-2} if strays(traced.jaxpr, "float64") else {}
    # JAX's own rules are right to any order, and second derivatives take most of the compiler's time.
    order = 2 if subject.thorough and subject.has_own_rules else 1
    key = subject.keys()
    with x64(), on_host():
        x, layer = subject.example("float64"), subject.declared("float64")
        trainables, non_trainables = subject.drawn("float64", True)

        def fwd(x, trainables):
            return layer.fwd(x, trainables, non_trainables, key=clone(key))[0]

        try:
            if subject.ids is None:
                check_derivatives(fwd, (x, trainables), order, names=("x", "trainables"), **rough)
            else:
                of_ids = functools.partial(fwd, x)
                check_derivatives(of_ids, (trainables,), order, names=("trainables",), **rough)
        except Disagreement as found:
            raise Failed(
                f"{found.reason} Is there a `stop_gradient`, a rounding, or a rule of your own (`custom_vjp`) that does not fit?",
                input={"x": np.asarray(x)},
                shown=[("slope", f"measured {found.wanted:.6g}, by the gradient {found.got:.6g}")],
            ) from None


@LAYER.law(init_from_shapes)
def init_sharded(subject):
    """`jax.jit(layer.init, out_shardings=…)` makes the same variables, where they should be."""
    replicated = jax.NamedSharding(_mesh(), jax.P())
    with context("Under `jax.jit`"):
        found = jax.jit(subject.init, out_shardings=replicated)(jax.random.key(0), subject.x)
    for leaf in jax.tree.leaves(found):
        if leaf.sharding != replicated:
            raise Failed("A variable does not lie where `out_shardings` says.", got=Words(leaf.sharding))
    equal(
        found,
        subject.variables,
        "Under `jax.jit`, `init` makes other variables than without it.",
        names=VARIABLES,
        rtol=1e-6,
    )


@LAYER.law(differentiable, any_batch_axes, drawn_from_the_key, name="shard_map")
def shard_map(subject):
    """In `jax.shard_map` a layer sees a smaller batch, and gives for it what it gives alone (with a key for each shard)."""
    mesh = _mesh()
    count = mesh.size
    trainables, non_trainables = subject.variables

    def shard(x, trainables, key):
        return subject.fwd(x, trainables, non_trainables, key=None if key is None else key[0])[0]

    specs = (jax.P("batch"), jax.P(), jax.P("batch") if subject.draws else None)
    sharded = jax.jit(jax.shard_map(shard, mesh=mesh, in_specs=specs, out_specs=jax.P("batch")))
    if (
        count == 1 and not subject.thorough
    ):  # then a shard is the whole batch, and only its types can be wrong
        key = jax.random.key(7)
        each = jax.eval_shape(lambda: jax.random.split(key, count)) if subject.draws else None
        with context("Under `jax.shard_map`"):
            jax.eval_shape(sharded, subject.outline(batch=(2 * count,)), trainables, each)
        return
    x = np.asarray(subject.example(batch=(2 * count,)))  # of which a part needs no program
    each = jax.random.split(jax.random.key(7), count) if subject.draws else None
    with context("Under `jax.shard_map`"):
        together = sharded(x, trainables, clone(each))
    alone = jax.jit(shard)
    parts = [
        alone(x[2 * i : 2 * i + 2], trainables, None if each is None else clone(each)[i : i + 1])
        for i in range(count)
    ]
    equal(
        together,
        jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts),
        "Under `jax.shard_map`, `fwd` gives another result than for each part of the batch alone.",
        input={"x": x},
        rtol=1e-5,
        atol=1e-6,
    )


def _mesh():
    return jax.make_mesh((jax.device_count(),), ("batch",), axis_types=(jax.sharding.AxisType.Auto,))
