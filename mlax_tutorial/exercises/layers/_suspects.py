"""Six layers, each with one fault. They are read, not used."""

import dataclasses

import jax
import jax.numpy as jnp

from mlax_tutorial import nn


class Standardize(nn.Layer):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x - x.mean(axis=0), non_trainables


class Affine(nn.Layer):
    def init(self, key, x):
        return {"scale": jnp.ones(x.shape[-1])}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x * trainables["scale"], non_trainables


class Center(nn.Layer):
    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x - x.mean(axis=2, keepdims=True), non_trainables


class Noise(nn.Layer):
    needs_key = True

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        if inference_mode:
            return x, non_trainables
        factor = jax.random.normal(key, x.shape, x.dtype)
        shift = jax.random.normal(key, x.shape, x.dtype)
        return x * factor + shift, non_trainables


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True, eq=False)
class Power:
    exponent: int = 2

    def init(self, key, x):
        return (), ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x**self.exponent, non_trainables


class Offset(nn.Layer):
    def init(self, key, x):
        return {"offset": -x.reshape(-1, x.shape[-1]).mean(axis=0)}, ()

    def fwd(self, x, trainables, non_trainables, *, key=None, inference_mode=False):
        return x + trainables["offset"].astype(x.dtype), non_trainables


SUSPECTS = Standardize, Affine, Center, Noise, Power, Offset
