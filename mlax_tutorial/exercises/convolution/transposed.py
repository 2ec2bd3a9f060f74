"""The transpose of a strided convolution."""

import jax
import numpy as np
from jax import lax

from mlax_tutorial.checking import Exercise, Failed, checks
from mlax_tutorial.exercises.convolution._reference import transpose, waves


def solution(y, kernel, stride, shape):
    def convolution(x):
        return lax.conv_general_dilated(
            x, kernel, (stride, stride), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    [x] = jax.linear_transpose(convolution, jax.ShapeDtypeStruct(shape, y.dtype))(y)
    return x


# The input's shape, the size of the window, the stride.
# In the last two the stride is longer than the window, so some inputs lie in no window.
CASES = [
    ((2, 7, 5, 2), 3, 2),
    ((1, 8, 6, 1), 3, 2),
    ((1, 10, 6, 1), 3, 3),
    ((1, 8, 8, 1), 2, 3),
    ((1, 5, 7, 2), 1, 2),
]


def check(transposed):
    for shape, size, stride in CASES:
        kernel = waves(size, size, shape[-1], 3)
        rows, columns = ((length - size) // stride + 1 for length in shape[1:3])
        y = waves(shape[0], rows, columns, 3)
        expected = transpose(y, kernel, stride, shape)
        try:
            got = transposed(jax.device_put(y), jax.device_put(kernel), stride, shape)
        except Exception as error:
            if stride <= size:
                raise
            raised = type(getattr(error, "error", error)).__name__
            raise Failed(
                f"With a window of {size} and a stride of {stride} it raises {raised}: between the windows lie inputs that no output "
                "depends on, and there the transpose has zeros.",
                input={"y": y, "kernel": kernel, "stride": stride, "shape": shape},
            ) from None
        given = {"y": y, "kernel": kernel, "stride": stride, "shape": shape}
        if getattr(got, "shape", None) != shape and isinstance(got, (tuple, list)):
            raise Failed(
                "Your function returned a tuple: transposes and pullbacks return one entry for each argument. Unpack it.",
                input=given,
                got=got,
            )
        _recognise(got, y, kernel, stride, shape, expected, given)
        checks.same(got, jax.device_put(expected), input=given, rtol=1e-3, atol=1e-4)
    shape, size, stride = CASES[0]
    kernel, y = waves(size, size, shape[-1], 3), waves(2, 3, 2, 3)
    of_arrays = lambda y, kernel: transposed(y, kernel, stride, shape)  # noqa: E731
    checks.gradients(of_arrays, None, *jax.device_put((y, kernel)), argnums=(0, 1), jit=True)


def _recognise(got, y, kernel, stride, shape, expected, given):
    shown = np.shape(got)
    if len(shown) == 4 and shown != shape:
        if all(a <= b < a + stride for a, b in zip(shown, shape)) and shown[-1] == shape[-1]:
            raise Failed(
                f"The result has the shape {shown}, and {shape} is asked for: where the stride leaves some inputs out at the end, no "
                "output depends on them, and the transpose has zeros there.",
                input=given,
                got=got,
            )
        return
    if np.shape(got) == expected.shape and np.allclose(got, expected, rtol=1e-3, atol=1e-4):
        return
    turned = transpose(y, kernel[::-1, ::-1], stride, shape)
    for wrong, said in [
        (
            turned,
            "The kernel is rotated by 180 degrees, as in `lax.conv_transpose` without `transpose_kernel=True`.",
        ),
        (
            expected / max(stride, 1) ** 2,
            "This is divided by the square of the stride: a transpose adds up, it does not average.",
        ),
    ]:
        if np.shape(wrong) == shown and np.allclose(got, wrong, rtol=1e-3, atol=1e-4):
            raise Failed(said, input=given, expected=expected, got=got)


exercise = Exercise(
    title="The transpose of a convolution",
    stars=2,
    minutes=10,
    why="Whatever is linear has a transpose, and JAX finds it: the same machine that makes gradients makes the decoder's layer.",
    hints=(
        "Write the convolution as a function of x alone, then `jax.linear_transpose(function, something_of_the_shape)`.",
        "`jax.ShapeDtypeStruct(shape, y.dtype)` is enough for the second argument. What comes back is a function of y that returns a "
        "tuple of one.",
    ),
    solution=solution,
    check=check,
)
