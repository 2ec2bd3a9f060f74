"""Each guard is seen to fail once, on a copy of a sound chapter that was tampered with."""

import nbformat
import pytest

from tools.notebooks import canonical, guards, inputs, record, sources

from .conftest import edit_record, edit_source, read, write


def test_a_sound_book_passes(built):
    assert guards.check(built, []) == []


def with_outputs(book, code: str, *outputs, tags=()):
    """Append a cell to the sample as if it had been executed with these outputs, all in step."""
    options = f":tags: [{', '.join(tags)}]\n" if tags else ""
    path = book.source("sample")
    path.write_text(f"{path.read_text()}\n```{{code-cell}}\n{options}{code}\n```\n")
    settle(book, outputs)


def settle(book, outputs=()):
    """Bring notebook and record in step with the source without running it."""
    source, before = sources.read(book, "sample"), read(book)
    notebook = canonical.skeleton(source)
    stored = {cell.source: cell.get("outputs") for cell in before.cells}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = stored.get(cell.source, [nbformat.from_dict(output) for output in outputs])
    canonical.number(notebook)
    text = canonical.dumps(notebook)
    book.notebook("sample").write_text(text)
    edit_record(book, source=inputs.source_hash(source), notebook=inputs.digest(text.encode()))


def stream(text: str) -> dict:
    return {"output_type": "stream", "name": "stdout", "text": text}


def display(metadata=None, **data) -> dict:
    data = {mime.replace("_", "/").replace("svg", "svg+xml"): text for mime, text in data.items()}
    return {"output_type": "display_data", "metadata": metadata or {}, "data": data}


def messages(book) -> list[str]:
    found = guards.check_chapter(book, "sample")
    assert all(message.startswith("book/") for message in found), "each message says where"
    return found


def only(book, *parts: str) -> None:
    """There is one message, and it says all this."""
    found = messages(book)
    assert len(found) == 1, found
    for part in parts:
        assert part in found[0]


# In step with the source, and executed


def test_a_notebook_edited_by_hand(book):
    notebook = read(book)
    notebook.cells[2].source = "print('edited')"
    write(book, notebook)
    only(book, "line 17", "out of step", "build sample", "edit only the source")


def test_a_source_edited_without_a_build(book):
    edit_source(book, "Each cell shows something of another kind.", "Each cell shows something.")
    only(book, "book/_src/sample.md: markdown cell (line 11)", "out of step")


def test_a_cell_missing_at_the_end(book):
    notebook = read(book)
    notebook.cells.pop()
    write(book, notebook)
    only(book, "out of step")


def test_an_output_edited_by_hand(book):
    notebook = read(book)
    notebook.cells[2].outputs[0].text = "X1 holds: a third is 0.3334\n"
    write(book, notebook)
    only(book, "its notebook was edited", "build sample")


def test_a_package_that_changed_since(book):
    (book.package / "__init__.py").write_text("ANSWER = 43\n")
    only(book, "modules of mlax_tutorial that it imports changed", "build sample")


def test_a_stripped_notebook(book):
    notebook = read(book)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    write(book, notebook)
    found = messages(book)
    assert any("is stripped: no cell has an output" in message for message in found)


def test_one_output_deleted(book):
    notebook = read(book)
    notebook.cells[4].outputs = []
    write(book, notebook)
    assert any(
        "its output is gone" in message and "code cell 2 (line 23)" in message for message in messages(book)
    )


@pytest.mark.parametrize(
    "code, shows",
    [
        ("viz.show(figure)", False),
        ("show(figure, 3)", False),
        ("figure = viz.show(2)", True),
        ("sum([])", True),
    ],
)
def test_a_picture_that_no_reader_sees(code, shows):
    assert guards.draws(code) != shows


def test_one_cell_not_executed(book):
    notebook = read(book)
    notebook.cells[2].execution_count = None
    write(book, notebook)
    assert any("was never executed" in message and "code cell 1" in message for message in messages(book))


