"""Few programs for many lengths."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import guard
from mlax_tutorial.inspection import retracing


def solution(function):
    @jax.jit
    def padded(x, length, initial):
        return function(x, where=jnp.arange(len(x)) < length, initial=initial)

    def call(x, initial):
        size = 1 << (len(x) - 1).bit_length()
        rows = np.zeros(size, x.dtype)
        rows[: len(x)] = x
        return padded(rows, np.int32(len(x)), np.float32(initial))

    return call


def check(bucketed):
    seen = []

    def watched(function):
        def reduce(x, where=None, initial=None):
            seen.append((jnp.shape(x), isinstance(x, jax.core.Tracer)))
            keywords = {} if where is None else {"where": where}
            return function(x, initial=initial, **keywords)

        return reduce

    lengths = sorted(
        {max(1, 2**i + d) for i in range(10) for d in (-1, 0, 1)}
        | {100, 200, 300, 400, 600, 700, 800, 900, 1000}
    )
    random = np.random.default_rng(0)
    few = [3, 100]
    calls = {}
    for function, in_numpy, initial in (
        (jnp.sum, np.sum, 0.5),
        (jnp.max, np.max, -9.0),
        (jnp.prod, np.prod, 2.1),
        (jnp.min, np.min, 9.0),
    ):
        seen.clear()
        call = bucketed(watched(function))
        checks.returned(call)
        if not callable(call):
            raise Failed("`bucketed` returns a function, of `(x, initial)`.", got=call)
        call = calls[function] = guard(call, "bucketed(function)")
        for length in lengths if function is jnp.sum else few:
            x = random.uniform(0.9, 1.1, length).astype(np.float32)
            if function is jnp.max:
                x -= 5  # so that a zero would be larger
            elif function is jnp.min:
                x += 5
            before, known = x.copy(), len(seen)
            got = call(x, initial)
            if not np.array_equal(x, before):
                raise Failed("Your function changes the array that the caller passed in.")
            if len(seen) > known and not seen[-1][1]:
                raise Failed("The function is called with real arrays, by Python: it is not jitted.")
            expected = jnp.float32(in_numpy(x.astype(np.float64), initial=initial))
            shown = f"{function.__name__} of {length} numbers, initial={initial}"
            with checks.says(functools.partial(_why_not_bucketed, function, x, initial, got)):
                checks.same(got, expected, input=shown, rtol=1e-4)
        if len(seen) > 11:
            said = ", ".join(str(shape[0]) for shape, _ in seen[:12] if shape)
            raise Failed(
                f"The function was traced {len(seen)} times for {len(lengths)} lengths; eleven are enough. "
                "Round the length up to a power of two, pad to that, and let the length itself be traced.",
                shown=[("traced for lengths", said + ", ...")],
            )
        if function is not jnp.sum:
            continue
        sizes = sorted({shape[0] for shape, _ in seen if shape})
        with retracing.compilations() as compiled:
            for length in (6, 90, 130, 600, 601):
                call(np.ones(length, np.float32), 0.5)
        if compiled:
            break
        with retracing.compilations() as for_another:
            for initial in (1.0, 3.0, 0.25):
                call(np.ones(90, np.float32), initial)
        if for_another:
            raise Failed(
                "For another `initial` something is compiled again: is it static, or a constant of the program? Let it be traced.",
            )
        with retracing.compilations() as for_whole:
            call(np.ones(90, np.float32), 3)
        if for_whole:
            raise Failed(
                "For `initial=3` something is still compiled: to JAX a whole number of Python's is of another type than a "
                "float. Make one type of both, with NumPy.",
            )
    if compiled:
        raise Failed(
            f"For a new length something is still compiled: {', '.join(sorted(set(compiled)))}. Outside of `jit` the functions of "
            "`jnp` compile for each shape: prepare the inputs with NumPy.",
        )
    for length in lengths:
        padded = next((size for size in sizes if size >= length), length)
        if padded > max(64, 4 * length):
            raise Failed(
                f"A vector of {length} is padded to {padded}, and {max(64, 4 * length)} is the most here. The short ones should not pay "
                "for the long ones: take the next power of two.",
            )
    for function, first, expected in ((jnp.prod, 0.0, 0.0), (jnp.max, 0.0, 0.0), (jnp.sum, np.nan, np.nan)):
        x = np.array([first, -2.0, -3.0], np.float32)
        start = -9.0 if function is jnp.max else 1.0
        got = calls[function](x, start)
        if not np.array_equal(got, expected, equal_nan=True):
            raise Failed(
                "A number of the vector is taken for padding: the mask has to go by the position, not by the value.",
                input=f"{function.__name__} of {x}, initial={start}",
                expected=jnp.float32(expected),
                got=got,
            )


def _why_not_bucketed(function, x, initial, got, failure):
    if not (isinstance(got, jax.Array) and got.shape == ()):
        return ""
    if np.allclose(got, initial):
        return "Nothing takes part in the result: your mask is false for all numbers."
    if function is jnp.sum and np.allclose(got, x.sum(), rtol=1e-4):
        return "`initial` does not count: hand it on to the function."
    if np.allclose(got, getattr(np, function.__name__)(x, initial=initial), rtol=1e-2):
        return "Nearly: is something rounded to a smaller dtype?"
    if function is jnp.sum and got < x.sum() + initial:
        return "Not all numbers take part: pad to a size that is larger than the length, or equal to it."
    return "What was padded takes part in the result: hand `where=` to the function, a mask that is true for what counts."


exercise = Exercise(
    title="Few programs for many lengths",
    stars=2,
    minutes=15,
    why="Sequences, batches, images: whatever comes in many sizes is served by a handful of programs, if a mask says what counts.",
    hints=(
        "`1 << (length - 1).bit_length()` is the next power of two. From 1 to 1,024 there are eleven of them.",
        "The jitted function gets the padded vector and the length, as an array, and makes the mask: `jnp.arange(len(x)) < length`.",
        "Pad with NumPy, and hand over `np.int32(length)` and `np.float32(initial)`: one type, and nothing is compiled on the way.",
    ),
    solution=solution,
    check=check,
)
