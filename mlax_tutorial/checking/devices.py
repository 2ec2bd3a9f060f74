"""Grades answers that need several devices, in a process of their own that simulates them.

How many devices a process has is fixed when JAX is first used, and the reader's notebook may have one. So an exercise that says
``devices=8`` is graded by another Python (`worker`), which is started once, kept, and ends with the notebook.
"""

import atexit
import contextlib
import os
import pickle
import queue
import struct
import subprocess
import sys
import tempfile
import threading
import time

from mlax_tutorial.checking import limits
from mlax_tutorial.checking.outcome import FAILED, NOT_GRADED, Outcome
from mlax_tutorial.inspection import sending
from mlax_tutorial.inspection.processes import environment_for

inside = False  # whether this is the process that simulates the devices
START = 120.0  # seconds until it must be there; a few, where nothing else runs
LATER = 5.0  # seconds by which this process's limit comes after the worker's own, which says more
_workers = {}  # by the number of devices
_lock = threading.RLock()


def grade(exercise, answer, seconds):
    """The `Outcome` of an answer, from the process with the exercise's devices."""
    try:
        request = pickle.dumps((sys.path, sending.dumps((exercise, answer)), seconds))
    except sending.CannotBeSent as error:
        message = (
            f"Your function is run in another process, which simulates {exercise.devices} devices, and {error} cannot "
            "be sent there. Make it inside of your function, or do without it."
        )
        return Outcome(exercise.name, FAILED, message)
    # The worker stops Python, and waiting for XLA; what it cannot stop ends with its process.
    limit = limits.BUSY * seconds + LATER
    with _lock:
        try:
            found = _ask(exercise.devices, request, limit)
        except _NotStarted as error:
            message = f"The process that simulates {exercise.devices} devices could not be started: {error}"
            return Outcome(exercise.name, NOT_GRADED, message, fault=error)
        except _Ended as error:
            message = (
                f"Your code ended the process in which it runs, with {exercise.devices} simulated devices "
                f"({error}). The next check starts it again."
            )
            return Outcome(exercise.name, FAILED, message)
        except TimeoutError:
            message = (
                f"Your code was stopped after {limit:g} seconds, with the process in which it ran: it was in a library "
                "that cannot be interrupted."
            )
            return Outcome(exercise.name, FAILED, message)
        if isinstance(found, str):
            return Outcome(exercise.name, NOT_GRADED, "The check itself broke.", fault=RuntimeError(found))
        *fields, fault = found
        outcome = Outcome(*fields, fault=RuntimeError(fault) if fault else None)
        if outcome.stopped:  # a program may still occupy the devices
            _workers.pop(exercise.devices).stop()
        return outcome


def stop():
    """Ends the processes that simulate devices; the next check starts one."""
    with _lock:
        for worker in _workers.values():
            worker.stop()
        _workers.clear()


atexit.register(stop)


class _NotStarted(Exception):
    pass


class _Ended(Exception):
    pass


def _ask(devices, request, limit):
    worker = _workers.get(devices)
    if worker is None or not worker.usable():
        worker = _workers[devices] = _Worker(devices)
    try:
        worker.send(request)
        answer = worker.receive(limit)
    except BaseException:  # also when the reader interrupts it
        del _workers[devices]
        worker.stop()
        raise
    return pickle.loads(answer)


class _Worker:
    def __init__(self, devices):
        self.owner = os.getpid()
        self.said = tempfile.TemporaryFile()  # all that it writes to its standard error
        program = (
            f"import sys; sys.path[:] = {sys.path}; from mlax_tutorial.checking.worker import main; main()"
        )
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program],
                env=environment_for(devices),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.said,
            )
        except (OSError, ValueError, TypeError) as error:  # a Python without processes, or without its name
            raise _NotStarted(str(error)) from error
        self.answers = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            count = pickle.loads(self.receive(START))
        except BaseException as error:
            self.stop()
            if not isinstance(error, (_Ended, TimeoutError)):
                raise
            raise _NotStarted(self.last_words() or "it said nothing.") from error
        if count != devices:
            self.stop()
            raise _NotStarted(f"it has {count} devices.")

    def _listen(self):
        while (answer := read(self.process.stdout)) is not None:
            self.answers.put(answer)
        self.answers.put(None)

    def usable(self):
        return self.owner == os.getpid() and self.process.poll() is None

    def send(self, request):
        with contextlib.suppress(OSError):  # it has just ended, which `receive` finds
            write(self.process.stdin, request)

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while True:
            try:
                answer = self.answers.get(
                    timeout=0.1
                )  # often, since Windows delivers Ctrl-C only between two waits
            except queue.Empty:
                if time.monotonic() > end:
                    raise TimeoutError from None
                continue
            if answer is None:
                raise _Ended(_status(self.process.wait()))
            return answer

    def last_words(self):
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").splitlines()
        return lines[-1] if lines else ""

    def stop(self):
        if self.owner != os.getpid():
            return
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self.process.stdin.close()


def _status(code):
    if code < 0:
        return f"signal {-code}" + (": perhaps it used too much memory" if code == -9 else "")
    return f"exit status {code}"


# Messages


def write(file, message):
    file.write(struct.pack("<Q", len(message)) + message)
    file.flush()


def read(file):
    """The next message, or None when the other end is gone."""
    try:
        head = file.read(8)
        return file.read(struct.unpack("<Q", head)[0]) if len(head) == 8 else None
    except (OSError, ValueError):
        return None
