"""PyTorch's half of the twin `gpt`: run by the Python of `.venv-torch`, which knows nothing of JAX.

.venv-torch/bin/python benchmarks/twins/gpt_torch.py IN.npz OUT.npz
"""

import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def rms(x):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)


def rotary(x, base=1000.0):  # (batch, heads, length, d)
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=x.dtype) / half)
    angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * rates
    cos, sin, a, b = angles.cos(), angles.sin(), x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Twin(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.names = list(weights)
        self.w = nn.ParameterList(
            [nn.Parameter(torch.from_numpy(array.copy())) for array in weights.values()]
        )

    def part(self, ending):
        (index,) = [i for i, name in enumerate(self.names) if name.endswith(ending)]
        return self.w[index]

    def forward(self, ids):
        x = self.part("['embed']")[ids]
        query, key, value, out = (
            self.part(f"['{name}_kernel']") for name in ("query", "key", "value", "out")
        )
        first, last = [
            self.w[i] for i, name in enumerate(self.names) if "['kernel']" in name and self.w[i].ndim == 3
        ]
        for i in range(len(query)):
            y = rms(x)
            heads = [torch.einsum("btf,fhd->bhtd", y, kernel[i]) for kernel in (query, key, value)]
            q, k = rotary(heads[0]), rotary(heads[1])
            y = functional.scaled_dot_product_attention(q, k, heads[2], is_causal=True)
            x = x + torch.einsum("bhtd,hdf->btf", y, out[i])
            x = x + functional.relu(rms(x) @ first[i]).square() @ last[i]
        (head,) = [
            self.w[i] for i, name in enumerate(self.names) if "['kernel']" in name and self.w[i].ndim == 2
        ]
        return rms(x) @ head


def nats(model, ids):
    return functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def main(given, written):
    torch.set_num_threads(2)
    given = dict(np.load(given))
    weights = {
        name.removeprefix("weights."): array for name, array in given.items() if name.startswith("weights.")
    }
    batches, found = torch.from_numpy(given["batches"]).long(), {"torch": np.array(torch.__version__)}

    exact = Twin({name: array.astype(np.float64) for name, array in weights.items()})
    loss = nats(exact, batches[0])
    loss.backward()
    found["first loss"] = loss.item()
    for name, parameter in zip(exact.names, exact.w):
        found[f"gradients.{name}"] = parameter.grad.numpy()

    model, losses, seconds = Twin(weights), [], []
    optimizer = torch.optim.Adam(model.parameters(), lr=float(given["rate"]), foreach=True)
    for ids in batches:
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = nats(model, ids)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    test = torch.from_numpy(given["test"]).long()
    with torch.no_grad():
        right = [(model(ids[:, :-1]).argmax(-1) == ids[:, 1:]).float().mean() for ids in test.split(64)]
        sizes = [len(ids) for ids in test.split(64)]
    accuracy = np.average(np.array(right), weights=sizes)
    np.savez(written, losses=losses, seconds=seconds, accuracy=accuracy, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
