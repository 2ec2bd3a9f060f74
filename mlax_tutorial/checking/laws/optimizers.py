"""The laws of optimizers: what one must obey to be compiled, carried by a loop, sharded, tuned and differentiated."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import optim
from mlax_tutorial.checking.describe import kind
from mlax_tutorial.checking.laws.law import Laws, Words, context, differing, equal, x64
from mlax_tutorial.checking.laws.optimizer_subject import (
    apply_updates,
    gradients,
    is_type,
    mirrors,
    spellings,
    types,
    weights,
)
from mlax_tutorial.checking.outcome import Failed
from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.inspection.dtypes import strays
from mlax_tutorial.nn.arrays import accumulator

OPTIMIZER = Laws()
PLAIN = {"convert_element_type", "mul", "add", "neg", "sub"}


@OPTIMIZER.law()
def signature(subject):
    """An optimizer has `init(trainables)` and `step(gradients, state, trainables)`, which returns `(updates, state)`;
    updates are to be added, and have the shapes of the trainables.
    """
    updates, _ = subject.stepped
    if jax.tree.structure(updates) != jax.tree.structure(subject.trainables):
        raise Failed(
            "The updates have another structure than the trainables.",
            expected=jax.tree.map(jnp.shape, subject.trainables),
            got=jax.tree.map(jnp.shape, updates),
        )
    for (path, update), weight in zip(
        jax.tree_util.tree_leaves_with_path(updates), jax.tree.leaves(subject.trainables)
    ):
        if jnp.shape(update) != weight.shape:
            raise Failed(
                f"The update{jax.tree_util.keystr(path)} has another shape than its weight.",
                expected=weight.shape,
                got=jnp.shape(update),
            )
    try:
        still, _ = subject.guarded(subject.theirs_of(0.0)).step(
            subject.gradients, subject.state, subject.trainables
        )
    except Failed:  # it may refuse a learning rate of 0
        return
    if differing(still, subject.trainables, rtol=1e-6) is None:
        raise Failed(
            "At a learning rate of 0, `step` returns the weights themselves: it has to return updates, which are added to the weights "
            "by `optim.apply_updates`.",
            input="learning_rate = 0.0",
            expected=jax.tree.map(jnp.zeros_like, still),
            got=still,
        )


@OPTIMIZER.law(signature)
def pure_and_under_jit(subject):
    """`init` and `step` are pure functions: called twice they give the same, and under `jax.jit`, too."""
    g, state, trainables = subject.gradients, subject.state, subject.trainables
    shown = {"gradients": g, "trainables": trainables}
    eager = subject.stepped
    again = subject.optimizer.step(g, state, trainables)
    equal(
        again,
        eager,
        "`step` was called twice with the same arguments, and gave another result the second time: what changes must be in the state "
        "that it gets and returns.",
        names=("updates", "state"),
        input=shown,
    )
    with context("Under `jax.jit`"):
        made = jax.jit(subject.optimizer.init)(trainables)
        found = subject.jitted(g, made, trainables)
    equal(
        made,
        state,
        "Under `jax.jit` `init` makes another state than without it.",
        rtol=1e-6,
    )
    equal(
        found,
        eager,
        "Under `jax.jit` `step` gives another result than without it.",
        names=("updates", "state"),
        input=shown,
        rtol=1e-5,
        atol=1e-7,
    )


@OPTIMIZER.law(pure_and_under_jit)
def state_mirrors_the_weights(subject):
    """Each array of the state belongs to a weight and stands where it stands: the state holds trees built like the
    trainables, and counts.
    """
    wanted = subject.mirror
    for when, state in (("returned by `init`", subject.state), ("returned by `step`", subject.stepped[1])):
        for name, tree in mirrors(state, wanted):
            found = jax.tree.map(lambda leaf: (jnp.shape(leaf), jnp.result_type(leaf)), tree)
            if found != wanted:
                raise Failed(
                    f"The state {when} holds{name and f' in {name}'} something that is neither one number nor a tree built like the "
                    "trainables: make it with `jax.tree.map(jnp.zeros_like, trainables)`.",
                    expected=_shapes(wanted),
                    got=_shapes(found),
                )


def _shapes(tree):
    return jax.tree.map(lambda leaf: Words(f"{leaf[1]}{list(leaf[0])}"), tree, is_leaf=is_type)


@OPTIMIZER.law(pure_and_under_jit)
def state_keeps_its_types(subject):
    """`step` returns a state of the structure, shapes and dtypes that it got, so that a loop can carry it."""
    for dtype in ("float32", "bfloat16"):
        trainables = weights(dtype)
        with context(f"With weights of {dtype}"):
            state = subject.optimizer.init(trainables)
            made = jax.eval_shape(subject.optimizer.init, trainables)
            _, stepped = jax.eval_shape(subject.optimizer.step, trainables, state, trainables)
        for words, tree in (("Under `jax.eval_shape` `init` makes", made), ("`step` returns", stepped)):
            if jax.tree.structure(tree) != jax.tree.structure(state):
                raise Failed(
                    f"{words} a state of another structure than `init`.",
                    input=f"weights of {dtype}",
                    expected=state,
                    got=jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), tree),
                )
            for (path, one), two in zip(
                jax.tree_util.tree_leaves_with_path(types(state)), jax.tree.leaves(types(tree)), strict=True
            ):
                if one != two:
                    weak = (
                        ""
                        if one.weak == two.weak
                        else " A weak type comes from a Python number: use `jnp.int32(0)` or the like."
                    )
                    raise Failed(
                        f"{words} `state{jax.tree_util.keystr(path)}` of another type than `init`, so no loop can carry it: convert "
                        f"it back to the dtype in which it came.{weak}",
                        input=f"weights of {dtype}",
                        expected=Words(one),
                        got=Words(two),
                    )


@OPTIMIZER.law(pure_and_under_jit)
def a_pytree_of_its_numbers(subject):
    """An optimizer is a pytree: its numbers are leaves, strong float32 or int32 scalars; all else is in its tree definition."""
    optimizer = subject.theirs
    leaves, structure = jax.tree.flatten(optimizer)
    if leaves and leaves[0] is optimizer:
        raise Failed(
            "JAX does not know your class, so `jax.jit` refuses it as an argument. Derive it from `optim.Optimizer`, or register it, "
            "as with `jax.tree_util.register_dataclass`."
        )
    if not leaves:
        raise Failed(
            "The optimizer has no leaves: its learning rate is a constant of each program, and another one compiles anew."
        )
    for path, leaf in jax.tree_util.tree_leaves_with_path(optimizer):
        name = f"optimizer{jax.tree_util.keystr(path)}"
        if not isinstance(leaf, jax.Array) or leaf.dtype.name not in ("float32", "int32"):
            which = kind(leaf) if not isinstance(leaf, jax.Array) else f"of {leaf.dtype}"
            raise Failed(
                f"{name} is {which}: store numbers as strong arrays of float32 (`jnp.asarray(value, jnp.float32)`), so that 0.1, 1 and "
                "`np.float64(0.1)` are one type to `jax.jit`.",
                got=leaf,
            )
        if jax.typeof(leaf).weak_type:
            raise Failed(
                f"{name} has a weak type, as Python's numbers have: name the dtype, `jnp.asarray(value, jnp.float32)`."
            )
    again = jax.tree.unflatten(structure, leaves)
    others = [
        ("put together from its leaves", again),
        ("made with another learning rate", subject.theirs_of(0.7)),
    ]
    others.append(("copied", copy.deepcopy(optimizer)))
    try:
        others.append(("pickled", pickle.loads(pickle.dumps(optimizer))))
    except Exception:  # a lambda, or a class of a notebook
        pass
    for how, other in others:
        same = jax.tree.structure(other) == structure and hash(jax.tree.structure(other)) == hash(structure)
        if type(other) is not type(optimizer) or not same:
            raise Failed(
                f"The same optimizer, {how}, has another tree definition: every number must be a leaf, and all else hashable.",
                shown=[("one", str(structure)), ("other", str(jax.tree.structure(other)))],
            )
    holes = jax.tree.map(lambda leaf: object(), optimizer)
    if jax.tree.structure(holes) != structure:
        raise Failed("Put together from placeholders, the optimizer has another tree definition.")


@OPTIMIZER.law(pure_and_under_jit)
def dtypes(subject):
    """Weights and state keep their dtype; updates of half-precision weights are float32, so that they are rounded once, when
    added.
    """
    for dtype, wide_setting in subject.settings:
        with x64(wide_setting):
            trainables = g = jax.eval_shape(lambda d=dtype: weights(d))
            with context(f"With weights of {dtype}"):
                state = jax.eval_shape(subject.optimizer.init, trainables)
                updates, new = jax.eval_shape(subject.optimizer.step, g, state, trainables)
            wide = str(accumulator(dtype))
            shown = {"input": f"weights and gradients of {dtype}"}
            for leaf in jax.tree.leaves(updates):
                if leaf.dtype != wide:
                    raise Failed(
                        f"The updates of weights of {dtype} should be {wide}, and are {leaf.dtype}: convert the gradients to {wide} "
                        "first, and numbers to the dtype of the gradients.",
                        expected=Words(wide),
                        got=Words(leaf.dtype),
                        **shown,
                    )
            for name, tree in mirrors(state, subject.mirror):
                allowed = subject.state_dtypes(name, dtype)
                for leaf in jax.tree.leaves(tree):
                    if str(leaf.dtype) not in allowed:
                        raise Failed(
                            f"The state{name and f' {name}'} of weights of {dtype} should be {' or '.join(allowed)}, and is "
                            f"{leaf.dtype}.",
                            expected=Words(" or ".join(allowed)),
                            got=Words(leaf.dtype),
                            **shown,
                        )

            def step(gradients, state, trainables):
                updates, state = subject.optimizer.step(gradients, state, trainables)
                return updates, state, apply_updates(trainables, updates)

            if all(given == wide for given in subject.declared.values()):
                program = jax.make_jaxpr(step)(g, state, trainables)
                names = {equation.primitive.name for _, equation in jaxprs.walk(program)}
                arithmetic = names if subject.arithmetic is None else subject.arithmetic | PLAIN
                if found := strays(program, dtype, arithmetic, wide):
                    raise Failed(
                        f"For weights of {dtype}, `step` computes in another dtype between.",
                        shown=[("computes", "\n".join(found[:4]))],
                        **shown,
                    )


@OPTIMIZER.law(pure_and_under_jit)
def no_weights(subject):
    """For a model without weights there is nothing to do, and nothing fails."""
    for nothing in ((), {}, ({}, ())):
        with context(f"With trainables = {nothing!r}"):
            state = subject.optimizer.init(nothing)
            updates, _ = subject.optimizer.step(nothing, state, nothing)
        if updates != nothing:
            raise Failed(
                "For a model without weights the updates are no empty tree.",
                input={"trainables": nothing},
                expected=nothing,
                got=updates,
            )


@OPTIMIZER.law(a_pytree_of_its_numbers)
def one_trace(subject):
    """A new learning rate, however it is written, never traces again."""
    trainables, train, traces, results = subject.trainables, subject.train, subject.traces, []
    traced, rates = jax.jit(subject.theirs_of), spellings()
    for rate in [*rates, *rates]:
        make = subject.theirs_of if len(results) < len(rates) else traced
        with context(f"With a learning rate of {rate!r}"):
            results.append(train(make(rate), trainables))
        if len(traces) > 1:
            raise Failed(
                f"A learning rate of {rate!r} traced `step` again, after {rates[0]!r}: store it as `jnp.asarray(rate, jnp.float32)`, "
                "a leaf of the pytree, whatever it is written as.",
                input=f"learning_rate = {rate!r}",
            )
    if differing(results[1], results[0], rtol=1e-5) is None:
        raise Failed("The learning rate makes no difference.", input="learning rates of 0.5 and 1")
    for eager, traced in zip(results, results[len(rates) :]):
        equal(
            traced,
            eager,
            "Made inside of `jax.jit`, from a traced learning rate, the optimizer gives another result.",
            rtol=1e-6,
            atol=1e-7,
        )
    for other in (1, 0):  # all other numbers, too, and integers remain integers
        train(jax.tree.map(lambda leaf, other=other: leaf - leaf // 2 + other, subject.theirs), trainables)
    if len(traces) > 1:
        raise Failed("Another number in the optimizer traced `step` again.")


@OPTIMIZER.law(pure_and_under_jit)
def donation(subject):
    """State and weights may be donated together: no array of the state is a weight."""
    trainables = weights()
    state = subject.optimizer.init(trainables)
    held = {_buffer(leaf) for leaf in jax.tree.leaves(trainables)}
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if isinstance(leaf, jax.Array) and _buffer(leaf) in held:
            raise Failed(
                f"`state{jax.tree_util.keystr(path)}`, as `init` returns it, is a weight itself, so the two cannot be donated together: "
                "give the state a copy of its own (`jnp.zeros_like`, or `jnp.array(weight)`).",
            )
    seen = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(state):
        if isinstance(leaf, jax.Array) and leaf.size:
            other = seen.setdefault(_buffer(leaf), path)
            if other != path:
                one, two = (f"`state{jax.tree_util.keystr(place)}`" for place in (other, path))
                raise Failed(
                    f"{one} and {two}, as `init` returns them, are one array, which cannot be donated twice: make each of its own.",
                )
    if not subject.thorough:  # XLA finds no more than is found above
        return
    step = jax.jit(subject.optimizer.step, donate_argnums=(1, 2), keep_unused=True)
    try:
        step(subject.gradients, state, trainables)
    except Exception as error:
        if "donate" not in str(error):
            raise
        raise Failed(
            "State and weights cannot be donated together, since `init` puts a weight itself into the state: give the state a copy "
            "of its own (`jnp.zeros_like`, or `jnp.array(weight)`)."
        ) from None


def _buffer(leaf):
    """Where an array lies."""
    return leaf.addressable_data(0).unsafe_buffer_pointer()


@OPTIMIZER.law(a_pytree_of_its_numbers)
def numbers_are_cast(subject):
    """Python's numbers may stand where the leaves were (a configuration may have put them there): `step` casts them."""
    plain = jax.tree.map(lambda leaf: leaf.item(), subject.theirs)
    with context("With Python's numbers as leaves"):
        found = subject.run(subject.guarded(plain), subject.trainables)
    equal(
        found,
        subject.run(subject.optimizer, subject.trainables),
        "With Python's numbers as leaves, three steps end elsewhere.",
        rtol=1e-5,
        atol=1e-7,
    )


