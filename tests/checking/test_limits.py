"""What never ends is stopped, and nothing is left behind."""

import signal
import sys
import threading
import time

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial.checking import checks, guarding, inputs, limits
from mlax_tutorial.checking.outcome import FAILED, PASSED

X = jnp.arange(1.0, 4.0)


@pytest.fixture(autouse=True)
def dropped_alarms(monkeypatch):
    """An alarm may ring in a callback, whose exceptions Python drops; it rings again. Pytest's hook would fail the test."""
    monkeypatch.setattr(sys, "unraisablehook", lambda dropped: None)


def double(x):
    return 2 * x


def call(function):
    function(X)


def forever(x):
    while True:
        x = x + 0


def forever_in_python(x):
    i = 0
    while i >= 0:
        i += 1


def forever_swallowing(x):
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


def forever_asleep(x):
    time.sleep(3600)


def forever_renaming(x):
    try:
        forever(x)
    except BaseException as error:
        raise Exception("something else") from error


@pytest.mark.parametrize(
    "endless",
    [
        forever,
        forever_in_python,
        forever_swallowing,
        forever_asleep,
        jax.jit(forever),
        forever_renaming,
    ],
)
def test_python_loops_are_stopped(grade, endless, monkeypatch):
    # By the clock, a busy machine may need longer than that until the loop begins; what sleeps is stopped by nothing else.
    monkeypatch.setattr(limits, "BUSY", 15 if endless in (forever_swallowing, forever_asleep) else 10**6)
    outcome = grade(endless, call, solution=double, seconds=0.3)
    assert outcome.status == FAILED
    assert "stopped after 0.3 seconds" in outcome.text and "never ends" in outcome.text
    shown = dict(outcome.shown)["your code"]
    assert "in forever" in shown and "checking" not in shown


def test_an_alarm_that_rings_once_more_hides_no_lines():
    later = limits.TimeUp()
    try:
        double(None)
    except TypeError as first:
        later.__context__ = first
    assert "in double" in dict(guarding.lines_of(later))["your code"]


def test_stopped_in_random_inputs(grade):
    def forever_on_empty(x):
        while x.size == 0:
            pass
        return 2 * x

    outcome = grade(
        forever_on_empty, lambda f: checks.values(f, double, inputs.arrays("n")), solution=double, seconds=1.5
    )
    assert "stopped after 1.5 seconds" in outcome.text
    assert "while x.size == 0:" in outcome.text or "pass" in outcome.text


def worked(seconds):
    """A right answer that works for so long, by this thread's time on a processor."""

    def answer(x):
        began = time.thread_time()
        while time.thread_time() - began < seconds:
            pass
        return 2 * x

    return answer


def slept(seconds):
    return lambda x: (time.sleep(seconds), 2 * x)[1]


def test_a_busy_machine_is_no_endless_loop(grade, monkeypatch):
    """To wait for a processor looks to the clock like sleeping."""
    monkeypatch.setattr(limits, "BUSY", 400)  # this machine may be busy, too
    assert grade(slept(0.6), call, seconds=0.3).status == PASSED
    assert in_thread(lambda: grade(slept(0.6), call, seconds=0.3)).status == PASSED
    assert grade(worked(0.6), call, solution=double, seconds=0.3).status == FAILED
    assert in_thread(lambda: grade(worked(0.6), call, solution=double, seconds=0.3)).status == FAILED


def test_handler_and_timer_are_put_back(grade):
    rung = []
    old = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 6000)
        grade(forever, call, solution=double, seconds=0.2)
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        assert 4000 < left < 6000 and not rung
        signal.raise_signal(signal.SIGALRM)
        assert rung == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def test_no_alarm_comes_late(grade):
    assert grade(double, call, seconds=0.3).status == PASSED
    time.sleep(0.6)


def in_thread(function):
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join(300)
    assert result, "the thread did not come to an end"
    return result[0]


def test_python_loops_are_stopped_in_another_thread(grade):
    outcome = in_thread(lambda: grade(forever_in_python, call, solution=double, seconds=0.3))
    assert outcome.status == FAILED and "stopped after 0.3 seconds" in outcome.text
    assert in_thread(lambda: grade(double, call, seconds=5)).status == PASSED


