"""The gradient of a fixed point."""

import re
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under
from mlax_tutorial.inspection import jaxprs


def fixed_point(f, a, x):
    def settle(step, x):
        def going(state):
            x, before, rounds = state
            moved = jnp.max(jnp.abs(x - before))
            return (moved > 1e-6 * jnp.max(jnp.abs(x))) & (rounds < 1000)

        def body(state):
            x, before, rounds = state
            return step(x), x, rounds + 1

        return lax.while_loop(going, body, (step(x), x, 1))[0]

    @jax.custom_vjp
    def solve(a, x):
        return settle(lambda x: f(a, x), x)

    def forward(a, x):
        solution = solve(a, x)
        return solution, (a, solution)

    def backward(residuals, c):
        a, solution = residuals
        _, pullback = jax.vjp(f, a, solution)
        u = settle(lambda u: c + pullback(u)[1], c)
        return pullback(u)[0], jnp.zeros_like(solution)

    solve.defvjp(forward, backward)
    return solve(a, x)


@jax.jit
def _linear(a, x):
    if not isinstance(a, dict):
        raise Failed(
            "`f` is called with its arguments in the wrong order: it is `f(a, x)`, the parameters first. So are the two "
            "cotangents that the pullback of `f` returns."
        )
    return a["matrix"] @ x + a["offset"]


@jax.jit
def _curved(a, x):
    return jnp.tanh(a * jnp.roll(x, 1) + 0.5)


class Line(NamedTuple):
    slope: jax.Array
    offset: jax.Array


_EXPLAINED = (
    (
        "UnexpectedTracerError",
        "The function that has the rule takes an array from outside, and it is differentiated: `a` and `x` have to be "
        "arguments of that function.",
    ),
    (
        r"bwd output structure PyTreeDef\(\(\*, \{",
        "The cotangents are in the wrong order: the backward pass returns one for each argument of the function that "
        "has the rule, in the order of its arguments.",
    ),
    (
        "must produce a tuple of length equal",
        "A cotangent is missing: the first guess is an argument, too, and gets zeros, or None.",
    ),
    (
        "positional argument",
        "It is JAX that calls the two passes: the forward pass with the arguments of the function, the backward pass with "
        "`(residuals, cotangent)`. Arguments in `nondiff_argnums` come first in the backward pass.",
    ),
    (
        "'dict'|unsupported operand",
        "A pullback of `f` returns two cotangents, that of `a` and that of `x`, in this order. The loop for $u$ needs the second.",
    ),
)


