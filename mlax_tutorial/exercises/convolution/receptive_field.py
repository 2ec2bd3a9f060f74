"""How many inputs an output sees, through a stack of layers."""

import numbers

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.describe import describe


def solution(layers):
    field, apart = 1, 1
    for size, stride, dilation in layers:
        field += dilation * (size - 1) * apart
        apart *= stride
    return field


CASES = [
    [(3, 1, 1)],
    [(3, 1, 1), (3, 1, 1)],
    [(3, 2, 1), (3, 1, 1)],
    [(3, 1, 1), (3, 2, 1)],
    [(3, 1, 2), (3, 1, 4)],
    [(5, 2, 1), (2, 2, 1), (3, 1, 2), (1, 3, 1), (4, 1, 1)],
    [(7, 2, 1), (3, 2, 1)] + [(3, 1, 1)] * 4 + [(3, 2, 1)] + [(3, 1, 1)] * 3,
    [],
]


def _sum_of_sizes(layers):
    return sum(size for size, _, _ in layers)


def _no_strides(layers):
    return 1 + sum(dilation * (size - 1) for size, _, dilation in layers)


def _no_dilation(layers):
    return solution([(size, stride, 1) for size, stride, _ in layers])


def _own_stride(layers):
    field, apart = 1, 1
    for size, stride, dilation in layers:
        apart *= stride
        field += dilation * (size - 1) * apart
    return field


def _backwards(layers):
    return solution(layers[::-1])


def _last_stride_only(layers):
    field, before = 1, 1
    for size, stride, dilation in layers:
        field, before = field + dilation * (size - 1) * before, stride
    return field


def _product(layers):
    field = 1
    for size, _, _ in layers:
        field *= size
    return field


KNOWN = [
    (_sum_of_sizes, "This adds the sizes. Windows of neighboring outputs overlap: each layer adds its size less one."),
    (_product, "This multiplies the sizes. Windows of neighboring outputs overlap: each layer adds its size less one, times a distance."),
    (_no_strides, "This leaves the strides out: after a stride of 2, neighbors are two inputs apart, and each further step counts double."),
    (_no_dilation, "This leaves the dilation out: a window of `size` spans `dilation * (size - 1) + 1`."),
    (_own_stride, "A layer's own stride does not widen its own window, only those of the layers after it: multiply after you add."),
    (_backwards, "This goes through the layers in the wrong order: the first one sees the input."),
    (_last_stride_only, "Strides multiply: after two strides of 2, neighbors are four inputs apart."),
]  # fmt: skip


def check(receptive_field):
    got = []
    for case in CASES:
        layers = list(case)
        found = receptive_field(layers)
        if layers != case:
            raise Failed(
                "Your function changes the list that it is given: whoever calls it twice gets another result. Read the list, and leave it as it is.",
                input={"layers": case},
                got=layers,
            )
        checks.returned(found)
        if not isinstance(found, numbers.Integral):
            raise Failed(
                f"One integer is asked for, got {describe(found)}.", input={"layers": case}, got=found
            )
        got.append(int(found))
    for case, found in zip(CASES, got):
        if found != solution(case):
            known = next((text for wrong, text in KNOWN if got == [wrong(case) for case in CASES]), "")
            empty = "No layers at all: an output is the input, and sees one." if not case else ""
            raise Failed(
                known or empty or "The receptive field is wrong.",
                input={"layers": case},
                expected=solution(case),
                got=found,
            )


exercise = Exercise(
    title="The receptive field of a stack",
    stars=2,
    minutes=10,
    why="What lies outside of the receptive field cannot be learned, however long one trains: compute it before you choose the depth.",
    hints=(
        "Begin with a field of 1 and neighbors 1 apart. A layer adds the distance between the first and the last element of its window, "
        "measured in inputs.",
        "`field += dilation * (size - 1) * apart`, and then `apart *= stride`.",
    ),
    solution=solution,
    check=check,
)
