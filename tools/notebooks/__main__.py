"""The command line: `python -m tools.notebooks COMMAND`."""

import argparse
import pathlib
import sys

from tools import project
from tools.notebooks.places import Book, Problem


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m tools.notebooks", description="Build, run and check the chapters."
    )
    top.add_argument(
        "--root", type=pathlib.Path, default=project.ROOT, help="the repository (default: this one)"
    )
    commands = top.add_subparsers(dest="command", required=True)

    build = commands.add_parser("build", help="execute the chapters that changed")
    build.add_argument("names", nargs="*", metavar="NAME", help="chapters (default: all)")
    build.add_argument("--force", action="store_true", help="execute them even if nothing changed")
    build.add_argument(
        "--measure", action="store_true", help="execute one by one and take the run times anew"
    )
    build.add_argument("--jobs", type=int, help="chapters at a time (default: 2)")
    return top


def main(arguments=None) -> int:
    options = parser().parse_args(arguments)
    book = Book(options.root.resolve())
    try:
        if options.command == "build":
            from tools.notebooks import build

            failed = build.build(
                book, options.names, force=options.force, measure=options.measure, jobs=options.jobs
            )
            return 1 if failed else 0
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    raise AssertionError(options.command)


if __name__ == "__main__":
    sys.exit(main())
