"""The notebook tool: from hand-written sources to executed, checked notebooks.

    python -m tools.notebooks build [NAME ...]   execute the chapters that changed
    python -m tools.notebooks run [NAME ...]     run every chapter twice, in this environment, comparing nothing
    python -m tools.notebooks check [NAME ...]   the guards that need no execution
    python -m tools.notebooks pages              write the generated pages and the README's table of chapters

A chapter is written in `book/_src/NAME.md`, in the format that `tools/notebooks/format.txt` describes and `--help` prints, and
read in `book/NAME.ipynb`. In the order of the work:

    places.py         where sources, notebooks and records lie
    sources.py        read a chapter's source into cells
    setup_cell.py     the cell that every chapter starts with
    kernel.py         run cells, one after the other, in a fresh kernel
    canonical.py      one spelling for equal notebooks, so that a second build changes nothing
    inputs.py         what a chapter depends on, as hashes
    record.py         what is known of each chapter: inputs, run time, versions, claims
    build.py          all of these together
    run.py            every chapter twice, in any environment
    guards.py         what must not be in a notebook, and what to do about it
    claims.py         the claims that the book owes, the cells that show them, and their page
    exercises.py      the exercises of the chapters, and their page
    tables.py         what the generated pages share
    pages.py          the status page, the README's table, and whether all of these are up to date
    likeness.py       compare pictures: PNG by pixels, SVG by its numbers
    validation.py     what this project adds to nbval
"""
