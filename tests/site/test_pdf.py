"""The PDF, made of two chapters: what a reader of paper sees, read back with pypdf."""

import re

import pypdf
import pytest

from tools.visits import pdf

CHAPTERS = ("tracing", "convolution")  # with code that is longer than a page
LEFT = re.compile(r"[\s\u00a0]+")


def flat(text):
    """Text without white space and without what letters may be joined to, so that lines may break anywhere."""
    return LEFT.sub("", text.replace("ﬁ", "fi").replace("ﬂ", "fl")).lower()


@pytest.fixture(scope="module")
def book(chromium, site, tmp_path_factory, made_once):
    """The text of each page, by the number that is printed on it, and the reader."""
    made_once("pdf")
    target = tmp_path_factory.mktemp("pdf") / "book.pdf"
    count = pdf.build(site, target, only=CHAPTERS, chromium=chromium)
    reader = pypdf.PdfReader(target)
    assert len(reader.pages) == count
    return reader, dict(zip(reader.page_labels, (page.extract_text() for page in reader.pages)))


@pytest.fixture(scope="module")
def lines(book):
    """The lines of the contents: titles and numbers."""
    text = next(text for label, text in book[1].items() if "Contents" in text)
    return [(title, number) for title, number in re.findall(r"^(.+?)\s(\d+)$", text, re.MULTILINE)]


def test_the_front(book, site):
    reader, texts = book
    assert "Learn JAX" in texts["i"] and "Contents" in texts["ii"]
    assert reader.metadata.title == "Learn JAX by building a neural-network library"
    assert reader.outline[0].title == "Contents"


def test_the_contents_lead_to_where_each_title_stands(book, lines):
    reader, texts = book
    assert [title for title, _ in lines if title[0].isdigit()] == [
        "3. Tracing",
        "19. Convolution and pooling",
    ]
    assert len(lines) > 20
    for title, number in lines:
        assert flat(re.sub(r"^\d+\. ", "", title)) in flat(texts[number]), (title, number)
    contents = reader.pages[list(texts).index("ii")]
    for annotation, (title, number) in zip(contents["/Annots"], lines, strict=True):
        target = annotation.get_object()["/Dest"][0].get_object()
        assert list(texts)[reader.get_page_number(target)] == number, title


def test_each_page_has_its_number_and_something_to_read(book):
    _, texts = book
    numbered = [label for label in texts if label.isdigit()]
    assert numbered == [str(number) for number in range(1, len(numbered) + 1)]
    for label in numbered:
        first = [line for line in texts[label].splitlines() if line.strip()][:2]
        assert label in first, (label, first)
        assert len(flat(texts[label])) > 80, f"page {label} is empty: {texts[label]!r}"


def page_of(texts, title, after=0):
    """The first page with a line of this text, behind the contents."""
    return next(
        int(label) for label, text in texts.items()
        if label.isdigit() and int(label) > after and title in text.splitlines()
    )  # fmt: skip


def test_predictions_are_answered_at_the_end_of_the_chapter(book, lines, site):
    _, texts = book
    for name, title in zip(CHAPTERS, ("3. Tracing", "19. Convolution and pooling")):
        first = next(int(number) for each, number in lines if each == title)
        end = page_of(texts, "Where you stand", first)
        answers = page_of(texts, "Answers to the predictions", first)
        solutions = page_of(texts, "Hints and solutions", first)
        assert first < end <= answers <= solutions
        page = (site / "book" / f"{name}.html").read_text(encoding="utf-8")
        reveals = re.findall(r'<details class="book-reveal">.*?</details>', page, re.DOTALL)
        assert reveals
        before = flat("".join(texts[str(number)] for number in range(first, answers)))
        behind = flat("".join(texts[str(number)] for number in range(answers, solutions + 1)))
        for reveal in reveals:
            prose = " ".join(re.findall(r"<p>(.*?)</p>", reveal, re.DOTALL))
            told = max(re.findall(r"[a-z,.:]+", flat(re.sub(r"<[^>]*>|&\w+;", "|", prose))), key=len)[:40]
            assert told in behind and told not in before, told
        referred = re.findall(r"Prediction \d+\.\d+, page (\d+)", "".join(texts.values()).replace("\n", " "))
        assert referred and all("Prediction" in texts[number] for number in referred)


def test_links_stay_in_the_book_or_lead_to_the_published_one(book):
    reader, _ = book
    inside, outside = 0, []
    for page in reader.pages:
        for annotation in page.get("/Annots", ()):
            link = annotation.get_object()
            inside += "/Dest" in link
            outside += [str(link["/A"]["/URI"])] if "/A" in link else []
    assert inside > 60
    assert not [url for url in outside if "127.0.0.1" in url]
    assert any(url.endswith("/book/glossary.html#jaxpr") for url in outside), (
        "a page that is not among these two"
    )


def test_the_index_tells_the_pages_that_teach_a_name(book):
    _, texts = book
    text = texts[str(page_of(texts, "Index of names"))]
    found = dict(re.findall(r"^(\S+) (\d+)$", text, re.MULTILINE))
    assert "jax.make_jaxpr" in found
    assert flat("Read a jaxpr: jax.make_jaxpr") in flat(texts[found["jax.make_jaxpr"]])


def test_the_contents_of_the_whole_book(site):
    chapters = pdf.contents(site)
    titles = [each.title for each in chapters]
    assert titles[1:4] == ["All of it on one screen", "Where should I begin?", "1. Arrays"]
    assert chapters[0].path == "book/welcome"
    assert {each.part.partition(":")[0] for each in chapters[1:]} >= {"Part I", "Part II", "Reference"}
    assert not {each.path for each in chapters} & set(pdf.LEFT_OUT)
    assert all((site / f"{each.path}.html").is_file() for each in chapters)


def test_the_pages_offer_the_pdf_only_where_it_is(site, tmp_path):
    for folder in ("book", "book/reference"):
        (tmp_path / folder).mkdir()
    for name in ("book/welcome.html", "book/reference/layers.html", "search.html"):
        text = (site / name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(pdf.PLACE.sub(r"\1\3", text), encoding="utf-8")
    pages = [path for path in tmp_path.rglob("*.html")]
    pdf.offer(tmp_path)
    assert not [path for path in pages if pdf.NAME in path.read_text(encoding="utf-8")]
    (tmp_path / pdf.NAME).write_bytes(bytes(2_600_000))
    pdf.offer(tmp_path)
    pdf.offer(tmp_path)
    for path in pages:
        links = re.findall(rf'href="([./]*){pdf.NAME}" download', path.read_text(encoding="utf-8"))
        assert len(links) == (2 if path.name == "welcome.html" else 1)
        assert all((path.parent / link / pdf.NAME).is_file() for link in links)
        assert "3 MB" in path.read_text(encoding="utf-8")
