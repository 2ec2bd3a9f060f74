"""The log of a training: one step late, whole lines, continued after a stop."""

import json
import os
import signal
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mlax_tutorial import nn, optim, training


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_line_is_written_when_the_next_one_comes(tmp_path):
    path = tmp_path / "log"
    with training.Log(path) as log:
        log.write(1, {"loss": jnp.bfloat16(0.5), "by class": {"a": np.arange(2), "b": True}})
        assert lines(path) == [] and log.step == 1
        log.write(2, {"loss": jnp.nan, "norms": np.array([1.0, np.inf])})
        assert lines(path) == [{"step": 1, "loss": 0.5, "by class": {"a": [0, 1], "b": True}}]
        log.flush()
        log.flush()
        assert lines(path)[1] == {"step": 2, "loss": None, "norms": [1.0, None]}  # JSON has no NaN
        log.write(3, {"loss": 1})
    assert [line["step"] for line in lines(path)] == [1, 2, 3]


def test_it_is_continued_without_what_is_done_again_and_without_a_torn_line(tmp_path):
    path = tmp_path / "log"
    path.write_text("".join(f'{{"step": {step}}}\n' for step in (1, 2, 3)) + '{"step": 4, "lo')
    with training.Log(path) as log:
        assert log.step == 3
    with training.Log(path, after=2) as log:
        log.write(3, {"loss": 0})
    assert lines(path) == [{"step": 1}, {"step": 2}, {"step": 3, "loss": 0}] and os.listdir(tmp_path) == [
        "log"
    ]


def test_an_error_leaves_what_was_given_to_it(tmp_path):
    with pytest.raises(KeyError), training.Log(tmp_path / "log") as log:
        log.write(1, {"loss": 1})
        raise KeyError
    assert lines(tmp_path / "log") == [{"step": 1, "loss": 1}]


KILLED = """
import itertools, sys
from mlax_tutorial import training
log = training.Log(sys.argv[1])
for step in itertools.count(1):
    log.write(step, {"loss": [0.5] * 5000})
    if step == 20:
        print("on its way", flush=True)
"""


def test_a_process_that_is_killed_leaves_whole_lines(tmp_path):
    path = tmp_path / "log"
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        program.send_signal(signal.SIGKILL)
    assert len(path.read_bytes().splitlines()) >= 19
    with training.Log(path) as log:
        assert [line["step"] for line in lines(path)] == list(range(1, log.step + 1))


@pytest.mark.parametrize("has_aux", [False, True])
def test_fit_tells_it_each_step(tmp_path, has_aux):
    def loss(outputs, targets):
        value = jnp.mean((outputs - targets) ** 2)
        return (value, {"largest": jnp.max(outputs)}) if has_aux else value

    model, x = nn.Linear(1), jax.random.normal(jax.random.key(0), (6, 2))
    step, optimizer = training.make_step(model, loss, has_aux=has_aux), optim.SGD(0.1)
    trainables, rest = model.init(jax.random.key(1), x)
    variables, told = (trainables, rest, optimizer.init(trainables)), []
    with training.Log(tmp_path / "log") as log:
        for _ in range(2):
            variables = training.fit(
                jax.random.key(2), step, optimizer, variables, x, x[:, :1], epochs=2, batch_size=3,
                each_epoch=lambda epoch, trainables, rest, means: told.append(means), log=log,
            )  # fmt: skip
    found = lines(tmp_path / "log")
    assert [(line["step"], line["epoch"]) for line in found] == list(zip(range(1, 9), [0, 0, 1, 1] * 2))
    means = np.mean([[line["loss"] for line in found[i : i + 2]] for i in range(0, 8, 2)], axis=1)
    np.testing.assert_allclose([mean[0] if has_aux else mean for mean in told], means, rtol=1e-6)
    assert ("largest" in found[0].get("metrics", {})) == has_aux
