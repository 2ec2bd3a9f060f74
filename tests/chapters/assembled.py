"""The code that a chapter's reader has at its end, taken out of the cells of the notebook."""

import ast
import builtins
import json
import pathlib
import re
import symtable

# Who asks names the notebook, and so depends on it.
ROOT = pathlib.Path(__file__).parents[2]
# Cells with these tags are no code of the reader's.
SKIPPED = {"raises-exception", "remove-cell"}


def definitions(notebook: str, *names: str) -> dict:
    """Run what a chapter defines under some names, each as it stands last, and all that this needs; nothing else of it.

    Args:
      notebook: its path, such as ``"book/layers.ipynb"``.
      names: of functions, classes or variables that its cells define at their top.

    Returns:
      The namespace in which the statements ran, in the order of the notebook.
    """
    statements = _statements(notebook)
    where = {}  # name -> the indices of the statements that bind it
    for index, statement in enumerate(statements):
        for name in _bound(statement):
            where.setdefault(name, []).append(index)
    if missing := [name for name in names if name not in where]:
        raise LookupError(f"{notebook}: no cell defines {', '.join(missing)}")

    chosen, waiting = set(), [where[name][-1] for name in names]
    while waiting:
        index = waiting.pop()
        if index in chosen:
            continue
        chosen.add(index)
        for name in _used(statements[index]):
            # As it was where the statement stands; what a function calls may be defined behind it.
            others = [other for other in where.get(name, ()) if other != index]
            before = [other for other in others if other < index]
            waiting += before[-1:] or others[:1]
    namespace = {"__name__": "assembled"}
    for index in sorted(chosen):
        code = compile(ast.Module([statements[index]], []), f"<{notebook}, statement {index}>", "exec")
        exec(code, namespace)
    return namespace


def _statements(notebook: str) -> list[ast.stmt]:
    found = []
    for cell in json.loads((ROOT / notebook).read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and not SKIPPED & set(cell["metadata"].get("tags", ())):
            found += ast.parse(re.sub(r"(?m)^(\s*)[%!].*", r"\1pass", "".join(cell["source"]))).body
    return found


def _bound(statement: ast.stmt) -> set[str]:
    """The names that a statement binds at the top of a module."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return {
            node.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
    return set()


def _used(statement: ast.stmt) -> set[str]:
    """The global names that a statement reads, now or when it is called."""
    found = {
        node.id
        for node in ast.walk(statement)
        if isinstance(statement, ast.AugAssign) and isinstance(node, ast.Name)
    }
    tables = [symtable.symtable(ast.unparse(statement), "statement", "exec")]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        outermost = table.get_type() == "module"
        found |= {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (outermost or symbol.is_global())
        }
    return found - set(dir(builtins))
