"""Weights of GPT-2, BERT and ViT: one block of each, from the names of Hugging Face's transformers to this library's trainables.

    block = gpt2_block(heads=12)
    trainables = gpt2_trainables(weights, heads=12)    # weights: {"attn.c_attn.weight": array, …}, without "h.0." in front
    y, _ = block.fwd(x, trainables, ())

PyTorch's ``Linear`` holds its kernel as (out, in), GPT-2's ``Conv1D`` as (in, out); this library as (in, out), and kernels of attention
with an axis for heads.
"""

import functools

import jax
import jax.numpy as jnp

from mlax_tutorial import nn


def _norm(epsilon):
    return nn.LayerNorm(epsilon=epsilon), nn.Scale(), nn.Bias()


def _forward(inner, width, activation):
    return nn.Linear(inner), nn.Bias(), nn.F(activation), nn.Linear(width), nn.Bias()


def gpt2_block(heads: int, width: int, inner: int) -> nn.Layer:
    """Norm, causal attention; norm, two layers with the GELU of tanh."""
    attention = nn.MultiHeadAttention(heads, causal=True, use_bias=True)
    return nn.Series(
        nn.Residual(nn.Series(*_norm(1e-5), attention)),
        nn.Residual(nn.Series(*_norm(1e-5), *_forward(inner, width, jax.nn.gelu))),
    )


def gpt2_trainables(weights, heads: int):
    """The trainables of ``gpt2_block`` from the weights of ``transformer.h.0``, say."""
    kernels = jnp.split(weights["attn.c_attn.weight"], 3, axis=1)
    biases = jnp.split(weights["attn.c_attn.bias"], 3)
    out = weights["attn.c_proj.weight"], weights["attn.c_proj.bias"]
    attention = _attention([*zip(kernels, biases), out], heads)
    forward = [
        _dense(weights[f"mlp.{name}.weight"], weights[f"mlp.{name}.bias"]) for name in ("c_fc", "c_proj")
    ]
    return (
        {"layer": (*_scales(weights, "ln_1"), attention)},
        {"layer": (*_scales(weights, "ln_2"), *forward[0], (), *forward[1])},
    )


def bert_block(heads: int, width: int, inner: int) -> nn.Layer:
    """Attention, norm; two layers with the exact GELU, norm."""
    attention = nn.MultiHeadAttention(heads, use_bias=True)
    forward = nn.Series(*_forward(inner, width, functools.partial(jax.nn.gelu, approximate=False)))
    return nn.Series(nn.Residual(attention), *_norm(1e-12), nn.Residual(forward), *_norm(1e-12))


def bert_trainables(weights, heads: int):
    """The trainables of ``bert_block`` from the weights of ``encoder.layer.0``, say."""
    attention, forward = _encoder(weights, heads, "self")
    return (
        {"layer": attention}, *_scales(weights, "attention.output.LayerNorm"),
        {"layer": forward}, *_scales(weights, "output.LayerNorm"),
    )  # fmt: skip


def vit_block(heads: int, width: int, inner: int) -> nn.Layer:
    """Norm, attention; norm, two layers with the exact GELU."""
    attention = nn.MultiHeadAttention(heads, use_bias=True)
    forward = _forward(inner, width, functools.partial(jax.nn.gelu, approximate=False))
    return nn.Series(
        nn.Residual(nn.Series(*_norm(1e-12), attention)), nn.Residual(nn.Series(*_norm(1e-12), *forward))
    )


def vit_trainables(weights, heads: int):
    """The trainables of ``vit_block`` from the weights of ``encoder.layer.0``, say."""
    attention, forward = _encoder(weights, heads, "attention")
    return (
        {"layer": (*_scales(weights, "layernorm_before"), attention)},
        {"layer": (*_scales(weights, "layernorm_after"), *forward)},
    )


def _encoder(weights, heads, inside):
    def pair(name):
        return weights[f"{name}.weight"].T, weights[f"{name}.bias"]

    names = [f"attention.{inside}.{name}" for name in ("query", "key", "value")]
    attention = _attention([pair(name) for name in (*names, "attention.output.dense")], heads)
    return attention, (*_dense(*pair("intermediate.dense")), (), *_dense(*pair("output.dense")))


def _attention(pairs, heads):
    """Kernels (in, out) and biases of query, key, value and out."""
    trainables = {}
    for name, (kernel, bias) in zip(("query", "key", "value"), pairs):
        trainables[f"{name}_kernel"] = kernel.reshape(kernel.shape[0], heads, -1)
        trainables[f"{name}_bias"] = bias.reshape(heads, -1)
    kernel, bias = pairs[3]
    return trainables | {"out_kernel": kernel.reshape(heads, -1, kernel.shape[1]), "out_bias": bias}


def _dense(kernel, bias):
    return {"kernel": kernel}, {"bias": bias}


def _scales(weights, name):
    """Of ``LayerNorm()``, ``Scale()`` and ``Bias()``."""
    return (), {"scale": weights[f"{name}.weight"]}, {"bias": weights[f"{name}.bias"]}
