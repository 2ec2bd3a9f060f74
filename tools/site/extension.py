"""The book's own Sphinx extension: boxes with titles, links to cells, header buttons, page descriptions, reference pages,
the contents, the search, a light theme.

`_config.yml` loads it (`local_extensions`).
"""

from tools.visits import pdf

from . import (
    anchors,
    assets,
    boxes,
    bundles,
    cells,
    contents,
    exercises,
    pages,
    predictions,
    reference,
    search,
    start,
    terms,
)


def setup(app):
    anchors.setup(app)
    boxes.setup(app)
    cells.setup(app)
    exercises.setup(app)
    predictions.setup(app)
    terms.setup(app)
    pages.setup(app)
    contents.setup(app)
    reference.setup(app)
    search.setup(app)
    start.setup(app)
    assets.setup(app)
    bundles.setup(app)
    pdf.setup(app)
    return {"version": "1", "env_version": 2, "parallel_read_safe": True, "parallel_write_safe": True}
