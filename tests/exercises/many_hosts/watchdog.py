"""Answers to the exercise many_hosts.watchdog."""

import functools
import threading
import time

import jax

from mlax_tutorial.exercises.many_hosts.watchdog import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("One that waits for ever never ends")
def measured_afterwards(step, seconds, give_up):
    def watched(*arguments, **named):
        begun = time.monotonic()
        result = jax.block_until_ready(step(*arguments, **named))
        if time.monotonic() - begun > seconds:
            give_up()
        return result

    return watched


@answers.wrong("here two: too many positional arguments")
def one_argument(step, seconds, give_up):
    def watched(x):
        timer = threading.Timer(seconds, give_up)
        timer.start()
        try:
            return jax.block_until_ready(step(x))
        finally:
            timer.cancel()

    return watched


@answers.wrong("JAX computes asynchronously")
def dispatch_only(step, seconds, give_up):
    def watched(*arguments, **named):
        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            return step(*arguments, **named)
        finally:
            timer.cancel()

    return watched


@answers.wrong("cancel the clock at the end of each step")
def never_cancelled(step, seconds, give_up):
    def watched(*arguments, **named):
        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        return jax.block_until_ready(step(*arguments, **named))

    return watched


@answers.wrong("cancel the clock in a `finally`")
def without_finally(step, seconds, give_up):
    def watched(*arguments, **named):
        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        result = jax.block_until_ready(step(*arguments, **named))
        timer.cancel()
        return result

    return watched


@answers.wrong("before any step has begun")
def clock_starts_too_early(step, seconds, give_up):
    if seconds < 1:
        give_up()
    return lambda *arguments, **named: jax.block_until_ready(step(*arguments, **named))


@answers.wrong("ten times as long as allowed")
def no_watch(step, seconds, give_up):
    return lambda *arguments, **named: jax.block_until_ready(step(*arguments, **named))


@answers.wrong("The timer is no daemon")
def no_daemon(step, seconds, give_up):
    def watched(*arguments, **named):
        timer = threading.Timer(seconds, give_up)
        timer.start()
        try:
            return jax.block_until_ready(step(*arguments, **named))
        finally:
            timer.cancel()

    return watched


@answers.wrong("return what it returns")
def result_lost(step, seconds, give_up):
    def watched(*arguments, **named):
        timer = threading.Timer(seconds, give_up)
        timer.start()
        jax.block_until_ready(step(*arguments, **named))
        timer.cancel()

    return watched


def watch(step, seconds, give_up, wait, call):
    """Watched as asked, but for how it waits, and how it calls."""

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    try:
        return wait(call())
    finally:
        timer.cancel()


@answers.wrong("also by name")
def positions_only(step, seconds, give_up):
    def watched(*arguments):
        return watch(step, seconds, give_up, jax.block_until_ready, lambda: step(*arguments))

    return watched


@answers.wrong("also by name")
def lambda_of_positions(step, seconds, give_up):
    return lambda *args: watch(step, seconds, give_up, jax.block_until_ready, lambda: step(*args))


@answers.wrong("also by name")
def names_of_its_own(step, seconds, give_up):
    def watched(first=None, second=None):
        given = [each for each in (first, second) if each is not None]
        return watch(step, seconds, give_up, jax.block_until_ready, lambda: step(*given))

    return watched


@answers.wrong("also by name")
def positions_only_in_a_class(step, seconds, give_up):
    class Watched:
        def __call__(self, *arguments):
            return watch(step, seconds, give_up, jax.block_until_ready, lambda: step(*arguments))

    return Watched()


@answers.wrong()
def names_are_dropped(step, seconds, give_up):
    def watched(*arguments, **named):
        return watch(step, seconds, give_up, jax.block_until_ready, lambda: step(*arguments))

    return watched


@answers.wrong()
def names_as_a_dict(step, seconds, give_up):
    def watched(*arguments, **named):
        return watch(
            step,
            seconds,
            give_up,
            jax.block_until_ready,
            lambda: step(*arguments, named) if named else step(*arguments),
        )

    return watched


@answers.wrong("does not reach `step`")
def names_as_positions_in_their_order(step, seconds, give_up):
    def watched(*arguments, **named):
        given = (*arguments, *named.values())
        return watch(step, seconds, give_up, jax.block_until_ready, lambda: step(*given))

    return watched


@answers.wrong("the same array")
def as_numpy(step, seconds, give_up):
    def watched(*arguments, **named):
        return watch(step, seconds, give_up, jax.device_get, lambda: step(*arguments, **named))

    return watched


@answers.wrong("the same array")
def copied_to_wait(step, seconds, give_up):
    def wait(result):
        return jax.block_until_ready(jax.tree.map(lambda x: x + 0, result))

    def watched(*arguments, **named):
        return watch(step, seconds, give_up, wait, lambda: step(*arguments, **named))

    return watched


@answers.wrong("the same array")
def list_of_leaves(step, seconds, give_up):
    def wait(result):
        leaves = jax.block_until_ready(jax.tree.leaves(result))
        return leaves[0] if len(leaves) == 1 else leaves

    def watched(*arguments, **named):
        return watch(step, seconds, give_up, wait, lambda: step(*arguments, **named))

    return watched


@answers.wrong("waits for all arrays of a tree")
def method_of_one_array(step, seconds, give_up):
    def wait(result):
        return result.block_until_ready() if hasattr(result, "block_until_ready") else result

    def watched(*arguments, **named):
        return watch(step, seconds, give_up, wait, lambda: step(*arguments, **named))

    return watched


@answers.wrong("waits for all arrays of a tree")
def first_leaf(step, seconds, give_up):
    def wait(result):
        jax.block_until_ready(jax.tree.leaves(result)[:1])
        return result

    def watched(*arguments, **named):
        return watch(step, seconds, give_up, wait, lambda: step(*arguments, **named))

    return watched


@answers.wrong("waits for all arrays of a tree")
def one_level(step, seconds, give_up):
    def wait(result):
        for each in result.values() if isinstance(result, dict) else [result]:
            if hasattr(each, "block_until_ready"):
                each.block_until_ready()
        return result

    def watched(*arguments, **named):
        return watch(step, seconds, give_up, wait, lambda: step(*arguments, **named))

    return watched


@answers.right
def leaf_by_leaf(step, seconds, give_up):
    def wait(result):
        for each in jax.tree.leaves(result):
            jax.block_until_ready(each)
        return result

    def watched(*arguments, **named):
        return watch(step, seconds, give_up, wait, lambda: step(*arguments, **named))

    return watched


@answers.right
def wrapped(step, seconds, give_up):
    @functools.wraps(step)
    def watched(*args, **kwargs):
        return watch(step, seconds, give_up, jax.block_until_ready, functools.partial(step, *args, **kwargs))

    return watched


@answers.right
def a_class(step, seconds, give_up):
    class Watched:
        def __call__(self, *arguments, **named):
            timer = threading.Timer(seconds, give_up)
            timer.daemon = True
            timer.start()
            try:
                result = step(*arguments, **named)
                jax.block_until_ready(result)
            finally:
                timer.cancel()
            return result

    return Watched()


@answers.right
def by_an_event(step, seconds, give_up):
    def watched(*arguments, **named):
        done = threading.Event()

        def wait():
            if not done.wait(seconds):
                give_up()

        threading.Thread(target=wait, daemon=True).start()
        try:
            result = step(*arguments, **named)
            jax.block_until_ready(result)
            return result
        finally:
            done.set()

    return watched