def check(fixed_point):
    # Not symmetric, so that a transposition that is missing shows.
    a = {"matrix": np.float32([[0.3, 0.4], [-0.1, 0.2]]), "offset": np.float32([1, -2])}
    system = np.eye(2) - a["matrix"].astype(np.float64)
    solution = np.float32(np.linalg.solve(system, a["offset"]))
    a, solution, start, c = jax.device_put((a, solution, np.float32([0.5, 0.5]), np.float32([1, 3])))
    shown = {"input": "f(a, x) = a['matrix'] @ x + a['offset'], which has one fixed point"}
    got = fixed_point(_linear, a, start)
    if isinstance(got, (tuple, list)):
        raise Failed("Only the last `x` is asked for.", got=got, **shown)
    checks.same(got, solution, rtol=1e-4, atol=1e-5, **shown)

    def gradient(f, a, start, c):
        """Those of `c @ x` in `a` and in the first guess, and the fixed point `x` itself."""

        def product(a, x):
            x = fixed_point(f, a, x)
            return jnp.vdot(c, x), x

        def known(failure):
            return next((said for sign, said in _EXPLAINED if re.search(sign, failure.message)), "")

        with checks.says(known), under("`jax.grad`"):
            return *(found := jax.grad(product, (0, 1), has_aux=True)(a, start))[0], found[1]

    slopes, by_start, _ = gradient(_linear, a, start, c)
    u = np.linalg.solve(system.T, c)

    def from_u(u, x=solution):
        return {"matrix": np.float32(np.outer(u, x)), "offset": np.float32(u)}

    forwards = np.linalg.solve(system, c)
    minus = np.linalg.solve(2 * np.eye(2) - system.T, c)
    wrong = [
        (from_u(c), "This is the gradient of one round alone, $u = c$: the equation for $u$ is not solved."),
        (
            from_u(c + np.asarray(a["matrix"]).T @ np.asarray(c)),
            "Only one step towards $u$ was taken: it is a fixed point, too.",
        ),
        (from_u(forwards), "The matrix is not transposed: `jax.vjp` goes backwards, `jax.jvp` forwards."),
        (from_u(minus), "The sign is wrong: $u$ is the cotangent *plus* what comes back through `x`."),
        (from_u(u, start), "The derivatives are those at the first guess: take them at the solution."),
        (jax.tree.map(np.zeros_like, a), "Nothing goes back to `a`."),
    ]
    checks.same(
        slopes,
        from_u(u),
        recognise=wrong,
        rtol=1e-3,
        atol=1e-4,
        input="the gradient of c @ fixed_point(f, a, x) in `a`",
    )
    if not checks.agrees(by_start, np.zeros(2, np.float32)):
        raise Failed(
            "The first guess has a gradient. Wherever the loop starts, it comes to the same solution: the gradient is 0.",
            expected=np.zeros(2, np.float32),
            got=by_start,
        )
    # At the solution already: a loop that is differentiated round by round would know one round only.
    slopes, _, _ = gradient(_linear, a, solution, c)
    checks.same(
        slopes, from_u(u), rtol=1e-3, atol=1e-4, input="the first guess is the solution: the gradient in `a`"
    )

    x, weight, c = jax.device_put((np.float32([0.1, 0.2, 0.3]), np.float32(0.6), np.float32([1, -2, 0.5])))
    solution = x
    for _ in range(200):
        solution = _curved(weight, solution)
    slope, _, found = gradient(_curved, weight, x, c)
    checks.same(found, solution, input="f(a, x) = tanh(a * roll(x, 1) + 0.5)", atol=1e-5)
    by_a, by_x = (
        np.asarray(by, np.float64) for by in jax.jit(jax.jacobian(_curved, (0, 1)))(weight, solution)
    )
    expected = jax.device_put(np.float32(np.asarray(c) @ np.linalg.solve(np.eye(3) - by_x, by_a)))
    checks.same(slope, expected, rtol=1e-3, atol=1e-4, input="f(a, x) = tanh(a * roll(x, 1) + 0.5), a = 0.6")

    def both(a, x):
        return jax.value_and_grad(lambda a: jnp.vdot(c, fixed_point(_curved, a, x)))(a)

    if "scan" in jaxprs.count(both, weight, x):
        raise Failed(
            "The jaxpr of your function holds `scan`: a `lax.scan`, or a `fori_loop` of known length, which turns as often as it was "
            "told. A `while_loop` stops when nothing moves any more."
        )
    line, zeros, c_slow = jax.device_put(
        (Line(np.float32(0.97), np.float32(0.03)), np.float32([0, 0]), np.float32([1, 2]))
    )
    slope, _, slow = gradient(jax.jit(lambda a, x: a.slope * x + a.offset), line, zeros, c_slow)
    checks.same(
        slow,
        np.ones(2, np.float32),
        rtol=0,
        atol=1e-4,
        input="f(a, x) = a.slope * x + a.offset, of a named tuple, 0.97 and 0.03, which takes some hundred rounds",
    )
    # 3 x / (1 - slope) and 3 / (1 - slope), at x = 1
    expected_slow = jax.device_put(Line(np.float32(100), np.float32(100)))
    small = "The gradient is too small: the loop for $u$ ends long before $u$ has settled."
    with checks.says(small if float(slope.slope) < 98 else ""):
        checks.same(
            slope,
            expected_slow,
            rtol=1e-2,
            input="f(a, x) = a.slope * x + a.offset, 0.97 and 0.03: the gradient in `a` of x[0] + 2 * x[1]",
        )
    slope, _, _ = gradient(_curved, weight, x, np.float32(1e-6) * np.asarray(c))
    slope = jax.device_put(np.float32(1e6) * np.asarray(slope))
    with checks.says(
        "A cotangent that is a million times smaller does not give a gradient that is a million times smaller: the loop for "
        "$u$ stops as soon as nothing moves by more than 1e-6. Compare with the largest entry of $u$."
    ):
        checks.same(
            slope,
            expected,
            rtol=1e-2,
            input="f(a, x) = tanh(a * roll(x, 1) + 0.5), a = 0.6, a cotangent times 1e-6: the gradient in `a`, times 1e6",
        )
    with under("`jax.jit`"):
        # Not by the jaxpr, which does not show what is inside of a `lax.custom_root`.
        lowered = jax.jit(both).lower(weight, x).as_text()
    if "stablehlo.while" not in lowered:
        raise Failed("Your function has no `while_loop`.")
    with under("`jax.jit`"):
        jitted = jax.jit(both)(weight, x)
    checks.same(jitted[1], expected, where="under `jax.jit`", rtol=1e-3, atol=1e-4)
    size = 30
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(jax.grad(lambda a, x: jnp.sum(fixed_point(_curved, a, x))))(
            weight, np.zeros(size, np.float32)
        )
    made = [
        getattr(out.aval, "shape", ()) for _, equation in jaxprs.walk(program) for out in equation.outvars
    ]
    if any(np.prod(shape, dtype=int) >= size * size for shape in made):
        raise Failed(
            f"For an `x` of {size} numbers the gradient makes a matrix of {size} rows. The gradient is right, and the matrix too "
            "large for a long `x`. The second cotangent of the pullback is the product with `u`, so the loop for $u$ needs no matrix."
        )
    _ends(fixed_point)


