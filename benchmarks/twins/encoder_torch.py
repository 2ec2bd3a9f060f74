"""PyTorch's half of the twin `encoder`: run by the Python of `.venv-torch`, which knows nothing of JAX.

.venv-torch/bin/python benchmarks/twins/encoder_torch.py IN.npz OUT.npz
"""

import copy
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def gelu(x):
    return F.gelu(x, approximate="tanh")  # as in JAX; the default is exact


class Twin(nn.Module):
    def __init__(self, w, heads):
        super().__init__()
        vocabulary, features = w["embed.weight"].shape
        self.embed = nn.Embedding(vocabulary, features)
        self.places = nn.Embedding(len(w["places.weight"]), features)
        self.block = nn.TransformerEncoderLayer(
            features,
            heads,
            len(w["block.linear1.bias"]),
            dropout=0.0,
            activation=gelu,
            batch_first=True,
            norm_first=True,
        )
        self.norm = nn.LayerNorm(features)
        self.query, self.key = (nn.Linear(features, features, bias=False) for _ in range(2))

    def forward(self, x):
        y = self.embed(x) + self.places.weight[: x.shape[1]]
        y = self.norm(self.block(y))
        return self.query(y) @ self.key(y).mT / y.shape[-1] ** 0.5


def loss_of(model, x, partners):
    return F.cross_entropy(model(x).flatten(0, 1), partners.flatten())


def first_step(model, x, partners):
    """Loss and gradients in float64, which do not depend on how a library rounds."""
    exact = copy.deepcopy(model).double()
    loss = loss_of(exact, x, partners)
    loss.backward()
    gradients = {f"gradients.{name}": one.grad.numpy() for name, one in exact.named_parameters()}
    return gradients | {"first loss": loss.item()}


def main(given, written):
    torch.set_num_threads(
        1
    )  # products this small gain little from a second one, and on a busy machine wait long for it
    given = dict(np.load(given))
    weights = {
        name.removeprefix("weights."): array for name, array in given.items() if name.startswith("weights.")
    }
    model = Twin(weights, int(given["heads"]))
    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    x, partners, test_x = (torch.from_numpy(given[name]).long() for name in ("x", "partners", "test_x"))
    order = torch.from_numpy(given["order"])
    found = {"torch": np.array(torch.__version__)} | first_step(model, x[order[0]], partners[order[0]])
    optimizer = torch.optim.Adam(model.parameters(), foreach=True)
    losses, seconds = [], []
    for rows, rate in zip(order, given["rates"].tolist()):
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        loss = loss_of(model, x[rows], partners[rows])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    with torch.no_grad():
        accuracy = np.mean(model(test_x).argmax(-1).numpy() == given["test_partners"])
    np.savez(written, losses=losses, seconds=seconds, accuracy=accuracy, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
