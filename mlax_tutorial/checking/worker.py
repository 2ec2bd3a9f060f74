"""A process of its own: grades answers on several simulated devices, for the process that `devices` belongs to.

Messages are bytes with their length in front, on what were the standard input and output.
"""

import builtins
import os
import pickle
import queue
import signal
import sys
import threading
import traceback


def main():
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # the reader interrupts the notebook, which then ends this process
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What the reader's code prints past Python, and what it asks for, must not get in between.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdin = open(os.devnull, encoding="utf-8")
    builtins.display = print  # IPython's

    import jax

    from mlax_tutorial.checking import devices, guarding

    devices.inside = guarding.waits = True
    devices.write(answers, pickle.dumps(len(jax.devices())))

    waiting = queue.Queue()
    threading.Thread(target=receive, args=(requests, waiting, devices.read), daemon=True).start()
    while True:
        devices.write(answers, pickle.dumps(grade(*pickle.loads(waiting.get()))))


def receive(requests, waiting, read):
    """Passes requests on. When they end the notebook is gone, however it ended, and whatever runs here is for nobody."""
    while (request := read(requests)) is not None:
        waiting.put(request)
    os._exit(0)


def grade(path, data, seconds):
    """The fields of the `Outcome`, or the traceback of what went wrong here."""
    from mlax_tutorial.inspection import sending

    sys.path[:] = path
    try:
        exercise, answer = sending.loads(data)
        outcome = exercise.grade(answer, seconds)
    except Exception:
        return traceback.format_exc()
    fault = "".join(traceback.format_exception(outcome.fault)) if outcome.fault else None
    return (
        outcome.name,
        outcome.status,
        outcome.message,
        outcome.shown,
        outcome.printed,
        outcome.stopped,
        fault,
    )
