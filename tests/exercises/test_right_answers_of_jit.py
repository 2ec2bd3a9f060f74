"""Right answers of unusual style to the exercises of jit pass, and wrong ones that look right do not."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import optax

from mlax_tutorial.exercises import jit
from mlax_tutorial.inspection import retracing

from .right_answers import FAILED, PASSED, Answers

right, wrong = Answers(PASSED), Answers(FAILED)


# traces

right(jit.traces)({name: np.int32(number) for name, number in jit.traces.answer.items()})
wrong(jit.traces)({name: str(number) for name, number in jit.traces.answer.items()})
wrong(jit.traces)({**jit.traces.answer, "i": 1})


def test_the_traces_are_so_many():
    """The answers are counted, not believed."""
    calls = {
        "a": [((1.0,), {}), ((2.0,), {}), ((3.0,), {})],
        "b": [((1,), {}), ((1.0,), {}), ((True,), {})],
        "c": [((jnp.ones(2),), {}), ((jnp.ones((1, 2)),), {}), ((np.ones(2, np.float32),), {})],
        "d": [(([1.0, 2.0],), {}), (([1.0, 2.0, 3.0],), {}), (([3.0, 4.0],), {})],
        "e": [(({"a": 1.0, "b": None},), {}), (({"a": 1.0},), {}), (({"b": None, "a": 2.0},), {})],
        "f": [((), {"x": 1.0}), ((1.0,), {})],
        "h": [((jnp.float32(n),), {}) for n in range(5)],
    }
    for name, several in calls.items():
        fast = jax.jit(lambda x: x)
        with retracing.counted(fast) as count:
            for args, kwargs in several:
                fast(*args, **kwargs)
        assert count() == jit.traces.answer[name], name
    total = 0
    for n in range(5):
        fast = jax.jit(lambda x, n=n: x + n)
        with retracing.counted(fast) as count:
            fast(1.0)
        total += count()
    assert total == jit.traces.answer["g"]


# counter


@right(jit.counter)
@jax.jit
def with_cond(state, x):
    largest = jnp.abs(jnp.append(x, state["largest"])).max()
    result = jax.lax.cond(largest == 0, jnp.zeros_like, lambda x: x / largest, x)
    return dict(count=state["count"] + 1, largest=largest), result


@right(jit.counter)
def by_nan_to_num(state, x):
    new = dict(state)
    new["count"] += 1
    new["largest"] = jnp.fmax(state["largest"], jnp.linalg.norm(x, ord=jnp.inf))
    return new, jnp.where(new["largest"] == 0, x, x / new["largest"])


@right(jit.counter)
def by_a_factor(state, x):
    largest = jax.lax.max(state["largest"], jnp.max(jnp.abs(x)))
    scale = jnp.where(largest > 0, 1 / largest, 0.0)
    return (state | {"count": state["count"] + jnp.int32(1), "largest": largest}, x * scale)


@wrong(jit.counter)
def a_small_number_added(state, x):
    largest = jnp.maximum(state["largest"], jnp.max(jnp.abs(x)))
    return {"count": state["count"] + 1, "largest": largest}, x / (largest + 1e-2)


@wrong(jit.counter)
def numpy_numbers(state, x):
    new, result = jit.counter.answer(state, x)
    return {"count": np.int32(new["count"]), "largest": new["largest"]}, result


_calls = {"count": 0}


@wrong(jit.counter)
def counts_outside(state, x):
    _calls["count"] += 1
    new, result = jit.counter.answer(state, x)
    return {**new, "count": jnp.int32(_calls["count"])}, result


@wrong(jit.counter)
def largest_is_weak(state, x):
    new, result = jit.counter.answer(state, x)
    return {**new, "largest": jnp.asarray(float(new["largest"]))}, result


# steady


@right(jit.steady)
def by_asarray(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, np.asarray(rate, np.float32))


@right(jit.steady)
def by_partial_and_keywords(step):
    jitted = jax.jit(functools.partial(step))

    @functools.wraps(step)
    def wrapped(*arguments):
        *others, rate = arguments
        return jitted(*others, jax.device_put(np.array(rate, dtype="float32")))

    return wrapped


@right(jit.steady)
def an_object(step):
    class Steady:
        def __init__(self):
            self.jitted = jax.jit(lambda *arguments: step(*arguments))

        def __call__(self, weights, gradient, rate):
            return self.jitted(weights, gradient, np.float32(float(rate)))

    return Steady()


@right(jit.steady)
def on_the_device(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, jnp.asarray(rate, jnp.float32))


@right(jit.steady)
def cast_inside(step):
    jitted = jax.jit(lambda weights, gradient, rate: step(weights, gradient, jnp.float32(rate)))
    return lambda weights, gradient, rate: jitted(weights, gradient, float(rate))


@wrong(jit.steady)
def full_array(step):
    jitted = jax.jit(step)
    return lambda weights, gradient, rate: jitted(weights, gradient, np.full(1, rate, np.float32))


@wrong(jit.steady)
def cast_and_static(step):
    jitted = jax.jit(lambda w, g, rate: step(w, g, jnp.float32(rate)), static_argnums=2)
    return lambda weights, gradient, rate: jitted(weights, gradient, float(rate))


@wrong(jit.steady)
def float64(step):
    jitted = jax.jit(lambda w, g, rate: step(w, g, rate * 1))
    return lambda weights, gradient, rate: jitted(weights, gradient, int(rate * 1000) / 1000)


# jit_method


@right(jit.jit_method)
def by_copy(method):
    import copy

    @functools.partial(jax.jit, static_argnames="kind")
    def pure(attributes, arguments, *, kind):
        twin = kind.__new__(kind)
        twin.__dict__ = copy.copy(attributes)
        return method(twin, *arguments)

    @functools.wraps(method)
    def jitted(self, *arguments):
        return pure(self.__dict__, arguments, kind=self.__class__)

    return jitted


@right(jit.jit_method)
def one_program_for_each_class(method):
    programs = {}

    def make(kind):
        def pure(attributes, *arguments):
            twin = object.__new__(kind)
            for name, value in attributes.items():
                setattr(twin, name, value)
            return method(twin, *arguments)

        return jax.jit(pure)

    def jitted(self, *arguments):
        kind = type(self)
        if kind not in programs:
            programs[kind] = make(kind)
        return programs[kind](vars(self), *arguments)

    return jitted


@right(jit.jit_method)
def with_eval_of_keywords(method):
    def pure(kind, attributes, arguments, keywords):
        twin = object.__new__(kind)
        vars(twin).update(attributes)
        return method(twin, *arguments, **keywords)

    pure = jax.jit(pure, static_argnums=(0,))
    return lambda self, *arguments, **keywords: pure(type(self), dict(vars(self)), arguments, keywords)


@wrong(jit.jit_method)
def attributes_by_hash(method):
    programs = {}

    def jitted(self, *arguments):
        key = type(self), tuple(map(float, vars(self).values()))
        if key not in programs:
            programs[key] = jax.jit(functools.partial(method, self))
        return programs[key](*arguments)

    return jitted


@wrong(jit.jit_method)
def borrowed(method):
    """Puts tracers into the object itself, and takes them out again; the class is not in the key."""
    objects = []

    @jax.jit
    def pure(attributes, arguments):
        return method(types.SimpleNamespace(**attributes, extra=lambda: 0.0), *arguments)

    def jitted(self, *arguments):
        objects.append(self)
        return pure(vars(self), arguments)

    return jitted


# bucketed


@right(jit.bucketed)
def by_numpy_pad(function):
    jitted = jax.jit(lambda x, mask, initial: function(x, where=mask, initial=initial))

    def call(x, initial):
        size = int(2 ** np.ceil(np.log2(max(len(x), 32))))
        mask = np.arange(size) < len(x)
        return jitted(np.pad(x, (0, size - len(x))), mask, np.asarray(initial, x.dtype))

    return call


@right(jit.bucketed)
def three_sizes(function):
    @jax.jit
    def jitted(x, length, initial):
        return function(x, initial=initial, where=jnp.arange(x.size) < length)

    def call(x, initial):
        size = next(size for size in (64, 256, 1024) if size >= len(x))
        return jitted(np.resize(x, size), np.int32(len(x)), np.float32(initial))

    return call


@right(jit.bucketed)
def compiled_beforehand(function):
    jitted = jax.jit(lambda x, n, initial: function(x, where=jnp.arange(len(x)) < n, initial=initial))
    number, whole = (jax.ShapeDtypeStruct((), kind) for kind in (jnp.float32, jnp.int32))
    sizes = [16, 128, 1024]
    ready = {
        size: jitted.lower(jax.ShapeDtypeStruct((size,), jnp.float32), whole, number).compile()
        for size in sizes
    }

    def call(x, initial):
        size = min(size for size in sizes if size >= len(x))
        padded = np.concatenate([x, np.zeros(size - len(x), x.dtype)])
        return ready[size](padded, np.int32(len(x)), np.float32(initial))

    return call


@wrong(jit.bucketed)
def padded_with_the_neutral_element_of_sums(function):
    jitted = jax.jit(lambda x, initial: function(x, initial=initial))

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        return jitted(np.pad(x, (0, size - len(x))), np.float32(initial))

    return call


@wrong(jit.bucketed)
def the_initial_as_it_is(function):
    jitted = jax.jit(lambda x, n, initial: function(x, where=jnp.arange(len(x)) < n, initial=initial))

    def call(x, initial):
        return jitted(np.pad(x, (0, (1 << (len(x) - 1).bit_length()) - len(x))), np.int32(len(x)), initial)

    return call


@wrong(jit.bucketed)
def written_into_the_input(function):
    inner = jit.bucketed.answer(function)

    def call(x, initial):
        result = inner(x, initial)
        x[-1] = 0
        return result

    return call


# masked_loss


@right(jit.masked_loss)
def by_optax(logits, labels, mask):
    logits, labels = jnp.where(mask[:, None], logits, 0), jnp.where(mask, labels, 0)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return jnp.vdot(losses, mask) / jnp.maximum(mask.sum(), 1)


@right(jit.masked_loss)
def by_one_hot(logits, labels, mask):
    logits = jax.lax.select(jnp.broadcast_to(mask[:, None], logits.shape), logits, jnp.zeros_like(logits))
    hot = jax.nn.one_hot(labels, logits.shape[-1])  # zeros for a label outside
    losses = jax.nn.logsumexp(logits, axis=-1) - jnp.sum(hot * logits, axis=-1)
    return jnp.where(mask.any(), jnp.sum(losses, where=mask) / jnp.clip(mask.sum(), 1), 0.0)


@right(jit.masked_loss)
@jax.jit
def row_by_row(logits, labels, mask):
    def one(row, label, counts):
        row = jnp.where(counts, row, jnp.ones_like(row))
        return jnp.where(counts, -jax.nn.log_softmax(row)[label % row.size], 0.0)

    total = jnp.sum(jax.vmap(one)(logits, labels, mask))
    return total / (mask.sum() + (mask.sum() == 0))


@wrong(jit.masked_loss)
def clipped_logits(logits, labels, mask):
    return jit.masked_loss.answer(jnp.clip(logits, -5, 5), labels, mask)


@wrong(jit.masked_loss)
def where_argument_only(logits, labels, mask):
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return jnp.mean(losses, where=mask)


@wrong(jit.masked_loss)
def a_small_number_in_the_divisor(logits, labels, mask):
    return jit.masked_loss.answer(logits, labels, mask) * mask.sum() / (mask.sum() + 1e-2)


# run


@right(jit.run)
def by_array(step, state, batches):
    state = {name: jnp.array(leaf) for name, leaf in state.items()}
    jitted = jax.jit(lambda state, batch: step(state, batch), donate_argnames="state")
    for batch in batches:
        state = jitted(state, batch)
    return state


@right(jit.run)
def by_reduce(step, state, batches):
    first = jax.tree.map(lambda leaf: leaf.copy(), state)
    return functools.reduce(jax.jit(step, donate_argnums=(0,)), batches, first)


@right(jit.run)
def copied_by_a_program(step, state, batches):
    state = jax.jit(lambda tree: jax.tree.map(jnp.copy, tree))(state)
    step = functools.partial(jax.jit, donate_argnums=0)(step)
    for batch in batches:
        new = step(state, batch)
        state = new
        del new
    return state


@wrong(jit.run)
def scanned(step, state, batches):  # one program, nothing donated, and all batches at once
    def body(state, batch):
        return step(state, batch), None

    batches = list(batches)
    if not batches:
        return state
    return jax.lax.scan(body, state, jnp.stack(batches))[0]


@wrong(jit.run)
def one_leaf_only(step, state, batches):
    jitted = jax.jit(
        lambda weights, average, batch: step({"weights": weights, "average": average}, batch),
        donate_argnums=0,
    )
    weights, average = jnp.copy(state["weights"]), state["average"]
    for batch in batches:
        state = jitted(weights, average, batch)
        weights, average = state["weights"], state["average"]
    return state


@wrong(jit.run)
def keeps_the_history(step, state, batches):
    jitted, history = jax.jit(step, donate_argnums=0), []
    state = jax.tree.map(jnp.copy, state)
    for batch in batches:
        state = jitted(state, batch)
        history.append(jax.tree.map(jnp.copy, state))
    return state


test_right_answers_pass, test_wrong_answers_fail = right.test(), wrong.test()
