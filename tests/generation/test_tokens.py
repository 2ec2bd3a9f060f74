"""Byte pairs: what is encoded comes back, and training is the same each time."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlax_tutorial import data
from mlax_tutorial.tokens import BytePairs

TEXT = "the cat and the hat; the bat, and that.\n\n  thé 🙂 the"
TOKENS = BytePairs.train(TEXT, 300)


@given(st.text(st.characters(exclude_categories=()), max_size=30))
def test_any_text_comes_back(text):
    assert TOKENS.decode(TOKENS.encode(text)) == text


def test_pairs_in_order_of_frequency_and_then_of_ids():
    tokens = BytePairs.train("ab cd ab cd", 258)
    assert tokens.merges == ((ord("a"), ord("b")), (ord("c"), ord("d")))  # spaces come last
    assert BytePairs.train("aaaa", 300).merges == ((97, 97), (256, 256))
    assert BytePairs.train("", 300).size == 256


# Of the package tokenizers 0.23.3: BPE, trained on the same words with ByteLevel's alphabet.
TIED = "größe!? \x00\x7f 日本 🙂 aZ~¡\xadÿ\t\n\nab ba"  # 30 pairs, almost all as frequent
MERGES = (
    (33, 63), (97, 90), (97, 98), (98, 97), (103, 114), (126, 194), (161, 194), (165, 230), (182, 195), (195, 191),
    (195, 264), (230, 151), (240, 159), (0, 127), (9, 10), (32, 257), (32, 259), (32, 267), (32, 268), (32, 269),
    (153, 130), (156, 172), (159, 101), (260, 266), (261, 262), (263, 277), (273, 281), (274, 276), (279, 278), (280, 173),
)  # fmt: skip


def test_of_equally_frequent_pairs_it_takes_what_tokenizers_takes():
    assert BytePairs.train(TIED, 286).merges == MERGES


def slowly(text, size):
    """One word, with every pair counted anew each time."""
    ids, merges = list(text.encode()), []
    while 256 + len(merges) < size and len(ids) > 1:
        pairs = list(zip(ids, ids[1:]))
        best = min(set(pairs), key=lambda pair: (-pairs.count(pair), pair))
        merges.append(best)
        made, i = [], 0
        while i < len(ids):
            found = tuple(ids[i : i + 2]) == best
            made.append(255 + len(merges) if found else ids[i])
            i += 1 + found
        ids = made
    return tuple(merges), ids


def test_equals_counting_anew():
    text = "abcabdabcabcabdcacbabcbabdbcabaabbaccabcab"
    tokens = BytePairs.train(text, 270)
    assert (tokens.merges, tokens.encode(text)) == slowly(text, 270)


def test_saved_and_loaded(tmp_path):
    TOKENS.save(tmp_path / "tokens.json")
    assert BytePairs.load(tmp_path / "tokens.json") == TOKENS
    assert [path.name for path in tmp_path.iterdir()] == ["tokens.json"]


def test_a_model_may_write_bytes_that_are_no_text():
    assert TOKENS.decode([0xFF, ord("a")]) == "\ufffda"


@pytest.mark.parametrize("wrong", [-1, 10_000])
def test_an_id_that_is_none_is_refused(wrong):
    with pytest.raises(
        ValueError, match=rf"^BytePairs.decode: ids are from 0 to {TOKENS.size - 1}, got {wrong}\."
    ):
        TOKENS.decode([65, wrong])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: BytePairs.train("a", 255), "train: size must be an integer of at least 256, got 255"),
        (lambda: BytePairs.train("a", 300.0), r"train: size must be an integer of at least 256, got 300\.0"),
        (lambda: BytePairs.train(b"abc", 300), "train: text must be one str, got bytes"),
        (lambda: BytePairs.train(["a", "b"], 300), "train: text must be one str, got list"),
        (lambda: TOKENS.encode(None), "encode: text must be one str, got NoneType"),
        (lambda: TOKENS.decode([1.7]), "decode: ids must be one axis of integers, got a list of length 1"),
        (lambda: TOKENS.decode([[1, 2]]), "decode: ids must be one axis of integers, got a list of length 1"),
        (lambda: TOKENS.decode(5), "decode: ids must be one axis of integers, got int 5"),
        (lambda: TOKENS.decode("abc"), "decode: ids must be one axis of integers, got str 'abc'"),
    ],
)
def test_what_is_no_text_and_no_ids_is_refused(wrong, message):
    with pytest.raises(ValueError, match=rf"^BytePairs\.{message}\."):
        wrong()


@pytest.mark.parametrize("wrong", [[(1, 2)], ((1, 2, 3),), ((256, 1),), ((-1, 1),), ((1.0, 2),)])
def test_merges_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="^BytePairs: merges must be a tuple of pairs of ids"):
        BytePairs(wrong)


@pytest.mark.parametrize("text", ['{"merges": [[1, 2], [3]]}', '{"x": 1}', "[1]", "hello", '{"merges": 1}'])
def test_a_file_that_holds_no_tokenizer_is_refused(tmp_path, text):
    (tmp_path / "tokens.json").write_text(text)
    with pytest.raises(ValueError, match=r"^BytePairs\.load: .*tokens\.json must be a file that save wrote"):
        BytePairs.load(tmp_path / "tokens.json")


def test_a_book_compresses():
    text = "\n".join(data.jargon())[:100_000]
    tokens = BytePairs.train(text, 512)
    ids = tokens.encode(text)
    assert len(ids) < 0.6 * len(text.encode()) and max(ids) < tokens.size and tokens.decode(ids) == text


def test_two_writers_of_one_file(tmp_path):
    path, pairs = (
        tmp_path / "pairs.json",
        [BytePairs.train("low lower " * 9, size=260), BytePairs.train("newer " * 9, size=259)],
    )
    errors = []

    def save(one):
        try:
            for _ in range(20):
                one.save(path)
                assert BytePairs.load(path) in pairs
        except Exception as error:
            errors.append(error)

    writers = [threading.Thread(target=save, args=(one,)) for one in pairs]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not errors and [file.name for file in tmp_path.iterdir()] == ["pairs.json"]
