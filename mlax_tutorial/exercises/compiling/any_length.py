"""One program for all sizes."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(function):
    rows, columns = export.symbolic_shape("rows, columns")
    x = jax.ShapeDtypeStruct((rows, columns), jnp.float32)
    y = jax.ShapeDtypeStruct((columns,), jnp.float32)
    return export.export(jax.jit(function))(x, y)


def check(any_length):
    runs = []

    def function(x, y):
        runs.append(1)
        return jnp.sum(x, axis=0) + y

    def rows_only(x, y):
        return jnp.sum(x, axis=1) * jnp.sum(y)

    with checks.says(
        "Letters of two calls of `symbolic_shape` do not go together, as JAX says below: make both in one call, "
        '`symbolic_shape("rows, columns")`.',
        about="mixing of symbolic scopes",
    ):
        exported = any_length(rows_only)
    checks.returned(exported)
    if not isinstance(exported, export.Exported):
        raise Failed(
            "Return what `jax.export.export` gives for the types of the arguments: `export.export(jitted)(x, y)`.",
            got=exported,
        )
    kinds = exported.in_avals
    if len(kinds) != 2 or [len(kind.shape) for kind in kinds] != [2, 1]:
        raise Failed("The arguments are a matrix and a vector.", got=_text(kinds))
    if any(kind.dtype != jnp.float32 for kind in kinds):
        raise Failed("Both arguments are float32.", got=_text(kinds))
    (rows, columns), (length,) = (kind.shape for kind in kinds)
    if not all(export.is_symbolic_dim(size) for size in (rows, columns, length)):
        raise Failed("A size is a fixed number here: each should be symbolic.", got=_text(kinds))
    if rows == columns:
        raise Failed(
            "Rows and columns are one letter, so only square matrices fit: take two.", got=_text(kinds)
        )
    if length == rows:
        raise Failed("The vector is as long as the matrix has columns, not rows.", got=_text(kinds))
    if length != columns:
        raise Failed(
            "The length of the vector is a letter of its own, so that any vector would be taken. Give it that of the columns.",
            got=_text(kinds),
        )
    exported = any_length(function)
    runs.clear()
    random = np.random.default_rng(0)
    for shape in ((2, 3), (3, 2), (1, 1), (1000, 4), (5, 1000)):
        x = random.normal(size=shape).astype(np.float32)
        y = random.normal(size=shape[1]).astype(np.float32)
        try:
            got = exported.call(x, y)
        except ValueError as error:
            raise Failed(
                f"A matrix of shape {shape} is refused: {str(error).splitlines()[0][:160]}", got=_text(kinds)
            ) from None
        if not np.allclose(got, x.sum(axis=0) + y, atol=1e-4):
            raise Failed("The exported function computes something else.", input={"x": x, "y": y}, got=got)


def _text(kinds):
    return ", ".join(f"{kind.dtype}[{', '.join(map(str, kind.shape))}]" for kind in kinds)


exercise = Exercise(
    title="One program for all sizes",
    stars=2,
    minutes=10,
    why="An exported function with symbolic shapes is traced once, and can be handed out without its Python code.",
    hints=(
        '`rows, columns = jax.export.symbolic_shape("rows, columns")` makes both letters at once.',
        "The types are `jax.ShapeDtypeStruct((rows, columns), jnp.float32)` and one of shape `(columns,)`.",
        "`jax.export.export` takes a jitted function, and what it returns takes the types.",
    ),
    solution=solution,
    check=check,
)
