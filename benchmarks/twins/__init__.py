"""Twins: a network of an example once more in PyTorch, with the same initial weights and the same batches.

    .venv/bin/python -m benchmarks.twins names            # compare, and print
    .venv/bin/python -m benchmarks.twins names --record   # and write the record that the chapter shows

A twin is a module here with ``ABOUT``, a line, and ``run(seed)``, which returns ``(differences, ours, theirs)``: how far the loss and the
gradients of the first step lie apart, and for either side ``losses`` and ``seconds`` of each step and an ``accuracy``. PyTorch's half is
a script beside it, run in `.venv-torch` (``make .venv-torch/.made``).
"""
