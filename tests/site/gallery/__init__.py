"""Every component of the book in every state: a page that is built for the tests alone, and pictures of its sections.

`gallery.md` is the page, written and executed like a chapter. `STATES` says what is done to it before a section is pictured.
`python -m tests.site.gallery DIR` pictures them all into a folder, to be looked at; with `--store` they become those
that the tests compare with.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tools.notebooks import build as notebooks
from tools.notebooks.places import Book

# What the page is made with. Its exercise is its own, so it does not depend on those of the book.
ROOT = Path(__file__).parents[3]
HERE = Path(__file__).parent
STORED = HERE / "stored"
WIDTHS = {"wide": 1440, "narrow": 390}
SCHEMES = ("light", "dark")

GLOSSARY = """# Glossary

## All terms

### jaxpr

How JAX writes down a program: typed inputs, one *equation* for each `primitive`, and what is returned.
"""
# The exercise of the gallery, which is none of the book's. (To import the module here, which the book's extension has done, would
# be to depend on all exercises, since that is what it imports.)
EXTENSION = """
import sys, types

HALVE = types.SimpleNamespace(
    name="halve", title="Halve every element", hints=("A number has a `half`.", "Divide by *two*."),
    solution_text=lambda: "def halve(x):\\n    return x / 2  # a line that ends at column 88 " + "-" * 27,
)

def setup(app):
    app.setup_extension("tools.site.extension")
    sys.modules["tools.site.exercises"]._exercise = lambda chapter, name: HALVE
    return {}
