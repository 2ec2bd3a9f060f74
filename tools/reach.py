"""Which tests a change reaches, and how many of them there is time for.

Everything takes hours, so `make test` and `.ci/run` take the tests that a change reaches. A *unit* is a test file
(`tests/exercises/jit/counter.py`), a chapter (`book/jit.ipynb`) or a rendered page (`book/jit.html`). A change reaches it if
the unit, or a file that it uses, was changed. A file uses what it imports, of a package's face only what it names (`nn.Linear`:
linear.py alone), and the files whose names stand in it (`"garments.npz"`); `besides` says what else. Changed are the files of
the commits of the last two days before the last one, and those that are not committed: the same commit always takes the same
tests.

The units that are reached run nearest first, and what changed in the last hours before the rest, as many as there is room for:
`SECONDS` says how long each takes, about, and a target of the Makefile how many minutes it has. What finds no room is named at
the end. `make test-all` runs everything.

    make test                         what the commits of the last two days reach, and what you changed since
    make test TAKE=all                everything
    python -m tools.reach [FILE ...]  what these files, or what was changed, would reach: units with their distance
"""

import ast
import functools
import hashlib
import json
import pathlib
import re
import subprocess
import sys

import pytest

from tools.project import ROOT

DAYS = 2
RECENT = 3  # hours; what was changed before is two steps further away
CHOICES = ("reached", "all")
is_unit = re.compile(r"book/\w+\.ipynb|tests/exercises/\w+/[a-z]\w*\.py|tests/(?:.*/)?test_\w+\.py").fullmatch
# Of these each chapter or page, which the tests have as a parameter, is a unit.
SPLIT = {"tests/colab/test_colab.py", "tests/site/test_pages.py", "tests/tpu/test_chapters.py"}

# Everything depends on these.
EVERYWHERE = {"pyproject.toml", "uv.lock", "pytest.ini", "tests/conftest.py", "mlax_tutorial/__init__.py"}
# What all pages have in common; if it changes, some are looked at.
OF_THE_SITE = ("book/_static/", "book/_templates/", "tools/site/", "tools/visits/", "_config.yml", "_toc.yml")
SOME_PAGES = ("index.html", "book/welcome.html", "book/jit.html", "book/attention.html", "book/reference/layers.html")  # fmt: skip

# How long a unit takes on one processor, in seconds: means of samples of each kind, measured on the two cores of CI in November
# 2026. A chapter takes what its record says.
SECONDS = {
    "tests/exercises/": 4,
    "tests/laws/": 12,
    "tests/modules/": 12,
    "tests/nn/": 12,
    "tests/optim/": 12,
    "tests/site/": 45,
    "tests/training/": 16,
    "tests/models/": 10,
    "book/": 6,
    "": 8,
}
FAR = 5  # the distance over which nobody knows how
KERNEL = 5  # seconds to start one, and to import JAX in it


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed(hours: int = 24 * DAYS) -> frozenset[str]:
    """The files that the commits of the last hours changed (-m: merges, too), or that differ from the last one."""
    last = "".join(git("log", "-1", "--format=%ct")) or "0"
    since = int(last) - hours * 3600
    files = git(*f"log --first-parent -m --since={since} --format= --name-only".split())
    files += git("diff", "HEAD", "--name-only") + git("ls-files", "--others", "--exclude-standard")
    return frozenset(
        file for file in files if not re.fullmatch(r"book/(\w+\.ipynb|_records/\w+\.json)", file)
    )


