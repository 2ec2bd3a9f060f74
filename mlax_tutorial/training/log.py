"""A log of a training, which nobody waits for."""

import functools
import json
import math
import os
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np

from mlax_tutorial._beside import written_beside
from mlax_tutorial.nn.arrays import is_array, is_real
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, optional
from mlax_tutorial.nn.rules import integer

_from_0 = functools.partial(integer, minimum=0)


class Log:
    """A file with a line of JSON for each step: ``{"step": 7, "loss": 0.25}``.

    Values may still be on their way on the device. Each line is therefore written when the next one comes, one step late, or by
    :meth:`flush`. So the host prepares a step while the device computes another, and is never further ahead than that. A
    line is written at once, as a whole; of a process that is killed, the lines before the last step or two are there. What is not
    finite is ``null``, since JSON knows neither NaN nor infinity.

    A log that exists is continued. In several processes, all make the same calls, and the first writes.

    Args:
      path: of the file; its directory must exist.
      after: a training that is resumed from its checkpoint of this step does later ones again: drop their lines. By default
        all lines stay, but for a last one that is not whole.

    Raises:
      ValueError: if the file is there and is no log, or ``after`` is no integer of at least 0.

    Example:
      >>> import jax.numpy as jnp, tempfile
      >>> from mlax_tutorial import training
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     path = f"{directory}/log.jsonl"
      ...     with training.Log(path) as log:
      ...         for step in (1, 2, 3):
      ...             log.write(step, {"loss": jnp.float32(1 / step)})
      ...     with training.Log(path, after=1) as log:
      ...         log.write(log.step + 1, {"loss": jnp.float32(0.25)})
      ...     print(open(path).read(), end="")
      {"step": 1, "loss": 1.0}
      {"step": 2, "loss": 0.25}
    """

    def __init__(self, path: str | os.PathLike, after: int | None = None):
        self.path, self._late = Path(path), None
        self.step = 0  # the last one that was given to it
        after = checked("Log: after", optional(_from_0), after)
        lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        *whole, torn = lines if lines and not lines[-1].endswith(b"\n") else [*lines, b""]
        if torn[: len(_BEGIN)] != _BEGIN[: len(torn)]:  # another file, which would lose it
            self._refuse(len(lines), torn)
        kept = [line for i, line in enumerate(whole) if after is None or self._step_of(i + 1, line) <= after]
        if kept:
            self.step = self._step_of(len(kept), kept[-1])
        self._file = None
        if jax.process_index() == 0:
            if kept != lines:
                with written_beside(self.path) as shorter:
                    shorter.write_bytes(b"".join(kept))
            self._file = open(self.path, "ab", buffering=0)

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Take the values of a step, arrays or trees of arrays by name; write those of the step before.

        What is on the host is copied, and may be changed at once. What is on a device is kept until it is written: do not donate
        it to the next step.

        Raises:
          ValueError: if ``step`` is no integer of at least 0, ``values`` is no dict, has a ``"step"`` itself or holds what is
            neither number nor text, the log is closed, or arrays of the step before were donated.
        """
        step = checked("Log.write: step", _from_0, step)
        if not isinstance(values, dict) or "step" in values:
            wanted = 'a dict of values by name, none of them "step", which is an argument of its own'
            raise ValueError(f"Log.write: values must be {wanted}, got {describe(values)}.")
        values = _kept(values, "")
        if self._file is not None and self._file.closed:
            raise ValueError(
                f"Log.write: {self.path} is closed, got step {step}: make a new Log, which goes on with it."
            )
        late, self.step = self._late, step
        self._late = None if self._file is None else (step, values)  # the other processes need not keep them
        self._write(late)

    def flush(self) -> None:
        """Write what is still to be written; waits for it."""
        late, self._late = self._late, None
        self._write(late)

    def close(self) -> None:
        """Flush, and close the file. The end of a ``with`` block does so, too, also after an error."""
        try:
            self.flush()
        finally:
            if self._file is not None:
                self._file.close()

    def _write(self, late):
        if late is not None:
            step, values = late
            if any(isinstance(leaf, jax.Array) and leaf.is_deleted() for leaf in jax.tree.leaves(values)):
                mend = "they are written one step late, so give the log copies, by jnp.copy, or call flush"
                raise ValueError(f"Log: arrays of step {step} were donated before they were written: {mend}.")
            plain = jax.tree.map(_plain, jax.device_get(values))
            self._file.write((json.dumps({"step": step, **plain}, allow_nan=False) + "\n").encode())

    def _step_of(self, number, line):
        try:
            found = json.loads(line)["step"]
        except (ValueError, TypeError, KeyError):
            found = None
        return found if type(found) is int else self._refuse(number, line)

    def _refuse(self, number, line):
        wanted = 'JSON with an integer "step", as a Log writes it'
        got = f"{line[:60]!r}{'…' if len(line) > 60 else ''}"
        raise ValueError(
            f"Log: line {number} of {self.path} must be {wanted}, got {got}: is this another file?"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()


_BEGIN = b'{"step":'


def _kept(value, place):
    """The same, checked, and independent of what happens on the host from now on."""
    if isinstance(value, dict):
        return {str(name): _kept(item, f"{place}[{name!r}]") for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_kept(item, f"{place}[{i}]") for i, item in enumerate(value)]
    if value is None or isinstance(value, (str, bool, int, float, np.str_)):
        return value
    text = isinstance(value, np.ndarray) and value.dtype.kind == "U"
    if not text and not (is_array(value) and (is_real(value.dtype) or value.dtype == bool)):
        wanted = "numbers, Booleans or text, alone, in arrays, dicts, lists or tuples"
        raise ValueError(f"Log.write: values{place} must be {wanted}, got {describe(value)}.")
    return value if isinstance(value, jax.Array) else np.array(value)


def _plain(leaf):
    if isinstance(leaf, (str, bool, int)):
        return leaf
    if isinstance(leaf, float):
        return leaf if math.isfinite(leaf) else None
    array = np.asarray(leaf)
    if array.dtype.kind in "biuU" or np.isfinite(array).all():
        return array.tolist()
    return np.where(np.isfinite(array), array.astype(object), None).tolist()
