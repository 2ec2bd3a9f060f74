"""Errors on purpose: show one in a few lines and go on, and take one apart.

- `fails` is for code that is meant to fail: it prints the error in short, and raises where nothing fails, or
  something else does.
- `read` takes an error apart: its message without paths and addresses, and its frames, the reader's own marked.

JAX's transformations run an operation long after the line that asked for it: the backward pass of ``grad`` does. The
traceback of an error in it ends at the call of the gradient. Where JAX knows the line that asked, it hangs the frames that
led there on the error as its cause, a `JaxStackTraceBeforeTransformation`; they are read, too.

>>> import jax
>>> with fails(jax.errors.TracerBoolConversionError) as failure:
...     jax.jit(lambda x: 1.0 if x > 0 else 2.0)(3.0)
TracerBoolConversionError in a lambda, line 2:
    jax.jit(lambda x: 1.0 if x > 0 else 2.0)(3.0)
  Attempted boolean conversion of traced array with shape bool[].
  The error occurred while tracing the function <lambda> for jit. This
  concrete value was not available in Python because it depends on the
  value of the argument x.
>>> failure.arguments
('x',)
"""

import dataclasses
import inspect
import linecache
import re
import textwrap
import traceback

import jax

from mlax_tutorial.inspection.theirs import is_theirs

WIDTH = 72  # what fits a page


@dataclasses.dataclass(frozen=True)
class Frame:
    """One line of a traceback.

    Attributes:
      owner: ``"yours"``, or the name of the package that the code is from: ``"jax"``, ``"numpy"``, ``"Python"``.
      file: the file from the package's folder on; of one's own code the bare name.
      line: the number of the line.
      function: the name of the function; empty at the top level of a file or a cell.
      source: the line itself, if it is known.
    """

    owner: str
    file: str
    line: int
    function: str
    source: str = ""

    @property
    def place(self):
        """Where it is, in words: ``in sign, line 2``."""
        where = {"": "", "<lambda>": "in a lambda, "}.get(self.function, f"in {self.function}, ")
        return f"{where}line {self.line}"


class Failure:
    """An error, taken apart. As a context manager, which `fails` returns, it waits for the error to come.

    Attributes:
      error: the exception, without its traceback.
      kind: the name of its class, as `jax.errors` spells it.
      message: its text without paths, addresses and rules of dashes.
      link: the address of the documentation that the message ends in, or ``""``.
      frames: the frames of its traceback, outermost first; see `Frame`.
      before: where its traceback ends at a call of JAX, the frames that go on from there to the operation that JAX
        transformed, if JAX knows them.
    """

    def __init__(self, kinds=(), lines=3):
        self.kinds, self.lines = kinds, lines
        self.error, self.kind, self.message, self.link, self.frames, self.before = None, "", "", "", (), ()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, frames):
        if error is None:
            raise AssertionError(f"this was to fail with {_either(self.kinds)}, and did not fail")
        if not isinstance(error, Exception):  # Ctrl-C, for instance
            return False
        if _public(kind) not in self.kinds:
            raise AssertionError(f"this was to fail with {_either(self.kinds)}, not so") from error
        self.take(error)
        print(self)
        return True  # the error ends here

    def take(self, error):
        """Reads the error, and lets go of its traceback, which keeps all variables of all its functions alive."""
        self.error, self.kind = error, name_of(_public(type(error)))
        self.message, self.link = clean(str(error))
        self.frames = _frames(error)
        self.before = _before(error, self.frames)
        while error is not None:
            error.__traceback__, error = None, error.__cause__ or error.__context__
        return self

    @property
    def yours(self):
        """The frames of one's own code, outermost first, those before the transformation included."""
        return tuple(frame for frame in self.frames + self.before if frame.owner == "yours")

    @property
    def source(self):
        """The line of one's own code that it came to last: the place to look at."""
        return self.yours[-1].source if self.yours else ""

    @property
    def arguments(self):
        """The arguments on whose values the message says that it hangs."""
        found = re.search(r"depends on the values? of the arguments? (.*?)\.?$", self.message, re.MULTILINE)
        return tuple(re.split(r", and | and |, ", found[1])) if found else ()

    @property
    def parents(self):
        """The names of the classes that an ``except`` may name as well, nearest first."""
        above = type(self.error).__mro__[1:] if self.error is not None else ()
        names = [name_of(c) for c in above if issubclass(c, Exception) and c is not Exception]
        return tuple(name for name in names if name != self.kind)

    def __repr__(self):
        if self.error is None:
            return "<no error yet>"
        head = self.kind
        if self.yours:
            place = self.yours[-1].place
            head += f" {place}" if self.yours[-1].function else f" in {place}"
        if self.source:
            one_line = len(head) + len(self.source) + 2 <= WIDTH
            head += f": {self.source}" if one_line else f":\n    {self.source[: WIDTH - 4]}"
        lines = self.message.splitlines()
        shown = lines[: self.lines] + (["…"] if len(lines) > self.lines else [])
        return "\n".join([head] + [_wrapped(line) for line in shown])


def fails(*kinds, lines=3):
    """The body of the ``with`` is meant to raise an error of one of these classes; it is shown in short.

    Args:
      *kinds: the classes. That of the error must be one of them; to be derived from one is not enough, unless the
        derived class is a private one of JAX, below one in `jax.errors`.
      lines: how many lines of the message are shown, each as long as JAX made it.

    Returns:
      A `Failure`, which holds the error once it has come.

    Raises:
      AssertionError: if nothing is raised, or an error of another class.

    >>> with fails(TypeError):
    ...     abs("three")
    TypeError in line 2: abs("three")
      bad operand type for abs(): 'str'
    >>> with fails(TypeError):
    ...     abs(3)
    Traceback (most recent call last):
        ...
    AssertionError: this was to fail with TypeError, and did not fail
    """
    if not kinds:
        raise TypeError("which error is expected? Name its class: fails(TypeError)")
    return Failure(kinds, lines)


