"""What these exercises share: the reader's function in two real processes, or in three."""

import jax
from jax.sharding import AxisType

from mlax_tutorial.checking import Failed, guarding
from mlax_tutorial.inspection import hosts

SECONDS = 90.0  # that a check may take; some, where nothing else runs
WAIT = 6.0  # seconds after which a process is taken to wait for ever; the work itself takes a tenth of one


def mesh(axis="data"):
    return jax.make_mesh((jax.device_count(),), (axis,), axis_types=(AxisType.Auto,))


def run(program, function, *arguments, processes=2, devices=2, seconds=WAIT):
    """What `program(function, …)` returns in each of the processes; the reader's function is sent without its guard."""
    try:
        found = hosts.run(
            program,
            guarding.original(function),
            *arguments,
            processes=processes,
            devices=devices,
            seconds=seconds,
        )
    except hosts.HostsError as error:
        raise Failed(
            f"Your function is run in {processes} processes, and they could not begin: {error}"
        ) from error
    for host in found:
        if host.printed:
            print(host.printed)
    for host in found:
        if host.status == "raised":
            where = [("your code", host.line)] if host.line else []
            raise Failed(f"In process {host.process} your code raised {host.error}", shown=where)
    for host in found:
        if host.status == "waiting":
            where = [("it waits in", host.line)] if host.line else []
            raise Failed(
                f"Process {host.process} still waited after {seconds:g} seconds. A computation over all devices begins only when every "
                "process calls it: does one of them leave it out?",
                shown=where,
            )
        if host.status == "died":
            raise Failed(f"Process {host.process} died: {host.error}.")
    return found.values
