"""Right answers of unusual style to the exercises of Autodiff pass, and wrong ones that look right do not."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises import autodiff

from .right_answers import FAILED, PASSED, Answers

right, wrong = Answers(PASSED), Answers(FAILED)


# slopes

SLOPES = autodiff.slopes.answer
right(autodiff.slopes)(SLOPES | {"a": 12, "e": "Error", "f": np.float32(0.5), "d": (4, 6)})
right(autodiff.slopes)(SLOPES | {"b": jnp.array(12.0)})
wrong(autodiff.slopes)({name: "error" for name in SLOPES})
wrong(autodiff.slopes)(SLOPES | {"g": True})


# step


@right(autodiff.step)
def a_loss_with_arguments_swapped(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(lambda b, p: loss(p, b), argnums=1, has_aux=True)(
        batch, params
    )
    leaves, structure = jax.tree.flatten(params)
    new = [jnp.asarray(p - rate * g, p.dtype) for p, g in zip(leaves, jax.tree.leaves(slopes))]
    return jax.tree.unflatten(structure, new), value, extras


@right(autodiff.step)
@functools.partial(jax.jit, static_argnums=0)
def by_vjp(loss, params, batch, rate):
    value, pullback, extras = jax.vjp(lambda p: loss(p, batch), params, has_aux=True)
    (slopes,) = pullback(jnp.ones_like(value))
    return [jax.tree.map(lambda p, g: p - jnp.asarray(rate, p.dtype) * g, params, slopes), value, extras]


@wrong(autodiff.step)
def gradient_of_the_batch(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, argnums=0, has_aux=True)(params, batch)
    return jax.tree.map(lambda p, g: p - rate * jnp.sign(g), params, slopes), value, extras


@wrong(autodiff.step)
def only_one_level_deep(loss, params, batch, rate):
    (value, extras), slopes = jax.value_and_grad(loss, has_aux=True)(params, batch)
    return {k: (params[k] - rate * slopes[k]).astype(params[k].dtype) for k in params}, value, extras


# trace


@right(autodiff.trace)
def one_after_the_other(key, f, x, samples):
    def body(total, key):
        v = jnp.where(jax.random.bernoulli(key, 0.5, x.shape), 1.0, -1.0).astype(x.dtype)
        _, times = jax.linearize(jax.grad(f), x)
        return total + jnp.vdot(v, times(v)), None

    return lax.scan(body, 0.0, jax.random.split(key, samples))[0] / samples


@right(autodiff.trace)
def reverse_over_reverse(key, f, x, samples):
    signs = 2.0 * jax.random.randint(key, (samples, len(x)), 0, 2) - 1.0

    def one(v):
        return jnp.dot(v, jax.grad(lambda x: jnp.vdot(jax.grad(f)(x), v))(x))

    return jax.vmap(one)(signs).mean()


@right(autodiff.trace)
def second_derivative_along_a_line(key, f, x, samples):
    def one(key):
        v = jax.random.rademacher(key, x.shape, x.dtype)
        return jax.grad(jax.grad(lambda s: f(x + s * v)))(0.0)

    return jnp.mean(lax.map(one, jax.random.split(key, samples)))


@wrong(autodiff.trace)
def the_diagonal(key, f, x, samples):
    v = jax.random.rademacher(key, x.shape, x.dtype)
    return jnp.trace(jax.hessian(f)(x)) * (v[0] ** 2)


@wrong(autodiff.trace)
def one_sign_for_all(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, 1), x.dtype) * jnp.ones_like(x)
    return jnp.mean(jax.vmap(lambda v: v @ jax.jvp(jax.grad(f), (x,), (v,))[1])(signs))


# softplus


@right(autodiff.softplus)
@jax.custom_jvp
def decorated(x):
    return jnp.where(x > 0, x, 0) + jnp.log1p(jnp.exp(-abs(x)))


@decorated.defjvp
def _decorated_rule(primals, tangents):
    return decorated(*primals), tangents[0] * jax.nn.sigmoid(primals[0])


@jax.custom_jvp
def _by_defjvps(x):
    return jax.nn.relu(x) + jnp.log1p(jnp.exp(-jnp.abs(x)))


_by_defjvps.defjvps(lambda t, value, x: t * jnp.exp(-_by_defjvps(-x)))
right(autodiff.softplus)(jax.jit(_by_defjvps))


@wrong(autodiff.softplus)
def relu_with_a_rule(x):
    function = jax.custom_jvp(lambda x: jnp.maximum(x, 0) + 0.0 * x)
    function.defjvp(lambda p, t: (function(*p), jax.nn.sigmoid(p[0]) * t[0]))
    return function(x)


@wrong(autodiff.softplus)
def rule_without_a_second_derivative(x):
    function = jax.custom_jvp(lambda x: jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))))
    function.defjvp(lambda p, t: (function(*p), lax.stop_gradient(jax.nn.sigmoid(p[0])) * t[0]))
    return function(x)


# clip_slope


@right(autodiff.clip_slope)
@jax.custom_vjp
def decorated_with_none(x, bound):
    return x


def _backward(bound, c):
    squares = jnp.sum(jnp.square(c.astype(jnp.float32)))
    factor = bound * lax.rsqrt(jnp.maximum(squares, jnp.square(bound)))
    return (c * factor).astype(c.dtype), None


decorated_with_none.defvjp(lambda x, bound: (x, bound), _backward)


@right(autodiff.clip_slope)
def by_a_closure(x, bound):
    @jax.custom_vjp
    def same(x, bound):
        return x

    def backward(bound, c):
        norm = jnp.linalg.norm(c.ravel())
        return lax.cond(
            norm > bound, lambda c: (c * (bound / norm)).astype(c.dtype), lambda c: c, c
        ), 0.0 * bound

    same.defvjp(lambda x, bound: (x, bound), backward)
    return same(x, jnp.asarray(bound, jnp.float32))


@right(autodiff.clip_slope)
@jax.custom_vjp
def a_number_for_the_bound(x, bound):
    return x


a_number_for_the_bound.defvjp(
    lambda x, bound: (x, (bound,)),
    lambda kept, c: (c * jnp.minimum(1, kept[0] / jnp.sqrt(jnp.vdot(c, c) + 1e-12)).astype(c.dtype), 0.0),
)


@wrong(autodiff.clip_slope)
def slope_of_the_bound(x, bound):
    same = jax.custom_vjp(lambda x, bound: x)
    same.defvjp(
        lambda x, bound: (x, bound),
        lambda bound, c: (
            (c * jnp.minimum(1.0, bound / jnp.maximum(jnp.linalg.norm(c.ravel()), 1e-9))).astype(c.dtype),
            jnp.ones_like(bound),
        ),
    )
    return same(x, bound)


# fixed_point


@right(autodiff.fixed_point)
def by_a_linear_solver(f, a, x):
    def settle(a, x):
        def body(state):
            new = f(a, state[0])
            return new, jnp.abs(new - state[0]).max(), state[2] + 1

        state = lax.while_loop(lambda s: (s[1] > 1e-6) & (s[2] < 1000), body, (x, jnp.inf, 0))
        return state[0]

    solve = jax.custom_vjp(settle)

    def backward(kept, c):
        a, solution = kept
        by_x = jax.jacobian(f, 1)(a, solution)
        u = jnp.linalg.solve(jnp.eye(len(c)) - by_x.T, c)
        # the loop is asked for in forward only
        return jax.vjp(lambda a: f(a, solution), a)[1](u)[0], None

    solve.defvjp(lambda a, x: (lambda s: (s, (a, s)))(settle(a, x)), backward)
    return solve(a, x)


@right(autodiff.fixed_point)
def one_round_more(f, a, x):
    """The loop on constants, then one round whose pullback is mended: the well-known trick."""
    constant = lax.stop_gradient(a)

    def settle(step, start):
        state = step(start), start, 1
        going = lambda s: jnp.any(jnp.abs(s[0] - s[1]) > 1e-6) & (s[2] < 1000)  # noqa: E731
        return lax.while_loop(going, lambda s: (step(s[0]), s[0], s[2] + 1), state)[0]

    solution = lax.stop_gradient(settle(lambda x: f(constant, x), lax.stop_gradient(x)))

    @jax.custom_vjp
    def mend(value, a, solution):
        return value

    def backward(kept, c):
        a, solution = kept
        pull = jax.vjp(lambda x: f(a, x), solution)[1]
        return settle(lambda u: c + pull(u)[0], c), jax.tree.map(jnp.zeros_like, a), jnp.zeros_like(solution)

    mend.defvjp(lambda value, a, solution: (value, (a, solution)), backward)
    return mend(f(a, solution), constant, solution)


@right(autodiff.fixed_point)
def by_custom_root(f, a, x):
    def solve(_, start):
        def body(state):
            new = f(a, state[0])
            return new, jnp.max(jnp.abs(new - state[0])), state[2] + 1

        going = lambda s: (s[1] > 1e-6) & (s[2] < 1000)  # noqa: E731
        return lax.while_loop(going, body, (start, jnp.float32(jnp.inf), 0))[0]

    return lax.custom_root(
        lambda x: f(a, x) - x,
        lax.stop_gradient(x),
        solve,
        lambda linear, y: jnp.linalg.solve(jax.jacobian(linear)(y), y),
    )


@wrong(autodiff.fixed_point)
def last_round_only(f, a, x):
    constant, x = lax.stop_gradient(a), lax.stop_gradient(x)
    state = f(constant, x), x, 1
    solution = lax.while_loop(
        lambda s: (jnp.max(jnp.abs(s[0] - s[1])) > 1e-6) & (s[2] < 1000),
        lambda s: (f(constant, s[0]), s[0], s[2] + 1),
        state,
    )[0]
    return f(a, lax.stop_gradient(solution))


# pieces


@right(autodiff.pieces)
def python_outside(layer, weights, x):
    @jax.checkpoint
    def piece(some, x):
        return lax.fori_loop(0, len(some), lambda i, x: layer(some[i], x), x)

    for some in weights:
        x = piece(some, x)
    return x


@right(autodiff.pieces)
def python_inside(layer, weights, x):
    def piece(x, some):
        for w in some:
            x = layer(w, x)
        return x, None

    return lax.scan(jax.remat(piece, prevent_cse=False), x, weights)[0]


@right(autodiff.pieces)
@functools.partial(jax.jit, static_argnums=0)
def nothing_saveable(layer, weights, x):
    policy = jax.checkpoint_policies.nothing_saveable

    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), ()), x, some)[0], ()

    x, _ = lax.scan(jax.checkpoint(piece, policy=policy), x, weights)
    return x


@wrong(autodiff.pieces)
def stores_products(layer, weights, x):
    policy = jax.checkpoint_policies.dots_saveable

    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    return lax.scan(jax.checkpoint(piece, policy=policy), x, weights)[0]


@wrong(autodiff.pieces)
def two_large_pieces(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    halves = weights.reshape(2, -1, *weights.shape[2:])
    return lax.scan(jax.checkpoint(piece), x, halves)[0]


test_right_answers_pass, test_wrong_answers_fail = right.test(), wrong.test()
