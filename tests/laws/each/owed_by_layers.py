"""What each row of a layer owes: all laws, and what the laws do not look at.

The files beside this one give it their rows, a file for each family of layers, so that a run can take some of them.
"""

import gc
import weakref

import jax
import numpy as np
import pytest

from mlax_tutorial.checking.laws import LAYER as LAWS  # noqa: F401
from tests.laws.rows.judging import judge
from tests.settings import configured

# One law is looked at as a user compiles, and one where NaN is an error.
SETTINGS = {
    "eager equals jit": {"jax_disable_most_optimizations": False},
    "init repeats": {"jax_debug_nans": True},
}


def test_layers_obey_the_laws(row, law):
    with configured(**SETTINGS.get(law.name, {})):
        judge(law, row.subject)


def test_weights_in_half_precision_are_those_of_float32_rounded(row):
    """JAX draws a bfloat16 normal from seven random bits: 128 values, whose mean is not zero."""
    subject = row.subject

    @jax.jit
    def init(key):
        return {
            dtype: subject.declared(dtype).init(jax.random.clone(key), subject.outline(dtype))
            for dtype in ("float16", "bfloat16")
        }

    for dtype, made in init(jax.random.key(0)).items():
        types, _ = subject.program(dtype)
        for drawn, kind, wide in zip(*map(jax.tree.leaves, (made, types, subject.variables)), strict=True):
            assert drawn.dtype == kind.dtype
            drawn, wide = (np.asarray(leaf, "float32") for leaf in (drawn, wide))
            np.testing.assert_allclose(drawn, wide, rtol=2**-8, atol=2**-24)


def test_one_batch_axis_gives_what_two_give(row):
    """The laws compare one by its shape alone; the examples of two with each by itself."""
    subject = row.subject
    if subject.always:
        pytest.skip("it draws another number for each shape")
    whole, _ = subject.eager(True)
    part, _ = jax.jit(lambda x, variables: row.layer.fwd(x, *variables, inference_mode=True))(
        subject.x[0], subject.variables
    )
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b[0], rtol=1e-5, atol=1e-6), part, whole)


def test_a_call_leaves_nothing_to_the_garbage_collector(row):
    """A cycle would keep the weights of every call until Python collects, and JAX's check for leaks would have to wait for that."""
    subject, seen = row.subject, []

    def fwd(x, variables, key):
        seen.extend(map(weakref.ref, jax.tree.leaves((x, variables))))
        return row.layer.fwd(x, *variables, key=key)

    key = subject.keys()
    gc.disable()
    try:
        jax.make_jaxpr(fwd)(subject.outline(), subject.outlines, key)
        kept = [held() for held in seen if held() is not None]
    finally:
        gc.enable()
    assert seen and not kept
