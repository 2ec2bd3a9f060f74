"""Functions run in several processes: how each ended is told, and nothing is left behind."""

import os
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial.inspection import hosts


def total(start):
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    mine = np.float32([start + jax.process_index()] * jax.local_device_count())
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), mine)
    return jax.jit(jnp.sum, out_shardings=NamedSharding(mesh, P()))(x)


def gone(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("processes, devices, wanted", [(2, 2, 42.0), (3, 1, 33.0)])
def test_all_return(processes, devices, wanted):
    found = hosts.run(total, 10, processes=processes, devices=devices)
    assert found.values == [wanted] * processes
    assert all("Gloo" not in host.stderr for host in found)


def test_prints_and_values_are_shown():
    def program():
        print("here is", jax.process_index())
        print("and no line ends", end="")
        return {"x": jnp.arange(2) + jax.process_index()}

    found = hosts.run(program)
    assert [host.printed for host in found] == [f"here is {i}\nand no line ends" for i in range(2)]
    assert repr(found).splitlines() == [
        "0 | here is 0", "0 | and no line ends", "0 | returned {'x': array([0, 1], dtype=int32)}",
        "1 | here is 1", "1 | and no line ends", "1 | returned {'x': array([1, 2], dtype=int32)}",
    ]  # fmt: skip


def test_a_script():
    found = hosts.run("import jax\nprint(jax.process_count())\n1 / jax.process_index()")
    assert [host.status for host in found] == ["raised", "returned"]
    assert found[0].error == "ZeroDivisionError: division by zero" and found[0].line == "line 3"
    assert found[1].printed == "2"


def test_one_raises():
    def program():
        if jax.process_index() == 1:
            raise ValueError("only here\nand more")

    found = hosts.run(program)
    assert [host.status for host in found] == ["returned", "raised"]
    assert repr(found) == "1 | raised ValueError: only here"
    assert found[1].line.endswith(': raise ValueError("only here\\nand more")')
    with pytest.raises(hosts.HostsError, match="process 1 has returned nothing"):
        print(found.values)


def test_one_waits_for_ever():
    def program():
        print("begin", os.getpid())
        if jax.process_index() == 0:
            total(1)
            print("never")

    begin = time.monotonic()
    found = hosts.run(program, seconds=3)
    assert time.monotonic() - begin < 60
    assert [host.status for host in found] == ["waiting", "returned"]
    assert found[0].line.endswith("(x)") and "never" not in found[0].printed, found
    assert gone(int(found[0].printed.split()[1]))


def test_a_busy_process_is_not_taken_for_a_waiting_one():
    def program():
        if jax.process_index() == 0:
            end = time.process_time() + 3
            while time.process_time() < end:
                pass
        return float(total(1))

    assert hosts.run(program, seconds=1.5).values == [3.0, 3.0]


def test_a_process_that_sleeps_is_stopped_though_it_prints():
    def program():
        while jax.process_index() == 0:
            time.sleep(0.02)
            print("still here")

    found = hosts.run(program, seconds=2)
    assert [host.status for host in found] == ["waiting", "returned"] and found[0].lines


def test_python_loops_are_stopped():
    def program():
        while jax.process_index() == 0:
            pass

    found = hosts.run(program, seconds=1)
    assert [host.status for host in found] == ["waiting", "returned"]


@pytest.mark.parametrize("how, says", [("exit", "exit status 3"), ("kill", "killed by SIGKILL")])
def test_one_dies(how, says):
    def program(how):
        print("begin")
        if jax.process_index() == 1:
            os._exit(3) if how == "exit" else os.kill(os.getpid(), 9)

    found = hosts.run(program, how, seconds=20)
    assert [host.status for host in found] == ["returned", "died"]
    assert found[1].error == says and found[1].printed == "begin"


def test_parts_of_an_array_are_not_returned():
    def program():
        mesh = jax.make_mesh((2,), ("data",), axis_types=(AxisType.Auto,))
        return jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.zeros(1))

    assert "addressable_shards" in hosts.run(program)[0].error


def test_what_cannot_be_sent():
    file = open(os.devnull)
    with pytest.raises(hosts.HostsError, match="`file`.*make it inside"), file:
        hosts.run(lambda: file.read())


def test_options_are_passed_on():
    with pytest.raises(hosts.HostsError, match="no_such_option"):
        hosts.run(total, 1, no_such_option=1)


def test_a_stopped_nursery_is_started_again():
    hosts.stop()
    assert hosts.run(lambda: 1).values == [1, 1]
    nursery = hosts._nursery.process
    nursery.kill()
    nursery.wait()
    assert hosts.run(lambda: 2).values == [2, 2]


def test_an_interrupt_leaves_no_process(monkeypatch):
    begun = []

    def interrupted(self, seconds):
        begun.extend(self.pids.values())
        raise KeyboardInterrupt

    monkeypatch.setattr(hosts._Run, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hosts.run(lambda: time.sleep(60))
    assert len(begun) == 2 and all(gone(pid) for pid in begun)
