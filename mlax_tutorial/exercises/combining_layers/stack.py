"""A repeated block as a scan."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.combining_layers._watched import (
    OF_THE_LAYERS_INSIDE,
    Count,
    Draws,
    Fixed,
    Noise,
    agrees,
    catches_reuse,
    counts,
    keeps_what_init_made,
    method,
    passes_gradients_on,
    says_whether_it_needs_a_key,
)
from mlax_tutorial.inspection import jaxprs


class DeepStack(nn.Layer):
    layer: nn.Layer
    depth: int
    remat: bool = False

    @property
    def needs_key(self):
        return self.layer.needs_key

    def init(self, key, x):
        keys = jax.random.split(key, self.depth)
        return jax.vmap(lambda key: self.layer.init(key, x))(keys)

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        keys = None
        if key is not None and self.needs_key:
            keys = jax.random.split(key, self.depth)

        def block(x, slices):
            trainables, non_trainables, key = slices
            fwd = partial(self.layer.fwd, key=key, inference_mode=inference_mode)
            return fwd(x, trainables, non_trainables)

        if self.remat:
            block = jax.checkpoint(block)
        return jax.lax.scan(block, x, (trainables, non_trainables, keys), length=self.depth)


BLOCK = nn.Series(nn.Linear(3), nn.F(jnp.sin))


def check(DeepStack):
    x = jax.device_put(np.array([[1.0, -2.0, 0.5], [0.25, 3.0, -1.0]], np.float32))
    model = checks.make(DeepStack, BLOCK, 4)
    variables = _stacked(model, x)
    y, _ = method(model, "fwd")(x, *variables)
    kernels = np.asarray(variables[0][0]["kernel"])
    _right_value(y, _by_hand(x, kernels), _by_hand(x, kernels[::-1]))
    _one_scan(DeepStack, x)
    says_whether_it_needs_a_key(lambda child: checks.make(DeepStack, child, 2))
    counts(checks.make(DeepStack, Count(), 2), lambda tree: {"runs": np.asarray(tree["runs"]).mean()}, x)
    _keys(DeepStack, x)
    passes_gradients_on(model, _in_a_loop, x, *variables)
    _recomputes(DeepStack, x)
    _recomputes_in_training(DeepStack, x)
    checks.obeys_laws(checks.make(DeepStack, Count(), 2), x, but=OF_THE_LAYERS_INSIDE)
    keeps_what_init_made(checks.make(DeepStack, Fixed(), 2), lambda tree: tree, x)


def _stacked(model, x):
    variables = jax.jit(method(model, "init"))(jax.random.key(0), x)
    shapes = jax.tree.map(jnp.shape, variables[0])
    if shapes != ({"kernel": (4, 3, 3)}, ()):
        raise Failed(
            "The trainables should be those of one block with the depth, here 4, as a leading axis.",
            expected=({"kernel": (4, 3, 3)}, ()),
            got=shapes,
        )
    kernels = np.asarray(variables[0][0]["kernel"])
    if any(np.array_equal(kernels[0], other) for other in kernels[1:]):
        raise Failed("All blocks begin with the same weights: each needs a key of its own in `init`.")
    return variables


def _in_a_loop(x, trainables):
    for kernel in trainables[0]["kernel"]:
        x = jnp.sin(x @ kernel)
    return x


def _by_hand(x, kernels):
    y = np.asarray(x)
    for kernel in kernels:
        y = np.sin(y @ kernel)
    return y


def _right_value(y, expected, backwards):
    if getattr(y, "shape", None) == backwards.shape and np.allclose(y, backwards, atol=1e-5):
        raise Failed("The blocks are applied from the last to the first.", expected=expected, got=y)
    agrees(y, expected, "for 4 blocks")


def _program(model, x):
    key = jax.eval_shape(lambda: jax.random.key(0))
    variables = jax.eval_shape(lambda key, x: method(model, "init")(key, x), key, x)
    return jax.make_jaxpr(lambda x, *variables: method(model, "fwd")(x, *variables))(x, *variables)


def _one_scan(DeepStack, x):
    sizes = {}
    for depth in (4, 12):
        program = _program(checks.make(DeepStack, BLOCK, depth), x)
        names = [equation.primitive.name for _, equation in jaxprs.walk(program)]
        loops = [e for _, e in jaxprs.walk(program) if e.primitive.name == "scan"]
        if len(loops) != 1:
            raise Failed(
                f"The jaxpr of `fwd` holds {len(loops)} times a `scan`; there should be one, over the blocks.",
                shown=[("equations", ", ".join(names[:16]))],
            )
        if loops[0].params["length"] != depth or loops[0].params["unroll"] not in (1, False):
            raise Failed(
                f"The `scan` goes over {loops[0].params['length']} slices, unrolled {loops[0].params['unroll']} times; "
                f"it should go over the {depth} blocks, one at a time."
            )
        sizes[depth] = len(names)
    if sizes[4] != sizes[12]:
        raise Failed(
            f"The jaxpr of `fwd` has {sizes[4]} equations for 4 blocks and {sizes[12]} for 12: it should not grow with "
            "the depth."
        )


def _keys(DeepStack, x):
    model = checks.make(DeepStack, Noise(), 2)
    variables = method(model, "init")(jax.random.key(1), x)
    quiet, _ = method(model, "fwd")(x, *variables, inference_mode=True)
    checks.same(quiet, x, where="in inference mode, without a key")
    _draw_apart(DeepStack, x)
    catches_reuse(model, x, variables)
    counting = checks.make(DeepStack, Count(), 2)  # which complains if it is given a key
    variables = method(counting, "init")(jax.random.key(3), x)
    method(counting, "fwd")(x, *variables, key=jax.random.key(2))


def _recomputes_in_training(DeepStack, x):
    """With `remat=True`, too, blocks draw, update, and hear whether they are in training."""
    with checks.says("With `remat=True`:"):
        counting = checks.make(DeepStack, Count(), 2, True)
        counts(counting, lambda tree: {"runs": np.asarray(tree["runs"]).mean()}, x)
        _draw_apart(DeepStack, x, True)
        noisy = checks.make(DeepStack, Noise(), 2, True)
        catches_reuse(noisy, x, method(noisy, "init")(jax.random.key(1), x))


def _draw_apart(DeepStack, x, remat=False):
    """Each block draws numbers of its own, from the key that `fwd` got."""
    model = checks.make(DeepStack, Draws(), 4, remat)
    variables = method(model, "init")(jax.random.key(1), x)
    with jax.debug_key_reuse(False):
        draw = jax.jit(lambda key: method(model, "fwd")(x, *variables, key=key)[1]["drawn"])
        first, other = (np.asarray(draw(jax.random.key(seed))) for seed in (2, 3))
    if any(np.array_equal(first[i], first[j]) for i, j in itertools.combinations(range(4), 2)):
        raise Failed(
            "All blocks draw the same random numbers: split the key into as many as there are blocks, and let `scan` slice the keys "
            "along with the weights.",
            got=first,
        )
    if np.array_equal(first, other):
        raise Failed(
            "Another key gives the same random numbers: split the key that `fwd` was given.", got=first
        )


def _stored(model, x):
    """In the program of the gradient: arrays that its loops stack up, besides the gradient itself; and how many loops."""
    init, fwd = method(model, "init"), method(model, "fwd")
    variables = jax.eval_shape(lambda x: init(jax.random.key(0), x), x)
    gradient = jax.grad(lambda trainables, x: fwd(x, trainables, variables[1])[0].sum())
    program = jax.make_jaxpr(gradient)(variables[0], x)
    loops = [equation for _, equation in jaxprs.walk(program) if equation.primitive.name == "scan"]
    return sum(v.aval.shape == (4, 2, 3) for loop in loops for v in loop.outvars), len(loops)


def _recomputes(DeepStack, x):
    plain, _ = _stored(checks.make(DeepStack, BLOCK, 4), x)
    remat, loops = _stored(checks.make(DeepStack, BLOCK, 4, True), x)
    if loops > 2:
        raise Failed(
            "With `remat=True` the whole stack is recomputed at once, and stores everything the second time: `jax.checkpoint` "
            "belongs inside the `scan`, around one block."
        )
    if plain == remat == 1:
        raise Failed(
            "With `remat=False` the blocks are recomputed as well: apply `jax.checkpoint` only if `self.remat` is true."
        )
    if plain == remat:
        raise Failed(
            "With `remat=True` the backward pass stores the same as without: put `jax.checkpoint` around the function that "
            "the `scan` repeats."
        )
    if remat > 1:
        raise Failed(
            "With `remat=True` more is stored than the input of each block.",
            shown=[("stacked arrays of shape (4, 2, 3)", str(remat))],
        )


exercise = Exercise(
    title="A repeated block as a scan",
    stars=3,
    minutes=20,
    why="Sixty blocks compile as fast as one, and with recomputation they store only their inputs: large models are written so.",
    hints=(
        "`scan` slices every array of the tree that it goes over, so a third entry beside the two trees may be the keys.",
        "`None` is a tree without leaves: as a third entry it gives `None` to each block.",
        "`jax.checkpoint(block)` goes around the function that is given to `scan`, not around the `scan`.",
    ),
    solution=DeepStack,
    check=check,
)
