"""`examples/multihost.py`: two local processes train as one does, and go on from each other's checkpoints; its launch files."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

from examples import multihost
from mlax_tutorial import data, saving

QUICK_TO_COMPILE = True
ROOT = pathlib.Path(__file__).parents[2]
LAUNCH = ROOT / "examples" / "launch"
OPTIONS = {"size": "tiny", "batch_size": 8, "every": 2}
ARGUMENTS = ["--size", "tiny", "--batch-size", "8", "--every", "2"]

# What srun does: a process for each task, which knows its number by SLURM's variables.
SRUN = """#!/bin/bash
while [[ $1 == --* ]]; do shift; done
for task in 0 1; do SLURM_PROCID=$task SLURM_LOCALID=$task "$@" & tasks+=($!); done
status=0
for task in "${tasks[@]}"; do wait "$task" || status=$?; done
exit $status
"""


def environment(**more):
    # Nearly all of the time goes into compiling.
    found = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_DISABLE_MOST_OPTIMIZATIONS": "1"} | more
    found.pop("JAX_NUM_CPU_DEVICES", None)
    return found


def train(**more):
    mesh = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])
    said = []
    found = multihost.train(data.jargon().train, mesh=mesh, **OPTIONS | {"say": said.append} | more)
    return *found, said


@pytest.fixture(scope="module")
def alone():
    """Six steps of one process of one device."""
    return train(steps=6)


def logged(path):
    return [json.loads(line)["loss"] for line in path.read_text().splitlines()]


def free_job():
    """The number of a job whose port, which JAX derives from it, is free."""
    for job in range(os.getpid() % 4096, 8192):
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", 65536 - 4096 + job % 4096))
                return job
            except OSError:
                continue


def test_two_processes_train_as_one_and_go_on_under_slurm(alone, tmp_path):
    pytest.importorskip("orbax.checkpoint")
    run, (srun, scontrol) = tmp_path / "run", (tmp_path / name for name in ("srun", "scontrol"))
    run.mkdir()
    kept = ["--checkpoints", str(run / "parts"), "--log", str(run / "log.jsonl")]
    command = [sys.executable, "-m", "examples.multihost", *ARGUMENTS, "--local", "2", "--steps", "4", *kept]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "2 processes, 2 devices" in done.stdout and done.stdout.count("step 4:") == 1
    _, losses, _ = alone
    assert losses[3] < losses[0]
    np.testing.assert_allclose(logged(run / "log.jsonl"), losses[:4], rtol=1e-5)

    srun.write_text(SRUN)
    scontrol.write_text("#!/bin/bash\necho queued again\n")
    srun.chmod(0o755), scontrol.chmod(0o755)
    slurm = environment(
        SLURM_JOB_ID=str(free_job()), SLURM_STEP_NODELIST="localhost", SLURM_NTASKS="2",
        PATH=f"{tmp_path}:{os.environ['PATH']}", PYTHON=sys.executable, CHECKPOINTS=str(run),
    )  # fmt: skip
    # Nothing is left to train, so nobody waits for the compiler.
    command = ["bash", str(LAUNCH / "slurm.sh"), *ARGUMENTS, "--steps", "4"]
    done = subprocess.run(command, cwd=ROOT, env=slurm, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "queued again" not in done.stdout, done.stderr
    assert "2 processes, 2 devices" in done.stdout and "resumed after step 4, on 2 devices" in done.stdout

    log = run / "log.jsonl"
    _, _, said = train(steps=6, directory=run / "parts", log=log)
    assert said[0] == "resumed after step 4, on 1 devices"
    np.testing.assert_allclose(logged(log), losses, rtol=1e-5)


def test_a_run_that_was_resumed_ends_with_the_same_weights(alone, tmp_path):
    pytest.importorskip("orbax.checkpoint")
    wanted, losses, _ = alone
    train(steps=4, directory=tmp_path / "parts")
    state, last, said = train(steps=6, directory=tmp_path / "parts")
    assert said[0] == "resumed after step 4, on 1 devices" and last == losses[4:]
    for one, other in zip(jax.tree.leaves(state), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.raises(saving.CheckpointError, match="holds a run with --seed 0, not 1"):
        train(steps=6, directory=tmp_path / "parts", seed=1)
    with pytest.raises(saving.CheckpointError, match="holds a run with --batch-size 8, not 16"):
        train(steps=6, directory=tmp_path / "parts", batch_size=16)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="it looks into /proc")
def test_no_process_outlives_a_parent_that_is_killed():
    command = [sys.executable, "-m", "examples.multihost", *ARGUMENTS, "--local", "2", "--steps", "100000"]
    parent = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    try:
        until, children = time.monotonic() + 60, []
        while len(children) < 2 and time.monotonic() < until:
            time.sleep(0.05)
            children = pathlib.Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        assert len(children) == 2
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    left = [pathlib.Path("/proc") / pid / "stat" for pid in children]
    until = time.monotonic() + 60
    while any(map(alive, left)) and time.monotonic() < until:
        time.sleep(0.1)
    assert not any(map(alive, left))


def alive(stat):
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--local 3 --batch-size 8", "--batch-size 8 cannot be divided over 3 devices"),
        ("--local 2 --devices 3 --batch-size 8", "cannot be divided over 6 devices"),
        ("--local 2 --cluster", "choose one"),
        ("--local -1", "--local must be at least 1, got -1"),
        ("--coordinator 10.0.0.1:1234", "--coordinator, --processes and --process belong together"),
        ("--coordinator a:1 --processes 2 --process 2", "--process must be from 0 to 1"),
        ("--steps 0", "--steps must be at least 1"),
        ("--size huge", "invalid choice: 'huge'"),
    ],
)
def test_what_does_not_fit_is_said_at_once(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        multihost.main(arguments.split())
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", ["slurm.sh", "tpu_pod.sh"])
def test_bash_reads_the_launch_files(name):
    assert subprocess.run(["bash", "-n", LAUNCH / name]).returncode == 0


def test_the_pod_s_command_runs_on_all_hosts(tmp_path):
    gcloud = tmp_path / "gcloud"
    gcloud.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    gcloud.chmod(0o755)
    given = environment(PATH=f"{tmp_path}:{os.environ['PATH']}", TPU="mine")
    done = subprocess.run(["bash", LAUNCH / "tpu_pod.sh", "--size", "large"], env=given, capture_output=True, text=True)  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[:6] == ["compute", "tpus", "tpu-vm", "ssh", "mine", "--zone=us-central2-b"]
    assert lines[6] == "--worker=all" and lines[7].endswith("--log log.jsonl --size large")
    assert " --cluster " in lines[7]


def test_the_numbers_of_gke_s_file_belong_together():
    yaml = pytest.importorskip("yaml")
    (jobs,) = yaml.safe_load((LAUNCH / "gke.yaml").read_text())["spec"]["replicatedJobs"]
    job = jobs["template"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    assert job["completionMode"] == "Indexed" and job["completions"] == job["parallelism"]
    chips = np.prod([int(n) for n in pod["nodeSelector"]["cloud.google.com/gke-tpu-topology"].split("x")])
    assert chips == job["completions"] * container["resources"]["limits"]["google.com/tpu"]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
    assert "--cluster" in container["command"]
