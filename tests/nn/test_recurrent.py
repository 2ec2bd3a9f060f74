"""Recurrent layers against loops in NumPy and plain Python; lengths, directions, decoding, memory, errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mlax_tutorial import nn
from mlax_tutorial.inspection.jaxprs import walk
from mlax_tutorial.inspection.retracing import counted


def draw(seed, *shape, dtype=np.float32):
    return jax.device_put(np.random.default_rng(seed).normal(size=shape).astype(dtype))


# The cells once more, each for one step, by `np` or by `jnp`; the state is a tuple.


def sigmoid(x, numpy):
    return 1 / (1 + numpy.exp(-x))


def rnn(t, state, x, numpy):
    y = numpy.tanh(x @ t["input_kernel"] + state[0] @ t["recurrent_kernel"] + t["bias"])
    return (y,), y


def gru(t, state, x, numpy):
    (h,), n = state, len(t["recurrent_bias"])
    blocks = [slice(0, n), slice(n, 2 * n), slice(2 * n, None)]
    a, b, c = (x @ t["input_kernel"][:, block] + t["bias"][block] for block in blocks)
    p, q, s = (h @ t["recurrent_kernel"][:, block] for block in blocks)
    reset, update = sigmoid(a + p, numpy), sigmoid(b + q, numpy)
    candidate = numpy.tanh(c + reset * (s + t["recurrent_bias"]))
    y = (1 - update) * candidate + update * h
    return (y,), y


def lstm(t, state, x, numpy):
    h, c = state
    n = h.shape[-1]
    sums = x @ t["input_kernel"] + h @ t["recurrent_kernel"] + t["bias"]
    c = sigmoid(sums[..., n : 2 * n], numpy) * c + sigmoid(sums[..., :n], numpy) * numpy.tanh(
        sums[..., 2 * n : 3 * n]
    )
    h = sigmoid(sums[..., 3 * n :], numpy) * numpy.tanh(c)
    return (h, c), h


FEATURES = 3
CELLS = {
    "rnn": (nn.RNNCell(FEATURES), rnn, 1),
    "gru": (nn.GRUCell(FEATURES), gru, 1),
    "lstm": (nn.LSTMCell(FEATURES), lstm, 2),
}
cells = pytest.mark.parametrize(("cell", "step", "states"), CELLS.values(), ids=CELLS)
directions = pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])


def loop(step, states, t, x, reverse=False, numpy=np):
    """Outputs of one sequence, ``(time, in) -> (time, features)``, and the state after the last step."""
    state, ys = (numpy.zeros(FEATURES, x.dtype),) * states, []
    for each in x[::-1] if reverse else x:
        state, y = step(t, state, each, numpy)
        ys.append(y)
    return numpy.stack(ys[::-1] if reverse else ys), state


def variables(layer, x, seed=5):
    """Trainables all of which matter: biases are random, too."""
    types, _ = jax.eval_shape(layer.init, jax.random.key(0), x)
    leaves, structure = jax.tree.flatten(types)
    return jax.tree.unflatten(structure, [0.5 * draw(seed + i, *leaf.shape) for i, leaf in enumerate(leaves)])


def slopes(function, tree):
    """The gradient of a number that NumPy computes, by differences: of a Python loop it would take the compiler seconds."""
    leaves, structure = jax.tree.flatten(wide(tree))
    found = [np.zeros_like(leaf) for leaf in leaves]
    for index, leaf in enumerate(leaves):
        for place in np.ndindex(leaf.shape):
            step = np.zeros_like(leaf)
            step[place] = 1e-5
            ahead, behind = (
                function(jax.tree.unflatten(structure, [*leaves[:index], leaf + moved, *leaves[index + 1 :]]))
                for moved in (step, -step)
            )
            found[index][place] = (ahead - behind) / 2e-5
    return jax.tree.unflatten(structure, found)


def wide(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def close(got, wanted, tolerance=1e-5):
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)


@cells
@directions
@pytest.mark.parametrize("batch", [(), (2,), (2, 3)], ids=str)
def test_against_numpy(cell, step, states, reverse, batch):
    x = draw(0, *batch, 5, 4)
    layer = nn.Recurrent(cell, reverse=reverse)
    t = variables(layer, x)
    y, last = jax.jit(
        lambda x: [
            nn.Recurrent(cell, reverse=reverse, output=output).fwd(x, t, ())[0]
            for output in ("sequence", "last")
        ]
    )(x)
    assert y.shape == (*batch, 5, FEATURES) and last.shape == (*batch, FEATURES)
    for index in np.ndindex(batch):
        wanted, _ = loop(step, states, wide(t), wide(x)[index], reverse)
        close(y[index], wanted)
        close(last[index], wanted[0 if reverse else -1])


@cells
@directions
def test_gradients_against_a_python_loop(cell, step, states, reverse):
    x, weights = draw(0, 5, 4), np.asarray(draw(1, 5, FEATURES))
    t = variables(nn.Recurrent(cell), x)

    wanted = slopes(lambda args: np.sum(weights * loop(step, states, args[1], args[0], reverse)[0]), (x, t))
    for unroll in (2,) if reverse else (1, 2, 50):
        layer = nn.Recurrent(cell, reverse=reverse, unroll=unroll)
        got = jax.jit(jax.grad(lambda args, layer=layer: jnp.sum(weights * layer.fwd(*args, ())[0])))((x, t))
        jax.tree.map(close, got, wanted)


def test_unroll_reaches_the_loop():
    x = draw(0, 6, 4)
    for unroll in (1, 3):
        layer = nn.Recurrent(nn.GRUCell(2), unroll=unroll)
        jaxpr = jax.make_jaxpr(layer.fwd)(x, variables(layer, x), ())
        (scan,) = (equation for _, equation in walk(jaxpr) if equation.primitive.name == "scan")
        assert scan.params["unroll"] == unroll


def test_another_activation():
    x, cell = draw(0, 5, 4), nn.RNNCell(FEATURES, activation=jax.nn.relu)
    t = variables(nn.Recurrent(cell), x)
    state = np.zeros(FEATURES)
    for each in np.asarray(x):
        state = np.maximum(each @ t["input_kernel"] + state @ t["recurrent_kernel"] + t["bias"], 0)
    close(nn.Recurrent(cell, output="last").fwd(x, t, ())[0], state)


LENGTHS = [5, 2, 0, 1]


@cells
@directions
def test_lengths_against_each_sequence_alone(cell, step, states, reverse):
    """Values and gradients; NaN in the padding, and lengths out of range."""
    padding = np.arange(5) >= np.array(LENGTHS)[:, None]
    x = jnp.asarray(np.where(padding[..., None], np.nan, draw(0, 4, 5, 4)))
    t, weights = variables(nn.Recurrent(cell), x), np.asarray(draw(1, 4, 5, FEATURES))

    def alone(args):
        x, t = args
        whole, last = np.zeros((4, 5, FEATURES)), np.zeros((4, FEATURES))
        for i, length in enumerate(LENGTHS):
            if length:
                whole[i, :length], _ = loop(step, states, t, x[i, :length], reverse)
                last[i] = whole[i, 0 if reverse else length - 1]
        return whole, last

    def together(args, lengths):
        layers = (nn.Recurrent(cell, reverse=reverse, output=output) for output in ("sequence", "last"))
        return tuple(layer.fwd(*args, (), lengths=lengths)[0] for layer in layers)

    def total(ys):
        return (weights * ys[0]).sum() + (weights[:, 0] * ys[1]).sum()

    @jax.jit
    def run(args, lengths):
        ys, back = jax.vjp(lambda args: together(args, lengths), args)
        return ys, back(jax.grad(total)(ys))[0]

    args = x, t
    wanted = alone(wide(args)), slopes(lambda args: total(alone(args)), (np.nan_to_num(x), t))
    for lengths in (LENGTHS, [9, 2, -3, 1]):
        jax.tree.map(close, run(args, jnp.array(lengths)), wanted)
    jax.tree.map(close, jax.jit(together)(args, jnp.array(LENGTHS, jnp.int8)), wanted[0])


@pytest.mark.parametrize("lengths", [None, jnp.array([4, 7])], ids=["full", "lengths"])
@pytest.mark.parametrize("reverse", [False, True])
def test_of_the_outputs_only_the_last_is_stored(reverse, lengths):
    layer, x = nn.Recurrent(nn.GRUCell(3), reverse, output="last"), jnp.ones((2, 7, 4))
    trainables, _ = layer.init(jax.random.key(0), x)
    jaxpr = jax.make_jaxpr(lambda x: layer.fwd(x, trainables, (), lengths=lengths)[0])(x)
    (scan,) = [equation for _, equation in walk(jaxpr) if equation.primitive.name == "scan"]
    assert {variable.aval.shape for variable in scan.outvars} == {(2, 3)}


def test_full_lengths_change_nothing():
    x, layer = draw(0, 2, 3, 5, 4), nn.Recurrent(nn.LSTMCell(3))
    t = variables(layer, x)
    close(layer.fwd(x, t, (), lengths=jnp.full((2, 3), 5))[0], layer.fwd(x, t, ())[0])


def test_lengths_under_vmap_and_jit_in_one_trace():
    x, layer, traces = draw(0, 3, 5, 4), nn.Recurrent(nn.GRUCell(3), reverse=True), []
    t = variables(layer, x)

    @jax.jit
    def each(x, lengths):
        traces.append(x)
        return jax.vmap(lambda x, length: layer.fwd(x, t, (), lengths=length)[0])(x, lengths)

    for lengths in (jnp.array([5, 1, 2]), jnp.array([0, 4, 3])):
        close(each(x, lengths), layer.fwd(x, t, (), lengths=lengths)[0])
    assert len(traces) == 1


@pytest.mark.parametrize("lengths", [None, [5, 3]], ids=["whole", "lengths"])
@pytest.mark.parametrize("output", ["sequence", "last"])
def test_both_directions_against_flips(lengths, output):
    x, cell = draw(0, 2, 5, 4), nn.LSTMCell(FEATURES)
    layer, ahead = nn.Bidirectional(cell, output=output), nn.Recurrent(cell, output=output)
    t = variables(layer, x)
    assert t.keys() == {"forward", "backward"}
    assert not np.array_equal(*(t[name]["input_kernel"] for name in ("forward", "backward")))
    inputs = {} if lengths is None else {"lengths": jnp.array(lengths)}
    y, _ = layer.fwd(x, t, (), **inputs)
    for i, length in enumerate(lengths or [5, 5]):
        there, _ = ahead.fwd(x[i, :length], t["forward"], ())
        back, _ = ahead.fwd(x[i, :length][::-1], t["backward"], ())
        if output == "sequence":
            close(y[i, :length], np.concatenate([there, back[::-1]], axis=-1))
            assert not np.any(y[i, length:])
        else:
            close(y[i], np.concatenate([there, back]))


@cells
def test_decoding_in_parts_equals_the_whole(cell, step, states):
    x, layer = draw(0, 2, 6, 4), nn.Recurrent(cell)
    t = variables(layer, x)
    cache, decode, parts = layer.init_cache(x, length=6), jax.jit(layer.decode), []
    with counted(decode) as traces:
        for first in range(6):
            y, cache = decode(x[:, first : first + 1], t, (), cache)
            parts.append(y)
    assert traces() == 1
    close(jnp.concatenate(parts, axis=1), layer.fwd(x, t, ())[0])
    for i in range(2):
        wanted = loop(step, states, wide(t), wide(x)[i])[1]
        jax.tree.map(close, tuple(leaf[i] for leaf in jax.tree.leaves(cache)), wanted)


@cells
def test_decode_of_a_sequence_gives_the_state_at_its_own_end(cell, step, states):
    x, layer = draw(0, 3, 5, 4), nn.Recurrent(cell, output="last")
    t, lengths = variables(layer, x), [5, 2, 0]
    y, cache = layer.decode(x, t, (), layer.init_cache(x, 5), lengths=jnp.array(lengths))
    for i, length in enumerate(lengths[:2]):
        ys, wanted = loop(step, states, wide(t), wide(x)[i, :length])
        close(y[i], ys[-1])
        jax.tree.map(close, tuple(leaf[i] for leaf in jax.tree.leaves(cache)), wanted)
    assert not any(leaf[2].any() for leaf in (y, *jax.tree.leaves(cache)))


class Translator(nn.Composite):
    """Recurrent layers inside containers, decoded by the same ``forward``."""

    embed: nn.Layer
    blocks: nn.Layer
    head: nn.Layer
    decodes = True

    def forward(self, call, x):
        return call.head(call.blocks(call.embed(x)))


def test_containers_decode_step_by_step():
    blocks = nn.Stack(nn.Residual(nn.Remat(nn.Recurrent(nn.LSTMCell(4)))), depth=2)
    model, x = (
        Translator(nn.Linear(4), blocks, nn.Series(nn.Recurrent(nn.GRUCell(3)), nn.Linear(2))),
        draw(0, 2, 5, 3),
    )
    t, _ = model.init(jax.random.key(0), x)
    cache, parts = model.init_cache(x[:, :1], length=5), []
    for first in range(5):
        y, cache = model.decode(x[:, first : first + 1], t, (), cache)
        parts.append(y)
    close(jnp.concatenate(parts, axis=1), model.fwd(x, t, ())[0])


def test_a_fresh_cache_may_be_donated():
    x, layer = draw(0, 2, 5, 4), nn.Recurrent(nn.LSTMCell(3))
    t = variables(layer, x)
    jax.jit(layer.decode, donate_argnums=3)(x, t, (), layer.init_cache(x, 5))


def test_gradients_flow_through_the_cache():
    """As from an encoder to a decoder: in two parts they are those of the whole."""
    x, layer = draw(0, 6, 4), nn.Recurrent(nn.LSTMCell(3), output="last")
    t = variables(layer, x)

    def parts(t):
        _, cache = layer.decode(x[:2], t, (), layer.init_cache(x, 6))
        return jnp.sum(jnp.square(layer.decode(x[2:], t, (), cache)[0]))

    jax.tree.map(
        close, jax.grad(parts)(t), jax.grad(lambda t: jnp.sum(jnp.square(layer.fwd(x, t, ())[0])))(t)
    )


def test_lengths_reach_recurrent_layers_through_containers():
    model = nn.Series(nn.Linear(4), nn.Bidirectional(nn.GRUCell(3), output="last"), nn.Linear(2))
    assert model.inputs == {"lengths", "initial_state"}
    x, lengths = draw(0, 2, 5, 3), jnp.array([5, 2])
    t, _ = model.init(jax.random.key(0), x, lengths=lengths)
    y, _ = model.fwd(x, t, (), lengths=lengths)
    close(y[1], model.fwd(x[1, :2], t, ())[0])
    assert not np.allclose(y[1], model.fwd(x[1], t, ())[0])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("param_dtype", [None, "float32"])
def test_gradients_in_half_precision_are_summed_over_time_in_float32(dtype, param_dtype):
    """In bfloat16 a sum of ones stops growing at 256, in float16 at 2,048."""
    zeros = jax.nn.initializers.zeros
    cell = nn.RNNCell(
        1,
        activation=lambda x: x,
        kernel_initializer=zeros,
        recurrent_initializer=zeros,
        param_dtype=param_dtype,
    )
    layer, x = nn.Recurrent(cell), jnp.ones((4096, 1), dtype)
    t, _ = layer.init(jax.random.key(0), x)
    y, back = jax.vjp(lambda t: layer.fwd(x, t, ())[0], t)
    gradients = back(jnp.ones_like(y))[0]
    assert gradients["bias"].dtype == (param_dtype or dtype)
    assert gradients["bias"].item() == gradients["input_kernel"].item() == 4096


def test_the_sum_over_time_obeys_accum_dtype():
    """The sources' strict guarantee: nothing is float32."""
    cell = nn.RNNCell(1, accum_dtype="bfloat16", activation=lambda x: x)
    layer, x = nn.Recurrent(cell), jnp.ones((4, 1), "bfloat16")
    t, _ = layer.init(jax.random.key(0), x)
    jaxpr = jax.make_jaxpr(jax.grad(lambda t: layer.fwd(x, t, ())[0][-1, 0]))(t)
    assert "f32" not in str(jaxpr) and "bf16" in str(jaxpr)


