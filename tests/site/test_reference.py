"""The reference: everything public stands on one page, with an example; signatures are as a reader writes them."""

import inspect
import pydoc
import re

import pytest

from mlax_tutorial import (
    augment,
    metrics,
    nn,
    optim,
    packing,
    precision,
    saving,
    sharding,
    streams,
    training,
    trees,
)
from tests.site.conftest import ROOT
from tools.site import reference

PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "book/reference").glob("*.md")}
WRITTEN = re.findall(r"\.\. auto\w+:: mlax_tutorial\.([\w.]+)", "".join(PAGES.values()))
MODULES = {
    m.__name__.rpartition(".")[2]: m
    for m in (augment, metrics, nn, optim, packing, precision, saving, sharding, streams, training, trees)
}


def public_names(module):
    """What a module lists in ``__all__``, or else what is defined there and can be called."""
    own = (name for name, item in vars(module).items() if getattr(item, "__module__", "") == module.__name__)
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


NAMES = [f"{name}.{public}" for name, module in MODULES.items() for public in public_names(module)]


def found(name):
    module, _, name = name.partition(".")
    return getattr(MODULES[module], name)


@pytest.mark.parametrize("public", NAMES)
def test_everything_public_stands_on_one_page(public):
    assert WRITTEN.count(public) == 1, (
        f"add `.. autoclass:: mlax_tutorial.{public}` to a page in book/reference/"
    )


@pytest.mark.parametrize("public", NAMES)
def test_everything_public_has_an_example(public):
    """Errors, named tuples and three bases need none; `make test` runs the others (`--doctest-modules`)."""
    thing = found(public)
    if inspect.isclass(thing) and issubclass(thing, (BaseException, tuple)):
        pytest.skip("needs none")
    if thing in (optim.Transformation, optim.Optimizer, precision.LossScale):
        pytest.skip("is a base")
    assert ">>> " in (inspect.getdoc(thing) or "")


def test_what_stands_at_the_top_of_a_module_is_shown_where_a_docstring_refers_to_it():
    referring = 0
    for text in PAGES.values():
        for place, name in [
            (each.start(), each[1]) for each in re.finditer(r"\.\. auto\w+:: ([\w.]+)", text)
        ]:
            thing = pydoc.locate(name)
            if "see the top of the module" in (inspect.getdoc(thing) or ""):
                referring += 1
                assert f".. automodule:: {thing.__module__}\n" in text[:place], name
    assert referring == 4


def test_signatures_show_defaults_without_types_and_addresses():
    text = reference.signature(nn.Linear)
    assert text.startswith("(out_features, kernel_initializer=lecun_normal, transposed_kernel=False")
    assert not re.search(r"0x|Callable|Any", text)


def test_long_signatures_are_no_lists():
    body = '<dl class="py"><dt class="sig sig-object">f(<dl><dd>x,</dd></dl>)</dt><dd>Text.</dd></dl>'
    wanted = (
        '<dl class="py"><dt class="sig sig-object">f(<span class="sig-lines"><span>x,</span></span>)</dt>'
    )
    assert reference.mend_signatures(body) == wanted + "<dd>Text.</dd></dl>"
