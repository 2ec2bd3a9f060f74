"""Walking and interpreting: on programs of every kind, the interpreter without rules changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.inspection import jaxprs

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


def halve(bind, x, **params):
    return bind(x, **params) / 2


@pytest.mark.parametrize("own", [own_jvp, own_vjp, jax.checkpoint(own_jvp), jax.jit(own_vjp)])
def test_gradients_with_rules_of_their_own(own):
    def fun(x):
        return own(x) * 3.0

    right = 30 * jnp.exp(0.5)
    before = {  # interpreted after differentiation
        "nothing": jaxprs.interpret(jax.grad(fun), {}),
        "jit": jax.jit(jaxprs.interpret(jax.grad(fun), {})),
        "sin": jaxprs.interpret(jax.grad(fun), {"sin": halve}),
    }
    after = {  # differentiated after interpretation: the rule of the function's own holds
        "nothing": jax.grad(jaxprs.interpret(fun, {})),
        "jit": jax.jit(jax.grad(jaxprs.interpret(fun, {}))),
        "sin": jax.grad(jaxprs.interpret(fun, {"sin": halve})),
    }
    for name, gradient in {**before, **after}.items():
        np.testing.assert_allclose(gradient(0.5), right, rtol=1e-6, err_msg=name)
    rules = {"exp": halve}
    np.testing.assert_allclose(jaxprs.interpret(jax.grad(fun), rules)(0.5), right / 2, rtol=1e-6)
    np.testing.assert_allclose(jax.grad(jaxprs.interpret(fun, rules))(0.5), right / 2, rtol=1e-6)
    np.testing.assert_allclose(
        jax.vmap(jax.grad(jaxprs.interpret(fun, rules)))(X), 15 * jnp.exp(X), rtol=1e-6
    )


def test_a_gradient_goes_through_the_rules():
    fun = jaxprs.interpret(lambda x: jnp.exp(x), {"exp": lambda bind, x, **params: bind(x * x, **params)})
    np.testing.assert_allclose(jax.grad(fun)(1.5), 3 * jnp.exp(1.5**2), rtol=1e-6)


def test_integers_and_keys_go_through_rules_of_their_own():
    @jax.custom_jvp
    def scale(x, n):
        return jnp.exp(x) * n, n

    scale.defjvp(lambda primals, tangents: (scale(*primals), (5.0 * tangents[0], tangents[1])))

    @jax.custom_vjp
    def noise(x, key, n):
        return jnp.exp(x) * jax.random.normal(key) + n

    noise.defvjp(
        lambda x, key, n: (noise(x, key, n), key), lambda key, t: (t * jax.random.normal(key), None, None)
    )
    rules = {"exp": halve}
    assert jax.grad(jaxprs.interpret(lambda x: scale(x, 2)[0], rules))(1.0) == 5
    key = jax.random.key(0)
    gradient = jax.grad(jaxprs.interpret(noise, rules))(1.0, key, 3)
    assert gradient == jax.grad(noise)(1.0, key, 3) != 0


@pytest.mark.parametrize("wrapped", [lambda f: f, jax.jit, jax.vmap], ids=["plain", "jit", "vmap"])
def test_a_jaxpr_out_of_reach_is_told(wrapped):
    reached = []

    def rule(bind, x, **params):
        reached.append(x)
        return bind(x, **params)

    def root(x):
        return jax.lax.custom_root(lambda y: y - x, x, lambda f, y: jnp.sin(y), lambda g, y: y / g(1.0))

    fun = wrapped(root)
    equations = jax.make_jaxpr(root)(0.5).eqns
    if equations[0].primitive.name.startswith("custom_jvp"):  # before JAX 0.12
        jaxprs.interpret(fun, {"sin": rule})(X if wrapped is jax.vmap else 0.5)
        assert reached
        return
    with pytest.raises(NotImplementedError, match="out of reach"):
        jaxprs.interpret(fun, {"sin": rule})(X if wrapped is jax.vmap else 0.5)
    with pytest.raises(NotImplementedError, match="out of reach"):
        jaxprs.interpret(jax.grad(lambda x: fun(x).sum()), {"sin": rule})(X if wrapped is jax.vmap else 0.5)
    jaxprs.interpret(fun, {"dot_general": rule})(X if wrapped is jax.vmap else 0.5)  # nothing to be replaced
    assert not reached


def test_keywords_and_trees():
    def fun(batch, *, scale):
        return {"y": jnp.exp(batch["x"]) * scale["by"], "same": batch}

    batch, scale = {"x": X, "none": None}, {"by": 2.0}
    got = jaxprs.interpret(fun, {"exp": halve})(batch, scale=scale)
    assert jax.tree.structure(got) == jax.tree.structure(fun(batch, scale=scale))
    np.testing.assert_allclose(got["y"], jnp.exp(X), rtol=1e-6)


def test_closed_over_tracers():
    def outer(x):
        return jaxprs.interpret(lambda y: jnp.exp(y) * x, {"exp": halve})(x)

    np.testing.assert_allclose(jax.jit(outer)(2.0), jnp.exp(2.0), rtol=1e-6)
    np.testing.assert_allclose(jax.grad(outer)(2.0), 1.5 * jnp.exp(2.0), rtol=1e-6)


def test_a_rule_with_an_array_of_its_own_inside_checkpoint():
    table = np.float32([1, 2, 3])
    rules = {"exp": lambda bind, x, **params: bind(x, **params) * jnp.asarray(table)}
    fun = jax.checkpoint(lambda x: jnp.exp(jnp.sin(x)))
    np.testing.assert_allclose(jaxprs.interpret(fun, rules)(X), fun(X) * table, rtol=1e-6)
    got = jaxprs.interpret(jax.grad(lambda x: fun(x).sum()), rules)(X)
    assert got.shape == (3,) and jnp.isfinite(got).all()


def test_a_rule_that_changes_the_dtype_is_told():
    with pytest.raises(TypeError, match="the rule for exp must return .*float32.*float16"):
        jaxprs.interpret(jnp.exp, {"exp": lambda bind, x, **params: bind(x, **params).astype("float16")})(X)


def test_a_rule_for_an_equation_with_jaxprs_gets_them_interpreted():
    lengths = []

    def scan(bind, *inputs, length, jaxpr, **params):
        lengths.append((length, [equation.primitive.name for _, equation in jaxprs.walk(jaxpr)]))
        return bind(*inputs, length=length, jaxpr=jaxpr, **params)

    rules = {"scan": scan, "exp": lambda bind, x, **params: jax.lax.sin(x)}
    jaxprs.interpret(scan_carry, rules)(X)
    ((length, names),) = lengths
    assert length == 3 and "sin" in names and "exp" not in names


@pytest.mark.parametrize("guard", ["jax_debug_key_reuse", "jax_check_tracer_leaks"])
@pytest.mark.parametrize(
    "name", ["random", "own vjp", "own jvp", "scan", "while", "grad of checkpoint", "vmap of while"]
)
def test_under_the_guards(name, guard):
    setting = {"jax_debug_key_reuse": jax.debug_key_reuse, "jax_check_tracer_leaks": jax.checking_leaks}[
        guard
    ]
    with setting(True) if guard == "jax_debug_key_reuse" else setting():
        fun = jaxprs.interpret(PROGRAMS[name], {"exp": halve})
        jax.block_until_ready((fun(X), jax.jit(fun)(X)))


def test_a_reused_key_is_still_caught():
    def fun(key):
        return jnp.exp(jax.random.normal(key)) + jax.random.normal(key)

    with jax.debug_key_reuse(True), pytest.raises(jax.errors.KeyReuseError):
        jax.jit(jaxprs.interpret(fun, {"exp": halve}))(jax.random.key(0))


def test_walk_gives_the_path():
    fun = jax.jit(lambda x: jax.lax.switch(1, [jax.jit(jnp.sin), jnp.cos, scan_carry_of], x))
    paths = {e.primitive.name: path for path, e in jaxprs.walk(jax.make_jaxpr(fun)(X))}
    assert paths["cos"] == ("jit[<lambda>].jaxpr", "cond.branches[1]")
    assert paths["sin"] == ("jit[<lambda>].jaxpr", "cond.branches[0]", "jit[sin].jaxpr")
    assert paths["exp"] == ("jit[<lambda>].jaxpr", "cond.branches[2]", "scan.jaxpr")


def scan_carry_of(x):
    return jax.lax.scan(lambda carry, x: (carry, jnp.exp(x)), 1.0, x)[1]


def test_count_counts_bodies_once_and_needs_no_arrays():
    shape = jax.ShapeDtypeStruct((10,), jnp.float32)
    counted = jaxprs.count(lambda x, *, y: scan_carry_of(x) + jnp.exp(y), shape, y=1.0)
    assert counted["exp"] == 2 and counted["scan"] == 1
