"""What must not be in a notebook, and what to do about it. Nothing is executed here.

A guard takes a chapter and yields messages; each says where, what is wrong, and what to do. `GUARDS` is the list.
"""

import ast
import dataclasses
import html
import itertools
import json
import re

import nbformat

from tools.notebooks import build, canonical, claims, exercises, fences, pages, record, sources
from tools.notebooks.places import Book, Problem
from tools.notebooks.sources import Source, tags

BUILD = "run `.venv/bin/python -m tools.notebooks build {}`"

TAGS = {
    "asserts-by-lesson",  # the lesson is about the assertion that the cell shows
    "exact-digits",  # the cell's digits are the same on every machine, however many they are
    "full-width",
    "hide-cell",
    "hide-input",
    "hide-output",
    "nbval-ignore-output",
    "predict",
    "raises-exception",
    "remove-cell",
    "scroll-output",
}


@dataclasses.dataclass
class Chapter:
    """A chapter as the guards see it: what was written, what was executed, what is recorded."""

    book: Book
    source: Source
    notebook: nbformat.NotebookNode
    entry: dict | None

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def path(self) -> str:
        return f"book/{self.name}.ipynb"

    def place(self, index: int) -> str:
        """Names a cell of the notebook by its place in the source, as long as the two are in step."""
        cells = self.source.cells
        if index < len(cells) and cells[index]["id"] == self.notebook.cells[index].get("id"):
            return self.source.place(index)
        return f"{self.path}: cell {index}"

    def code(self):
        for index, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "code":
                yield index, cell

    def markdown(self):
        for index, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "markdown":
                yield index, cell


# In step with the source, and executed


def in_step(chapter: Chapter):
    written = [
        (cell.cell_type, cell.source, cell.metadata) for cell in canonical.skeleton(chapter.source).cells
    ]
    stored = [(cell.cell_type, cell.source, cell.metadata) for cell in chapter.notebook.cells]
    if written != stored:
        differing = [index for index, (a, b) in enumerate(zip(written, stored, strict=False)) if a != b]
        first = differing[0] if differing else min(len(written), len(stored))
        where = chapter.source.place(first) if first < len(written) else chapter.path
        yield f"{where}: {chapter.path} is out of step with it; {BUILD.format(chapter.name)}, and edit only the source"
        return
    what, why = build.plan(chapter.book, chapter.source, chapter.entry, chapter.notebook)
    if what != "keep":
        yield f"{chapter.path} is out of step: {why}; {BUILD.format(chapter.name)}"


def executed(chapter: Chapter):
    if not chapter.source.executes:
        return
    again = BUILD.format(f"--force {chapter.name}")
    code = [cell for _, cell in chapter.code()]
    if len(code) > 1 and not any(cell.outputs for cell in code):
        yield f"{chapter.path} is stripped: no cell has an output; {again}, and commit the notebook with its outputs"
        return
    for index, cell in chapter.code():
        if cell.execution_count is None:
            yield f"{chapter.place(index)}: was never executed; {again}"
        elif not cell.outputs and shows_something(cell.source):
            yield f"{chapter.place(index)}: ends in an expression or prints, but its output is gone; {again}"
        elif not cell.outputs and draws(cell.source):
            yield f"{chapter.place(index)}: ends in a call that draws, and no picture is shown: does it return what `viz` gives?"


def shows_something(code: str) -> bool:
    """Whether a cell must have an output: it prints, or ends in an expression that is not a call."""
    tree = parse(code)
    if tree is None or not tree.body:
        return False
    for statement in tree.body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            if isinstance(statement.value.func, ast.Name) and statement.value.func.id in {"print", "display"}:
                return True
    last = tree.body[-1]
    return isinstance(last, ast.Expr) and not isinstance(last.value, ast.Call | ast.Await | ast.Constant)


def draws(code: str) -> bool:
    """Whether a cell ends in a call of `viz`, or of a function that is called `show`."""
    tree = parse(code)
    last = tree.body[-1] if tree is not None and tree.body else None
    if not (isinstance(last, ast.Expr) and isinstance(last.value, ast.Call)):
        return False
    name = ast.unparse(last.value.func)
    return name.startswith("viz.") or name == "show"


def parse(code: str) -> ast.Module | None:
    """The cell's syntax tree, lines of magic left out."""
    lines = [re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in code.splitlines()]
    try:
        return ast.parse("\n".join(lines))
    except SyntaxError:
        return None


# Text


