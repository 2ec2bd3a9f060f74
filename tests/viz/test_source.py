"""`show_source`: what is installed, without docstrings, and still Python."""

import ast
import functools

import pytest

from mlax_tutorial import nn
from mlax_tutorial.viz.source import show_source


class Example:
    """A docstring
    of two lines."""

    size: int = 3

    @property
    def double(self):
        """Another."""

        # A comment stays.
        return 2 * self.size

    @functools.cache
    @staticmethod
    def only():
        """All there is."""


def test_docstrings_go_and_code_stays():
    assert show_source(Example).splitlines() == [
        "class Example:",
        "    size: int = 3",
        "",
        "    @property",
        "    def double(self):",
        "        # A comment stays.",
        "        return 2 * self.size",
        "",
        "    @functools.cache",
        "    @staticmethod",
        "    def only():",
        '        """All there is."""',
    ]


@pytest.mark.parametrize("thing", [nn.Linear, nn.Series, nn.Series.fwd, nn.F])
def test_the_librarys_source_is_python_without_docstrings(thing):
    shown = show_source(thing)
    tree = ast.parse(shown)
    definitions = [n for n in ast.walk(tree) if isinstance(n, (ast.ClassDef, ast.FunctionDef))]
    assert thing.__name__ in {n.name for n in definitions}
    assert not any(ast.get_docstring(n) for n in definitions if len(n.body) > 1)


def test_a_notebook_gets_a_highlighted_block():
    assert show_source(nn.F)._repr_markdown_().startswith("```python\nclass F(Layer):")
    assert repr(show_source(nn.F)) == str(show_source(nn.F))


def test_several_things_and_no_source():
    assert show_source(nn.F, nn.F).count("class F(Layer):") == 2
    with pytest.raises(TypeError):
        show_source(len)
