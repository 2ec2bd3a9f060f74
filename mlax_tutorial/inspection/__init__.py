"""Tools that look into programs. Each works on any JAX function, and none needs the library.

=================  =================================================================================
:mod:`.jaxprs`     walk a jaxpr, count its equations, interpret it
:mod:`.costs`      what each line of a program costs: operations and bytes
:mod:`.dtypes`     where a dtype changes that should not
:mod:`.gradients`  compare gradients with differences
:mod:`.retracing`  count traces and compilations, and say why there was another one
:mod:`.failures`   run code that must fail, and show the error as a reader needs it
:mod:`.timing`     measure and compare running times: warmed up, waiting for the result
=================  =================================================================================
"""