FENCE = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})\s*\{", re.MULTILINE)
CODE_BLOCK = re.compile(r"^([ \t]*)(`{3,}|~{3,}).*?^\1\2", re.MULTILINE | re.DOTALL)
ROLE_OR_CODE = re.compile(r"(?P<role>\{[a-z][\w:+.-]*\}`[^`]+`)|(?P<ticks>`+).+?(?P=ticks)", re.DOTALL)
REMOTE = re.compile(
    r"""<(?:script|img|link|iframe|source|video|audio|embed|object|image|use)\b[^>]*?\b(?:src|href|data)\s*=\s*
        ["']?\s*(?:https?:)?//"""
    r"""|!\[[^\]]*\]\(\s*<?https?://|@import\s+(?:url\()?["']?https?://|\burl\(\s*["']?https?://"""
    r"""|\b(?:fetch|import|require)\(\s*["']https?://|require\.config""",
    re.VERBOSE | re.IGNORECASE,
)


def fences_and_roles(chapter: Chapter):
    for index, cell in chapter.markdown():
        if match := FENCE.search(cell.source):
            line = cell.source[: match.end()].count("\n") + 1
            yield (
                f"{chapter.place(index)}: a directive in backticks ({cell.source.splitlines()[line - 1].strip()!r}), "
                "which Colab shows as code: write it with a colon fence, `:::{note}`"
            )
        prose = CODE_BLOCK.sub("", cell.source)
        for match in ROLE_OR_CODE.finditer(prose):
            if match["role"]:
                yield (
                    f"{chapter.place(index)}: the role {match['role']!r}, which Colab shows raw: "
                    "write a link, `[text](#label)` or `[text](other.ipynb)`"
                )


def nothing_remote(chapter: Chapter):
    todo = "the page would need a network: put the file into book/_static, or the content into the cell"
    for index, cell in chapter.markdown():
        if match := REMOTE.search(CODE_BLOCK.sub("", cell.source)):
            yield f"{chapter.place(index)}: loads from the network ({match[0][:60]!r}): {todo}"
    for index, cell in chapter.code():
        for mime, text in texts(cell):
            if mime in {"text/html", "application/javascript", "image/svg+xml", "text/markdown"}:
                if match := REMOTE.search(text):
                    yield f"{chapter.place(index)}: its output loads from the network ({match[0][:60]!r}): {todo}"


def texts(cell):
    """What a cell put out, as pairs of MIME type and text; pictures in base64 left out."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield "text/plain", output.text
        elif output.output_type == "error":
            yield (
                "text/plain",
                "\n".join([output.evalue, *(canonical.ANSI.sub("", e) for e in output.traceback)]),
            )
        else:
            for mime, data in output.data.items():
                if not mime.startswith("image/") or mime == "image/svg+xml":
                    yield mime, data if isinstance(data, str) else json.dumps(data)


def readable(mime: str, text: str) -> str:
    """The words and numbers that a reader sees of an output."""
    if mime not in {"text/html", "image/svg+xml"}:
        return text
    text = re.sub(r"<(svg|style|script)\b.*?</\1>", " ", text, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", text))


# A decimal number with more than four digits after the point, zeros at the front of a small one not counted.
LONG_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:0?\.0*[1-9]\d{4,}|0*[1-9]\d*\.\d{5,})(?:e[-+]?\d+)?(?!\.?\w)")


def few_digits(chapter: Chapter):
    for index, cell in chapter.code():
        if {"nbval-ignore-output", "exact-digits"} & set(tags(cell)):
            continue
        for mime, text in texts(cell):
            if match := LONG_NUMBER.search(readable(mime, text)):
                yield (
                    f"{chapter.place(index)}: its output holds {match[0]}, more than four digits after the point; the "
                    "last ones differ between machines: round it, or tag the cell `exact-digits` if the value is exact"
                )
                break


def shown_everywhere(chapter: Chapter):
    """Nothing is left of the source's own fences and links, which Colab and GitHub would show raw."""
    for index, cell in chapter.markdown():
        prose = CODE_BLOCK.sub("", cell.source)
        for match in re.finditer(r"^[ \t>]*:::.*$|\]\([\w/]+\.md\b[^)]*\)", prose, re.MULTILINE):
            yield (
                f"{chapter.place(index)}: {match[0].strip()!r} would be shown raw in Colab or lead nowhere: see "
                "tools/notebooks/fences.py for what can be written"
            )


LAWS = re.compile(r"\bobeys_(?:optimizer_)?laws\(")
CHOICES = re.compile(r"^- .*$", re.M)  # one of them is the answer


def predictions_stay_hidden(chapter: Chapter):
    """The answer to a prediction, its output, stands in no text outside of the lid that the reader opens."""
    asked = None  # the index of the cell whose question is open, and the question
    for index, kind, text in _predictions(chapter.source.cells):
        if kind == "reveal":
            asked = None
        elif kind == "predict" and asked is None:
            asked = index, text
        elif kind == "predict":
            break
    if asked is not None:
        yield (
            f"{chapter.source.place(asked[0])}: the prediction {asked[1][:50]!r} is never answered: write what comes out, and "
            "why, into a fence `:::{reveal}` behind its cell"
        )
    cells = chapter.source.cells
    printed = {}
    for index, cell in chapter.code():
        if "predict" in tags(cell):
            lines = (
                line.strip()
                for mime, text in texts(cell)
                if mime == "text/plain"
                for line in text.splitlines()
            )
            printed |= {line: index for line in lines if len(line) >= 12}
    for index, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            open_text = " ".join(
                part if isinstance(part, str) else CHOICES.sub("", part.text)
                for part in fences.parts(cell.source)
                if isinstance(part, str) or part.kind != "reveal"
            )
            for line, shown in printed.items():
                if line in open_text:
                    yield (
                        f"{chapter.source.place(index)}: says {line[:40]!r}, the answer to the prediction of "
                        f"{chapter.source.place(shown)}: move it into the fence `:::{{reveal}}`"
                    )


def _predictions(cells):
    """The fences `predict` and `reveal` of a chapter in their order, as index, kind and first line."""
    for index, cell in enumerate(cells):
        if cell.cell_type == "markdown":
            for part in fences.parts(cell.source):
                if not isinstance(part, str) and part.kind in ("predict", "reveal"):
                    yield index, part.kind, part.text.partition("\n")[0]


def tests_are_out_of_sight(chapter: Chapter):
    """What a reader sees is what a reader would write: assertions and verdicts stand in cells with the tag `remove-cell`."""
    for index, cell in chapter.code():
        if sources.UNSEEN & set(tags(cell)) or "asserts-by-lesson" in tags(cell):
            continue
        tree = parse(cell.source)
        if tree and any(isinstance(node, ast.Assert) for node in ast.walk(tree)):
            yield (
                f"{chapter.place(index)}: an `assert` in sight: move it into a cell of its own behind this one, with the tag "
                "`remove-cell`; or tag the cell `asserts-by-lesson` if the lesson is about it"
            )


# Code


CODE = {
    r"(?<![\w.])Out\[": "`Out[n]` depends on what ran before: give the value a name",
    r"\bclear_output\b": "`clear_output` leaves nothing to validate: print once, at the end",
    r"\bdisplay_id\s*=|\bupdate_display\b": "an output that is updated cannot be validated: show it once, at the end",
    r"^\s*%%?(?:time|timeit|prun)\b": "its output is a time: use `mlax_tutorial.inspection.timing`, and assert a ratio",
    r"#\s*(?:NBVAL_\w+|PYTEST_VALIDATE_IGNORE_OUTPUT)": "say it by a tag of the cell: `nbval-ignore-output`",
}


def code_can_be_validated(chapter: Chapter):
    for index, cell in chapter.code():
        for pattern, todo in CODE.items():
            if match := re.search(pattern, cell.source, re.MULTILINE):
                yield f"{chapter.place(index)}: {match[0].strip()!r}: {todo}"
        if last := cell.source.rstrip().rpartition("\n")[2]:
            if last.split("#")[0].rstrip().endswith(";"):
                yield f"{chapter.place(index)}: the last line ends in `;`, which hides its value: assign it to a name"
        for output in cell.outputs:
            if output.output_type == "stream" and "\r" in output.text:
                yield (
                    f"{chapter.place(index)}: its output redraws a line (a progress bar?), which cannot be validated: "
                    "print whole lines"
                )


COLUMNS = 88  # what fits beside the sidebars; see --book-measure and the size of code in book/_static/css


def lines_fit(chapter: Chapter):
    for index, cell in chapter.code():
        if {"hide-cell", "hide-input", "remove-cell"} & set(tags(cell)):
            continue
        longest = max(cell.source.splitlines(), key=len, default="")
        if len(longest) > COLUMNS:
            yield (
                f"{chapter.place(index)}: a line of {len(longest)} columns ({longest.strip()[:40]!r}…) is cut off on the "
                f"page: break it into lines of at most {COLUMNS}"
            )


def ignored_outputs_are_asserted(chapter: Chapter):
    cells = chapter.notebook.cells
    for index, cell in chapter.code():
        behind = itertools.takewhile(lambda cell: "remove-cell" in tags(cell), cells[index + 1 :])
        if "nbval-ignore-output" in tags(cell) and not any(asserts(each.source) for each in (cell, *behind)):
            yield (
                f"{chapter.place(index)}: tagged `nbval-ignore-output` without an `assert`: "
                "assert what the text says about this output, in a cell with the tag `remove-cell` behind it"
            )


def asserts(code: str) -> bool:
    tree = parse(code)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call) and re.search(r"\bassert_\w+$|\btesting\.", ast.unparse(node.func)):
            return True
    return False


