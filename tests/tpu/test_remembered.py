"""A program that compiled is not compiled again; another one, with another compiler, or judged by another test, is."""

import json
import shutil

import jax
import jax.numpy as jnp
import pytest

from tests.tpu import remembered
from tests.tpu.compiling import compile_unless, fingerprint, lowered_for_chip
from tests.tpu.remembered import BETWEEN, RUNNER, Programs
from tools import project

TEST = "tests/tpu/test_some.py"
OWNER = f"{TEST}::test_layer[Linear(3) > float32]"
X = jax.ShapeDtypeStruct((8, 4), jnp.float32)


def lowered(function):
    return lowered_for_chip(jax.jit(function), X)


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A copy of what decides, with a test, for a record of its own."""
    for name in RUNNER:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(project.ROOT / name, tmp_path / name)
    (tmp_path / TEST).write_text("def test_layer(): pass\n")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("MLAX_RECORD", raising=False)
    monkeypatch.setattr(remembered, "left_out", {})
    monkeypatch.setattr(remembered, "refused", set())
    monkeypatch.setattr(Programs, "_is_sampled", lambda self, unit: False)
    return tmp_path


def visit(root, *functions, versions=("libtpu==1",), owner=OWNER, check=None):
    """A run of a test with these programs: how many were compiled."""
    with Programs(root=root, versions=versions).of(owner) as programs:
        for function in functions:
            programs.add(compile_unless(programs.known, lowered(function), check=check))
    return sum(seconds is not None for seconds in programs.found.values())


def double(x):
    return 2 * x


def triple(x):
    return 3 * x


def test_what_compiled_is_known_in_the_next_run(root):
    assert visit(root, double, triple) == 2
    assert visit(root, double, triple) == 0
    assert visit(root, lambda x: 4 * x, triple) == 1


def test_a_fingerprint_is_of_the_text_and_the_chips():
    same = fingerprint(lowered(double))
    namesake = lambda x: 2 * x  # noqa: E731
    namesake.__name__ = "double"
    assert fingerprint(lowered(namesake)) == same
    assert fingerprint(lowered(double), 8) != same != fingerprint(lowered(triple))
    wider = jax.ShapeDtypeStruct((8, 5), jnp.float32)
    assert fingerprint(lowered_for_chip(jax.jit(double), wider)) != same


@pytest.mark.parametrize("name", [*RUNNER, TEST])
def test_who_compiles_or_judges_otherwise_begins_anew(root, name):
    assert visit(root, double) == 1
    (root / name).write_text((root / name).read_text() + "# changed\n")
    assert visit(root, double) == 1


def test_another_compiler_and_another_owner_begin_anew(root):
    assert visit(root, double) == 1
    assert visit(root, double, versions=["libtpu==2"]) == 1
    assert visit(root, double, owner=f"{TEST}::test_other") == 1


def test_a_setting_of_the_compiler_begins_anew(root, monkeypatch):
    assert visit(root, double) == 1
    monkeypatch.setattr("tools.passed.circumstances._STARTED", {"LIBTPU_INIT_ARGS": "--some"})
    assert visit(root, double) == 1


def test_what_was_not_asked_for_again_is_forgotten(root):
    visit(root, double, triple)
    visit(root, double, owner=f"{TEST}::test_other")
    visit(root, triple)
    units = Programs(root=root, versions=["libtpu==1"]).units()
    assert units == [
        OWNER + BETWEEN + fingerprint(lowered(triple)),
        f"{TEST}::test_other{BETWEEN}" + fingerprint(lowered(double)),
    ]
    assert visit(root, double, triple) == 1


def test_a_program_whose_outcome_was_refused_is_not_remembered(root):
    def refuse(compiled):
        raise AssertionError("no all-reduce")

    with pytest.raises(AssertionError, match="no all-reduce"):
        visit(root, double, check=refuse)
    assert visit(root, double) == 1


def test_what_was_known_is_forgotten_when_its_owner_fails(root):
    visit(root, double, triple)
    with pytest.raises(KeyboardInterrupt), Programs(root=root, versions=["libtpu==1"]).of(OWNER):
        raise KeyboardInterrupt
    assert visit(root, double, triple) == 2


def test_another_checkout_knows_the_same(root, monkeypatch):
    monkeypatch.setattr("tools.passed.circumstances._STARTED", {"TPU_LIBRARY_PATH": "/here/libtpu.so"})
    assert visit(root, double) == 1
    monkeypatch.setattr("tools.passed.circumstances._STARTED", {"TPU_LIBRARY_PATH": "/elsewhere/libtpu.so"})
    assert visit(root, double) == 0


def test_a_program_for_the_cpu_is_refused_even_if_its_text_is_known(root):
    visit(root, double)
    here = jax.jit(double).lower(jnp.ones((8, 4)))
    with pytest.raises(AssertionError, match="not for a TPU"):
        compile_unless({fingerprint(lowered(double))}, here)


def test_an_edited_line_refuses_the_record(root):
    visit(root, double, triple)
    (path,) = (root / "tests" / "passed").glob("programs-*.jsonl")
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps(json.loads(first) | {"seconds": 9.0}), *rest]) + "\n")
    assert visit(root, double, triple) == 2
    assert Programs(root=root, versions=["libtpu==1"]).refusal


def test_everything_is_compiled_if_asked_for(root, monkeypatch):
    visit(root, double)
    monkeypatch.setenv("MLAX_RECORD", "ignore")
    assert visit(root, double) == 1


def test_what_is_in_the_tenth_is_compiled_again(root, monkeypatch):
    visit(root, double, triple)
    sampled = fingerprint(lowered(triple))
    monkeypatch.setattr(Programs, "_is_sampled", lambda self, unit: unit.endswith(sampled))
    assert visit(root, double, triple) == 1


def test_in_ci_nothing_is_written(root, monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert visit(root, double) == 1
    assert visit(root, double) == 1
