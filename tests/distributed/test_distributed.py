"""Training on eight simulated devices, and in two real processes, equals training on one device.

The devices of a process are fixed when JAX starts, so the checks run as programs of their own, each of which says
how each of its checks ended.
"""

import json
import os
import pathlib
import socket
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent
EIGHT = [
    "init_is_that_of_one_device",
    "fully_sharded_and_tensor_parallel",
    "data_parallel_through_jit",
    "data_parallel_through_shard_map",
]
TWO = [
    "there_are_two_processes",
    "a_step_equals_that_of_one_process",
    "a_checkpoint_of_both_is_restored_by_both",
    "weights_spread_over_processes_are_refused_as_one_file",
]


def start(module, *arguments):
    # Nearly all of the time goes into compiling.
    environment = dict(os.environ, JAX_PLATFORMS="cpu", JAX_DISABLE_MOST_OPTIMIZATIONS="1")
    environment.pop("JAX_NUM_CPU_DEVICES", None)
    return subprocess.Popen(
        [sys.executable, "-m", f"tests.distributed.{module}", *map(str, arguments)],
        cwd=HERE.parents[1], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def finish(*programs, seconds=300):
    try:
        texts = [program.communicate(timeout=seconds)[0] for program in programs]
    except subprocess.TimeoutExpired:
        for program in programs:
            program.kill()
        texts = [program.communicate()[0] for program in programs]
        raise AssertionError("\n".join(["not done in time", *texts])) from None
    for program, text in zip(programs, texts):
        assert program.returncode == 0, text


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return tmp_path_factory.mktemp("reference") / "on_one_device.pickle"


@pytest.fixture(scope="module")
def eight(tmp_path_factory, reference):
    file = tmp_path_factory.mktemp("eight") / "results.json"
    finish(start("eight_devices", file, reference))
    return json.loads(file.read_text())


@pytest.fixture(scope="module")
def processes(tmp_path_factory, eight, reference):
    directory = tmp_path_factory.mktemp("two")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    files = [directory / f"results{index}.json" for index in range(3)]
    finish(*[start("two_processes", files[index], index, port, directory, reference) for index in range(2)])
    finish(start("two_processes", files[2], 2, port, directory))
    return [json.loads(file.read_text()) for file in files]


@pytest.mark.parametrize("name", EIGHT)
def test_eight_devices(eight, name):
    assert eight[name] == "passed"


@pytest.mark.parametrize("name", TWO)
def test_two_processes(processes, name):
    for results in processes[:2]:
        assert results[name] == "passed"


def test_one_process_after_two(processes):
    assert processes[2] == {"a_checkpoint_of_two_is_restored_by_one_on_another_mesh": "passed"}


def test_no_check_is_forgotten(eight, processes):
    assert set(eight) == set(EIGHT) and set(processes[0]) == set(TWO)
