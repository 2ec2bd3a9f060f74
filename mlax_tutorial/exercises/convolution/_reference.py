"""Convolution in NumPy, slowly and for certain."""

import numpy as np


def convolve(x, kernel, stride=1):
    """``(n, h, w, in)`` and ``(size, size, in, out)`` to ``(n, h', w', out)``, without padding."""
    size = kernel.shape[0]
    rows, columns = ((length - size) // stride + 1 for length in x.shape[1:3])
    y = np.zeros((len(x), rows, columns, kernel.shape[-1]), np.float32)
    for i in range(rows):
        for j in range(columns):
            window = x[:, i * stride : i * stride + size, j * stride : j * stride + size]
            y[:, i, j] = np.einsum("nhwi,hwio->no", window, kernel)
    return y


def transpose(y, kernel, stride, shape):
    """What the transpose of `convolve` makes of ``y``, for an input of ``shape``."""
    size, x = kernel.shape[0], np.zeros(shape, np.float32)
    for i in range(y.shape[1]):
        for j in range(y.shape[2]):
            place = np.s_[:, i * stride : i * stride + size, j * stride : j * stride + size]
            x[place] += np.einsum("no,hwio->nhwi", y[:, i, j], kernel)
    return x


def waves(*shape):
    """Numbers between -1 and 1 that are all different."""
    return np.sin(1.7 * np.arange(np.prod(shape)) + 0.3).astype(np.float32).reshape(shape)
