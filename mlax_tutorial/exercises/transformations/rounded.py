"""Round like a TPU."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.checking.guarding import guard
from mlax_tutorial.checking.programs import fresh, under
from mlax_tutorial.inspection import jaxprs


def solution(function):
    def rule(bind, left, right, **params):
        if not jaxprs.asks_for_highest(params["precision"]):
            left, right = _to_bfloat16(left), _to_bfloat16(right)
        return bind(left, right, **params)

    return jaxprs.interpret(function, {"dot_general": rule, "conv_general_dilated": rule})


def _to_bfloat16(x):
    return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7) if x.dtype == jnp.float32 else x


def check(rounded):
    draw = np.random.default_rng(0)

    def random(*shape):
        return jax.device_put(np.float32(draw.normal(size=shape)))

    x, w, v = random(3, 4), random(4, 4), random(4, 2)
    images, kernels = random(1, 2, 6, 6), random(3, 2, 3, 3)

    def product(x, w):
        return x @ w

    def run(case, function, *arguments, why=()):
        """The reader's result of a case, compared with ours; or what is known to go wrong there."""
        with jax.default_matmul_precision(None):  # checks run at the highest precision: not here
            expected = solution(fresh(function))(*arguments)
            with checks.says(f"It happens with {case}." if case else ""):
                transformed = rounded(fresh(function))
                checks.returned(transformed)
                if not callable(transformed):
                    raise Failed(
                        "`rounded` takes a function and returns a function; the call comes later.",
                        got=transformed,
                    )
                got = guard(transformed, "rounded")(*arguments)
            for wrong, advice in () if checks.agrees(got, expected) else why:
                alternative = wrong(*arguments)
                if checks.agrees(got, alternative) and not checks.agrees(expected, alternative):
                    raise Failed(advice, input=case, expected=expected, got=got)
        checks.same(got, expected, input=case or "a product", rtol=1e-4, atol=1e-5)

    def cut(x):
        bits = lax.bitcast_convert_type(x, jnp.uint32) & jnp.uint32(0xFFFF0000)
        return lax.bitcast_convert_type(bits, jnp.float32)

    def half(x):
        return x.astype(jnp.bfloat16)

    low = _to_bfloat16
    run(
        "a product, x @ w",
        product,
        x,
        w,
        why=(
            (lambda x, w: x @ w, "Nothing is rounded."),
            (
                lambda x, w: low(low(x) @ low(w)),
                "The result is rounded, too. Products are added up in float32.",
            ),
            (lambda x, w: low(x @ w), "The result is rounded, and the inputs are not."),
            (lambda x, w: low(x) @ w, "Only the first input is rounded."),
            (lambda x, w: x @ low(w), "Only the second input is rounded."),
            (
                lambda x, w: cut(x) @ cut(w),
                "The bits behind the seventh are cut off. To round is to take the *nearest* number.",
            ),
            (
                lambda x, w: (x.astype(jnp.float16) @ w.astype(jnp.float16)).astype(jnp.float32),
                "This looks like float16, which has other digits than bfloat16.",
            ),
        ),
    )
    run(
        "two products, (x @ w) @ v",
        lambda x, w, v: (x @ w) @ v,
        x, w, v,
        why=(
            (lambda x, w, v: (low(x) @ low(w)) @ low(v), "What is rounded are the inputs of your function, not those of each product."),
        ),
    )  # fmt: skip
    run(
        "a product of two elements, x * w, which is no `dot_general`",
        lambda x, w: x * w,
        x,
        jax.device_put(np.asarray(w)[:3]),
        why=((lambda x, w: low(x) * low(w), "Products of elements stay as they are: a TPU's matrix unit does not see them."),),
    )  # fmt: skip
    nothing_inside = "Inside, nothing is rounded: the product stands in a program that an equation holds."
    run("a jitted product", jax.jit(product), x, w, why=((product, nothing_inside),))

    def scanned(x, w):
        return lax.scan(lambda x, _: (jnp.tanh(x @ w), x @ w), x, None, length=3)

    run("products in a scan", scanned, x, w, why=((scanned, nothing_inside),))

    def convolve(images, kernels):
        return lax.conv_general_dilated(images, kernels, (1, 1), "SAME")

    run(
        "a convolution",
        convolve,
        images,
        kernels,
        why=(
            (convolve, "Convolutions are products as well: `conv_general_dilated`."),
            (
                lambda images, kernels: convolve(half(images), half(kernels)).astype(jnp.float32),
                "The products are added up in bfloat16, since the rounded inputs have that dtype. Round them, and convert "
                "them back to float32.",
            ),
        ),
    )

    def exact(x, w):
        return jnp.dot(x, w, precision="highest")

    run(
        'jnp.dot(x, w, precision="highest")',
        exact,
        x,
        w,
        why=((lambda x, w: exact(low(x), low(w)), "This product asks for the highest precision, and a TPU grants it: leave it alone."),),
    )  # fmt: skip
    run(
        'jnp.dot(x, w, precision="default")',
        lambda x, w: jnp.dot(x, w, precision="default"),
        x,
        w,
        why=((product, "A product that names a precision is rounded as well, unless that is the highest."),),
    )
    run(
        "a product of a float32 and a bfloat16 array, by lax.dot_general",
        lambda x, w: lax.dot_general(x, w, (((1,), (0,)), ((), ())), preferred_element_type=jnp.float32),
        x,
        jax.device_put(np.asarray(w).astype(jnp.bfloat16)),
    )
    whole = np.arange(1000, 1012, dtype=np.int32).reshape(3, 4)
    run("a product of whole numbers", product, *jax.device_put((whole, whole.T)))
    halves = [np.asarray(table).astype(jnp.bfloat16) for table in (x, w)]
    run("a product of bfloat16 arrays", product, *jax.device_put(halves))

    def loss(params, x):
        return jnp.sum(jnp.tanh(x @ params["kernel"]) ** 2)

    run("jax.grad(loss), with a dict of params", jax.grad(loss), {"kernel": w}, x)
    with jax.default_matmul_precision(None):
        small = jax.device_put(np.asarray(x)[:2, :2])
        transformed = jax.jit(guard(rounded(fresh(product)), "rounded"))
        expected = solution(product)(small, small)
        with under("`jax.jit`"):
            got = transformed(small, small)
        if not checks.agrees(got, expected) and checks.agrees(got, product(small, small)):
            raise Failed(
                "Under `jax.jit` nothing is rounded any more: XLA may leave out the way to bfloat16 and back, as it "
                "loses digits. `lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)` says that this is meant.",
                got=got,
            )
        checks.same(got, expected, where="under `jax.jit`", rtol=1e-4, atol=1e-5)


exercise = Exercise(
    title="Round like a TPU",
    stars=2,
    minutes=15,
    why="A device that you do not have can be rehearsed: what its arithmetic does is one rule for two primitives.",
    hints=(
        "`jaxprs.interpret(function, rules)` does the work. Both names get the same rule.",
        "A rule: `def rule(bind, left, right, **params): ... return bind(left, right, **params)`.",
        "`lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)` rounds to bfloat16 and keeps the dtype. Apply it to "
        "float32 inputs alone, and only unless `jaxprs.asks_for_highest(params['precision'])`.",
    ),
    solution=solution,
    check=check,
)
