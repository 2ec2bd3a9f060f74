"""Tools that look into programs. Each works on any JAX function, and none needs the library.

==================  =================================================================================
:mod:`.jaxprs`      walk a jaxpr, count its equations, interpret it
:mod:`.collectives` what devices tell each other: all-reduces and their like, and their bytes
:mod:`.hosts`       run a function in several local processes, joined as several hosts are
:mod:`.costs`       what each line of a program costs: operations and bytes
:mod:`.lowering`    whether a program lowers for a TPU or a GPU: `lowers_for_tpu`, `lowers_for_gpu`
:mod:`.dtypes`      where a dtype changes that should not
:mod:`.gradients`   compare gradients with differences
:mod:`.retracing`   count traces and compilations, and say why there was another one
:mod:`.failures`    run code that must fail, and show the error as a reader needs it
:mod:`.profiles`    which operations took the most time, from a profile of JAX
:mod:`.timing`      measure and compare running times: warmed up, waiting for the result
==================  =================================================================================
"""

__all__ = ["lowers_for_gpu", "lowers_for_tpu"]


def __getattr__(name):
    if name in __all__:  # late: what imports another module of this package does without it
        from mlax_tutorial.inspection import lowering

        return getattr(lowering, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
