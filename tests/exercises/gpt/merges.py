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


@answers.wrong("as two strings")
def pieces_made(words, count):
    return ["".join(pair) for pair in solution(words, count)]


@answers.wrong("than were asked for")
def too_many(words, count):
    return solution(words, count + 1)


def variant(counts=lambda pieces: zip(pieces, pieces[1:]), order=lambda pair: pair, merge=None):
    """An answer that counts pairs, breaks ties or merges in its own way."""

    def merges(words, count):
        split, found = {word: tuple(word) for word in words}, []
        while len(found) < count:
            pairs = collections.Counter()
            for word, pieces in split.items():
                for pair in counts(pieces):
                    pairs[pair] += words[word]
            if not pairs:
                break
            found.append(min(pairs, key=lambda pair: (-pairs[pair], order(pair))))
            split = {word: merge(pieces, found[-1]) for word, pieces in split.items()}
        return found

    return merges


def by_replace(pieces, pair):
    return tuple(" ".join(pieces).replace(" ".join(pair), "".join(pair)).split())


def by_marks(pieces, pair):
    """Of whole pieces only, from the left."""
    text = "".join(f"<{piece}>" for piece in pieces)
    return tuple(text.replace("<{}><{}>".format(*pair), f"<{''.join(pair)}>")[1:-1].split("><"))


def from_the_right(pieces, pair):
    return tuple(piece[::-1] for piece in by_marks([piece[::-1] for piece in pieces[::-1]], [piece[::-1] for piece in pair[::-1]]))[::-1]  # fmt: skip


answers.wrong("merged from the left")(variant(merge=from_the_right))
answers.wrong("a piece that ends like one of the pair")(variant(merge=by_replace))
answers.wrong("occurs twice in a word")(
    variant(counts=lambda pieces: set(zip(pieces, pieces[1:])), merge=by_marks)
)
answers.wrong("the shorter first piece")(variant(order="".join, merge=by_marks))
answers.right(variant(merge=by_marks))


@answers.wrong("Your function changes `words`")
def empties(words, count):
    found = solution(words, count)
    words.clear()
    return found


@answers.wrong("A list of pairs of strings")
def how_many(words, count):
    return len(solution(words, count))


@answers.right
def an_iterator(words, count):
    return map(list, solution(words, count))


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
