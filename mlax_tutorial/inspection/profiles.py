"""What a profile says: the operations that took the most time, from a folder that ``jax.profiler.trace`` wrote.

``jax.profiler.trace(folder)`` leaves a file for viewers, such as Perfetto or XProf: ``plugins/profile/TIME/HOST.trace.json.gz``, one for
each host, in the format of Chrome's traces. `read` takes the newest ones and adds up XLA's operations by name. What Python and the
runtime did meanwhile stands in the same file, and is left out.
"""

import bisect
import collections
import dataclasses
import gzip
import json
import pathlib

from mlax_tutorial.inspection.timing import in_words

# These hold other operations: their time is that of their bodies, too.
HOLDERS = ("while", "conditional", "call")


@dataclasses.dataclass(frozen=True)
class Operation:
    """An operation of a compiled program, and what a profile says of it.

    Attributes:
      name: its name in the compiled text, such as ``dot_general.1``.
      module: the program that it stands in, such as ``jit_step``.
      count: how often it ran.
      seconds: in all runs together, from begin to end. What runs on several threads or devices at a time counts for each.
      own: the same, without the operations that run inside of it: of a loop, what is left without its body.
    """

    name: str
    module: str
    count: int
    seconds: float
    own: float


@dataclasses.dataclass(frozen=True)
class Profile:
    """What `read` found. It prints as a table of the ten operations that took most.

    Attributes:
      operations: the largest first, by `Operation.own`.
    """

    operations: tuple[Operation, ...]

    @property
    def seconds(self) -> float:
        """Of all operations together."""
        return sum(operation.own for operation in self.operations)

    def table(self, most: int = 10) -> str:
        """A line for each of the ``most`` largest: its share, its time, how often it ran, its program and its name."""
        lines = [f"{'share':>6}  {'time':>8}  {'runs':>5}  operation"]
        for each in self.operations[:most]:
            name = f"{each.module}: {each.name}" if each.module else each.name
            lines.append(
                f"{each.own / (self.seconds or 1):6.1%}  {in_words(each.own):>8}  {each.count:5}  {name}"
            )
        if (left := len(self.operations) - most) > 0:
            lines.append(f"and {left} more")
        return "\n".join(lines)

    def __repr__(self):
        return self.table()


def read(folder) -> Profile:
    """Reads a profile, and adds up its operations by name.

    Args:
      folder: what was given to ``jax.profiler.trace``. If it holds several profiles, the newest counts.

    Returns:
      A `Profile`.

    Raises:
      FileNotFoundError: if there is no profile in the folder.
      ValueError: if no compiled program ran while it was taken.

    Example:
      >>> import tempfile, jax, jax.numpy as jnp
      >>> @jax.jit
      ... def product(x):
      ...     return jnp.sort(x @ x)
      >>> x = jnp.ones((64, 64))
      >>> _ = product(x).block_until_ready()  # compiled before
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with jax.profiler.trace(folder):
      ...         for _ in range(5):
      ...             _ = product(x).block_until_ready()
      ...     profile = read(folder)
      >>> {(operation.module, operation.count) for operation in profile.operations}
      {('jit_product', 5)}
    """
    files = sorted(pathlib.Path(folder).glob("**/*.trace.json.gz"))
    if not files:
        raise FileNotFoundError(
            f"{folder} holds no profile, no file *.trace.json.gz: did the block of jax.profiler.trace end?"
        )
    newest = max(files, key=lambda file: (file.parent.stat().st_mtime_ns, file.parent.name)).parent
    found = collections.defaultdict(list)
    for file in files:
        if file.parent == newest:
            for key, times in _operations(file):
                found[key].append(times)
    if not found:
        raise ValueError(
            f"{newest} holds no operation of XLA: call a jitted function, and wait for its result, within the profile"
        )
    operations = (
        Operation(name, module, len(times), sum(whole for whole, _ in times), sum(own for _, own in times))
        for (module, name), times in found.items()
    )
    return Profile(tuple(sorted(operations, key=lambda each: (-each.own, each.name))))


def _operations(file):
    """Yields ``((module, name), (seconds, own seconds))`` for each run of an operation."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        events = json.load(lines).get("traceEvents", [])
    # On a TPU the operations have a thread of their own; elsewhere each of them says its name in the program.
    threads = {
        (event.get("pid"), event.get("tid"))
        for event in events
        if event.get("ph") == "M"
        and event.get("name") == "thread_name"
        and event["args"].get("name") == "XLA Ops"
    }
    runs = collections.defaultdict(list)
    for event in events:
        told = event.get("args", {})
        name = told.get("hlo_op") or (
            event.get("name") if (event.get("pid"), event.get("tid")) in threads else None
        )
        # JAX adds a mark at the end of each operation, which has no length worth counting.
        if event.get("ph") != "X" or not name or str(event.get("name")).startswith("end: "):
            continue
        start, length = event["ts"] * 1e-6, event.get("dur", 0) * 1e-6
        where = event.get("pid"), told.get("device_ordinal"), told.get("run_id")
        runs[where].append((start, start + length, told.get("hlo_module", ""), name))
    for run in runs.values():
        run.sort(key=lambda each: (each[0], -each[1]))
        starts = [start for start, *_ in run]
        for index, (start, end, module, name) in enumerate(run):
            inside = 0.0
            if name.lstrip("%").startswith(HOLDERS):
                within = run[index + 1 : bisect.bisect_left(starts, end, lo=index + 1)]
                inside = _together(within, end)
            yield (module, name), (end - start, max(0.0, end - start - inside))


def _together(spans, end):
    """The seconds that some spans cover, each sorted by its start."""
    covered, until = 0.0, float("-inf")
    for start, stop, *_ in spans:
        stop = min(stop, end)
        if stop > until:
            covered += stop - max(start, until)
            until = stop
    return covered
