"""Clip a gradient where it passes."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.inspection import jaxprs


def solution(x, bound):
    @jax.custom_vjp
    def same(x, bound):
        return x

    def forward(x, bound):
        return x, bound

    def backward(bound, c):
        largest = jnp.max(jnp.abs(c))
        unit = c / jnp.where(largest > 0, largest, 1)  # no entry above 1: its square is finite
        norm = jnp.sqrt(jnp.sum(unit * unit))
        # Of zeros the norm is 0, and bound / norm infinite: `largest`, which is 0, is the smaller one.
        clipped = unit * jnp.minimum(largest, bound / norm)
        return clipped.astype(c.dtype), jnp.zeros_like(bound)

    same.defvjp(forward, backward)
    return same(x, bound)


def check(clip_slope):
    x = jax.device_put(np.float32([[3.3, -1], [0.5, 1e5]]))  # no numbers of half precision
    got = clip_slope(x, 1.0)
    with checks.says("On the way forward `x` is returned as it is."):
        checks.same(got, x, input={"x": x, "bound": 1.0}, rtol=0, atol=0)
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(lambda x: fresh(clip_slope)(x, 1.0))(x)
    rules = {equation.primitive.name for _, equation in jaxprs.walk(program)}
    if "custom_jvp_call" in rules and not any("custom_vjp" in name for name in rules):
        raise Failed(
            "A rule of `jax.custom_jvp` goes back transposed, so it has to be linear in the tangent, and clipping is not. Write the "
            "way back itself, with `jax.custom_vjp`."
        )
    with under("`jax.vjp`"):
        value, _ = jax.vjp(lambda x: fresh(clip_slope)(x, 1.0), x)
    with checks.says(
        "Under differentiation the value is what the forward *pass* returns: it should be `x` as well."
    ):
        checks.same(value, x, input={"x": x, "bound": 1.0}, rtol=0, atol=0)
    large = np.float32([[2, 2], [-4, 1]])
    cases = [
        (large, 1.0, large / 5, "a cotangent of norm 5, and bound 1"),
        (large, 2.5, large / 2, "a cotangent of norm 5, and bound 2.5"),
        (large / 10, 1.0, large / 10, "a cotangent of norm 0.5, and bound 1"),
        (0 * large, 1.0, 0 * large, "a cotangent of zero"),
        (0 * large + 0.5, 0.75, 0 * large + 0.375, "a cotangent of norm 1, all entries 0.5, and bound 0.75"),
        (-abs(large), 1.0, -abs(large) / 5, "a cotangent of norm 5, all entries negative, and bound 1"),
    ]
    for c, bound, expected, shown in cases:
        slope = _back_through(clip_slope, x, bound, jax.device_put(c))
        norm = np.linalg.norm(c)
        unclipped = "The cotangent goes through unclipped. Where is your rule used?"
        if np.all(c == 0.5):
            unclipped = "Long ones are clipped, but not this one, although its norm is above the bound, too."
        elif np.all(c < 0):
            unclipped = "Not clipped where all entries are negative: the largest *absolute* value counts."
        wrong = [
            (c, unclipped),
            (
                np.clip(c, -bound, bound),
                "Each entry is clipped by itself: that bends the direction. Scale the whole.",
            ),
            (
                lambda c=c, bound=bound: c * np.minimum(1, bound / np.linalg.norm(c, axis=1, keepdims=True)),
                "Each row is clipped by itself: the norm is over all entries.",
            ),
            (
                lambda c=c, norm=norm, bound=bound: c * bound / norm,
                "A cotangent that is short already is made longer: the factor is at most 1.",
            ),
            (lambda c=c, norm=norm: c / norm, "The bound is missing: the norm becomes `bound`, not 1."),
            (
                lambda c=c, norm=norm, bound=bound: c * np.minimum(1, bound / norm**2),
                "The norm is the root of the sum of squares; here the root is missing.",
            ),
            (np.zeros_like(c), "Nothing goes back."),
        ]
        if not np.all(np.isfinite(slope)):
            raise Failed(
                "The cotangent is not finite: 0 / 0 is NaN, and a `where` round it would not help the factor."
                if not np.any(c)
                else "The cotangent is not finite.",
                input=shown,
                got=slope,
            )
        checks.same(slope, jax.device_put(expected), recognise=wrong, input=shown)
    with under("`jax.grad`"):
        inside = jax.grad(lambda x: jnp.sum(large * clip_slope(3 * x, 1.0)))(x)
    checks.same(
        inside,
        jax.device_put(3 * large / 5),
        input="the gradient of sum(c * clip_slope(3 * x, 1)), |c| = 5: clipped, times 3",
    )
    with checks.says(
        "`nondiff_argnums` is for what is never traced, such as a function. The bound may be: let it be an argument like "
        "any other, and give it a cotangent of 0.",
        about="nondiff_argnums",
    ):
        with under("`jax.grad`"):
            by_bound = jax.grad(lambda bound: jnp.sum(large * clip_slope(x, bound)))(1.0)
    checks.same(
        jnp.asarray(by_bound, jnp.float32), np.float32(0), input="the gradient with respect to `bound`"
    )
    with under("`jax.jit`"):
        jitted = jax.jit(lambda bound: _back_through(clip_slope, x, bound, large))(2.5)
    checks.same(jitted, jax.device_put(large / 2), where="under `jax.jit`, with a traced bound")
    row = np.asarray(x)[0]
    with under("`jax.vmap`"):
        each = jax.jit(jax.vmap(lambda c: _back_through(clip_slope, row, 1.0, c)))(large)
    checks.same(
        each,
        jax.device_put(large / np.linalg.norm(large, axis=1, keepdims=True)),
        where="under `jax.vmap`, for each row by itself",
    )
    huge = jax.device_put(np.float32(1e25) * large)
    slope = _back_through(clip_slope, x, 2.5, huge)
    lost = "The square of a large entry overflows to infinity, and the cotangent is lost. Divide by the largest entry before you square."
    with checks.says(lost):
        checks.same(slope, jax.device_put(large / 2), input="a cotangent of norm 5e25, and bound 2.5")
    half = jax.device_put(np.ones(3, jnp.bfloat16))
    for bound, kind in ((1.0, "a Python number"), (jnp.float32(1), "a float32 array")):
        back = jax.jit(lambda x, bound=bound: _back_through(clip_slope, x, bound, x))
        with checks.says(
            f"It happens where `x` is bfloat16 and the bound {kind}: the cotangent has the dtype of `x`."
        ):
            checks.returns(back, half, shape=(3,), dtype=jnp.bfloat16)


def _back_through(clip_slope, x, bound, c):
    with under("`jax.vjp`"):
        _, pullback = jax.vjp(lambda x: clip_slope(x, bound), x)
        return pullback(c)[0]


exercise = Exercise(
    title="Clip a gradient where it passes",
    stars=2,
    minutes=15,
    why="A backward pass of your own need not be a derivative: here it is a guard in the middle of a network.",
    hints=(
        "Clipping is not linear in the cotangent, and a rule of `custom_jvp` has to be, since it is transposed: it is `jax.custom_vjp`.",
        "Forward keeps the bound, `return x, bound`; backward gets it and the cotangent, and returns a pair.",
        "Divide by the largest entry, made 1 where it is 0; then no square overflows. `bound` gets `jnp.zeros_like`.",
    ),
    solution=solution,
    check=check,
)
