"""The programs that a notebook's cells jit compile for a TPU: on one chip and on eight.

They are found by running it with `jax.jit` recorded, in a kernel that rehearses other devices' rounding, too (`tools.rehearse`),
so that a chapter that trains need not run a third time for that.
"""

import json

from tools import rehearse
from tools.notebooks.places import Book

BOOK = Book()


def compiled(notebook, limit):
    """Runs a notebook, compiles what it jitted; yields, for each function, what `recording.compile_one` returns. A cell may
    take `limit(cell)` seconds.

    What is traced does not depend on how products are rounded: that is decided when a program is lowered for the CPU.
    """
    with rehearse.kernel_for(BOOK, notebook) as running:
        running.ask("import tests.tpu.recording as _recording\n_recording.start()")
        running.run_all(limit)
        count = int(running.ask("print(len(_recording.programs))"))
        assert (problem := rehearse.lost(running)) is None, problem
        for number in range(count):
            said = running.ask(
                f"import json as _json; print(_json.dumps(_recording.compile_one({number})))", timeout=600
            )
            (line,) = [line for line in said.splitlines() if line.startswith("{")]  # the rest are warnings
            yield json.loads(line)
