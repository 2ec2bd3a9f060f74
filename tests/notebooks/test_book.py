"""The book itself: no guard has anything to say."""

import pytest

from tools.notebooks import guards
from tools.notebooks.places import Book

BOOK = Book()


@pytest.mark.parametrize("name", BOOK.names())
def test_chapter(name):
    assert guards.check_chapter(BOOK, name) == []


def test_beyond_the_chapters():
    assert guards.check_book(BOOK) == []
