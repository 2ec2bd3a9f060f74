"""``TransformerBlock``: attention and a perceptron, each beside a way around it."""

import jax

from mlax_tutorial.nn.composite import Composite, Container
from mlax_tutorial.nn.dropout import Dropout
from mlax_tutorial.nn.function import F
from mlax_tutorial.nn.linear import Bias, Linear
from mlax_tutorial.nn.multi_head_attention import MultiHeadAttention
from mlax_tutorial.nn.normalization import LayerNorm
from mlax_tutorial.nn.rules import Function, Positive, Probability, Size, Switch
from mlax_tutorial.nn.series import Series


class TransformerBlock(Composite):
    r"""The block of a Transformer: ``(..., length, features) -> (..., length, features)``.

    .. math::
        y &= x + \mathrm{attention}(\mathrm{norm}(x)) \\
        z &= y + \mathrm{mlp}(\mathrm{norm}'(y))

    Normalization stands in front of each part, so that what flows past the parts is never rescaled, and deep models train without a
    warm-up (Xiong et al. 2020); with norms behind the sums instead, the tokens of a sequence soon become alike, and gradients vanish
    (Noci et al. 2022). Several are a :class:`Stack`, and a last norm follows. A causal block decodes. Other parts, an
    :class:`RMSNorm`, say, come in by :func:`replace`.

    Further inputs are those of :class:`MultiHeadAttention`, whose children's trainables these are, under ``attention_norm``,
    ``attention``, ``mlp_norm`` and ``mlp``.

    Args:
      features: of the input.
      heads: of attention.
      hidden: features inside the perceptron; by default four times as many.
      causal, window, rotary_base: as for :class:`MultiHeadAttention`.
      dropout: the probability with which the weights of attention, and features of each part's output, are lost in training.
      activation: of the perceptron.

    Raises:
      LayerError: if ``x`` has other features, and as its parts do.

    Example:
      >>> import jax, jax.numpy as jnp
      >>> from mlax_tutorial import nn
      >>> encoder, x = nn.Stack(nn.TransformerBlock(32, heads=4), depth=3), jnp.ones((2, 10, 32))
      >>> variables = encoder.init(jax.random.key(0), x)
      >>> encoder.fwd(x, *variables, mask=jnp.ones((2, 1, 10), bool))[0].shape
      (2, 10, 32)

    References: Vaswani et al., *Attention Is All You Need* (2017); Xiong et al., *On Layer Normalization in the Transformer
    Architecture* (2020); Noci et al., *Signal Propagation in Transformers* (2022).
    """

    features: Size
    heads: Size
    hidden: Size | None = None
    causal: Switch = False
    window: Size | None = None
    rotary_base: Positive | None = None
    dropout: Probability = 0.0
    activation: Function = jax.nn.gelu
    decodes = Container.decodes

    def children(self):
        looks = {"causal": self.causal, "window": self.window, "rotary_base": self.rotary_base}
        wide, narrow = Linear(self.hidden or 4 * self.features), Linear(self.features)
        return {
            "attention_norm": LayerNorm(affine=True),
            "attention": MultiHeadAttention(self.heads, use_bias=True, dropout=self.dropout, **looks),
            "mlp_norm": LayerNorm(affine=True),
            "mlp": Series(wide, Bias(), F(self.activation, decodes=True), narrow, Bias()),
            "drop": Dropout(self.dropout),
        }

    def forward(self, call, x, **inputs):
        if x.shape[-1] != self.features:
            self.expects("x", f"shape (..., length, {self.features})", x, "give the features of the input")
        x = x + call.drop(call.attention(call.attention_norm(x), **inputs))
        return x + call.drop(call.mlp(call.mlp_norm(x)))
