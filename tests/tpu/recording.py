"""Inside a chapter's kernel: notes each program that `jax.jit` runs, and compiles it for a TPU afterwards."""

import functools
import itertools
import time

import jax
from jax.extend import core

from mlax_tutorial.checking import laws
from mlax_tutorial.inspection import jaxprs
from tests.tpu import compiling

programs = {}  # (function, jaxpr) -> (name, program, shapes, which are batches)
_numbers = itertools.count()
seen = set()  # calls that need not be looked at again


class Recorded:
    """A jitted function that notes what it traces, and otherwise is the jitted function."""

    def __init__(self, jitted):
        self._jitted = jitted
        # An `id` may be given again, and kept alive, the function would keep what JAX stores for it alive: tracers, too.
        self._number = next(_numbers)
        functools.update_wrapper(self, jitted)

    def __call__(self, *args, **kwargs):
        leaves, structure = jax.tree.flatten((args, kwargs))
        if not any(
            isinstance(leaf, jax.core.Tracer) for leaf in leaves
        ):  # else it is part of another program
            key = self._number, structure, str(compiling.shapes(leaves))
            if key not in seen:
                seen.add(key)
                # Traced now: later, names that it uses may mean something else. The call finds this trace.
                name = getattr(self._jitted, "__name__", "program")
                traced = self._jitted.trace(*args, **kwargs)
                text = str(traced.jaxpr)
                if not is_bound(traced.jaxpr) and uses_arguments(traced.jaxpr.jaxpr):
                    programs.setdefault((self._number, text), (name, *flat(traced)))
        return self._jitted(*args, **kwargs)

    # Of `jax.stages.Wrapped`, which `jax.export` asks for: a protocol's methods must stand in the class.
    def trace(self, *args, **kwargs):
        return self._jitted.trace(*args, **kwargs)

    def lower(self, *args, **kwargs):
        return self._jitted.lower(*args, **kwargs)

    def eval_shape(self, *args, **kwargs):
        return self._jitted.eval_shape(*args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._jitted, name)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)


def is_bound(jaxpr) -> bool:
    """Whether a program is bound to devices of this machine: its jaxpr has a mesh, and pmap chooses some when it is traced."""

    def names_devices(leaf):
        if isinstance(leaf, (jax.sharding.Mesh, jax.sharding.AbstractMesh)):
            return not leaf.empty  # a nested jit has an empty one
        return isinstance(leaf, jax.sharding.Sharding)

    return any(
        equation.primitive.name == "xla_pmap"
        or any(map(names_devices, jax.tree.leaves(list(equation.params.values()))))
        for _, equation in jaxprs.walk(jaxpr)
    )


def uses_arguments(jaxpr) -> bool:
    """Whether arguments, which say where to compile for, are left: zeros for a bias depend on no key, and no argument remains."""
    used = {id(atom) for atom in jaxpr.outvars}
    for equation in reversed(jaxpr.eqns):
        if equation.effects or used & {id(atom) for atom in equation.outvars}:
            used |= {id(atom) for atom in equation.invars}
    return not jaxpr.invars or any(id(argument) in used for argument in jaxpr.invars)


def start():
    """From now on, `jax.jit` returns functions that are recorded."""
    # The laws run programs of their own, made for the devices of this machine; test_library.py compiles the layers.
    jit = jax.jit

    @functools.wraps(jit)
    def recording_jit(*args, **kwargs):
        if not args and "fun" not in kwargs:  # a decorator with settings
            return functools.partial(recording_jit, **kwargs)
        return Recorded(jit(*args, **kwargs))

    def unrecorded(report):
        @functools.wraps(report)
        def run(*args, **kwargs):
            jax.jit = jit
            try:
                return report(*args, **kwargs)
            finally:
                jax.jit = recording_jit

        return run

    laws.report, laws.report_optimizer = unrecorded(laws.report), unrecorded(laws.report_optimizer)
    jax.jit = recording_jit


def flat(traced):
    """What was traced, as a jitted function of a flat list of arrays; their shapes; which of them are batches.

    A positional argument that is a bare array, and whose first axis can be cut in eight, is taken for a batch.
    Weights and states come in trees.
    """
    args, kwargs = traced.args_info
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in traced.jaxpr.in_avals]
    donated = [index for index, info in enumerate(jax.tree.leaves((args, kwargs))) if info.donated]
    bare = [
        jax.tree_util.treedef_is_leaf(jax.tree.structure(arg)) for arg in args for _ in jax.tree.leaves(arg)
    ]
    bare += [False] * (len(shapes) - len(bare))
    batches = [
        one and shape.ndim > 0 and shape.shape[0] % 8 == 0 for one, shape in zip(bare, shapes, strict=True)
    ]
    return jax.jit(core.jaxpr_as_fun(traced.jaxpr), donate_argnums=donated), shapes, batches


def compile_one(index: int) -> dict:
    """Compiles one of the recorded programs for one chip and, data-parallel, for eight. Returns its name and the seconds."""
    name, program, shapes, batches = list(programs.values())[index]
    begun = time.perf_counter()
    compiling.compile_for_chip(program, *shapes)
    seconds = [time.perf_counter() - begun]
    if any(batches):  # else each of the eight would run the program for one
        split = [
            compiling.placed(shape, jax.P("data") if batch else None)
            for shape, batch in zip(shapes, batches, strict=True)
        ]
        begun = time.perf_counter()
        assert "num_partitions=8" in compiling.compiled(program.lower(*split)).as_text()
        seconds.append(time.perf_counter() - begun)
    return {"function": name, "seconds": seconds}
