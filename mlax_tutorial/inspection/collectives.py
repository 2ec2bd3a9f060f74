"""What devices tell each other: the collectives of a compiled program, how often each runs, and their bytes.

A program that is divided over several devices says in its compiled text where they exchange data. `find` lists these places,
`count` sums them up. Bytes are of one device: those of the result that it holds after the exchange.
They are what the compiled program sends: on a CPU XLA sends bfloat16 as float32.
"""

import collections
import dataclasses
import math
import re

import jax
import numpy as np

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")


@dataclasses.dataclass(frozen=True)
class Collective:
    """One place of a program where devices exchange data.

    Attributes:
      kind: one of `KINDS`, which are XLA's names. ``psum`` and ``pmean`` are an all-reduce, ``psum_scatter`` a reduce-scatter,
        ``ppermute`` a collective-permute.
      shapes: of the result on one device, as XLA writes them.
      bytes: of that result.
      times: how often it runs, because of the loops around it; a loop of unknown length counts once.
      groups: which devices take part together, by their positions in the mesh; of a collective-permute the pairs (from, to).
    """

    kind: str
    shapes: tuple[str, ...]
    bytes: int
    times: int
    groups: tuple[tuple[int, ...], ...]

    @property
    def sent(self) -> float:
        """Bytes that one device sends in one run, if the devices of a group pass the data round a ring."""
        if self.kind == "collective-permute":
            return self.bytes
        size = len(self.groups[0])
        if self.kind == "reduce-scatter":
            return (size - 1) * self.bytes
        return (2 if self.kind == "all-reduce" else 1) * (size - 1) / size * self.bytes


def find(fun, *args, **kwargs) -> list[Collective]:
    """Lists the collectives of a program, in its order.

    Args:
      fun: a function, jitted or not; or a program that is compiled already, without arguments.
      *args, **kwargs: arrays where they live, or ``jax.ShapeDtypeStruct`` with a sharding.

    >>> import jax, jax.numpy as jnp
    >>> find(lambda x: x.sum(), jnp.ones(8))  # of one device
    []
    """
    compiled = fun if isinstance(fun, jax.stages.Compiled) else _jitted(fun).lower(*args, **kwargs).compile()
    text = compiled.as_text()
    everyone = re.search(r"num_partitions=(\d+)", text)
    return _read(text, int(everyone[1]) if everyone else 1)


def count(fun, *args, **kwargs) -> dict[str, tuple[int, int]]:
    """Sums up what `find` lists: for each kind how many run, and how many bytes their results have on one device.

    >>> import jax.numpy as jnp
    >>> count(jnp.sin, jnp.ones(8))
    {}
    """
    runs, sizes = collections.Counter(), collections.Counter()
    for each in find(fun, *args, **kwargs):
        runs[each.kind] += each.times
        sizes[each.kind] += each.times * each.bytes
    return {kind: (runs[kind], sizes[kind]) for kind in KINDS if kind in runs}


def _jitted(fun):
    return fun if hasattr(fun, "lower") else jax.jit(fun)


# The text

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{$")
_COLLECTIVE = re.compile(rf"^\s*(?:ROOT )?%?[\w.\-]+ = (.*?) ({'|'.join(KINDS)})(-start)?\(")
_CALLED = re.compile(r"\b(body|calls|to_apply|true_computation|false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_SHAPE = re.compile(r"\b([a-z]+\d*(?:e\d+m\d+\w*)?)\[([\d,]*)\]")


def _read(text, everyone):
    computations, entry, lines = {}, None, None
    for line in text.splitlines():
        if lines is None:
            if start := _COMPUTATION.match(line):
                lines = computations[start[2]] = []
                entry = start[2] if start[1] else entry
        elif line.startswith("}"):
            lines = None
        else:
            lines.append(line)

    def walk(name, times):
        for line in computations.get(name, ()):
            if found := _COLLECTIVE.match(line):
                yield _collective(line, *found.groups(), times, everyone)
                continue
            trips = _TRIPS.search(line)
            for how, called in _CALLED.findall(line):
                yield from walk(called, times * int(trips[1]) if how == "body" and trips else times)
            for branches in _BRANCHES.findall(line):
                for called in branches.split(","):
                    yield from walk(called.strip().lstrip("%"), times)

    return list(walk(entry, 1))


def _collective(line, shapes, kind, start, times, everyone):
    found = _SHAPE.findall(shapes)
    if start and kind in ("all-gather", "collective-permute", "reduce-scatter"):
        found = found[1:2]  # what is exchanged meanwhile stands before it
    size = sum(_itemsize(dtype) * math.prod(map(int, filter(None, dims.split(",")))) for dtype, dims in found)
    names = tuple(f"{dtype}[{dims}]" for dtype, dims in found)
    return Collective(kind, names, size, times, _groups(line, kind, everyone))


def _itemsize(dtype):
    bits = re.match(r"[a-z]+(\d+)", dtype)
    return 1 if bits is None else max(1, int(bits[1]) // 8)


def _groups(line, kind, everyone):
    name = "source_target_pairs" if kind == "collective-permute" else "replica_groups"
    if listed := re.search(name + r"=\{((?:\{[\d,]*\},?)*)\}", line):
        groups = tuple(tuple(map(int, part.split(","))) for part in re.findall(r"\{([\d,]+)\}", listed[1]))
        return groups or (tuple(range(everyone)),)
    if mesh := re.search(name + r"=mesh\[([^\]]*)\] ?\{([^}]*)\}", line):
        return _along(mesh[1], mesh[2])
    # Or else rows of an array of all devices, perhaps with its axes in another order: [2,4]<=[4,2]T(1,0)
    shape, whole, order = re.search(name + r"=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line).groups()
    shape, whole, order = ([int(i) for i in (text or "").split(",") if i] for text in (shape, whole, order))
    devices = np.arange(math.prod(whole)).reshape(whole)
    devices = devices.transpose(order) if order else devices
    return tuple(map(tuple, devices.reshape(shape).tolist()))


def _along(mesh, axes):
    """The groups along some axes of a mesh: "'data'=2,'stage'=4" and "'data'"; "'x':(2)4" is the second part of an axis."""
    shape, parts = [], []
    wanted = re.findall(r"'(\w+)'(?::\((\d+)\)(\d+))?", axes)
    for name, size in re.findall(r"'(\w+)'=(\d+)", mesh):
        before, rest = 1, int(size)
        for _, first, length in sorted((w for w in wanted if w[0] == name), key=lambda w: int(w[1] or 1)):
            first, length = int(first or 1), int(length or size)
            shape += [first // before, length]
            parts.append(len(shape) - 1)
            before, rest = first * length, int(size) // (first * length)
        shape.append(rest)
    devices = np.arange(math.prod(shape)).reshape(shape)
    devices = np.moveaxis(devices, parts, range(-len(parts), 0))
    size = math.prod(shape[part] for part in parts)
    return tuple(map(tuple, devices.reshape(-1, size).tolist()))
