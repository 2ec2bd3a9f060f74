"""Checkpoints from which training goes on as if it had never stopped; weights in one file.

:class:`Checkpoints` keeps the last few states of a training run, through Orbax: each
device's part is written where it lives, while training goes on. :func:`save_weights` writes
the weights alone, under the names of their paths, to a file that other libraries read, too.

A save appears as a whole or not at all, whenever the process dies. Before the first array
is read, what was saved is compared with what is wanted, and one error names everything that
differs.

Both need a package more: ``pip install orbax-checkpoint safetensors``.
"""

import contextlib
import functools
import importlib
import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, show
from mlax_tutorial.nn.kinds import integer
from mlax_tutorial.nn.numeric import is_array, is_key
from mlax_tutorial.optim.paths import flatten, refuse_layers
from mlax_tutorial.trees import mismatch, strangers


class CheckpointError(ValueError):
    """What is to be saved cannot be, or what was saved is not what is wanted."""


class Checkpoints:
    """The last few states of a training run, in a directory.

    A state is any pytree of arrays: weights, the optimizer's state, typed random keys. They
    come back bit for bit, on the same devices or on others: the target says where each array
    is to live, and only what a device needs is read for it. In several processes, all make
    the same calls, on a file system that they share; an array that lives in one process must
    be equal in all, and that of the first is saved.

    Args:
      directory: made by the first save if it does not exist; for this run alone.
      keep: how many states to keep, at least 1. Older ones are deleted once a newer one is
        complete.

    Raises:
      CheckpointError: on arguments that are something else, and as the methods say.
      ImportError: if Orbax is not installed.

    Example:
      >>> import jax, jax.numpy as jnp, tempfile
      >>> from mlax_tutorial import saving
      >>> state = {"weights": jnp.ones(3), "key": jax.random.key(0)}
      >>> target = jax.eval_shape(lambda: state)
      >>> directory = tempfile.TemporaryDirectory()
      >>> with directory, saving.Checkpoints(directory.name) as checkpoints:
      ...     checkpoints.save(1, state)
      ...     checkpoints.latest_step(), checkpoints.restore(target)["weights"]
      (1, Array([1., 1., 1.], dtype=float32))
    """

    def __init__(self, directory: str | os.PathLike, keep: int = 3):
        self._keep = checked("Checkpoints: keep", integer, keep, CheckpointError)
        if not isinstance(directory, (str, os.PathLike)):
            raise CheckpointError(f"Checkpoints: directory must be a path, got {show(directory)}.")
        directory = os.fspath(directory)
        self.directory = directory if "://" in directory else os.path.abspath(directory)
        if os.path.exists(self.directory) and not os.path.isdir(self.directory):
            raise CheckpointError(f"Checkpoints: {self.directory} is a file: name a directory.")
        self._orbax = _import("orbax.checkpoint", "Checkpoints")
        self._manager, self._writes, self._closed = None, False, False

    def save(self, step: int, state: Any) -> None:
        """Save the state after ``step`` steps.

        It returns when the arrays may be donated; writing goes on behind.

        Args:
          step: of at least 0, and after the last that was saved.
          state: a pytree of arrays.

        Raises:
          CheckpointError: if the state holds something else than arrays, or NumPy's of 64
            bits where JAX has none, or the step is not a later one.
          Exception: what broke the save before, if something did.
        """
        manager, orbax = self._open(writes=True), self._orbax
        step = checked("save: step", _whole, step, CheckpointError)
        last = manager.latest_step()
        if last is not None and step <= last:
            got = f"{last}, got {step}: go on from there, or take another directory"
            raise CheckpointError(f"save: step must come after the last that was saved, {got}.")
        leaves = _named("save", state)
        outline = {name: {"shape": [*leaf.shape], "dtype": str(leaf.dtype)} for name, leaf in leaves.items()}
        parts = {"outline": orbax.args.JsonSave(outline)}
        # Orbax writes no array of size 0, and the outline tells all about it.
        arrays = {name: _portable(leaf) for name, leaf in leaves.items() if leaf.size}
        if arrays:
            parts["state"] = orbax.args.PyTreeSave(arrays)
        manager.save(step, args=orbax.args.Composite(**parts))

    def latest_step(self) -> int | None:
        """The last step that is saved as a whole, or ``None``; waits for one under way."""
        manager = self._read()
        return None if manager is None else manager.latest_step()

    def restore(self, target: Any, step: int | None = None, *, partial: bool = False) -> Any:
        """Read a state.

        Args:
          target: the state to be, of ``jax.ShapeDtypeStruct``, from ``jax.eval_shape`` or
            ``sharding.abstract``. Each array is put where its ``sharding`` says; without
            one, on the default device of each process.
          step: which; by default the last.
          partial: read what the target names, and leave the rest of what was saved alone: the weights without the state of
            the optimizer, say. Paths must still be those that were saved: of ``(trainables, state)``, the weights are
            ``(target,)``.

        Returns:
          The state, a pytree of arrays with the structure of the target.

        Raises:
          CheckpointError: if there is no such step, or it differs from the target: with the
            paths of all arrays that are missing, unexpected, or of another shape or dtype.
            Nothing was read then.
        """
        manager, orbax = self._read(), self._orbax
        steps = [] if manager is None else sorted(manager.all_steps())
        if not steps:
            raise CheckpointError(f"restore: {self.directory} holds no checkpoint: look elsewhere.")
        step = steps[-1] if step is None else checked("restore: step", _whole, step, CheckpointError)
        if step not in steps:
            raise CheckpointError(f"restore: {self.directory} holds no step {step}, but {steps}.")
        wanted = _named("restore", target)
        try:
            read = orbax.args.Composite(outline=orbax.args.JsonRestore())
            outline = manager.restore(step, args=read)["outline"]
        except (FileNotFoundError, KeyError) as error:
            why = f"its deletion was broken off, or something else than Checkpoints saved it. Choose another of {steps}"
            raise CheckpointError(f"restore: step {step} of {self.directory} is not whole: {why}.") from error
        if partial:
            outline = {name: outline[name] for name in wanted if name in outline}
        saved = {name: _Outline(tuple(found["shape"]), found["dtype"]) for name, found in outline.items()}
        _compare(f"restore: step {step} of {self.directory}", wanted, saved)
        places = {name: _data_of(leaf) for name, leaf in wanted.items() if leaf.size}
        found = {}
        if places:
            how = {name: self._how(leaf) for name, leaf in places.items()}
            read = orbax.args.PyTreeRestore(item=places, restore_args=how, partial_restore=partial)
            found = manager.restore(step, args=orbax.args.Composite(state=read))["state"]
        leaves = [_back(found.get(name), leaf) for name, leaf in wanted.items()]
        return jax.tree.unflatten(jax.tree.structure(target), leaves)

    def wait(self) -> None:
        """Wait until all that was given to :meth:`save` is saved; raise what broke it."""
        self._read()

    def close(self) -> None:
        """Wait, and free what was in use. The end of a ``with`` block does so, too."""
        if self._manager is not None:
            manager, self._manager = self._manager, None
            manager.close()
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __repr__(self):
        return f"Checkpoints({self.directory!r}, keep={self._keep})"

    def _read(self):
        """Orbax' manager when all is written; ``None`` where there is nothing to read, and no directory is made for that."""
        if self._manager is None and "://" not in self.directory and not os.path.isdir(self.directory):
            self._check_open()
            return None
        manager = self._open()
        manager.wait_until_finished()
        if not self._writes:  # another process may have saved since
            manager.reload()
        return manager

    def _check_open(self):
        if self._closed:
            raise CheckpointError("Checkpoints: closed: make another, or stay in the with block.")

    def _open(self, writes=False):
        """Orbax' manager. Only one that writes removes what a killed process left: a mere
        reader, such as an evaluation beside the training, would take what is being written."""
        self._check_open()
        if self._manager is None or (writes and not self._writes):
            if self._manager is not None:
                self._manager.close()
            options = {"max_to_keep": self._keep, "cleanup_tmp_directories": writes, "create": True}
            options = self._orbax.CheckpointManagerOptions(**options)
            self._manager = self._orbax.CheckpointManager(self.directory, options=options)
            self._writes = writes
        return self._manager

    def _how(self, leaf):
        """Tell Orbax where an array is to live."""
        if leaf.sharding is None:
            return self._orbax.RestoreArgs(restore_type=np.ndarray)
        return self._orbax.ArrayRestoreArgs(sharding=leaf.sharding, global_shape=leaf.shape)


