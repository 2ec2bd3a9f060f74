"""The book's exercises, a folder per chapter and a file per exercise: ``from mlax_tutorial.exercises import arrays as ex``.

``ex.NAME.check(answer)`` grades an answer, ``ex.NAME.hint()`` gives one more hint at each call, and
``ex.NAME.solution()`` shows a solution. How to write one stands at the top of :mod:`mlax_tutorial.checking`.
"""

import importlib.util
import threading

# The first check that draws random inputs needs hypothesis, which takes a third of a second to import: while the reader writes.
if importlib.util.find_spec("hypothesis"):
    threading.Thread(target=lambda: importlib.import_module("hypothesis"), daemon=True).start()
