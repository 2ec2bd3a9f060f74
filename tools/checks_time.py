"""How long a reader waits for a check: grades each exercise's solution twice, each exercise in a process of its own.

    python -m tools.checks_time [CHAPTER | CHAPTER.EXERCISE ...]
    python -m tools.checks_time --programs CHAPTER.EXERCISE     also name what was compiled

Seconds are those of the processor, not of the clock. Two things do not count, because a reader's kernel has done them by then:
what is imported while the reader writes, and what JAX sets up when it compiles the first program.
"""

import argparse
import collections
import json
import statistics
import subprocess
import sys
import time

import jax

from mlax_tutorial.checking import devices, guarding
from mlax_tutorial.checking.outcome import PASSED
from mlax_tutorial.exercises import catalog

COMPILED = "/jax/core/compile/backend_compile_duration"


def measured(name):
    """Two calls: processor seconds and the names of the programs that were compiled, for each; and the outcome."""
    chapter, _, name = name.partition(".")
    exercise = next(exercise for exercise in catalog.of(chapter) if exercise.name == name)
    if exercise.devices > 1:  # here, where it can be measured, not in a process of its own
        jax.config.update("jax_num_cpu_devices", exercise.devices)
        devices.inside = guarding.waits = True
    jax.jit(lambda x: x + 1)(1.0)  # the chapter's cells have run: JAX has set up what it needs to compile
    programs = []

    def listen(event, duration, **details):
        if event == COMPILED:
            programs[-1].append(details.get("fun_name", "?"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    time.sleep(1)  # the reader writes, and hypothesis is imported meanwhile
    seconds = []
    for _ in range(2):
        programs.append([])
        began = time.process_time()
        outcome = exercise.grade(exercise.answer)
        seconds.append(time.process_time() - began)
    return {
        "seconds": seconds,
        "programs": programs,
        "status": outcome.status,
        "message": outcome.message,
    }


def in_a_new_process(name):
    command = [sys.executable, "-m", "tools.checks_time", "--measure", name]
    return json.loads(
        subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()[-1]
    )


def chosen(names):
    for chapter in catalog.chapters():
        for exercise in catalog.of(chapter):
            name = f"{chapter}.{exercise.name}"
            if not names or chapter in names or name in names:
                yield name


def line(name, found):
    (first, second), (one, two) = found["seconds"], found["programs"]
    remark = "" if found["status"] == PASSED else f"  its solution: {found['status']}: {found['message']}"
    return f"{first:6.2f} s, again {second:5.2f} s, compiled {len(one):3} and {len(two):2}  {name}{remark}"


def report(rows):
    print("\nthe slowest:")
    for name, found in sorted(rows.items(), key=lambda row: -row[1]["seconds"][0])[:20]:
        print(line(name, found))
    for call, title in enumerate(("first calls", "second calls")):
        seconds = [found["seconds"][call] for found in rows.values()]
        compiled = sum(len(found["programs"][call]) for found in rows.values())
        median, worst = statistics.median(seconds), max(seconds)
        print(
            f"{title}: median {median:.2f} s, worst {worst:.2f} s, in all {sum(seconds):.1f} s, {compiled} programs"
        )


def main():
    parser = argparse.ArgumentParser(prog="python -m tools.checks_time", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="CHAPTER[.EXERCISE]")
    parser.add_argument("--programs", action="store_true", help="name the programs that were compiled")
    parser.add_argument("--measure", metavar="CHAPTER.EXERCISE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.measure)))
        return 0
    for name in options.names:
        if not any(chosen([name])):
            known = list(chosen([name.partition(".")[0]])) or catalog.chapters()
            parser.error(f"no chapter and no exercise {name!r}; there are: {', '.join(known)}")
    rows = {}
    for name in chosen(options.names):
        rows[name] = in_a_new_process(name)
        print(line(name, rows[name]), flush=True)
        if options.programs:
            count = collections.Counter(rows[name]["programs"][0])
            print("   " + ", ".join(f"{program} {number}" for program, number in count.most_common()))
    report(rows)
    return 0 if all(found["status"] == PASSED for found in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
