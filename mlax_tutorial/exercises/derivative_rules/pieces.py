"""Store a few, compute the rest again."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under
from mlax_tutorial.inspection import costs, jaxprs


def solution(layer, weights, x):
    def piece(x, some):
        return lax.scan(lambda x, w: (layer(w, x), None), x, some)

    return lax.scan(jax.checkpoint(piece), x, weights)[0]


def _smooth_layer(w, x):
    return x + jnp.tanh(x @ w)


def all_layers(layer, weights, x):
    return lax.scan(lambda x, w: (layer(w, x), None), x, weights.reshape(-1, *weights.shape[2:]))[0]


def check(pieces):
    from mlax_tutorial.viz.figures.passes import record

    count, each, width, rows = 4, 8, 4, 256
    weights = np.float32(np.sin(np.arange(count * each * width * width)) / 4).reshape(
        count, each, width, width
    )
    x = np.float32(np.cos(np.arange(rows * width))).reshape(rows, width)
    weights, x, few = jax.device_put((weights, x, x[:3]))
    shown = {"input": "4 pieces of 8 layers, `layer(w, x) = x + tanh(x @ w)`"}
    wrong = [
        (
            lambda: all_layers(_smooth_layer, jnp.swapaxes(weights, 0, 1), few),
            "The layers are in the wrong order.",
        ),
        (lambda: all_layers(_smooth_layer, weights[::-1, ::-1], few), "The layers run from last to first."),
        (lambda: all_layers(_smooth_layer, weights[:1], few), "Only the first piece is run."),
        (
            lambda: all_layers(_smooth_layer, weights[:, :1], few),
            "Only the first layer of each piece is run.",
        ),
    ]
    inside = "Inside a piece: `lax.scan` gives the last carry and the stacked outputs."
    with checks.says(lambda failure: inside if "carry" in failure.message else "", about="structure"):
        got = pieces(_smooth_layer, weights, few)
    if isinstance(got, (tuple, list)):
        raise Failed(
            "`lax.scan` returns a pair, the last carry and the stacked outputs. Only the carry is asked for: take `[0]`.",
            got=got,
            **shown,
        )
    expected = jax.jit(all_layers, static_argnums=0)(_smooth_layer, weights, few)
    checks.same(got, expected, recognise=wrong, **shown)

    def loss(weights, x):
        return jnp.sum(pieces(_smooth_layer, weights, x) ** 2)

    def reference(weights, x):
        return jnp.sum(all_layers(_smooth_layer, weights, x) ** 2)

    with under("`jax.grad`"):
        slopes = jax.grad(loss, (0, 1))(weights, few)
    checks.same(
        slopes,
        jax.jit(jax.grad(reference, (0, 1)))(weights, few),
        where="of the gradient",
        rtol=1e-3,
        atol=1e-2,
    )

    found = record(loss, weights, x, argnums=(0, 1))
    one, room = x.nbytes, weights.nbytes
    seen = [
        ("held between the passes", f"{found.kept / one:.1f} times `x`"),
        ("held at most", f"{found.peak / one:.1f} times `x`"),
    ]
    if found.kept > (count + 2) * one + 2 * room:
        layers = count * each
        much, advice = "every layer", "Nothing was saved: is `jax.checkpoint` round what is run?"
        if found.kept <= 1.5 * layers * one:
            advice = "A checkpoint stores its inputs: put it round a whole piece, not round each layer."
        if found.kept <= 0.9 * layers * one:
            much, advice = "more than the inputs of the pieces", "How many layers has each piece?"
        if _has_policy(loss, weights, x):
            advice = "A policy lets a checkpoint store more than its inputs: leave `policy` out here."
        raise Failed(f"Between the passes, values of {much} wait. {advice}", shown=seen)
    own = record(
        lambda weights, x: jnp.sum(solution(_smooth_layer, weights, x) ** 2), weights, x, argnums=(0, 1)
    )
    if found.peak > 1.3 * own.peak:
        raise Failed(
            "Little waits between the passes, but then too much comes back at once: whatever a checkpoint is round is "
            "computed again before the first step backwards through it. One for each piece, please.",
            shown=seen,
        )
    work = costs.cost(jax.value_and_grad(loss, (0, 1)), weights, x).flops
    once = costs.cost(reference, weights, x).flops
    if work > 4.6 * once:
        raise Failed(
            "The gradient costs more than a second run of the layers: checkpoints inside of checkpoints run some layers "
            "three times. They hold less, but that is not the bargain here.",
            shown=[*seen, ("operations", f"{work / once:.1f} times those of the function")],
        )
    checks.works_under_jit(lambda weights, x: pieces(_smooth_layer, weights, x), weights, few)


def _has_policy(loss, weights, x):
    program = jax.make_jaxpr(loss)(weights, x)
    found = [e for _, e in jaxprs.walk(program) if e.primitive.name in jaxprs.CHECKPOINT]
    return any(e.params.get("policy") is not None for e in found)


exercise = Exercise(
    title="Store a few, compute the rest again",
    stars=2,
    minutes=15,
    why="Memory that grows with the root of the depth, for one more run forward: so deep models are trained.",
    hints=(
        "Two loops, one inside the other: over the pieces, and over the layers of a piece.",
        "The body of the outer loop runs a whole piece. That body is what the checkpoint goes round.",
        "`lax.scan(jax.checkpoint(piece), x, weights)[0]`, where `piece(x, some)` is itself a scan.",
    ),
    solution=solution,
    check=check,
)
