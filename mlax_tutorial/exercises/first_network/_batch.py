"""A loop over the examples of a batch shows in the program."""

import jax
import jax.flatten_util

from mlax_tutorial.checking import Failed
from mlax_tutorial.inspection import jaxprs


def no_loop_over_batch(function, arguments):
    """With eight more examples the program has not eight more equations, and no loop has eight more rounds."""
    few, many = (jax.make_jaxpr(function)(*arguments(n)) for n in (4, 12))
    sizes = [sum(1 for _ in jaxprs.walk(program)) for program in (few, many)]
    if sizes[1] - sizes[0] >= 8:
        raise Failed(
            "There is a loop over the examples: the program grows with the batch. Work on the whole batch at once.",
            shown=[("equations", f"{sizes[0]} for 4 examples, {sizes[1]} for 12")],
        )
    rounds = [
        sum(e.params["length"] for _, e in jaxprs.walk(program) if e.primitive.name == "scan")
        for program in (few, many)
    ]
    if any(e.primitive.name == "while" for _, e in jaxprs.walk(many)):
        raise Failed(
            "There is a `while_loop` in your jaxpr, and a jaxpr does not say how often that runs. If it goes over the examples, work on "
            "the whole batch at once; if over something else, take a Python loop or `lax.map`."
        )
    if rounds[1] - rounds[0] >= 8:
        raise Failed(
            "There is a loop over the examples in your jaxpr: one follows the other, instead of all at once. "
            "Work on the whole batch."
        )