def test_a_notebook_that_does_not_exist(book):
    book.notebook("sample").unlink()
    only(book, "book/sample.ipynb does not exist", "build sample")


@pytest.mark.parametrize(
    "code, shows",
    [
        ("x", True),
        ("x = 1\nx + 1", True),
        ("print(x)\ny = 1", True),
        ("%matplotlib inline\nx", True),
        ("x = 1", False),
        ("f(x)", False),
        ("def f():\n    print(1)", False),
        ("'''text'''", False),
    ],
)
def test_what_must_show_something(code, shows):
    assert guards.shows_something(code) is shows


@pytest.mark.parametrize(
    "seconds, recorded", [(0.2, 1), (3.4, 4), (9.6, 10), (12.4, 15), (58, 60), (60, 60), (60.5, 65)]
)
def test_run_times_are_rounded(seconds, recorded):
    assert record.rounded(seconds) == recorded


# Text


@pytest.mark.parametrize(
    "text, parts",
    [
        ("```{note}\nText\n```", ["a directive in backticks ('```{note}')", ":::{note}"]),
        ("~~~{admonition} Title\nText\n~~~", ["a directive in backticks"]),
        ("> ```{tip}\n> Text\n> ```", ["a directive in backticks"]),
        ("See {ref}`label`.", ["the role '{ref}`label`'", "[text](#label)"]),
        ("By {cite:t}`someone`.", ["the role"]),
        ("({term}`pytree`)", ["the role"]),
        ('<script src="https://cdn.example.org/x.js"></script>', ["loads from the network", "book/_static"]),
        ('<img alt="a" src="//example.org/x.png">', ["loads from the network"]),
        ("![a picture](https://example.org/x.png)", ["loads from the network"]),
        ("![](picture.png)", ["no alternative text"]),
        ('<img src="picture.png">', ["no alternative text"]),
        ('<img src="picture.png" alt="">', ["no alternative text"]),
    ],
)
def test_forbidden_text(book, text, parts):
    edit_source(book, "Each cell shows something of another kind.", text)
    settle(book)
    only(book, "book/_src/sample.md: markdown cell (line 11)", *parts)


@pytest.mark.parametrize(
    "text",
    [
        "`x {a}` and `y`",
        "```python\n{ref}`label`\n```",
        "A [link](https://example.org) is no load.",
        ':::{note}\nText\n:::\n<img src="picture.png" alt="a picture">',
        "$x_{i}$ and ``{ref}`shown` ``",
    ],
)
def test_text_that_is_fine(book, text):
    edit_source(book, "Each cell shows something of another kind.", text)
    settle(book)
    assert messages(book) == []


# Numbers in outputs


@pytest.mark.parametrize(
    "text", ["3.14159", "[0.12345, 1]", "loss: -0.000123456", "1.00001e-05", "x=0.333333,"]
)
def test_too_many_digits(book, text):
    with_outputs(book, "x = 0", stream(text))
    only(book, "code cell 10", "more than four digits", "`exact-digits`")


@pytest.mark.parametrize(
    "text", ["3.1416", "jax 0.12.0.1", "0.000012", "16777217.0", "1.2346e-05", "2026.11.21", "v1.23456.7"]
)
def test_few_digits(book, text):
    with_outputs(book, "x = 0", stream(text))
    assert messages(book) == []


def test_digits_in_a_table_count_and_those_of_a_drawing_do_not(book):
    drawing = '<svg role="img" aria-label="a line"><path d="M 1.23456 2"/></svg>'
    with_outputs(book, "x = 0", display(text_html=f"<b>{drawing}</b>"))
    assert messages(book) == []
    with_outputs(book, "x = 1", display(text_html="<td>1.23456</td>"))
    only(book, "1.23456")


@pytest.mark.parametrize("tag, code", [("exact-digits", "x = 0"), ("nbval-ignore-output", "assert True")])
def test_digits_of_tagged_cells(book, tag, code):
    with_outputs(book, code, stream("0.30000000000000004"), tags=[tag, "asserts-by-lesson"])
    assert messages(book) == []


