"""Learn byte pairs: the most frequent pair becomes a token, again and again."""

import collections

from mlax_tutorial.checking import Exercise, Failed, checks


def solution(words, count):
    split = {word: list(word) for word in words}
    found = []
    while len(found) < count:
        pairs = collections.Counter()
        for word, pieces in split.items():
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += words[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        found.append(best)
        for pieces in split.values():
            i = 0
            while i < len(pieces) - 1:
                if (pieces[i], pieces[i + 1]) == best:
                    pieces[i : i + 2] = [best[0] + best[1]]
                i += 1
    return found


EXAMPLES = {
    "one word": ({"ababab": 1}, 2),
    "a pair that overlaps itself": ({"aaaa": 1, "aab": 2}, 3),
    "counts of words": ({"low": 5, "lower": 2, "newest": 6, "widest": 3}, 6),
    "equally frequent": ({"ba": 2, "ab": 2, "cd": 2}, 3),
    "fewer pairs than asked for": ({"hi": 3, "a": 9}, 5),
    "words that share pieces": ({"the": 9, "then": 4, "there": 3, "hen": 2, "tether": 1}, 7),
    "merged from the left": ({"aaa": 1}, 2),
    "a pair that occurs twice in a word": ({"abab": 2, "cd": 3}, 3),
    "a piece that ends like one of the pair": ({"ca": 5, "ab": 4, "cab": 1}, 3),
    "equally frequent, the shorter first piece sorts first": ({"aba": 2, "ac": 2, "ab": 1}, 3),
}


def _without_counts(words, count):
    return solution(dict.fromkeys(words, 1), count)


def _once(words, count):
    """Counts pairs once, at the beginning."""
    pairs = collections.Counter()
    for word, times in words.items():
        for pair in zip(word, word[1:]):
            pairs[pair] += times
    return sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:count]


def check(merges):
    found, tried = {}, []
    for name, (words, count) in EXAMPLES.items():
        given = dict(words)
        got = merges(given, count)
        checks.returned(got)
        if given != words:
            raise Failed("Your function changes `words`. Work on a copy.", input=words, got=given)
        try:
            pairs = list(got)
            if any(isinstance(pair, str) for pair in pairs):
                raise Failed("Give each pair as two strings, not what they make together.", input=words, got=pairs)  # fmt: skip
            got = [tuple(pair) for pair in pairs]
        except TypeError:
            raise Failed("A list of pairs of strings is asked for.", input=words, got=got) from None
        found[name] = got
        tried.append(got)
    wanted = {name: solution(*example) for name, example in EXAMPLES.items()}
    if found == wanted:
        return
    for wrong, said in (
        (_without_counts, "Each word counts once: a pair in a word that occurs five times occurs five times."),
        (_once, "The pairs are counted once, at the beginning. After each merge there are new ones: count again."),
        (lambda words, count: [(a + b,) for a, b in solution(words, count)], "Give each pair as two strings, not what they make together."),
    ):  # fmt: skip
        if tried == [wrong(*example) for example in EXAMPLES.values()]:
            raise Failed(said)
    for name, (words, count) in EXAMPLES.items():
        if found[name] == wanted[name]:
            continue
        shown = {"input": {"words": words, "count": count}, "expected": wanted[name], "got": found[name]}
        if len(found[name]) > len(wanted[name]):
            raise Failed(f"More pairs than there are, or than were asked for ({name}).", **shown)
        if name == "equally frequent":
            raise Failed("Of equally frequent pairs take the one that sorts first.", **shown)
        place = next((i for i, (a, b) in enumerate(zip(found[name], wanted[name])) if a != b), len(found[name]))  # fmt: skip
        raise Failed(f"From pair {place} on it differs ({name}).", **shown)


exercise = Exercise(
    title="Learn byte pairs",
    stars=3,
    minutes=20,
    why="That is all that a tokenizer learns: the order of its merges, from frequencies alone.",
    hints=(
        "Keep for each word a list of its pieces, at first its characters. `collections.Counter()` counts pairs: `zip(pieces, pieces[1:])` has them, and each counts as often as its word.",
        "`min(pairs, key=lambda pair: (-pairs[pair], pair))` is the most frequent one; of several, the one that sorts first.",
        "To merge, go through the pieces from the left: `pieces[i : i + 2] = [first + second]` where the two are the pair, and then go on one further.",
    ),
    solution=solution,
    check=check,
)
