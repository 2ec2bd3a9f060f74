"""A bidirectional LSTM of three layers on SNLI: does the second sentence follow from the first, contradict it, or neither?

    .venv/bin/python -m examples.snli_lstm                        # train on 549,367 pairs, test on 9,824
    .venv/bin/python -m examples.snli_lstm --validate             # for tuning: test on the validation pairs after each epoch
    .venv/bin/python -m examples.snli_lstm --hypothesis-only      # the baseline: the first sentence is hidden
    .venv/bin/python -m examples.snli_lstm --record               # train, test, and write the result
    .venv/bin/python -m examples.snli_lstm --checkpoints DIR      # go on from what lies there, bit for bit; the log is there, too

`data.snli` looks for the archive in ``--folder`` or the user's cache, and downloads it (95 MB) if it is missing.

It has not been run at full size by its authors, who had no network where they wrote it: it was tested on small files of the same
format. The settings are usual ones, and were not tuned.
"""

from examples import snli
from mlax_tutorial import nn

RATE = 1e-3


def make_model(size, features=256, dropout=0.1):
    """Both sentences pass through the same three layers: the pair is an axis of the batch."""
    layers = [(nn.Bidirectional(nn.LSTMCell(features)), nn.Dropout(dropout)) for _ in range(3)]
    return nn.Series(
        nn.Embed(size, features), nn.Dropout(dropout), *(layer for pair in layers for layer in pair),
        *snli.classifier(features, dropout),
    )  # fmt: skip


def main(arguments=None):
    return snli.main("snli_lstm", make_model, RATE, __doc__, arguments)


if __name__ == "__main__":
    main()
