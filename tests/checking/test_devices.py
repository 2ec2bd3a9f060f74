"""Answers that need several devices are graded in a process that simulates them, and it goes when its notebook goes."""

import dataclasses
import functools
import linecache
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed, devices
from mlax_tutorial.checking.outcome import FAILED, NOT_ATTEMPTED, NOT_GRADED, PASSED
from mlax_tutorial.inspection import sending


@pytest.fixture(scope="module", autouse=True)
def stopped():
    yield
    devices.stop()


@pytest.fixture
def on_eight(grade):
    return functools.partial(grade, devices=8)


def call(function):
    function(jnp.arange(8.0))


def is_28(function):
    value = function(jnp.arange(8.0))
    if len(jax.devices()) != 8 or jax.default_backend() != "cpu":
        raise Failed("These are not eight devices.")
    if not np.array_equal(value, np.full(8, 28.0)):
        raise Failed("It is not 28.", got=value)


def total(x):
    return jax.lax.psum(x, "data") + 0 * x


def mesh_of(count, kind=AxisType.Auto):
    return jax.make_mesh((count,), ("data",), axis_types=(kind,), devices=jax.devices()[:count])


def shared_out(x):
    mesh = mesh_of(8)
    return jax.shard_map(total, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)


def which(function):
    raise Failed(f"process {os.getpid()} {function.original()}")


def process(on_eight):
    return int(on_eight(lambda: "", which).message.split()[1])


def test_it_has_eight_devices_and_this_process_has_not(on_eight):
    assert len(jax.devices()) == 2
    for answer in (shared_out, jax.jit(shared_out)):
        assert on_eight(answer, is_28).status == PASSED


def test_an_answer_may_be_a_dict_of_devices(on_eight):
    """JAX cannot sort such keys, so it is not a tree that could be waited for."""

    def check(function):
        if function() != {device: 1 for device in jax.devices()}:
            raise Failed("It is not one for each.")

    assert on_eight(lambda: dict.fromkeys(jax.devices(), 1), check).status == PASSED
    assert on_eight(lambda: {}, check).status == FAILED


def test_one_process_serves_all_checks_and_chapters(on_eight):
    assert process(on_eight) == process(on_eight) != os.getpid()
    assert on_eight(shared_out, is_28, iterations=5).status == PASSED
    assert process(on_eight) == devices._workers[8].process.pid


def test_the_exercise_is_not_attempted_without_starting_anything(on_eight):
    devices.stop()
    for stub in (..., lambda x: ...):
        assert on_eight(stub, call, solution=shared_out).status == NOT_ATTEMPTED
    assert not devices._workers


def test_errors_are_the_readers_with_their_lines(on_eight):
    def inner(x):
        return x.reshape(3, 3)

    def outer(x):
        return inner(x)

    outcome = on_eight(outer, call)
    assert outcome.status == FAILED and outcome.message.startswith(
        "Your code raised TypeError: cannot reshape"
    )
    [(label, lines)] = outcome.shown
    assert label == "your code" and "in outer:  return inner(x)" in lines
    assert "in inner:  return x.reshape(3, 3)" in lines and "worker" not in outcome.text


def test_a_function_of_a_notebook_brings_its_cell(on_eight):
    """It stands in no file; its lines are known to ``linecache`` only, in the process of the notebook."""
    cell = "import math\nsize = 3\ndef third(x):\n    return math.nan if size else 1\ndef wrong(x):\n    y = third(x)\n    return [][size]\n"
    names = {"__name__": "__main__"}
    linecache.cache["<a cell>"] = len(cell), None, cell.splitlines(keepends=True), "<a cell>"
    exec(compile(cell, "<a cell>", "exec"), names)
    outcome = on_eight(names["wrong"], call)
    assert outcome.message == "Your code raised IndexError: list index out of range"
    assert outcome.shown == (("your code", "line 7, in wrong:  return [][size]"),)


def test_what_it_prints_is_shown(on_eight):
    def answer(x):
        print("shape", x.shape)
        jax.debug.print("sum {}", x.sum())
        os.write(1, b"past Python\n")  # would break the messages between the processes
        return shared_out(x)

    outcome = on_eight(answer, is_28)
    assert outcome.status == PASSED and outcome.printed == "shape (8,)\nsum 28.0"


def test_it_cannot_ask_for_input(on_eight):
    outcome = on_eight(lambda x: input(), call, solution=shared_out)
    assert "EOFError" in outcome.message


@pytest.mark.parametrize("how", ["os._exit(3)", "__import__('ctypes').string_at(0)"])
def test_a_crash_is_one_message(on_eight, how):
    code = compile(f"lambda x: {how}", "<a cell>", "eval")
    outcome = on_eight(eval(code, {"os": os}), call)
    assert outcome.status == FAILED and "ended the process in which it runs" in outcome.message
    assert on_eight(shared_out, is_28).status == PASSED


