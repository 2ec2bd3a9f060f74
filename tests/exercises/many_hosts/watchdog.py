"""Answers to the exercise many_hosts.watchdog."""

import threading
import time

import jax

from mlax_tutorial.exercises.many_hosts.watchdog import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


@answers.wrong("One that waits for ever never ends")
def measured_afterwards(step, seconds, give_up):
    def watched(*arguments):
        begun = time.monotonic()
        result = jax.block_until_ready(step(*arguments))
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
    def watched(*arguments):
        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            return step(*arguments)
        finally:
            timer.cancel()

    return watched


@answers.wrong("cancel the clock at the end of each step")
def never_cancelled(step, seconds, give_up):
    def watched(*arguments):
        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        return jax.block_until_ready(step(*arguments))

    return watched


@answers.wrong("cancel the clock in a `finally`")
def without_finally(step, seconds, give_up):
    def watched(*arguments):
        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        result = jax.block_until_ready(step(*arguments))
        timer.cancel()
        return result

    return watched


@answers.wrong("before any step has begun")
def clock_starts_too_early(step, seconds, give_up):
    if seconds < 1:
        give_up()
    return lambda *arguments: jax.block_until_ready(step(*arguments))


@answers.wrong("ten times as long as allowed")
def no_watch(step, seconds, give_up):
    return lambda *arguments: jax.block_until_ready(step(*arguments))


@answers.wrong("The timer is no daemon")
def no_daemon(step, seconds, give_up):
    def watched(*arguments):
        timer = threading.Timer(seconds, give_up)
        timer.start()
        try:
            return jax.block_until_ready(step(*arguments))
        finally:
            timer.cancel()

    return watched


@answers.wrong("return what it returns")
def result_lost(step, seconds, give_up):
    def watched(*arguments):
        timer = threading.Timer(seconds, give_up)
        timer.start()
        jax.block_until_ready(step(*arguments))
        timer.cancel()

    return watched


@answers.right
def by_an_event(step, seconds, give_up):
    def watched(*arguments):
        done = threading.Event()

        def wait():
            if not done.wait(seconds):
                give_up()

        threading.Thread(target=wait, daemon=True).start()
        try:
            result = step(*arguments)
            jax.block_until_ready(result)
            return result
        finally:
            done.set()

    return watched
