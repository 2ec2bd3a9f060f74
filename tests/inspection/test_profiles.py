"""``inspection.profiles``: real profiles of this JAX, and made ones of known numbers."""

import gzip
import json
import os

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial.inspection import profiles


@jax.jit
def step(x):
    def body(carry, _):
        return jnp.tanh(carry @ x), carry.sum()

    carry, sums = jax.lax.scan(body, x, None, length=5)
    return jnp.sort(carry.ravel()) + sums.sum()


def write(folder, events, time="2026_01_01", host="vm"):
    where = folder / "plugins" / "profile" / time
    where.mkdir(parents=True, exist_ok=True)
    with gzip.open(where / f"{host}.trace.json.gz", "wt") as file:
        json.dump({"traceEvents": events}, file)
    return where


def event(name, start, length, thread=1, run="1", module="jit_f", **more):
    told = {"hlo_op": name, "hlo_module": module, "run_id": run, "device_ordinal": "0"}
    return {"ph": "X", "pid": 7, "tid": thread, "ts": start, "dur": length, "name": name, "args": told} | more


def test_a_profile_of_this_jax(tmp_path):
    x = jnp.ones((40, 40))
    step(x).block_until_ready()
    with jax.profiler.trace(str(tmp_path)):
        for _ in range(3):
            step(x).block_until_ready()
    profile = profiles.read(tmp_path)
    named = {each.name.split(".")[0]: each for each in profile.operations}
    assert {each.module for each in profile.operations} == {"jit_step"}
    assert named["sort"].count == 3
    assert {each.count for each in profile.operations} == {
        3,
        15,
    }  # the scan's body runs five times in each call
    loop = named["while"]
    assert loop.count == 3 and 0 <= loop.own < loop.seconds
    assert all(each.own == each.seconds for each in profile.operations if each is not loop)
    assert [each.own for each in profile.operations] == sorted(
        (each.own for each in profile.operations), reverse=True
    )


def test_the_numbers(tmp_path):
    events = [
        {"ph": "M", "pid": 7, "tid": 1, "name": "thread_name", "args": {"name": "python"}},
        {"ph": "X", "pid": 7, "tid": 2, "ts": 0, "dur": 900, "name": "PjitFunction(f)"},
        event("while.1", 0, 100),
        event("dot.1", 10, 30),
        event("end: dot.1", 40, 1) | {"args": {}},
        event("add.1", 30, 30, thread=2),  # overlaps with the product: together they cover 50
        event("dot.1", 200, 20),
        event("dot.1", 0, 50, run="2"),
    ]
    write(tmp_path, events)
    loop, product, add = (
        next(each for each in profiles.read(tmp_path).operations if each.name == name)
        for name in ("while.1", "dot.1", "add.1")
    )
    assert (loop.count, product.count, add.count) == (1, 3, 1)
    assert product.seconds == product.own == pytest.approx(100e-6)
    assert loop.seconds == pytest.approx(100e-6) and loop.own == pytest.approx(50e-6)
    assert [each.name for each in profiles.read(tmp_path).operations] == ["dot.1", "while.1", "add.1"]
    assert profiles.read(tmp_path).seconds == pytest.approx(180e-6)


def test_a_tpu_names_a_thread(tmp_path):
    events = [
        {"ph": "M", "pid": 3, "tid": 9, "name": "thread_name", "args": {"name": "XLA Ops"}},
        {"ph": "X", "pid": 3, "tid": 9, "ts": 0, "dur": 5, "name": "fusion.3", "args": {"run_id": "1"}},
        {"ph": "X", "pid": 3, "tid": 8, "ts": 0, "dur": 50, "name": "jit_f(12)", "args": {"run_id": "1"}},
    ]
    write(tmp_path, events)
    assert [(each.name, each.module) for each in profiles.read(tmp_path).operations] == [("fusion.3", "")]


def test_the_newest_profile_of_all_hosts(tmp_path):
    old = write(tmp_path, [event("old.1", 0, 5)], time="1")
    os.utime(old, (1, 1))
    write(tmp_path, [event("dot.1", 0, 5)], time="2", host="one")
    write(tmp_path, [event("dot.1", 0, 5)], time="2", host="other")
    assert [(each.name, each.count) for each in profiles.read(tmp_path).operations] == [("dot.1", 2)]


def test_the_table(tmp_path):
    write(tmp_path, [event(f"add.{i}", 1000 * i, 100 - i) for i in range(12)])
    lines = repr(profiles.read(tmp_path)).splitlines()
    assert len(lines) == 12 and lines[-1] == "and 2 more"
    assert lines[1].split() == ["8.8%", "100", "µs", "1", "jit_f:", "add.0"]
    assert "more" not in profiles.read(tmp_path).table(12)


def test_what_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no profile"):
        profiles.read(tmp_path)
    write(tmp_path, [{"ph": "X", "pid": 7, "tid": 2, "ts": 0, "dur": 900, "name": "PjitFunction(f)"}])
    with pytest.raises(ValueError, match="no operation of XLA"):
        profiles.read(tmp_path)
