"""A Python loop shows as a program that grows."""

import jax

from mlax_tutorial.checking import Failed
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.inspection import jaxprs


def equations(function, *arguments):
    """How many equations the function records, inner ones included."""
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(fresh(function))(*arguments)
    return sum(1 for _ in jaxprs.walk(program))


def does_not_grow(sizes, what):
    if sizes[-1] > sizes[0] + 8:
        raise Failed(
            f"The program grows with {what}: use `jax.vmap` over keys instead of a Python loop.",
            shown=[("equations", " and ".join(map(str, sizes)))],
        )
