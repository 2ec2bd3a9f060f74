"""A log of a training, which nobody waits for."""

import json
import os
from pathlib import Path
from typing import Any, Self

import jax
import numpy as np

from mlax_tutorial._beside import written_beside


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
        lines = self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []
        kept = [
            line
            for line in lines
            if line.endswith(b"\n") and (after is None or json.loads(line)["step"] <= after)
        ]
        if kept:
            self.step = json.loads(kept[-1])["step"]
        self._file = None
        if jax.process_index() == 0:
            if kept != lines:
                with written_beside(self.path) as shorter:
                    shorter.write_bytes(b"".join(kept))
            self._file = open(self.path, "ab", buffering=0)

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Take the values of a step, arrays or trees of arrays by name; write those of the step before."""
        late, self._late, self.step = self._late, (step, values), step
        self._write(late)

    def flush(self) -> None:
        """Write what is still to be written; waits for it."""
        late, self._late = self._late, None
        self._write(late)

    def close(self) -> None:
        """Flush, and close the file. The end of a ``with`` block does so, too, also after an error."""
        self.flush()
        if self._file is not None:
            self._file.close()

    def _write(self, late):
        if late is not None and self._file is not None:
            step, values = late
            plain = jax.tree.map(_plain, jax.device_get(values))
            self._file.write((json.dumps({"step": step, **plain}, allow_nan=False) + "\n").encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()


def _plain(leaf):
    array = np.asarray(leaf)
    if array.dtype.kind in "biuUS" or np.isfinite(array).all():
        return array.tolist()
    return np.where(np.isfinite(array), array.astype(object), None).tolist()
