"""The chapters that train, each with the programs that it jits. They are compiled for a TPU on the newest JAX here, and on the
oldest where the chapter is opened as on Colab (`tests/colab`): the kernel that runs a chapter there finds its programs, too.
(What a module of the package jits when it is imported is not among them there; `test_library.py` compiles the library.)
"""

import re

# It counts the Python calls behind a call of `jit`, which a recorder adds to. Its programs are those of the chapter on layers.
TAKES_JIT_APART = {"objects"}


def trains(name: str, notebook) -> bool:
    """A chapter trains if it uses an optimizer. (Those of Part I take `jit` itself apart, which a recorder disturbs.)"""
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return name not in TAKES_JIT_APART and any(re.search(r"\b(optax|optim)\b", source) for source in code)
