"""What is shown, in a terminal and in a notebook: once, alike at every run, and legible without colour."""

import html.parser
import io
import re
import subprocess
import sys
import textwrap

import pytest

from mlax_tutorial.checking import show
from mlax_tutorial.checking.outcome import Failed, Outcome, paragraphs
from mlax_tutorial.exercises import welcome


def double(x):
    return 2 * x


def triple(x):
    print("<b>mine</b>")
    return 3 * x


def stub(x): ...


OUTCOMES = {
    "passed": welcome.double.grade(double),
    "failed": welcome.double.grade(triple),
    "not attempted": welcome.double.grade(stub),
    "not graded": Outcome("double", "not graded", "A package is missing."),
}


class Checked(html.parser.HTMLParser):
    """Sees to it that every tag is closed, and collects text and styles."""

    def __init__(self, source):
        super().__init__()
        self.open, self.text, self.styles, self.tags = [], [], [], []
        self.feed(source)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.styles.append(dict(attributes).get("style", ""))
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("status", OUTCOMES)
def test_html_says_what_text_says(status):
    outcome = OUTCOMES[status]
    page = Checked(outcome._repr_html_())
    said = " ".join("".join(page.text).split())
    plain = outcome.text.replace("`", "")
    for word in re.findall(r"[A-Za-z]+", plain):
        assert word in said, f"{word!r} is not in the page"
    assert page.tags[0] == ("div", page.tags[0][1]) and page.tags[0][1]["role"] == "status"


@pytest.mark.parametrize("status", OUTCOMES)
def test_html_fits_light_and_dark(status):
    """Text takes the page's colour; the only fixed colour is the bar at the side; nothing is loaded."""
    source = OUTCOMES[status]._repr_html_()
    for style in Checked(source).styles:
        for rule in filter(None, style.split(";")):
            name, _, value = rule.partition(":")
            if name == "color":
                assert value == "inherit"
            if name.startswith("background"):
                assert value in ("none", "rgba(127,127,127,.08)")
            if "#" in value:
                assert name == "border-left"
    assert not re.search(r"https?:|<script|<link|<img|url\(", source)


def test_the_status_is_said_in_words():
    headlines = [outcome.text.splitlines()[0] for outcome in OUTCOMES.values()]
    assert headlines == [
        "✓ double: passed",
        "✗ double: not yet right",
        "○ double: not attempted yet",
        "! double: could not be graded",
    ]


def test_what_the_reader_wrote_is_escaped():
    source = OUTCOMES["failed"]._repr_html_()
    assert "&lt;b&gt;mine&lt;/b&gt;" in source and "<b>" not in source
    assert paragraphs("a `<x>` & `y`\nb") == "a <code>&lt;x&gt;</code> &amp; <code>y</code><br>b"
    assert paragraphs("one ` alone") == "one ` alone"


def test_the_table_has_headers():
    page = Checked(OUTCOMES["failed"]._repr_html_())
    headers = [attributes for tag, attributes in page.tags if tag == "th"]
    assert len(headers) == 4 and all(attributes["scope"] == "row" for attributes in headers)


# In a terminal


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


def shown_on(stream, monkeypatch, **environment):
    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdout", stream)
    show.show(OUTCOMES["failed"])
    return stream.getvalue()


def test_colour_only_on_a_terminal_that_wants_it(monkeypatch):
    plain = OUTCOMES["failed"].text + "\n"
    assert shown_on(io.StringIO(), monkeypatch) == plain
    assert shown_on(Terminal(), monkeypatch, NO_COLOR="1") == plain
    assert shown_on(Terminal(), monkeypatch, TERM="dumb") == plain
    coloured = shown_on(Terminal(), monkeypatch, TERM="xterm")
    assert coloured != plain and re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_a_terminal_without_the_signs(monkeypatch):
    class Old(io.StringIO):
        encoding = "cp1252"

    said = shown_on(Old(), monkeypatch)
    said.encode("cp1252")
    assert said.startswith("x double: not yet right")


SCRIPT = """
from mlax_tutorial.exercises import welcome as ex

def double(x):
    print("garbled?")
    return 2 * x

ex.double.check(double)
"""


