"""`examples/fsdp.py`: saved from eight devices, restored on two, and as good as on one.

The devices of a process are fixed when JAX starts, so each part is a process of its own.
"""

import os
import re
import subprocess
import sys

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

from examples import fsdp
from mlax_tutorial import data

ARGUMENTS = ["--size", "tiny", "--batch-size", "8", "--every", "2"]


def run(*arguments):
    environment = dict(os.environ, JAX_DISABLE_MOST_OPTIMIZATIONS="1")
    environment.pop("JAX_NUM_CPU_DEVICES", None)
    command = [sys.executable, "-m", "examples.fsdp", *ARGUMENTS, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def test_saved_on_eight_devices_it_goes_on_on_two(tmp_path):
    pytest.importorskip("orbax.checkpoint")
    eight = run("--devices", 8, "--mesh", 4, 2, "--steps", 2, "--checkpoints", tmp_path / "parts")
    two = run("--devices", 2, "--mesh", 1, 2, "--steps", 4, "--checkpoints", tmp_path / "parts")
    assert eight.returncode == two.returncode == 0, eight.stderr + two.stderr
    assert "resumed after step 2, on 2 devices" in two.stdout
    assert "all-reduce" in eight.stdout and "all-gather" in eight.stdout
    bits = [float(b) for b in re.findall(r"step \d+: ([\d.]+) bits", eight.stdout + two.stdout)]
    mesh = jax.make_mesh(
        (1, 1), ("data", "model"), axis_types=(AxisType.Auto,) * 2, devices=jax.devices()[:1]
    )
    said = []
    fsdp.train(data.jargon().train, mesh=mesh, size="tiny", steps=4, batch_size=8, every=2, say=said.append)
    wanted = [float(b) for b in re.findall(r": ([\d.]+) bits", "\n".join(said))]
    assert len(wanted) == 2 and wanted[1] < wanted[0]
    np.testing.assert_allclose(bits, wanted, atol=2e-3)


def test_no_device_holds_it_all():
    mesh = jax.make_mesh((1, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    state, losses = fsdp.train(
        data.jargon().train, mesh=mesh, size="tiny", steps=1, batch_size=8, say=lambda _: None
    )
    for leaf in jax.tree.leaves((state.trainables, state.optimizer_state)):
        if leaf.ndim > 1:
            assert {2 * part.data.size for part in leaf.addressable_shards} == {leaf.size}
    assert 5.5 < losses[0] / np.log(2) < 8.5


def test_what_does_not_fit_is_said_at_once():
    done = run("--devices", 8, "--mesh", 3, 2)
    assert done.returncode == 2 and "--mesh 3 2 needs 6 devices; there are 8" in done.stderr
    done = run("--devices", 8, "--mesh", 8, 1, "--batch-size", "12")
    assert done.returncode == 2 and "cannot be divided over 8" in done.stderr