def read(error):
    """An exception, as caught by ``except``, taken apart into a `Failure`.

    >>> try:
    ...     jax.grad(lambda x: x)(3)
    ... except TypeError as error:
    ...     failure = read(error)
    >>> failure.kind, [frame.owner for frame in failure.frames[:1]]
    ('TypeError', ['yours'])
    """
    return Failure().take(error)


def public():
    """The classes of `jax.errors` that this JAX has, by name.

    >>> len(public()) >= 10
    True
    """
    found = {name: item for name, item in vars(jax.errors).items() if inspect.isclass(item)}
    return {name: found[name] for name in sorted(found) if not name.startswith("_")}


def name_of(kind):
    """A class's name; of those in `jax.errors` the name there, as some were called otherwise in older versions."""
    return next((name for name, item in public().items() if item is kind), kind.__name__)


def _public(kind):
    """The class, or the nearest in `jax.errors` that it derives from: JAX raises private classes below some of them."""
    known = public().values()
    return next((above for above in kind.__mro__ if above in known), kind)


# Frames


def _frames(error):
    return tuple(_frame(*step) for step in traceback.walk_tb(error.__traceback__))


def _before(error, frames):
    """The frames behind the call at which the traceback ends, from the cause that JAX hung on the error, or ()."""
    cause = error.__cause__
    while cause is not None and type(cause).__name__ != "JaxStackTraceBeforeTransformation":
        cause = cause.__cause__
    own = [frame for frame in frames if frame.owner == "yours"]
    if cause is None or not own:
        return ()
    recorded = _frames(cause)
    shared = [
        place
        for place, frame in enumerate(recorded)
        if (frame.file, frame.function, frame.line) == (own[-1].file, own[-1].function, own[-1].line)
    ]  # without one, the error is raised in a line that only a transformation calls: a derivative rule, say
    behind = recorded[shared[-1] + 1 :] if shared else ()
    return behind if any(frame.owner == "yours" for frame in behind) else ()


def _frame(frame, line):
    code = frame.f_code
    name = "" if code.co_name == "<module>" else code.co_name.rpartition(".")[2]
    source = linecache.getline(code.co_filename, line, frame.f_globals).strip()
    owner, file = _owner(code.co_filename)
    return Frame(owner, file, line, name, source)


def _owner(filename):
    """Whose code a file is, and its name without the machine's folders."""
    parts = filename.replace("\\", "/").split("/")
    for library in ("site-packages", "dist-packages"):
        if library in parts:
            inside = parts[len(parts) - parts[::-1].index(library) :]
            return inside[0].removesuffix(".py"), "/".join(inside)
    if is_theirs(filename):
        return "yours", parts[-1]
    if "mlax_tutorial" in parts:
        return "mlax_tutorial", "/".join(parts[parts.index("mlax_tutorial") :])
    if "jax" in parts:  # installed from its source
        return "jax", "/".join(parts[parts.index("jax") :])
    return "Python", parts[-1]


# Messages

_PATH = r"(?:[A-Za-z]:)?[/\\][^\s:<>\"']+|<(?:ipython-input|doctest)[^>]*>"


def clean(text):
    """A message without what differs from machine to machine, and the link that it ends in.

    >>> clean("while tracing f at /tmp/a.py:3 for jit.\\nSee https://docs.jax.dev/x#y")
    ('while tracing f for jit.', 'https://docs.jax.dev/x#y')
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)  # colours: JAX prints jaxprs with them in a notebook
    links = re.findall(r"^(?:Please )?[Ss]ee (https?://\S+)", text, re.MULTILINE)
    text = re.sub(r"^(?:Please )?[Ss]ee https?://.*\n?(?:for more details\.)?", "", text, flags=re.MULTILINE)
    if "Traceback (most recent call last):" in text:  # of another thread; its last line says what it was
        head, _, tail = text.partition("Traceback (most recent call last):")
        text = head.rstrip() + "\n" + [line for line in tail.splitlines() if line.strip()][-1].strip()
    text = re.sub(rf"\bline (?:{_PATH}):(\d+)(?::\d+)?", r"line \1", text)
    text = re.sub(rf"^(\s*)(?:{_PATH}):(\d+)(?::\d+)?", r"\1line \2", text, flags=re.MULTILINE)
    text = re.sub(rf"\((?:{_PATH}):(\d+)(?::\d+)?", r"(line \1", text)
    text = re.sub(rf",? (?:at|from|in file) (?:{_PATH}):\d+(?::\d+)?", "", text)
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    text = re.sub(r"(<\w+) \d{6,}>", r"\1>", text)
    text = re.sub(r" with object id \d+", "", text)
    text = re.sub(r"^-{5,}$\n?", "", text, flags=re.MULTILINE)
    lines = [line.rstrip() for line in text.splitlines()]
    kept = [line for line, last in zip(lines, ["", *lines], strict=False) if line.strip() and line != last]
    return "\n".join(kept), links[-1] if links else ""


def _either(kinds):
    return " or ".join(name_of(kind) for kind in kinds)


def _wrapped(line):
    indent = "  " + line[: len(line) - len(line.lstrip())]
    words = {"initial_indent": indent, "subsequent_indent": indent, "break_on_hyphens": False}
    return textwrap.fill(line.strip(), WIDTH, break_long_words=False, **words)
