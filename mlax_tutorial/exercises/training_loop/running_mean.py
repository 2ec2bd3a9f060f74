"""Add the metrics of a batch to sums that stay on the device."""

import contextlib

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, Failed, checks, guarding
from mlax_tutorial.inspection import jaxprs

WAITS = ("block_until_ready", "device_get", "effects_barrier")


def solution(total, metrics, size):
    sums, count = total
    sums = jax.tree.map(lambda s, m: s + m * size, sums, metrics)
    return sums, count + size


def check(running_mean):
    metrics = {"loss": jnp.float32(2.3456), "accuracy": jnp.float32(1 / 3)}  # times a size they are not whole
    total = {"loss": jnp.float32(12.0), "accuracy": jnp.float32(1.0)}, jnp.float32(4.0)
    _never_waits(running_mean, total, metrics)
    _right(running_mean, total, metrics)
    _waits_for_arrays(running_mean, total, metrics)
    _count_of_integers(running_mean, total, metrics)
    other = {"a": (jnp.float32([1.0, 2.0]), jnp.float32(3.0))}
    zeros = jax.tree.map(jnp.zeros_like, other), jnp.float32(0.0)
    shown = {"input": {"total": zeros, "metrics": other, "size": 5}}
    said = "`metrics` need not be a flat dict with these names: go through any tree with `jax.tree.map`."
    with checks.says(said):
        got = running_mean(zeros, other, 5)
    if jax.tree.structure(got) != jax.tree.structure(zeros):
        raise Failed(said, expected=solution(zeros, other, 5), got=got, **shown)
    checks.same(got, solution(zeros, other, 5), where="for a tree with a vector in it", **shown)
    lost = metrics | {"loss": jnp.float32(jnp.nan)}
    if not jnp.isnan(running_mean(total, lost, 5)[0]["loss"]):
        raise Failed("A loss of NaN makes the mean NaN, and you hide it.", input={"metrics": lost})
    checks.no_leaks(running_mean, total, metrics, jnp.int32(3))


def _never_waits(add, total, metrics):
    """The carry of a scan: no number is asked for, and what comes out is of the type that went in."""

    def needs_a_number(failure):
        error = getattr(failure, "error", None)
        traced = isinstance(error, jax.errors.ConcretizationTypeError | jax.errors.JAXTypeError)
        if not traced and "Tracer" not in str(error) and "traced array" not in str(error):
            return ""  # the words are those of f-strings, and of methods of arrays
        return (
            "Your function needs a number where there is none yet, so it would wait for the device, and cannot be a part of a "
            "jitted program."
        )

    with checks.says(needs_a_number), _watched() as waited:
        got = jax.eval_shape(add, total, metrics, jnp.int32(3))
    waited += _imported(add)
    if waited:
        raise Failed(
            f"Your function calls `jax.{waited[0]}`, which waits for the device at every batch. Leave the arrays as they are."
        )
    checks.returned(got)
    wanted = jax.eval_shape(lambda tree: tree, total)
    if jax.tree.structure(got) != jax.tree.structure(wanted):
        said = (
            "Return the pair `(sums, count)`, built as `total` is: the carry of a `scan` keeps its structure."
        )
        if isinstance(got, tuple) and len(got) == 2 and isinstance(got[1], dict):
            said = f"The two are swapped. {said}"
        raise Failed(said, expected=wanted, got=got)
    if any(one.dtype != two.dtype for one, two in zip(jax.tree.leaves(got), jax.tree.leaves(wanted))):
        raise Failed(
            "A dtype changes on the way: the carry of a `scan` must come out as it went in.",
            expected=wanted,
            got=got,
        )


def _count_of_integers(add, total, metrics):
    whole = total[0], jnp.int32(4)
    got = jax.eval_shape(add, whole, metrics, jnp.int32(3))
    if got[1].dtype != jnp.int32:
        raise Failed(
            "A count of int32 comes back as another dtype, and the carry of a `scan` must come out as it went in: add `size` as it is.",
            expected=jax.eval_shape(lambda tree: tree, whole),
            got=got,
        )
    for dtype in (jnp.int32, jnp.float32):
        count = add((total[0], jnp.asarray(70_001, dtype)), metrics, 4)[1]
        if int(count) != 70_005:
            raise Failed(
                "After many batches the count is wrong: half precision and small integers cannot count so far.",
                input=f"a count of 70001, {jnp.dtype(dtype).name}, and size=4",
                expected=70_005,
                got=int(count),
            )


