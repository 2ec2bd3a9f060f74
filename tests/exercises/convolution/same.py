"""Answers to the exercise convolution.same."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.exercises.convolution.same import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("puts the odd zero before")
def lower(length, size, stride, dilation):
    return solution(length, size, stride, dilation)[::-1]


@answers.wrong("as one does in PyTorch")
def symmetric(length, size, stride, dilation):
    return (dilation * (size - 1) // 2,) * 2


@answers.wrong("the last window may end earlier")
def no_stride(length, size, stride, dilation):
    zeros = dilation * (size - 1)
    return zeros // 2, zeros - zeros // 2


@answers.wrong("leaves the dilation out")
def no_dilation(length, size, stride, dilation):
    zeros = max((-(-length // stride) - 1) * stride + size - length, 0)
    return zeros // 2, zeros - zeros // 2


@answers.wrong("less than none makes no sense")
def negative(length, size, stride, dilation):
    zeros = (-(-length // stride) - 1) * stride + dilation * (size - 1) + 1 - length
    return zeros // 2, zeros - zeros // 2


@answers.wrong("rounded *up*")
def rounds_down(length, size, stride, dilation):
    zeros = max((length // stride - 1) * stride + dilation * (size - 1) + 1 - length, 0)
    return zeros // 2, zeros - zeros // 2


@answers.wrong("divide with `//`")
def floats(length, size, stride, dilation):
    zeros = sum(solution(length, size, stride, dilation))
    return zeros / 2, zeros / 2


@answers.wrong("convert with `int()`")
def arrays(length, size, stride, dilation):
    return tuple(map(jnp.asarray, solution(length, size, stride, dilation)))


@answers.wrong()
def dilated_size(length, size, stride, dilation):  # dilation * size in place of dilation * (size - 1) + 1
    return solution(length, dilation * size, stride, 1)


@answers.wrong()
def only_the_parity(length, size, stride, dilation):
    return (0, 1) if length % 2 == 0 else (1, 1)


@answers.wrong("A pair `(before, after)`")
def total(length, size, stride, dilation):
    return sum(solution(length, size, stride, dilation))


@answers.right
def by_jax(length, size, stride, dilation):
    span = dilation * (size - 1) + 1
    return lax.padtype_to_pads((length,), (span,), (stride,), "SAME")[0]


@answers.right
def by_remainder(length, size, stride, dilation):
    span = (size - 1) * dilation + 1
    zeros = max(span - (length % stride or stride), 0)
    return [zeros // 2, (zeros + 1) // 2]


@answers.right
def by_array(length, size, stride, dilation):
    zeros = max((-(-length // stride) - 1) * stride + dilation * (size - 1) + 1 - length, 0)
    return np.array([zeros // 2, zeros - zeros // 2])


@answers.right
def by_numpy(length, size, stride, dilation):
    zeros = np.maximum((math.ceil(length / stride) - 1) * stride + dilation * size - dilation + 1 - length, 0)
    return np.floor_divide(zeros, 2), zeros - zeros // 2