class Project:
    """Files by their paths, and which of them uses which."""

    def __init__(self, root: pathlib.Path, files):
        self.root, self.files = root, frozenset(files)
        self.face = functools.cache(self._face)

    @functools.cached_property
    def named(self) -> dict[str, list[str]]:
        """The files by their last names, but for those that say nothing."""
        found = {}
        for file in self.files:
            name = file.rpartition("/")[2]
            if name not in ("__init__.py", "__main__.py", "conftest.py", "style.css", "script.js"):
                found.setdefault(name, []).append(file)
        return found

    def file_of(self, module: str) -> str | None:
        base = module.replace(".", "/")
        return next((file for file in (f"{base}.py", f"{base}/__init__.py") if file in self.files), None)

    def text(self, file: str) -> str:
        try:
            return (self.root / file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # deleted, or a picture
            return ""

    def tree(self, file: str) -> ast.Module:
        if file.endswith(".ipynb"):
            cells = [cell for cell in json.loads(self.text(file))["cells"] if cell["cell_type"] == "code"]
            return ast.Module([line for cell in cells for line in _parsed("".join(cell["source"]))], [])
        return ast.parse(self.text(file))

    def _face(self, package: str) -> dict[str, str]:
        """What the `__init__.py` of a package hands on: names, and the files that define them."""
        found = {}
        for node in self.tree(package).body:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for name in node.names:
                    origin = self.file_of(f"{node.module}.{name.name}") or self.file_of(node.module)
                    found[name.asname or name.name] = origin
            elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
                folder = package.replace("__init__.py", "figures/").replace("/", ".")
                names = (each.value for each in ast.walk(node.value) if isinstance(each, ast.Constant))
                for name in names:  # `viz` imports a figure when it is asked for
                    found.setdefault(name, self.file_of(f"{folder}{name}"))
        return {name: file for name, file in found.items() if file}

    def uses(self, file: str) -> set[str]:
        """What a file uses by itself."""
        return (self.imports(file) | self.mentions(file) | set(self.besides(file))) - {file}

    def mentions(self, file: str) -> set[str]:
        """Files whose names stand in a module: of tests any (a script, a page), of the package data that lies beside it."""
        if not file.endswith(".py"):
            return set()
        names = set(re.findall(r"[\w.-]+\.[a-z]+\b", self.text(file)))
        found = {each for name in names for each in self.named.get(name, ())}
        if not file.startswith("tests/"):
            folder = file.rpartition("/")[0]
            return {each for each in found if each.startswith(folder) and not each.endswith(".py")}
        if file.startswith("tests/site/"):
            sources = {
                f"book/_src/{name.removesuffix('.html')}.md" for name in names if name.endswith(".html")
            }
            return found | sources & self.files
        return {each for each in found if not each.startswith("book/")}

    def imports(self, file: str) -> set[str]:
        if not file.endswith((".py", ".ipynb")):
            return set()
        tree, packages = self.tree(file), {}
        found = {*self.face(file).values()} if file.endswith("/__init__.py") else set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    own, known = self.file_of(name.name), name.asname or name.name
                    if own and own.endswith("/__init__.py") and "." not in known:
                        packages[known] = own
                    else:
                        found.add(own)
            elif isinstance(node, ast.ImportFrom):
                folder = pathlib.PurePosixPath(file).parts[: -node.level or None] if node.level else ()
                module = ".".join([*folder, *filter(None, [node.module])])
                for name in node.names:
                    own, origin = self.file_of(f"{module}.{name.name}"), self.file_of(module)
                    if own and own.endswith("/__init__.py"):
                        packages[name.asname or name.name] = own
                    elif not own and origin and origin.endswith("/__init__.py"):
                        found.add(self.face(origin).get(name.name, origin))
                    else:
                        found.add(own or origin)
        asked = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) in packages:
                asked.add(node.value)
                package = packages[node.value.id]
                module = package.removesuffix("/__init__.py").replace("/", ".")
                found.add(
                    self.face(package).get(node.attr) or self.file_of(f"{module}.{node.attr}") or package
                )
        # A package may also be handed on as a whole.
        names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and node not in asked)
        found |= {packages[node.id] for node in names if node.id in packages}
        return found - {None}

    def besides(self, file: str):
        """What a file uses without saying so."""
        path = pathlib.PurePosixPath(file)
        if file.startswith("tests/"):
            for folder in path.parents:
                yield f"{folder}/conftest.py"
        if file.startswith("tests/exercises/"):
            yield "tests/exercises/owed.py"
        if file.startswith("tests/chapters/test_"):
            yield f"book/_src/{path.stem.removeprefix('test_')}.md"
        if file.startswith("tests/site/"):
            yield from (each for each in self.files if each.startswith(OF_THE_SITE))
        if file in SOME_PAGES:
            yield from (each for each in self.files if each.startswith(OF_THE_SITE))
        if file.startswith("mlax_tutorial/viz/figures/"):
            beside = (each for each in self.files if each.rpartition("/")[0] == str(path.parent))
            yield from (each for each in beside if each.endswith((".css", ".js")))
        if path.suffix in (".ipynb", ".html") and path.parts[0] == "book":
            yield from (path.with_suffix(".md").as_posix(), f"book/_src/{path.stem}.md")

    @functools.cached_property
    def record(self) -> dict:
        records = (file for file in self.files if re.fullmatch(r"book/_records/\w+\.json", file))
        return {pathlib.PurePosixPath(file).stem: json.loads(self.text(file)) for file in records}

    @functools.cached_property
    def users(self) -> dict[str, set[str]]:
        """For each file those that use it."""
        found = {}
        for file in self.files | set(SOME_PAGES):
            for used in self.uses(file):
                found.setdefault(used, set()).add(file)
        return found

    def distances(self, recent, before=()) -> dict[str, int]:
        """The files that a change reaches, and over how many steps."""
        found, border, step = {}, set(recent), 0
        while border or step < 2:
            found |= dict.fromkeys(border, step)
            border = {user for file in border for user in self.users.get(file, ())} - found.keys()
            step += 1
            if step == 2:
                border |= set(before) - found.keys()
        return found

    def loaded(self, changed) -> set[str]:
        """The chapters that had loaded one of these files when they were executed."""
        return {f"book/{name}.ipynb" for name, entry in self.record.items() if changed & {*entry["modules"]}}

    def seconds(self, unit: str) -> float:
        """About how long a unit takes on one processor."""
        if unit.endswith(".ipynb"):
            return KERNEL + self.record.get(pathlib.PurePosixPath(unit).stem, {}).get("seconds", 0)
        return next(seconds for beginning, seconds in SECONDS.items() if unit.startswith(beginning))


