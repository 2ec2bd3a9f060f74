"""Answers to the exercise derivative_rules.fixed_point."""

import jax
import jax.numpy as jnp
from jax import lax

from mlax_tutorial.exercises.derivative_rules.fixed_point import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def settled(step, x, rounds=1000, absolute=False):
    def body(state):
        x, before, count = state
        return step(x), x, count + 1

    def going(state):
        size = 1.0 if absolute else jnp.max(jnp.abs(state[0]))
        return (jnp.max(jnp.abs(state[0] - state[1])) > 1e-6 * size) & (state[2] < rounds)

    return lax.while_loop(going, body, (step(x), x, 1))[0]


@answers.wrong("Reverse-mode differentiation does not work")
def plain(f, a, x):
    return settled(lambda x: f(a, x), x)


@answers.wrong("holds `scan`")
def scan(f, a, x):
    return lax.scan(lambda x, _: (f(a, x), None), x, length=1000)[0]


def with_backward(backward):
    def fixed_point(f, a, x):
        solve = jax.custom_vjp(lambda a, x: settled(lambda x: f(a, x), x))

        def forward(a, x):
            solution = solve(a, x)
            return solution, (a, x, solution)

        solve.defvjp(forward, lambda kept, c: backward(f, *kept, c))
        return solve(a, x)

    return fixed_point


def one_round(f, a, x, solution, c):
    return jax.vjp(f, a, solution)[1](c)[0], jnp.zeros_like(x)


fixed_point_one_round = with_backward(one_round)


answers.wrong("the gradient of one round alone")(fixed_point_one_round)


def one_step_of_u(f, a, x, solution, c):
    pullback = jax.vjp(f, a, solution)[1]
    return pullback(c + pullback(c)[1])[0], jnp.zeros_like(x)


one_step = with_backward(one_step_of_u)


answers.wrong("Only one step towards")(one_step)


def solved(f, a, at, c, sign=1.0):
    pullback = jax.vjp(f, a, at)[1]
    return pullback(settled(lambda u: c + sign * pullback(u)[1], c))


minus = with_backward(lambda f, a, x, s, c: (solved(f, a, s, c, -1.0)[0], jnp.zeros_like(x)))


answers.wrong("The sign is wrong")(minus)


forwards = with_backward(
    lambda f, a, x, s, c: (
        jax.vjp(f, a, s)[1](settled(lambda u: c + jax.jvp(lambda x: f(a, x), (s,), (u,))[1], c))[0],
        jnp.zeros_like(x),
    )
)


answers.wrong("The matrix is not transposed")(forwards)


at_guess = with_backward(
    lambda f, a, x, s, c: (
        jax.vjp(lambda a: f(a, x), a)[1](settled(lambda u: c + jax.vjp(f, a, x)[1](u)[1], c))[0],
        jnp.zeros_like(x),
    )
)


answers.wrong("at the first guess")(at_guess)


guess_slope = with_backward(lambda f, a, x, s, c: solved(f, a, s, c))


answers.wrong("The first guess has a gradient")(guess_slope)


absolute = with_backward(
    lambda f, a, x, s, c: (
        jax.vjp(f, a, s)[1](settled(lambda u: c + jax.vjp(f, a, s)[1](u)[1], c, absolute=True))[0],
        jnp.zeros_like(x),
    )
)


answers.wrong("Compare with the largest entry")(absolute)


def five_rounds_of_u(f, a, x, solution, c):
    pullback, u = jax.vjp(f, a, solution)[1], c
    for _ in range(5):
        u = c + pullback(u)[1]
    return pullback(u)[0], jnp.zeros_like(x)


five_rounds = with_backward(five_rounds_of_u)


answers.wrong("long before $u$ has settled")(five_rounds)


out_of_order = with_backward(lambda f, a, x, s, c: solved(f, a, s, c)[::-1])


answers.wrong("The cotangents are in the wrong order")(out_of_order)


@answers.wrong("it is `f(a, x)`")
def called_out_of_order(f, a, x):
    return settled(lambda x: f(x, a), x)


pulled_out_of_order = with_backward(lambda f, a, x, s, c: (jax.vjp(f, s, a)[1](c)[1], jnp.zeros_like(x)))


answers.wrong("it is `f(a, x)`")(pulled_out_of_order)


first_of_the_pair = with_backward(
    lambda f, a, x, s, c: (settled(lambda u: c + jax.vjp(f, a, s)[1](u)[0], c), jnp.zeros_like(x))
)


answers.wrong("returns two cotangents")(first_of_the_pair)


@answers.wrong("It is JAX that calls the two passes")
def without_the_function(f, a, x):
    solve = jax.custom_vjp(lambda f, a, x: settled(lambda x: f(a, x), x), nondiff_argnums=(0,))
    solve.defvjp(lambda f, a, x: (solve(f, a, x), (a, x)), lambda kept, c: kept)
    return solve(f, a, x)