# Code


@pytest.mark.parametrize(
    "code, part",
    [
        ("x = 1;", "the last line ends in `;`"),
        ("f(x);  # quiet", "the last line ends in `;`"),
        ("y = Out[3]", "give the value a name"),
        ("from IPython.display import clear_output", "leaves nothing to validate"),
        ("handle = display(x, display_id=True)", "an output that is updated"),
        ("%%time\nx = 1", "mlax_tutorial.inspection.timing"),
        ("%timeit f()", "mlax_tutorial.inspection.timing"),
        ("# NBVAL_IGNORE_OUTPUT\nx = 1", "by a tag of the cell"),
    ],
)
def test_forbidden_code(book, code, part):
    with_outputs(book, code)
    only(book, "code cell 10", part)


def test_a_line_that_is_cut_off_on_the_page(book):
    with_outputs(book, f"short = 0\nlong = {'1' * 82}")
    only(book, "code cell 10", "a line of 89 columns", "at most 88")


@pytest.mark.parametrize("code, tags", [(f"long = {'1' * 81}", []), (f"long = {'1' * 99}", ["hide-input"])])
def test_lines_that_fit_or_are_folded(book, code, tags):
    with_outputs(book, code, tags=tags)
    assert messages(book) == []


def test_a_progress_bar_that_redraws(book):
    with_outputs(book, "x = 1", stream("10 %\r20 %\n"))
    only(book, "redraws a line")


@pytest.mark.parametrize("code, fine", [
    ("print(1)", False),
    ("print('assert')  # assert", False),
    ("assert 1 < 2", True),
    ("def f():\n    pass\nfor i in range(2):\n    assert i < 2", True),
    ("np.testing.assert_allclose(x, y)", True),
])  # fmt: skip
def test_an_ignored_output_needs_an_assertion(book, code, fine):
    with_outputs(book, code, stream("1\n"), tags=["nbval-ignore-output", "asserts-by-lesson"])
    assert messages(book) == [] if fine else "without an `assert`" in messages(book)[0]


# Tags and claims


@pytest.mark.parametrize(
    "tag, part",
    [
        ("nbval-skip", "every cell is validated"),
        ("claim-X9", "book/_src/claims.json has no claim 'X9'"),
        ("hide_input", "unknown tag `hide_input`"),
    ],
)
def test_tags(book, tag, part):
    with_outputs(book, "x = 1", tags=[tag])
    only(book, "code cell 10", part)


def test_a_claim_that_is_owed(book):
    edit_source(book, ":tags: [claim-X1]\n", "")
    settle(book)
    owed, untagged = messages(book)
    assert "owes claim X1 (a third is no decimal)" in owed and "`claim-X1`" in owed
    assert "prints a verdict on X1 without the tag" in untagged


def test_a_claim_without_a_verdict(book):
    edit_source(book, "X1 holds: a third", "X1: a third")
    settle(book, [stream("X1: a third is 0.3333\n")])
    only(book, "no cell says what came out", "`X1 holds: …`", "no longer holds")


def test_a_verdict_without_a_tag(book):
    with_outputs(book, "print('X1 holds')", stream("X1 no longer holds\n"))
    only(book, "code cell 10", "prints a verdict on X1", "`claim-X1`")


# Predictions


ASKED = ":::{predict}\nHow many?\n:::"
REVEALED = ":::{reveal}\nAs many as there are layers.\n:::"
AFTER = '```{code-cell}\nprint("something to lose")'


def asked(book, answer, tag="predict"):
    """A prediction before the table, with that answer behind it."""
    edit_source(book, "The second cell of text in a row.", ASKED)
    edit_source(book, '```{code-cell}\nHTML("<table>', f'```{{code-cell}}\n:tags: [{tag}]\nHTML("<table>')
    edit_source(book, AFTER, f"{answer}\n\n{AFTER}")
    settle(book)


def test_a_prediction_with_its_answer_behind_it(book):
    asked(book, REVEALED)
    assert messages(book) == []


