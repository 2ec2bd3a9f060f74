"""A roof from measured kernels, which predicts others."""

import math

from mlax_tutorial.checking import Exercise, Failed


def solution(measured):
    rate = max(flops / seconds for flops, _, seconds in measured)
    bandwidth = max(size / seconds for _, size, seconds in measured)

    def predict(flops, size):
        return max(flops / rate, size / bandwidth)

    return predict


# Of a machine that is made up: operations, bytes, seconds. It reaches some 220 GFLOP/s and 12 GB/s.
PRODUCT = (2 * 1024**3, 3 * 4 * 1024**2, 0.0098)
COPY = (2**24, 2 * 4 * 2**24, 0.0112)
TALL = (
    2 * 4096 * 256 * 64,
    4 * (4096 * 256 + 256 * 64 + 4096 * 64),
    0.00078,
)  # the third kernel, not in the roof
MACHINES = {
    "two kernels": [PRODUCT, COPY],
    "the copy first": [COPY, PRODUCT],
    "a slow one besides": [PRODUCT, (10**6, 10**6, 0.5), COPY],
    "larger ones that are slower": [(10**12, 10**7, 60.0), PRODUCT, COPY, (10**3, 10**10, 10.0)],
}


def check(roofline):
    kernels = (PRODUCT, COPY, TALL)
    for name, measured in MACHINES.items():
        predict = roofline(list(measured))
        if not callable(predict):
            raise Failed(
                "Return a function of FLOPs and bytes, which gives seconds.", input=name, got=predict
            )
        rate = max(flops / seconds for flops, _, seconds in measured)
        bandwidth = max(size / seconds for _, size, seconds in measured)
        arithmetic = [flops / rate for flops, _, _ in kernels]
        memory = [size / bandwidth for _, size, _ in kernels]
        expected = list(map(max, arithmetic, memory))
        # As floats: an answer of JAX cannot take integers beyond int32.
        given = [predict(float(flops), float(size)) for flops, size, _ in kernels]
        if any(seconds is None for seconds in given):
            raise Failed(
                "The function that you returned gives None: is a `return` missing in it?", input=name
            )
        got = list(map(float, given))
        if _near(got, expected):
            continue
        shown = {"input": {"measured": measured}, "expected": expected, "got": got}
        for wrong, says in [
            (map(sum, zip(arithmetic, memory)), "This adds both times. The roofline lets arithmetic and memory run side by side: the longer of the two counts."),
            (map(min, arithmetic, memory), "This is the shorter of the two times. A kernel is done when both its arithmetic and its traffic are."),
            (arithmetic, "This counts the arithmetic alone. A copy does next to none, and takes its time."),
            (memory, "This counts the bytes alone. A large product reads few, and takes its time."),
            ((flops / time for (flops, *_), time in zip(kernels, expected)), "This is a rate: FLOPs a second. Seconds are asked for."),
        ]:  # fmt: skip
            if _near(got, wrong):
                raise Failed(says, **shown)
        raise Failed(
            "The roof is made of the best rate and the best bandwidth that any kernel reached, in whatever order they come: neither means nor the first and the last, nor those of the largest kernels.",
            **shown,
        )


def _near(got, expected):
    return all(math.isclose(one, other, rel_tol=1e-4) for one, other in zip(got, expected, strict=True))


exercise = Exercise(
    title="A roofline of your own",
    stars=2,
    minutes=12,
    why="Two measured kernels say what a machine can do, and a third that waits for nothing else is predicted within a factor of 2, without being run.",
    hints=(
        "The roof has two numbers: the best FLOPs a second, and the best bytes a second, of all kernels that were measured.",
        "A kernel takes the longer of two times: its FLOPs at the best rate, and its bytes at the best bandwidth.",
    ),
    solution=solution,
    check=check,
)
