"""*Many hosts*: what its text says beyond its cells, with the functions of its reader, in processes of their own."""

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import streams
from mlax_tutorial.inspection import hosts
from tests.chapters import assembled


@pytest.fixture(scope="module")
def code():
    return assembled.definitions(
        "book/many_hosts.ipynb", "all_devices", "begin", "feed", "one_dies", "skip", "some_steps", "x", "y"
    )


def rows(host):
    return [list(map(int, line.split())) for line in host.printed.splitlines()]


def test_any_number_of_processes_reads_the_same_batches(code):
    (alone,) = hosts.run(code["feed"], code["begin"], 14, processes=1)
    assert sorted(sum(rows(alone)[:12], [])) == sorted(set(sum(rows(alone)[:12], [])))  # an epoch
    for count in (2, 4):
        parts = zip(*map(rows, hosts.run(code["feed"], code["begin"], 14, processes=count)))
        assert [sum(each, []) for each in parts] == rows(alone)


def test_two_processes_are_killed_and_one_goes_on(code, tmp_path):
    def killed(some_steps, folder, x, y):
        import os

        some_steps(folder, 0, 13, x, y)  # saved after ten
        os._exit(1)

    x, y, some_steps, folder = code["x"], code["y"], code["some_steps"], str(tmp_path / "run")
    died = hosts.run(killed, some_steps, folder, x, y, devices=2)
    assert [host.status for host in died] == ["died", "died"], died
    (resumed,) = hosts.run(some_steps, folder, 10, 20, x, y, processes=1, devices=2).values
    (undisturbed,) = hosts.run(some_steps, str(tmp_path / "other"), 0, 20, x, y, processes=1).values
    assert abs(resumed - undisturbed) < 1e-6


def test_if_process_0_dies_the_others_are_ended_soon(code):
    first, second = hosts.run(code["one_dies"], 0, seconds=60)
    assert (first.status, second.status) == ("died", "died"), (first, second)
    assert "alive for 15 s" not in second.printed  # the heartbeats would take a hundred


def test_only_device_put_compares(code):
    def make(all_devices, how):
        everywhere, mine = NamedSharding(all_devices(), P()), np.float32([jax.process_index()])
        if how == "device_put":
            return jax.device_put(mine, everywhere)
        if how == "callback":
            return jax.make_array_from_callback((1,), everywhere, lambda index: mine[index])
        return jax.make_array_from_process_local_data(everywhere, mine)

    for how in ("callback", "local data"):
        assert [float(value[0]) for value in hosts.run(make, code["all_devices"], how).values] == [0.0, 1.0]
    _, other = hosts.run(make, code["all_devices"], "device_put")
    # (JAX 0.7.2 compares with process 0's array, so there process 0 does not raise.)
    assert other.status == "raised" and "not the same on each process" in other.error


def test_the_position_is_three_integers(code):
    assert [np.shape(part) for part in code["begin"]] == [()] * 3
    assert isinstance(code["begin"], streams.Position)
