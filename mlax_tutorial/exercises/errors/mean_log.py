"""An assert that the program can keep."""

import re

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import checkify

from mlax_tutorial.checking import Exercise, Failed, checks


@jax.jit
def solution(x):
    def checked(x):
        bad = jnp.sum(x <= 0)
        checkify.check(bad == 0, "{bad} elements are not positive", bad=bad)
        return jnp.mean(jnp.log(x))

    return checkify.checkify(checked)(x)


def check(mean_log):
    good, bad = jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, -2.0, -4.0])
    got, asked = mean_log(good), "A pair is asked for: what `checkify` noted, and the mean."
    error, value = checks.returned(got, "error", "mean", asked=asked, input={"x": good})
    if not hasattr(error, "get") and hasattr(value, "get"):
        raise Failed("The pair is in the wrong order: first what `checkify` noted, then the mean.")
    if not isinstance(error, checkify.Error):
        raise Failed(
            "The first of the two is not an error of `checkify`: return what the function returns that "
            "`checkify.checkify(f)` makes.",
            got=error,
        )
    checks.same(value, jnp.mean(jnp.log(good)), input={"x": good})
    if error.get() is not None:
        raise Failed(
            "All elements are positive, and yet there is a note.", input={"x": good}, got=error.get()
        )
    checks.is_jitted(mean_log)
    for x, number in (
        (bad, 2),
        (jnp.array([1.0, -1.0, 3.0]), 1),
        (jnp.array([-5.0, -1.0, -3.0]), 3),
        (jnp.array([0.0, 1.0, 0.0]), 2),
        (jnp.array([[1.0, -2.0], [0.0, 3.0]]), 2),
    ):
        error, _ = mean_log(x)
        try:
            note = error.get() or ""
        except (LookupError, ValueError) as missing:
            raise Failed(
                "The note cannot be written: its template asks for a value that `checkify.check` is not given. Hand it over "
                "by name, as `bad=bad`.",
                input={"x": x},
                shown=[("error", f"{type(missing).__name__}: {missing}")],
            ) from None
        if re.search(rf"(?<!\d){number} elements are not positive", note):
            continue
        shown = {"input": {"x": x}, "expected": f"{number} elements are not positive", "got": note or None}
        if not note and not (np.asarray(x) < 0).any():
            raise Failed("A zero is not positive either, and it is not noted.", **shown)
        if not note:
            raise Failed("Nothing is noted, though there are bad elements.", **shown)
        if "elements are not positive" in note:
            if "Tracer" in note or "Traced" in note:
                raise Failed(
                    "The note holds a tracer: an f-string is filled in while tracing. Give `checkify.check` a template, and "
                    "the value by name.",
                    **shown,
                )
            raise Failed("The number in the note is not that of the bad elements.", **shown)
        raise Failed("There is a note, but not with these words.", **shown)
    with checks.says("Every call should find the same program."):
        checks.traces(mean_log, (good,), (bad,), (jnp.array([3.0, 1.0, 1.0]),), exactly=1)
    for x in (jnp.array([2.0]), jnp.array([[1.0, 2.0], [3.0, 4.0]])):
        error, value = mean_log(x)
        checks.same(value, jnp.mean(jnp.log(x)), input={"x": x})


exercise = Exercise(
    title="An assert that the program can keep",
    stars=3,
    minutes=15,
    why="A compiled program cannot raise, but it can hand back a note: the caller decides when to look.",
    hints=(
        "`checkify.check(condition, template, name=value)` stands where the `assert` stood.",
        "`checkify.checkify(f)` makes a function of `f` that returns two things: the note, and the result.",
        "Write the checked function inside of the jitted one, and return `checkify.checkify(checked)(x)`.",
    ),
    solution=solution,
    check=check,
)