def test_the_backward_pass_stores_no_gates(optimized):
    """Against a loop by hand, of the same mathematics: little more than half of the memory."""
    x = jax.ShapeDtypeStruct((32, 64, 16), jnp.float32)
    layer = nn.Recurrent(nn.LSTMCell(64))
    t, _ = jax.eval_shape(layer.init, jax.random.key(0), x)

    def by_hand(x, t):
        start = (jnp.zeros((32, 64)),) * 2
        step = functools.partial(lstm, {**t, "bias": t["bias"][None]}, numpy=jnp)
        return lax.scan(step, start, jnp.moveaxis(x, 1, 0))[1]

    def bytes_of(function):
        step = jax.jit(jax.grad(lambda t, x: jnp.sum(jnp.square(function(x, t)))))
        return step.lower(t, x).compile().memory_analysis().temp_size_in_bytes

    assert bytes_of(lambda x, t: layer.fwd(x, t, ())[0]) < 0.75 * bytes_of(by_hand)


def test_each_gate_is_initialized_as_if_alone():
    x = jnp.ones((1, 200))
    t, _ = nn.LSTMCell(100).init(jax.random.key(0), x)
    blocks = np.split(np.asarray(t["recurrent_kernel"]), 4, axis=-1)
    for block in blocks:
        close(block @ block.T, np.eye(100))
    assert not np.allclose(blocks[0], blocks[1])
    for block in np.split(np.asarray(t["input_kernel"]), 4, axis=-1):
        np.testing.assert_allclose(np.var(block) * 200, 1, rtol=0.05)
    np.testing.assert_array_equal(t["bias"].reshape(4, 100)[:, 0], [0, 1, 0, 0])


