"""PyTorch's half of the twin `diffusion`: run by the Python of `.venv-torch`, which knows nothing of JAX.

.venv-torch/bin/python benchmarks/twins/diffusion_torch.py IN.npz OUT.npz
"""

import copy
import math
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def linear(inputs, outputs, bias=False):
    return nn.Linear(inputs, outputs, bias=bias)


def rms_norm(x):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5)


def time_embedding(t, features=16):
    count = features // 2
    frequencies = torch.exp(-math.log(10_000) * torch.arange(count, dtype=t.dtype) / count)
    angles = t[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.film = linear(width, 2 * width, bias=True)
        self.up, self.down = linear(width, 2 * width), linear(2 * width, width)

    def forward(self, x, condition):
        shift, scale = self.film(condition).chunk(2, dim=-1)
        return x + self.down(F.silu(self.up(rms_norm(x) * (1 + scale) + shift)))


class Net(nn.Module):
    def __init__(self, features, width, blocks):
        super().__init__()
        self.noise, self.label = linear(16, width), nn.Embedding(11, width)
        self.first, self.last = linear(features, width), linear(width, features)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))

    def forward(self, x, sigma, label):
        told = F.silu(self.noise(time_embedding(25 * sigma.log())) + self.label(label))
        x = self.first(x)
        for block in self.blocks:
            x = block(x, told)
        return self.last(rms_norm(x))

    def places(self):
        """Our paths beside PyTorch's parameters, and whether those are transposed."""
        for number, block in enumerate(self.blocks):
            path = f"['blocks'][{number}]"
            yield f"{path}['mlp'][0]['kernel']", block.up.weight, True
            yield f"{path}['mlp'][2]['kernel']", block.down.weight, True
            yield f"{path}['norm']['film']['bias']", block.film.bias, False
            yield f"{path}['norm']['film']['kernel']", block.film.weight, True
        yield "['first']['kernel']", self.first.weight, True
        yield "['label']['embed']", self.label.weight, False
        yield "['last'][1]['kernel']", self.last.weight, True
        yield "['noise'][1]['kernel']", self.noise.weight, True


def denoise(net, x, sigma, label):
    noise = sigma[:, None]
    total = torch.sqrt(1 + noise**2)
    return x / total**2 + noise / total * net(x / total, sigma, label)


def loss(net, x, sigma, label, noise):
    errors = denoise(net, x + sigma[:, None] * noise, sigma, label) - x
    return ((1 + 1 / sigma[:, None] ** 2) * errors**2).mean()


def first_step(net, x, sigma, label, noise):
    """Loss and gradients in float64."""
    exact = copy.deepcopy(net).double()
    value = loss(exact, x.double(), sigma.double(), label, noise.double())
    value.backward()
    gradients = {
        f"gradients.{name}": (p.grad.T if turned else p.grad).numpy().copy()
        for name, p, turned in exact.places()
    }
    return gradients | {"first loss": value.item()}


@torch.no_grad()
def sample(net, x, label, levels):
    for sigma, lower in zip(levels[:-1], levels[1:]):
        x = x + (lower - sigma) * (x - denoise(net, x, sigma.expand(len(x)), label)) / sigma
    return x


def main(given, written):
    given = dict(np.load(given))
    net = Net(given["images"].shape[1], int(given["width"]), int(given["blocks"]))
    known = {name.removeprefix("weights.") for name in given if name.startswith("weights.")}
    assert known == {name for name, _, _ in net.places()}, known
    with torch.no_grad():
        for name, parameter, turned in net.places():
            array = torch.from_numpy(given[f"weights.{name}"])
            parameter.copy_(array.T if turned else array)
    images, rows, sigma, noise = (
        torch.from_numpy(given[name]) for name in ("images", "rows", "sigma", "noise")
    )
    label = torch.from_numpy(given["label"]).long()
    found = {"torch": np.array(torch.__version__)}
    found |= first_step(net, images[rows[0]], sigma[0], label[0], noise[0])
    average, steps = copy.deepcopy(net), len(rows)
    optimizer = torch.optim.Adam(net.parameters(), float(given["rate"]), betas=(0.9, 0.99))
    losses, seconds = [], []
    for number in range(steps):
        batch = images[rows[number]], sigma[number], label[number], noise[number]
        begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = float(given["rate"]) * (1 - number / steps)
        optimizer.zero_grad()
        value = loss(net, *batch)
        value.backward()
        optimizer.step()
        with torch.no_grad():
            for kept, new in zip(average.parameters(), net.parameters()):
                kept.lerp_(new, 20 / (number + 20))
        losses.append(value.item())
        seconds.append(time.perf_counter() - begin)
    asked, levels = torch.from_numpy(given["asked"]).long(), torch.from_numpy(given["levels"])
    samples = sample(average, torch.from_numpy(given["start"]), asked, levels).numpy()
    np.savez(written, losses=losses, seconds=seconds, samples=samples, **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