@answers.right
def by_nondiff_argnums(f, a, x):
    solve = jax.custom_vjp(lambda f, a, x: settled(lambda x: f(a, x), x), nondiff_argnums=(0,))

    def forward(f, a, x):
        solution = solve(f, a, x)
        return solution, (a, solution)

    solve.defvjp(forward, lambda f, kept, c: (solved(f, *kept, c)[0], None))
    return solve(f, a, x)


one_cotangent = with_backward(lambda f, a, x, s, c: solved(f, a, s, c)[:1])


answers.wrong("A cotangent is missing")(one_cotangent)


@answers.wrong("Nothing goes back to")
def stopped(f, a, x):
    return settled(lambda x: f(lax.stop_gradient(a), x), lax.stop_gradient(x))


@answers.wrong("takes an array from outside")
def closes_over(f, a, x):
    solve = jax.custom_vjp(lambda x: settled(lambda x: f(a, x), x))
    solve.defvjp(lambda x: (solve(x), None), lambda kept, c: (jnp.zeros_like(c),))
    return solve(x)


@answers.wrong("some hundred rounds")
def few(f, a, x):
    solve = jax.custom_vjp(lambda a, x: settled(lambda x: f(a, x), x, 100))
    solve.defvjp(
        lambda a, x: (solve(a, x), (a, solve(a, x))),
        lambda kept, c: (solved(f, *kept, c)[0], jnp.zeros_like(kept[1])),
    )
    return solve(a, x)


@answers.wrong("limit of iterations")
def endless(f, a, x):
    solve = jax.custom_vjp(lambda a, x: settled(lambda x: f(a, x), x, 10**9))
    solve.defvjp(
        lambda a, x: (solve(a, x), (a, solve(a, x))),
        lambda kept, c: (solved(f, *kept, c)[0], jnp.zeros_like(kept[1])),
    )
    return solve(a, x)


# Right ones of unusual style, and wrong ones that look right


@answers.wrong("needs no matrix")
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


@answers.right
def one_round_more(f, a, x):
    """The loop on constants, then one round whose pullback is mended: the well-known trick."""
    constant = lax.stop_gradient(a)

    def settle(step, start):
        state = step(start), start, 1
        moved = lambda s: jnp.abs(s[0] - s[1]) > 1e-6 * jnp.max(jnp.abs(s[0]))  # noqa: E731
        going = lambda s: jnp.any(moved(s)) & (s[2] < 1000)  # noqa: E731
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


@answers.wrong("needs no matrix")
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


@answers.wrong()
def last_round_only(f, a, x):
    constant, x = lax.stop_gradient(a), lax.stop_gradient(x)
    state = f(constant, x), x, 1
    solution = lax.while_loop(
        lambda s: (jnp.max(jnp.abs(s[0] - s[1])) > 1e-6) & (s[2] < 1000),
        lambda s: (f(constant, s[0]), s[0], s[2] + 1),
        state,
    )[0]
    return f(a, lax.stop_gradient(solution))


def with_loop(**settings):
    def fixed_point(f, a, x):
        solve = jax.custom_vjp(lambda a, x: another_loop(lambda x: f(a, x), x, **settings))
        solve.defvjp(
            lambda a, x: (solve(a, x), (a, solve(a, x))),
            lambda kept, c: (solved(f, *kept, c)[0], jnp.zeros_like(kept[1])),
        )
        return solve(a, x)

    return fixed_point


def another_loop(step, x, rounds=1000, tolerance=1e-6, moved=jnp.subtract, size=jnp.abs):
    def going(state):
        x, before, count = state
        return (jnp.max(jnp.abs(moved(x, before))) > tolerance * jnp.max(size(x))) & (count < rounds)

    return lax.while_loop(going, lambda state: (step(state[0]), state[0], state[2] + 1), (step(x), x, 1))[0]


answers.right(with_loop())
answers.wrong("Nothing settles here")(with_loop(rounds=500))
answers.wrong("Nothing settles here")(with_loop(rounds=2000))
answers.wrong("so the loop should end")(with_loop(moved=jnp.add))
answers.wrong("so the loop should end")(with_loop(tolerance=0.0))
answers.wrong("so the loop should end")(with_loop(size=lambda x: x))
answers.wrong("All move by more than the tolerance")(with_loop(tolerance=2e-6))
answers.wrong("The largest entry is 1000")(with_loop(size=jnp.ones_like))

answers.equivalent(
    "lax.while_loop(going, body, (step(x), x, 1))[0] -> lax.while_loop(going, body, (step(x), x, 1))[1]",
    because="the last two differ by less than the tolerance",
)
answers.equivalent(
    "moved > 1e-06 * jnp.max(jnp.abs(x)) -> moved >= 1e-06 * jnp.max(jnp.abs(x))",
    because="both are equal where all is zero, and there further rounds change nothing",
)
answers.equivalent(
    "rounds < 1000 -> rounds <= 1000",
    "rounds < 1000 -> rounds < 999",
    "rounds < 1000 -> rounds < 1001",
    "(step(x), x, 1) -> (step(x), x, 0)",
    "(step(x), x, 1) -> (step(x), x, 2)",
    because="a right answer may take a last round of its own, so one more or fewer than 1000 is not asked about",
)
