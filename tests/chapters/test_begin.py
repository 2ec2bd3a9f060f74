"""Where should I begin?: of each question, the choice that is marked as right is what the cell printed."""

import re

import nbformat
import pytest

from tools.notebooks import fences
from tools.notebooks.places import Book

BOOK = Book()
TEXT = BOOK.source("begin").read_text(encoding="utf-8")
QUESTIONS = fences.of_kind(re.sub(r"^```.*?^```$", "", TEXT, flags=re.M | re.S), "predict")
NUMBERS = {"one": "1", "two": "2", "three": "3"}


def test_there_is_one_question_for_each_chapter_of_part_i():
    from mlax_tutorial.exercises import catalog

    titles = list(catalog.TITLES.values())
    first = titles.index("Arrays")
    assert [question.title for question in QUESTIONS] == titles[first : first + 12]


@pytest.mark.parametrize("number", range(12), ids=[question.title for question in QUESTIONS])
def test_the_marked_choice_is_what_comes_out(number):
    question = QUESTIONS[number]
    (right,) = re.findall(r"^- \[x\] (.*)$", question.text, re.M)
    assert len(re.findall(r"^- \[ \] ", question.text, re.M)) == 2
    notebook = nbformat.read(BOOK.notebook("begin"), as_version=4)
    cells = [cell for cell in notebook.cells if "predict" in cell.metadata.get("tags", [])]
    (output,) = cells[number].outputs
    printed = output.text.strip()
    if code := re.match(r"`(.*)`", right):
        assert printed == code[1]
    elif "error" in right:
        assert printed.endswith("Error")
    else:
        assert printed == NUMBERS[right.partition(" ")[0]]
