"""Compiled before the first call."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import guard
from mlax_tutorial.inspection import retracing


def solution(function, sizes):
    programs = {}
    for size in sizes:
        x = jax.ShapeDtypeStruct((size,), jnp.float32)
        length = jax.ShapeDtypeStruct((), jnp.int32)
        programs[size] = jax.jit(function).lower(x, length).compile()

    def serve(x):
        for size in sizes:
            if len(x) <= size:
                padded = np.zeros(size, np.float32)
                padded[: len(x)] = x
                return programs[size](padded, np.int32(len(x)))
        raise ValueError(f"{len(x)} numbers are more than {sizes[-1]}")

    return serve


def check(ready):
    seen, sizes = [], [4, 8, 32]

    def function(x, length):
        seen.append((jnp.shape(x), isinstance(x, jax.core.Tracer), jax.typeof(length).dtype))
        mean = jnp.sum(jnp.where(jnp.arange(len(x)) < length, x, 0.0)) / length
        return jnp.stack([mean, jnp.sum(x), jnp.float32(length), jnp.float32(len(x))])

    with retracing.compilations() as compiled:
        serve = ready(function, sizes)
    checks.returned(serve)
    if not callable(serve):
        raise Failed("`ready` returns a function, of `x`.", got=serve)
    shapes = sorted({shape for shape, traced, _ in seen if traced})
    if shapes != [(size,) for size in sizes]:
        found = ", ".join(str(shape) for shape in shapes) or "nothing"
        raise Failed(
            "When `ready` returns, the function should have been traced once for each size: (4,), (8,) and (32,). "
            f"Traced: {found}.",
        )
    if any(dtype != jnp.int32 for *_, dtype in seen):
        raise Failed("The length should be an int32, so that there is one program for each size.")
    if len(compiled) < len(sizes):
        raise Failed(
            "When `ready` returns, nothing is compiled yet: `.lower(…)` is followed by `.compile()`."
        )
    seen.clear()
    serve = guard(serve, "ready(function, sizes)")
    random = np.random.default_rng(0)
    for length in (1, 4, 5, 8, 9, 31, 32, 3):
        x = random.normal(size=length).astype(np.float32)
        before = x.copy()
        with retracing.compilations() as compiled:
            got = serve(x)
        if seen:
            raise Failed(
                f"The function is traced, or run by Python, for {length} numbers: call the compiled program itself."
            )
        if compiled:
            raise Failed(
                f"For {length} numbers something is still compiled: {', '.join(sorted(set(compiled)))}. Pad with NumPy, "
                "and call the compiled program itself."
            )
        size = next(size for size in sizes if length <= size)
        if not np.array_equal(x, before):
            raise Failed("Your function changes the array that the caller passed in.")
        _compare(got, x, size)
    checks.refuses(serve, np.ones(33, np.float32), error=ValueError)
    _other_sizes(ready)


def _other_sizes(ready):
    """Two sizes that nobody has seen, and a function that says when it runs."""
    runs = []

    def function(x, length):
        jax.debug.callback(lambda: runs.append(1))
        return jnp.stack([jnp.sum(x) + length, jnp.float32(len(x))])

    serve = ready(function, [3, 6])
    jax.effects_barrier()
    if runs:
        raise Failed(
            "The function has run before the first call. To compile it takes types alone, "
            "`jax.jit(function).lower(x, length).compile()` with a `jax.ShapeDtypeStruct` each: a large model would cost time and "
            "memory here.",
        )
    serve = guard(serve, "ready(function, sizes)")
    for length, size in ((3, 3), (2, 3), (4, 6)):
        with checks.says("The sizes are an argument, and here they are 3 and 6."):
            got = serve(np.ones(length, np.float32))
            checks.same(got, np.float32([2 * length, size]), input=f"{length} ones; the sizes are 3 and 6")


def _compare(got, x, size):
    shown = f"{len(x)} numbers; the sizes are 4, 8 and 32"
    if not isinstance(got, jax.Array) or got.shape != (4,):
        raise Failed("Return what the program returns.", input=shown, got=got)
    mean, total, length, padded = np.asarray(got, np.float64)
    if padded != size:
        raise Failed(
            f"{len(x)} numbers are padded to {padded:.0f}; the smallest size that is enough is {size}.",
            input=shown,
        )
    if length != len(x):
        raise Failed("The program gets another length than that of the vector.", input=shown, got=length)
    if not np.allclose(total, x.sum(), atol=1e-4):
        raise Failed("The padded vector should hold `x`, and zeros.", input=shown)
    if not np.allclose(mean, x.mean(), atol=1e-4):
        raise Failed("The vector stands first in the padded one, the zeros behind it.", input=shown)


exercise = Exercise(
    title="Compiled before the first call",
    stars=2,
    minutes=15,
    why="A server that compiles when it starts has no slow request, and refuses what it is not made for.",
    hints=(
        "`jax.jit(function).lower(x, length).compile()`, with a `jax.ShapeDtypeStruct` for each argument, is a program for one size.",
        "Keep the programs in a dict by size. The types are float32 of shape `(size,)` and int32 of shape `()`.",
        "In `serve`: `np.zeros(size, np.float32)`, fill in `x`, and call `programs[size](padded, np.int32(len(x)))`.",
    ),
    solution=solution,
    check=check,
)
