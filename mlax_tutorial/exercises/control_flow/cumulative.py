"""A running product in three ways."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks, inputs
from mlax_tutorial.inspection import jaxprs


def solution(x, way):
    one = jnp.ones((), x.dtype)
    if way == "scan":
        return lax.scan(lambda product, value: (product * value,) * 2, one, x)[1]
    if way == "fori_loop":

        def body(i, state):
            product, products = state
            product = product * x[i]
            return product, products.at[i].set(product)

        return lax.fori_loop(0, len(x), body, (one, jnp.zeros_like(x)))[1]
    return lax.associative_scan(jnp.multiply, x)


WAYS = ("scan", "fori_loop", "associative_scan")


def check(cumulative):
    telling = jax.device_put(np.float32([2, 3.3, -0.7]))
    for way in WAYS:
        by_way = functools.partial(_in_a_way, cumulative, way)
        recognise = [
            (lambda x: jnp.cumsum(x), "These are running sums, not products."),
            (
                lambda x: jnp.cumprod(jnp.concatenate([jnp.ones(1, x.dtype), x[:-1]])),
                "Element `i` leaves `x[i]` itself out: the product goes up to it, and includes it.",
            ),
            (lambda x: jnp.cumprod(x[::-1])[::-1], "These products run from the end."),
            (lambda x: jnp.prod(x), "This is the product of all; the running ones are asked for."),
            (
                lambda x: jnp.zeros_like(x),
                "All products are zero: where does the first one start? At 1, not at 0.",
            ),
        ]
        with checks.says(f'With way = "{way}":'):
            checks.values(by_way, _products, examples=[(telling,)], recognise=recognise)
            drawn = inputs.arrays("n", sizes=(1, 3, 5), low=-2, high=2)
            jitted = jax.jit(by_way)
            checks.values(jitted, _products, drawn, recognise=recognise, count=6)
            _not_unrolled(by_way, way)
            whole = jax.device_put(np.array([3, 1, 2, -1, 5], np.int32))
            with checks.says("The dtype must stay, that of whole numbers, too."):
                checks.same(jitted(whole), _products(whole), input={"x": whole})
            checks.works_under_jit(by_way, telling)


def _products(x):
    return np.cumprod(np.asarray(x), dtype=x.dtype)


def _in_a_way(function, way, x):
    return function(x, way)


def _not_unrolled(by_way, way):
    short, long = (jax.make_jaxpr(by_way)(np.ones(n, np.float32)) for n in (8, 64))
    names = [e.primitive.name for _, e in jaxprs.walk(long)]
    loops = [e for _, e in jaxprs.walk(long) if e.primitive.name in ("scan", "while")]
    if any(name.startswith(("cumprod", "cumsum", "cumlogsumexp")) for name in names):
        raise Failed("JAX's own running product does the work; here the loop is to be yours.")
    if way == "associative_scan":
        if loops:
            raise Failed(
                "The jaxpr holds a loop, so the products are made one after the other: `lax.associative_scan` makes a tree."
            )
        if names.count("mul") > 20:
            raise Failed(
                f"The jaxpr holds {names.count('mul')} products for 64 elements; a tree needs two for each of its levels."
            )
        if names.count("mul") <= 2:
            raise Failed(
                "The jaxpr holds no tree of products, and no call of `lax.associative_scan` looks like this."
            )
        return
    if not loops:
        count = names.count("mul")
        raise Failed(
            f"The jaxpr holds no loop, but {count} products for 64 elements: is it Python that loops?"
            if count > 30
            else f"The jaxpr holds no loop: use `lax.{way}`."
        )
    if len(names) != len(list(jaxprs.walk(short))):
        raise Failed("The jaxpr grows with the vector: something is still unrolled.")
    with_tape = [e for e in loops if e.primitive.name == "scan" and _tape(e)]
    if way == "scan" and not with_tape:
        raise Failed(
            "The loop has neither inputs nor outputs for its rounds: `lax.scan` can slice `x` for you and stack the results."
        )
    if way == "fori_loop" and len(with_tape) == len(loops):
        raise Failed(
            "The jaxpr holds a scan that slices or stacks; a `fori_loop` has only its carry and a counter."
        )


def _tape(equation):
    """Whether a scan slices inputs or stacks outputs: then they have an axis more outside than inside."""
    body = equation.params["jaxpr"]
    outside = [variable.aval.shape for variable in (*equation.invars, *equation.outvars)]
    return outside != [aval.shape for aval in (*body.in_avals, *body.out_avals)]


exercise = Exercise(
    title="A running product in three ways",
    stars=2,
    minutes=15,
    why="You know what each loop is for: a tape, an array that is written into, and a tree of a logarithmic depth.",
    hints=(
        'Python chooses: `if way == "scan": …`. The carry of the scan is the product so far, and its output as well.',
        "A `fori_loop` has no outputs: let it carry an array of the full size, and write with `.at[i].set`.",
        "`lax.associative_scan(jnp.multiply, x)` is the third. For the others: in which dtype does the product start?",
    ),
    solution=solution,
    check=check,
)
