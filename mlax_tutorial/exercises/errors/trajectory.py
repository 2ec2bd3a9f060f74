"""A list that keeps tracers."""

import gc
import inspect
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.checking.guarding import original
from mlax_tutorial.checking.programs import fresh
from mlax_tutorial.exercises.errors._explain import no_tracers
from mlax_tutorial.inspection import jaxprs


def solution(x, rate):
    def step(x, _):
        x = x - rate * jax.grad(lambda x: jnp.sum(x**4))(x)
        return x, x

    return lax.scan(step, x, length=10)


def _leaks(function, *arguments):
    """Whether tracers are alive after the trace. (JAX's own check also looks for who holds them: that takes long.)"""

    def alive():
        gc.collect()
        return [thing for thing in gc.get_objects() if issubclass(type(thing), jax.core.Tracer)]

    before = alive()
    jax.jit(fresh(function))(*arguments)
    return len({id(tracer) for tracer in alive()} - {id(tracer) for tracer in before}) > 0


def _holds_tracers(function, *arguments):
    """Whether a variable of the function holds a tracer as it returns. It is called by itself, so that would be one of a loop's body."""
    function = inspect.unwrap(original(function))
    code, before, found = getattr(function, "__code__", None), sys.getprofile(), []

    def look(frame, event, _):
        if event == "return" and frame.f_code is code:
            variables = [value for value in frame.f_locals.values() if isinstance(value, (list, tuple, dict))]
            found.extend(leaf for leaf in jax.tree.leaves(variables) if isinstance(leaf, jax.core.Tracer))

    sys.setprofile(look)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return bool(found)


def check(trajectory):
    x, rate = jax.device_put((np.float32([1.0, -0.5, 0.25]), np.float32(0.05)))

    def before(x, rate):
        last, way = solution(x, rate)
        return last, jnp.concatenate([x[None], way[:-1]])

    def uphill(x, rate):
        return solution(x, -rate)

    recognise = [
        (before, "The way holds the points before each step; those after each step are asked for."),
        (uphill, "The step goes uphill: it is *minus* the rate times the gradient."),
        (lambda x, rate: solution(x, rate)[::-1], "The last point comes first, and then the way."),
        (lambda x, rate: solution(x, rate)[1], "Two results are asked for: the last point, and the way."),
    ]
    kept = (
        "The body of a loop is traced, so a list in it gets tracers, which mean nothing outside. What is to be "
        "kept of each round must be an output of the loop."
    )

    def known(failure):
        symptoms = "UnexpectedTracerError", "way", "stack"
        leaked, way, stack = (symptom in failure.message for symptom in symptoms)
        return kept if leaked or way and stack else ""

    with checks.says(known):
        got = trajectory(x, rate)
    no_tracers(
        got,
        "A list that the body of the loop fills gets tracers. What is to be kept of each round must be an output of the loop.",
    )
    if isinstance(got, list):
        raise Failed("A pair is asked for, as a tuple: the last point, and the way.", got=got)
    if isinstance(got, tuple) and len(got) == 2 and getattr(got[1], "shape", None) == (11, 3):
        raise Failed("The way has 11 points: the first is where it began, and is not asked for.", got=got)
    right = jax.jit(solution)
    checks.values(lambda x, rate: got, right, examples=[(x, rate)], recognise=recognise)
    jitted = checks.works_under_jit(trajectory, x, rate)
    checks.values(
        jitted,
        right,
        inputs.arrays("n", sizes=(1, 3), low=-1, high=1),
        inputs.one_of(*jax.device_put((np.float32(0.125), np.float32(0.0)))),
        count=5,
        recognise=recognise,
    )
    if _leaks(trajectory, x, rate):
        raise Failed(
            "A tracer outlives its trace: your function keeps it somewhere outside. Return it instead.",
        )
    if _holds_tracers(trajectory, x, rate):
        raise Failed(
            "A list of yours holds tracers when your function returns. To fill it in the body of the loop is a side effect, for "
            "which `jax.check_tracer_leaks` raises an error. The loop's outputs are enough."
        )
    if jax.make_jaxpr(fresh(trajectory))(x, rate).effects:
        raise Failed(
            "The program has a side effect: it calls Python back, or prints. The way can be returned without."
        )
    with checks.says("The loop is written out in the program; it should be one loop."):
        checks.jaxpr(trajectory, x, rate, requires=(("scan", "while"),))
    counts = jaxprs.count(fresh(trajectory), x, rate)
    if (loops := counts["scan"] + counts["while"]) > 1:
        raise Failed(
            f"The program holds {loops} loops, and one is asked for: its carry is the last point, and what it stacks is the way."
        )
    checks.gradients(trajectory, right, x, rate, argnums=(0, 1), finite_differences=False, jit=True)


exercise = Exercise(
    title="A list that keeps tracers",
    stars=2,
    minutes=10,
    why="What leaves a traced function leaves it by `return`, and out of a loop it leaves as a stacked output.",
    hints=(
        "`lax.scan` has a place for what is to be kept of each round: the second of the two things that its body returns.",
        "The body returns `x, x`: the new carry, and what is stacked.",
        "`lax.scan(step, x, length=10)` returns the last carry and the stack.",
    ),
    solution=solution,
    check=check,
)
