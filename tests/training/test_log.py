"""The log of a training: one step late, whole lines, continued after a stop."""

import json
import os
import signal
import subprocess
import sys
import weakref

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


def test_what_is_on_the_host_may_change_at_once(tmp_path):
    values = {"loss": 1.0, "norms": np.ones(2), "counts": [1, (2, np.int8(3))]}
    with training.Log(tmp_path / "log") as log:
        log.write(np.int64(1), values)
        values["norms"][:], values["loss"] = 9, 2.0
        values["counts"].append(4)
    assert lines(tmp_path / "log") == [{"step": 1, "loss": 1.0, "norms": [1.0, 1.0], "counts": [1, [2, 3]]}]


def test_arrays_that_were_donated_are_named_and_the_file_is_closed(tmp_path):
    log, norms = training.Log(tmp_path / "log"), jnp.ones(3)
    log.write(1, {"norms": norms})
    norms.delete()  # as donating does
    with pytest.raises(
        ValueError, match="^Log: arrays of step 1 were donated before they were written: .*jnp.copy"
    ):
        log.close()
    with pytest.raises(ValueError, match=r"^Log\.write: .*log is closed, got step 2: make a new Log"):
        log.write(2, {})


def test_processes_that_do_not_write_keep_no_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    log, norms = training.Log(tmp_path / "log"), jnp.ones(3)
    kept = weakref.ref(norms)
    log.write(1, {"norms": norms})
    del norms
    assert kept() is None and log.step == 1 and os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("step", "values", "message"),
    [
        (1.5, {}, r"step must be an integer of at least 0, got 1\.5"),
        (None, {}, "step must be an integer of at least 0, got None"),
        (-1, {}, "step must be an integer of at least 0, got -1"),
        (
            1,
            {"step": 9},
            "values must be a dict .* none of them \"step\", .*, got a dict with keys \\['step'\\]",
        ),
        (1, [1], "values must be a dict of values by name, .*, got a list of length 1"),
        (1, 0.5, r"values must be a dict of values by name, .*, got float 0\.5"),
        (1, {"a": {"b": [1, 1j]}}, r"values\['a'\]\['b'\]\[1\] must be numbers, .*, got complex 1j"),
        (1, {"a": jax.random.key(0)}, r"values\['a'\] must be numbers, .*, got key<fry>\[\]"),
        (1, {"a": b"x"}, r"values\['a'\] must be numbers, Booleans or text, .*, got bytes b'x'"),
        (1, {"a": {1}}, r"values\['a'\] must be numbers, .*, got set \{1\}"),
    ],
)
def test_what_cannot_be_a_line_is_refused_at_once(tmp_path, step, values, message):
    with training.Log(tmp_path / "log") as log:
        log.write(0, {"a": 1})
        with pytest.raises(ValueError, match=rf"^Log\.write: {message}"):
            log.write(step, values)
    assert lines(tmp_path / "log") == [{"step": 0, "a": 1}]


@pytest.mark.parametrize(
    "content", [b"hello\n", b'{"loss": 1}\n', b"\xff\xfe\n", b"\n", b"7\n", b'{"step": "a"}\n', b"no line"]
)
def test_another_file_is_refused_and_stays(tmp_path, content):
    path = tmp_path / "log"
    path.write_bytes(content)
    with pytest.raises(
        ValueError, match='^Log: line 1 of .*log must be JSON with an integer "step", .*, got b'
    ):
        training.Log(path)
    assert path.read_bytes() == content


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    (tmp_path / "log").write_text('{"step": 1}\nnot JSON\n{"step": 3}\n')
    with pytest.raises(ValueError, match="^Log: line 2 of .*, got b'not JSON"):
        training.Log(tmp_path / "log", after=2)
    with pytest.raises(ValueError, match=r"^Log: after must be an integer of at least 0, got 0\.5"):
        training.Log(tmp_path / "log", after=0.5)


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
