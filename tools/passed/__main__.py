"""The command line: `python -m tools.passed COMMAND`."""

import argparse
import sys

from tools import project
from tools.passed import projection
from tools.passed.dependencies import RECORDS, Project
from tools.passed.record import Record, Refused


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.passed", description="What passed before, and how long it takes."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("repair", help="take out lines that this tool did not write")
    why = commands.add_parser("files", help="the files that a unit depends on")
    why.add_argument("unit", help="tests/exercises/jit/counter.py, book/jit.ipynb")
    table = commands.add_parser("project", help="how long runs take with more chapters and exercises")
    table.add_argument("--chapters", type=int, default=35)
    table.add_argument("--exercises", type=int, default=240)
    options = parser.parse_args(arguments)
    if options.command == "files":
        print(*Project().files(options.unit), sep="\n")
    elif options.command == "project":
        try:
            print(projection.table(project.ROOT, options.chapters, options.exercises))
        except Refused as refused:
            sys.exit(str(refused))
    else:
        for path in sorted((project.ROOT / RECORDS).glob("*.jsonl")):
            removed = Record(path.stem.rpartition("-py")[0], python=path.stem.rpartition("-py")[2]).repair()
            print(f"{path.relative_to(project.ROOT)}: {removed} lines taken out")
    return 0


if __name__ == "__main__":
    sys.exit(main())
