"""Where sources, notebooks and records lie."""

import dataclasses
import pathlib

from tools import project


class Problem(Exception):
    """Something a person must mend; the message says what, where, and what to do."""


@dataclasses.dataclass(frozen=True)
class Book:
    """The files of a book whose repository is the folder `root`."""

    root: pathlib.Path = project.ROOT

    @property
    def folder(self) -> pathlib.Path:
        return self.root / "book"

    @property
    def sources(self) -> pathlib.Path:
        return self.folder / "_src"

    def source(self, name: str) -> pathlib.Path:
        return self.sources / f"{name}.md"

    def notebook(self, name: str) -> pathlib.Path:
        return self.folder / f"{name}.ipynb"

    @property
    def records(self) -> pathlib.Path:
        """What is known of each chapter since it was last executed, a file for each."""
        return self.folder / "_records"

    def record(self, name: str) -> pathlib.Path:
        return self.records / f"{name}.json"

    @property
    def claims(self) -> pathlib.Path:
        """The claims that the book owes: id, statement, chapters."""
        return self.sources / "claims.json"

    @property
    def devices(self) -> pathlib.Path:
        """One JSON object a line: a run on a device that the build does not have."""
        return self.sources / "devices.jsonl"

    @property
    def mutants(self) -> pathlib.Path:
        """What became of the mutants of each exercise, as `tools.mutants` found."""
        return self.folder / "_mutants.json"

    @property
    def status(self) -> pathlib.Path:
        return self.folder / "status.md"

    @property
    def claims_page(self) -> pathlib.Path:
        return self.folder / "claims.md"

    @property
    def exercises_page(self) -> pathlib.Path:
        return self.folder / "exercises.md"

    @property
    def names_page(self) -> pathlib.Path:
        return self.folder / "names.md"

    @property
    def generated(self) -> list[pathlib.Path]:
        """Pages that are written by `python -m tools.notebooks pages`, whole."""
        return [self.status, self.claims_page, self.exercises_page, self.names_page]

    @property
    def readme(self) -> pathlib.Path:
        return self.root / "README.md"

    @property
    def package(self) -> pathlib.Path:
        return self.root / "mlax_tutorial"

    @property
    def lock(self) -> pathlib.Path:
        return self.root / "uv.lock"

    @property
    def cache(self) -> pathlib.Path:
        return self.root / ".cache" / "notebooks"

    def names(self) -> list[str]:
        """All chapters that have a source."""
        return sorted(path.stem for path in self.sources.glob("*.md"))

    def select(self, names) -> list[str]:
        """The chapters asked for (all if none is named); `book/_src/arrays.md` and `arrays` are the same."""
        known = self.names()
        if not names:
            return known
        wanted = [pathlib.PurePath(name).name.removesuffix(".md").removesuffix(".ipynb") for name in names]
        for name in wanted:
            if name not in known:
                raise Problem(f"no chapter {name!r}: book/_src/ has {', '.join(known) or 'none yet'}")
        return list(dict.fromkeys(wanted))

    def relative(self, path: pathlib.Path) -> str:
        return path.relative_to(self.root).as_posix()