def test_initializers_go_where_they_are_named():
    constant = jax.nn.initializers.constant
    kernels = {
        "kernel_initializer": constant(2),
        "recurrent_initializer": constant(3),
        "bias_initializer": constant(4),
    }
    x = jnp.ones((1, 2))
    for cell in (nn.RNNCell(2, **kernels), nn.GRUCell(2, **kernels), nn.LSTMCell(2, **kernels)):
        t, _ = cell.init(jax.random.key(0), x)
        assert (t["input_kernel"] == 2).all() and (t["recurrent_kernel"] == 3).all()
        assert set(t["bias"].tolist()) == ({4.0, 1.0} if isinstance(cell, nn.LSTMCell) else {4.0})
    assert (nn.GRUCell(2, **kernels).init(jax.random.key(0), x)[0]["recurrent_bias"] == 4).all()
    update = nn.GRUCell(1, update_bias_initializer=constant(5)).init(jax.random.key(0), x)[0]["bias"]
    assert update.tolist() == [0, 5, 0]
    forget = nn.LSTMCell(1, forget_bias_initializer=constant(5)).init(jax.random.key(0), x)[0]["bias"]
    np.testing.assert_array_equal(forget, [0, 5, 0, 0])


class Sum:
    """No subclass: hashable, with the three functions. Its state is no single array."""

    def init(self, key, x):
        return (), ()

    def init_carry(self, x):
        return {"sum": lax.full_like(x, 0), "steps": lax.full_like(x, 0, shape=(*x.shape[:-1], 1))}

    def step(self, carry, x, trainables):
        carry = {"sum": carry["sum"] + x, "steps": carry["steps"] + 1}
        return carry, carry["sum"] / carry["steps"]


