"""The clock, on a clock of our own: what is counted, what is not, and what is refused."""

import doctest
import sys
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial.inspection import timing


class Machine:
    """Time passes only where work is done, so that every figure can be known."""

    def __init__(self):
        self.now, self.log = 0.0, []

    def perf_counter(self):
        return self.now

    def work(self, name, seconds, result=0):
        """A contender that takes ``seconds`` (a number, or a function of the calls so far)."""

        def run():
            self.log.append(name)
            self.now += seconds(self.log.count(name)) if callable(seconds) else seconds
            return result

        return run


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(timing.time, "perf_counter", machine.perf_counter)
    return machine


def test_the_first_call_is_not_counted(machine):
    compiles = machine.work("f", lambda call: 9.0 if call == 1 else 0.01)
    assert timing.measure(compiles).spread == pytest.approx((0.01, 0.01))


def test_the_median_ignores_a_hiccup(machine):
    hiccup = machine.work("f", lambda call: 5.0 if call == 4 else 0.01)
    spent = timing.measure(hiccup, repeats=5)
    assert spent.median == pytest.approx(0.01)
    assert spent.spread == pytest.approx((0.01, 5.0))


def test_contenders_take_turns(machine):
    timing.compare({"a": machine.work("a", 1.0), "b": machine.work("b", 2.0)}, repeats=3)
    assert machine.log[-6:] == ["a", "b"] * 3


def test_a_machine_that_slows_down_does_not_change_the_ratio(machine):
    def slower_and_slower(seconds):
        return lambda call: seconds * 2.0**call

    both = timing.compare(
        {"a": machine.work("a", slower_and_slower(1.0)), "b": machine.work("b", slower_and_slower(3.0))}
    )
    assert both.ratio("b", to="a") == pytest.approx(3)
    assert both.ratio("a", to="b") == pytest.approx(1 / 3)
    assert both["a"].spread[1] / both["a"].spread[0] == pytest.approx(2.0**6)


def test_short_calls_are_grouped_and_counted_singly(machine):
    spent = timing.measure(machine.work("f", 1e-5), repeats=3)
    assert spent.median == pytest.approx(1e-5)
    assert len(machine.log) > 3 * timing.GROUP_SECONDS / 1e-5


def test_long_calls_are_not_repeated_more_than_asked(machine):
    timing.measure(machine.work("f", 1.0), repeats=3)
    assert len(machine.log) <= 3 + 2


def test_a_call_that_takes_no_time_ends(machine):
    assert timing.measure(machine.work("f", 0.0), repeats=2).median == 0.0


def test_arguments_are_passed():
    seen = []
    timing.measure(lambda *args: seen.append(args) or 0, 1, "two", repeats=1)
    assert set(seen) == {(1, "two")}


@pytest.mark.parametrize("result", [jnp.ones(2), (jnp.ones(2), 1.0), {"a": [np.ones(2), jnp.ones(2)]}])
def test_arrays_are_waited_for(result):
    wait = timing._waiter("f", result)
    fake = mock.Mock(spec=["block_until_ready"])
    wait(fake)
    fake.block_until_ready.assert_called_once()


@pytest.mark.parametrize("result", [1.5, np.ones(2), np.float32(1), (1, np.ones(3))])
def test_what_is_ready_costs_no_wait(result):
    fake = mock.Mock(spec=["block_until_ready"])
    timing._waiter("f", result)(fake)
    fake.block_until_ready.assert_not_called()


@pytest.mark.parametrize(
    "result, says",
    [
        (None, "nothing to wait for"),
        ([], "nothing to wait for"),
        ("done", "a str"),
        (b"done", "a bytes"),
        ((1, object()), "a object"),
    ],
)
def test_what_cannot_be_waited_for_is_refused(result, says):
    with pytest.raises(TypeError, match=f"^slow returned .*{says}"):
        timing.compare({"slow": lambda: result})


def test_nothing_to_time_is_refused():
    with pytest.raises(ValueError, match="repeats must be at least 1"):
        timing.measure(lambda: 1, repeats=0)
    with pytest.raises(ValueError, match="name at least one function"):
        timing.compare({})


def test_a_trace_is_refused():
    with pytest.raises(TypeError, match="being traced"):
        jax.jit(lambda x: timing.measure(jnp.sin, x))(1.0)


def test_the_guards_are_off_inside_and_as_before_outside():
    seen = []

    def look():
        seen.append((jax.config.jax_debug_key_reuse, jax.config.jax_check_tracer_leaks))
        return 0

    with jax.debug_key_reuse(True), jax.check_tracer_leaks(True):
        timing.measure(look, repeats=1)
        assert (jax.config.jax_debug_key_reuse, jax.config.jax_check_tracer_leaks) == (True, True)
    assert set(seen) == {(False, False)}


def python_calls(function):
    """How many Python functions a call runs, itself among them."""
    events = []
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        function()
    finally:
        sys.setprofile(None)
    return events.count("call")


def test_a_function_called_before_with_the_guards_on_is_timed_without_them():
    """On some versions of JAX each call would go on running JAX's Python code, where `jit` otherwise runs none."""
    x, counts = jnp.ones(3), []
    known = jax.jit(lambda x: x + 1)

    def call():
        counts.append(python_calls(lambda: known(x)))
        return known(x)

    with jax.debug_key_reuse(True):
        known(x)
        guarded = python_calls(lambda: known(x))
        timing.measure(call, repeats=3)
    assert counts[-1] == 1 < guarded, (counts[-1], guarded)


def test_it_reads_well(machine):
    both = timing.compare({"one": machine.work("a", 0.002), "twelve": machine.work("b", 0.024)}, repeats=3)
    assert str(both) == "one      2.00 ms         1 x\ntwelve   24.0 ms        12 x"
    assert str(both["one"]) == "2.00 ms (median of 3, from 2.00 ms to 2.00 ms)"


@pytest.mark.parametrize("seconds", [0.0, 9.9951e-8, 1e-9, 9.996e-6, 0.99949e-3, 0.9995e-3, 59.96, 999.7])
def test_three_digits(seconds):
    number, unit = timing.in_words(seconds).split()
    size = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * size == pytest.approx(seconds, rel=0.006, abs=1e-12)
    assert len(number.replace(".", "")) == 3 or float(number) >= 1000


def test_examples_run():
    result = doctest.testmod(timing)
    assert result.attempted and not result.failed
