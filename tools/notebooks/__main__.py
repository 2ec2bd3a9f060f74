"""The command line: `python -m tools.notebooks COMMAND`."""

import argparse
import pathlib
import sys

from tools import project
from tools.notebooks.places import Book, Problem


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m tools.notebooks",
        description="Build, run and check the chapters.",
        epilog=pathlib.Path(__file__).with_name("format.txt").read_text(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument(
        "--root", type=pathlib.Path, default=project.ROOT, help="the repository (default: this one)"
    )
    commands = top.add_subparsers(dest="command", required=True)

    build = commands.add_parser("build", help="execute the chapters that changed")
    build.add_argument("names", nargs="*", metavar="NAME", help="chapters (default: all)")
    build.add_argument("--force", action="store_true", help="execute them even if nothing changed")
    build.add_argument("--jobs", type=int, help="chapters at a time (default: 2)")

    run = commands.add_parser("run", help="run every chapter twice, in this environment, comparing nothing")
    run.add_argument("names", nargs="*", metavar="NAME", help="chapters (default: all)")
    run.add_argument("--times", type=int, default=2, help="passes in the same kernel (default: 2)")
    run.add_argument("--jobs", type=int, default=2, help="chapters at a time (default: 2)")
    run.add_argument(
        "--patience", type=float, default=10, help="times its limit that a cell may take (default: 10)"
    )
    run.add_argument(
        "--lines", action="store_true", help="also print a line per chapter for book/_src/devices.jsonl"
    )

    check = commands.add_parser("check", help="the guards that need no execution")
    check.add_argument("names", nargs="*", metavar="NAME", help="chapters (default: the whole book)")

    commands.add_parser("pages", help="write the generated pages and the README's table of chapters")
    return top


def _write_pages(book: Book) -> None:
    from tools.notebooks import pages

    for name in pages.write(book):
        print(f"{name}: written")


def main(arguments=None) -> int:
    options = parser().parse_args(arguments)
    book = Book(options.root.resolve())
    try:
        if options.command == "build":
            from tools.notebooks import build

            failed = build.build(book, options.names, force=options.force, jobs=options.jobs)
            if not failed and not options.names:
                _write_pages(book)
            return 1 if failed else 0
        if options.command == "run":
            from tools.notebooks import run

            failed = run.run(
                book,
                options.names,
                times=options.times,
                jobs=options.jobs,
                patience=options.patience,
                lines=options.lines,
            )
            return 1 if failed else 0
        if options.command == "check":
            from tools.notebooks import guards

            messages = guards.check(book, options.names)
            print("\n".join(messages) or "nothing to mend")
            return 1 if messages else 0
        if options.command == "pages":
            _write_pages(book)
            return 0
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    raise AssertionError(options.command)


if __name__ == "__main__":
    sys.exit(main())
