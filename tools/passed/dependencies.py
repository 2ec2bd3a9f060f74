"""Which files of the project a unit depends on, without running it.

Imports are followed wherever they stand: at the top, in functions, in the code cells of notebooks, in programs that are
strings and run in a process of their own; what a package imports when it is asked for (its `_LATE`), where it is asked for. What cannot be followed counts as a dependency on everything, unless a comment
on its line says what it imports: `# imports: mlax_tutorial.exercises.*`, or `# imports: nothing of this project`. Likewise a
test that knows where the repository lies depends on all files, unless a comment of it says what it reads there:
`# reads: book/*.ipynb`, or `# reads: nothing else`. What these files import counts, too, but not with
`# reads the text of: tools/site/*.py`. A test of the rendered book may say which of its pages it visits: `# visits: book/jit.html`,
or `# visits: nothing of the book`.
"""

import ast
import functools
import hashlib
import json
import pathlib
import re

from tools import project

# Names of functions that import, or look for, modules that only a run knows.
DYNAMIC = {
    "__import__", "exec_module", "import_module", "iter_modules", "run_module", "run_path", "spec_from_file_location",
    "walk_packages",
}  # fmt: skip
LISTING = {"glob", "iglob", "iterdir", "listdir", "rglob", "scandir", "walk"}
DECLARED = re.compile(r"#\s*imports:\s*(.+)$")
READS = re.compile(r"^\s*# reads( the text of)?: (.+)$", re.MULTILINE)
VISITS = re.compile(r"^# visits: (.+)$", re.MULTILINE)
NO_PAGE, PAGE = "nothing of the book", re.compile(r"[\w/-]+\.html")
# What leads from a test to the repository.
PLACES = {"tools.project", "tools.notebooks.places"}
IMPORT = re.compile(r"(?:^|[;\n])\s*(?:from\s+([\w.]+)\s+import\s+\(?([\w, ]+)|import\s+([\w., ]+))")
# Pytest reads these for every test.
ALWAYS = ("pytest.ini",)
RECORDS = "tests/passed"
# The package does not know of the repository; what the tools write into it decides no outcome.
KNOW_NO_FILES = {("mlax_tutorial",), ("tools",)}
NOT_SOURCE = {"__pycache__", "_build", "node_modules"}
# A chapter's listing imports all its exercises, each of which stands by itself. Who imports one of them passes through the
# listing, and depends on its text, but not on the neighbors; who imports the chapter depends on all.
LISTING_OF_EXERCISES = re.compile(r"mlax_tutorial/exercises/\w+/__init__\.py")
PASSED_THROUGH = "#"