def known_tags(chapter: Chapter):
    known = claims.known(chapter.book)
    for index, cell in enumerate(chapter.source.cells):
        for tag in tags(cell):
            if tag == "nbval-skip":
                yield f"{chapter.place(index)}: the tag `nbval-skip`: every cell is validated; make it one that can be"
            elif tag.startswith(claims.PREFIX):
                if tag.removeprefix(claims.PREFIX) not in known:
                    yield (
                        f"{chapter.place(index)}: the tag `{tag}`, but book/_src/claims.json has no claim "
                        f"{tag.removeprefix(claims.PREFIX)!r}"
                    )
            elif tag not in TAGS and not re.fullmatch(r"limit-\d+s", tag):
                yield f"{chapter.place(index)}: unknown tag `{tag}`; known: {', '.join(sorted(TAGS))}, claim-ID, limit-40s"


def claims_are_shown(chapter: Chapter):
    shown = claims.shown(chapter.source.cells)
    for claim, entry in claims.known(chapter.book).items():
        if chapter.name in entry["chapters"] and claim not in shown:
            yield (
                f"{chapter.source.path}: owes claim {claim} ({entry['statement']}): "
                f"tag the cell that shows it `claim-{claim}`"
            )


def claims_have_verdicts(chapter: Chapter):
    """What came out is printed by a cell that carries the claim's tag, else the page of claims cannot tell it."""
    said = set()
    for index, cell in chapter.code():
        for claim, _ in claims.verdicts(cell):
            said.add(claim)
            if claim not in claims.of(cell):
                yield f"{chapter.place(index)}: prints a verdict on {claim} without the tag `claim-{claim}`: add the tag"
    ran = [cell for _, cell in chapter.code() if cell.outputs]
    for claim in claims.shown(ran):
        if claim not in said:
            yield (
                f"{chapter.source.path}: shows claim {claim}, but no cell says what came out: end one that is tagged "
                f"`claim-{claim}` with a line such as `{claim} holds: …` (or {', '.join(claims.OUTCOMES[1:])})"
            )


