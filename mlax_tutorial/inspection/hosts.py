"""Runs a piece of code in several local processes, joined as those of several hosts are.

On a cluster each host starts the same script, and ``jax.distributed.initialize`` makes one system of their devices. :func:`run`
does so on one machine: it starts the processes, each with simulated CPU devices of its own, joins them, runs a function in each, and
says how each ended. It never waits longer than it is told, and leaves no process behind::

    def program():
        import jax
        print("process", jax.process_index(), "of", jax.process_count())

    hosts.run(program, processes=2, devices=2)

The processes are forked from one that has imported JAX but not yet used it (`nursery`), so that the next run starts at once. What the function
refers to is sent along. What gloo and the coordination service write to the standard error is kept in `Host.stderr`, not shown.
"""

import atexit
import contextlib
import dataclasses
import linecache
import multiprocessing.connection
import os
import pickle
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from mlax_tutorial.inspection import sending
from mlax_tutorial.inspection.processes import environment_for
from mlax_tutorial.inspection.theirs import is_theirs

START = 600.0  # seconds until the processes must have found each other; one or two, where nothing else runs
BUSY = 10  # so many times as long as they may wait, each may compute, by the processor's time: the machine may have other things to do
LONGEST = 900.0  # and by the clock this is added
_nursery = None
_lock = threading.RLock()


class HostsError(RuntimeError):
    """The processes could not be started, or one of them has no value to give."""


@dataclasses.dataclass
class Call:
    """A call that was made with `call`.

    Attributes:
      name: what it was called.
      began: in seconds since all processes had started.
      ended: likewise; ``None`` if it did not return.
      error: the type of what it raised.
      held: of the arrays in its result that claim to be the same on all devices, this process' own numbers, as a digest.
      shown: these numbers as text, where they are few.
    """

    name: str
    began: float
    ended: float | None = None
    error: str = ""
    held: str = ""
    shown: str = ""


@dataclasses.dataclass
class Host:
    """How one process ended.

    Attributes:
      process: its number, from 0.
      status: ``"returned"``, ``"raised"``, ``"died"`` (it ended otherwise: killed, aborted, ``os._exit``), or ``"waiting"``: it was still
        at work when the time was over, and was killed then.
      value: what the function returned, with NumPy's arrays in place of JAX's.
      lines: what it printed, as pairs of the seconds since all had started and a line.
      error: of what was raised, type and message; of what died, how.
      line: of one that waited or raised, the last line of the reader's code that it had reached, as ``"line 3: x = f(x)"``.
      seconds: when it ended.
      stderr: what it wrote to the standard error past Python, without gloo's greetings.
      calls: a `Call` for each use of `call`.
    """

    process: int
    status: str = "waiting"
    value: Any = None
    lines: list[tuple[float, str]] = dataclasses.field(default_factory=list)
    error: str = ""
    line: str = ""
    seconds: float = 0.0
    stderr: str = ""
    calls: list[Call] = dataclasses.field(default_factory=list)

    @property
    def printed(self) -> str:
        """All that it printed."""
        return "\n".join(text for _, text in self.lines)

    def __str__(self):
        shown = [text for _, text in self.lines]
        if self.status == "raised":
            shown.append(f"raised {self.error.splitlines()[0]}")
        elif self.status == "died":
            shown.append(f"died: {self.error}")
        elif self.status == "waiting":
            shown.append("still waiting" + (f", in {self.line}" if self.line else ""))
        elif self.value is not None:
            shown.append(f"returned {self.value}")
        return "\n".join(f"{self.process} | {line}" for text in shown for line in text.splitlines() or [""])


class Hosts(list):
    """A list of `Host`, one a process. A notebook shows what each printed, and how it ended if it did not simply return."""

    @property
    def values(self) -> list:
        """What the processes returned.

        Raises:
          HostsError: if one of them did not return.
        """
        for host in self:
            if host.status != "returned":
                raise HostsError(
                    f"process {host.process} has returned nothing:\n{self!r}\n{host.error}\n{host.stderr}"
                )
        return [host.value for host in self]

    def __repr__(self):
        return "\n".join(text for host in self if (text := str(host)))