def test_exit_is_an_error_like_others(on_eight):
    before = process(on_eight)
    assert "SystemExit" in on_eight(lambda x: sys.exit(), call).message
    assert process(on_eight) == before


def test_an_endless_loop_of_python_is_stopped(on_eight):
    def answer(x):
        while True:
            x = x[:]

    outcome = on_eight(answer, call, seconds=1)
    assert outcome.status == FAILED and "stopped after 1 seconds" in outcome.message
    assert "in answer" in outcome.shown[0][1]
    assert on_eight(shared_out, is_28).status == PASSED


def test_an_endless_program_is_stopped_and_does_not_keep_the_devices(on_eight):
    def prepared(x):
        """Compiled before the time counts, for the answer behind it, which runs in the same process."""

        def part(x):
            return jax.lax.while_loop(lambda y: jnp.all(y >= 0), lambda y: 0 * y, x)

        mesh = mesh_of(8)
        program = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=P("data"), out_specs=P("data")))
        sys.endless = program.lower(x).compile()

    def answer(x):
        return sys.endless(x)

    before = process(on_eight)
    assert on_eight(prepared, call).status == PASSED
    outcome = on_eight(answer, call, seconds=1)
    assert outcome.status == FAILED and "stopped after 1 seconds" in outcome.message
    assert "does a device wait for another that never comes?" in outcome.message
    assert process(on_eight) != before
    assert on_eight(shared_out, is_28).status == PASSED


def test_what_cannot_be_interrupted_is_stopped_with_its_process(on_eight, monkeypatch):
    monkeypatch.setattr(devices, "LATER", 0.5)

    def answer(x):
        signal.signal(signal.SIGALRM, signal.SIG_IGN)  # as a library that looks at no signal
        while True:
            x = x[:]

    before = process(on_eight)
    outcome = on_eight(answer, call, seconds=0.5)
    assert outcome.status == FAILED and outcome.message.startswith("Your code was stopped after 2.5 seconds")
    assert process(on_eight) != before
    assert on_eight(shared_out, is_28).status == PASSED


def test_a_process_that_ended_meanwhile_is_started_again(on_eight):
    before = process(on_eight)
    devices._workers[8].process.kill()
    devices._workers[8].process.wait()
    assert process(on_eight) != before


def test_an_interrupt_ends_the_check(on_eight):
    def answer(x):
        time.sleep(600)

    ended = threading.Event()

    def interrupt():
        while not ended.wait(0.5):  # again: one that meets the collection of garbage is lost
            os.kill(os.getpid(), signal.SIGINT)

    process(on_eight)
    began = time.monotonic()
    # What a shell starts in the background ignores interrupts, and hands that on.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            try:
                on_eight(answer, call)
            finally:
                ended.set()
                thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 60
    assert on_eight(shared_out, is_28).status == PASSED


