"""Layers that watch what a container does with them, and the questions that several exercises ask of a container."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial import nn
from mlax_tutorial.checking import Failed, checks, guarding
from mlax_tutorial.checking.laws.subject import pair
from mlax_tutorial.inspection import jaxprs

# Laws that a container of lawful layers does not break by itself, each a second of compiling.
OF_THE_LAYERS_INSIDE = {
    "batch equals loop",
    "vmap equals loop",
    "scan and checkpoint",
    "finite in half precision",
    "gradients",
    "init sharded",
    "shard_map",
}


NO_KEY = "In training, a layer that needs a key got None: give one to each layer whose `needs_key` is true."


class Noise(nn.Layer):
    """Adds noise in training; holds nothing. (Uniform, since normal numbers take longer to compile.)"""

    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if inference_mode:
            return x, non_trainables
        if key is None:
            raise Failed(NO_KEY)
        return x + jax.random.uniform(key, x.shape, x.dtype), non_trainables


class Draws(nn.Layer):
    """Leaves x as it is, and shows in its non_trainables what it drew from its key."""

    needs_key = True

    def init(self, key, x):
        return (), {"drawn": jnp.zeros(3)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if inference_mode:
            return x, non_trainables
        if key is None:
            raise Failed(NO_KEY)
        return x, {"drawn": jax.random.uniform(key, (3,))}


class Count(nn.Layer):
    """Scales x, and counts in its non_trainables how often it ran in training; wants no key."""

    def init(self, key, x):
        return {"scale": jax.random.uniform(key, x.shape[-1:], x.dtype)}, {"runs": jnp.zeros((), "int32")}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if key is not None:
            raise Failed("A layer that needs no key got one: layers whose `needs_key` is false get None.")
        return x * trainables["scale"].astype(x.dtype), {
            "runs": non_trainables["runs"] + (not inference_mode)
        }


class Fixed(nn.Layer):
    """Holds numbers that lose digits if they are rounded."""

    def init(self, key, x):
        return {"number": jnp.float32(1 / 3)}, {"number": jnp.float32(1 / 7)}

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x, non_trainables


def method(layer, name):
    """A method whose errors are the reader's, and whose result is a pair."""
    call = guarding.guard(getattr(layer, name), name)

    def run(*args, **kwargs):
        try:
            return pair(name, call(*args, **kwargs))
        except Failed as failure:
            if name == "init" and failure.message == NO_KEY:
                raise Failed(
                    "`init` asks what a layer returns in training, and a layer that needs a key has none there: look at the outline "
                    "of `fwd` with `inference_mode=True`."
                ) from None
            raise

    return run


def says_whether_it_needs_a_key(container, quiet=None):
    """``container`` makes a container of one child."""
    for child, wanted in [(Noise(), True), (quiet or nn.F(jnp.tanh), False)]:
        needs = container(child).needs_key
        if bool(needs) != wanted:
            raise Failed(
                f"`needs_key` of your container is {needs} when it holds {child!r}; it should be {wanted}. The container "
                "around it asks: it is true if any of the layers inside needs a key.",
            )


def different_noise(one, two, what):
    """Two amounts of noise that were drawn apart."""
    if np.allclose(one, two, atol=1e-6):
        raise Failed(f"{what} the same random numbers: each needs a key of its own, by `jax.random.split`.")


def catches_reuse(model, x, variables):
    """Within a call each key is used once, and a key that is passed to two calls is noticed by JAX's check.

    The blocks are known to draw different numbers.
    """
    key = jax.random.key(11)
    with jax.debug_key_reuse(True):
        try:
            model.fwd(x, *variables, key=key)
        except jax.errors.KeyReuseError:
            raise Failed(
                "The blocks draw different numbers, but JAX's check for reused keys complains in a single call of `fwd`: split once, "
                "outside of the loop, and let `scan` slice the keys along with the weights."
            ) from None
        try:
            model.fwd(x, *variables, key=key)
        except jax.errors.KeyReuseError:
            return
    because = hides_reuse(lambda x, key: model.fwd(x, *variables, key=key), x, jax.random.key(11))
    raise Failed(
        f"Two calls of `fwd` got the same key, and JAX's check for reused keys noticed nothing{because and f': {because}'}. Derive the "
        "keys with `jax.random.split`, straight from the key that comes in."
    )


def hides_reuse(run, x, key):
    """Which operation of ``run(x, key)`` keeps JAX's check from counting a use of the key, in words, or nothing."""
    names = {equation.primitive.name for _, equation in jaxprs.walk(jax.make_jaxpr(run)(x, key))}
    if "random_fold_in" in names:
        return "`fold_in` does not count as a use"
    if "random_clone" in names:
        return "`jax.random.clone` switches the check off for this key"
    return "taking the bits out of the key does not count as a use" if "random_unwrap" in names else ""


def counts(container, path, x):
    """The non_trainables of a ``Count`` inside: updated in training, and not in inference."""
    trainables, non_trainables = method(container, "init")(jax.random.key(4), x)
    fwd = method(container, "fwd")
    for inference_mode, wanted in [(False, 1), (True, 0)]:
        given = jax.tree.map(lambda leaf: leaf, non_trainables)
        _, updated = fwd(x, trainables, given, inference_mode=inference_mode)
        if not all(map(np.array_equal, jax.tree.leaves(given), jax.tree.leaves(non_trainables))):
            raise Failed(
                "`fwd` writes to the non_trainables that it was given, so the caller's own dict is another one afterwards: make a new one."
            )
        if jax.tree.structure(updated) != jax.tree.structure(non_trainables):
            raise Failed(
                "The non_trainables that `fwd` returns have another structure than those it got.",
                expected=non_trainables,
                got=updated,
            )
        runs = int(path(updated)["runs"])
        if runs == wanted:
            continue
        if wanted:
            raise Failed(
                "A layer updated its non_trainables, and `fwd` returned the old ones: collect what each layer returns.",
                expected={"runs": 1},
                got=path(updated),
            )
        raise Failed("A layer thought that it was in training: hand `inference_mode` on to every layer.")


def keeps_what_init_made(container, path, x):
    """The variables of a ``Fixed`` inside are in those of the container, as they were made."""
    made = method(container, "init")(jax.random.key(5), x)
    for role, tree, number in zip(("trainables", "non_trainables"), made, (1 / 3, 1 / 7)):
        got = np.asarray(path(tree)["number"])
        if not np.allclose(got, number, rtol=1e-6):
            raise Failed(
                f"A layer's `init` made the number {number:.7f} for its {role}, and your `init` returns another one: hand on what the "
                "layers make as it is.",
                expected=np.full_like(got, number),
                got=got,
            )


def passes_gradients_on(container, reference, x, trainables, non_trainables):
    """The gradients by x and by the trainables are those of ``reference(x, trainables)``, which has the same values."""
    fwd = method(container, "fwd")

    def slopes(run):
        return jax.jit(jax.grad(lambda x, tree: jnp.sum(jnp.sin(run(x, tree))), argnums=(0, 1)))(
            x, trainables
        )

    expected, got = slopes(reference), slopes(lambda x, tree: fwd(x, tree, non_trainables)[0])
    try:
        checks.same(got, expected, rtol=1e-3, atol=1e-4)
    except Failed:
        raise Failed(
            "The output is right, but its gradients by x and by the trainables are not: is there a `stop_gradient` on the way?",
            expected=expected,
            got=got,
        ) from None


def agrees(got, expected, where):
    """``expected`` may be NumPy's."""
    checks.same(got, jax.device_put(expected), where=where, rtol=1e-5, atol=1e-6)