class Project:
    """The files below `root`, as they are now: each is read once."""

    def __init__(self, root: pathlib.Path = project.ROOT):
        self.root = root
        self._direct, self._hashes = {}, {}

    def digest(self, name: str) -> str:
        """The hash of a file's content."""
        if name not in self._hashes:
            content = (self.root / name).read_bytes() if self.exists(name) else b"missing"
            self._hashes[name] = hashlib.sha256(content).hexdigest()
        return self._hashes[name]

    def files(self, *units: str) -> list[str]:
        """The files that these units depend on, themselves among them, as sorted paths below the root."""
        found, waiting = set(), [name for name in ALWAYS if self.exists(name)]
        for unit in units:
            folders = list(pathlib.PurePosixPath(unit).parents)
            conftests = [(folder / "conftest.py").as_posix() for folder in folders]
            waiting += [unit, *filter(self.exists, conftests)]
        while waiting:
            if (name := waiting.pop()) not in found:
                found.add(name)
                waiting += self.direct(name) - found
        return sorted({name.removesuffix(PASSED_THROUGH) for name in found})

    def visits(self, name: str) -> list[str] | None:
        """The pages of the rendered book that a test says it visits; None if it does not say, or not so that it can be read."""
        text = (self.root / name).read_text(encoding="utf-8") if self.exists(name) else ""
        said = VISITS.findall(text)
        if said == [NO_PAGE]:
            return []
        pages = [page.strip() for line in said for page in line.split(",")]
        return pages if pages and all(map(PAGE.fullmatch, pages)) else None

    def reads(self, name: str) -> bool:
        """Whether a test says what it reads in the repository."""
        return self.exists(name) and bool(READS.search((self.root / name).read_text(encoding="utf-8")))

    def direct(self, name: str) -> set[str]:
        """The files that a file names by itself."""
        if name not in self._direct:
            if name.endswith((".py", ".ipynb")) and self.exists(name):
                self._direct[name] = _Reader(self, name).files | self._beside(name)
            else:
                self._direct[name] = set()
        return self._direct[name]

    @functools.cached_property
    def everything(self) -> set[str]:
        """All Python files, for what may import any of them."""
        return {name for name in self._below(self.root) if name.endswith(".py")}

    @functools.cache  # noqa: B019  (a project lives as long as the run)
    def exists(self, name: str) -> bool:
        return (self.root / name).is_file()

    @functools.cache  # noqa: B019
    def late(self, name: str) -> dict[str, str]:
        """What a package imports when it is first asked for: its `_LATE = {"name": "module"}`."""
        if not name.endswith(".py") or not self.exists(name):
            return {}
        for node in ast.parse((self.root / name).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == "_LATE":
                return ast.literal_eval(node.value)
        return {}

    def late_of(self, dotted: str) -> dict[str, str]:
        """The late names of the module `dotted`."""
        path = dotted.replace(".", "/")
        return self.late(f"{path}/__init__.py") or self.late(f"{path}.py")

    @functools.cache  # noqa: B019
    def module(self, dotted: str) -> frozenset[str]:
        """The files that `import dotted` executes; none if it is no module of the project."""
        found, parts = set(), dotted.split(".")
        for end in range(1, len(parts) + 1):
            path = "/".join(parts[:end])
            for name in (f"{path}/__init__.py", f"{path}.py"):
                if self.exists(name):
                    found.add(name if end == len(parts) else _passed_through(name))
                    break
            else:
                if not (self.root / path).is_dir():
                    break
        return frozenset(found)

    def package(self, dotted: str) -> set[str]:
        """All modules of a package."""
        folder = self.root / dotted.replace(".", "/")
        below = {name for name in self._below(folder) if name.endswith(".py")} if folder.is_dir() else set()
        return below | self.module(dotted)

    def listed(self, folder: str) -> set[str]:
        return self._below(self.root / folder)

    def _below(self, folder: pathlib.Path) -> set[str]:
        found = set()
        for entry in folder.iterdir():
            if entry.name.startswith(".") or entry.name in NOT_SOURCE:
                continue
            name = entry.relative_to(self.root).as_posix()
            if entry.is_dir() and name != RECORDS:
                found |= self._below(entry)
            elif entry.is_file() and entry.suffix not in {".pyc", ".partial"}:
                found.add(name)
        return found

    @functools.cache  # noqa: B019
    def _data(self, folder: str) -> frozenset[str]:
        """The files of a package that are no modules, and the folders in it that hold none."""
        found = set()
        for entry in (self.root / folder).iterdir():
            if entry.name.startswith(".") or entry.name in NOT_SOURCE:
                continue
            name = entry.relative_to(self.root).as_posix()
            if entry.is_dir() and name != RECORDS:
                below = self._below(entry)
                if not any(file.endswith(".py") for file in below):
                    found |= below
            elif entry.is_file() and entry.suffix not in {".py", ".pyc", ".partial"}:
                found.add(name)
        return frozenset(found)

    def _beside(self, name: str) -> set[str]:
        """The packages round a module, and the data files that lie beside it."""
        folders = [folder.as_posix() for folder in pathlib.PurePosixPath(name).parents][:-1]
        packages = {f"{folder}/__init__.py" for folder in folders if self.exists(f"{folder}/__init__.py")}
        packages = set(map(_passed_through, packages - {name}))
        if folders and f"{folders[0]}/__init__.py" in packages:
            packages |= self._data(folders[0])
        return packages


def _passed_through(name: str) -> str:
    return name + PASSED_THROUGH if LISTING_OF_EXERCISES.fullmatch(name) else name


class _Reader(ast.NodeVisitor):
    """Notes the files that one module or notebook names."""

    def __init__(self, project: Project, name: str):
        self.project, self.name, self.files = project, name, set()
        self.folder = pathlib.PurePosixPath(name).parent
        self.aliases = {}  # what a name of this module stands for: a dotted module
        text = (project.root / name).read_text(encoding="utf-8")
        if name.endswith(".ipynb"):
            text = _code(text)
        self.lines = text.splitlines()
        try:
            tree = ast.parse(text)
        except SyntaxError:
            self.files |= project.everything
            return
        self.reads = READS.findall(text)
        for as_text, patterns in self.reads:
            for pattern in patterns.replace("nothing else", "").replace(",", " ").split():
                found = {path.relative_to(project.root).as_posix() for path in project.root.glob(pattern)}
                found = {name for name in found if project.exists(name) and not name.endswith(".pyc")}
                if not found:  # the comment is out of date
                    self.files |= project.listed(".")
                self.files |= {name + PASSED_THROUGH for name in found} if as_text else found
        self.visit(tree)

    # Imports

    def visit_Import(self, node):
        for alias in node.names:
            self.add(alias.name)
            first = alias.name.split(".")[0]
            self.aliases[alias.asname or first] = alias.name if alias.asname else first

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if node.level:
            folder = pathlib.PurePosixPath(self.name).parents[node.level - 1]
            base = "" if folder == pathlib.PurePosixPath(".") else folder.as_posix().replace("/", ".")
            module = ".".join(filter(None, [base, module]))
        self.add(module)
        for alias in node.names:
            if alias.name == "*":
                # `__all__` may name submodules.
                self.files |= self.project.package(module) if self.is_package(module) else set()
                continue
            if alias.name in DYNAMIC and alias.asname:
                self.dynamic(node)
            if f"{module}.{alias.name}" in PLACES:
                self.knows_the_repository()
            self.files |= self.project.module(f"{module}.{alias.name}")
            self.late(module, alias.name)
            self.aliases[alias.asname or alias.name] = f"{module}.{alias.name}"

    def add(self, dotted: str):
        self.files |= self.project.module(dotted)
        if dotted in PLACES:
            self.knows_the_repository()
        # A script's own folder comes first on its path.
        if not self.project.module(dotted) and self.folder.name:
            self.files |= self.project.module(f"{self.folder.as_posix().replace('/', '.')}.{dotted}") - {
                f"{self.folder.as_posix()}/__init__.py"
            }

    def knows_the_repository(self):
        if self.folder.parts[:1] == ("tests",) and not self.reads:
            self.files |= self.project.listed(".")

    def is_package(self, dotted: str) -> bool:
        return (self.project.root / dotted.replace(".", "/")).is_dir()

    # What is used of them

    def visit_Attribute(self, node):
        """`mlax_tutorial.nn`, where only the first was imported here; `viz.trace`, which is imported when it is asked for."""
        parts, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        for name in parts:
            self.names(node, name)
        if not isinstance(inner, ast.Name):
            self.visit(inner)
            return
        self.names(inner, inner.id)
        if inner.id in self.aliases:
            dotted = self.aliases[inner.id]
            for part in reversed(parts):
                self.late(dotted, part)
                dotted = f"{dotted}.{part}"
            self.files |= self.project.module(dotted)

    def late(self, module: str, name: str):
        if later := self.project.late_of(module).get(name):
            self.add(later)

    def visit_Assign(self, node):
        if getattr(node.targets[0], "id", None) != "_LATE":
            self.generic_visit(node)

    def visit_Name(self, node):
        self.names(node, node.id)
        for later in self.project.late_of(self.aliases.get(node.id, "")).values():
            self.add(later)  # a module that is handed on: nobody knows what it will be asked for

    def names(self, node, name):
        if name in DYNAMIC:
            self.dynamic(node)
        if name == "parents":
            self.knows_the_repository()
        if name in LISTING and self.folder.parts[:1] == ("tests",) and not self.is_of_a_program(node):
            self.files |= self.project.listed(self.folder.as_posix())

    def is_of_a_program(self, node) -> bool:
        """`ast.walk`, `jaxprs.walk` and functions named like it go through programs, not through folders."""
        name = getattr(node, "id", None)
        of = self.aliases.get(getattr(getattr(node, "value", None), "id", name), "")
        return name == "walk" and not of or of == "ast" or bool(self.project.module(of))

    def visit_Call(self, node):
        name = getattr(node.func, "attr", getattr(node.func, "id", None))
        first = node.args[0] if node.args else None
        if name in ("import_module", "__import__") and isinstance(first, ast.Constant):
            self.add(str(first.value))
            for child in ast.iter_child_nodes(node):
                if child is not node.func:
                    self.visit(child)
            return
        self.programs([*node.args])
        self.generic_visit(node)

    def dynamic(self, node):
        """Something is imported that only a run knows; the line may say what."""
        declared = DECLARED.search(self.lines[node.lineno - 1])
        if not declared:
            self.files |= self.project.everything
        elif declared[1].strip() not in ("nothing of this project", "what _LATE names"):
            for dotted in re.split(r"[,\s]+", declared[1].strip()):
                whole, dotted = dotted.endswith(".*"), dotted.removesuffix(".*")
                path = dotted.replace(".", "/")
                if self.project.exists(f"{path}.py") or self.is_package(dotted):
                    self.files |= (self.project.package if whole else self.project.module)(dotted)
                else:  # the comment is out of date
                    self.files |= self.project.everything

    # Strings

    def visit_List(self, node):
        self.programs(node.elts)
        self.generic_visit(node)

    visit_Tuple = visit_List

    def programs(self, elements):
        """`python -m NAME`, as elements of a command."""
        for option, name in zip(elements, elements[1:]):
            if getattr(option, "value", None) == "-m" and isinstance(name, ast.Constant):
                self.files |= self.project.module(str(name.value))
                self.files |= self.project.module(f"{name.value}.__main__")

    def visit_JoinedStr(self, node):
        """`f"tests.distributed.{module}"`: any module of that package."""
        for part in node.values:
            text = getattr(part, "value", None)
            if (
                isinstance(text, str)
                and re.fullmatch(r"(\w+\.)+", text)
                and self.is_package(text.rstrip("."))
            ):
                self.files |= self.project.package(text.rstrip("."))
        self.generic_visit(node)

    def visit_Expr(self, node):
        """A docstring may speak of modules that are not imported."""
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Constant(self, node):
        """Names of modules, paths of files, and programs, as strings."""
        text = node.value
        if not isinstance(text, str) or not text:
            return
        if len(text) < 200 and "\n" not in text:
            if re.fullmatch(r"\w+(\.\w+)+", text):
                self.files |= self.project.module(text)
            if self.folder.parts[:1] not in KNOW_NO_FILES and not text.startswith((".", "/")):
                beside = f"{self.folder.as_posix()}/{text}"
                # A script that a test starts may be named without its suffix.
                for path in (text, beside, f"{beside}.py"):
                    if self.project.exists(path) and not path.startswith(RECORDS):
                        self.files.add(path)
        if "import" in text:
            for module, names, modules in IMPORT.findall(text):
                for dotted in filter(None, [module, *re.split(r"[,\s]+", modules)]):
                    self.add(dotted)
                for name in re.split(r"[,\s]+", names) if module else ():
                    self.files |= self.project.module(f"{module}.{name}")


def _code(text: str) -> str:
    """The code cells of a notebook as one program, without the lines that only IPython knows."""
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    lines = "\n".join("".join(cell["source"]) for cell in cells).splitlines()
    return "\n".join(re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in lines)