def save_weights(path: str | os.PathLike, trainables: Any) -> None:
    """Save the weights alone as ``safetensors``, a file that other libraries read, too.

    The names are the parts of each path, joined by dots: ``[3]['kernel']`` is saved as
    ``3.kernel`` (a dot within a part as ``\\.``). The file is written beside, and renamed
    when it is complete. All weights must fit into the memory of the host;
    :class:`Checkpoints` takes larger ones.

    Args:
      path: of the file; one that exists is replaced.
      trainables: a pytree of real or boolean arrays, none of which is spread over several
        processes.

    Raises:
      CheckpointError: with all leaves that cannot be saved.
      FileNotFoundError: if the file's directory does not exist.
      ImportError: if safetensors is not installed.

    Example:
      >>> import jax, jax.numpy as jnp, tempfile
      >>> from mlax_tutorial import nn, saving
      >>> model, x = nn.Series(nn.Linear(2), nn.Bias()), jnp.ones((1, 3))
      >>> trainables, _ = model.init(jax.random.key(0), x)
      >>> target, _ = jax.eval_shape(model.init, jax.random.key(0), x)
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     path = f"{directory}/weights.safetensors"
      ...     saving.save_weights(path, trainables)
      ...     weights = saving.load_weights(path, target)
      >>> bool(jnp.all(weights[0]["kernel"] == trainables[0]["kernel"]))
      True
    """
    numpy = _import("safetensors.numpy", "save_weights")
    leaves = _named("save_weights", trainables)
    problems = []
    for keystr, leaf in leaves.items():
        if str(leaf.dtype) not in _CODES.values():
            known = ", ".join(_CODES.values())
            problems.append(f"{keystr} is {describe(leaf)}: convert it to one of {known}")
        elif isinstance(leaf, jax.Array) and not (leaf.is_fully_addressable or leaf.is_fully_replicated):
            problems.append(f"{keystr} is spread over several processes: save it with Checkpoints")
        elif keystr == "['__metadata__']":
            problems.append(f"{keystr} has a name that safetensors keeps for itself: change it")
    if problems:
        raise CheckpointError("\n  ".join(["save_weights: nothing was saved:", *problems]))
    # In C order: safetensors writes the bytes as they lie.
    names = _names(trainables)
    arrays = {name: np.asarray(leaf, order="C") for name, leaf in zip(names, leaves.values())}
    path = Path(path)
    if not path.parent.is_dir():
        message = f"save_weights: there is no directory {path.parent}: create it, or correct the path."
        raise FileNotFoundError(message)
    partial = path.with_name(f".{path.name}.{jax.process_index()}.partial")
    try:
        partial.touch()
        mode = (path if path.exists() else partial).stat().st_mode
        numpy.save_file(arrays, partial)
        partial.chmod(mode & 0o777)  # safetensors lets none but the owner read
        _flush(partial)
        os.replace(partial, path)
        _flush(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def load_weights(path: str | os.PathLike, target: Any) -> Any:
    """Load what :func:`save_weights` saved, or weights of other origin under the same names.

    Args:
      path: of the file.
      target: the weights to be, of ``jax.ShapeDtypeStruct``, from ``jax.eval_shape``, or
        arrays. With a ``sharding``, each device reads its part.

    Returns:
      The weights, a pytree of arrays with the structure of the target.

    Raises:
      CheckpointError: if the file is none of safetensors, or differs from the target: with
        all weights that are missing, unexpected, or of another shape or dtype. Nothing was
        read then.
      FileNotFoundError: if there is no file.
      ImportError: if safetensors is not installed.

    Example: into a model that was only outlined.
      >>> import jax, jax.numpy as jnp, tempfile
      >>> from mlax_tutorial import saving
      >>> target = {"kernel": jax.ShapeDtypeStruct((2, 3), jnp.float32)}
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     path = f"{directory}/weights.safetensors"
      ...     saving.save_weights(path, {"kernel": jnp.ones((2, 3))})
      ...     print(saving.load_weights(path, target)["kernel"].sum())
      6.0
    """
    safetensors = _import("safetensors", "load_weights")
    wanted, names = _named("load_weights", target), _names(target)
    try:
        file = safetensors.safe_open(path, framework="numpy")
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"load_weights: {path} is no whole file of safetensors: {error}.") from None
    with file:
        labels = {name: f"{path} ({name!r})" for name, path in zip(names, wanted)}
        found = {}
        for name in file.keys():
            tensor = file.get_slice(name)
            dtype = _CODES.get(tensor.get_dtype(), tensor.get_dtype())
            found[labels.get(name, name)] = _Outline(tuple(tensor.get_shape()), dtype)
        _compare(f"load_weights: {path}", dict(zip(labels.values(), wanted.values())), found)
        leaves = [_place(file, name, _data_of(leaf)) for name, leaf in zip(names, wanted.values())]
    return jax.tree.unflatten(jax.tree.structure(target), leaves)


