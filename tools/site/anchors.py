"""Cells that show a claim can be linked to: `arrays.ipynb#claim-J4` is the first one in Arrays, `#claim-J4-2` the second.

MyST looks up the part of a link behind `#` among a page's headings; the names of the cells are added to them.
"""

from docutils import nodes

from tools.notebooks import claims

CELL_TAG = f"tag_{claims.PREFIX}"  # how MyST-NB writes a cell's tag as a class


def name_cells(app, doctree):
    """Give each cell that shows a claim an id, and tell MyST."""
    slugs = app.env.metadata[app.env.docname].setdefault("myst_slugs", {})
    counts = {}
    for cell in doctree.findall(nodes.container):
        for name in [name for name in cell["classes"] if name.startswith(CELL_TAG)]:
            claim = name.removeprefix(CELL_TAG)
            counts[claim] = counts.get(claim, 0) + 1
            anchor = claims.anchor(claim, counts[claim])
            cell["ids"].append(anchor)
            slugs[anchor] = (cell.line, anchor, claim)


def setup(app):
    app.connect("doctree-read", name_cells)
