"""What ran and passed is remembered by content, so that it need not run again while nothing that it depends on changes.

A *unit* is run whole: a test module (`tests/exercises/jit/counter.py`), a chapter (`book/jit.ipynb`), a rendered page. An
*environment* is a name for the way in which it runs: `newest`, `oldest`, `rounding`, `colab`, `tpu`, `pages`. For each environment
a file in `tests/passed/` has a line for each unit that passed, with the key under which it did.

    dependencies    which files of the project a unit depends on, found by following imports
    circumstances   the rest of its key: installed versions, Python, platform, settings
    record          the lines, their seals; which units are left out of a run
    plugin          pytest's part: `-p tools.passed.plugin --passed ENVIRONMENT`
    rendered        what a reader's browser gets of a rendered page, for the keys of tests that visit some
    pages           the visits to all rendered pages, each a unit: `-p tools.passed.pages`
    projection      how long runs take with more chapters and exercises

A tool that runs units itself asks and tells::

    record = Record("rounding", runner=["tools/rehearse.py"])
    if not record.covers("book/jit.ipynb"):
        ...                                               # run it
        record.passed("book/jit.ipynb", seconds)          # or record.failed("book/jit.ipynb")
    print(record.summary(), end="")
"""

from tools.passed.record import Record, Refused

__all__ = ["Record", "Refused"]