def test_a_cell_of_the_users_own():
    x, layer = draw(0, 2, 5, 3), nn.Recurrent(Sum(), output="last")
    assert layer.init(jax.random.key(0), x) == ((), ())
    close(layer.fwd(x, (), ())[0], x.mean(axis=1))
    y, cache = layer.decode(x, (), (), layer.init_cache(x, 5), lengths=jnp.array([5, 2]))
    close(y[1], x[1, :2].mean(axis=0))
    np.testing.assert_array_equal(cache["steps"], [[5], [2]])


class Grows(Sum):
    def step(self, carry, x, trainables):
        return jnp.concatenate([carry["sum"], x], axis=-1), x


class Remembers(Sum):
    def init(self, key, x):
        return (), {"seen": jnp.zeros(3)}


X = jnp.ones((2, 5, 4))
LSTM = nn.Recurrent(nn.LSTMCell(3))


def run(layer, x=X, **inputs):
    return layer.fwd(x, *layer.init(jax.random.key(0), x, **inputs), **inputs)


def decode(layer, cache, x=X):
    return layer.decode(x, layer.init(jax.random.key(0), x)[0], (), cache)


def cell_run(cell, x, other):
    return nn.Recurrent(cell).fwd(x, nn.Recurrent(cell).init(jax.random.key(0), other)[0], ())


