"""`python -m benchmarks [WORKLOAD ...]`: time the library beside its peers."""

import argparse
import contextlib
import pathlib
import sys

import jax

from benchmarks import contest, imports, pytorch, report
from benchmarks.workload import BY_HAND, OURS, all_workloads


def main(arguments=None) -> int:
    known = all_workloads()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="WORKLOAD", help=f"of {', '.join(known)} (default: all)")
    parser.add_argument("--rounds", type=int, default=51, help="how often each has its turn (default: 51)")
    parser.add_argument("--first-calls", type=int, default=3, help="how many are timed (default: 3)")
    parser.add_argument(
        "--quick", action="store_true", help="one round, only by hand and this library: to see that it runs"
    )
    parser.add_argument(
        "--out",
        type=pathlib.Path,
        help="where the results go (default: benchmarks/results; nowhere if --quick, or if workloads are named)",
    )
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - known.keys():
        parser.error(f"no workload {', '.join(sorted(unknown))}: there are {', '.join(known)}")
    if options.rounds < 1 or options.first_calls < 1:
        parser.error("--rounds and --first-calls must be at least 1")
    jax.config.update("jax_enable_compilation_cache", False)  # a first call is to compile

    where = report.circumstances()
    rounds, first_calls, import_rounds = (
        (1, 1, 1) if options.quick else (options.rounds, options.first_calls, 7)
    )
    chosen = {name: known[name] for name in options.names or known}
    steps, notes = {}, []
    with contextlib.ExitStack() as stack:
        worker = None
        if not options.quick and pytorch.PYTHON.exists():
            worker = stack.enter_context(pytorch.Worker())
            where["versions"]["torch"] = worker.ask("version")
        elif not options.quick:
            notes.append(pytorch.MISSING)
            print(pytorch.MISSING)
        for name, workload in chosen.items():
            names = [BY_HAND, OURS] if options.quick else list(workload.contenders)
            outside = pytorch.contenders(worker, workload) if worker else {}
            steps[name] = contest.run(workload, names, rounds, first_calls, outside)
            tables = report.step_table(steps[name]), report.program_table(steps[name])
            print(f"{name}: {workload.about}", *map(report.table, tables), sep="\n", end="\n\n", flush=True)
    imported = imports.run(["jax", OURS] if options.quick else list(imports.STATEMENTS), import_rounds)
    print(f"imports\n{report.table(report.import_table(imported))}")

    folder = options.out or (None if options.quick or options.names else report.RESULTS)
    if folder:
        about = {name: workload.about for name, workload in chosen.items()}
        for path in report.write(folder, where, about, steps, imported, notes):
            print(f"written: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