@OPTIMIZER.law(one_trace)
def ensemble_by_vmap(subject):
    """`jax.vmap` over the learning rate trains one model for each rate."""
    rates = (0.1, 0.5)
    with context("Under `jax.vmap` over the learning rate"):
        batched = jax.vmap(subject.theirs_of)(jnp.array(rates))
        if not all(leaf.shape == (2,) for leaf in jax.tree.leaves(batched)):
            raise Failed(
                "Under `jax.vmap` over the learning rate, the optimizer's numbers have no batch axis."
            )
        together = jax.vmap(subject.train, in_axes=(0, None))(batched, subject.trainables)
    for index, rate in enumerate(rates):
        equal(
            jax.tree.map(lambda leaf, index=index: leaf[index], together),
            subject.train(subject.theirs_of(rate), subject.trainables),
            f"Under `jax.vmap`, the member with a learning rate of {rate} ends elsewhere than alone.",
            rtol=1e-4,
            atol=1e-5,
        )


@OPTIMIZER.law(a_pytree_of_its_numbers, dtypes)
def gradients_through_a_step(subject):
    """The weights after two steps are differentiable by the learning rate, and the derivative is that of finite differences."""
    with x64():
        trainables, rate = weights("float64"), subject.rate

        def after(optimizer):
            kernel = subject.run(subject.guarded(optimizer), trainables, steps=2)[0][0]["kernel"]
            # Powers of two, so that moves of one size and any signs, as Lion's are, do not cancel.
            return jnp.vdot(
                kernel, 2.0 ** -jnp.arange(kernel.size).reshape(kernel.shape).astype(kernel.dtype)
            )

        below, above = subject.theirs_of(rate - 1e-4), subject.theirs_of(rate + 1e-4)
        changes = jax.tree.map(_change, below, above)
        with context("Under `jax.grad` by the learning rate"):
            if subject.thorough:
                jax.eval_shape(jax.grad(after, allow_int=True), subject.theirs)
            # Forward mode compiles faster, and tells as much of the derivative.
            run = jax.jit(lambda optimizer: jax.jvp(after, (optimizer,), (changes,)))
            _, slope = run(subject.theirs)
            measured = float(run(above)[0] - run(below)[0])
        predicted = float(slope)
        if not np.isfinite(predicted):
            raise Failed(
                "The gradient by a number of the optimizer is not finite: the root has an infinite slope at zero."
            )
        if not np.isclose(predicted, measured, rtol=1e-3, atol=0) or predicted == 0:
            raise Failed(
                "The derivative of the weights by the learning rate is not what a small change of it makes: is there a "
                "`stop_gradient`, a `float()` or a rounding?",
                shown=[("change", f"measured {measured:.6g}, by the gradient {predicted:.6g}")],
            )


