"""A softplus that never overflows."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.inspection import jaxprs


def solution(x):
    @jax.custom_jvp
    def softplus(x):
        return jnp.maximum(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x)))

    @softplus.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return softplus(x), jax.nn.sigmoid(x) * t

    return softplus(x)


def check(softplus):
    points = np.array([-1000, -90, -80, -60, -45, -30, -12, -1, 0, 1, 12, 20, 90, 1000], np.float32)
    wide = points.astype(np.float64)
    for x, exact in zip(points, np.logaddexp(0.0, wide), strict=True):
        got = softplus(jnp.float32(x))
        said = ""
        if isinstance(got, jax.Array) and not np.all(np.isfinite(got)):
            said = f"The exponential overflows: $e^{{{x:g}}}$ is no float32."
        elif isinstance(got, jax.Array) and got.shape == () and x < -10 and float(got) == 0:
            said = (
                "The small values are lost: 1 plus something small is rounded to 1, and its logarithm is 0. "
                "`jnp.log1p(y)` is log(1 + y) without that sum."
            )
        with checks.says(said):
            checks.same(got, jnp.float32(exact), input={"x": jnp.float32(x)}, rtol=1e-4, atol=1e-37)
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(fresh(softplus))(jnp.float32(1.0))
    rules = [
        (str(equation.params.get("name", "")), _names_inside(equation))
        for _, equation in jaxprs.walk(program)
        if equation.primitive.name in ("custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
    ]
    theirs = jax.make_jaxpr(lambda x: jnp.logaddexp(x, 0.0))(1.0)
    theirs = [_names_inside(e) for _, e in jaxprs.walk(theirs) if e.primitive.name == "custom_jvp_call"]
    if any(inside in theirs for _, inside in rules):
        raise Failed(
            "This is JAX's own function, with JAX's own rule. Write the value and the rule yourself."
        )
    if not {name for name, _ in rules} - {"relu"}:
        raise Failed("Your function has no rule of its own: put `@jax.custom_jvp` above it, and give it one.")
    for x in points:
        _check_slopes(softplus, jnp.float32(x))
    with under("`jax.jvp`"):
        _, forward = jax.jvp(fresh(softplus), (jnp.float32(1.0),), (jnp.float32(3.0),))
    checks.same(forward, jnp.float32(3 / (1 + np.exp(-1))), where="in forward mode, for a tangent of 3")
    with under("`jax.jvp` of `jax.jvp`"):
        _, twice = jax.jvp(
            lambda x: jax.jvp(fresh(softplus), (x,), (jnp.float32(1),))[1],
            (jnp.float32(1.0),),
            (jnp.float32(1.0),),
        )
    slope = 1 / (1 + np.exp(-1))
    checks.same(
        twice, jnp.float32(slope * (1 - slope)), where="in the second derivative, in forward mode twice"
    )
    matrix = jax.device_put(np.array([[1, -2, 30], [0, 100, -100]], np.float32))
    right = jax.jit(lambda x: jnp.logaddexp(x, 0.0))
    checks.same(softplus(matrix), right(matrix), input={"x": matrix}, rtol=1e-4)
    jitted = jax.jit(fresh(softplus))
    checks.returns(jitted, jax.device_put(np.ones(3, jnp.bfloat16)), shape=(3,), dtype=jnp.bfloat16)
    near = jax.device_put(np.array([[-3, 0.5, 2], [0.25, -1, 1]], np.float32))
    checks.gradients(jitted, right, near)
    checks.works_under_vmap(jitted, matrix)


def _names_inside(equation):
    return [e.primitive.name for _, jaxpr in jaxprs.subjaxprs(equation) for _, e in jaxprs.walk(jaxpr)]


def _check_slopes(softplus, x):
    wide = np.float64(x)
    first = 1 / (1 + np.exp(-wide)) if wide > -700 else 0.0
    with under("`jax.value_and_grad`"):
        value, _ = jax.value_and_grad(fresh(softplus))(x)
    with checks.says(
        "Under differentiation the value is the one that the *rule* returns, and there it is wrong."
    ):
        exact = np.float32(np.logaddexp(0.0, wide))
        checks.same(value, exact, input={"x": x}, rtol=1e-4, atol=1e-37)
    for order, exact in ((1, first), (2, first * (1 - first))):
        slope = fresh(softplus)
        for _ in range(order):
            slope = jax.grad(slope)
        with under("`jax.grad`" if order == 1 else "`jax.grad` of `jax.grad`"):
            got = slope(x)
        if not np.isclose(got, exact, rtol=1e-3, atol=1e-37 if order == 1 else 1e-6):
            what = "first derivative" if order == 1 else "second derivative"
            hint = ""
            if order == 1 and got == 0 and jax.grad(fresh(softplus))(jnp.float32(1.0)) == 0:
                raise Failed(
                    "The gradient is 0 everywhere: a rule that does not multiply by the tangent says that nothing depends on `x`.",
                    input={"x": x},
                    expected=jnp.float32(exact),
                    got=got,
                )
            if order == 1 and np.isclose(got, 1.0) and x < 0:
                hint = " Does the rule multiply by the tangent, and with the derivative at `x`?"
            raise Failed(
                f"The {what} is {'wrong' if np.isfinite(got) else 'not finite'}: {got:.3g} instead of {exact:.3g}.{hint}",
                input={"x": x},
                expected=jnp.float32(exact),
                got=got,
            )


exercise = Exercise(
    title="A softplus that never overflows",
    stars=2,
    minutes=15,
    why="A rule of your own says what the derivative is where the formula for the value overflows.",
    hints=(
        "The exponential of a number that is never positive cannot overflow.",
        "`jnp.log1p(y)` is log(1 + y), exact for small y, where 1 + y is rounded to 1.",
        "The rule gets `(x,)` and `(t,)`, and returns `softplus(x), jax.nn.sigmoid(x) * t`.",
    ),
    solution=solution,
    check=check,
)
