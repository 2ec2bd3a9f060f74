"""Walking and interpreting: on programs of every kind, the interpreter without rules changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import jaxprs

X = jnp.linspace(0.1, 0.9, 3)
MATRIX = jnp.arange(9.0).reshape(3, 3) / 10 + jnp.eye(3)


@jax.custom_jvp
def own_jvp(x):
    return jnp.sin(x)


@own_jvp.defjvp
def _(primals, tangents):
    return own_jvp(*primals), 10.0 * jnp.exp(primals[0]) * tangents[0]  # not the true one, to tell them apart


@jax.custom_vjp
def own_vjp(x):
    return jnp.sin(x)


own_vjp.defvjp(lambda x: (jnp.sin(x), x), lambda x, cotangent: (10.0 * jnp.exp(x) * cotangent,))


def scan_carry(x):
    return jax.lax.scan(lambda carry, x: (carry * jnp.exp(x), carry + x), 1.0, x)


def in_shards(x):
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    return jax.shard_map(
        lambda x: jax.lax.psum(jnp.exp(x), "i"), mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P()
    )(x)


def dictionary(x):
    return {"sum": jnp.exp(x).sum(), "nothing": None, "pair": (x, [jnp.exp(x)]), "constant": 1.0}


def constants(x):
    return jnp.exp(x) + jnp.asarray(np.arange(3.0, dtype=np.float32))


def random_numbers(x):
    first, second = jax.random.split(jax.random.key(0))
    return x * jnp.exp(jax.random.normal(first, (3,))) + jax.random.uniform(second)


# Each takes a vector of three, and applies `exp` somewhere, most of them deep inside.
PROGRAMS = {
    "plain": lambda x: jnp.exp(x) * 2,
    "jit": jax.jit(lambda x: jnp.exp(x) * 2),
    "jit in jit": jax.jit(lambda x: jax.jit(jnp.exp)(x) + jax.jit(jnp.exp)(-x)),
    "donated": lambda x: jax.jit(jnp.exp, donate_argnums=0)(x + 1),
    "static": lambda x: jax.jit(lambda x, n: jnp.exp(x) * n, static_argnums=1)(x, 3),
    "scan": scan_carry,
    "fori": lambda x: jax.lax.fori_loop(0, 3, lambda i, x: jnp.exp(-x) + i, x),
    "while": lambda x: jax.lax.while_loop(lambda x: jnp.exp(x[0]) < 5, lambda x: x + jnp.exp(x), x),
    "cond": lambda x: jax.lax.cond(x[0] > 0, jnp.exp, jnp.cos, x),
    "switch": lambda x: jax.lax.switch(jnp.argmax(x), [jnp.sin, jnp.cos, jnp.exp], x),
    "own jvp": lambda x: own_jvp(jnp.exp(x)),
    "own vjp": lambda x: own_vjp(jnp.exp(x)),
    "relu": lambda x: jax.nn.relu(jnp.exp(x) - 1.5),
    "softmax": lambda x: jax.nn.softmax(x),
    "checkpoint": jax.checkpoint(lambda x: jnp.exp(jnp.sin(x))),
    "checkpoint constants": jax.checkpoint(constants),
    "grad": jax.grad(lambda x: jnp.exp(x * x).sum()),
    "grad of jit": jax.grad(jax.jit(lambda x: jnp.exp(x * x).sum())),
    "grad of scan": jax.grad(lambda x: scan_carry(x)[0]),
    "grad of own jvp": jax.grad(lambda x: own_jvp(x).sum()),
    "grad of own vjp": jax.grad(lambda x: own_vjp(x).sum()),
    "grad of checkpoint": jax.grad(lambda x: jax.checkpoint(lambda x: jnp.exp(jnp.exp(x)))(x).sum()),
    "hessian": jax.hessian(lambda x: jnp.exp(x).prod()),
    "vmap": jax.vmap(lambda x: jnp.exp(x) * 2),
    "vmap of while": jax.vmap(lambda x: jax.lax.while_loop(lambda x: x < 5, lambda x: x + jnp.exp(x), x)),
    "vmap of cond": jax.vmap(lambda x: jax.lax.cond(x > 0.5, jnp.exp, jnp.cos, x)),
    "solve": lambda x: jnp.linalg.solve(MATRIX, jnp.exp(x)),
    "linear solve": lambda x: jax.lax.custom_linear_solve(
        lambda y: jnp.exp(0.0) * y, x, lambda _, x: x / jnp.exp(0.0), symmetric=True
    ),
    "root": lambda x: jax.lax.custom_root(
        lambda y: y**3 - jnp.exp(x),
        x,
        lambda f, y: jnp.exp(x) ** (1 / 3),
        lambda g, y: y / g(jnp.ones_like(y)),
    ),
    "shard_map": in_shards,
    "callback": lambda x: jax.pure_callback(np.sin, x, jnp.exp(x)),
    "platform": lambda x: jax.lax.platform_dependent(x, cpu=jnp.exp, default=jnp.cos),
    "associative_scan": lambda x: jax.lax.associative_scan(jnp.multiply, jnp.exp(x)),
    "cumulative": lambda x: jnp.cumsum(jnp.exp(x)),
    "scatter": lambda x: x.at[jnp.array([0, 1])].add(jnp.exp(x[:2])),
    "sort": lambda x: jnp.sort(jnp.exp(-x)),
    "reduce": lambda x: jax.lax.reduce(jnp.exp(x), np.float32(0), jax.lax.add, (0,)),
    "dtypes": lambda x: jnp.exp(x.astype(jnp.bfloat16)).astype(jnp.float16),
    "random": random_numbers,
    "pytree": dictionary,
    "constants": constants,
    "nothing": lambda x: (),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_without_a_rule_nothing_changes(name):
    fun = PROGRAMS[name]
    wanted = fun(X)
    for got in (jaxprs.interpret(fun, {})(X), jax.jit(jaxprs.interpret(fun, {}))(X)):
        assert jax.tree.structure(got) == jax.tree.structure(wanted)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), got, wanted)
        assert jax.tree.map(jax.typeof, got) == jax.tree.map(jax.typeof, wanted)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in ("nothing", "root")])
def test_a_rule_reaches_every_program(name):
    fun = PROGRAMS[name]
    reached = []

    def rule(bind, x, **params):
        reached.append(x.shape)
        return bind(x * 1.0, **params)

    got = jax.jit(jaxprs.interpret(fun, {"exp": rule}))(X)
    assert reached
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), got, fun(X))


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_equation_that_walk_sees_escapes_the_rule(name):
    fun = PROGRAMS[name]
    if name == "root" or not jaxprs.count(fun, X)["exp"]:
        pytest.skip("jax hides this one's jaxpr in an object of its own")
    # Forms of bind that lie inside a rule's closure are interpreted only where they are evaluated.
    replaced = jaxprs.interpret(fun, {"exp": lambda bind, x, **params: jax.lax.sin(x)})
    assert "exp" not in jaxprs.count(replaced, X)
