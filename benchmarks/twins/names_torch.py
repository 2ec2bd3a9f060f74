"""PyTorch's half of the twin `names`: run by the Python of `.venv-torch`, which knows nothing of JAX.

.venv-torch/bin/python benchmarks/twins/names_torch.py IN.npz OUT.npz
"""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence


class Twin(nn.Module):
    def __init__(self, w):
        super().__init__()
        vocabulary, features = w["embedding"].shape
        hidden = w["forward.recurrent_kernel"].shape[0]
        self.embed = nn.Embedding(vocabulary, features)
        self.lstm = nn.LSTM(features, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, w["head.kernel"].shape[1])
        with torch.no_grad():
            for name, parameter in self.places():
                parameter.copy_(torch.from_numpy(w[name].T if name.endswith("kernel") else w[name]))
            for suffix in ("", "_reverse"):
                # PyTorch adds two biases. One of them stays zero: else both would get the gradient of the one there is in JAX, and
                # Adam would move their sum twice as far.
                second = getattr(self.lstm, f"bias_hh_l0{suffix}")
                second.zero_().requires_grad_(False)

    def places(self):
        """Our names beside PyTorch's parameters. The gates stand in its order, i, f, g, o, in both."""
        yield "embedding", self.embed.weight
        for name, suffix in (("forward", ""), ("backward", "_reverse")):
            yield f"{name}.input_kernel", getattr(self.lstm, f"weight_ih_l0{suffix}")
            yield f"{name}.recurrent_kernel", getattr(self.lstm, f"weight_hh_l0{suffix}")
            yield f"{name}.bias", getattr(self.lstm, f"bias_ih_l0{suffix}")
        yield "head.kernel", self.head.weight
        yield "head.bias", self.head.bias

    def forward(self, ids, lengths):
        packed = pack_padded_sequence(self.embed(ids), lengths, batch_first=True, enforce_sorted=False)
        _, (h, _) = self.lstm(packed)
        return self.head(torch.cat([h[0], h[1]], dim=-1))


def main(given, written):
    torch.manual_seed(0)
    torch.set_num_threads(
        1
    )  # products this small gain nothing from a second one, and on a busy machine wait long for it
    given = dict(np.load(given))
    weights = {
        name.removeprefix("weights."): array for name, array in given.items() if name.startswith("weights.")
    }
    model = Twin(weights)
    optimizer = torch.optim.Adam(
        [p for p in model.parameters() if p.requires_grad], lr=float(given["rate"]), foreach=True
    )
    ids, lengths = torch.from_numpy(given["ids"]).long(), torch.from_numpy(given["lengths"]).long()
    labels, order = torch.from_numpy(given["labels"]).long(), torch.from_numpy(given["order"]).long()
    losses, seconds, found = [], [], {"torch": np.array(torch.__version__)}
    for number, rows in enumerate(order):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids[rows], lengths[rows]), labels[rows])
        loss.backward()
        if number == 0:
            for name, parameter in model.places():
                gradient = parameter.grad.numpy()
                found[f"gradients.{name}"] = gradient.T.copy() if name.endswith("kernel") else gradient.copy()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    with torch.no_grad():
        test = model(
            torch.from_numpy(given["test_ids"]).long(), torch.from_numpy(given["test_lengths"]).long()
        )
    accuracy = np.mean(test.argmax(-1).numpy() == given["test_labels"])
    np.savez(written, losses=losses, seconds=seconds, accuracy=accuracy, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
