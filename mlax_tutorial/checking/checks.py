"""The checks at hand: most take the reader's function or its result first, and raise `Failed` where it is wrong.

====================== =====================================================================================
what an answer is
---------------------- -------------------------------------------------------------------------------------
`values`               equals a reference, on examples and on random inputs: kind, shape, dtype, value
`same`                 one result equals another
`agrees`               the same as a question: whether it does
`returned`             something was returned, or a tuple of so many parts
`returns`              a `jax.Array` of a shape and a dtype
`refuses`              raises a given error on a bad input
`equals`, `answers`    for answers that are no functions: one value; a dict of predictions
`says`                 ``with checks.says("…"):`` puts this sentence before whatever fails inside
what JAX makes of it
---------------------- -------------------------------------------------------------------------------------
`works_under_jit`      gives the same under ``jax.jit``
`works_under_vmap`     gives under ``jax.vmap`` what a loop gives
`takes_batches`        gives for a batch what a loop over it gives, without ``vmap``
`gradients`            equal the reference's, and finite differences
`traces`               how often Python runs the body over some calls
`is_jitted`            the reader has applied ``jax.jit``
`jaxpr`                primitives that must or must not occur, how often, how many equations
how it behaves
---------------------- -------------------------------------------------------------------------------------
`keys`                 no random key is used twice, eagerly and under jit; the result depends on the key
`pure`                 the same answer twice, inputs and globals untouched
`no_leaks`             no tracer outlives its trace
a class of theirs
---------------------- -------------------------------------------------------------------------------------
`make`                 an instance of it, with its errors shown as theirs
`obeys_laws`           a layer obeys the laws that the package's layers obey
`obeys_optimizer_laws` an optimizer obeys those that the package's optimizers obey
====================== =====================================================================================
"""

from mlax_tutorial.checking.behaviour import keys, no_leaks, pure
from mlax_tutorial.checking.compare import agrees, answers, equals, refuses, returned, returns, same, values
from mlax_tutorial.checking.guarding import make
from mlax_tutorial.checking.outcome import says
from mlax_tutorial.checking.programs import (
    gradients,
    is_jitted,
    jaxpr,
    takes_batches,
    traces,
    works_under_jit,
    works_under_vmap,
)

__all__ = [
    "agrees",
    "answers",
    "equals",
    "gradients",
    "is_jitted",
    "jaxpr",
    "keys",
    "make",
    "no_leaks",
    "obeys_laws",  # noqa: F822
    "obeys_optimizer_laws",  # noqa: F822
    "pure",
    "refuses",
    "returned",
    "returns",
    "same",
    "says",
    "takes_batches",
    "traces",
    "values",
    "works_under_jit",
    "works_under_vmap",
]

# The laws import the whole library, and most exercises need none of it.
_LATE = {
    "obeys_laws": "mlax_tutorial.checking.laws",
    "obeys_optimizer_laws": "mlax_tutorial.checking.laws",
}


def __getattr__(name):
    if name in _LATE:
        from importlib import import_module

        return getattr(import_module(_LATE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
