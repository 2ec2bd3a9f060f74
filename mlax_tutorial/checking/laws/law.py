"""A law: a name, a sentence, and a check that says what was put in, what was wanted, and what came."""

import contextlib
import dataclasses
import inspect
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import guarding
from mlax_tutorial.checking.guarding import Raised
from mlax_tutorial.checking.outcome import Failed, NotAttempted

_OURS = pathlib.Path(__file__).parent.parent  # mlax_tutorial/checking


@dataclasses.dataclass(frozen=True)
class Law:
    """What every layer, or every optimizer, must obey.

    Attributes:
      name: a few words, as in reports and in ``but=``.
      statement: one sentence.
      check: takes a subject; raises `Failed` where it breaks the law.
      needs: names of laws without which this one means nothing: it is not looked at where one of them is broken.
      applies: whether there is anything to look at in a subject.
    """

    name: str
    statement: str
    check: Callable[[Any], None] = dataclasses.field(repr=False)
    needs: tuple[str, ...] = ()
    applies: Callable[[Any], bool] = dataclasses.field(default=lambda subject: True, repr=False)

    def __call__(self, subject):
        """Raise `Failed`, with the law in front, where ``subject`` breaks it."""
        try:
            self.check(subject)
        except Exception as error:
            failure = _theirs(error)
            if not isinstance(failure, Failed):
                raise
            failure.reason = failure.message
            failure.say_first(f"The law *{self.name}* is broken: {self.statement}")
            raise failure from None


class Laws(dict):
    """Laws by their names, in the order in which they are looked at. Printed, it is a table."""

    def law(self, *needs: Law, name: str = "", applies: Callable[[Any], bool] = lambda subject: True):
        """A decorator that makes a law of a check: its name is the function's, its statement the docstring.

        Args:
          needs: the laws without which it means nothing.
          name: where a word of the name has an underscore.
          applies: whether there is anything to look at in a subject.
        """

        def decorate(check) -> Law:
            law = Law(
                name or check.__name__.replace("_", " "),
                " ".join(inspect.getdoc(check).split()),
                check,
                tuple(each.name for each in needs),
                applies,
            )
            missing = [each.name for each in needs if self.get(each.name) is not each]
            if missing or law.name in self:
                raise ValueError(f"{law.name!r} is there already, or needs laws that are not: {missing}")
            self[law.name] = law
            return law

        return decorate

    def broken(self, subject, but=()) -> Iterable[tuple[Law, Failed | None]]:
        """Each law with the `Failed` that it raised, or None; laws that cannot be looked at are left out."""
        unknown = {but} - self.keys() if isinstance(but, str) else set(but) - self.keys()
        if unknown:
            raise ValueError(f"there is no law {sorted(unknown)[0]!r}; the laws are {', '.join(self)}")
        lost, but = set(), {but} if isinstance(but, str) else set(but)
        asked = {name for law in self.values() if law.name not in but for name in law.needs}
        for law in self.values():
            if lost & set(law.needs):
                lost.add(law.name)
                continue
            if not law.applies(subject):
                continue
            if law.name in but:  # others may mean nothing without it
                if law.name in asked:
                    lost |= {law.name} if self._breaks(law, subject) else set()
                continue
            try:
                law(subject)
            except Failed as failure:
                lost.add(law.name)
                yield law, failure
            else:
                yield law, None

    @staticmethod
    def _breaks(law, subject):
        try:
            law(subject)
        except Failed:
            return True
        return False

    def __repr__(self):
        from mlax_tutorial.checking.laws.report import table

        return table([(law.name, "", law.statement) for law in self.values()])


# What checks share.


def differing(got, expected, rtol=0.0, atol=0.0):
    """The first place where two trees of arrays differ: ``(path, expected, got)``, or None."""
    left, structure = jax.tree_util.tree_flatten_with_path(expected)
    right, other = jax.tree_util.tree_flatten_with_path(got)
    if structure != other:
        return "", expected, got
    for (path, one), (_, two) in zip(left, right):
        if (jnp.shape(one), jnp.result_type(one)) != (jnp.shape(two), jnp.result_type(two)):
            return jax.tree_util.keystr(path), one, two
        if isinstance(one, jax.ShapeDtypeStruct) or isinstance(two, jax.ShapeDtypeStruct):
            continue
        wanted, found = (np.asarray(leaf) for leaf in (one, two))
        if wanted.dtype.kind not in "biufc":  # bfloat16 and its kin
            wanted, found = wanted.astype(np.float32), found.astype(np.float32)
        if not np.allclose(found, wanted, rtol=rtol, atol=atol, equal_nan=True):
            return jax.tree_util.keystr(path), one, two
    return None


def equal(got, expected, message, *, names=(), input=None, rtol=0.0, atol=0.0):
    """Raise `Failed` unless two trees of arrays have the same structure, shapes, dtypes and values.

    ``names`` are those of the parts, where the trees are tuples such as ``(y, non_trainables)``. On an accelerator, whose sums and functions round otherwise, tolerances that are not zero are wider.
    """
    wider = 1 if jax.default_backend() == "cpu" else 20
    found = differing(got, expected, wider * rtol, wider * atol)
    if found is not None:
        path, one, two = found
        for index, name in enumerate(names):
            path = path.replace(f"[{index}]", name, 1) if path.startswith(f"[{index}]") else path
        shown = {"input": input} if input is not None else {}
        raise Failed(message + (f" (Looked at: `{path}`.)" if path else ""), expected=one, got=two, **shown)


class Words(str):
    """Text that is shown as it is, without quotes: a dtype, say."""

    def __repr__(self):
        return str(self)


@contextlib.contextmanager
def context(words):
    """Says in the report what was being done when the reader's code raised an error, or JAX did because of it."""
    try:
        yield
    except Exception as error:
        failure = _theirs(error)
        if isinstance(failure, Raised):
            failure.say_first(f"{words}:")
        raise failure from None


def _theirs(error):
    """An error as a `Failed`, unless it is our own: JAX raises some outside of the reader's function, as `jax.vmap` does."""
    if isinstance(error, (Failed, NotAttempted)):
        return error
    last = error.__traceback__
    while last.tb_next is not None:
        last = last.tb_next
    ours = _OURS in pathlib.Path(last.tb_frame.f_code.co_filename).parents
    # Where JAX filters tracebacks, its own frames are gone.
    filtered = any("JAX has removed its internal frames" in note for note in getattr(error, "__notes__", ()))
    filtered = filtered or type(error.__cause__).__module__.startswith("jax")
    return error if ours and not filtered else guarding.as_theirs(error)


def x64(wanted=True):
    """In the block there is float64, or there is none."""
    enable = getattr(jax, "enable_x64", None)
    if not callable(enable):
        from jax.experimental import enable_x64 as enable
    return enable(wanted)


def on_host():
    """In the block programs run on the CPU, which has float64."""
    if jax.default_backend() == "cpu":
        return contextlib.nullcontext()
    return jax.default_device(jax.local_devices(backend="cpu")[0])