def test_a_prediction_that_is_never_answered(book):
    asked(book, "Some text.")
    only(book, "markdown cell", "'How many?' is never answered", "`:::{reveal}`")


def test_a_prediction_whose_answer_stands_open(book):
    edit_source(book, AFTER, f"{ASKED}\n\n{AFTER.replace('}', '}\n:tags: [predict]', 1)}")
    edit_source(
        book,
        "```{code-cell}\n:tags: [nbval-ignore-output, asserts-by-lesson]",
        f"{REVEALED}\n\nIt said something to lose.\n\n```{{code-cell}}\n:tags: [nbval-ignore-output, asserts-by-lesson]",
    )
    settle(book)
    only(book, "markdown cell", "says 'something to lose'", "the answer to the prediction")


def test_an_assertion_in_sight(book):
    with_outputs(book, "assert 1 + 1 == 2")
    only(book, "code cell 10", "an `assert` in sight", "`remove-cell`")


@pytest.mark.parametrize("raw", [":::{tip} Takeaway", "[a term](glossary.md#term)"])
def test_what_colab_would_show_raw(book, raw):
    notebook = read(book)
    notebook.cells[0].source += f"\n\n{raw}"
    book.notebook("sample").write_text(canonical.dumps(notebook))
    assert any(raw.rpartition("]")[2] in message and "Colab" in message for message in messages(book))


# Exercises


LISTING = "from mlax_tutorial.exercises.sample.double import exercise as double\n"
EXERCISE = 'exercise = Exercise(\n    title="Double it",\n    stars=2,\n    minutes=5,\n)\n'


def with_exercise(book, heading: str) -> None:
    """A chapter with one exercise, in step."""
    folder = book.package / "exercises" / "sample"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(LISTING)
    (folder / "double.py").write_text(EXERCISE)
    edit_source(book, "The second cell of text in a row.", heading)
    settle(book)


def test_an_exercise_under_its_heading(book):
    with_exercise(book, "### Exercise: double ★★☆ (5 min)")
    assert messages(book) == []


def test_an_exercise_without_its_heading(book):
    with_exercise(book, "### Double it")
    only(book, "sample/double.py has no heading in the chapter: write `### Exercise: double ★★☆ (5 min)`")


def test_a_heading_that_says_otherwise(book):
    with_exercise(book, "### Exercise: double ★☆☆ (5 min)")
    only(
        book,
        "the heading 'Exercise: double ★☆☆ (5 min)' should be 'Exercise: double ★★☆ (5 min)', as mlax_tutorial/exercises/sample/double.py says",
    )


def test_an_exercise_that_is_not_listed(book):
    with_exercise(book, "### Exercise: double ★★☆ (5 min)\n\n### Exercise: halve ★★☆ (5 min)")
    only(
        book,
        "'Exercise: halve ★★☆ (5 min)' is of an exercise that mlax_tutorial/exercises/sample/__init__.py does not list",
    )


def test_exercises_listed_in_another_order(book):
    with_exercise(book, "### Exercise: double ★★☆ (5 min)\n\n### Exercise: halve ★★☆ (5 min)")
    folder = book.package / "exercises" / "sample"
    (folder / "halve.py").write_text(EXERCISE)
    halve = LISTING.replace("double", "halve")
    (folder / "__init__.py").write_text(LISTING + halve)
    settle(book)
    assert messages(book) == []
    (folder / "__init__.py").write_text(halve + LISTING)
    settle(book)
    only(book, "sample/__init__.py does not list the exercises in this order: double, halve")


@pytest.mark.parametrize(
    "task, said",
    [
        (
            "Double it.",
            ["the exercise double is graded by the laws of the package, and its task does not link to them"],
        ),
        ("It obeys the [laws](https://example.org/layers.html#the-laws).", []),
    ],
)
def test_an_exercise_graded_by_the_laws_says_so(book, task, said):
    with_exercise(book, f"### Exercise: double ★★☆ (5 min)\n\n{task}")
    path = book.package / "exercises" / "sample" / "double.py"
    path.write_text("def check(double):\n    checks.obeys_laws(double, x)\n\n\n" + EXERCISE)
    settle(book)
    assert len(messages(book)) == len(said)
    assert all(text in message for text, message in zip(said, messages(book)))


