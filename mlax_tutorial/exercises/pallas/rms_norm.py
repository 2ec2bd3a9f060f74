"""RMS norm in one kernel, and its gradient in another."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.checking.programs import under
from mlax_tutorial.exercises.pallas import _twice


def solution(x, scale, interpret=True):
    rows = pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
    whole = pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0))
    call = functools.partial(pl.pallas_call, grid=(x.shape[0] // 8,), interpret=interpret)

    def normalize(x_ref, scale_ref, y_ref):
        x = x_ref[...]
        y_ref[...] = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale_ref[...]

    def differentiate(x_ref, scale_ref, g_ref, dx_ref, dscale_ref):
        @pl.when(pl.program_id(0) == 0)
        def _():
            dscale_ref[...] = jnp.zeros_like(dscale_ref)

        x, g = x_ref[...], g_ref[...]
        r = jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
        dscale_ref[...] += (g * x * r).sum(axis=0, keepdims=True)
        g = g * scale_ref[...]
        dx_ref[...] = g * r - x * r**3 * jnp.mean(g * x, axis=-1, keepdims=True)

    @jax.custom_vjp
    def norm(x, scale):
        return call(normalize, out_shape=x, in_specs=[rows, whole], out_specs=rows)(x, scale)

    def backward(saved, g):
        specs = dict(in_specs=[rows, whole, rows], out_specs=[rows, whole])
        return call(differentiate, out_shape=list(saved), **specs)(*saved, g)

    norm.defvjp(lambda x, scale: (norm(x, scale), (x, scale)), lambda saved, g: tuple(backward(saved, g)))
    return norm(x, scale)


def _other_width(rms_norm, gradient):
    """With 384 features and 32 rows, forward and backward, against the formulas."""
    x, scale, g = _twice.normal(3, 32, 384), 1 + _twice.normal(4, 1, 384) / 2, _twice.normal(5, 32, 384)
    got = _twice.interpreted(lambda *args, interpret: (rms_norm(*args, interpret=interpret), *gradient(*args, g, interpret=interpret)), x, scale)  # fmt: skip
    a, s, h = map(np.float64, (x, scale, g))
    r = 1 / np.sqrt((a * a).mean(axis=-1, keepdims=True) + 1e-6)
    dscale, h = (h * a * r).sum(axis=0, keepdims=True), h * s
    wanted = a * r * s, h * r - a * r**3 * (h * a).mean(-1, keepdims=True), dscale
    for name, one, other in zip(("result", "gradient by x", "gradient by `scale`"), got, wanted, strict=True):
        if not _twice.close(one, other, 1e-3):
            raise Failed(
                f"Right for 16 rows of 128 features; for 32 rows of 384 the {name} is wrong. Is a size written down as a constant, for "
                "the mean, say? Take it from the shape of x.",
                input={"x": x, "scale": scale},
                expected=other.astype(np.float32),
                got=one,
            )


def check(rms_norm):
    x, scale, g = _twice.normal(0, 16, 128), 1 + _twice.normal(1, 1, 128) / 2, _twice.normal(2, 16, 128)
    x = x * np.geomspace(0.01, 3, 16, dtype=np.float32)[:, None]  # where 1e-6 counts, and where it does not
    given = {"x": x, "scale": scale}
    got = _twice.interpreted(rms_norm, x, scale)
    _twice.array(got, x.shape, jnp.float32, **given)
    a, s, h = map(np.float64, (x, scale, g))
    r = 1 / np.sqrt((a * a).mean(axis=-1, keepdims=True) + 1e-6)
    if not _twice.close(got, a * r * s):
        if _twice.close(got, a * r):
            raise Failed("The result is not multiplied by `scale`.", input=given)
        if _twice.close(
            got, (a - a.mean(-1, keepdims=True)) / np.sqrt(a.var(-1, keepdims=True) + 1e-6) * s, 1e-3
        ):
            raise Failed("This is layer norm: RMS norm does not subtract the mean.", input=given)
        raise Failed("The forward pass is wrong.", input=given, expected=a * r * s, got=got)

    def loss(x, scale, interpret):
        return (rms_norm(x, scale, interpret=interpret) * g).sum()

    gradient = jax.grad(loss, argnums=(0, 1))
    try:
        with under("`jax.grad`"):
            dx, dscale = _twice.interpreted(gradient, x, scale)
    except (AssertionError, Failed) as error:
        if isinstance(error, Failed) and "Linearization failed" not in error.message:
            raise
        raise Failed("`jax.grad` cannot differentiate a kernel. Give it a rule of its own, by `jax.custom_vjp`.") from None  # fmt: skip
    wanted = (h * a * r).sum(axis=0, keepdims=True)
    if _twice.nans(dscale):
        raise Failed(
            "The gradient by `scale` is NaN: the kernel adds to it before it is set to zeros.", input=given
        )
    if not _twice.close(dscale, wanted):
        blocks = [(h * a * r)[i : i + 8].sum(axis=0, keepdims=True) for i in (0, 8)]
        if any(_twice.close(dscale, block) for block in blocks):
            raise Failed("The gradient by `scale` is that of one block of rows: it has to be summed over all steps.", input=given)  # fmt: skip
        raise Failed("The gradient by `scale` is wrong.", input=given, expected=wanted, got=dscale)
    h = h * s
    if not _twice.close(dx, h * r - a * r**3 * (h * a).mean(-1, keepdims=True)):
        if _twice.close(dx, h * r):
            raise Failed("In the gradient by x, the root mean square is taken for a constant. It depends on x: a second term is missing.", input=given)  # fmt: skip
        raise Failed("The gradient by x is wrong.", input=given, expected=h * r - a * r**3 * (h * a).mean(-1, keepdims=True), got=dx)  # fmt: skip

    def slope(x, scale, g, interpret):
        return jax.grad(lambda x, s: (rms_norm(x, s, interpret=interpret) * g).sum(), argnums=(0, 1))(
            x, scale
        )

    _other_width(rms_norm, slope)
    _twice.legal(rms_norm, x, scale, what="The forward pass")
    _twice.legal(
        gradient, x, scale, kernels=2, what="The gradient",
        fewer="But the backward pass is no kernel: `pl.pallas_call` is called in the forward pass alone.",
    )  # fmt: skip
    long = jax.grad(
        lambda x, scale, interpret: jnp.square(rms_norm(x, scale, interpret=interpret)).sum(), argnums=(0, 1)
    )
    called = _twice.calls(long, *(jax.ShapeDtypeStruct((rows, 256), jnp.float32) for rows in (64, 1)))
    made = [{each.aval.shape for each in call.outvars} for call in called]
    if not any(
        (64, 256) in each and any(shape[0] != 64 and shape[-1] == 256 for shape in each) for each in made
    ):
        raise Failed(
            "Right, but no kernel gives both cotangents: one pass over the rows makes dx and adds up dscale. Let it have two outputs."
        )
    _twice.at_work(lambda x, scale, g, interpret: jax.vjp(functools.partial(rms_norm, interpret=interpret), x, scale)[1](g), x, scale, g)  # fmt: skip
    for call in called:
        _twice.inside(call)
        _twice.no_race(call)
        _twice.stays(call)
        if np.prod(_twice.grid(call), dtype=int) < 8:
            raise Failed(
                f"Right, but 64 rows should be 8 blocks of 8 rows, and a grid is {_twice.grid(call)}."
            )


exercise = Exercise(
    title="RMS norm, fused both ways",
    stars=3,
    minutes=20,
    why="A kernel is opaque to JAX's autodiff, so its author owes the gradient: here each row is read once forward and once backward.",
    hints=(
        "Two kernels and `jax.custom_vjp`. Inside of `rms_norm`, define a function `norm(x, scale)` that calls the first kernel, so "
        "that `interpret` is no argument of it; save x and scale for the second.",
        "With r = rsqrt(mean(x²) + 1e-6) and h = g · scale, the gradient by x is h r - x r³ mean(h x), and that by scale the sum of "
        "g x r over all rows.",
        "The second kernel has two outputs: dx in blocks of rows, and dscale in one block (0, 0), to which each step adds. Set it to "
        "zeros at step 0.",
    ),
    solution=solution,
    check=check,
)