def test_in_a_script():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("passed") == 1
    assert done.stdout.splitlines()[0] == "✓ double: passed"
    assert done.stdout.index("Your code printed:") < done.stdout.index("  | garbled?")


def test_in_ipython_in_a_terminal(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--quick", "--no-banner", "--colors=NoColor", "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
        encoding="utf-8",
        cwd=tmp_path,
    )
    assert done.stdout.count("✓ double: passed") == 1, done.stdout + done.stderr
    assert "<div" not in done.stdout and "Out[" not in done.stdout


# In a notebook


CELLS = [
    "def double(x):\n    ...  # your code\n\nex.double.check(double)",
    "def double(x):\n    print('here')\n    return 2 * x\n\nex.double.check(double)",
    "def double(x):\n    y = undefined\n    return y\n\nex.double.check(double)",
    "ex.double.check(lambda x: 3 * x)",
    "ex.double.hint()",
    "ex.double.solution()",
    "def double(x):\n    while True: x\n\nex.double.seconds = 0.5\nex.double.check(double)",
    "ex.double.grade(lambda x: 2 * x)",
]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """The outputs of the cells, run twice over by a real kernel; the second time with the book's guards on."""
    import nbclient
    import nbformat
    from jupyter_client.manager import AsyncKernelManager

    from tools.notebooks.kernel import without_ports

    folder = tmp_path_factory.mktemp("notebook")
    start = (
        f"import jax, os; os.environ['MLAX_TUTORIAL_PROGRESS'] = {str(folder / 'p.json')!r}\n"
        "from mlax_tutorial.exercises import welcome as ex"
    )
    again = (
        "ex.double._hints_given = 0; ex.double.seconds = 20\n"
        "jax.config.update('jax_debug_key_reuse', True); jax.config.update('jax_check_tracer_leaks', True)"
    )
    cells = [nbformat.v4.new_code_cell(cell) for cell in (start, *CELLS, again, *CELLS)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    manager = AsyncKernelManager(kernel_name="python3", **without_ports(folder))
    nbclient.NotebookClient(notebook, km=manager, timeout=300).execute(cwd=str(folder))
    outputs = [cell.outputs for cell in notebook.cells]
    assert outputs[0] == outputs[len(CELLS) + 1] == []
    return outputs[1 : len(CELLS) + 1], outputs[len(CELLS) + 2 :]


def plain(outputs):
    (output,) = outputs
    return output["data"]["text/plain"] if "data" in output else output["text"]


def test_a_notebook_shows_each_once(executed):
    for outputs in executed[0]:
        assert len(outputs) == 1, outputs
    for outputs in executed[0][:-1]:
        assert outputs[0]["output_type"] == "display_data"
        assert 'role="status"' in outputs[0]["data"]["text/html"]
    assert executed[0][-1][0]["output_type"] == "execute_result"


def test_a_notebook_says_what_a_terminal_says(executed):
    said = [plain(outputs) for outputs in executed[0]]
    assert said[0].startswith("○ double: not attempted yet")
    assert said[1].startswith("✓ double: passed") and "  | here\n  | here\n" in said[1]
    assert "NameError: name 'undefined' is not defined" in said[2]
    assert "line 2, in double:  y = undefined" in said[2]
    assert "differs" in said[3] and "Hint 1" in said[4] and "return 2 * x" in said[5]
    assert "stopped after 0.5 seconds" in said[6] and "in double:  while True: x" in said[6]
    assert said[7].startswith("✓ double: passed")


def test_a_notebook_shows_the_same_again(executed):
    def stored(run):
        return [
            [{k: v for k, v in output.items() if k != "execution_count"} for output in cell] for cell in run
        ]

    assert stored(executed[0]) == stored(executed[1])
    assert not re.search(r"0x[0-9a-f]{6}|/tmp/|ipykernel", str(executed[0]))


def test_failed_can_be_shown_without_a_kernel():
    assert str(Failed("Plain words.")) == "Plain words."
    assert textwrap.dedent(str(OUTCOMES["passed"])) == OUTCOMES["passed"].text == repr(OUTCOMES["passed"])
