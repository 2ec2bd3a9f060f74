"""A loss scale that recovers."""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import fresh, under


def solution(scale, count, finite, period=2000):
    grows = count + 1 >= period
    if_finite = jnp.where(grows, 2 * scale, scale)
    scale = jnp.where(finite, if_finite, jnp.maximum(scale / 2, 1))
    return scale, jnp.where(finite & ~grows, count + 1, 0)


def check(adjust):
    first = adjust(jnp.float32(8), jnp.int32(0), jnp.array(True))
    asked = "`adjust` should return a pair, the new scale and the new count."
    checks.returned(first, "scale", "count", lists=True, asked=asked)
    for value, dtype, name in zip(first, ("float32", "int32"), ("scale", "count"), strict=True):
        checks.same(jnp.asarray(value), jnp.asarray(value).astype(dtype), where=f"for the {name}")
    jitted = jax.jit(functools.partial(fresh(adjust), period=3))
    stories = {
        "finite, finite, finite, finite": (8, [True] * 4),
        "overflow, overflow": (8, [False] * 2),
        "finite, finite, overflow, finite, finite, finite": (8, [True, True, False, True, True, True]),
        "overflow, overflow, overflow, with the scale at 2": (2, [False] * 3),
        "finite, finite, overflow, then finite, with the scale at 1": (
            1,
            [True, True, False, True, True, True],
        ),
        "overflow, overflow, with the scale at 5": (5, [False] * 2),
        "overflow, with the scale at 1.5": (1.5, [False]),
        "finite, finite, finite, with the scale at 2 to the power of 100": (2.0**100, [True] * 3),
    }
    for words, (start, flags) in stories.items():
        scale, count = wanted = jnp.float32(start), jnp.int32(0)
        for number, flag in enumerate(flags, 1):
            before = scale, count
            with under("`jax.jit`"):
                scale, count = jitted(*before, jnp.array(flag))
            wanted = _reference(*map(float, before), flag)
            _judge(before, (float(scale), int(count)), wanted, flag, f"step {number} of: {words}")
    for before in (256, 1999, 2048, 69_999):  # which half precision and int16 do not count on
        count = int(adjust(jnp.float32(8), jnp.int32(before), jnp.array(True), period=70_001)[1])
        if count != before + 1:
            raise Failed(
                "A finite step counts one on, as long as the period is not reached.",
                input={"scale": 8, "count": before, "finite": True, "period": 70_001},
                expected=before + 1,
                got=count,
            )
    for before, wanted in [(999, (8, 1000)), (1998, (8, 1999)), (1999, (16, 0))]:
        scale, count = adjust(jnp.float32(8), jnp.int32(before), jnp.array(True))
        if (float(scale), int(count)) != wanted:
            raise Failed(
                "By default the period is 2000: after so many finite steps the scale doubles.",
                input={"scale": 8, "count": before, "finite": True},
                expected=wanted,
                got=(float(scale), int(count)),
            )


def _reference(scale, count, finite, period=3):
    if not finite:
        return max(scale / 2, 1.0), 0
    return (2 * scale, 0) if count + 1 >= period else (scale, int(count) + 1)


def _judge(before, got, wanted, finite, words):
    if got == wanted:
        return
    (old, count), (scale, new) = map(float, before), got
    shown = {
        "input": {"scale": old, "count": int(count), "finite": finite, "period": 3},
        "expected": wanted,
        "got": got,
        "shown": [("when", words)],
    }
    if not finite:
        if scale >= old > 1:
            raise Failed("After an overflow the scale should halve.", **shown)
        if scale < 1:
            raise Failed("The scale fell below 1, where it makes gradients smaller.", **shown)
        if new:
            raise Failed("An overflow ends the row: the count starts again at 0.", **shown)
    elif wanted[0] == 2 * old and scale == old:
        raise Failed(
            "This was the third finite step in a row, and the period is 3: now the scale should double.",
            **shown,
        )
    elif wanted[0] == old and scale == 2 * old:
        raise Failed(
            "The scale doubles too early: there were fewer finite steps in a row than the period says.",
            **shown,
        )
    elif wanted[0] == scale and wanted[1] == 0 and new:
        raise Failed(
            "When the scale has doubled, the count starts again at 0; else it doubles at each step from now on.",
            **shown,
        )
    raise Failed("That is not the rule.", **shown)


exercise = Exercise(
    title="A loss scale that recovers",
    stars=2,
    minutes=10,
    why="The scale now follows the gradients by itself, and nobody waits for the device to learn whether a step was good.",
    hints=(
        "Work out both outcomes, the one after a finite step and the one after an overflow, and choose with `jnp.where(finite, …, …)`.",
        "After a finite step: `grows = count + 1 >= period`. If it grows, the scale doubles and the count is 0; else the scale "
        "stays and the count is one more.",
        "`scale = jnp.where(finite, jnp.where(grows, 2 * scale, scale), jnp.maximum(scale / 2, 1))`, and the count is "
        "`jnp.where(finite & ~grows, count + 1, 0)`.",
    ),
    solution=solution,
    check=check,
)
