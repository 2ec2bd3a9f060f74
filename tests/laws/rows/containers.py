"""Rows of the law table: layers made of layers."""

import jax
import jax.numpy as jnp

from mlax_tutorial import nn
from tests.laws.rows.row import BIAS_SUM, DROPOUT, LayerRow


class Gated(nn.Composite):
    """Calls one child twice, and draws."""

    value: nn.Layer
    gates: tuple
    drop: nn.Layer

    def forward(self, call, x):
        y = call.drop(call.value(x))
        for gate in call.gates:
            y = y * jax.nn.sigmoid(gate(x))
        return call.drop(call.value(y) * y)


class Token(nn.Composite):
    """A class token in front."""

    token: nn.Layer

    def forward(self, call, x):
        token = call.token(x)
        return jnp.concatenate([jnp.broadcast_to(token, (*x.shape[:-2], *token.shape)), x], axis=-2)


class Sample(nn.Composite):
    """Children from a hyperparameter, and noise of its own."""

    sizes: tuple
    draws = True

    def children(self):
        return {"layers": tuple(nn.Linear(size) for size in self.sizes)}

    def forward(self, call, x):
        for layer in call.layers:
            x = layer(x)
        if call.inference_mode:
            return x
        return x * jax.random.uniform(call.key(), x.shape, x.dtype)


class Mapped(nn.Composite):
    """Calls its child inside a transformation."""

    layer: nn.Layer

    def forward(self, call, x):
        return jax.checkpoint(call.layer)(x)


def _concatenate(ys):
    return jnp.concatenate(ys, axis=-1)


BLOCK = nn.Residual(nn.Series(nn.Linear(4), nn.Bias(), nn.F(jnp.tanh), nn.Dropout(0.5)))

LAYERS = [
    LayerRow(
        nn.Series(
            nn.Flatten(2), nn.Linear(5), nn.Bias(), nn.F(jax.nn.relu), nn.Series(nn.Linear(2), nn.F(jnp.tanh))
        ),
        (4, 3),
        accumulates=BIAS_SUM,
        unlike=(nn.Series(nn.Flatten(2)), nn.Series(nn.Flatten(2), nn.Linear(5))),
    ),
    LayerRow(
        nn.Series(nn.Linear(5), nn.Dropout(0.5), nn.Series(nn.Dropout(0.2), nn.Linear(2)), nn.Dropout(0.1)),
        (4,),
        draws=True,
        accumulates=DROPOUT,
        unlike=(nn.Series(nn.Linear(5), nn.Dropout(0.5), nn.Dropout(0.2), nn.Linear(2), nn.Dropout(0.1)),),
    ),
    LayerRow(nn.Series(), (4,), unlike=(nn.Series(nn.Flatten(1)),), same=nn.Series()),
    LayerRow(
        nn.Series(body=nn.Linear(3), bias=nn.Bias(), act=nn.F(jnp.tanh)),
        (4,),
        accumulates=BIAS_SUM,
        unlike=(nn.Series(nn.Linear(3), nn.Bias(), nn.F(jnp.tanh)), nn.Series(body=nn.Linear(3))),
        same=nn.Series(body=nn.Linear(3), bias=nn.Bias(), act=nn.F(jnp.tanh)),
    ),
    LayerRow(
        nn.Series(nn.Parallel(nn.Linear(2), nn.Series(nn.Linear(3), nn.Bias())), nn.F(_concatenate)),
        (4,),
        accumulates=BIAS_SUM,
        unlike=(nn.Series(nn.Series(nn.Linear(2), nn.Series(nn.Linear(3), nn.Bias())), nn.F(_concatenate)),),
    ),
    LayerRow(
        nn.Residual(nn.Series(nn.Linear(3), nn.F(jnp.tanh)), shortcut=nn.Linear(3)),
        (4,),
        unlike=(nn.Residual(nn.Series(nn.Linear(3), nn.F(jnp.tanh))),),
    ),
    LayerRow(
        Gated(nn.Linear(4), (nn.Linear(4), nn.Linear(4)), nn.Dropout(0.5)),
        (4,),
        draws=True,
        accumulates=DROPOUT,
    ),
    LayerRow(
        Token(nn.Weights((2, 4))),
        (3, 4),
        unlike=(Token(nn.Weights((1, 4))), Token(nn.Weights((2, 4), jax.nn.initializers.ones))),
        same=Token(nn.Weights([2, jnp.int32(4)])),
    ),
    LayerRow(Sample((3, 2)), (4,), draws=True, unlike=(Sample((3, 3)), Sample((2,)))),
    LayerRow(Mapped(nn.Series(nn.Linear(3), nn.F(jnp.tanh))), (4,)),
    LayerRow(nn.Remat(BLOCK), (4,), draws=True, accumulates=BIAS_SUM | DROPOUT, unlike=(BLOCK,)),
    LayerRow(
        nn.Stack(BLOCK, depth=3, remat=jax.checkpoint_policies.nothing_saveable),
        (4,),
        draws=True,
        accumulates=BIAS_SUM | DROPOUT,
        unlike=(nn.Stack(BLOCK, 3), nn.Stack(BLOCK, 2)),
    ),
    LayerRow(
        nn.Vmap(BLOCK, count=3),
        (3, 4),
        draws=True,
        accumulates=BIAS_SUM | DROPOUT,
        unlike=(nn.Vmap(BLOCK, 3, shared=True), nn.Vmap(BLOCK, 2)),
    ),
    LayerRow(nn.Inference(BLOCK), (4,), accumulates=BIAS_SUM, unlike=(BLOCK,)),
]
