"""How many zeros "SAME" puts before and after an axis."""

import numbers

import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.describe import describe


def solution(length, size, stride, dilation):
    outputs = -(-length // stride)  # rounded up
    wanted = (outputs - 1) * stride + dilation * (size - 1) + 1
    zeros = max(wanted - length, 0)
    return zeros // 2, zeros - zeros // 2


# length, size, stride, dilation
CASES = [
    (225, 3, 2, 1), (7, 5, 1, 1), (224, 3, 2, 1), (28, 4, 1, 1), (10, 3, 1, 4), (9, 3, 2, 3), (11, 2, 4, 1), (8, 1, 3, 1),
    (5, 5, 5, 1), (1, 3, 2, 1),
]  # fmt: skip


def _before(*case):
    return solution(*case)[::-1]


def _symmetric(length, size, stride, dilation):
    return (dilation * (size - 1) // 2,) * 2


def _without_stride(length, size, stride, dilation):
    return solution(length, size, 1, dilation)


def _without_dilation(length, size, stride, dilation):
    return solution(length, size, stride, 1)


def _negative(length, size, stride, dilation):
    zeros = (-(-length // stride) - 1) * stride + dilation * (size - 1) + 1 - length
    return zeros // 2, zeros - zeros // 2


def _rounded_down(length, size, stride, dilation):
    zeros = max((length // stride - 1) * stride + dilation * (size - 1) + 1 - length, 0)
    return zeros // 2, zeros - zeros // 2


KNOWN = [
    (_before, 'This puts the odd zero before: `"SAME"` puts it after. (`"SAME_LOWER"` does what you do.)'),
    (_symmetric, "This pads for a stride of 1, the same on both sides, as one does in PyTorch. The stride decides how many zeros are needed."),
    (_without_stride, "This pads for a stride of 1: with a longer one, the last window may end earlier."),
    (_without_dilation, "The window spans `dilation * (size - 1) + 1` elements; this leaves the dilation out."),
    (_negative, "Where the stride is longer than the window, no zeros are needed: less than none makes no sense."),
    (_rounded_down, "The number of outputs is `length / stride` rounded *up*; this rounds down."),
]  # fmt: skip


def check(same):
    got = [same(*case) for case in CASES]
    got = [tuple(pair) if isinstance(pair, np.ndarray) and pair.ndim else pair for pair in got]
    for pair in got:
        checks.returned(pair, "before", "after", lists=True, asked="A pair `(before, after)` is asked for.")
        for number in pair:
            if not isinstance(number, numbers.Integral):  # NumPy's, too: a shape takes them
                mend = "divide with `//`" if isinstance(number, float) else "convert with `int()`"
                raise Failed(
                    f"The padding must be integers, since shapes depend on it, got {describe(number)}: {mend}."
                )
    got = [tuple(map(int, pair)) for pair in got]
    for case, pair in zip(CASES, got):
        if pair != solution(*case):
            said = next(
                (text for wrong, text in KNOWN if got == [wrong(*case) for case in CASES]),
                "The padding is wrong.",
            )
            shown = dict(zip(("length", "size", "stride", "dilation"), case))
            raise Failed(said, input=shown, expected=solution(*case), got=pair)


exercise = Exercise(
    title='The padding of "SAME"',
    stars=1,
    minutes=6,
    why="Shapes are plain Python numbers, known before anything runs; so is the padding, and you can compute it by hand when you port a network.",
    hints=(
        "There are `outputs = -(-length // stride)` windows. The last one begins at `(outputs - 1) * stride`. Where does it end?",
        "It spans `dilation * (size - 1) + 1` elements. If it ends beyond `length`, the rest is zeros; `zeros // 2` of them go before.",
    ),
    solution=solution,
    check=check,
)
