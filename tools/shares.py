"""Which part of the slow tests a run takes: a share of them, or all.

All takes an hour, so `make test` takes a sixth of what is slow, and the other environments a third. A *unit* is a test
file (`tests/exercises/jit/counter.py`), a chapter (`book/jit.ipynb`) or a rendered page (`book/jit.html`). Its share follows from
its name, and the share that a run takes from the number of its commit: three commits in a row take all thirds, six all sixths. A run also takes
the units that bear the name of a source that one of the latest commits, or you, touched: after a change in `nn/attention.py`
those named `attention`, and the exercises of that chapter.

    make test                       the sixth of this commit; SHARE=2/6 takes the second, SHARE=commit/3 this commit's third
    make test SHARE=all             everything
    python -m tools.shares 1/3      what is in a share; without a name in that of this commit
"""

import collections
import dataclasses
import hashlib
import pathlib
import re
import subprocess
import sys

import pytest

from tools.project import ROOT

LATEST = 3  # so many commits run all thirds
APART = ("benchmarks/", "examples/")  # their files bear the names of chapters, which do not use them
SALT = "2462"  # found by trying: with it, shares take about equally long
CHOICES = ("all", *(f"{number}/{of}" for of in (3, 6) for number in ("commit", *range(1, of + 1))))
is_unit = re.compile(r"book/\w+\.ipynb|tests/exercises/\w+/[a-z]\w*\.py|tests/(?:.*/)?test_\w+\.py").fullmatch
# Of these each chapter or page, which the tests have as a parameter, is a unit.
SPLIT = {"tests/colab/test_colab.py", "tests/site/test_pages.py", "tests/tpu/test_chapters.py"}


@dataclasses.dataclass(frozen=True)
class Share:
    """What a run takes: units of one share `of` so many, or of all where `number` is None, and those that are `touched`."""

    number: int | None
    of: int = 3
    touched: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> "Share":
        """The share that `text`, one of `CHOICES`, stands for in this checkout."""
        if text not in CHOICES:
            raise pytest.UsageError(f"there is no share {text!r}; there are {', '.join(CHOICES)}")
        if text == "all":
            return cls(None)
        number, of = text.split("/")
        return cls(share_of_commit(int(of)) if number == "commit" else int(number), int(of), touched())

    def takes(self, unit: str) -> bool:
        return self.number in (None, share_of(unit, self.of)) or bool(self.touched & names(unit))

    def report(self, left_out, command: str) -> str:
        """What a run says at its end of the units that it left out."""
        folders = collections.Counter(unit.rpartition("/")[0] for unit in left_out)
        if self.number is None:
            return "all shares: nothing was left out"
        what = ", ".join(f"{count} in {folder}" for folder, count in sorted(folders.items())) or "nothing"
        return f"share {self.number}/{self.of}; left out: {what}; all of it: {command} SHARE=all"


def share_of(unit: str, of: int) -> int:
    """The share to which a unit belongs."""
    return int(hashlib.sha256((SALT + unit).encode()).hexdigest(), 16) % of + 1


def names(unit: str) -> set[str]:
    """What a unit is called: `attention` for tests/library/test_attention.py; an exercise is called as its chapter, too."""
    *_, folder, file = ("", *pathlib.PurePosixPath(unit).parts)
    return {file.partition(".")[0].removeprefix("test_"), *([folder] if "exercises/" in unit else [])}


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def share_of_commit(of: int) -> int:
    """By the commit's number, or by its hash in a shallow clone, which does not know the number."""
    shallow = git("rev-parse", "--is-shallow-repository") == ["true"]
    said = git("rev-parse", "HEAD") if shallow else git("rev-list", "--first-parent", "--count", "HEAD")
    return int("".join(said) or "0", 16 if shallow else 10) % of + 1


def touched() -> frozenset[str]:
    """The names of sources that the latest commits changed (-m: merges, too), or that differ from the last one; none generated."""
    files = git(*f"log --first-parent -m -{LATEST} --format= --name-only".split())
    files += git("diff", "HEAD", "--name-only")
    files += git("ls-files", "--others", "--exclude-standard")
    files = [file for file in files if file.endswith((".py", ".md")) and not file.startswith(APART)]
    paths = map(pathlib.PurePosixPath, files)
    # What several exercises share is in a file whose name begins with `_`: it belongs to all of the chapter.
    return frozenset(p.parent.name if p.name[0] == "_" else p.stem.removeprefix("test_") for p in paths)


# Pytest's part. Workers of xdist choose for themselves, and tell the process that was started.
def pytest_addoption(parser):
    parser.addoption("--share", default="all", help=f"which part of the tests to run: {', '.join(CHOICES)}")
    parser.addoption("--always", action="append", default=[], help="how paths begin that run in any share")
    parser.addoption("--target", default="test", help="the make target that the last line names")


def pytest_configure(config):
    config.pluginmanager.register(Chooser(config), "shares")


class Chooser:
    def __init__(self, config):
        self.share, self.left_out = Share.parse(config.option.share), set()
        self.always, self.target = tuple(config.option.always), config.option.target
        self.asked = [*map(pathlib.Path.resolve, map(pathlib.Path, config.args))]  # not their neighbors

    def _leaves_out(self, unit: str) -> bool:
        self.left_out |= set() if self.share.takes(unit) else {unit}
        return unit in self.left_out

    def pytest_ignore_collect(self, collection_path):
        asked = any(map(collection_path.is_relative_to, self.asked))
        file = collection_path.as_posix().removeprefix(f"{ROOT.as_posix()}/") if asked else ""
        whole = is_unit(file) and file not in SPLIT and not file.startswith(self.always)
        return (whole and self._leaves_out(file)) or None

    def pytest_collection_modifyitems(self, config, items):
        split = [item for item in items if item.location[0] in SPLIT and hasattr(item, "callspec")]
        units = [item.callspec.params.get("path") or item.callspec.params.get("name") for item in split]
        gone = [item for item, unit in zip(split, units) if unit and self._leaves_out(unit)]
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = sorted(self.left_out)
        elif session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.left_out:
            session.exitstatus = pytest.ExitCode.OK

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        self.left_out.update(getattr(node, "workeroutput", {}).get("left_out", ()))

    def pytest_terminal_summary(self, terminalreporter):
        terminalreporter.write_line(self.share.report(self.left_out, f"make {self.target}"))


if __name__ == "__main__":
    share = Share.parse(*sys.argv[1:2] or ["commit/6"])
    print(f"share {share.number or 'all'}; touched: {', '.join(sorted(share.touched)) or 'nothing'}")
    print(*filter(share.takes, filter(is_unit, git("ls-files", "tests", "book"))), sep="\n")
