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
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import meshes
from mlax_tutorial._beside import written_beside
from mlax_tutorial.nn.arrays import is_array, is_key, key_bits
from mlax_tutorial.nn.errors import describe
from mlax_tutorial.nn.hyperparameters import checked, show
from mlax_tutorial.nn.paths import flatten, refuse_layers, some
from mlax_tutorial.nn.rules import integer
from mlax_tutorial.trees import mismatch, strangers

# Of a name of ours: a name in a file, or names and a function of what stands there.
Rename = Callable[[str], str | tuple] | Mapping[str, str | tuple]


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


def save_weights(
    path: str | os.PathLike,
    trainables: Any,
    *,
    rename: Rename | None = None,
    like: dict[str, Any] | None = None,
) -> None:
    """Save the weights alone as ``safetensors``, a file that other libraries read, too.

    The names are the parts of each path, joined by dots: ``[3]['kernel']`` is saved as
    ``3.kernel`` (a dot within a part as ``\\.``). The file is written beside, and renamed
    when it is complete. All weights must fit into the memory of the host;
    :class:`Checkpoints` takes larger ones.

    Args:
      path: of the file; one that exists is replaced.
      trainables: a pytree of arrays of numbers or Booleans (of complex numbers complex64), none of which is spread over several
        processes.
      rename: under which names, as for :func:`load_weights`, so that one map serves both ways.
      like: where ``rename`` has functions, the arrays of a file like the one to be, or their ``jax.ShapeDtypeStruct``, by name,
        as from :func:`read_tensors`. Such a function puts each number that it is given into one place, as transposing,
        slicing and stacking do: so it is linear, and its transpose, ``jax.linear_transpose``, puts the numbers back.

    Raises:
      CheckpointError: with all leaves that cannot be saved; if ``rename`` gives two weights one place, or leaves a place empty; with
        all weights of another shape or dtype than ``rename`` makes of ``like``; if a function does more than to move numbers, so
        that what it saves would not come back.
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
    _import("safetensors.numpy", "save_weights")
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
    _write(
        "save_weights",
        path,
        _renamed(_names(trainables), [*leaves.values()], rename, {} if like is None else like),
    )


def write_tensors(path: str | os.PathLike, tensors: dict[str, Any]) -> None:
    """Write arrays under names of your choice, as ``safetensors``: the names by which another library knows its weights.

    The file is written beside, and renamed when it is complete.

    Args:
      path: of the file; one that exists is replaced.
      tensors: arrays by name.

    Raises:
      FileNotFoundError: if the file's directory does not exist.
      ImportError: if safetensors is not installed.

    Example:
      >>> import jax.numpy as jnp, tempfile
      >>> from mlax_tutorial import saving
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     path = f"{directory}/weights.safetensors"
      ...     saving.write_tensors(path, {"fc.weight": jnp.ones((2, 3))})
      ...     {name: array.shape for name, array in saving.read_tensors(path).items()}
      {'fc.weight': (2, 3)}
    """
    _write("write_tensors", path, tensors)


def read_tensors(path: str | os.PathLike) -> dict[str, np.ndarray]:
    """Read all arrays of a file of ``safetensors``, whoever wrote it, by their names in it.

    They come as NumPy arrays, whole, into the memory of the host, in the dtype in which they were saved.
    :func:`load_weights` reads only what a model needs, and puts it where it is to live.

    Raises:
      CheckpointError: if the file is none of safetensors.
      FileNotFoundError: if there is no file.
      ImportError: if safetensors is not installed.

    Example:
      >>> import jax.numpy as jnp, tempfile
      >>> from mlax_tutorial import saving
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     path = f"{directory}/weights.safetensors"
      ...     saving.save_weights(path, ({"kernel": jnp.ones((2, 3))}, {"bias": jnp.zeros(3)}))
      ...     sorted(saving.read_tensors(path))
      ['0.kernel', '1.bias']
    """
    with _file("read_tensors", path) as file:
        return {name: file.read(name) for name in file.outlines}


def load_weights(
    path: str | os.PathLike, target: Any, *, rename: Rename | None = None, partial: bool = False
) -> Any:
    """Load what :func:`save_weights` saved, or weights of other origin.

    Args:
      path: of the file.
      target: the weights to be, of ``jax.ShapeDtypeStruct``, from ``jax.eval_shape``, or
        arrays. With a ``sharding``, each device reads its part.
      rename: where each weight stands in the file: a function of the name under which :func:`save_weights` would save
        it, ``3.kernel``, or a dict of such names, in which those that stay the same may be left out. Either gives

        * a name, ``"fc.weight"``;
        * one or more names, and at the end a function of those arrays that JAX can trace: ``("fc.weight", jnp.transpose)``
          for a kernel that lies transposed there, ``("qkv", lambda a: a[:, :64])`` for a part,
          ``("h.0.weight", "h.1.weight", lambda *layers: jnp.stack(layers))`` for the weights of an ``nn.Stack``. The
          function gets whole arrays, on the host first.
      partial: the file may hold more than the target names: the rest is left alone. What the target names must be there,
        with or without it.

    Returns:
      The weights, a pytree of arrays with the structure of the target.

    Raises:
      CheckpointError: if the file is none of safetensors, ``rename`` gives something else, or the file differs from the
        target: with all weights that are missing, unexpected, or of another shape or dtype.
        Nothing was read then.
      FileNotFoundError: if there is no file.
      ImportError: if safetensors is not installed.

    Example: weights of PyTorch, into a model that was only outlined.
      >>> import jax, jax.numpy as jnp, tempfile
      >>> from mlax_tutorial import saving
      >>> target = {"kernel": jax.ShapeDtypeStruct((2, 3), jnp.float32)}
      >>> with tempfile.TemporaryDirectory() as directory:
      ...     path = f"{directory}/weights.safetensors"
      ...     saving.write_tensors(path, {"fc.weight": jnp.ones((3, 2)), "head.weight": jnp.ones((5, 3))})
      ...     rename = {"kernel": ("fc.weight", jnp.transpose)}
      ...     print(saving.load_weights(path, target, rename=rename, partial=True)["kernel"].sum())
      6.0
    """
    target = meshes.accept(target)
    wanted, names = _named("load_weights", target), _names(target)
    sources = _sources("load_weights", rename, names)
    with _file("load_weights", path) as file:
        outlines = file.outlines
        labels = [f"{path} ({_show(source)!r})" for path, source in zip(wanted, sources)]
        found = {label: _made("load_weights", source, outlines) for label, source in zip(labels, sources)}
        found = {label: outline for label, outline in found.items() if outline}
        used = {name for source in sources for name in source.names}
        if not partial:
            found |= {name: outline for name, outline in outlines.items() if name not in used}
        hint = [f"the file has {some([*outlines])}"] if partial and not used <= set(outlines) else []
        _compare(f"load_weights: {path}", dict(zip(labels, wanted.values())), found, hint)
        with meshes.over_auto():  # where the functions of rename compute
            leaves = [_place(file, source, _data_of(leaf)) for source, leaf in zip(sources, wanted.values())]
    return jax.tree.unflatten(jax.tree.structure(target), leaves)


def _renamed(names, leaves, rename, like):
    """The arrays of a file, by name, from leaves under our names."""
    sources = _sources("save_weights", rename, names)
    if all(source.make is None for source in sources):
        if len({source.names for source in sources}) < len(sources):
            raise CheckpointError(
                f"save_weights: rename gives two weights one name: {[s.names[0] for s in sources]}."
            )
        return {source.names[0]: leaf for source, leaf in zip(sources, leaves)}
    wanted = "the arrays of such a file, by name, as from read_tensors"
    if not isinstance(like, Mapping):
        raise CheckpointError(f"save_weights: like must have {wanted}, got {describe(like)}.")
    used = {name for source in sources for name in source.names}
    if unknown := used - set(like):
        raise CheckpointError(f"save_weights: like must have {wanted}, but it lacks {some(sorted(unknown))}.")
    if wrong := {name: unfit for name in sorted(used) if (unfit := _unfit("like", like[name]))}:
        raise CheckpointError(
            "\n  ".join(
                [f"save_weights: like must have {wanted}:", *[f"{n} is {w}" for n, w in wrong.items()]]
            )
        )
    outlines = {name: _Outline(tuple(like[name].shape), str(like[name].dtype)) for name in used}
    lines = []
    for name, source, leaf in zip(names, sources, leaves):
        made = _made("save_weights", source, outlines)
        lines += mismatch(f"{name} ({_show(source)!r})", made, leaf, "the weight is")
    if lines:
        mend = "give the like of a file of this model, in the dtype of its weights"
        head = "save_weights: the weights do not fit what rename makes of like, and nothing was saved:"
        raise CheckpointError("\n  ".join([head, *lines]) + f"\nMend: {mend}.")

    def read(arrays):
        return [_make(source, [arrays[name] for name in source.names]) for source in sources]

    moves = "choose functions that only move numbers, as transposing, slicing and stacking do"
    leaves = [jnp.asarray(leaf) for leaf in leaves]
    write = jax.linear_transpose(read, {name: jax.ShapeDtypeStruct(*outlines[name]) for name in used})
    try:
        jax.eval_shape(write, leaves)
    except Exception as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise CheckpointError(
            f"save_weights: rename gives a function that cannot be turned round: {moves} ({reason})."
        ) from error
    counts = write([jnp.ones(leaf.shape, leaf.dtype) for leaf in leaves])[0]
    if wrong := [name for name, count in counts.items() if (count != 1).any()]:
        mend = f"each number there must come from one place here: {moves}"
        raise CheckpointError(
            f"save_weights: rename leaves {some(sorted(wrong))} with gaps, or fills it twice: {mend}."
        )
    # A mean of two numbers, say, has counts of 1, too.
    written = write(leaves)[0]
    pairs = zip(names, leaves, read(written))
    if wrong := [name for name, *both in pairs if not np.array_equal(*both, equal_nan=True)]:
        raise CheckpointError(
            f"save_weights: what rename saves of {some(wrong)} would not come back: {moves}."
        )
    return written


class _Source(NamedTuple):
    """Where in a file a weight stands, and what makes it of what stands there; ``None``, if nothing need be done."""

    names: tuple[str, ...]
    make: Callable | None = None


def _sources(asker, rename, names):
    if not (rename is None or isinstance(rename, Mapping) or callable(rename)):
        wanted = "a function of a name, or a dict by name"
        raise CheckpointError(f"{asker}: rename must be {wanted}, got {show(rename)}.")
    return [_source(asker, rename, name) for name in names]


def _source(asker, rename, name):
    if callable(rename):
        try:
            found = rename(name)
        except Exception as error:
            error.add_note(f"This is from the rename of {asker}, for {name!r}.")
            raise
    else:
        found = name if rename is None else rename.get(name, name)
    if isinstance(found, str):
        return _Source((found,))
    if (
        isinstance(found, tuple)
        and len(found) > 1
        and callable(found[-1])
        and all(isinstance(n, str) for n in found[:-1])
    ):
        return _Source(found[:-1], found[-1])
    wanted = "a name in the file, or a tuple of names and a function of their arrays"
    raise CheckpointError(f"{asker}: rename must give {wanted}, got {show(found)} for {name!r}.")


def _make(source, arrays):
    return arrays[0] if source.make is None else source.make(*arrays)


def _show(source):
    return ", ".join(source.names)


def _outline(tensor):
    return _Outline(tuple(tensor.get_shape()), _CODES.get(tensor.get_dtype(), tensor.get_dtype()))


def _made(asker, source, outlines):
    """What will come of a source, without reading it; ``None``, if it is not there."""
    parts = [outlines.get(name) for name in source.names]
    if None in parts or source.make is None:
        return None if None in parts else parts[0]
    try:
        made = jax.eval_shape(source.make, *[jax.ShapeDtypeStruct(*part) for part in parts])
    except Exception as error:
        given = ", ".join(describe(jax.ShapeDtypeStruct(*part)) for part in parts)
        error.add_note(f"This is from the function that rename gives for {_show(source)!r}, {given}.")
        raise
    if not is_array(made):
        wanted = "must return one array"
        raise CheckpointError(
            f"{asker}: the function for {_show(source)!r} in rename {wanted}, got {describe(made)}."
        )
    return _Outline(made.shape, str(made.dtype))


@contextlib.contextmanager
def _file(name, path):
    safetensors = _import("safetensors", name)
    _refuse_directory(name, path)
    try:
        file = safetensors.safe_open(path, framework="numpy")
    except safetensors.SafetensorError as error:
        raise CheckpointError(f"{name}: {path} is no whole file of safetensors: {error}.") from None
    with file:
        yield _Tensors(file, path)


def _refuse_directory(name, path):
    if os.path.isdir(path):
        mend = "name the file in it, or read it with Checkpoints(…).restore"
        if name in ("save_weights", "write_tensors"):
            mend = "name a file in it"
        raise CheckpointError(f"{name}: {path} is a directory: {mend}.")


class _Tensors:
    """The arrays of an open file by name."""

    def __init__(self, file, path):
        self.outlines = {name: _outline(file.get_slice(name)) for name in file.keys()}
        self._file, self._path = file, path

    def read(self, name, index=()):
        """One array, or a part of it. The NumPy side of safetensors writes float8, and cannot read it: it lies in the file as it is."""
        outline = self.outlines[name]
        if not outline.dtype.startswith("float8"):
            return self._file.get_slice(name)[index] if index else self._file.get_tensor(name)
        with open(self._path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            begin, end = json.loads(file.read(length))[name]["data_offsets"]
            file.seek(begin, os.SEEK_CUR)
            array = np.frombuffer(bytearray(file.read(end - begin)), outline.dtype).reshape(outline.shape)
            return array[index] if index else array


# What safetensors calls the dtypes that it can hold.
_CODES = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
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


def _compare(where, wanted, found, hints=()):
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
        raise CheckpointError("\n  ".join([head, *lines, *hints]) + f"\nMend: {mend}.")


def _portable(leaf):
    """What is written: the bits of typed keys, and what only this process has as NumPy's array."""
    leaf = key_bits(leaf)
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


def _place(file, source, leaf):
    """One weight from the file; each device reads its part, unless it is made of several, or of another shape."""
    name, *_ = source.names
    if source.make is not None:
        return jnp.asarray(_make(source, map(file.read, source.names)), device=leaf.sharding)
    if leaf.sharding is None or not leaf.size:
        return jnp.asarray(file.read(name), device=leaf.sharding)
    parts = {}  # devices that hold the same part share what was read

    def part(index):
        if index not in parts:
            parts[index] = file.read(name, index)
        return parts[index]

    return jax.make_array_from_callback(leaf.shape, leaf.sharding, part)


def _write(name, path, tensors):
    """Write the file beside, and rename it when it is complete."""
    numpy = _import("safetensors.numpy", name)
    # In C order: safetensors writes the bytes as they lie.
    arrays = {label: np.asarray(array, order="C") for label, array in tensors.items()}
    path = Path(path)
    _refuse_directory(name, path)
    if not path.parent.is_dir():
        message = f"{name}: there is no directory {path.parent}: create it, or correct the path."
        raise FileNotFoundError(message)
    with written_beside(path) as partial:
        numpy.save_file(arrays, partial)  # which lets none but the owner read