# What safetensors calls the dtypes that its NumPy side reads and writes.
_CODES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
_WIDE = "float64", "int64", "uint64", "complex128"


_whole = functools.partial(integer, minimum=0)


def _import(module, name):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = "safetensors" if module.startswith("safetensors") else "orbax-checkpoint"
        raise ImportError(f"{name} needs {package}: pip install {package}.", name=module) from error


def _named(name, tree):
    """The leaves by path; refuse what is no array."""
    refuse_layers(name, tree, CheckpointError)
    paths, leaves, _ = flatten(tree)
    found = [(path or "it", _unfit(name, leaf)) for path, leaf in zip(paths, leaves)]
    found += [(path, "the path of two leaves") for path, times in Counter(paths).items() if times > 1]
    if problems := [f"{path} is {problem}" for path, problem in found if problem]:
        raise CheckpointError("\n  ".join([f"{name}: every leaf must be an array:", *problems]))
    return dict(zip(paths, leaves))


def _unfit(name, leaf):
    """Why a leaf cannot be saved or read, and the mend; nothing, if it can."""
    if not is_array(leaf):
        return f"{show(leaf)}: wrap it in jnp.asarray, or keep it elsewhere"
    if name.startswith("save") and isinstance(leaf, (jax.ShapeDtypeStruct, jax.core.Tracer)):
        return f"a {type(leaf).__name__}, without numbers: give the arrays themselves"
    if name != "save_weights" and str(leaf.dtype) in _WIDE and not jax.config.jax_enable_x64:
        switch = 'jax.config.update("jax_enable_x64", True)'
        return f"{describe(leaf)}, which JAX would narrow: convert it, or first call {switch}"
    return ""


