"""The generated pages and the README's table say what the record, the notebooks and the exercises say."""

import json

import nbformat
import pytest

from mlax_tutorial.exercises import catalog
from tools.notebooks import claims, exercises, guards, pages, record, sources, tables
from tools.notebooks.places import Book, Problem

from .conftest import edit_record, read, write

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
        "",
        "X1",
        "not yet run on a TPU",
    ]


def test_the_status_page_says_how_many_mutants_are_noticed(book):
    folder = exercises.folder(book, "sample")
    folder.mkdir(parents=True)
    lines = [
        f"from mlax_tutorial.exercises.sample.{name} import exercise as {name}\n" for name in ("one", "two")
    ]
    (folder / "__init__.py").write_text("".join(lines))
    for name in ("one", "two"):
        (folder / f"{name}.py").write_text("exercise = Exercise(title='T', stars=1, minutes=1)\n")
    score = {"sample.one": {"mutants": 9, "alive": 1, "alike": 2}}
    book.mutants.write_text(json.dumps(score))
    (said,) = pages.out_of_date(book)
    assert "mutants of sample.two" in said and "tools.mutants sample.two" in said
    book.mutants.write_text(json.dumps(score | {"sample.two": {"mutants": 4, "alive": 0, "alike": 0}}))
    assert row(pages.status(book), "[1.")[6] == "10 of 11, 2 alike"


def test_chapters_stand_in_the_order_of_the_contents(book):
    for name, number in (("welcome", None), ("second", 2), ("aside", None)):
        book.source(name).write_text(f"# {name}\n")
        record.store(book, name, record.load(book)["sample"] | {"title": name, "number": number})
    (book.root / "_toc.yml").write_text(
        "root: book/welcome\nchapters:\n- file: book/second\n- file: book/sample\n"
    )
    assert [name for name, _ in tables.chapters(book)] == ["welcome", "second", "sample", "aside"]


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


# Claims


def cell(text: str, *tags: str, kind: str = "code"):
    """A cell that printed this text, or holds it."""
    outputs = (
        {"outputs": [{"output_type": "stream", "name": "stdout", "text": text}]} if kind == "code" else {}
    )
    return nbformat.from_dict(
        {"cell_type": kind, "source": text, "metadata": {"tags": [f"claim-{tag}" for tag in tags]}} | outputs
    )


def test_a_row_of_the_page_of_claims(book):
    edit_record(book, python="3.13", jax="0.12.0", date="2026-11-20", hardware="CPU, 2 cores")
    (book.root / "_toc.yml").write_text("chapters:\n  - file: book/sample\n")
    book.devices.write_text(
        "\n".join(json.dumps(RUN | {"date": day}) for day in ("2026-11-21", "2026-11-22"))
    )
    text = claims.page(book, pages.devices(book))
    assert row(text, "X1") == [
        "X1",
        "a third is no decimal",
        "holds: a third is 0.3333",
        "1. A small chapter: [A small chapter](sample.ipynb#claim-X1)",
        "CPU, 2 cores; asserted on TPU v5 lite, JAX 0.7.2, 2026-11-22",
        "Python 3.13, JAX 0.12.0",
        "2026-11-20",
    ]
    assert "Still owed" not in text


@pytest.mark.parametrize(
    "printed, verdicts",
    [
        ("J1 holds", [("J1", "holds")]),
        ("J1 holds (cpu, jax 0.12.0, NumPy 2.5)\n", [("J1", "holds")]),
        ("T2 holds, but\nnot (always) (cpu,\njax 0.12)\n", [("T2", "holds, but not (always)")]),
        ("some text\nL10 no longer holds: a (b)", [("L10", "no longer holds: a (b)")]),
        ("J1 does not hold\nJ2 holds\n", [("J1", "does not hold"), ("J2", "holds")]),
        ("J1 holdsnot\n J2 holds\nit holds\nJ1: holds", []),
    ],
)
def test_verdicts_are_read_from_what_a_cell_printed(printed, verdicts):
    assert claims.verdicts(cell(printed)) == verdicts


def test_cells_have_places():
    text = "# Title\n\nWords.\n\n```python\n# a comment\n```\n\n## A section"
    cells = [
        cell(text, kind="markdown"),
        cell("J1 holds", "J1"),
        cell("J1 holds: twice\nJ2 holds", "J1", "J2"),
        cell("no heading", kind="markdown"),
        cell("", "J1"),
    ]
    found = claims.places(cells)
    assert [(place.section, place.anchor, place.verdicts) for place in found] == [
        ("A section", "claim-J1", ["holds"]),
        ("A section", "claim-J1-2", ["holds: twice"]),
        ("A section", "claim-J2", ["holds"]),
        ("A section", "claim-J1-3", []),
    ]


