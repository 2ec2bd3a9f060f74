"""A step that is given up when it takes too long."""

import inspect
import os
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, guarding
from mlax_tutorial.exercises.many_hosts import _two
from mlax_tutorial.inspection import hosts


def solution(step, seconds, give_up):
    def watched(*arguments, **named):
        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            return jax.block_until_ready(step(*arguments, **named))
        finally:
            timer.cancel()

    return watched


class _Slow:
    """A result that is not there yet, as an array is while its device computes."""

    def __init__(self, wait):
        self.wait = wait

    def block_until_ready(self):
        self.wait()
        return self


SOON, LATE = (
    0.4,
    4.0,
)  # when `give_up` is due, and when a step that waits for it takes it for one that does not come


def check(watchdog):
    called, times = threading.Event(), []

    def give_up():
        times.append(time.monotonic())
        called.set()

    def watch(step, seconds=SOON):
        times.clear()
        called.clear()
        return watchdog(step, seconds, give_up)

    watched = watch(lambda x, y: 10 * x + y, 30.0)
    if not callable(watched):
        raise Failed(
            "`watchdog(step, seconds, give_up)` must return a function, which is called in place of `step`.",
            got=watched,
        )
    try:
        inspect.signature(watched).bind(2, 3)
    except TypeError as error:
        raise Failed(f"The watched step must take the arguments of `step`, here two: {error}.") from error
    try:
        inspect.signature(watched).bind(2, y=3)
    except TypeError as error:
        raise Failed(
            f"The watched step must take the arguments of `step` also by name, here `y=3`: {error}. `def watched(*arguments, **named)` takes all, and "
            "`step(*arguments, **named)` hands them on."
        ) from error
    if watched(2, 3) != 23:
        raise Failed("The watched step must take the arguments of `step`, and return what it returns.")
    if times:
        raise Failed(
            "The step was done at once, and `give_up` was called: start the clock before, and stop it after."
        )

    if watched(2, y=3) != 23 or watched(y=3, x=2) != 23:
        raise Failed("What is given by name, as in `watched(2, y=3)`, does not reach `step`.")
    loss = jnp.ones(2)
    if not isinstance(found := watch(lambda: {"loss": loss}, 30.0)(), dict) or found.get("loss") is not loss:
        raise Failed(
            "The watched step must return what `step` returns: here a dict with an array of JAX's, the same array.",
            got=found,
        )
    begun, seen, timers, before = time.monotonic(), [], [], threading.enumerate()

    def waiting():  # a step that ends when it is given up
        timers.extend(
            each for each in threading.enumerate() if isinstance(each, threading.Timer) and each not in before
        )
        seen.append(called.wait(LATE))

    watched = watch(waiting)
    if times:
        raise Failed("`give_up` was called before any step has begun.")
    watched()
    if not times:
        raise Failed("A step took ten times as long as allowed, and `give_up` was not called.")
    if seen != [True]:
        raise Failed(
            "`give_up` was called when the step had ended. One that waits for ever never ends: another thread must watch it."
        )
    if times[0] - begun < 0.7 * SOON:
        raise Failed("`give_up` was called too early.", expected=SOON, got=times[0] - begun)
    if not all(each.daemon for each in timers):
        raise Failed(
            "The timer is no daemon, so a program waits for it before it ends: set `timer.daemon = True`."
        )

    watched = watch(lambda: _Slow(lambda: called.wait(LATE)))
    watched()
    if not times:
        raise Failed(
            "`step` returned at once, its result came later, and `give_up` was not called. JAX computes asynchronously: wait for the result, with "
            "`jax.block_until_ready`, before you stop the clock."
        )

    watch(lambda: {"steps": 1, "losses": [jnp.ones(2), _Slow(lambda: called.wait(LATE))]})()
    if not times:
        raise Failed(
            "In the result of `step`, a dict with a list in it, one array came later, and `give_up` was not called: `jax.block_until_ready` waits for all "
            "arrays of a tree, a method of one array does not."
        )

    def steps():
        watched = watch(lambda: None)
        for _ in range(3):
            watched()

    if _called_afterwards(steps, times):
        raise Failed(
            "The steps were done in time, and yet `give_up` was called afterwards: cancel the clock at the end of each step."
        )

    def broken():
        raise ZeroDivisionError("in the step")

    def step_that_raises():
        watched = watch(broken)
        try:
            guarding.bare(watched)()
        except ZeroDivisionError:
            pass
        except Exception as error:
            if "ZeroDivisionError" not in str(error):
                raise
        else:
            raise Failed("The step raised an error, and the watched step did not.")

    if _called_afterwards(step_that_raises, times):
        raise Failed(
            "The step raised an error, and `give_up` was called long after: cancel the clock in a `finally`."
        )
    _hang(watchdog)


def _called_afterwards(act, times):
    """Whether `give_up` is called after steps that were done in time; on a busy machine they may not be, at once."""
    for _ in range(10):
        begun = time.monotonic()
        act()
        in_time = time.monotonic() - begun < SOON / 2
        time.sleep(SOON + 0.2)
        if in_time or not times:
            return bool(times)
    return False


def _program(watchdog):
    x = jax.make_array_from_process_local_data(NamedSharding(_two.mesh(), P("data")), np.ones(1, np.float32))
    step = jax.jit(lambda x: x + jnp.sum(x))
    jax.block_until_ready(step(x))  # compiled, and all have met
    step = watchdog(step, 6.0, lambda: os._exit(42))
    for i in range(3):
        if i == 2 and jax.process_index() == 1:
            return time.sleep(60)
        x = step(x)
        print("step", i)


def _hang(watchdog):
    first, _ = hosts.run(_program, guarding.original(watchdog), devices=1, seconds=24)
    if first.status == "waiting":
        raise Failed("In two real processes, of which one leaves out a step, the other still waits: `give_up` was not called.", shown=[("it waits in", first.line)])  # fmt: skip
    if first.status == "raised":
        raise Failed(f"In a real process your code raised {first.error}", shown=[("your code", first.line)])
    if first.error != "exit status 42" or "step 1" not in first.printed:
        raise Failed(f"In two real processes `give_up` came too early, or not at all: {first}.")


exercise = Exercise(
    title="A watchdog",
    stars=3,
    minutes=20,
    seconds=_two.SECONDS,
    why="JAX waits for ever for a host that does not come; a clock of your own turns the silence into a restart.",
    hints=(
        "`threading.Timer(seconds, give_up)` calls `give_up` in another thread, unless `timer.cancel()` comes first. `timer.start()` starts it.",
        "A step returns before its device has computed: `jax.block_until_ready(step(*arguments, **named))` inside of a `try`, the `cancel` in its `finally`.",
    ),
    solution=solution,
    check=check,
)