def _ends(fixed_point):
    """Each round adds `a`: the result tells how many there were. One more or fewer is not asked about."""
    with under("`jax.jit`"):
        adding = jax.jit(lambda a, start: fixed_point(lambda a, x: a + x, a, start))
    for start, a, most, reason in (
        (-1, 1.0, 1000, "Nothing settles here, so the loop ends after 1000 rounds."),
        (
            -1,
            -1.5e-6,
            1000,
            "All move by more than the tolerance in each round, so the loop ends after 1000 rounds.",
        ),
        (
            -1,
            7e-7,
            1,
            "From the first round on nothing moves by more than 1e-6 times the largest entry, so the loop should end. The "
            "largest is that of the absolute values.",
        ),
        (
            1000,
            5e-4,
            1,
            "The largest entry is 1000, and nothing moves by more than 1e-6 times as much: the loop ends after the first round.",
        ),
    ):
        a, first = np.float32(a), np.float32(start)
        got = np.asarray(adding(a, jax.device_put(np.float32([start, start]))), np.float64)
        rounds = (got[0] - start) / np.float64(first + a - first)
        if not abs(rounds - most) < 3:
            raise Failed(
                f"{reason} Yours takes {rounds:.0f}.",
                input=f"f(a, x) = a + x from x = [{start}, {start}], with a = {a:g}",
                got=jax.device_put(np.float32(got)),
            )


exercise = Exercise(
    title="The gradient of a fixed point",
    stars=3,
    minutes=25,
    why="The gradient of a solution comes from its equation: no rounds are stored, however many were needed.",
    hints=(
        "A function inside, `solve(a, x)`, gets the rule by `jax.custom_vjp`; it may use `f` from outside, but no array that is differentiated.",
        "The forward pass keeps `a` and the solution. The backward pass calls `jax.vjp(f, a, solution)` once.",
        "Its pullback gives two cotangents: the second one is $(\\partial f/\\partial x)^T u$, for the loop over `u`, "
        "the first, at the end, is the result.",
        "Write the loop as a function of a step and a start, and use it for both: `settle(lambda u: c + pullback(u)[1], c)`.",
    ),
    solution=fixed_point,
    check=check,
    differentiable=False,
)