def _parsed(cell: str) -> list[ast.stmt]:
    try:
        return ast.parse(cell).body
    except SyntaxError:  # a magic, or what the chapter shows to be wrong
        return []


@functools.cache
def project() -> Project:
    return Project(ROOT, git("ls-files", "--cached", "--others", "--exclude-standard"))


@functools.cache
def reached(recent: frozenset[str], before: frozenset[str] = frozenset()) -> dict[str, int]:
    """The units that changes reach, nearest first, with their distances; pages among them, which are not built yet."""
    all_of_it, changes = project(), recent | before
    found = dict.fromkeys(all_of_it.loaded(changes), FAR) | all_of_it.distances(recent, before)
    pages = {
        re.sub(r"^(book/[^_].*)\.(md|ipynb)$", r"\1.html", file): step
        for file, step in found.items()
        if file.startswith("book/")
    }
    if changes & EVERYWHERE:
        found = dict.fromkeys(all_of_it.files, FAR) | found
    units = {file: step for file, step in found.items() if is_unit(file)}
    units |= {page: step for page, step in pages.items() if page.endswith(".html")}
    units |= {page: found[page] for page in SOME_PAGES if page in found}
    return dict(sorted(units.items(), key=_order))


def _order(reached: tuple[str, int]):
    """The nearest first; exercises, whose solutions are graded in any case, after what else is as near; then mixed, so that no kind of
    test finds no room when much was changed.
    """
    unit, distance = reached
    return distance, unit.startswith("tests/exercises/"), hashlib.sha256(unit.encode()).digest()