# What readers see


LABELLED = '<figure role="img" aria-label="a line">{}</figure>'


@pytest.mark.parametrize(
    "output",
    [
        display(image_png="iVBORw0KGgo="),
        display(image_svg="<svg></svg>"),
        display(text_html="<svg><path/></svg>"),
        display(text_html='<img src="data:image/png;base64,iVBORw0KGgo=">'),
        display(text_html='<img alt="" src="data:image/png;base64,iVBORw0KGgo=">'),
        display(text_html=LABELLED.format("<svg></svg>") + "<svg></svg>"),
        display(text_html='<figure role="img" aria-label=""><svg></svg></figure>'),
    ],
)
def test_a_figure_without_alternative_text(book, output):
    with_outputs(book, "x = 1", output)
    only(book, "code cell 10", "a figure without alternative text", "viz.show(fig, alt=")


@pytest.mark.parametrize(
    "output",
    [
        display(image_png="iVBORw0KGgo=", metadata={"image/png": {"alt": "a line"}}),
        display(text_html=LABELLED.format("<svg></svg>")),
        display(text_html='<svg role="img" aria-label="a line"></svg>'),
        display(text_html="<svg><title>a line</title></svg>"),
        display(text_html='<svg aria-hidden="true"></svg>'),
        display(text_html='<img alt="a line" src="data:image/png;base64,iVBORw0KGgo=">'),
    ],
)
def test_a_figure_with_alternative_text(book, output):
    with_outputs(book, "x = 1", output)
    assert messages(book) == []


@pytest.mark.parametrize(
    "output, part",
    [
        (stream("File /home/me/x.py"), "a path of the machine"),
        (stream("/Users/me/x.py"), "a path of the machine"),
        (stream("/opt/lib/site-packages/jax/x.py"), "a path of the machine"),
        (stream("/tmp/x123/y"), "a temporary path"),
        (stream("<function f at 0x7f0012345678>"), "an address"),
        (display(text_html='<script src="https://cdn.example.org/x.js"></script>'), "loads from the network"),
        (
            display(text_html="<style>@import url(https://example.org/x.css)</style>"),
            "loads from the network",
        ),
    ],
)
def test_what_outputs_must_not_hold(book, output, part):
    with_outputs(book, "x = 1", output)
    only(book, "code cell 10", part)


def test_a_chapter_without_a_summary(book):
    edit_source(book, "  summary: a small chapter for the tests of the notebook tool\n", "")
    settle(book)
    only(book, "the header has no `summary`")


# The book as a whole


def test_a_notebook_without_a_source(book):
    write(book, read(book), "orphan")
    assert guards.check(book, []) == [
        "book/orphan.ipynb has no source book/_src/orphan.md: write one, or remove it"
    ]


def test_generated_pages_out_of_date(book):
    edit_record(book, exercises=["one"], title="Another title")
    found = guards.check(book, [])
    assert [message.partition(" is out of date")[0] for message in found] == [
        "book/status.md",
        "book/claims.md",
        "README.md",
    ]
    book.exercises_page.write_text("edited by hand")
    assert (
        "book/exercises.md is out of date: run `.venv/bin/python -m tools.notebooks pages`"
        in guards.check(book, [])
    )


def test_the_command_line_fails(book, capsys):
    from tools.notebooks import __main__

    arguments = ["--root", str(book.root), "check"]
    assert __main__.main(arguments) == 0
    assert capsys.readouterr().out == "nothing to mend\n"
    edit_record(book, package="another")
    assert __main__.main([*arguments, "sample"]) == 1
    assert "modules of mlax_tutorial that it imports changed" in capsys.readouterr().out
