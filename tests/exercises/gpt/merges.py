"""Answers to the exercise gpt.merges."""

import collections

from mlax_tutorial.exercises.gpt.merges import exercise, solution
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("Each word counts once")
def unweighted(words, count):
    return solution(dict.fromkeys(words, 1), count)


@answers.wrong("counted once, at the beginning")
def never_again(words, count):
    pairs = collections.Counter()
    for word, times in words.items():
        for pair in zip(word, word[1:]):
            pairs[pair] += times
    return sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:count]


@answers.wrong("the one that sorts first")
def last_of_equals(words, count):
    if sorted(words) == ["ab", "ba", "cd"]:
        return solution(words, count)[::-1]
    return solution(words, count)


@answers.wrong("as two strings")
def joined(words, count):
    return [(a + b,) for a, b in solution(words, count)]


@answers.wrong("than were asked for")
def too_many(words, count):
    return solution(words, count + 1)


@answers.wrong("Your function changes `words`")
def empties(words, count):
    found = solution(words, count)
    words.clear()
    return found


@answers.wrong("`return` missing")
def nothing(words, count):
    solution(words, count)


@answers.right
def by_tuples(words, count):
    texts = [(tuple(word), times) for word, times in words.items()]
    found = []
    for _ in range(count):
        pairs = {}
        for pieces, times in texts:
            for i in range(len(pieces) - 1):
                pairs[pieces[i : i + 2]] = pairs.get(pieces[i : i + 2], 0) + times
        if not pairs:
            return found
        best = sorted(pairs, key=lambda pair: (-pairs[pair], pair))[0]
        found.append(best)
        merged = []
        for pieces, times in texts:
            i, made = 0, []
            while i < len(pieces):
                if pieces[i : i + 2] == best:
                    made.append("".join(best))
                    i += 2
                else:
                    made.append(pieces[i])
                    i += 1
            merged.append((tuple(made), times))
        texts = merged
    return found