WRONG = {
    "integers": (lambda: run(LSTM, X.astype(int)), "Recurrent: x expects floating-point numbers"),
    "no time": (lambda: run(LSTM, X[0, 0]), "at least 2 axes"),
    "no steps": (lambda: run(LSTM, X[:, :0]), r"expects a step at least .* got float32\[2,0,4\]"),
    "a list of lengths": (lambda: LSTM.fwd(X, (), (), lengths=[5, 2]), "lengths expect an array of integers, .* got a list"),
    "lengths as floats": (lambda: run(LSTM, lengths=jnp.ones(2)), r"got float32\[2\]: count the steps"),
    "a mask": (lambda: run(LSTM, lengths=jnp.ones((2, 5), bool)), r"got bool\[2,5\]"),
    "one length for all": (lambda: run(LSTM, lengths=jnp.array(3)), r"shape \(2,\), got int32\[\]"),
    "lengths of others": (lambda: run(LSTM, lengths=jnp.ones(3, int)), r"shape \(2,\), got int32\[3\]"),
    "lengths in a Series": (
        lambda: run(nn.Series(nn.Linear(3), LSTM), lengths=jnp.ones(3, int)), r"model\[1\].Recurrent: lengths expect"
    ),
    "lengths for both directions": (
        lambda: run(nn.Bidirectional(nn.GRUCell(3)), lengths=jnp.ones(3, int)), "model.forward.Recurrent: lengths expect"
    ),
    "trainables of another cell": (
        lambda: nn.Series(LSTM).fwd(X, (nn.Recurrent(nn.GRUCell(3)).init(jax.random.key(0), X)[0],), ()),
        r"model\[0\].cell.LSTMCell: trainables expect a dict with keys \['bias', 'input_kernel'",
    ),
    "trainables of another size": (
        lambda: LSTM.fwd(X, nn.Recurrent(nn.LSTMCell(4)).init(jax.random.key(0), X)[0], ()),
        r"model.cell.LSTMCell: input_kernel expects shape \(4, 12\) for x, float32\[2,4\], got float32\[4,16\]",
    ),
    **{
        f"another input for {type(cell).__name__}": (
            functools.partial(cell_run, cell, X, X[..., :2]),
            rf"model.cell.{type(cell).__name__}: input_kernel expects shape .* for x, .*, got float32",
        )
        for cell, _, _ in CELLS.values()
    },
    **{
        f"{type(cell).__name__} alone": (
            functools.partial(run, nn.Series(nn.Linear(2), cell)), rf"model\[1\].{type(cell).__name__}: is one step of"
        )
        for cell, _, _ in CELLS.values()
    },
    **{
        f"{type(cell).__name__} on integers": (
            lambda cell=cell: cell.init(jax.random.key(0), jnp.ones(3, int)), "x expects floating-point numbers"
        )
        for cell, _, _ in CELLS.values()
    },
    **{
        f"{type(cell).__name__} without a typed key": (
            lambda cell=cell: cell.init(jax.random.PRNGKey(0), X), "expects a typed key"
        )
        for cell, _, _ in CELLS.values()
    },
    "decoding backwards": (lambda: decode(nn.Recurrent(nn.GRUCell(3), reverse=True), None), "does not decode"),
    "decoding both ways": (
        lambda: decode(nn.Bidirectional(nn.GRUCell(3)), nn.Bidirectional(nn.GRUCell(3)).init_cache(X, 5)),
        "Bidirectional: does not decode",
    ),
    "a cache of another batch": (
        lambda: decode(LSTM, LSTM.init_cache(X[:1], 5)),
        r"cache expects \(float32\[2,3\], float32\[2,3\]\) for this x, got \(float32\[1,3\], float32\[1,3\]\)",
    ),
    "a cache of another cell": (
        lambda: decode(LSTM, nn.Recurrent(nn.GRUCell(3)).init_cache(X, 5)), r"got float32\[2,3\]: take what init_cache"
    ),
    "no cache": (lambda: decode(LSTM, None), "cache expects .* got None"),
    "a cache of another dtype": (lambda: decode(LSTM, LSTM.init_cache(X.astype("bfloat16"), 5)), r"bfloat16\[2,3\]"),
    "a cell that updates variables": (lambda: run(nn.Recurrent(Remembers())), r"must return \(trainables, \(\)\)"),
    "an initializer not called": (
        lambda: run(nn.Recurrent(nn.RNNCell(3, recurrent_initializer=jax.nn.initializers.orthogonal))),
        "model.cell.RNNCell: recurrent_initializer must return",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("wrong", "message"), WRONG.values(), ids=WRONG)
def test_wrong_calls(wrong, message):
    with pytest.raises(nn.LayerError, match=message):
        wrong()


def test_a_carry_that_changes_is_refused_with_the_place():
    with pytest.raises(TypeError, match="carry") as raised:
        run(nn.Series(nn.Recurrent(Grows())))
    assert "This was raised in model[0].cell.Grows." in raised.value.__notes__


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: nn.Recurrent(nn.Linear(3)), "Recurrent: cell must be a cell, such as"),
        (lambda: nn.Recurrent(nn.LSTMCell), "cell must be a cell"),
        (lambda: nn.Recurrent(128), "cell must be a cell, .* got 128"),
        (lambda: nn.Recurrent(nn.RNNCell(3), reverse=1), "reverse must be True or False"),
        (lambda: nn.Recurrent(nn.RNNCell(3), output="final"), "output must be one of 'sequence', 'last'"),
        (lambda: nn.Recurrent(nn.RNNCell(3), unroll=0), "unroll must be an integer of at least 1"),
        (lambda: nn.Bidirectional(LSTM), "Bidirectional: cell must be a cell"),
        (lambda: nn.Bidirectional(nn.RNNCell(3), output=None), "output must be one of"),
        (lambda: nn.Bidirectional(nn.RNNCell(3), unroll=1.5), "unroll must be an integer"),
        (lambda: nn.RNNCell(0), "RNNCell: features must be an integer of at least 1"),
        (lambda: nn.RNNCell(3, activation="tanh"), "activation must be a function"),
        (lambda: nn.GRUCell(3.5), "GRUCell: features must be"),
        (lambda: nn.GRUCell(3, accum_dtype="int32"), "accum_dtype must be a floating-point dtype"),
        (lambda: nn.LSTMCell(3, forget_bias_initializer=1.0), "forget_bias_initializer must be a function"),
        (lambda: nn.GRUCell(3, update_bias_initializer=1.0), "update_bias_initializer must be a function"),
        (lambda: nn.LSTMCell(3, precision="best"), "precision"),
    ],
)
def test_wrong_hyperparameters(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()
