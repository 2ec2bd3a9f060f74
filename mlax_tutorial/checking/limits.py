"""Stops what never ends: Python's loops by a signal, XLA's by an iteration limit put into the program.

XLA cannot be interrupted: a signal that comes while a compiled program runs waits until the program is over.
"""

import contextlib
import ctypes
import functools
import signal
import threading
import time

import jax
from jax.extend import core

from mlax_tutorial import jaxprs

SECONDS = 10.0
ITERATIONS = 100_000


class TimeUp(BaseException):
    """The time is over. Not an `Exception`, so that an ``except Exception`` in the reader's code lets it pass."""


@contextlib.contextmanager
def time_limit(seconds):
    """Raises `TimeUp` in this thread after so many seconds, again and again until the block is left.

    In the main thread it is an alarm signal, whose old handler and timer are put back. Elsewhere, and on systems
    without that signal, another thread plants the exception, which Python delivers between two bytecodes.
    """
    main = threading.current_thread() is threading.main_thread()
    with _alarm(seconds) if main and hasattr(signal, "setitimer") else _planted(seconds):
        yield


@contextlib.contextmanager
def _alarm(seconds):
    active = True

    def ring(number, frame):
        if active:
            raise TimeUp

    began = time.monotonic()
    old_handler = signal.signal(signal.SIGALRM, ring)
    # The alarm comes again every fifth of a second: code may swallow one of them.
    old_delay, old_interval = signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        yield
    finally:
        active = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_handler if old_handler is not None else signal.SIG_DFL)
        if old_delay:
            rest = max(old_delay - (time.monotonic() - began), 0.001)
            signal.setitimer(signal.ITIMER_REAL, rest, old_interval)


@contextlib.contextmanager
def _planted(seconds):
    target = ctypes.c_ulong(threading.get_ident())
    over, lock = threading.Event(), threading.Lock()

    def plant():
        wait = seconds
        while not over.wait(wait):
            with lock:
                if not over.is_set():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(TimeUp))
            wait = 0.2

    watcher = threading.Thread(target=plant, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with lock:
            over.set()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(target, None)  # one planted, but not yet delivered
        watcher.join()


@contextlib.contextmanager
def loop_limit(iterations):
    """In the block, each XLA loop that goes over the limit raises `jaxprs.LoopLimitError` when it was stopped.

    Every compiled program is started by one primitive, ``jit``: an operation called eagerly is jitted by JAX
    itself. So it is there that programs with a loop are exchanged for their limited twins. Programs without a
    loop, and everything that Python does between them, run as always.
    """
    primitive = getattr(core.primitives, "jit_p", None) or core.primitives.pjit_p
    original = primitive.impl
    thread = threading.get_ident()
    inside = False

    @functools.wraps(original)
    def impl(*args, jaxpr, **params):
        nonlocal inside
        if inside or threading.get_ident() != thread or not _loops(jaxpr):
            return original(*args, jaxpr=jaxpr, **params)
        inside = True
        try:
            return jaxprs.limit_loops(core.jaxpr_as_fun(jaxpr), iterations)(*args)
        finally:
            inside = False

    primitive.def_impl(impl)
    try:
        yield
    finally:
        primitive.def_impl(original)


def _loops(jaxpr):
    return any(
        equation.primitive.name == "while"
        or (equation.primitive.name == "scan" and equation.params["length"] > ITERATIONS)
        for _, equation in jaxprs.walk(jaxpr)
    )


def is_loop_limit(error):
    return isinstance(error, (jaxprs.LoopLimitError,)) or (
        isinstance(error, jax.errors.JaxRuntimeError) and "LoopLimitError" in str(error)
    )
