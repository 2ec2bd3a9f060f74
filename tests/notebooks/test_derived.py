"""Every public layer of the library is derived in a chapter of Part II.

A chapter derives `nn.X` where it does one of these:

* its reader writes it: a cell defines a class `X`, an exercise's stub included, or assigns to the name `X`;
* it quotes the package's own: `viz.show_source(nn.X)`, or one of its methods, `viz.show_source(nn.X.fwd)`;
* a section says that it teaches it: `:::{names} nn.X`.
"""

import ast
import inspect
import re
from pathlib import Path

import pytest
import yaml

from mlax_tutorial import nn
from tools.notebooks import fences, guards, sources
from tools.notebooks.places import Book

BOOK = Book()
LAYERS = sorted(
    name
    for name in nn.__all__
    if isinstance(value := getattr(nn, name), type) and issubclass(value, nn.Layer)
)
PART = "Part II: building the library"
# What is no layer to be derived, and why.
BASES = {"Layer": "the contract in *Layers*, which every layer that is derived derives from"}
BASES |= dict.fromkeys(
    ("AdaptiveNorm", "FiLM", "TimeEmbedding", "Upsample"), "a chapter on diffusion, to be written"
)
BASES["LoRA"] = "a chapter on adapting trained models, to be written"
BASES["Inference"] = "frozen batch norm, in a chapter on ResNet, to be written"
BASES["Vmap"] = "mixtures of experts, in a chapter on GPT, to be written"


def derived(book: Book, chapter: str) -> set[str]:
    """The names that a chapter derives, layers or not."""
    found = set()
    for cell in sources.read(book, chapter).cells:
        if cell.cell_type == "markdown":
            found |= marked(cell.source)
        elif tree := guards.parse(cell.source):
            found |= written(tree) | quoted(tree)
    return found


def marked(text: str) -> set[str]:
    """What its marks `:::{names}` say of the package `nn`."""
    names = [
        f"{part.title},{part.text}"
        for part in fences.parts(text)
        if not isinstance(part, str) and part.kind == "names"
    ]
    return set(re.findall(r"\bnn\.(\w+)", ",".join(names)))


def written(tree: ast.Module) -> set[str]:
    """The classes and names that a cell binds at its top."""
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return classes | {target.id for target in targets if isinstance(target, ast.Name)}


def quoted(tree: ast.Module) -> set[str]:
    """The X of `viz.show_source(nn.X)` and `viz.show_source(nn.X.fwd)`."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    calls = [call for call in calls if ast.unparse(call.func).endswith("show_source")]
    return {
        name for call in calls for item in call.args for name in re.findall(r"\bnn\.(\w+)", ast.unparse(item))
    }


def chapters() -> list[str]:
    """The chapters of Part II."""
    toc = yaml.safe_load((BOOK.root / "_toc.yml").read_text(encoding="utf-8"))
    (part,) = (part for part in toc["parts"] if part["caption"] == PART)
    return [Path(chapter["file"]).name for chapter in part["chapters"]]


def missing(layers, by_chapter: dict[str, set[str]]) -> list[str]:
    """The layers that no chapter derives."""
    return sorted(set(layers) - set().union(*by_chapter.values()))


def test_every_public_layer_is_derived_in_a_chapter():
    by_chapter = {name: derived(BOOK, name) for name in chapters()}
    assert "layers" in by_chapter
    found = missing(set(LAYERS) - BASES.keys(), by_chapter)
    assert not found, (
        f"no chapter of Part II derives {', '.join(f'nn.{name}' for name in found)}: let a cell define a class of that name, quote "
        "it by viz.show_source(nn.X), or mark the section that teaches it with `:::{names} nn.X`"
    )


# The test's own tests


@pytest.mark.parametrize(
    "code",
    [
        "class Conv(nn.Layer):\n    ...",
        "Conv = F(shift)",
        "viz.show_source(nn.Conv)",
        "show_source(nn.Series, nn.Conv.fwd)",
    ],
)
def test_code_that_derives(code):
    tree = ast.parse(code)
    assert "Conv" in written(tree) | quoted(tree)


@pytest.mark.parametrize(
    "code",
    [
        "layer = nn.Conv(3)",
        "print(nn.Conv)",
        "def use():\n    class Conv: pass",
        "viz.show_source(optim.Conv)",
    ],
)
def test_code_that_only_uses(code):
    tree = ast.parse(code)
    assert "Conv" not in written(tree) | quoted(tree)


def test_a_mark_that_derives():
    assert marked("## Conv\n\n:::{names} nn.Conv, jax.vmap\n:::\n\nText with `nn.Embed`.") == {"Conv"}


def test_a_layer_that_no_chapter_derives_is_found():
    by_chapter = {"one": {"Linear", "relu"}, "two": {"Bias"}}
    layers = ["Bias", "Conv", "Linear", "New"]
    assert missing(layers, by_chapter) == ["Conv", "New"]
    assert missing(layers, by_chapter | {"three": {"kernel", "Conv"}}) == ["New"]
    assert missing(layers, by_chapter | {"three": {"Conv", "New"}}) == []


def test_a_new_public_layer_is_found():
    assert {"Linear", "Conv", "Residual"} <= set(LAYERS) and "capture" not in LAYERS
    assert all(inspect.isclass(getattr(nn, name)) for name in LAYERS)
