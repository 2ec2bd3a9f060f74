"""Stops what never ends: Python's loops by a signal, XLA's by an iteration limit put into the program.

XLA cannot be interrupted: a signal that comes while a compiled program runs waits until the program is over.
"""

import contextlib
import ctypes
import functools
import signal
import threading
import time

from jax.extend import core

from mlax_tutorial.inspection import jaxprs

SECONDS = 20.0  # of work: a right answer takes three at most, but machines differ
BUSY = 4  # by the clock it may take so many times as long: other programs, or a sleep
ITERATIONS = 100_000


class TimeUp(BaseException):
    """The time is over. Not an `Exception`, so that an ``except Exception`` in the reader's code lets it pass."""


@contextlib.contextmanager
def time_limit(seconds):
    """Raises `TimeUp` in this thread after so many seconds of its work, again and again until the block is left.

    In the main thread it is an alarm signal, whose old handler and timer are put back. Elsewhere, and on systems
    without that signal, another thread plants the exception, which Python delivers between two bytecodes. A busy
    machine is no endless loop: what counts is the thread's own time on a processor, where the system can tell it.
    """
    main = threading.current_thread() is threading.main_thread()
    over = _stopwatch(seconds)
    try:
        with _alarm(seconds, over) if main and hasattr(signal, "setitimer") else _planted(seconds, over):
            yield
    except Exception as error:
        # Code it passed through may have made another error of it: JAX up to 0.7 does so while it traces.
        if not over():
            raise
        raise TimeUp().with_traceback(error.__traceback__) from error


def _stopwatch(seconds):
    """A function that says, from any thread, whether this one has worked for so long."""
    work = time.monotonic
    if hasattr(time, "pthread_getcpuclockid"):
        work = functools.partial(time.clock_gettime, time.pthread_getcpuclockid(threading.get_ident()))
    worked, began = work(), time.monotonic()
    return lambda: work() - worked >= seconds or time.monotonic() - began >= BUSY * seconds


@contextlib.contextmanager
def _alarm(seconds, over):
    active = True

    def ring(number, frame):
        if active and over():
            raise TimeUp

    began = time.monotonic()
    old_handler = signal.signal(signal.SIGALRM, ring)
    # The alarm comes again every fifth of a second: it may be too early, and code may swallow one of them.
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
def _planted(seconds, over):
    target = ctypes.c_ulong(threading.get_ident())
    left, lock = threading.Event(), threading.Lock()

    def plant():
        wait = seconds
        while not left.wait(wait):
            with lock:
                if not left.is_set() and over():
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(target, ctypes.py_object(TimeUp))
            wait = 0.2

    watcher = threading.Thread(target=plant, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with lock:
            left.set()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(target, None)  # one planted, but not yet delivered
        watcher.join()


@contextlib.contextmanager
def loop_limit(iterations):
    """In the block, an XLA loop that goes over the limit is stopped, and then raises `jaxprs.LoopLimitError`.

    Python's part of a function runs as always, with real numbers; only where JAX is about to run a compiled
    program (the reader's ``jit``, or an operation called eagerly, which JAX jits itself) that holds a loop, the
    program is exchanged for its limited twin. That place has no public name. On a JAX where it is called
    otherwise nothing is exchanged, and a test of ours fails.
    """
    from jax._src import pjit

    run = getattr(pjit, "_pjit_call_impl_python", None)
    if run is None:
        yield
        return
    thread, inside = threading.get_ident(), False

    @functools.wraps(run)
    def run_limited(*inputs, jaxpr, **params):
        nonlocal inside
        if inside or threading.get_ident() != thread or not _has_loop(jaxpr, iterations):
            return run(*inputs, jaxpr=jaxpr, **params)
        inside = True
        try:
            outputs = jaxprs.limit_loops(core.jaxpr_as_fun(jaxpr), iterations)(*inputs)
        except NotImplementedError:  # a loop out of reach, in a custom_root: it runs as it is
            return run(*inputs, jaxpr=jaxpr, **params)
        finally:
            inside = False
        return outputs, None, None, []  # no executable, so that JAX does not remember it for the next call

    pjit._pjit_call_impl_python = run_limited
    try:
        yield
    finally:
        pjit._pjit_call_impl_python = run


def _has_loop(jaxpr, iterations):
    return any(
        equation.primitive.name == "while"
        or (equation.primitive.name == "scan" and equation.params["length"] > iterations)
        for _, equation in jaxprs.walk(jaxpr)
    )


def is_loop_limit(error):
    return isinstance(error, jaxprs.LoopLimitError)
