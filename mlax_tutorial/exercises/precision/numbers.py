"""Predict eight numbers."""

from mlax_tutorial.checking import Exercise, Failed, checks

solution = {
    "a": 256.0,
    "b": 260.0,
    "c": 2048.0,
    "d": float("inf"),
    "e": 0.0,
    "f": 0.0,
    "g": 64.5,
    "h": 0.3125,
}


def check(given):
    import jax.numpy as jnp

    brain, half = jnp.bfloat16, jnp.float16
    asked = {
        "a": brain(256) + brain(1),
        "b": brain(256) + brain(3),
        "c": half(2048) + half(1),
        "d": half(60000) + half(60000),
        "e": brain(1) - brain(0.999),
        "f": half(1e-4) * half(1e-4),
        "g": jnp.nextafter(brain(64), brain(100)),
        "h": jnp.float32(0.3).astype(jnp.float8_e5m2),
    }
    why = {
        "a": {
            257: "Above 256 the numbers of bfloat16 are 2 apart.",
            258: "257 is a tie between 256 and 258; it goes to the one whose last bit is 0.",
        },
        "b": {
            259: "Above 256 the numbers of bfloat16 are 2 apart: odd numbers are not among them.",
            258: "259 is a tie. Write both neighbors as a multiple of 2: which multiple is even?",
            256: "3 is more than half of the distance to the next number.",
        },
        "c": {
            2049: "float16 has 10 bits of fraction, so above 2048 its numbers are 2 apart.",
            2050: "2049 is a tie between 2048 and 2050; it goes to the one whose last bit is 0.",
        },
        "d": {
            120000: "The largest float16 is 65504.",
            65504: "What is too large becomes infinite; it does not stop at the largest number.",
        },
        "e": {
            0.001: "First ask what `jnp.bfloat16(0.999)` is.",
            0.0010000000000000009: "First ask what `jnp.bfloat16(0.999)` is.",
            0.0039: "0.999 is nearer to 1 than to the bfloat16 below 1, which is 0.9961.",
            0.004: "0.999 is nearer to 1 than to the bfloat16 below 1, which is 0.9961.",
            0.00390625: "0.999 is nearer to 1 than to the bfloat16 below 1, which is 0.9961.",
        },
        "f": {
            1e-8: "The smallest float16 above zero is 6e-8.",
            6e-8: "1e-8 is less than half of 6e-8: which neighbor is nearer?",
            2.0**-24: "1e-8 is less than half of 6e-8: which neighbor is nearer?",
        },
        "g": {
            65: "Below 64 the distance is 0.25, and at each power of two it doubles.",
            64.25: "That is the distance below 64; at each power of two it doubles.",
            64.0078125: "`eps` is the distance from 1 to the next number; at 64 it is 64 times as large.",
        },
        "h": {
            0.3: "Two bits of fraction: between 0.25 and 0.5 there are three numbers.",
            0.31: "Nearly: give all digits.",
            0.312: "Nearly: give all digits.",
            0.313: "Nearly: give all digits.",
            0.25: "Between 0.25 and 0.5 there are three numbers; one of them is nearer to 0.3.",
            0.375: "Between 0.25 and 0.5 there are three numbers; one of them is nearer to 0.3.",
        },
    }
    narrow = [
        name
        for name, value in (given.items() if isinstance(given, dict) else ())
        if getattr(getattr(value, "dtype", None), "itemsize", 4) < 4
    ]
    if narrow:
        raise Failed(
            f"What you gave for {', '.join(map(repr, narrow))} is itself of half precision or less, so it is rounded before it is looked "
            "at. Write a Python number."
        )
    checks.answers(given, {name: float(value) for name, value in asked.items()}, why)


exercise = Exercise(
    title="Predict eight numbers",
    stars=1,
    minutes=5,
    why="You know where a format's numbers lie, so a sum that stops and a constant that vanishes no longer surprise you.",
    hints=(
        "From 1 to 2 the distance is `eps`. From 2 to 4 it is twice that, from 4 to 8 four times, and so on.",
        "bfloat16 has eps 2^-7: from 256 = 2^8 on, the distance is 2. float16 has eps 2^-10: the same from 2048 on.",
        "A tie goes to the neighbor that is an even multiple of the distance: 256 is 128 times 2, 258 is 129 times 2.",
    ),
    solution=solution,
    check=check,
)
