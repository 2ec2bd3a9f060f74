"""Does a program lower for a TPU, or for a GPU? Asked without one, and without its compiler.

JAX turns a function into StableHLO for any platform, wherever it runs, and a Pallas kernel into a kernel for that platform. For a
TPU this step checks what an interpreted run does not: the shapes of blocks, and whether each operation exists there. It does not
check memory: whether blocks fit into VMEM, only the TPU's own compiler says. A few operations differ from TPU to TPU, and lower only
where JAX is told which one it is; their error says so. For a GPU, what is asked is Pallas's back end for Triton, which takes
the kernels that `pallas_call` starts. (JAX 0.12 warns that it will be removed one day. The other one, Mosaic GPU, wants kernels of another form.)
"""

import contextlib
import dataclasses
import functools
import re

import jax

from mlax_tutorial.inspection import jaxprs


@dataclasses.dataclass(frozen=True)
class Lowering:
    """What `lowers_for_tpu` or `lowers_for_gpu` found. It is true if the function lowers, and prints as a sentence.

    Attributes:
      error: JAX's error, shortened, or None.
      kernels: the names of the Pallas kernels that are lowered, in the order of the program.
      interpreted: the names of those that are not, since ``pallas_call`` was called with ``interpret``.
      device: for what it was asked, "TPU" or "GPU".
    """

    error: str | None
    kernels: tuple[str, ...]
    interpreted: tuple[str, ...]
    device: str = "TPU"

    def __bool__(self):
        return self.error is None

    def __repr__(self):
        if self.error is not None:
            return f"does not lower for a {self.device}: {self.error}"
        what = f"with {_listed(self.kernels)}" if self.kernels else "without a Pallas kernel"
        if self.interpreted:
            what += f"; {_listed(self.interpreted)} would be interpreted (interpret=…)"
        return f"lowers for a {self.device}, {what}"


def lowers_for_tpu(f, *args, **kwargs) -> Lowering:
    """Says whether a function lowers for a TPU, and if not, JAX's error, shortened to what matters.

    With JAX alone: ``jax.jit(f).trace(*args).lower(lowering_platforms=("tpu",))``, which needs neither a TPU nor libtpu.

    Args:
      f: a function, jitted or not.
      *args: arrays, or ``jax.ShapeDtypeStruct``; they are traced.
      **kwargs: what the function takes besides, as it is: ``interpret=False``, say. It is not traced.

    What ``f`` itself raises while it is traced is raised: such an error is not the TPU's.

    >>> import jax, jax.numpy as jnp
    >>> from jax.experimental import pallas as pl
    >>> def double(x_ref, y_ref):
    ...     y_ref[...] = 2 * x_ref[...]
    >>> def doubled(x, rows, interpret=False):
    ...     block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    ...     return pl.pallas_call(double, out_shape=x, grid=x.shape[0] // rows, in_specs=[block], out_specs=block,
    ...                           interpret=interpret)(x)
    >>> x = jax.ShapeDtypeStruct((16, 128), jnp.float32)
    >>> lowers_for_tpu(doubled, x, rows=8)
    lowers for a TPU, with the kernel double
    >>> lowers_for_tpu(doubled, x, rows=8, interpret=True)
    lowers for a TPU, without a Pallas kernel; the kernel double would be interpreted (interpret=…)
    >>> "divisible by 8 and 128" in lowers_for_tpu(doubled, x, rows=4).error
    True
    """
    return _lower("TPU", "tpu", contextlib.nullcontext(), f, args, kwargs)


def lowers_for_gpu(f, *args, **kwargs) -> Lowering:
    """Says whether a function lowers for a GPU of NVIDIA's, with its Pallas kernels by way of Triton; see `lowers_for_tpu`.

    With JAX alone: ``jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",))``. Newer versions of JAX ask which GPU it is: they are
    told of an H100, by an empty ``jax.sharding.AbstractMesh``.

    Args:
      f: a function, jitted or not.
      *args: arrays, or ``jax.ShapeDtypeStruct``; they are traced.
      **kwargs: what the function takes besides, as it is; it is not traced.

    What ``f`` itself raises while it is traced is raised.

    >>> import jax, jax.numpy as jnp
    >>> from jax.experimental import pallas as pl
    >>> def double(x_ref, y_ref):
    ...     y_ref[...] = 2 * x_ref[...]
    >>> def doubled(x, rows):
    ...     block = pl.BlockSpec((rows, 128), lambda i: (i, 0))
    ...     return pl.pallas_call(double, out_shape=x, grid=x.shape[0] // rows, in_specs=[block], out_specs=block)(x)
    >>> x = jax.ShapeDtypeStruct((48, 128), jnp.float32)
    >>> lowers_for_gpu(doubled, x, rows=4)
    lowers for a GPU, with the kernel double
    >>> "power of 2" in lowers_for_gpu(doubled, x, rows=6).error
    True
    """
    return _lower("GPU", "cuda", _on_an_h100(), f, args, kwargs)


def _lower(device, platform, context, f, args, kwargs):
    with context:  # while it is traced, too: that is when JAX notes for which device it is
        traced = jax.jit(functools.partial(f, **kwargs)).trace(*args)
        error = None
        try:
            traced.lower(lowering_platforms=(platform,))
        except Exception as raised:
            error = f"{type(raised).__name__}: {_shortened(str(raised))}"
    kernels, interpreted = [], []
    for path, equation in jaxprs.walk(traced.jaxpr):
        if equation.primitive.name == "pallas_call" and not any("pallas_call" in step for step in path):
            (interpreted if equation.params["interpret"] else kernels).append(kernel_name(equation))
    return Lowering(error, tuple(kernels), tuple(interpreted), device)


def _on_an_h100():
    known = {"device_kind": "NVIDIA H100 80GB HBM3", "num_cores": 132, "platform": "gpu"}
    fields = {field.name for field in dataclasses.fields(jax.sharding.AbstractDevice)}
    device = jax.sharding.AbstractDevice(**{name: known[name] for name in known if name in fields})
    mesh = jax.sharding.AbstractMesh((), (), axis_types=(), abstract_device=device)
    return jax.sharding.use_abstract_mesh(mesh)


def _listed(names):
    return f"the kernel{'s' if len(names) > 1 else ''} {', '.join(names)}"


def kernel_name(equation) -> str:
    """The name of the kernel that an equation ``pallas_call`` starts. JAX knows it with its place, "double at file.py:3"."""
    known = equation.params.get("name_and_src_info") or equation.params["jaxpr"].debug_info.func_src_info
    return str(getattr(known, "name", known)).split(" ")[0].rsplit(".", 1)[-1]


def _shortened(message):
    message = message.strip()
    message = re.sub(r"\s*(Please file an issue|See details at)[^\n]*", "", message)
    message = re.sub(r", and index_map \{.*?\}(?=, in memory space|\.|$)", "", message, flags=re.DOTALL)
    message = re.sub(r",? in memory space (<[^>]*>|\w+)", "", message)
    message = re.sub(r"(\w+) at \S+:\d+", r"\1", message)
    message = re.sub(r'error: "(\w+):?"\(.*\): ', r"\1 ", message)
    message = re.sub(r"Blocked\(block_size=(\d+)\)", r"\1", message)
    return re.split(r"\n\s*\n|\nThe MLIR|\nJaxpr:|\nAdditional", message)[0].strip()