@contextlib.contextmanager
def _watched():
    """Notes which of the functions that wait are called in the block: they let tracers pass, so a trace does not tell."""
    called = []
    plain = {name: getattr(jax, name) for name in WAITS}
    for name in WAITS:
        setattr(jax, name, lambda *tree, name=name: (called.append(name), plain[name](*tree))[1])
    try:
        yield called
    finally:
        for name in WAITS:
            setattr(jax, name, plain[name])


def _waits_for_arrays(add, total, metrics):
    """With arrays that hold numbers: nothing reads them, by whatever name it was imported."""
    copies = jax.tree.map(jnp.copy, (total, metrics))
    kind, read = type(total[1]), []
    old = {name: vars(kind)[name] for name in ("_value", "block_until_ready", "item") if name in vars(kind)}

    def watched(name, value):
        if isinstance(value, property):
            return property(lambda self: (read.append(name), value.fget(self))[1])
        return lambda self, *arguments: (read.append(name), value(self, *arguments))[1]

    for name, value in old.items():
        setattr(kind, name, watched(name, value))
    try:
        add(*copies, 6)
    finally:
        for name, value in old.items():
            setattr(kind, name, value)
    program = jax.make_jaxpr(lambda *arguments: add(*arguments))(total, metrics, jnp.int32(3))
    names = {equation.primitive.name for _, equation in jaxprs.walk(program)}
    if read or names & {"pure_callback", "io_callback"}:
        raise Failed(
            "Your function reads the numbers of an array on the host, which waits for the device at every batch. Leave the arrays as they "
            "are."
        )


def _imported(add):
    """The names under which a reader's function holds one of the functions that wait."""
    function = guarding.underlying(add)
    code, around = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    waits = [getattr(jax, name) for name in WAITS]
    return [name for name in getattr(code, "co_names", ()) if any(around.get(name) is one for one in waits)]


def _right(add, total, metrics):
    before = jax.tree.map(jnp.copy, total)
    got, expected = add(total, metrics, 6), solution(before, metrics, 6)
    if not checks.agrees(total, before):
        raise Failed(
            "Your function changes `total[0]` in place: a dict that the caller still has. Return new sums."
        )
    (sums, count), size = before, 6
    means = jax.tree.map(lambda s, m: (s + m * size) / (count + size), sums, metrics)
    plain = jax.tree.map(jnp.add, sums, metrics)
    known = (
        (
            (plain, count + 1),
            "That is a mean of means: a batch of one example counts as much as one of a thousand.",
        ),
        (
            (plain, count + size),
            "`metrics` are means over the batch. Times `size` they are sums, which can be added.",
        ),
        (
            (means, count + size),
            "You return the means. Sums can be added to again; divide them once, at the end.",
        ),
        ((expected[0], count + 1), "`count` is the number of examples, not of batches."),
        ((expected[0], count), "`count` is not counted on."),
        ((jax.tree.map(lambda m: m * size, metrics), jnp.float32(size)), "The sums so far are forgotten."),
    )
    checks.same(got, expected, input={"total": before, "metrics": metrics, "size": 6}, recognise=known)
    second = {"loss": jnp.float32(0.7), "accuracy": jnp.float32(0.9)}
    got, expected = add(expected, second, 6), solution(expected, second, 6)
    checks.same(got, expected, where="for a second batch, of the same size")


exercise = Exercise(
    title="A running mean that never waits",
    stars=2,
    minutes=10,
    why="Sums and a count can be carried through a whole epoch on the device, and give the mean over examples, not over batches.",
    hints=(
        "A mean over `size` examples times `size` is a sum, and sums of parts add up.",
        "`jax.tree.map(lambda s, m: …, sums, metrics)` goes through both trees at once.",
    ),
    solution=solution,
    check=check,
)
