"""Fix what leaves its dtype."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.inspection import jaxprs
from mlax_tutorial.inspection.dtypes import strays


def solution(x):
    n, d = x.shape
    weights = jnp.asarray(np.exp(-np.arange(n) / n), x.dtype)  # shapes are known: NumPy may do it
    scaled = x * weights[:, None] / math.sqrt(d)
    return jnp.where(scaled > 0, scaled, jnp.zeros_like(x))


def decay(x):
    n, d = x.shape
    ages = jnp.arange(n) / n
    weights = jnp.exp(-ages)[:, None]
    scaled = x * weights / np.sqrt(d)
    return jnp.where(scaled > 0, scaled, jnp.zeros((n, d))).astype(x.dtype)


def check(clean):
    entries = np.array([[0.5, -1.0, 2.0], [1.5, 0.25, -4.0], [3.0, 1.0, -0.5], [-2.0, 4.0, 8.0]], np.float32)
    weights = np.exp(-np.arange(4) / 4)[:, None]
    reference = jax.device_put(np.float32(np.maximum(entries * weights / math.sqrt(3), 0)))
    for dtype in ("float32", "bfloat16", "float16"):
        x = jax.device_put(entries.astype(jnp.dtype(dtype)))
        shown = {"input": f"x of dtype {dtype} and shape (4, 3)"}
        got = (clean if dtype == "float32" else jax.jit(fresh(clean)))(x)
        checks.returned(got, **shown)
        if isinstance(got, jax.Array) and got.dtype != x.dtype:
            raise Failed(f"The result is {got.dtype}, and the input is {dtype}.", **shown)
        if dtype == "float32":
            positive = np.maximum(entries, 0)
            for wrong, advice in (
                (entries * weights / math.sqrt(3), "What is not above zero becomes zero."),
                (positive / math.sqrt(3), "The weights are missing: each row fades with its age."),
                (positive * weights, "This is the result without the division by the root of d."),
                (positive / weights / math.sqrt(3), "The weights grow: the sign is missing."),
            ):  # fmt: skip
                if checks.agrees(got, np.float32(wrong)):
                    raise Failed(advice, expected=reference, got=got, **shown)
        if {"pure_callback", "io_callback"} & set(jaxprs.count(fresh(clean), x)):
            raise Failed(
                "Python does the work, through a callback. It is to be done in the program.", **shown
            )
        tolerance = 1e-5 if dtype == "float32" else 3e-2
        checks.same(
            got,
            jax.device_put(np.asarray(reference).astype(x.dtype)),
            rtol=tolerance,
            atol=tolerance,
            **shown,
        )
        found = _found(clean, x, dtype)
        if found:
            many = f"There are {len(found)} values" if len(found) > 1 else "There is one value"
            first = found[0]
            raise Failed(f"{many} inside that are not {dtype}. {_why_stray(clean, first, x)}", shown=[("strays", "\n".join(found))], **shown)  # fmt: skip
    few = jax.device_put(entries[:3, :2])
    weights = np.exp(-np.arange(3) / 3)[:, None]
    expected = np.float32(np.maximum(entries[:3, :2] * weights / math.sqrt(2), 0))
    with checks.says(
        "It happens with an x of shape (3, 2): n and d are the sizes of `x`, whatever they are."
    ):
        checks.same(clean(few), jax.device_put(expected))


def _found(clean, x, dtype):
    with under("`jax.make_jaxpr`"):
        return strays(jax.make_jaxpr(fresh(clean))(x), dtype)


def _why_stray(clean, stray, x):
    kind = stray.partition(" gives ")[0].rpartition("/")[2]
    if "[4, 3]" not in stray:
        return (
            "The first has a row's age or weight: a quotient of whole numbers is float32. What depends on shapes alone "
            "NumPy can compute while tracing; `jnp.asarray(…, x.dtype)` then makes an array of the right dtype."
        )
    if kind == "broadcast_in_dim":
        return "`jnp.zeros` makes float32 unless it is told a dtype; `jnp.zeros_like(x)` has that of x."
    program = jaxprs._equations(jax.make_jaxpr(fresh(clean))(x))
    first = next((e.primitive.name for e in program), "")
    if kind == "convert_element_type" and first == kind:
        return "`x` itself is made float32. The work is to be done in its own dtype."
    return (
        "A NumPy number, such as `np.sqrt(d)`, is strongly typed and pulls `x` up to float32. A Python number is weak: "
        "`math.sqrt(d)`."
    )


exercise = Exercise(
    title="Fix what leaves its dtype",
    stars=2,
    minutes=10,
    why="Half of the memory traffic of a half-precision model is easily lost to one NumPy scalar; the audit finds it.",
    hints=(
        "`dtypes.strays(jax.make_jaxpr(decay)(jnp.ones((4, 3), jnp.bfloat16)), 'bfloat16')` names the lines.",
        "Three sources: a quotient of whole numbers, a NumPy scalar, an array made without a dtype.",
        "`math.sqrt(d)` is a Python number; `jnp.zeros_like(x)` has the dtype of x; what depends on `n` alone NumPy can "
        "compute, before `jnp.asarray(…, x.dtype)`.",
    ),
    solution=solution,
    check=check,
)
