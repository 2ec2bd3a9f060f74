"""What all twins do alike: hand PyTorch's side what it needs, and compare the first steps of both."""

import subprocess
import tempfile
from pathlib import Path

import jax
import numpy as np

from benchmarks.pytorch import MISSING, PYTHON


def by_path(tree):
    """The leaves of a tree as NumPy arrays, by their paths."""
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def run_torch(script, given, weights):
    """What PyTorch's script makes of arrays and of our initial weights, both by name, in a process of its own environment.

    Raises:
      RuntimeError: if PyTorch is not installed.
    """
    if not PYTHON.exists():
        raise RuntimeError(MISSING)
    given = given | {f"weights.{name}": array for name, array in weights.items()}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **given)
        subprocess.run([PYTHON, script, source, target], check=True)
        return dict(np.load(target))


def differences(loss, their_loss, gradients, theirs):
    """How far the losses of the first step and each of its gradients, by name, are apart."""
    found = {"loss": abs(float(loss) - float(their_loss))}
    for name, gradient in gradients.items():
        found[name] = float(np.max(abs(gradient - theirs[f"gradients.{name}"])))
    return found