"""


def build(folder: Path) -> Path:
    """Executes and renders the gallery in a folder of its own; returns its site."""
    book = Book(folder)
    book.sources.mkdir(parents=True)
    for name in ("mlax_tutorial", "tools", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("_static", "_templates"):
        (book.folder / name).symlink_to(ROOT / "book" / name)
    shutil.copy(HERE / "gallery.md", book.source("gallery"))
    book.claims.write_text("{}")
    (book.folder / "glossary.md").write_text(GLOSSARY)
    (folder / "gallery_exercise.py").write_text(EXTENSION)
    notebooks.build_one(book, "gallery")

    configuration = yaml.safe_load((ROOT / "_config.yml").read_text())
    configuration["sphinx"]["local_extensions"]["gallery_exercise"] = "."
    (folder / "_config.yml").write_text(yaml.safe_dump(configuration))
    (folder / "_toc.yml").write_text(
        "format: jb-book\nroot: book/gallery\nchapters:\n- file: book/glossary\n"
    )
    command = [
        Path(sys.executable).with_name("jupyter-book"),
        "build",
        ".",
        "-W",
        "--keep-going",
        "-n",
        "--quiet",
    ]
    built = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(folder)}
    )
    if built.returncode:
        raise RuntimeError(f"the gallery cannot be built:\n{built.stdout}\n{built.stderr}")
    return folder / "_build" / "html"


# --- states: what is done before a section is pictured ---


def opened(lid, *, asides=False):
    """Opens a lid of the section; an aside on a wide screen is open, and has no lid."""

    def act(page, section):
        lids = section.locator(f"details{lid}").first
        if not (asides and lids.get_attribute("open") is not None):
            lids.locator("summary").first.click()

    return act


def stepped(page, section, times=2):
    """A figure after some steps of the arrow key."""
    figure = section.locator(".viz-figure")
    figure.locator(".viz-range").focus()
    for _ in range(times):
        page.keyboard.press("ArrowRight")
    figure.locator(".viz-range").blur()


def few_images(page, section):
    figure = section.locator(".viz-figure")
    figure.locator(".viz-accuracies-images").fill("1")
    figure.locator(".viz-accuracies-same").uncheck()
    figure.locator(".viz-accuracies-same").blur()


def sharper_under_padding(page, section):
    figure = section.locator(".viz-figure")
    figure.get_by_label("temperature").fill("8")
    figure.get_by_label("mask").select_option("padding")
    figure.get_by_label("mask").blur()


def strided_and_dilated(page, section):
    sliders = section.locator(".viz-tune input")
    sliders.nth(1).fill("2")
    sliders.nth(2).fill("2")
    sliders.nth(2).blur()


def copied_rows(page, section):
    lists = section.locator(".viz-figure select")
    lists.nth(1).select_option("")
    lists.nth(0).select_option("model")
    lists.nth(0).blur()


def called(page, section):
    section.get_by_label("type of x").select_option("Python float")
    button = section.get_by_role("button", name="call", exact=True)
    for _ in range(2):
        button.click()
    button.blur()


def refused_axes(page, section):
    query = section.get_by_label("in_axes of query")
    query.select_option("1")
    query.blur()


def other_bits(page, section):
    exponent = section.get_by_label("exponent bits")
    exponent.fill("4")
    exponent.blur()


def stepped_back(page, section):
    figure = section.locator(".viz-figure")
    figure.locator(".viz-previous").click()
    figure.locator(".viz-previous").blur()


def explained(page, section):
    section.locator("a.book-term").focus()


def chosen(page, section):
    section.get_by_label("two").check()
    section.get_by_label("two").blur()


def typed(page, section):
    section.locator(".book-answer input").fill("three, or four")
    section.locator(".book-answer input").blur()


def done(page, section):
    section.get_by_label("I have solved it").check()
    section.get_by_label("I have solved it").blur()


def hinted(page, section):
    for lid in section.locator("details > summary").all():
        lid.click()
        lid.blur()


def both(*acts):
    def act(page, section):
        for each in acts:
            each(page, section)

    return act


# Mathematics has no picture: the height of a formula differs between versions of Chromium.
# name of the picture -> the section (its id), and what is done to it
STATES = {
    "top": ("every-component-in-every-state", None),
    "prose": ("prose", None),
    "boxes": ("boxes", None),
    "code": ("code", None),
    "long-output": ("long-output", None),
    "error": ("a-warning-and-an-error", None),
    "folded": ("a-folded-cell", None),
    "unfolded": ("a-folded-cell", opened(".hide")),
    "table": ("a-table", None),
    "drawing": ("a-drawing", None),
    "aside": ("aside", None),
    "aside-open": ("aside", opened(".book-aside", asides=True)),
    "term": ("a-term", None),
    "term-explained": ("a-term", explained),
    "predict": ("predict-with-choices", None),
    "predict-chosen-and-open": ("predict-with-choices", both(chosen, opened(".book-reveal"))),
    "predict-line": ("predict-with-a-line", None),
    "predict-line-open": ("predict-with-a-line", both(typed, opened(".book-reveal"))),
    "exercise": ("exercise-halve", None),
    "exercise-hints-and-done": ("exercise-halve", both(hinted, done)),
    "trace": ("trace", None),
    "trace-stepped": ("trace", stepped),
    "jit-cache": ("cache", None),
    "jit-cache-stepped": ("cache", stepped),
    "jit-cache-called": ("cache", called),
    "key-tree": ("key-tree", None),
    "key-tree-stepped": ("key-tree", stepped_back),
    "tree": ("tree", None),
    "passes": ("passes", None),
    "passes-stepped": ("passes", stepped),
    "batch": ("batch", None),
    "batch-stepped": ("batch", stepped),
    "batch-refused": ("batch", refused_axes),
    "traceback": ("traceback", None),
    "model": ("model", None),
    "model-closed": ("model", opened("")),
    "ranges": ("ranges", None),
    "ranges-stepped": ("ranges", stepped),
    "ranges-tuned": ("ranges", other_bits),
    "descent": ("descent", None),
    "descent-stepped": ("descent", stepped_back),
    "convolution": ("convolution", None),
    "convolution-stepped": ("convolution", stepped),
    "convolution-tuned": ("convolution-tuned", strided_and_dilated),
    "gates": ("gates", None),
    "gates-stepped": ("gates", stepped_back),
    "accuracies": ("accuracies", None),
    "accuracies-few": ("accuracies", few_images),
    "next-token": ("next-token", None),
    "prefixes": ("prefixes", None),
    "prefixes-stepped": ("prefixes", stepped_back),
    "denoising": ("denoising", None),
    "denoising-stepped": ("denoising", stepped_back),
    "placement": ("placement", None),
    "placement-copied": ("placement", copied_rows),
    "blocks": ("blocks", None),
    "blocks-stepped": ("blocks", stepped),
    "exchange": ("exchange", None),
    "exchange-stepped": ("exchange", stepped),
    "roofline": ("roofline", None),
    "roofline-stepped": ("roofline", stepped),
    "grid-steps": ("grid", None),
    "grid-steps-stepped": ("grid", stepped),
    "processes": ("processes", None),
    "processes-stepped": ("processes", stepped),
    "attention": ("attention", None),
    "attention-stepped": ("attention", stepped),
    "attention-tuned": ("attention-tuned", sharper_under_padding),
}