def test_without_the_signal(grade, monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(signal, "setitimer")
    assert "stopped after 0.3 seconds" in grade(forever_in_python, call, solution=double, seconds=0.3).text
    time.sleep(0.5)
    assert grade(double, call, seconds=5).status == PASSED


# Loops of XLA


def never(x):
    return x[0] > -1


def endless(x):
    return jax.lax.while_loop(never, lambda x: x * 0.5, x)


def endless_scalar(x):
    return jax.lax.while_loop(lambda y: y > -1, lambda y: y * 0.5, x)


def very_long_fori(x):
    return jax.lax.fori_loop(0, 10**9, lambda i, y: y + i, x)


def very_long_dynamic_fori(x):
    return jax.lax.fori_loop(0, jnp.int32(10**9) + 0 * x.sum().astype(int), lambda i, y: y + i, x)


def after_looking_at_a_value(x):
    if float(x.sum()) > 0:  # not traceable: only an eager call comes here
        return endless(x)
    return x


XLA_LOOPS = {
    "eager": endless,
    "jitted": jax.jit(endless),
    "jitted inside": lambda x: jax.jit(endless)(x) + 1,
    "jit in jit": jax.jit(lambda x: jax.jit(endless)(x) + 1),
    "vmapped": jax.vmap(endless_scalar),
    "in scan": lambda x: jax.lax.scan(lambda c, _: (endless(c), None), x, None, 3)[0],
    "in cond": lambda x: jax.lax.cond(x[0] > 0, endless, lambda x: x, x),
    "in map": lambda x: jax.lax.map(endless_scalar, x),
    "fori": very_long_fori,
    "dynamic fori": very_long_dynamic_fori,
    "not traceable": after_looking_at_a_value,
    "in grad": lambda x: jax.grad(lambda x: endless(jax.lax.stop_gradient(x)).sum() + x.sum())(x),
    "checkpointed": lambda x: jax.checkpoint(endless)(x),
}


@pytest.mark.parametrize("name", XLA_LOOPS)
def test_xla_loops_are_stopped(grade, name):
    outcome = grade(XLA_LOOPS[name], call, solution=double, iterations=1000)
    assert outcome.status == FAILED, str(outcome)
    assert "went over the limit of iterations and was stopped" in outcome.text


def test_xla_loops_are_stopped_under_the_checks(grade):
    for check in (
        lambda f: checks.works_under_jit(f, X),
        lambda f: checks.works_under_vmap(f, X[None]),
        lambda f: checks.traces(f, (X,), exactly=1),
        lambda f: checks.keys(f, X),
        lambda f: checks.values(f, double, inputs.arrays(3, low=1)),
    ):
        outcome = grade(endless, check, solution=double, iterations=1000)
        assert "went over the limit of iterations" in outcome.text, str(outcome)


def test_loops_that_end_are_right(grade):
    def halve(x):
        return jax.lax.while_loop(lambda x: x[0] > 1e-3, lambda x: x / 2, x)

    def halve_in_python(x):
        while x[0] > 1e-3:
            x = x / 2
        return x

    for function in (halve, jax.jit(halve)):
        outcome = grade(function, lambda f: checks.same(f(X), halve_in_python(X)), iterations=1000)
        assert outcome.status == PASSED, str(outcome)

    def sum_of(x):
        return jax.lax.fori_loop(0, 999, lambda i, y: y + i, 0 * x)

    assert grade(sum_of, lambda f: checks.same(f(X), jnp.full(3, 999 * 998 / 2)), iterations=1000).passed


def test_the_limit_ends_with_the_check(grade):
    grade(endless, call, solution=double, iterations=50)

    def count_to_hundred(x):
        return jax.lax.while_loop(lambda i: i < 100, lambda i: i + 1, x)

    assert int(count_to_hundred(0)) == int(jax.jit(count_to_hundred)(0)) == 100


def test_this_jax_still_has_the_place_where_loops_are_caught():
    from jax._src import pjit

    assert hasattr(pjit, "_pjit_call_impl_python")


def test_time_limit_alone():
    with pytest.raises(limits.TimeUp), limits.time_limit(0.2):
        while True:
            pass
    assert not issubclass(limits.TimeUp, Exception)
    assert sys.exc_info() == (None, None, None)
