"""What this project adds to nbval: pictures compared with a tolerance, and a clean surrounding.

`book/conftest.py` takes the hooks from here.
"""

import itertools
import os
import pathlib
import tempfile

from tools.notebooks import kernel, likeness, record
from tools.notebooks.places import Book

_book = None
_scratch = None


def pytest_configure(config):
    """The kernels that nbval starts inherit this environment."""
    global _book, _scratch
    _book = Book(config.rootpath)
    if not (getattr(config.option, "nbval", False) or getattr(config.option, "nbval_lax", False)):
        return
    _scratch = tempfile.TemporaryDirectory(prefix="nbval-")
    scratch = pathlib.Path(_scratch.name)
    os.environ.update(kernel.environment(_book, scratch))  # as in a build
    _start_without_ports(scratch)
    if config.option.nbval:
        os.environ.setdefault("JAX_PLATFORMS", "cpu")  # where the stored outputs were made
        _compare_pictures()


def pytest_unconfigure(config):
    if _scratch is not None:
        _scratch.cleanup()


def _start_without_ports(scratch):
    """Nbval lets nobody choose how its kernels are reached."""
    from nbval import kernel as of_nbval

    manager = of_nbval.KernelManager

    def new_manager(**settings):
        folder = pathlib.Path(tempfile.mkdtemp(dir=scratch))  # the kernel before may be on its way out
        return manager(**kernel.without_ports(folder), **settings)

    of_nbval.KernelManager = new_manager


def _compare_pictures():
    """Let nbval's comparison see pictures: alike ones as equal, others as text that says what differs."""
    from nbval import plugin

    original = plugin.IPyNbCell.compare_outputs
    if getattr(original, "with_pictures", False):
        return

    def compare_outputs(self, test, ref, skip_compare=None):
        test, ref = _pictures_as_words(self, test, ref)
        return original(self, test, ref, skip_compare)

    compare_outputs.with_pictures = True
    plugin.IPyNbCell.compare_outputs = compare_outputs


def _pictures_as_words(cell, fresh, stored):
    """Copies of both lists of outputs in which a picture is replaced by what is to be said of it."""
    fresh, stored = [_copy(output) for output in fresh], [_copy(output) for output in stored]
    for mime in {mime for output in fresh + stored for mime in output.get("data", {})}:
        new = [output["data"] for output in fresh if mime in output.get("data", {})]
        old = [output["data"] for output in stored if mime in output.get("data", {})]
        for before, after in itertools.zip_longest(old, new):
            if not any(
                data is not None and likeness.is_picture(mime, data[mime]) for data in (before, after)
            ):
                continue
            what = None
            if before is not None and after is not None:
                what = likeness.difference(mime, cell.sanitize(before[mime]), cell.sanitize(after[mime]))
            # One picture more or less is a difference in the number of outputs, which nbval finds.
            if before is not None:
                before[f"picture {mime}"] = "as it was stored"
                del before[mime]
            if after is not None:
                after[f"picture {mime}"] = what or "as it was stored"
                del after[mime]
    return fresh, stored


def _copy(output):
    copy = type(output)(output)
    if "data" in copy:
        copy["data"] = type(copy["data"])(copy["data"])
    return copy


def pytest_collection_modifyitems(items):
    """The longest chapters first (cells stay in order), so that two workers end together."""
    entries = record.load(_book)
    items.sort(key=lambda item: -entries.get(item.path.stem, {}).get("seconds", 0))