def _change(low, high):
    """By how much a number changes; what is no floating number does not."""
    floating = jnp.issubdtype(low.dtype, jnp.floating)
    return high - low if floating else np.zeros(low.shape, jax.dtypes.float0)


@OPTIMIZER.law(dtypes)
def rounded_once(subject):
    """For half-precision weights and gradients a step computes what it computes for the same numbers in float32."""
    for dtype in ("bfloat16", "float16") if subject.thorough else ("bfloat16",):
        half = jax.tree.map(lambda leaf, d=dtype: leaf.astype(d), (subject.gradients, subject.trainables))
        whole = jax.tree.map(lambda leaf: leaf.astype("float32"), half)
        with context(f"With weights of {dtype}"):
            got, _ = subject.jitted(half[0], subject.optimizer.init(half[1]), half[1])
        wanted, _ = subject.jitted(whole[0], subject.optimizer.init(whole[1]), whole[1])
        equal(
            got,
            wanted,
            f"The updates of {dtype} weights differ from those of the same numbers in float32: something between is rounded to {dtype}.",
            input={"gradients": half[0], "trainables": half[1]},
            rtol=1e-4,
            atol=1e-6,
        )


@OPTIMIZER.law(state_keeps_its_types, dtypes)
def sums_keep_growing(subject):
    """What accumulates in the state of half-precision weights does not stop growing where it should go on."""
    exact = "float64" if subject.double else "float32"
    with x64(subject.double):
        # Side by side in one program. The weights stay, and so does the gradient: 1.
        names = (exact, "bfloat16", "float16")
        ones = {name: {"kernel": jnp.ones(2, name), "bias": jnp.ones(2, name)} for name in names}

        def step(_, state):
            return subject.optimizer.step(ones, state, ones)[1]

        state = jax.jit(lambda state: jax.lax.fori_loop(0, 600, step, state))(subject.optimizer.init(ones))
    found = {jax.tree_util.keystr(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(state)}
    for path, leaf in found.items():
        for name in names[1:]:
            wanted = found.get(path.replace(f"'{name}'", f"'{exact}'"))
            if np.allclose(np.asarray(leaf, np.float64), np.asarray(wanted, np.float64), rtol=1e-2, atol=0):
                continue
            raise Failed(
                f"After 600 steps with a gradient of 1, `state{path}` is not what it is in {exact}: it is of {leaf.dtype}, in which what "
                "a step adds is rounded away. Keep it in float32.",
                expected=wanted,
                got=leaf,
            )


@OPTIMIZER.law(state_mirrors_the_weights, a_pytree_of_its_numbers, applies=lambda subject: not subject.packed)
def state_is_sharded(subject):
    """State and updates lie on the devices on which their weights lie."""
    mesh = jax.make_mesh((jax.device_count(),), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
    sharding = jax.NamedSharding(mesh, jax.P("model"))
    for dtype in ("float32", "bfloat16"):
        value = jnp.ones((2 * mesh.size, 2), dtype)
        trainables = {name: jax.device_put(value, sharding) for name in ("kernel", "bias")}
        state = subject.optimizer.init(trainables)
        updates, stepped = subject.optimizer.step(trainables, state, trainables)
        wanted = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), trainables)
        trees = [("updates", updates)]
        for when, some in (("init", state), ("step", stepped)):
            trees += [(f"the state that `{when}` returned", tree) for _, tree in mirrors(some, wanted)]
        for words, tree in trees:
            for leaf in jax.tree.leaves(tree):
                if leaf.shape == value.shape and not leaf.sharding.is_equivalent_to(sharding, 2):
                    raise Failed(
                        f"The weights are spread over {mesh.size} devices, but not {words}: make the state from the weights "
                        "(`jnp.zeros_like(weight)`), not from their shapes.",
                        expected=Words(sharding.spec),
                        got=Words(leaf.sharding),
                    )


@OPTIMIZER.law(pure_and_under_jit, applies=lambda subject: subject.peer is not None)
def equals_Optax(subject):
    """Fifty steps end where those of the same optimizer in Optax end."""
    ours, theirs = jax.jit(subject.optimizer.step), jax.jit(subject.peer.update)
    first, second = weights(), weights()
    state = subject.optimizer.init(first)
    with jax.numpy_dtype_promotion("standard"):  # Optax is not written for strict promotion
        optax_state = subject.peer.init(second)
        for _ in range(50):
            updates, state = ours(gradients(first), state, first)
            first = optim.apply_updates(first, updates)
            updates, optax_state = theirs(gradients(second), optax_state, second)
            second = optim.apply_updates(second, updates)
    equal(first, second, "After fifty steps the weights differ from Optax's.", rtol=1e-4, atol=2e-5)
    if np.allclose(first[0]["kernel"], weights()[0]["kernel"], atol=1e-2):
        raise Failed("After fifty steps the weights are where they were.")