class Taken:
    """What a run takes of the units that are offered to it."""

    def __init__(self, take: str, minutes: float = 0, always=()):
        self.take, self.always = take, tuple(always)
        self.room = 2 * 60 * minutes or float("inf")  # seconds of two processors
        self.far, self.no_room = set(), set()

    def choose(self, units) -> list[str]:
        """Those of the units that are taken, in their order."""
        if self.take == "all":
            return sorted(units)
        near = reached(changed(RECENT), changed())
        chosen = sorted(unit for unit in units if unit.startswith(self.always)) if self.always else []
        waiting = sorted(
            set(units) - set(chosen), key=lambda unit: [*near].index(unit) if unit in near else len(near)
        )
        left = self.room
        for unit in waiting:
            left -= project().seconds(unit)
            if unit not in near:
                self.far.add(unit)
            elif left < 0:
                self.no_room.add(unit)
            else:
                chosen.append(unit)
        return chosen

    def report(self, target: str) -> list[str]:
        """What a run says at its end."""
        if self.take == "all":
            return ["everything was taken"]
        lines = [f"left out, since no change reaches them: {len(self.far)} units"] if self.far else []
        if self.no_room:
            lines.append(
                f"left out, since there is no room: {len(self.no_room)}, {' '.join(sorted(self.no_room))}"
            )
        return [*(lines or ["nothing was left out"]), f"all of it: make {target} TAKE=all"]


# Pytest's part. Workers of xdist choose for themselves, and tell the process that was started.
def pytest_addoption(parser):
    parser.addoption("--take", choices=CHOICES, default="all", help="what a change reaches, or everything")
    parser.addoption("--minutes", type=float, default=0, help="for test files, and as many for pages or chapters, on two processors; 0: no limit")  # fmt: skip
    parser.addoption("--always", action="append", default=[], help="how paths begin that run in any case")
    parser.addoption("--target", default="test", help="the make target that the last line names")


def pytest_configure(config):
    if config.option.take != "all":
        config.pluginmanager.register(Chooser(config), "reach")


class Chooser:
    def __init__(self, config):
        option = config.option
        self.target = option.target
        self.taken = Taken(option.take, option.minutes, option.always)
        asked, ignored = (
            [*map(pathlib.Path.resolve, map(pathlib.Path, paths))]
            for paths in (config.args, option.ignore or ())
        )
        units = [file for file in project().files if is_unit(file) and file not in SPLIT]
        units = [unit for unit in units if below(unit, asked) and not below(unit, ignored)]
        self.gone = {*units} - {*self.taken.choose(units)}

    def pytest_ignore_collect(self, collection_path):
        inside = collection_path.is_relative_to(ROOT)
        return (inside and collection_path.relative_to(ROOT).as_posix() in self.gone) or None

    def pytest_collection_modifyitems(self, config, items):
        split = [item for item in items if item.location[0] in SPLIT and hasattr(item, "callspec")]
        units = {item: item.callspec.params.get("path") or item.callspec.params.get("name") for item in split}
        chosen = set(self.taken.choose({*filter(None, units.values())}))
        gone = {item for item, unit in units.items() if unit and unit not in chosen}
        config.hook.pytest_deselected(items=[*gone])
        items[:] = [item for item in items if item not in gone]

    def pytest_sessionfinish(self, session):
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = [sorted(self.taken.far), sorted(self.taken.no_room)]
        elif session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and self.taken.far | self.taken.no_room:
            session.exitstatus = pytest.ExitCode.OK

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node, error):
        for known, told in zip(
            [self.taken.far, self.taken.no_room], getattr(node, "workeroutput", {}).get("left_out", ())
        ):
            known.update(told)

    def pytest_terminal_summary(self, terminalreporter):
        for line in self.taken.report(self.target):
            terminalreporter.write_line(f"{self.target}: {line}")


def below(file: str, folders) -> bool:
    return any((ROOT / file).is_relative_to(folder) for folder in folders)


if __name__ == "__main__":
    of = (frozenset(sys.argv[1:]),) if sys.argv[1:] else (changed(RECENT), changed())
    for unit, step in reached(*of).items():
        print(step, f"{project().seconds(unit):4.0f} s", unit)
