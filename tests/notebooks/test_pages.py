"""The status page and the README's table say what the record says."""

import json

import pytest

from tools.notebooks import pages, record
from tools.notebooks.places import Problem

from .conftest import edit_record

RUN = {
    "chapter": "sample",
    "device": "TPU v5 lite",
    "jax": "0.7.2",
    "python": "3.12",
    "date": "2026-11-21",
    "seconds": 31.4,
}


def row(text: str, start: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_of_the_status_page(book):
    edit_record(
        book,
        seconds=10,
        python="3.13",
        jax="0.12.0",
        date="2026-11-20",
        exercises=["a", "b"],
        hardware="CPU, 2 cores",
    )
    (book.root / "_toc.yml").write_text("chapters:\n  - file: book/sample\n")
    assert row(pages.status(book), "[1.") == [
        "[1. A small chapter](sample.ipynb)",
        "10 s",
        "CPU, 2 cores",
        "Python 3.13, JAX 0.12.0",
        "2026-11-20",
        "2",
        "X1",
        "not yet run on a TPU",
    ]
    assert row(pages.status(book), "X1") == [
        "X1",
        "a third is no decimal",
        "[1. A small chapter](sample.ipynb)",
    ]


def test_chapters_stand_in_the_order_of_the_contents(book):
    for name, number in (("welcome", None), ("second", 2), ("aside", None)):
        book.source(name).write_text(f"# {name}\n")
        record.store(book, name, record.load(book)["sample"] | {"title": name, "number": number})
    (book.root / "_toc.yml").write_text(
        "root: book/welcome\nchapters:\n- file: book/second\n- file: book/sample\n"
    )
    assert [name for name, _ in pages.chapters(book)] == ["welcome", "second", "sample", "aside"]


def test_a_page_outside_the_contents_links_to_colab(built):
    url = "https://colab.research.google.com/github/someone/some-book/blob/v1/book/sample.ipynb"
    assert row(pages.status(built), "[1.")[0] == f"[1. A small chapter]({url})"


def test_a_run_on_a_tpu_is_told(book):
    book.devices.write_text(json.dumps(RUN) + "\n\n" + json.dumps(RUN | {"device": "NVIDIA H200"}) + "\n")
    text = pages.status(book)
    assert row(text, "[1.")[-1] == "TPU v5 lite, 2026-11-21"
    assert row(text, "1. A small chapter | NVIDIA") == [
        "1. A small chapter",
        "NVIDIA H200",
        "35 s",
        "Python 3.12, JAX 0.7.2",
        "2026-11-21",
    ]


@pytest.mark.parametrize(
    "line, said",
    [
        ("{'chapter': 'sample'}", "devices.jsonl, line 2: not a JSON object"),
        ("[1]", "devices.jsonl, line 2: 'chapter' is missing"),
        (json.dumps({key: RUN[key] for key in RUN if key != "jax"}), "'jax' is missing or of another type"),
        (json.dumps(RUN | {"seconds": "31"}), "'seconds' is missing or of another type"),
        (json.dumps(RUN | {"chapter": "sampel"}), "no chapter 'sampel'"),
    ],
)
def test_a_line_pasted_wrongly(book, line, said):
    book.devices.write_text(json.dumps(RUN) + "\n" + line + "\n")
    with pytest.raises(Problem) as caught:
        pages.status(book)
    assert said in str(caught.value)
    assert pages.out_of_date(book) == [str(caught.value)]


def test_the_readme_keeps_its_own_words(book):
    text = book.readme.read_text()
    assert text.startswith("# Title\n\n<!-- chapters:begin -->\n")
    assert text.endswith("<!-- chapters:end -->\n\nThe end.\n")
    assert row(text, "1.") == [
        "1. A small chapter",
        "a small chapter for the tests of the notebook tool",
        "[open in Colab](https://colab.research.google.com/github/someone/some-book/blob/v1/book/sample.ipynb)",
    ]
    assert pages.write(book) == []


def test_a_readme_without_a_place_is_left_alone(book):
    book.readme.write_text("# Title\n")
    assert pages.write(book) == []
    assert pages.out_of_date(book) == []
    assert book.readme.read_text() == "# Title\n"
