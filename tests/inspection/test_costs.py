"""The counter of FLOPs and bytes against XLA's own, and against counting by hand where XLA does not count."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from mlax_tutorial.inspection.costs import cost, cost_of, itemize

X, W = jnp.ones((64, 32)), jnp.ones((32, 16))
IMAGES, KERNELS = jnp.ones((2, 4, 9, 8)), jnp.ones((6, 4, 3, 2))
SQUARE = jnp.ones((8, 8))


def xla(fun, *args):
    """What XLA says of the program before it optimizes it."""
    found = jax.jit(fun).lower(*args).cost_analysis()
    found = found[0] if isinstance(found, list) else found
    return found.get("flops", 0), found.get("transcendentals", 0), found["bytes accessed"]


def conv(padding, **options):
    return functools.partial(lax.conv_general_dilated, window_strides=(1, 1), padding=padding, **options)


def loss(params, x, y):
    hidden = jax.nn.relu(x @ params[0] + params[1])
    return jnp.mean((hidden @ params[2] - y) ** 2)


PARAMS = jnp.ones((32, 64)), jnp.zeros(64), jnp.ones((64, 1))
SAME = {
    "product": (jnp.dot, X, W),
    "batched product": (jnp.matmul, jnp.ones((5, 4, 3)), jnp.ones((5, 3, 2))),
    "einsum over two axes": (lambda x, y: jnp.einsum("abc,bcd->ad", x, y), jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5))),
    "chain": (lambda x: jnp.tanh(x * 2 + 1) * x, X),
    "powers": (lambda x: x**2 + x**5 + x**7, X),
    "any power": (lambda x: x**2.5, X),
    "roots": (lambda x: lax.rsqrt(x) + jnp.sqrt(x), X),
    "sum and max": (lambda x: jnp.sum(x, 0) + jnp.max(x, 0), X),
    "softmax": (jax.nn.softmax, X),
    "relu": (jax.nn.relu, X),
    "where": (lambda x: jnp.where(x > 0, x, 2 * x), X),
    "cast": (lambda x: x.astype(jnp.bfloat16), X),
    "gelu": (jax.nn.gelu, X),
    "moves": (lambda x: jnp.concatenate([x.T, x.T])[::-1, 1:].reshape(-1), X),
    "gather": (lambda x: x[np.array([1, 2])], X),
    "jitted": (jax.jit(lambda x: jax.jit(jnp.exp)(x) * x), X),
    "valid convolution": (conv("VALID"), IMAGES, KERNELS),
    "same convolution": (conv("SAME"), IMAGES, KERNELS),
    "strided convolution": (functools.partial(lax.conv_general_dilated, window_strides=(2, 3), padding="SAME"), IMAGES, KERNELS),
    "dilated convolution": (conv("VALID", rhs_dilation=(2, 3)), IMAGES, KERNELS),
    "transposed convolution": (conv([(2, 2), (1, 1)], lhs_dilation=(2, 2)), IMAGES, KERNELS),
    "grouped convolution": (conv("SAME", feature_group_count=2), IMAGES, jnp.ones((6, 2, 3, 2))),
    "convolution of groups of the batch": (conv("SAME", batch_group_count=2), jnp.ones((4, 4, 9, 8)), KERNELS),
    "channels last": (conv("SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), jnp.ones((2, 9, 8, 4)), jnp.ones((3, 2, 4, 6))),
    "pooling": (lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"), IMAGES),
    "pooling, backwards": (jax.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID").sum()), IMAGES),
    "any reduction": (lambda x: lax.reduce(x, np.float32(0), lambda a, b: a * b + a, (0,)), X),
    "scatter": (lambda x: x.at[np.array([1, 2])].add(1.0), X),
    "logs": (lambda x: jnp.log(x) + jnp.log1p(x), X),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_operations_are_those_that_xla_counts(name):
    fun, *args = SAME[name]
    mine, (flops, transcendentals, _) = cost(fun, *args), xla(fun, *args)
    assert (mine.flops, mine.transcendentals) == (flops, transcendentals)
    assert mine.uncounted == ()


@pytest.mark.parametrize("name", SAME)
def test_bytes_lie_between_the_least_and_what_xla_counts_unfused(name):
    fun, *args = SAME[name]
    mine = cost(fun, *args)
    assert mine.bytes <= 1.05 * xla(fun, *args)[2] + 64
    if name not in (
        "gather",
        "moves",
        "pooling",
        "scatter",
    ):  # these do not need all of their inputs, or write twice
        assert mine.bytes >= mine.least_bytes


def test_the_gradient_of_a_network_is_within_a_hundredth():
    args = jax.grad(loss), PARAMS, X, jnp.ones((64, 1))
    mine, (flops, _, moved) = cost(*args), xla(*args)
    assert abs(mine.flops - flops) < 0.02 * flops and 0.6 * moved < mine.bytes < 1.1 * moved


def test_a_convolution_has_two_gradients_of_its_own_size():
    def total(images, kernels):
        return jnp.sum(conv("VALID")(images, kernels) ** 2)

    forward = cost(conv("VALID"), IMAGES, KERNELS).flops
    names = [i for i in itemize(jax.make_jaxpr(jax.grad(total, (0, 1)))(IMAGES, KERNELS))]
    flops = [i.flops for i in names if i.equation.primitive.name == "conv_general_dilated"]
    assert flops == [forward] * 3


@pytest.mark.parametrize("groups", [2, 4])
def test_so_has_a_convolution_of_groups(groups):
    """The gradient for its kernels is a convolution whose *batch* is in groups."""
    grouped, kernels = conv("VALID", feature_group_count=groups), jnp.ones((8, 4 // groups, 3, 2))
    jaxpr = jax.make_jaxpr(jax.grad(lambda *args: jnp.sum(grouped(*args) ** 2), (0, 1)))(IMAGES, kernels)
    flops = [i.flops for i in itemize(jaxpr) if i.equation.primitive.name == "conv_general_dilated"]
    assert flops == [cost(grouped, IMAGES, kernels).flops] * 3


def test_bytes_by_hand():
    n = X.size * 4
    assert cost(lambda x: x + 1, X).bytes == 2 * n
    assert cost(lambda x: x * x + x, X).bytes == 2 * n + 3 * n
    assert cost(lambda x: x.reshape(-1).reshape(X.shape), X).bytes == 0
    assert cost(lambda x: x.T, X).bytes == 2 * n
    assert cost(lambda x: x[:2], X).bytes == 2 * (2 * 32 * 4)
    assert cost(lambda x: x + 1, X).least_bytes == 2 * n
    assert cost(lambda x: x, X).least_bytes == n  # one variable, at both ends
    assert cost(lambda x: x.astype(jnp.bfloat16), X).bytes == n + n // 2
    updated = cost(lambda x: lax.dynamic_update_slice(x, jnp.ones((2, 3)), (0, 0)), X)
    assert updated.bytes < 100


def body(c, _):
    return jnp.tanh(c @ SQUARE), None


LOOPS = {
    "scan": (lambda x: lax.scan(body, x, None, length=10)[0], 10),
    "fori_loop": (lambda x: lax.fori_loop(0, 7, lambda i, c: body(c, i)[0], x), 7),
    "scan in scan": (lambda x: lax.scan(lambda c, _: (lax.scan(body, c, None, length=3)[0], None), x, None, length=4)[0], 12),
    "scan in jit in scan": (lambda x: lax.scan(lambda c, _: (jax.jit(lambda c: lax.scan(body, c, None, length=3)[0])(c), None), x, None, length=2)[0], 6),
    "no round": (lambda x: lax.scan(body, x, None, length=0)[0], 0),
    "checkpoint": (lambda x: jax.checkpoint(lambda c: body(c, 0)[0])(x), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_a_body_counts_as_often_as_it_runs(name):
    fun, rounds = LOOPS[name]
    mine, once = cost(fun, SQUARE), cost(lambda c: body(c, 0)[0], SQUARE)
    assert (mine.flops, mine.transcendentals) == (rounds * once.flops, rounds * once.transcendentals)


def test_xla_counts_a_body_once():
    assert xla(LOOPS["scan"][0], SQUARE)[0] < 2 * xla(lambda c: body(c, 0)[0], SQUARE)[0]


def test_of_a_branch_the_dearest_counts():
    def fun(x):
        return lax.cond(x[0, 0] > 0, lambda x: x + 1, lambda x: x @ SQUARE, x)

    assert cost(fun, SQUARE).flops == cost(jnp.dot, SQUARE, SQUARE).flops + 1


def test_what_is_not_known_is_named():
    loop = cost(lambda x: lax.while_loop(lambda x: x[0, 0] < 9, lambda x: x + 1, x), SQUARE)
    assert loop.uncounted == ("while",) and loop.flops == 64 + 1
    assert "while" in str(loop)
    assert set(cost(jnp.linalg.inv, SQUARE).uncounted) >= {"lu", "triangular_solve"}
    assert cost(lambda x: jnp.sort(x), SQUARE).uncounted == ("sort",)


def test_integers_are_not_floating():
    assert cost(lambda x: x * x + 1, jnp.arange(9)).flops == 0
    assert cost(lambda key: jax.random.bits(key, (9,)), jax.random.key(0)).flops == 0
    assert cost(jnp.sin, jnp.ones(())).transcendentals == 1


def test_the_work_of_all_devices():
    mesh = jax.make_mesh((2,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.P("data")
    mapped = jax.shard_map(lambda x: jnp.sin(x), mesh=mesh, in_specs=spec, out_specs=spec)
    assert cost(mapped, jnp.ones((4, 3))).transcendentals == 12


def test_axes_that_are_not_mapped_over_do_not_multiply_the_work():
    mesh = jax.make_mesh((1, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    spec = jax.P("data")
    mapped = jax.shard_map(jnp.sin, mesh=mesh, in_specs=spec, out_specs=spec, axis_names={"data"})
    assert cost(mapped, jnp.ones((4, 3))).transcendentals == 12


def test_of_a_linear_solve_the_solver_counts():
    def half(function):
        return lambda product, b: function(b) / 2

    def solved(b, *transposed):
        return lax.custom_linear_solve(lambda v: 2 * v, b, half(jnp.sin), *transposed)

    assert cost(solved, X).transcendentals == X.size
    assert cost(lambda b: solved(b, half(jnp.cos)), X).transcendentals == X.size


def test_a_jaxpr_or_a_function():
    jaxpr = jax.make_jaxpr(jnp.dot)(X, W)
    assert cost_of(jaxpr) == cost_of(jaxpr.jaxpr) == cost(jnp.dot, X, W)
    assert cost(jnp.dot, jax.ShapeDtypeStruct(X.shape, X.dtype), W) == cost(jnp.dot, X, W)


def test_what_no_result_needs_does_not_count():
    def wasteful(x):
        jnp.exp(jnp.sin(x))
        return x * 2

    assert cost(wasteful, X) == cost(lambda x: x * 2, X)
    printed = cost(lambda x: jax.debug.print("{x}", x=jnp.sin(x)), X)
    assert printed.transcendentals == X.size


def test_custom_rules_are_entered():
    @jax.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (2 * x, None), lambda _, g: (2 * g,))
    assert cost(double, X).flops == X.size
    assert cost(jax.grad(lambda x: double(x).sum()), X).flops == X.size
