"""One trace for every learning rate."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import guard
from mlax_tutorial.inspection import retracing


def solution(step):
    @jax.jit
    def jitted(weights, gradient, rate):
        return step(weights, gradient, rate)

    def steadied(weights, gradient, rate):
        return jitted(weights, gradient, np.float32(rate))

    return steadied


def check(steady):
    seen = []

    def step(weights, gradient, rate):
        seen.append(rate)
        return jax.tree.map(lambda w, g: w - rate * g, weights, gradient)

    weights, gradient = {"a": jnp.ones(3)}, {"a": jnp.arange(3.0)}
    rates = [0.1, 1, np.float32(0.25), np.float64(0.5), jnp.float32(0.75), jnp.asarray(2), 0.1]
    steadied = steady(step)
    checks.returned(steadied)
    if not callable(steadied):
        raise Failed("`steady` returns a function, of `(weights, gradient, rate)`.", got=steadied)
    steadied = guard(steadied, "steady(step)")
    log = []
    for rate in rates:
        known = len(seen)
        got = steadied(weights, gradient, rate)
        if weights["a"].is_deleted() or gradient["a"].is_deleted():
            raise Failed("You donate an argument, and the caller goes on to use it.")
        said = (
            f"{type(rate).__name__} {rate}"
            if not isinstance(rate, jax.Array)
            else f"{rate.dtype} of jax, {rate}"
        )
        log.append(f"{said}: {'traced' if len(seen) > known else 'from the cache'}")
        if len(seen) > known and not isinstance(seen[-1], jax.core.Tracer):
            _rate_is_known(seen[-1], seen, steadied, weights, gradient)
        expected = {"a": weights["a"] - float(rate) * gradient["a"]}
        checks.same(got, expected, input={"rate": rate})
    if log[-1].endswith(": traced"):
        raise Failed(
            f"The second {rates[-1]} was traced, too, although it has the type of the first: call `jax.jit` once, and not at each step.",
            shown=[("calls", "\n".join(log))],
        )
    if len(seen) != 1:
        raise Failed(
            f"The step was traced {len(seen)} times over {len(rates)} calls; it should be once. An integer has another dtype than a float, and "
            "Python's numbers are weak where NumPy's and JAX's are not: make a float32 that is not weak of each rate, before the jitted function "
            "is called.",
            shown=[("calls", "\n".join(log))],
        )
    if jnp.shape(seen[0]) != ():
        raise Failed(
            f"To the step the rate is an array of shape {jnp.shape(seen[0])}; it should be a scalar, of shape ()."
        )
    kind = jax.typeof(seen[0])
    if kind.dtype != jnp.float32 or kind.weak_type:
        raise Failed(
            f"To the step the rate is a {'weak ' * kind.weak_type}{kind.dtype}; it should be a float32 that is not weak."
        )
    with retracing.compilations() as compiled:
        for rate in (0.3, 3, np.float64(0.7)):
            steadied(weights, gradient, rate)
    if compiled:
        raise Failed(
            f"Something is still compiled for a new kind of rate: {', '.join(sorted(set(compiled)))}.",
        )
    half = {"a": jnp.ones(3, jnp.bfloat16)}
    known = len(seen)
    steadied(half, half, 0.1)
    if len(seen) != known + 1:
        raise Failed(
            "Weights of another dtype should be traced once more, and no more.", input="bfloat16 weights"
        )
    checks.same(steadied(half, half, 0.5), step(half, half, jnp.float32(0.5)), input="bfloat16 weights")


def _rate_is_known(rate, seen, steadied, weights, gradient):
    known = len(seen)
    steadied(weights, gradient, rate)
    if len(seen) > known:
        raise Failed("The step is run by Python at each call: it is not jitted.")
    raise Failed(
        "The rate is static: it is a constant of the program, and each new rate is traced. It has to be an argument that is traced."
    )


exercise = Exercise(
    title="One trace for every learning rate",
    stars=2,
    minutes=10,
    why="A schedule that hands out floats, integers and arrays in turn makes a training loop compile in the middle of the night.",
    hints=(
        "What is done inside of the jitted function comes too late: the key is made of what is passed in.",
        "So there are two functions: an outer one, plain Python, that makes a float32 of the rate, and an inner one that is jitted, once.",
        "`np.float32(rate)` takes any of these numbers, is not weak, and compiles nothing. (Of an array it waits for the value; "
        "`jnp.asarray(rate, jnp.float32)` does not.)",
    ),
    solution=solution,
    check=check,
)
