"""PyTorch among the contenders: in a process and an environment of its own, and only if that is installed."""

import pathlib
import pickle
import subprocess

from benchmarks import contest

ROOT = pathlib.Path(__file__).parent.parent
PYTHON = ROOT / ".venv-torch" / "bin" / "python"
WORKER = ROOT / "benchmarks" / "torch" / "worker.py"
MISSING = "PyTorch is not installed: `make .venv-torch/.made` does it."


class Worker:
    """The process: a request in, an answer out, both pickled. It waits, and takes no time, while others run."""

    def __init__(self, command=None):
        command = command or [str(PYTHON), str(WORKER)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, method: str, *arguments):
        """Calls a function of `torch/worker.py`."""
        pickle.dump((method, arguments), self.process.stdin)
        self.process.stdin.flush()
        try:
            answer, error = pickle.load(self.process.stdout)
        except EOFError:
            raise RuntimeError(f"PyTorch: {method}: the process ended, {self.process.wait()}") from None
        if error:
            raise RuntimeError(f"PyTorch: {method}: {error}")
        return answer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class PyTorch:
    """One contender: eager, or compiled."""

    def __init__(self, worker: Worker, compiled: bool):
        self.worker, self.compiled = worker, compiled

    def begin(self, workload, weights, batch, learning_rate, draws=True):
        """As `contest.begin`."""
        return self.worker.ask("begin", workload.name, self.compiled, draws, weights, batch, learning_rate)

    def count_traces(self, workload, weights, batch):
        """How many graphs five learning rates have compiled; none if it is eager."""
        rates = contest.LEARNING_RATES
        return self.worker.ask("count_graphs", workload.name, self.compiled, weights, batch, rates)

    def clock(self):
        """As `contest.clock`, for the model of the last `begin`; the worker's own clock is read."""
        calls = self.worker.ask("calibrate", self.compiled, contest.GROUP_SECONDS)
        return lambda: self.worker.ask("seconds", self.compiled, calls)


def contenders(worker: Worker, workload) -> dict[str, PyTorch]:
    """Those of a workload; one that consists of an optimizer alone has nothing to compile."""
    found = {"PyTorch": PyTorch(worker, False)}
    return found if workload.name == "adam" else found | {"PyTorch, compiled": PyTorch(worker, True)}