def run(
    program: Callable | str, *arguments: Any, processes: int = 2, devices: int = 1, seconds: float = 120.0, **options: Any
) -> Hosts:  # fmt: skip
    """Run a function, or a script, in several processes at once.

    Args:
      program: a function, which every process calls; or the text of a script. JAX is joined already when it begins.
      *arguments: for the function; what it refers to and they themselves must be such that they can be sent to another process.
      processes, devices: how many processes, and how many simulated CPU devices each has.
      seconds: how long they may wait once all have started: for each other, for a file, in a sleep. Whoever is not done then is killed. Time in
        which one of them computes, or would if the machine had a processor free, does not count; but each may compute ten times as long only.
      **options: for ``jax.distributed.initialize``, such as ``heartbeat_timeout_seconds=10``.

    Returns:
      A `Hosts`, a list with a `Host` for each process.

    Raises:
      HostsError: if the processes do not start or do not find each other, or something in the function cannot be sent.

    Example:
      >>> from mlax_tutorial.inspection import hosts
      >>> def program(x):
      ...     import jax
      ...     print(f"process {jax.process_index()}: {jax.device_count()} devices, {jax.local_device_count()} of them mine")
      ...     return x + jax.process_index()
      >>> hosts.run(program, 10, processes=2, devices=2)
      0 | process 0: 4 devices, 2 of them mine
      0 | returned 10
      1 | process 1: 4 devices, 2 of them mine
      1 | returned 11
    """
    try:
        job = program if isinstance(program, str) else sending.dumps((program, arguments))
    except sending.CannotBeSent as error:
        raise HostsError(
            f"{error} cannot be sent to another process: make it inside of the function."
        ) from error
    with _lock, tempfile.TemporaryDirectory() as directory:
        for attempt in (1, 2):  # another program may take the port before the processes do
            run = _Run(processes, directory)
            try:
                run.start(job, devices, options)
                break
            except HostsError:
                run.kill()
                if attempt == 2:
                    raise
            except BaseException:  # also when the reader interrupts it
                run.kill()
                raise
        try:
            return run.finish(seconds)
        finally:
            run.kill()


def call(name: str, function: Callable, *arguments: Any) -> Any:
    """What ``function(*arguments)`` returns, as soon as it is there; in a process of `run`, the time is kept under a name.

    ``jax.block_until_ready(function(*arguments))`` does the same, and keeps no time. `viz.processes` shows who waited for whom.

    Args:
      name: such as ``"step 3"``. What all processes compute together should be called the same in all.
      function, *arguments: what to call.

    Example:
      >>> from mlax_tutorial.inspection import hosts
      >>> def program():
      ...     import jax.numpy as jnp
      ...     return float(hosts.call("sum", jnp.sum, jnp.ones(3)))
      >>> [[each.name for each in host.calls] for host in hosts.run(program)]
      [['sum'], ['sum']]
    """
    from mlax_tutorial.inspection import nursery

    return nursery.timed(name, function, *arguments)


def stop() -> None:
    """End the process from which the others are forked; the next `run` starts it again."""
    global _nursery
    with _lock:
        if _nursery is not None:
            _nursery.stop()
        _nursery = None


atexit.register(stop)