PARENT = """
from mlax_tutorial.checking import Exercise, devices
import os, sys, time

def check(function):
    function()

def answer():
    print(os.getpid(), file=open(sys.argv[1] + ".new", "w"), flush=True)
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    while True:
        pass

exercise = Exercise(title="", stars=1, minutes=1, why="", hints=(), solution=answer, check=check, devices=8)
file = sys.argv[1]
exercise.grade(lambda: (setattr(sys, "argv", ["", file]), answer()))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="asks the system about a process as POSIX does")
def test_it_ends_when_the_notebook_is_killed(tmp_path):
    """Also in the middle of a loop that never ends."""
    program, file = tmp_path / "parent.py", tmp_path / "pid"
    program.write_text(PARENT)
    parent = subprocess.Popen([sys.executable, program, file])
    wait(lambda: file.exists() or parent.poll() is not None)
    pid = int(file.read_text())
    os.kill(pid, 0)
    parent.kill()
    parent.wait()
    wait(lambda: not is_running(pid))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        if os.path.isdir("/proc/self"):
            return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait(until):
    for _ in range(1200):
        if until():
            return
        time.sleep(0.1)
    raise AssertionError("it takes too long")


def test_a_python_that_starts_nothing_is_no_wrong_answer(monkeypatch):
    devices.stop()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    exercise = Exercise(title="", stars=1, minutes=1, why="", hints=(), solution=call, check=call, devices=8)
    outcome = exercise.grade(call)
    assert outcome.status == NOT_GRADED and "could not be started" in outcome.message


def test_the_flags_of_the_notebook_do_not_contradict(on_eight, monkeypatch):
    devices.stop()
    monkeypatch.setenv(
        "XLA_FLAGS", os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"
    )
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "2")
    assert on_eight(shared_out, is_28).status == PASSED
    devices.stop()


# What is sent

OFFSET = jnp.arange(8.0)
CALLS = []


def counted(x):
    CALLS.append(len(CALLS))
    return x


def even(n):
    return n == 0 or odd(n - 1)


def odd(n):
    return n != 0 and even(n - 1)


@dataclasses.dataclass(frozen=True)
class Settings:
    rate: float = 0.5
    names: tuple = dataclasses.field(default_factory=tuple)

    @property
    def doubled(self):
        return self.made(2 * self.rate)

    @classmethod
    def made(cls, rate):
        return cls(rate)


class Pair(NamedTuple):
    one: int
    other: int = 2


class Base:
    def name(self):
        return "base"


class Derived(Base):
    def name(self):
        return "derived from " + super().name()


def there_and_back(thing):
    """What another process would get: no function of this module is found by its name."""
    return sending.loads(sending.dumps(thing))


def test_closures_defaults_and_globals_go_along():
    nothing, many = None, 3

    def answer(x, y=OFFSET, *, z=2):
        return x + y * z + many if nothing is None else x

    there = there_and_back(answer)
    assert there is not answer and there.__globals__ is not answer.__globals__
    np.testing.assert_array_equal(there(1.0), answer(1.0))
    assert (there.__name__, there.__kwdefaults__) == ("answer", {"z": 2})


def test_functions_that_call_each_other():
    there = there_and_back(even)
    assert there(10) and not there(7)

    def factorial(n):
        return n * factorial(n - 1) if n else 1

    assert there_and_back(factorial)(5) == 120


def test_functions_share_their_globals_and_cells():
    one, two = there_and_back((counted, lambda: CALLS))
    one(0), one(0)
    assert two() == [0, 1] and CALLS == []

    count = 0

    def up():
        nonlocal count
        count += 1

    up, read = there_and_back((up, lambda: count))
    up()
    assert read() == 1 and count == 0


def test_what_jit_was_told_goes_along():
    x, sharding = jnp.arange(4.0), NamedSharding(mesh_of(2), P("data"))
    there = there_and_back(jax.jit(lambda x, n: x * n, static_argnames="n", donate_argnums=0))
    assert there(x, n=2)[1] == 2 and x.is_deleted()
    there = there_and_back(jax.jit(jnp.sin, out_shardings=sharding))
    assert there(OFFSET).sharding == sharding and "sharding" in there.lower(OFFSET).as_text()
    assert there_and_back(jnp.where) is jnp.where


@pytest.mark.parametrize("change", [jax.jit, jax.grad, jax.vmap, jax.checkpoint, functools.partial])
def test_transformed_functions(change):
    def f(x):
        return x**2

    x = jnp.arange(3.0) if change in (jax.jit, jax.vmap) else jnp.float32(3)
    np.testing.assert_array_equal(there_and_back(change(f))(x), change(f)(x))


def test_a_rule_of_ones_own():
    @jax.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, None), lambda _, cotangent: (3 * cotangent,))
    assert jax.grad(there_and_back(f))(1.0) == 3


def test_a_shard_map_and_its_mesh():
    f = jax.shard_map(total, mesh=mesh_of(2), in_specs=P("data"), out_specs=P("data"))
    np.testing.assert_array_equal(there_and_back(f)(jnp.arange(2.0)), [1, 1])


def test_arrays_keys_and_shardings():
    sharded = jax.device_put(jnp.arange(4, dtype=jnp.bfloat16), NamedSharding(mesh_of(2), P("data")))
    key, there = jax.random.key(7, impl="rbg"), there_and_back(sharded)
    assert there.sharding == sharded.sharding and there.dtype == jnp.bfloat16
    np.testing.assert_array_equal(there, sharded)
    assert jax.random.key_impl(there_and_back(key)) == jax.random.key_impl(key)
    assert jnp.all(jax.random.key_data(there_and_back(key)) == jax.random.key_data(key))


def test_classes_of_the_reader():
    settings, pair, derived = there_and_back((Settings(names=("a",)), Pair(1), Derived()))
    assert type(settings) is not Settings and settings.doubled.rate == 1 and settings.names == ("a",)
    assert [field.name for field in dataclasses.fields(settings)] == ["rate", "names"]
    assert type(settings)() == type(settings)(0.5)
    assert tuple(pair) == (1, 2) and pair._replace(one=3).one == 3
    assert derived.name() == "derived from base"


def test_modules_go_by_name():
    assert there_and_back(types) is types and there_and_back(textwrap.dedent) is textwrap.dedent


def test_what_cannot_be_sent_is_named(on_eight):
    lock = threading.Lock()

    def inner(x):
        return lock

    outcome = on_eight(lambda x: inner(x), call)
    assert outcome.status == FAILED and "`lock`, a lock, cannot be sent there" in outcome.message