def test_links_to_several_cells_tell_them_apart(book):
    (book.root / "_toc.yml").write_text("chapters:\n  - file: book/sample\n")
    notebook = read(book)
    notebook.cells += [nbformat.from_dict({**notebook.cells[2], "id": id_}) for id_ in ("second", "third")]
    write(book, notebook)
    line = row(claims.page(book, []), "X1")
    assert line[2].count("<br>") == 2
    assert line[3].endswith("[A small chapter, cell 3](sample.ipynb#claim-X1-3)")


def test_words_of_a_verdict_are_no_markup(book):
    notebook = read(book)
    notebook.cells[2].outputs[0].text = "X1 holds: ['a*b'] | `c` <d>\n"
    write(book, notebook)
    (line,) = [line for line in claims.page(book, []).splitlines() if line.startswith("| X1")]
    assert r"holds: \['a\*b'\] \| \`c\` \<d\> |" in line


def test_a_claim_of_a_chapter_that_is_not_written(book):
    known = claims.known(book)
    known["X1"]["chapters"].append("many_devices")
    known["X2"] = {"statement": "another", "chapters": ["layers"]}
    book.claims.write_text(json.dumps(known))
    text = claims.page(book, []).partition("## Still owed")[2]
    assert row(text, "X1")[2] == "Many devices" and row(text, "X2") == ["X2", "another", "Layers"]


# Exercises


def test_a_row_of_the_page_of_exercises(book):
    (book.root / "_toc.yml").write_text("chapters:\n  - file: book/sample\n")
    folder = book.package / "exercises" / "sample"
    folder.mkdir(parents=True)
    for name, given in {
        "b_2": 'title="Second, *bold*", stars=3, minutes=20, why=f"{x}"',
        "a": 'title="First", stars=1, minutes=5',
        "hidden": 'title="Not in the chapter", stars=1, minutes=5',
    }.items():
        (folder / f"{name}.py").write_text(f"import that_is_missing\nexercise = Exercise({given})\n")
        with open(folder / "__init__.py", "a") as listing:
            listing.write(f"from mlax_tutorial.exercises.sample.{name} import exercise as {name}\n")
    text = book.source("sample").read_text()
    headings = "### Exercise: a ★☆☆ (5 min)\n\nWords.\n\n### Exercise: b_2 ★★★ (20 min)"
    book.source("sample").write_text(text.replace("The second cell of text in a row.", headings))
    edit_record(book, exercises=["a", "b_2"])
    text = exercises.page(book)
    assert "\n2 exercises, each" in text and "## [1. A small chapter](sample.ipynb)" in text
    assert row(text, "[1.2") == [
        r"[1.2 Second, \*bold\*](sample.ipynb#exercise-b_2--20-min) `b_2`",
        "★★★",
        "20 min",
    ]
    assert text.index("[1.1 First]") < text.index("[1.2 Second") and "Not in the chapter" not in text


def test_exercises_are_read_as_python_would():
    for chapter in catalog.chapters():
        told = [(each.name, each.title, each.stars, each.minutes) for each in catalog.of(chapter)]
        read = exercises.defined(Book(), chapter)
        assert [(each.name, each.title, each.stars, each.minutes) for each in read] == told


def test_chapters_with_exercises_are_in_the_catalog():
    """By the titles that they have in the book, and in its order."""
    contents = [name for name in ("welcome", *tables.contents(Book())) if name in catalog.TITLES]
    assert list(dict.fromkeys(contents)) == list(catalog.TITLES)
    for name in catalog.chapters():
        assert catalog.title(name) == sources.read(Book(), name).title


@pytest.mark.parametrize("name", Book().names())
def test_exercises_of_the_book_have_their_headings(name):
    """Seen from the sources alone: a guard looks at the built chapters, too."""
    chapter = guards.Chapter(Book(), sources.read(Book(), name), None, None)
    assert list(guards.exercises_have_headings(chapter)) == []


def test_a_file_that_ends_with_no_exercise(book):
    folder = book.package / "exercises" / "sample"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("from mlax_tutorial.exercises.sample.a import exercise as a\n")
    (folder / "a.py").write_text('exercise = Exercise(title="First", stars=1, minutes=5)\nmore = 1\n')
    with pytest.raises(Problem, match="a.py: its last statement"):
        exercises.defined(book, "sample")


# The README


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
