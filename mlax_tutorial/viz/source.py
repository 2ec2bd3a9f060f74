"""``show_source``: the library's code in a chapter, read from the package that is installed."""

import ast
import inspect
import textwrap


class Source(str):
    """Python code; prints as it is, and shows in a notebook as a highlighted block."""

    def __repr__(self):
        return str(self)

    def _repr_markdown_(self):
        return f"```python\n{self}\n```"


def show_source(*things) -> Source:
    """The code of classes, functions or methods as they are installed, without their docstrings.

    Args:
      *things: what `inspect.getsource` takes; written one after the other, with an empty line in between.

    Returns:
      A :class:`Source`: a string that a notebook shows with colours.

    Raises:
      TypeError, OSError: as `inspect.getsource`, where there is no Python source.

    Example:
      >>> from mlax_tutorial import nn
      >>> show_source(nn.Layer.init)
      def init(self, key: jax.Array, x: Any, **inputs) -> tuple[Any, Any]:
          self.check_input(x)
          return (), ()
    """
    return Source("\n\n".join(_without_docstrings(inspect.getsource(thing)) for thing in things))


def _without_docstrings(code: str) -> str:
    lines = textwrap.dedent(code).strip().splitlines()
    docstrings = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and len(node.body) > 1:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str):
                last = first.end_lineno
                while not lines[last].strip():  # the empty line below it goes, too
                    last += 1
                docstrings.update(range(first.lineno - 1, last))
    return "\n".join(line for number, line in enumerate(lines) if number not in docstrings)
