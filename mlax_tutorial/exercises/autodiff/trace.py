"""The trace of a Hessian that is never made."""

import jax
import jax.numpy as jnp
import numpy as np

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.programs import under
from mlax_tutorial.inspection import jaxprs


def solution(key, f, x, samples):
    signs = jax.random.rademacher(key, (samples, x.size), x.dtype)

    def one(v):
        return v @ jax.jvp(jax.grad(f), (x,), (v,))[1]

    return jnp.mean(jax.vmap(one)(signs))


def _separate(x):  # its Hessian is diagonal, so that every vector of signs gives the trace itself
    return jnp.sum(x**4) / 4


def _product(x):  # whatever the signs, a sample is -2 or 2, and the trace is 0
    return x[0] * x[1]


def _coupled(x):
    return jnp.sum(jnp.tanh(x[:-1] * x[1:])) + jnp.sum(x**2) * jnp.sum(jnp.sin(x))


def check(trace):
    x = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
    shown = {"input": "f(x) = sum(x**4) / 4 at x = [1, -2, 0.5, 3], 8 samples"}
    expected, gradient = np.sum(3 * x**2), x**3
    x = jax.device_put(x)

    def jitted(f, x, samples):
        return jax.jit(lambda key: trace(key, f, x, samples))

    with under("`jax.jit`"):
        got = jitted(_separate, x, 8)(jax.random.key(0))
    wrong = [
        (expected * 8, "The samples are added up: their mean is asked for."),
        (
            expected / 4,
            "The mean over the entries was taken as well: of one vector it is the sum, $v^T H v$.",
        ),
        (
            np.sum(gradient),
            "This is made of first derivatives: the Hessian times `v` is the derivative of the *gradient*.",
        ),
        (expected / 8, "Divided by the number of samples twice."),
    ]
    signs = (
        "The Hessian of this `f` is diagonal, so each vector of -1 and 1 gives the trace itself: are the entries of yours "
        "-1 and 1, and do they stand on both sides, $v^T H v$?"
    )
    wrong.append((got, signs))  # whatever else is wrong
    if isinstance(got, jax.Array) and got.shape:
        raise Failed("One number is asked for, the mean over all samples.", got=got, **shown)
    checks.same(got, jax.device_put(expected), recognise=wrong, rtol=1e-4, **shown)

    got = jitted(lambda x: -_separate(x), x, 3)(jax.random.key(0))
    checks.same(
        got, -expected, rtol=1e-4, input="f(x) = -sum(x**4) / 4, whose Hessian is diagonal and negative"
    )
    with under("`jax.jit`, where `x` is bfloat16"):
        got = jitted(_separate, x.astype(jnp.bfloat16), 3)(jax.random.key(0))
    checks.same(jnp.float32(got), expected, rtol=3e-2, input="f(x) = sum(x**4) / 4, and `x` in bfloat16")
    both = jitted(_product, x, 2)
    two = [float(both(jax.random.key(seed))) for seed in range(20)]
    if not np.allclose(np.abs(two), 2) and not set(np.round(two)) <= {-2.0, 0.0, 2.0}:
        raise Failed(
            "The result is wrong.", input="f(x) = x[0] * x[1], 2 samples: each is -2 or 2", got=two[0]
        )
    if np.allclose(np.abs(two), 2):
        raise Failed(
            "Of two samples the second always gives what the first gave. Is it a draw of its own? (`v` and `-v` are one and the same.)",
            input="f(x) = x[0] * x[1], 20 keys, 2 samples each",
        )
    many = jitted(_product, x, 9)
    odd = [float(many(jax.random.key(seed))) for seed in range(2)]
    if np.allclose(np.abs(odd), 2):
        raise Failed(
            "The mean of the samples is asked for: of many that are -2 or 2, your result is always -2 or 2.",
            input="f(x) = x[0] * x[1], 9 samples",
            got=odd[0],
        )

    x = jax.device_put(np.linspace(-1.0, 1.5, 6, dtype=np.float32))
    hessian = np.asarray(jax.jit(jax.hessian(_coupled))(x), np.float64)
    # Few samples, many keys: a Python loop over samples is right, and compiles as long as it has samples.
    samples, keys = 10, 10
    error = float(np.sqrt(2 * (np.sum(hessian**2) - np.sum(np.diag(hessian) ** 2)) / (samples * keys)))
    run = jitted(_coupled, x, samples)
    with under("`jax.jit`"):
        each = [float(run(jax.random.key(seed))) for seed in range(4 * keys)]
    found = np.mean(np.reshape(each, (4, keys)), axis=1)
    true = float(np.trace(hessian))
    off = float(np.abs(found - true).max())
    seen = [
        (f"means over {keys} keys each", ", ".join(f"{value:.4g}" for value in found)),
        ("trace", f"{true:.4g}"),
    ]
    if max(each) == min(each):
        raise Failed(f"{4 * keys} keys give the same estimate: it does not depend on the key.", shown=seen)
    if off > 6 * error:
        raise Failed(
            f"With {samples} samples for each of {keys} keys the mean is off by {off:.3g}, and {3 * error:.3g} would be much. "
            "Is every sample a draw of its own, and are its entries -1 and 1 with the same chance, each by itself?",
            shown=seen,
        )
    # Every entry of this Hessian is 1, so that one sample is the square of the sum of the signs: entries that go together show.
    for count in (6, 7):
        ones = jax.device_put(np.ones(count, np.float32))
        run = jitted(lambda x: jnp.sum(x) ** 2 / 2, ones, samples)
        together = np.mean([float(run(jax.random.key(seed))) for seed in range(40)])
        if abs(together - count) > 5 * np.sqrt(2 * (count**2 - count) / (40 * samples)):
            raise Failed(
                "The signs of one vector go together: some are repeated, or turned round. Draw every entry by itself.",
                input=f"f(x) = sum(x)**2 / 2, of {count} elements, {samples} samples for each of 40 keys: the trace is {count}",
                got=together,
            )
    size = 40
    with under("`jax.make_jaxpr`"):
        program = jax.make_jaxpr(lambda key, x: trace(key, _coupled, x, 3))(
            jax.random.key(0), np.ones(size, np.float32)
        )
    for _, equation in jaxprs.walk(program):
        for out in equation.outvars:
            shape = getattr(out.aval, "shape", ())
            if np.prod(shape, dtype=int) >= size * size:
                itself = (
                    "the Hessian itself" if shape == (size, size) else "as large as the Hessian, or larger"
                )
                raise Failed(
                    f"For an `x` of {size} elements your function makes an array of shape {tuple(shape)}: {itself}. "
                    "For a million parameters nobody has the room. One `jax.jvp` of the gradient gives the "
                    "Hessian times a vector.",
                )
    checks.keys(lambda key, x: trace(key, jax.jit(_separate), x, 2), jax.random.key(3), x, depends=False)


exercise = Exercise(
    title="The trace of a Hessian that is never made",
    stars=2,
    minutes=15,
    why="Forward over reverse asks a Hessian of any size a question, for a few times the cost of the function.",
    hints=(
        "The Hessian times `v` is the move of the gradient when `x` moves along `v`: one `jax.jvp`.",
        "`jax.jvp(jax.grad(f), (x,), (v,))[1]` is $H v$; its dot product with `v` is one sample.",
        "`jax.random.rademacher(key, (samples, x.size), x.dtype)` draws all vectors at once, and `vmap` does the rest.",
    ),
    solution=solution,
    check=check,
)