class _Run:
    def __init__(self, processes, directory):
        self.hosts = Hosts(Host(index) for index in range(processes))
        self.directory, self.done = directory, [False] * processes
        self.pids, self.ends, self.partial = {}, {}, [""] * processes
        self.began = time.monotonic()

    def start(self, job, devices, options):
        self.nursery = _ready_nursery()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        secret, count = secrets.token_bytes(16), len(self.hosts)
        with multiprocessing.connection.Listener(authkey=secret, backlog=count) as listener:
            settings = address, count, devices, options, sys.path, self.directory
            for index in range(count):
                self.nursery.send(("fork", listener.address, secret, index, settings))
            listener._listener._socket.settimeout(START)
            for _ in range(count):
                try:
                    end = listener.accept()
                except OSError as error:
                    raise HostsError(f"the processes do not answer: {self.nursery.last_words()}") from error
                index, self.pids[end] = end.recv()
                self.ends[end] = self.hosts[index]
        ready, until = 0, time.monotonic() + START
        while ready < count:
            for host, message in self._messages():
                if message[0] != "ready":
                    raise HostsError(
                        f"process {host.process} did not find the others: {message[1:]} {self._stderr(host)}"
                    )
                ready += 1
            if time.monotonic() > until:
                raise HostsError("the processes did not find each other in time.")
        self.began = time.monotonic()
        for end in self.ends:
            end.send_bytes(pickle.dumps(job))

    def finish(self, seconds):
        waited, last = 0.0, time.monotonic()
        while not all(self.done) and waited < seconds and last - self.began < BUSY * seconds + LONGEST:
            for host, (kind, *content) in self._messages():
                host.seconds = time.monotonic() - self.began
                if kind == "printed":
                    self._print(host, content[0])
                elif kind == "began":
                    host.calls.append(Call(content[0], content[1] - self.began))
                elif kind == "ended":
                    self._ended(host, *content)
                elif not self.done[host.process]:
                    self._end(host, kind, *content)
            before, last = last, time.monotonic()
            pids = [
                pid
                for end, pid in self.pids.items()
                if end in self.ends and not self.done[self.ends[end].process]
            ]
            if not any(map(_runnable, pids)):
                waited += min(last - before, 0.2)  # longer: this process had to wait for a processor itself
            if any(_computed(pid) > BUSY * seconds for pid in pids):
                break
        waiting = {end: host for end, host in self.ends.items() if not self.done[host.process]}
        for end in waiting:  # each writes where it is
            with contextlib.suppress(OSError):
                os.kill(self.pids[end], signal.SIGUSR1)
        if waiting:
            time.sleep(0.5)
        for host in waiting.values():
            host.line, host.seconds = self._where(host), time.monotonic() - self.began
        for host in self.hosts:
            if self.partial[host.process]:
                host.lines.append((host.seconds, self.partial[host.process]))
            host.stderr = self._stderr(host)
        return self.hosts

    def _end(self, host, status, *content):
        self.done[host.process], host.status = True, status
        if status == "returned":
            host.value = pickle.loads(content[0])
        elif status == "raised":
            host.error, frames = content
            host.line = _last(frames)
        else:
            host.error = content[0]

    def _ended(self, host, index, clock, found):
        host.calls[index] = dataclasses.replace(host.calls[index], ended=clock - self.began, **found)

    def _print(self, host, text):
        *lines, self.partial[host.process] = (self.partial[host.process] + text).split("\n")
        host.lines += [(host.seconds, line) for line in lines]

    def _messages(self):
        """What has come, from the processes themselves, and from the nursery when one ended."""
        for end in multiprocessing.connection.wait([*self.ends], timeout=0.1):
            host = self.ends[end]
            try:
                yield host, end.recv()
            except (EOFError, OSError):
                del self.ends[end]
                yield host, ("died", self.nursery.status(self.pids[end]))

    def _where(self, host):
        return _last(
            re.findall(r'File "(.*)", line (\d+) in ', _text(self.directory, host.process, "where"))[::-1]
        )

    def _stderr(self, host):
        lines = _text(self.directory, host.process, "stderr").splitlines()
        return "\n".join(line for line in lines if not line.startswith("[Gloo]"))

    def kill(self):
        for pid in self.pids.values():
            self.nursery.send(("kill", pid))
        for end in self.ends:
            end.close()


def _runnable(pid):
    """Whether a process computes, or waits for nothing but a processor. Only Linux tells; elsewhere all time is taken for waiting."""
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat") as file:
                if file.read().rpartition(")")[2].split()[0] in "RD":
                    return True
    except OSError:
        pass
    return False


def _computed(pid):
    """The seconds that a process has had a processor for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0.0


def _text(directory, process, kind):
    try:
        with open(f"{directory}/{process}.{kind}", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _last(frames):
    """The last line of the reader's own code, with its text."""
    for file, line in reversed(frames):
        if is_theirs(file) or file == "<script>":
            source = linecache.getline(file, int(line)).strip()
            return f"line {line}" + (f": {source}" if source else "")
    return ""


def _ready_nursery():
    global _nursery
    if _nursery is None or not _nursery.usable():
        _nursery = _Nursery()
    return _nursery


class _Nursery:
    """The process from which others are forked, seen from here."""

    def __init__(self):
        if not hasattr(os, "fork"):
            raise HostsError("this system cannot fork processes: on Windows, use its Subsystem for Linux.")
        self.owner, self.said = os.getpid(), tempfile.TemporaryFile()
        program = (
            f"import sys; sys.path[:] = {sys.path}; from mlax_tutorial.inspection.nursery import main; main()"
        )
        environment = environment_for(1)
        environment.pop("JAX_NUM_CPU_DEVICES")
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said
        )  # fmt: skip

    def usable(self):
        return self.owner == os.getpid() and self.process.poll() is None

    def send(self, message):
        with contextlib.suppress(OSError):
            self.process.stdin.write(pickle.dumps(message))
            self.process.stdin.flush()

    def status(self, pid):
        """How a process ended. It has closed its connection, so it does not live on."""
        try:
            self.send(("status", pid))
            code = pickle.load(self.process.stdout)
        except (OSError, EOFError):
            return "with the process that started it"
        if code is None:
            return "it closed its connection"
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"

    def last_words(self):
        self.said.seek(0)
        return self.said.read().decode(errors="replace")[-1000:]

    def stop(self):
        if self.owner != os.getpid():
            return
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()
