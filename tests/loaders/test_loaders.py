"""The recipes of *Many hosts* with Grain, tf.data and PyTorch: the text of the chapter, run in processes that JAX has joined."""

import json
import pathlib
import re
import socket
import subprocess

import pytest

from tests.loaders import program

ROOT = pathlib.Path(__file__).parents[2]
PYTHON = ROOT / ".venv-loaders" / "bin" / "python"
PER_EPOCH = program.ROWS // program.SIZE
pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="the loaders are not installed: make .venv-loaders/.made"
)


@pytest.fixture(scope="module")
def recipes():
    chapter = (ROOT / "book/_src/many_hosts.md").read_text(encoding="utf-8")
    section = re.search(r"^### Grain, tf\.data, PyTorch(.*?)^## ", chapter, re.DOTALL | re.MULTILINE)[1]
    texts = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    grain, tf, torch = (text.replace("=8", "=2") for text in texts)  # two workers do as well
    return {"grain": grain, "tf": tf, "torch": torch}


@pytest.fixture
def run(recipes, tmp_path):
    started = []

    def run(library, count):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        started[:] = [
            subprocess.Popen(
                [PYTHON, "-m", "tests.loaders.program", library, str(process), str(count), address, tmp_path],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for process in range(count)
        ]
        for each in started:
            each.stdin.write(recipes[library])
            each.stdin.close()
            each.stdin = None
        printed = [each.communicate() for each in started]
        for each, (_, errors) in zip(started, printed):
            assert each.returncode == 0, errors
        return [json.loads(out.splitlines()[-1]) for out, _ in printed]

    yield run
    for each in started:
        each.kill()


def rows(host, begin=0, end=None):
    return sum(host["batches"][begin:end], [])


@pytest.mark.parametrize("library", ["grain", "tf", "torch"])
def test_processes_share_the_rows_and_resume(run, library):
    hosts = run(library, 2)
    first, second = hosts
    assert len(first["batches"]) == len(second["batches"]) == program.EPOCHS * PER_EPOCH
    assert first["shapes"] == second["shapes"] == [[program.SIZE]]
    # what both read in the first epoch, none of it twice
    epoch = rows(first, 0, PER_EPOCH) + rows(second, 0, PER_EPOCH)
    assert len(set(epoch)) == len(epoch) == PER_EPOCH * program.SIZE
    for host in hosts:
        assert rows(host, 0, PER_EPOCH) != rows(host, PER_EPOCH, 2 * PER_EPOCH)  # another order
        after = host["batches"][2:] if library != "torch" else host["batches"][-PER_EPOCH + 2 :]
        assert host["resumed"] == after
    # Grain and tf.data divide before they shuffle, so a row stays with its process; PyTorch's sampler does not.
    assert (not set(rows(first)) & set(rows(second))) == (library != "torch")
    if library == "grain":
        assert all("does not match" in host["refused"] for host in hosts)


def test_with_pytorch_a_batch_has_the_same_rows_for_any_number_of_processes(run):
    whole = [sorted(batch) for batch in run("torch", 1)[0]["batches"]]
    parts = run("torch", 2)
    assert [sorted(one + other) for one, other in zip(*(host["batches"] for host in parts))] == whole
