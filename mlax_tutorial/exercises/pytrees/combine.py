"""Put a model together."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.pytrees._trees import Point, boxed, layers
from mlax_tutorial.exercises.pytrees.partition import solution as partition


def solution(first, second):
    def there(one, two):
        return two if one is None else one

    return jax.tree.map(there, first, second, is_leaf=lambda item: item is None)


def check(combine):
    def pair():  # new ones each time: an answer may change them
        return (
            {"kernel": jnp.array([1.0, 2.0]), "bias": None},
            {"kernel": None, "bias": jnp.array([3.0])},
        )

    def zeros():
        return (
            {"a": jnp.array(0.0), "b": None, "c": jnp.array(False), "d": jnp.array(2.0)},
            {"a": None, "b": jnp.array(0), "c": None, "d": None},
        )

    def parts(tree, chosen):
        return partition(tree, lambda text: chosen in text)

    holes = {"a": [None, Point(jnp.ones(1), (None, jnp.ones(2)))], "b": (), "c": jnp.arange(3)}
    attempt = functools.partial(_right_combination, combine)
    attempt(pair(), "At each place stands the leaf of the tree that has one there.", shallow=True)
    checks.pure(combine, *pair())
    attempt(pair()[::-1], "Either of the two may hold the leaf.")
    advice = "Zero and False are values like others: only None means that nothing is there."
    attempt(zeros(), advice)
    attempt(zeros()[::-1], advice)
    for chosen in ("kernel", "[0]", "scale"):
        attempt(parts(layers(), chosen), "The trees may have any depth.")
        attempt(parts(layers(), chosen)[::-1], "The trees may have any depth.")
    attempt(parts(boxed(), "kernel"), "Containers may be of any registered kind.")
    attempt(parts(holes, "y"), "Where neither tree has a leaf, None remains; containers stay what they are.")
    numbers = {"rate": 0.5, "step": None}, {"rate": None, "step": 3}
    attempt(numbers, "A leaf may be a plain number: only None means that nothing is there.")
    single = "A single array is a tree, too, and None is what remains of the other part."
    attempt((jnp.ones(2), None), single)
    attempt((None, jnp.ones(2)), single)
    with under("`jax.jit`"):
        got = jax.jit(combine)(*pair())
    checks.same(got, solution(*pair()), where="under `jax.jit`")
    first, second = pair()
    with under("`jax.grad`"):
        gradient = jax.grad(lambda first: jnp.sum(combine(first, second)["kernel"] ** 2))(first)
    expected = {"kernel": 2 * first["kernel"], "bias": None}
    checks.same(gradient, expected, where="as the gradient of the first part")


def _right_combination(combine, arguments, advice, shallow=False):
    recognise = [
        (lambda a, b: a, "You return the first tree; what is None there is to come from the second."),
        (lambda a, b: b, "You return the second tree; what is None there is to come from the first."),
        (lambda a, b: jax.tree.map(lambda _: None, a), "Nothing is left: choose the one that is *not* None."),
        (lambda a, b: (a, b), "Return one tree, not both."),
        (
            lambda a, b: jax.tree.leaves((a, b)),
            "These are the leaves; asked for is a tree of the shape of the two.",
        ),
    ]
    try:
        # a merge of dicts can be equal to one of two deep trees by accident
        recognise = recognise if shallow else recognise[2:]
        checks.values(combine, solution, examples=[arguments], recognise=recognise)
    except Failed as failure:
        error = getattr(failure, "error", None)
        if isinstance(error, ValueError) and "truth value" in str(error):
            advice = "An array is neither true nor false. Ask whether it is there: `is None`."
        elif isinstance(error, (TypeError, ValueError)) and "None is not a valid value" in str(error):
            advice = "Where neither tree has a leaf both are None, and None is no value for `jnp`: hand it on as it is."
        elif isinstance(error, ValueError) and "None" in str(error):
            advice = (
                "To `jax.tree.map` None is an empty container, not a leaf, so the trees differ there: `is_leaf` "
                "can say otherwise."
            )
        elif isinstance(error, TypeError) and "NoneType" in str(error):
            advice = "One of the two is None: choose the one that is there, and do not compute with it."
        if not failure.message.startswith(tuple(diagnosis for _, diagnosis in recognise)):
            failure.say_first(advice)
        raise


exercise = Exercise(
    title="Put a model together",
    stars=2,
    minutes=10,
    why="Partition, change or differentiate one part, combine: this is how libraries freeze weights and filter trees.",
    hints=(
        "`jax.tree.map` on the two trees would be right, but it does not stop at None, which is no leaf.",
        "`is_leaf=lambda item: item is None` makes it one. Then choose, for each pair, the one that is not None.",
    ),
    solution=solution,
    check=check,
)