def exercises_have_headings(chapter: Chapter):
    """Stars and minutes stand in the chapter as the exercise has them, and each exercise stands there, in the listing's order."""
    written = exercises.headings(chapter.source.cells)
    folder = chapter.book.relative(exercises.folder(chapter.book, chapter.name))
    defined = {exercise.heading: exercise.name for exercise in exercises.defined(chapter.book, chapter.name)}
    by_name = {name: heading for heading, name in defined.items()}
    named = {heading.split()[1] for heading in written}
    for heading, name in defined.items():
        if name not in named:
            yield f"{chapter.source.path}: {folder}/{name}.py has no heading in the chapter: write `### {heading}`"
    for heading in written:
        name = heading.split()[1]
        if name not in by_name:
            yield f"{chapter.source.path}: the heading {heading!r} is of an exercise that {folder}/__init__.py does not list"
        elif heading not in defined:
            yield f"{chapter.source.path}: the heading {heading!r} should be {by_name[name]!r}, as {folder}/{name}.py says"
    if set(written) == defined.keys() and written != list(defined):
        order = ", ".join(defined[heading] for heading in written)
        yield f"{chapter.source.path}: {folder}/__init__.py does not list the exercises in this order: {order}"


def exercises_name_the_laws(chapter: Chapter):
    """What is graded by the laws of layers or optimizers says so, with a link to them."""
    for name, task in exercises.tasks(chapter.source.cells):
        path = exercises.folder(chapter.book, chapter.name) / f"{name}.py"
        if not path.exists() or not LAWS.search(path.read_text(encoding="utf-8")):
            continue
        if not re.search(r"\]\(\S*#\S*laws\S*\)", task):
            yield (
                f"{chapter.source.path}: the exercise {name} is graded by the laws of the package, and its task does not link to them: "
                "write `It obeys the [laws](layers.ipynb#the-laws-of-a-layer).`"
            )


# What readers see


