"""The process from which those of `hosts` are forked: it has imported JAX, but never uses it, so it has no threads.

Messages are pickles on what were the standard input and output: ``("fork", …)``, ``("kill", pid)``, and ``("status", pid)``, the only one
that is answered. A child then speaks for itself, over a connection of its own. When the input ends the notebook is gone, however it ended;
all processes end then.
"""

import contextlib
import faulthandler
import hashlib
import io
import itertools
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from multiprocessing.connection import Client

_say = None  # in a process of `hosts.run`: sends a message to the notebook
_calls = itertools.count()


def main():
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the reader interrupts the notebook, which then ends these
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    sys.stdin = open(os.devnull, encoding="utf-8")

    import jax.experimental.multihost_utils
    import jax.numpy  # noqa: F401

    import mlax_tutorial.inspection.sending  # noqa: F401

    children = set()
    while True:
        try:
            kind, *content = pickle.load(requests)
        except (EOFError, OSError):
            break
        if kind == "fork":
            with warnings.catch_warnings(
                action="ignore"
            ):  # JAX warns of threads, of which there are none yet
                pid = os.fork()
            if pid == 0:
                _child(*content)
            children.add(pid)
        elif kind == "kill" and content[0] in children:
            _kill(content[0])
            children.discard(content[0])
        elif kind == "status":
            children.discard(content[0])
            answers.write(pickle.dumps(_status(content[0])))
            answers.flush()
    for pid in children:
        _kill(pid)


def _kill(pid):
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _status(pid):
    """The exit status, or minus the signal, of a child that has closed its connection."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    _kill(pid)
    return None


def timed(name, function, *arguments):
    """See `hosts.call`."""
    import jax

    if _say is None:
        return jax.block_until_ready(function(*arguments))
    index = next(_calls)
    _say("began", str(name), time.monotonic())
    try:
        result = jax.block_until_ready(function(*arguments))
    except Exception as error:
        _say("ended", index, time.monotonic(), {"error": type(error).__name__})
        raise
    clock = time.monotonic()
    _say("ended", index, clock, dict(zip(("held", "shown"), _held(result))))
    return result


def _held(result):
    """Of the arrays that claim to be the same on the devices of all processes, what this one holds: a digest, and the numbers if they are few."""
    import jax
    import numpy as np

    from mlax_tutorial.nn.arrays import key_bits

    copies = []
    for leaf in jax.tree.leaves(result):
        if isinstance(leaf, jax.Array) and leaf.is_fully_replicated and not leaf.is_fully_addressable:
            copies.append(np.asarray(key_bits(leaf)))
    if not copies:
        return "", ""
    digest = hashlib.blake2b(b"".join(copy.tobytes() for copy in copies), digest_size=8).hexdigest()
    if len(copies) > 1 or copies[0].size > 4:
        return digest, ""
    return digest, np.array2string(copies[0], separator=", ", formatter={"float_kind": "{:.4g}".format})


def _child(listener, secret, index, settings):
    """One of the processes: joins the others, runs the job, and says how that ended. Never returns."""
    global _say
    address, count, devices, options, path, directory = settings
    sys.path[:] = path
    parent = os.getppid()
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    stderr = os.open(f"{directory}/{index}.stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(stderr, 1)
    os.dup2(stderr, 2)
    where = open(f"{directory}/{index}.where", "w")
    faulthandler.register(signal.SIGUSR1, file=where, all_threads=False)
    connection = Client(listener, authkey=secret)
    connection.send((index, os.getpid()))
    lock = threading.Lock()

    def say(*message):
        with lock, contextlib.suppress(OSError):
            connection.send(message)

    try:
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", devices)
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(address, num_processes=count, process_id=index, **options)
        jax.devices()
        say("ready")
        job = pickle.loads(connection.recv_bytes())
        sys.stdout, _say = _Said(say), say
        value = pickle.dumps(_value(_run(job)))
        say("returned", value)
    except BaseException as error:
        frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
        say("raised", f"{type(error).__name__}: {error}", frames)
    with contextlib.suppress(Exception):  # as at the end of a script: it waits for the others
        jax.distributed.shutdown()
    os._exit(0)


def _follow(parent):
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def _run(job):
    if isinstance(job, str):
        names = {"__name__": "__main__"}
        exec(compile(job, "<script>", "exec"), names)
        return None
    from mlax_tutorial.inspection import sending

    function, arguments = sending.loads(job)
    return function(*arguments)


def _value(value):
    import jax
    import numpy as np

    from mlax_tutorial.nn.arrays import key_bits

    def plain(leaf):
        if not isinstance(leaf, jax.Array):
            return leaf
        leaf = key_bits(leaf)
        if leaf.is_fully_addressable or leaf.is_fully_replicated:
            return np.asarray(leaf)
        raise ValueError(
            f"an array of shape {leaf.shape} cannot be returned, since this process holds only parts of it: return "
            "`[shard.data for shard in array.addressable_shards]`, or gather it."
        )

    return jax.tree.map(plain, value)


class _Said(io.TextIOBase):
    """The standard output: each text goes to the notebook at once, so that it is known if the process dies."""

    def __init__(self, say):
        self.say = say

    def write(self, text):
        self.say("printed", text)
        return len(text)