def _names(tree):
    """The parts of each path, joined by dots. Within a part, dots and backslashes are escaped,
    so that no two paths of a tree share a name."""
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(tree)]
    return [".".join(map(_part, path)) for path in paths]


def _part(key):
    for attribute in ("key", "idx", "name"):  # of a dict, of a sequence, of a named tuple
        key = getattr(key, attribute, key)
    return str(key).replace("\\", "\\\\").replace(".", "\\.")


class _Outline(NamedTuple):
    """What is known of an array before it is read."""

    shape: tuple[int, ...]
    dtype: str


def _compare(where, wanted, found):
    """Refuse what was saved if it is not what is wanted, and say all that differs."""
    lines = strangers(wanted, found)
    for path in wanted:
        if path in found:
            lines += mismatch(path, wanted[path], found[path], "was saved as")
    kinds = {line.split(":")[0] for line in lines}
    mends = {
        "make the target of the model and the optimizer that were saved": {"missing", "unexpected"},
        "the sizes must be those of the saved model": {"shape", "shape and dtype"},
        "restore in the dtype in which it was saved, and cast then": {"dtype", "shape and dtype"},
    }
    if lines:
        head = f"{where} does not fit the target, and nothing was read:"
        mend = "; ".join(mend for mend, those in mends.items() if kinds & those)
        raise CheckpointError("\n  ".join([head, *lines]) + f"\nMend: {mend}.")


def _portable(leaf):
    """What is written: the bits of typed keys, and what only this process has as NumPy's array."""
    leaf = jax.random.key_data(leaf) if is_key(leaf) else leaf
    if not isinstance(leaf, jax.Array):
        return np.asarray(leaf)  # Orbax does not take each of NumPy's scalars
    return np.asarray(leaf) if jax.process_count() > 1 and leaf.is_fully_addressable else leaf


def _data_of(leaf):
    """The shape, the dtype and the sharding of what is to be read for a leaf of the target."""
    sharding = getattr(leaf, "sharding", None)
    if isinstance(leaf, jax.Array) and not leaf.committed:
        sharding = None  # it lies on the default device by chance, and need not stay there
    if is_key(leaf):
        leaf = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(leaf.shape, leaf.dtype))
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)


def _back(data, leaf):
    """The array of the target, from what was read."""
    place = _data_of(leaf)
    if data is None:  # of size 0
        data = jnp.zeros(place.shape, place.dtype, device=place.sharding)
    data = jnp.asarray(data)
    if not is_key(leaf):
        return data
    found, outline = [], jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    jax.eval_shape(lambda key: found.append(jax.random.key_impl(key)), outline)
    return jax.random.wrap_key_data(data, impl=found[0])


def _place(file, name, leaf):
    """One weight from the file; each device reads its part."""
    if leaf.sharding is None or not leaf.size:
        return jnp.asarray(file.get_tensor(name), device=leaf.sharding)
    parts = {}  # devices that hold the same part share what was read

    def part(index):
        if index not in parts:
            parts[index] = file.get_slice(name)[index] if index else file.get_tensor(name)
        return parts[index]

    return jax.make_array_from_callback(leaf.shape, leaf.sharding, part)


def _flush(path):
    """Have the system write a file, or the names in a directory, to the disk."""
    with contextlib.suppress(PermissionError):  # no directories on Windows
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