def pictures_have_alternatives(chapter: Chapter):
    for index, cell in chapter.markdown():
        prose = CODE_BLOCK.sub("", cell.source)
        for match in re.finditer(r"!\[\s*\]\(|<img\b(?![^>]*\balt\s*=\s*[\"'][^\"'])[^>]*>", prose):
            yield f"{chapter.place(index)}: {match[0]!r} has no alternative text: say in a sentence what it shows"
    for index, cell in chapter.code():
        for output in cell.outputs:
            if output.output_type in {"display_data", "execute_result"} and lacks_alternative(output):
                yield (
                    f"{chapter.place(index)}: a figure without alternative text: "
                    'end the cell with `viz.show(fig, alt="what it shows")`'
                )


def lacks_alternative(output) -> bool:
    markup = output.data.get("text/html", "")
    for image in re.findall(r"<img\b[^>]*>", markup):
        if not re.search(r"\balt\s*=\s*[\"'][^\"']", image):
            return True
    without_labelled = markup
    for match in re.finditer(
        r"<(figure|div|span)\b[^>]*\brole=[\"']img[\"'][^>]*>.*?</\1>", markup, re.DOTALL
    ):
        if re.search(r"aria-label(?:ledby)?=[\"'][^\"']", match[0].partition(">")[0]):
            without_labelled = without_labelled.replace(match[0], "")
    for drawing in re.findall(r"<svg\b.*?</svg>", without_labelled, re.DOTALL):
        opening = drawing.partition(">")[0]
        labelled = re.search(r"aria-label(?:ledby)?=[\"'][^\"']", opening) or re.search(
            r"<title\b[^>]*>[^<]", drawing
        )
        if not labelled and "aria-hidden" not in opening:
            return True
    pictures = [mime for mime in output.data if mime.startswith("image/")]
    return any(not output.metadata.get(mime, {}).get("alt") and not markup for mime in pictures)


# Where a machine shows through. Addresses and temporary paths also change from run to run.
MACHINE = {
    r"(?:/home/|/Users/|/root/|[A-Z]:\\Users\\)[\w.\\/-]*": "a path of the machine that built it",
    r"[\w./-]*/site-packages/[\w./-]*": "a path of the machine that built it",
    r"(?:/tmp|/var/folders|/private/tmp)/[\w./-]+": "a temporary path",
}
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")


def no_machine_shows(chapter: Chapter):
    for index, cell in chapter.code():
        for _, text in texts(cell):
            for pattern, what in MACHINE.items():
                if match := re.search(pattern, text):
                    yield f"{chapter.place(index)}: its output holds {what}, {match[0]!r}: do not print it"
            if "nbval-ignore-output" not in tags(cell) and (match := ADDRESS.search(text)):
                yield (
                    f"{chapter.place(index)}: its output holds an address, {match[0]!r}, which changes with every run: "
                    "print a name instead"
                )


def has_a_summary(chapter: Chapter):
    if not chapter.source.chapter.get("summary"):
        yield (
            f"{chapter.source.path}: the header has no `summary` under `chapter:`: "
            "say in one line what the chapter teaches (for the README's table)"
        )


GUARDS = (
    in_step,
    executed,
    fences_and_roles,
    nothing_remote,
    few_digits,
    shown_everywhere,
    predictions_stay_hidden,
    tests_are_out_of_sight,
    code_can_be_validated,
    lines_fit,
    ignored_outputs_are_asserted,
    known_tags,
    claims_are_shown,
    claims_have_verdicts,
    exercises_have_headings,
    exercises_name_the_laws,
    pictures_have_alternatives,
    no_machine_shows,
    has_a_summary,
)


def check_chapter(book: Book, name: str) -> list[str]:
    """All that is wrong with one chapter."""
    try:
        source = sources.read(book, name)
        source.title  # noqa: B018  (a missing title is a problem of its own)
    except Problem as problem:
        return [str(problem)]
    if not book.notebook(name).exists():
        return [f"book/{name}.ipynb does not exist: {BUILD.format(name)}"]
    notebook = nbformat.read(book.notebook(name), as_version=4)
    chapter = Chapter(book, source, notebook, record.entry_of(book, name))
    return [message for guard in GUARDS for message in guard(chapter)]


def check_book(book: Book) -> list[str]:
    """What is wrong beyond single chapters: notebooks without a source, generated pages out of date."""
    messages = []
    for path in sorted(book.folder.glob("*.ipynb")):
        if path.stem not in book.names():
            messages.append(
                f"book/{path.name} has no source book/_src/{path.stem}.md: write one, or remove it"
            )
    for path in sorted(book.records.glob("*.json")):
        if path.stem not in book.names():
            messages.append(f"{book.relative(path)} has no source book/_src/{path.stem}.md: remove it")
    return messages + pages.out_of_date(book)


def check(book: Book, names) -> list[str]:
    messages = [message for name in book.select(names) for message in check_chapter(book, name)]
    return messages if names else messages + check_book(book)
