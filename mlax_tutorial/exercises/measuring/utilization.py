"""Model FLOP utilization of a training step."""

import math

from mlax_tutorial.checking import Exercise, Failed


def solution(weights, layers, width, context, tokens, seconds, peak, devices):
    needed = tokens * (6 * weights + 12 * layers * width * context)
    return needed / (seconds * peak * devices)


# weights, layers, width, context, tokens, seconds, peak, devices
CASES = [
    (111e6, 12, 768, 1024, 16 * 1024, 0.0337, 811e12, 1),
    (7e9, 32, 4096, 4096, 2**20, 2.4, 400e12, 64),
    (1e6, 1, 64, 32, 4096, 0.5, 2e11, 1),
]


def check(utilization):
    for case in CASES:
        weights, layers, width, context, tokens, seconds, peak, devices = case
        names = ("weights", "layers", "width", "context", "tokens", "seconds", "peak", "devices")
        got, expected = float(utilization(*case)), solution(*case)
        if math.isclose(got, expected, rel_tol=1e-4):
            continue
        shown = {"input": dict(zip(names, case)), "expected": expected, "got": got}
        whole, attention = 6 * weights, 12 * layers * width * context
        time = seconds * peak * devices / tokens
        for wrong, says in [
            ((whole + attention) / time * devices, "All devices work on these tokens: divide by what all of them could do."),
            ((whole + attention) / 3 / time, "This is the forward pass alone. The backward pass needs twice as much again."),
            ((2 * weights + attention) / time, "This is the forward pass alone. The backward pass needs twice as much again."),
            ((whole + attention) * 4 / 3 / time, "This counts a forward pass twice. What remat computes again is no use to the model: it is left out."),
            (whole / time, "The products with the weights are right. The attention of each token to its context is missing."),
            (time / (whole + attention), "This is upside down: what is needed, over what could be done."),
            ((whole + attention) / time * 100, "A share is asked for, from 0 to 1."),
            ((whole + attention) / time / tokens, "FLOPs are counted for each token: multiply by the tokens."),
        ]:  # fmt: skip
            if math.isclose(got, wrong, rel_tol=1e-4):
                raise Failed(says, **shown)
        raise Failed(
            "Needed for a token: 6 FLOPs a weight, and 12 times layers, width and context for attention.",
            **shown,
        )


exercise = Exercise(
    title="Model FLOP utilization",
    stars=1,
    minutes=8,
    why="The share compares programs and machines of any kind, since it asks only what the model needs, and not what was computed.",
    hints=(
        "A token needs 6 FLOPs a weight in a training step: 2 forward, 4 backward. Attention adds 12 times layers, width and context.",
        "The machine could do `seconds * peak * devices` FLOPs meanwhile.",
    ),
    solution=solution,
    check=check,
)
