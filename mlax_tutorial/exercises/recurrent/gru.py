"""The gated recurrent unit, as a cell."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks, laws
from mlax_tutorial.checking.describe import describe, is_array
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.exercises.layers._layers import drawn

draw_kernel = jax.nn.initializers.lecun_normal()
orthogonal = jax.nn.initializers.orthogonal()


class GRUCell(nn.Cell):
    features: int

    def init(self, key, x):
        m, (input_key, *keys) = self.features, jax.random.split(key, 4)
        square = [orthogonal(k, (m, m)) for k in keys]
        return {
            "input_kernel": draw_kernel(input_key, (x.shape[-1], 3 * m), x.dtype),
            "recurrent_kernel": jnp.hstack(square).astype(x.dtype),
            "bias": jnp.zeros(3 * m, x.dtype),
            "recurrent_bias": jnp.zeros(m, x.dtype),
        }, ()

    def init_carry(self, x):
        return jax.lax.full_like(x, 0, shape=(*x.shape[:-1], self.features))

    def step(self, carry, x, trainables):
        w = jax.tree.map(lambda leaf: leaf.astype(x.dtype), trainables)
        from_x = x @ w["input_kernel"] + w["bias"]
        from_h = carry @ w["recurrent_kernel"]
        xr, xz, xn = jnp.split(from_x, 3, axis=-1)
        hr, hz, hn = jnp.split(from_h, 3, axis=-1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * (hn + w["recurrent_bias"]))
        h = (1 - z) * n + z * carry
        return h, h


X = np.array([[0.5, -1.0, 2.0, 0.25], [1.0, 0.5, -0.5, -2.0]], np.float32)
H = np.array([[0.3, -0.8], [-0.1, 0.6]], np.float32)


def check(GRUCell):
    cell = checks.make(GRUCell, 2)
    shapes = {"input_kernel": (4, 6), "recurrent_kernel": (2, 6), "bias": (6,), "recurrent_bias": (2,)}
    _variables(cell, shapes)
    _drawn(GRUCell)
    start = cell.init_carry(jax.device_put(X))
    if not is_array(start) or start.shape != (2, 2) or np.any(np.asarray(start)):
        raise Failed("`init_carry` should return zeros of shape (2, 2) for x of shape (2, 4).", got=start)
    w = {
        name: np.sin(1.0 + i + np.arange(np.prod(shape))).reshape(shape).astype(np.float32)
        for i, (name, shape) in enumerate(shapes.items())
    }
    _compare(cell, w)
    _gradients(cell, w)
    # Those that cost most are tests of the package's loop more than of a cell.
    costly = {"finite in half precision", "gradients", "init sharded", "keys used once", "a reused key is caught",
              "inference needs no key", "vmap equals loop", "scan and checkpoint", "shard_map",
              "eager equals jit", "batch equals loop"}  # fmt: skip
    # A cell may keep its state in float32 for half precision, as the package's own does.
    wide = laws.SUMS | laws.GATES
    checks.obeys_laws(nn.Recurrent(cell), np.stack([X, -X]), accumulates=wide, but=costly)


def _variables(cell, shapes):
    made = cell.init(jax.random.key(0), jax.device_put(X))
    if not isinstance(made, tuple) or len(made) != 2 or jax.tree.leaves(made[1]):
        raise Failed("`init` should return the pair `(trainables, ())`.", got=made)
    trainables = made[0]
    if not isinstance(trainables, dict) or trainables.keys() != shapes.keys():
        names = sorted(map(str, trainables)) if isinstance(trainables, dict) else describe(trainables)
        raise Failed(f"The trainables should be a dict with {', '.join(shapes)}, got {names}.")
    for name, shape in shapes.items():
        if not is_array(trainables[name]) or trainables[name].shape != shape:
            raise Failed(
                f'`trainables["{name}"]` should have the shape {shape} for 4 inputs and 2 features, got {describe(trainables[name])}.'
            )
    for name in ("bias", "recurrent_bias"):
        if np.any(np.asarray(trainables[name])):
            raise Failed(f'`trainables["{name}"]` should begin at zero.', got=trainables[name])
    for name in ("input_kernel", "recurrent_kernel"):
        if not np.any(np.asarray(trainables[name])):
            raise Failed(f'`trainables["{name}"]` is zero: all features would learn the same.')
        if np.ptp(np.asarray(trainables[name])) == 0:
            raise Failed(
                f'`trainables["{name}"]` is constant: draw its numbers from the key, as `draw` does.',
                got=trainables[name],
            )
    for name in ("recurrent_kernel", "input_kernel"):
        blocks = np.split(np.asarray(trainables[name]), 3, axis=1)
        if any(np.allclose(one, other) for one, other in itertools.combinations(blocks, 2)):
            raise Failed(
                f"Two blocks of the {name.replace('_', ' ')} are equal: draw each with a key of its own, or all in one draw.",
                got=trainables[name],
            )


def _drawn(GRUCell):
    """The distributions, on a cell that is large enough to see them."""
    cell, x = checks.make(GRUCell, 16), jnp.zeros((1, 64))
    made, _ = cell.init(jax.random.key(0), x)
    drawn(made["input_kernel"], 'trainables["input_kernel"]', 64**-0.5, "`lecun_normal`, for 64 inputs")
    for block in np.split(np.asarray(made["recurrent_kernel"]), 3, axis=1):
        if not np.allclose(block.T @ block, np.eye(16), atol=0.05):
            raise Failed(
                "A block of the recurrent kernel is not orthogonal: draw each of the three by `orthogonal`, as a square matrix.",
                got=block,
            )
    checks.keys(lambda key: cell.init(key, x)[0], jax.random.key(1), depends=False, eagerly=False)


def _compare(cell, w):
    with under("`jax.jit`"):
        result = jax.jit(fresh(cell.step))(H, X, w)
    if not isinstance(result, tuple) or len(result) != 2 or not all(is_array(part) for part in result):
        raise Failed("`step` should return the pair `(state, output)`, here twice the new h.", got=result)
    state, y = result
    if state.shape != H.shape or y.shape != H.shape:
        raise Failed(
            f"The new state and the output should have the shape {H.shape}, got {state.shape} and {y.shape}."
        )
    right = _step(w)
    wrong = {
        "The update gate is the wrong way round: z keeps the old state, 1 - z takes the candidate.": _step(w, turned=True),
        "The reset gate multiplies h before the product with U_n, as in the first paper. Here it multiplies what comes out of the "
        "product, bias included.": _step(w, before=True),
        "The reset gate and the update gate are swapped: the blocks stand in the order r, z, n.": _step(w, swapped=True),
        "`recurrent_bias` is missing, or stands outside of the reset gate: without it the check's other biases give this, too.": _step(w, bias="none"),
        "`recurrent_bias` stands outside of the product with r: it belongs to h U_n.": _step(w, bias="outside"),
        "The old state is missing in the new one: (1 - z) n + z h.": _step(w, forget=True),
        "The candidate ignores the reset gate.": _step(w, reset=False),
    }  # fmt: skip
    given = {"carry": H, "x": X, "trainables": w}
    for said, value in wrong.items():
        if np.allclose(y, value, atol=1e-4):
            raise Failed(said, input=given, expected=right, got=y)
    checks.same(y, jnp.asarray(right, jnp.float32), input=given, atol=1e-4, rtol=1e-3)
    if not np.allclose(state, right, atol=1e-4):
        raise Failed(
            "The output is right, but the state that `step` returns is not: both are the new h.", got=state
        )


def _gradients(cell, w):
    def step(h, x, input_kernel, recurrent_kernel, bias, recurrent_bias):
        trainables = dict(zip(w, (input_kernel, recurrent_kernel, bias, recurrent_bias)))
        return cell.step(h, x, trainables)[0]

    checks.gradients(step, None, *jax.device_put((H, X, *w.values())), argnums=(0, 2, 3, 4, 5), jit=True)


def _step(w, turned=False, before=False, swapped=False, bias="inside", forget=False, reset=True):
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    x, h = X @ w["input_kernel"] + w["bias"], H @ w["recurrent_kernel"]
    (xr, xz, xn), (hr, hz, hn) = np.split(x, 3, -1), np.split(h, 3, -1)
    r, z = sigmoid(xr + hr), sigmoid(xz + hz)
    if swapped:
        r, z = z, r
    u, b = w["recurrent_kernel"][:, -2:], w["recurrent_bias"]
    r = r if reset else 1.0
    inner = (r * H) @ u + b if before else r * hn + {"inside": r * b, "outside": b, "none": 0}[bias]
    n = np.tanh(xn + inner)
    if forget:
        return (1 - z) * n
    return z * n + (1 - z) * H if turned else (1 - z) * n + z * H


exercise = Exercise(
    title="The gated recurrent unit",
    stars=2,
    minutes=15,
    why="Two gates and one state do what the LSTM does with three and two; where a bias stands is a convention that weights from elsewhere depend on.",
    hints=(
        "Two products, x with the input kernel and h with the recurrent one; cut each into three. They are only added for r and z.",
        '`from_x = x @ w["input_kernel"] + w["bias"]`, `from_h = h @ w["recurrent_kernel"]`, `jnp.split(…, 3, axis=-1)`; then n is '
        'tanh of `xn + r * (hn + w["recurrent_bias"])`. All weights in the dtype of x.',
    ),
    solution=GRUCell,
    check=check,
)
