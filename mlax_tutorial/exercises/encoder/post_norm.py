"""The block of 2017, which normalizes after the sum."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks, guarding
from mlax_tutorial.checking.describe import is_array
from mlax_tutorial.checking.laws import LAYER, LayerSubject


class PostNorm(nn.TransformerBlock):
    def forward(self, call, x, **inputs):
        y = call.attention_norm(x + call.drop(call.attention(x, **inputs)))
        return call.mlp_norm(y + call.drop(call.mlp(y)))


_Own = PostNorm
NAMES = {"attention_norm", "attention", "mlp_norm", "mlp", "drop"}


def _variants(block, x, trainables, mask):
    """The outputs of the block and of those with a mistake, from its own parts."""
    parts = block.children()

    def part(name, x, **inputs):
        return parts[name].fwd(x, trainables[name], (), **inputs)[0]

    def attention(x, mask=mask):
        return part("attention", x, mask=mask)

    def first(x):
        return part("attention_norm", x)

    def second(x):
        return part("mlp_norm", x)

    def mlp(x):
        return part("mlp", x)

    y = first(x + attention(x))
    pre = x + attention(first(x))
    unmasked = first(x + attention(x, None))
    return {
        "": second(y + mlp(y)),
        "This is the pre-norm block: the norms stand in front of attention and perceptron. They belong behind the sums.": pre
        + mlp(second(pre)),
        "The mask does not reach attention: hand the further inputs on, `call.attention(x, **inputs)`.": second(
            unmasked + mlp(unmasked)
        ),
        "The norms stand behind attention and perceptron, but before the sums: normalize the sum.": (
            lambda y: y + second(mlp(y))
        )(x + first(attention(x))),
        "The norm behind the perceptron is missing.": y + mlp(y),
        "The norm behind attention is missing.": second(x + attention(x) + mlp(x + attention(x))),
        "The perceptron is given the sum before it is normalized.": second(y + mlp(x + attention(x))),
        "The two norms stand in each other's place.": (lambda y: first(y + mlp(y)))(second(x + attention(x))),
        "The way around the parts is missing: add what goes into each.": second(mlp(first(attention(x)))),
        "The second sum adds x: it adds what goes into the perceptron.": second(x + mlp(y)),
    }


def check(PostNorm):
    block = checks.make(PostNorm, 8, heads=2)
    if not isinstance(block, nn.TransformerBlock):
        raise Failed(
            "Derive from `nn.TransformerBlock`: it brings the parts.", got=type(block).__mro__[1].__name__
        )
    x = np.sin(np.arange(80.0) * 1.7).reshape(2, 5, 8).astype(np.float32)
    mask = (np.arange(5) < np.array([5, 3])[:, None])[:, None, :]
    subject = LayerSubject(block, (5, 8))
    LAYER["signature"](subject)
    outline, _ = jax.eval_shape(subject.init, jax.random.key(0), x)
    if not isinstance(outline, dict) or set(outline) != NAMES:
        found = sorted(outline) if isinstance(outline, dict) else outline
        raise Failed(f"The trainables should be a dict with {sorted(NAMES)}: call all children.", got=found)
    leaves, tree = jax.tree.flatten(outline)
    numbers = [
        jnp.asarray(0.3 * np.cos(1 + i + 1.3 * np.arange(leaf.size)).reshape(leaf.shape), jnp.float32)
        for i, leaf in enumerate(leaves)
    ]
    trainables = jax.tree.unflatten(tree, numbers)
    fwd = guarding.guard(block.fwd, "fwd")
    y = jax.jit(lambda x, t: fwd(x, t, (), mask=mask)[0])(x, trainables)
    if not is_array(y) or y.shape != x.shape:
        raise Failed(f"`forward` should return an array of the shape of x, {x.shape}.", got=y)
    wanted = jax.jit(lambda x, t: list(_variants(block, x, t, mask).values()))(x, trainables)
    for said, wrong in zip(_variants_names(block, x, trainables, mask), wanted):
        if np.allclose(y, wrong, atol=1e-4):
            if said:
                raise Failed(said, input={"x": x}, expected=wanted[0], got=y)
            _inputs(fwd, block, x, trainables)
            return _drops(PostNorm, x, trainables, mask)
    raise Failed("The output is wrong.", input={"x": x}, expected=wanted[0], got=y)


def _inputs(fwd, block, x, trainables):
    """Not the mask alone: all that attention can be given reaches it."""
    given = {
        "bias": jnp.asarray(np.cos(np.arange(50.0) * 2.3).reshape(2, 5, 5), jnp.float32),
        "segments": jnp.array([0, 0, 1, 1, 1]),
        "context": x[:, ::-1] * 2,
    }
    own = _Own(8, heads=2)
    one, wanted = _both(fwd, own.fwd, x, trainables, given)
    if np.allclose(one, wanted, atol=1e-4):
        return
    for name in given:  # which of them it is
        got, wanted = _both(fwd, own.fwd, x, trainables, {name: given[name]})
        if not np.allclose(got, wanted, atol=1e-4):
            raise Failed(
                f"The mask reaches attention, and `{name}` does not. `inputs` may hold more than a mask: hand all of it on, "
                "`call.attention(x, **inputs)`.",
                expected=wanted,
                got=got,
            )
    raise Failed("With several inputs at once the output is wrong.", input=given, expected=wanted, got=one)


def _both(fwd, own, x, trainables, given):
    return jax.jit(lambda x, t: [f(x, t, (), **given)[0] for f in (fwd, own)])(x, trainables)


def _drops(PostNorm, x, trainables, mask):
    y, wanted = (
        made(8, heads=2, dropout=0.5).fwd(x, trainables, (), key=jax.random.key(1), mask=mask)[0]
        for made in (PostNorm, _Own)
    )
    if not np.allclose(y, wanted, atol=1e-4):
        raise Failed(
            "With dropout the output is wrong. As in `nn.TransformerBlock`, `call.drop` takes what attention gives, and then what the "
            "perceptron gives, before each is added.",
            expected=wanted,
            got=y,
        )


def _variants_names(block, x, trainables, mask):
    names = []
    jax.eval_shape(lambda: (names.extend(_variants(block, x, trainables, mask)), 0)[1])
    return names


exercise = Exercise(
    title="The post-norm block",
    stars=2,
    minutes=10,
    why="What flows past the parts is normalized at every block, so its gradient is scaled at every block, too.",
    hints=(
        "Take the two lines of `nn.TransformerBlock.forward` and move each norm: from inside the call to around the sum.",
        "`y = call.attention_norm(x + call.drop(call.attention(x, **inputs)))`, and the same once more with `mlp_norm` and `mlp`.",
    ),
    solution=PostNorm,
    check=check,
)
