"""A mixture of experts: a router sends each token to one of them, and a balance loss keeps all of them busy (Fedus et al., 2021)."""

import jax
import jax.numpy as jnp
import pytest

from mlax_tutorial import nn, optim, training

EXPERTS = 4


class Mixture(nn.Composite):
    """Each expert sees all tokens here, and only the chosen one counts; which is enough to learn by."""

    router: nn.Layer
    experts: nn.Layer

    def forward(self, call, x):
        chances = jax.nn.softmax(call.router(x))  # (tokens, experts)
        chosen = jax.nn.one_hot(jnp.argmax(chances, axis=-1), EXPERTS)
        call.note("balance", EXPERTS * jnp.sum(chosen.mean(axis=0) * chances.mean(axis=0)))
        return jnp.einsum("te,tef->tf", chosen * chances, call.experts(x))


def mixture():
    expert = nn.Series(nn.Linear(16), nn.F(jnp.tanh), nn.Linear(2))
    return Mixture(nn.Linear(EXPERTS), nn.Vmap(expert, EXPERTS, shared=True))


def squared_error(outputs, targets):
    return jnp.mean((outputs - targets) ** 2)


def balanced(outputs, targets, notes):
    balance = sum(notes["balance"].values())
    return squared_error(outputs, targets) + 0.1 * balance, {"balance": balance}


def test_the_balance_loss_keeps_the_experts_busy():
    x = jax.random.normal(jax.random.key(0), (64, 3)) + 2
    model, optimizer = mixture(), optim.Adam(1e-2)
    trainables, rest = model.init(jax.random.key(1), x)
    targets = jnp.sin(3 * x[:, :2])
    used = {}
    for loss, has_aux in ((squared_error, False), (balanced, True)):
        step = training.make_step(model, loss, has_aux=has_aux)
        begun = jax.tree.map(jnp.copy, trainables)
        state, told = training.State(begun, rest, optimizer.init(begun)), []
        for _ in range(60):
            state, found = step(optimizer, state, None, x, targets)
            told.append(found)
        (_, _), noted = nn.notes(model)(x, *tuple(state)[:2])
        used[loss] = float(noted["balance"][""])
    assert told[-1][0] < told[0][0] and told[-1][1]["balance"] == pytest.approx(used[balanced], rel=0.1)
    assert used[balanced] < 1.1 < used[squared_error]  # 1 is even, 4 is a single expert
