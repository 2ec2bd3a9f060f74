"""Answers to the exercise measuring.utilization."""

import numpy as np

from mlax_tutorial.exercises.measuring.utilization import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("divide by what all of them could do")
def one_device(weights, layers, width, context, tokens, seconds, peak, devices):
    return solution(weights, layers, width, context, tokens, seconds, peak, 1)


@answers.wrong("the forward pass alone")
def forward(weights, layers, width, context, tokens, seconds, peak, devices):
    return tokens * (2 * weights + 4 * layers * width * context) / (seconds * peak * devices)


@answers.wrong("counts a forward pass twice")
def with_remat(weights, layers, width, context, tokens, seconds, peak, devices):
    return tokens * (8 * weights + 16 * layers * width * context) / (seconds * peak * devices)


@answers.wrong("is missing")
def weights_only(weights, layers, width, context, tokens, seconds, peak, devices):
    return 6 * weights * tokens / (seconds * peak * devices)


@answers.wrong("upside down")
def inverse(*case):
    return 1 / solution(*case)


@answers.wrong("A share is asked for")
def percent(*case):
    return 100 * solution(*case)


@answers.wrong("multiply by the tokens")
def of_a_token(weights, layers, width, context, tokens, seconds, peak, devices):
    return (6 * weights + 12 * layers * width * context) / (seconds * peak * devices)


# Right ones of unusual style


@answers.right
def by_parts(weights, layers, width, context, tokens, seconds, peak, devices):
    forward = 2 * weights + 4 * layers * width * context
    backward = 2 * forward
    return np.float64(forward + backward) * (tokens / devices) / seconds / peak
