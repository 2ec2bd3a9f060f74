"""A Transformer encoder of three blocks on SNLI: does the second sentence follow from the first, contradict it, or neither?

    .venv/bin/python -m examples.snli_encoder                     # train on 549,367 pairs, test on 9,824
    .venv/bin/python -m examples.snli_encoder --validate          # for tuning: test on the validation pairs after each epoch
    .venv/bin/python -m examples.snli_encoder --hypothesis-only   # the baseline: the first sentence is hidden
    .venv/bin/python -m examples.snli_encoder --record            # train, test, and write the result
    .venv/bin/python -m examples.snli_encoder --checkpoints DIR   # go on from what lies there, bit for bit; the log is there, too

`data.snli` looks for the archive in ``--folder`` or the user's cache, and downloads it (95 MB) if it is missing.

It has not been run at full size by its authors, who had no network where they wrote it: it was tested on small files of the same
format. The settings are usual ones, and were not tuned.
"""

import jax.numpy as jnp

from examples import snli
from mlax_tutorial import nn

RATE, HEADS, DEPTH = 5e-4, 4, 3


class Encoder(nn.Composite):
    """A vector for each word, of all words of its sentence: ``(..., time) -> (..., time, features)``.

    Padding, which begins at ``lengths``, is not looked at.
    """

    size: int
    features: int
    dropout: float

    def children(self):
        block = nn.TransformerBlock(self.features, HEADS, dropout=self.dropout)
        return {
            "embed": nn.Embed(self.size, self.features),
            "places": nn.Embed(snli.BOUNDS[-1], self.features),
            "drop": nn.Dropout(self.dropout),
            "blocks": nn.Stack(block, DEPTH),
            "norm": nn.LayerNorm(affine=True),
        }

    def forward(self, call, x, *, lengths):
        real = jnp.arange(x.shape[-1]) < lengths[..., None]
        y = call.drop(call.embed(x) + call.places(call.place))
        return call.norm(call.blocks(y, mask=real[..., None, :]))


def make_model(size, features=256, dropout=0.1):
    """Both sentences pass through the same three blocks: the pair is an axis of the batch."""
    return nn.Series(Encoder(size, features, dropout), *snli.classifier(features, dropout))


def main(arguments=None):
    return snli.main("snli_encoder", make_model, RATE, __doc__, arguments)


if __name__ == "__main__":
    main()
