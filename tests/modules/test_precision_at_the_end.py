"""A float32 head at the end of a half-precision model: what comes last is not rounded."""

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import nn
from mlax_tutorial.precision import Policy

HALF, FULL = Policy("bfloat16"), Policy("float32")
HEAD = FULL.apply(nn.F(lambda x: x + 0.001))  # of 1: bfloat16 has no number between 1 and 1.0078
KEPT, ROUNDED = float(jnp.float32(1.001)), 1.0


class Own(nn.Composite):
    head: nn.Layer

    def forward(self, call, x):
        return call.head(x)


PLACES = {
    "at the end": (nn.Series(nn.F(abs), HEAD), KEPT),
    "with a name": (nn.Series(body=nn.F(abs), head=HEAD), KEPT),
    "alone": (HEAD, KEPT),
    "at the end of the end": (nn.Series(nn.F(abs), nn.Remat(nn.Series(nn.F(abs), HEAD))), KEPT),
    "in inference mode at the end": (nn.Series(nn.F(abs), nn.Inference(HEAD)), KEPT),
    "copies of it at the end": (nn.Series(nn.F(abs), nn.Vmap(HEAD, 2, shared=True)), KEPT),
    "one of two heads": (nn.Series(nn.F(abs), nn.Parallel(HEAD, nn.F(abs))), (KEPT, 1.0)),
    "in a policy at the end": (nn.Series(nn.F(abs), FULL.apply(nn.Series(nn.F(abs), HEAD))), KEPT),
    "of two the first, equal to the last": (nn.Series(HEAD, nn.F(lambda x: x * 1), HEAD), KEPT),
    "before another": (nn.Series(HEAD, nn.F(abs)), ROUNDED),
    "in a Series that goes on": (nn.Series(nn.Series(HEAD), nn.F(abs)), ROUNDED),
    "where a sum follows": (nn.Residual(HEAD), 2.0),
    "in a forward of one's own": (Own(HEAD), ROUNDED),
    "there, with a dtype": (Own(Policy("float32", output_dtype="float32").apply(HEAD)), KEPT),
}


@pytest.mark.parametrize(("model", "wanted"), PLACES.values(), ids=list(PLACES))
def test_what_comes_last_keeps_its_precision(model, wanted):
    y, _ = HALF.apply(model).fwd(jnp.ones(2), (), ())
    assert jax.tree.map(lambda y: float(y.ravel()[0]), y) == wanted
    assert {leaf.dtype.name for leaf in jax.tree.leaves(y)} == {"float32"}


def test_what_a_policy_says_itself_stands():
    y, _ = Policy("bfloat16", output_dtype="bfloat16").apply(nn.Series(HEAD)).fwd(jnp.ones(2), (), ())
    assert y.dtype == "bfloat16"
    y, _ = HALF.apply(nn.Series(Policy("float32", output_dtype="float16").apply(HEAD))).fwd(
        jnp.ones(2), (), ()
    )
    assert float(y[0]) == float(jnp.float16(1.001))
