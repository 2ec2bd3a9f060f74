"""Answers to the exercise pallas.rms_norm."""

import functools

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from mlax_tutorial.exercises.pallas.rms_norm import exercise
from tests.exercises.answers import Answers

answers = Answers(exercise)


def formula(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def through_x(x, scale, g):
    r = jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)
    h = g * scale
    return h * r - x * r**3 * jnp.mean(h * x, axis=-1, keepdims=True)


def norm_with(
    forward=formula, dx=through_x, *, zeros=lambda i: i == 0, rows=8, backward=None, rule=True, semantics=None
):
    def rms_norm(x, scale, interpret=True):
        block = pl.BlockSpec((rows, x.shape[1]), lambda i: (i, 0))
        whole = pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0))
        call = functools.partial(
            pl.pallas_call,
            grid=(x.shape[0] // rows,),
            interpret=interpret,
            compiler_params=pltpu.CompilerParams(dimension_semantics=semantics),
        )

        def normalize(x_ref, scale_ref, y_ref):
            y_ref[...] = forward(x_ref[...], scale_ref[...])

        def differentiate(x_ref, scale_ref, g_ref, dx_ref, dscale_ref):
            @pl.when(zeros(pl.program_id(0)))
            def _():
                dscale_ref[...] = jnp.zeros_like(dscale_ref)

            dscale_ref[...] += (g_ref[...] * formula(x_ref[...], 1.0)).sum(axis=0, keepdims=True)
            dx_ref[...] = dx(x_ref[...], scale_ref[...], g_ref[...])

        def norm(x, scale):
            return call(normalize, out_shape=x, in_specs=[block, whole], out_specs=block)(x, scale)

        def by_kernel(saved, g):
            specs = dict(in_specs=[block, whole, block], out_specs=[block, whole])
            return tuple(call(differentiate, out_shape=list(saved), **specs)(*saved, g))

        if rule:
            plain, norm = norm, jax.custom_vjp(norm)
            norm.defvjp(lambda x, scale: (plain(x, scale), (x, scale)), backward or by_kernel)
        return norm(x, scale)

    return rms_norm


def named(name, **options):
    made = norm_with(**options)
    made.__name__ = name
    return made


@answers.wrong("no kernel gives both cotangents")
def sums_outside(x, scale, interpret=True):
    rows = pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
    whole = pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0))
    call = functools.partial(
        pl.pallas_call, out_shape=x, grid=(x.shape[0] // 8,), out_specs=rows, interpret=interpret
    )

    def normalize(x_ref, scale_ref, y_ref):
        y_ref[...] = formula(x_ref[...], scale_ref[...])

    def differentiate(x_ref, scale_ref, g_ref, dx_ref):
        dx_ref[...] = through_x(x_ref[...], scale_ref[...], g_ref[...])

    @jax.custom_vjp
    def norm(x, scale):
        return call(normalize, in_specs=[rows, whole])(x, scale)

    def backward(saved, g):
        dx = call(differentiate, in_specs=[rows, whole, rows])(*saved, g)
        return dx, (g * formula(saved[0], 1.0)).sum(axis=0, keepdims=True)

    norm.defvjp(lambda x, scale: (norm(x, scale), (x, scale)), backward)
    return norm(x, scale)


@answers.wrong("XLA does the work")
def mean_outside(x, scale, interpret=True):
    """The kernel only multiplies."""
    block = pl.BlockSpec((8, x.shape[1]), lambda i: (i, 0))
    whole = pl.BlockSpec((1, x.shape[1]), lambda i: (0, 0))

    def multiply(x_ref, r_ref, scale_ref, y_ref):
        y_ref[...] = x_ref[...] * r_ref[...] * scale_ref[...]

    inner = norm_with(rule=True)

    @jax.custom_vjp
    def norm(x, scale):
        return forward(x, scale)[0]

    def forward(x, scale):
        r = jnp.broadcast_to(jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6), x.shape)
        y = pl.pallas_call(
            multiply,
            out_shape=x,
            grid=(len(x) // 8,),
            in_specs=[block, block, whole],
            out_specs=block,
            interpret=interpret,
        )(x, r, scale)
        return y, (x, scale)

    norm.defvjp(forward, lambda saved, g: jax.vjp(lambda x, s: inner(x, s, interpret), *saved)[1](g))
    return norm(x, scale)


answers.wrong("by `jax.custom_vjp`")(named("no_rule", rule=False))
answers.wrong("not multiplied by `scale`")(named("no_scale", forward=lambda x, scale: formula(x, 1.0)))
answers.wrong("does not subtract the mean")(
    named("layer_norm", forward=lambda x, scale: formula(x - x.mean(axis=-1, keepdims=True), scale))
)
answers.wrong("taken for a constant")(
    named("constant", dx=lambda x, scale, g: g * scale * formula(jnp.ones_like(x), 1.0) * formula(x, 1.0) / x)
)
answers.wrong("before it is set to zeros")(named("never_zero", zeros=lambda i: i < 0))
answers.wrong("that of one block of rows")(named("always_zero", zeros=lambda i: i >= 0))
answers.wrong("the backward pass is no kernel")(
    named("backward_by_xla", backward=lambda saved, g: jax.vjp(formula, *saved)[1](g))
)
answers.wrong("should be 8 blocks of 8 rows")(named("sixteen_rows", rows=16))
answers.wrong("A race")(named("parallel_rows", semantics=("parallel",)))
answers.wrong("does not lower for a TPU")(named("four_rows", rows=4))
answers.wrong()(
    named("no_root", forward=lambda x, scale: x / jnp.mean(x * x, axis=-1, keepdims=True) * scale)
)
answers.wrong()(named("dx_without_scale", dx=lambda x, scale, g: through_x(x, 1.0, g)))


@answers.right
def by_argument(x, scale, interpret=True):
    """`interpret` as an argument that is not differentiated."""
    return _norm(x, scale, interpret)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _norm(x, scale, interpret):
    return norm_with(rule=False)(x, scale, interpret)


def _backward(interpret, saved, g):
    """Two kernels: one for each gradient, by JAX's own rule inside of the kernel."""
    x, scale = saved
    features = x.shape[1]
    block, whole = (
        pl.BlockSpec((8, features), lambda i: (i, 0)),
        pl.BlockSpec((1, features), lambda i: (0, 0)),
    )
    each = pl.BlockSpec((1, 1, features), lambda i: (i, 0, 0))

    def kernel(x_ref, scale_ref, g_ref, dx_ref, part_ref):
        dx, dscale = jax.vjp(formula, x_ref[...], scale_ref[...])[1](g_ref[...])
        dx_ref[...] = dx
        part_ref[0] = dscale.sum(axis=0, keepdims=True)

    steps = len(x) // 8
    dx, parts = pl.pallas_call(
        kernel,
        out_shape=[x, jax.ShapeDtypeStruct((steps, 1, features), x.dtype)],
        grid=(steps,),
        in_specs=[block, whole, block],
        out_specs=[block, each],
        interpret=interpret,
    )(x, scale, g)
    return dx, parts.sum(axis=0)


_norm.defvjp(lambda x, scale, interpret: (_norm(x, scale, interpret), (x, scale)), _backward)


answers.equivalent(
    "(g * x * r).sum(axis=0, keepdims=True) -> (g * x * r).sum(axis=0)",
    because="a row is added to an array of one row",
)
answers.equivalent(
    "-1 -> 1", "-1 -> 1 (2)", "-1 -> 1 (3)", because="a block has two axes, and the last one is axis 1"
)


def of_128(x, scale):
    return x * jax.lax.rsqrt(jnp.sum(x * x, axis=-1, keepdims=True) / 128 + 1e-6) * scale


def through_128(x, scale, g):
    r, h = of_128(x, 1.0) / x, g * scale
    return h * r - x * r**3 * jnp.sum(h * x, axis=-1, keepdims=True) / 128


answers.wrong("for 32 rows of 384 the result is wrong")(named("mean_of_128", forward=of_128))
answers.wrong("for 32 rows of 384 the gradient by x is wrong")(named("gradient_of_128", dx=through_128))
answers.wrong("for 32 rows of 384 the result is wrong")(named("both_of_128", forward=of_128, dx=through_128))
