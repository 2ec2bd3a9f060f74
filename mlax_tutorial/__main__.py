"""The command line: ``python -m mlax_tutorial exercises`` lists what there is to do, what is done and what comes next;
``python -m mlax_tutorial live`` opens the book with a kernel behind its pages.
"""

import argparse
import os
import re
import sys


def main(arguments=None):
    """Runs the command line; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.command is None:
        _parser().print_help()
        return 0
    try:
        status = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has enough, as `head` has
        # the interpreter writes what is left when it ends, and would complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return status


def _parser():
    parser = argparse.ArgumentParser(
        prog="mlax-tutorial", description="A book that teaches JAX by building a neural-network library."
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    exercises = commands.add_parser(
        "exercises",
        help="list the exercises, with those that you have done",
        description=(
            "Lists the book's exercises, with those that you have done. Exercises are graded in the notebooks, by "
            "`ex.NAME.check(answer)`. Progress is kept in one file on this machine, and nowhere else."
        ),
        epilog=(
            "The file is ~/.local/share/mlax-tutorial/progress.json (in the data folder of your system), or what the "
            "environment variable MLAX_TUTORIAL_PROGRESS names."
        ),
    )
    exercises.set_defaults(run=_list)
    actions = exercises.add_subparsers(dest="action", metavar="ACTION")
    actions.add_parser("list", help="all exercises (this is the default)").set_defaults(run=_list)
    actions.add_parser("next", help="the next one to do").set_defaults(run=_next)
    reset = actions.add_parser(
        "reset",
        help="forget what was done (a backup is kept)",
        description="Forgets progress: all of it, that of a chapter, or that of one exercise. A backup is kept.",
    )
    reset.add_argument(
        "what", nargs="?", default="", metavar="CHAPTER[.NAME]", help="what to forget; default: all"
    )
    reset.add_argument("--yes", action="store_true", help="do not ask")
    reset.set_defaults(run=_reset)
    live = commands.add_parser(
        "live",
        help="read the book, change and run its cells and do its exercises on the same page",
        description=(
            "Serves the built book on this machine, to your browser alone, with a kernel for each chapter that you run. "
            "What you change is kept in the browser, exercises that you pass in your progress file."
        ),
    )
    live.add_argument(
        "--book", metavar="FOLDER", help="the built book; default: that of this package or checkout"
    )
    live.add_argument("--port", type=int, help="default: 8810, or the next one that is free")
    live.add_argument(
        "--host",
        metavar="NAME",
        type=_host,
        help="the one name, beside this machine's own, under which a browser may reach it, by HTTPS: that of a forwarded port",
    )
    live.add_argument("--no-browser", action="store_true", help="only print the address")
    live.set_defaults(run=_live)
    return parser


def _list(options):
    from mlax_tutorial.checking import progress
    from mlax_tutorial.checking.show import printable
    from mlax_tutorial.exercises import catalog, following

    noted, remark = progress.read()
    done, count, left = 0, 0, 0
    for chapter in catalog.chapters():
        exercises = catalog.of(chapter)
        passed = [exercise for exercise in exercises if _status(noted, exercise) == "passed"]
        open_minutes = _minutes(exercises) - _minutes(passed)
        done, count, left = done + len(passed), count + len(exercises), left + open_minutes
        rest = f", {open_minutes} min left" if open_minutes else ""
        print(
            f"{catalog.title(chapter)}: {len(passed)} of {len(exercises)} done ({_minutes(passed)} min){rest}"
        )
        width = max([len(exercise.name) for exercise in exercises], default=0)
        for exercise in exercises:
            mark = _MARKS[_status(noted, exercise)]
            print(printable(f"  {mark} {exercise.name:<{width}}  {_facts(exercise)}  {exercise.title}"))
    print(f"\n{done} of {count} done." + (f" About {left} minutes are left." if left else ""))
    if picked := following.pick(noted):
        exercise, reason = picked
        print(f"Next: {exercise.chapter}.{exercise.name}, {exercise.title} ({reason}).")
    if remark:
        print(remark)
    return 0


_MARKS = {"passed": "[x]", "failed": "[-]", "": "[ ]"}


def _next(options):
    from mlax_tutorial.checking import progress
    from mlax_tutorial.checking.show import printable
    from mlax_tutorial.exercises import catalog, following

    noted, remark = progress.read()
    if remark:
        print(remark)
    picked = following.pick(noted)
    if picked is None:
        print("All exercises are done.")
        return 0
    exercise, reason = picked
    place = f"in the chapter {catalog.title(exercise.chapter)} (book/{exercise.chapter}.ipynb)"
    print(f"{exercise.chapter}.{exercise.name}: {exercise.title}")
    print(printable(f"{_facts(exercise)}, {place}"))
    print(f"Why this one: {reason}.")
    return 0


def _reset(options):
    from mlax_tutorial.checking import progress
    from mlax_tutorial.exercises import catalog

    chapter, _, name = options.what.partition(".")
    if chapter and chapter not in catalog.chapters():
        print(f"There is no chapter {chapter!r}. Chapters: {', '.join(catalog.chapters())}.", file=sys.stderr)
        return 2
    if name and name not in [exercise.name for exercise in catalog.of(chapter)]:
        names = ", ".join(exercise.name for exercise in catalog.of(chapter))
        print(f"There is no exercise {name!r} in {chapter}. Exercises: {names}.", file=sys.stderr)
        return 2
    if not options.yes and not _agreed(f"Forget the progress of {options.what or 'all chapters'}? [y/N] "):
        print("Nothing was changed.")
        return 1
    count, backup, remark = progress.reset(chapter, name)
    if count:
        print(f"Forgot {count} exercise{'s' if count > 1 else ''}. The old file is kept as {backup}.")
    elif not remark:
        print("There was nothing to forget.")
    if remark:
        print(remark, file=sys.stderr)
        return 1
    return 0


def _live(options):
    from mlax_tutorial.live import book

    try:
        folder = book.find(options.book)
    except book.NoBook as error:
        print(error, file=sys.stderr)
        return 2
    print("Starting …", flush=True)  # the imports take seconds
    try:
        from mlax_tutorial.live import server
    except ModuleNotFoundError as error:
        print(
            f"Live pages need a package that is not installed here: {error.name}. Get all that they need by\n"
            f"    {sys.executable} -m pip install 'mlax-tutorial[live]'\n"
            "or, in a checkout, by `make live`.",
            file=sys.stderr,
        )
        return 2
    try:
        server.serve(
            folder,
            port=server.PORT if options.port is None else options.port,
            open_browser=not options.no_browser,
            host=options.host or "",
        )
    except OSError as error:
        print(f"The book cannot be served: {error}.", file=sys.stderr)
        return 1
    return 0


def _host(name):
    label = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
    if not re.fullmatch(rf"(?=.{{1,253}}$)({label}\.)+[a-z]{label}", name):
        raise argparse.ArgumentTypeError(
            f"{name!r} is no name of a host: it is written in small letters, without https:// and without a port, such as name-8810.app.github.dev"
        )
    return name


def _agreed(question):
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


def _status(noted, exercise):
    status = noted.get(f"{exercise.chapter}.{exercise.name}", {}).get("status", "")
    return status if status in _MARKS else ""


def _facts(exercise):
    stars = "\N{BLACK STAR}" * exercise.stars + "\N{WHITE STAR}" * (3 - exercise.stars)
    return f"{stars} {exercise.minutes:>2} min"


def _minutes(exercises):
    return sum(exercise.minutes for exercise in exercises)


if __name__ == "__main__":
    sys.exit(main())
