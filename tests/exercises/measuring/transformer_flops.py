"""Answers to the exercise measuring.transformer_flops."""

from mlax_tutorial.exercises.measuring.transformer_flops import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("a product and a sum for each term")
def half(*case):
    return solution(*case) / 2


@answers.wrong("what a training step costs")
def training(*case):
    return 3 * solution(*case)


@answers.wrong("The batch is missing")
def of_one(layers, width, hidden, vocabulary, length, batch):
    return solution(layers, width, hidden, vocabulary, length, 1)


@answers.wrong("Attention is missing")
def two_for_each_weight(layers, width, hidden, vocabulary, length, batch):
    weights = layers * (4 * width**2 + 2 * width * hidden) + vocabulary * width
    return 2 * weights * batch * length


@answers.wrong("those behind the mask as well")
def scores_only(layers, width, hidden, vocabulary, length, batch):
    return solution(layers, width, hidden, vocabulary, length, batch) - 2 * layers * batch * length**2 * width


@answers.wrong("The logits are missing")
def blocks_only(layers, width, hidden, vocabulary, length, batch):
    return solution(layers, width, hidden, 0, length, batch)


@answers.wrong("To look up an embedding is no arithmetic")
def embedding(layers, width, hidden, vocabulary, length, batch):
    return solution(layers, width, hidden, 2 * vocabulary, length, batch)


@answers.wrong("There are four projections")
def three(layers, width, hidden, vocabulary, length, batch):
    return solution(layers, width, hidden, vocabulary, length, batch) - layers * 2 * batch * length * width**2


@answers.wrong("which need not be four times the width")
def four_times(layers, width, hidden, vocabulary, length, batch):
    return solution(layers, width, 4 * width, vocabulary, length, batch)


@answers.wrong("then the logits")
def logits_in_each_layer(layers, width, hidden, vocabulary, length, batch):
    return solution(layers, width, hidden, layers * vocabulary, length, batch)


# Right ones of unusual style


@answers.right
def by_weights(layers, width, hidden, vocabulary, length, batch):
    weights = layers * (4 * width**2 + 2 * width * hidden) + vocabulary * width
    return 2.0 * batch * length * (weights + 2 * layers * length * width)
