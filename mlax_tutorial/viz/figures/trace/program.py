"""The program that XLA made of a function, read from its text: instructions, and groups that were fused."""

import re
from typing import NamedTuple

import jax
from jax.extend import core


class Block(NamedTuple):
    """One instruction that the device runs; if it is a fusion, with the instructions that were fused into it."""

    text: str
    fused: tuple[str, ...]


class Program(NamedTuple):
    """The optimised program: blocks in order, and where it would run."""

    blocks: tuple[Block, ...]
    platform: str


def optimised(jaxpr, inputs) -> Program | None:
    """Compile a closed jaxpr for the default device and read the result; None if it does not compile."""
    try:
        text = jax.jit(core.jaxpr_as_fun(jaxpr)).lower(*inputs).compile().as_text()
    except Exception:  # whatever XLA cannot do here, the recording is still worth showing
        return None
    return Program(parse(text), jax.default_backend())


def parse(text: str) -> tuple[Block, ...]:
    """Read the entry computation of an HLO module; fusions and calls get the instructions they hold.

    >>> parse('''
    ... %fused (p: f32[3]) -> f32[3] {
    ...   %p = f32[3]{0} parameter(0)
    ...   ROOT %e = f32[3]{0} exponential(%p)
    ... }
    ... ENTRY %main (x: f32[3]) -> f32[3] {
    ...   %x = f32[3]{0} parameter(0)
    ...   ROOT %f = f32[3]{0} fusion(%x), kind=kLoop, calls=%fused
    ... }''')
    (Block(text='f = f32[3] fusion(x)', fused=('e = f32[3] exponential(p)',)),)
    """
    computations, name, entry = {}, None, None
    for line in text.splitlines():
        head = re.match(r"(ENTRY )?%?([\w.\-]+) .*\{$", line)
        if head and not line.startswith(" "):
            name = head[2]
            computations[name] = []
            entry = name if head[1] else entry
        elif line.startswith("}"):
            name = None
        elif name is not None and " = " in line:
            computations[name].append(line.strip())
    return tuple(_block(line, computations) for line in computations.get(entry, ()) if not _is_argument(line))


def _block(line: str, computations) -> Block:
    calls = re.search(r"(?:calls|to_apply)=%?([\w.\-]+)", line)
    fused = ()
    if calls and re.search(r"\b(fusion|call)\(", line):
        fused = tuple(_short(inner) for inner in computations.get(calls[1], ()) if not _is_argument(inner))
    return Block(_short(line), fused)


def _is_argument(line: str) -> bool:
    return " parameter(" in line


def _short(line: str) -> str:
    """An instruction without layouts, attributes and marks that a reader does not need."""
    line = re.sub(r"\{[\d,]*(:[^}]*)?\}", "", line.removeprefix("ROOT ").replace("%", ""))
    opening = re.search(r"[\w\-]\(", line)  # of the operands: the name of an operation stands before it
    depth = 0
    for position in range(opening.end() - 1 if opening else len(line), len(line)):
        depth += {"(": 1, ")": -1}.get(line[position], 0)
        if depth == 0:
            return line[: position + 1]
    return line
