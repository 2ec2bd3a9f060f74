"""``viz.processes``: who waited for whom in a run of several processes.

`processes` takes what `hosts.run` gave, and puts the calls of all processes together that were made with `hosts.call`: the first of one with
the first of the others, and so on, as a computation over the devices of all does. `Processes` shows them; the markup is made in `page`.
"""

import dataclasses
from collections.abc import Mapping

from mlax_tutorial.inspection import hosts
from mlax_tutorial.viz.figures.processes import page

MOST_PROCESSES, MOST_CALLS = 8, 40


@dataclasses.dataclass(frozen=True)
class Meeting:
    """The calls that processes made in the same place of their order.

    Attributes:
      number: the place, from 1.
      calls: each process' `hosts.Call`, by its number; one that made no such call is not in it.
      missing: the processes that made none.
    """

    number: int
    calls: dict[int, hosts.Call]
    missing: tuple[int, ...]

    @property
    def names(self) -> dict[str, list[int]]:
        """The calls' names, each with its processes."""
        found = {}
        for process, call in self.calls.items():
            found.setdefault(call.name, []).append(process)
        return found

    @property
    def copies(self) -> dict[str, list[int]]:
        """The digests of what should be the same everywhere, each with its processes."""
        found = {}
        for process, call in self.calls.items():
            if call.held:
                found.setdefault(call.held, []).append(process)
        return found

    def met(self, process: int) -> float | None:
        """When the last of those had begun for whom a process can have waited; ``None`` if one that it needs has not come."""
        call = self.calls[process]
        if call.ended is None:
            return None if self.missing else max(other.began for other in self.calls.values())
        return max(other.began for other in self.calls.values() if other.began <= call.ended)

    @property
    def together(self) -> bool:
        """Whether nobody had left before the last had begun."""
        last = max(call.began for call in self.calls.values())
        return len(self.calls) > 1 and all(
            call.ended is None or call.ended >= last for call in self.calls.values()
        )


class Processes:
    """What `processes` found; a notebook shows a figure, a terminal a listing.

    Attributes:
      run: the `hosts.Hosts`.
      meetings: a `Meeting` for each place in the order of calls.
    """

    def __init__(self, run: hosts.Hosts):
        self.run = run
        longest = max(len(host.calls) for host in run)
        self.meetings = [_meeting(run, index) for index in range(longest)]

    def _repr_html_(self):
        return page.write({"": self})

    def __repr__(self):
        return page.listing(self)


class Runs(dict):
    """Several `Processes` by their names, which `processes` made: a figure in which one is chosen, or their listings."""

    def _repr_html_(self):
        return page.write(self)

    def __repr__(self):
        return "\n\n".join(f"{name}\n{figure!r}" for name, figure in self.items())


def processes(run: hosts.Hosts | Mapping[str, hosts.Hosts]) -> Processes | Runs:
    """Show who waited for whom in a run of several processes, and whose numbers differ from the others'.

    A row for each process, and in it the calls that it made by `hosts.call`. A call is taken for a computation over the devices of all processes: it
    waits until the last has begun it. Which calls belong together is told by their order alone, not by their names, since JAX does not tell
    either. If their results claim to be the same on all devices, the processes' own numbers are compared.

    Args:
      run: what `hosts.run` returned; or several of these by names that say what happened, among which the reader chooses.

    Returns:
      A `Processes`: as the last expression of a cell it is a figure to step through. It has ``meetings``, too. Of several runs, a dictionary of them.

    Raises:
      ValueError: if it is not the result of `hosts.run`, or there are more processes or calls than a figure can show.

    Example:
      >>> from mlax_tutorial import viz
      >>> from mlax_tutorial.inspection import hosts
      >>> def program():
      ...     import jax.numpy as jnp
      ...     hosts.call("mine", jnp.sum, jnp.ones(3))
      >>> figure = viz.processes(hosts.run(program))
      >>> [(meeting.number, meeting.names) for meeting in figure.meetings]
      [(1, {'mine': [0, 1]})]
    """
    if isinstance(run, Mapping):
        if not run:
            raise ValueError("viz.processes: there is no run in the dictionary")
        return Runs((str(name), _one(each, f" as {str(name)!r}")) for name, each in run.items())
    return _one(run)


def _one(run, where=""):
    if not (isinstance(run, list) and run and all(isinstance(host, hosts.Host) for host in run)):
        raise ValueError(f"viz.processes: takes what hosts.run returned, got {type(run).__name__}{where}")
    if len(run) > MOST_PROCESSES:
        raise ValueError(f"viz.processes: shows up to {MOST_PROCESSES} processes, got {len(run)}{where}")
    most = max(len(host.calls) for host in run)
    if most > MOST_CALLS:
        raise ValueError(
            f"viz.processes: shows up to {MOST_CALLS} calls of a process, got {most}{where}: run fewer steps"
        )
    return Processes(run)


def _meeting(run, index):
    calls = {host.process: host.calls[index] for host in run if index < len(host.calls)}
    return Meeting(index + 1, calls, tuple(host.process for host in run if index >= len(host.calls)))
