"""PyTorch's half of the twins `resnet` and `resnet_plain`: run by the Python of `.venv-torch`, which knows nothing of JAX.

.venv-torch/bin/python benchmarks/twins/resnet_torch.py IN.npz OUT.npz
"""

import copy
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def conv(inputs, channels, size=3, strides=1):
    return nn.Conv2d(inputs, channels, size, strides, padding=size // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, channels, strides, skip):
        super().__init__()
        self.conv1, self.bn1 = conv(inputs, channels, 3, strides), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = conv(channels, channels), nn.BatchNorm2d(channels)
        self.skip = skip
        if skip and strides > 1:
            self.downsample = nn.Sequential(conv(inputs, channels, 1, strides), nn.BatchNorm2d(channels))
        else:
            self.downsample = nn.Identity()

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.downsample(x) if self.skip else y)


class Twin(nn.Module):
    def __init__(self, blocks, skip):
        super().__init__()
        self.stem, self.norm = conv(1, 16, 3, 2), nn.BatchNorm2d(16)
        made, inputs = [], 16
        for channels, strides in blocks.tolist():
            made.append(Block(inputs, channels, strides, skip))
            inputs = channels
        self.blocks, self.head = nn.Sequential(*made), nn.Linear(inputs, 10)

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.norm(self.stem(x)))).mean((2, 3)))

    def places(self):
        """Our paths beside PyTorch's parameters; the last one is transposed."""

        def both(conv_path, norm_path, conv, norm):
            yield f"{conv_path}['kernel']", conv.weight
            yield f"{norm_path}['scale']", norm.weight
            yield f"{norm_path}['bias']", norm.bias

        yield from both("[0]", "[1]", self.stem, self.norm)
        for number, block in enumerate(self.blocks):
            path = f"[{3 + 2 * number}]"
            branch = f"{path}['layer']" if block.skip else path
            yield from both(f"{branch}[0]", f"{branch}[1]", block.conv1, block.bn1)
            yield from both(f"{branch}[3]", f"{branch}[4]", block.conv2, block.bn2)
            if isinstance(block.downsample, nn.Sequential):
                yield from both(f"{path}['shortcut'][0]", f"{path}['shortcut'][1]", *block.downsample)
        after = 3 + 2 * len(self.blocks) + 1
        yield f"[{after + 1}]['bias']", self.head.bias
        yield f"[{after}]['kernel']", self.head.weight


def laid_out(name, array, last):
    return array.T if name == last else array


def first_step(model, x, labels):
    """Loss and gradients in float64. In float32, oneDNN's fast convolutions are too coarse to tell a twin by: its gradient of the
    stem is 8e-4 from this one where XLA's is 7e-7 from it (2.13 with AVX-512; the gradient is 0.06 at most)."""
    exact = copy.deepcopy(model).double()
    loss = F.cross_entropy(exact(x.double()), labels)
    loss.backward()
    places = list(exact.places())
    gradients = {
        f"gradients.{name}": laid_out(name, parameter.grad.numpy(), places[-1][0]).copy()
        for name, parameter in places
    }
    return gradients | {"first loss": loss.item()}


def main(given, written):
    given = dict(np.load(given))
    model = Twin(given["blocks"], bool(given["skip"]))
    places = list(model.places())
    last = places[-1][0]
    known = {name.removeprefix("weights.") for name in given if name.startswith("weights.")}
    assert known == {name for name, _ in places}, known.symmetric_difference(name for name, _ in places)
    with torch.no_grad():
        for name, parameter in places:
            parameter.copy_(torch.from_numpy(laid_out(name, given[f"weights.{name}"], last).copy()))
    x, test_x = (torch.from_numpy(given[name]).permute(0, 3, 1, 2) for name in ("x", "test_x"))
    labels, order = torch.from_numpy(given["labels"]).long(), torch.from_numpy(given["order"])
    found = {"torch": np.array(torch.__version__)} | first_step(model, x[order[0, 0]], labels[order[0, 0]])
    model = model.to(memory_format=torch.channels_last)
    epochs = len(given["order"])
    optimizer = torch.optim.SGD(
        model.parameters(), float(given["rate"]), momentum=float(given["momentum"]), nesterov=True
    )
    losses, seconds = [], []
    for epoch, batches in enumerate(order):
        for group in optimizer.param_groups:
            group["lr"] = float(given["rate"]) * (1 - epoch / epochs)
        for rows in batches:
            begin = time.perf_counter()
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[rows]), labels[rows])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            seconds.append(time.perf_counter() - begin)
    model.eval()
    with torch.no_grad():
        guesses = torch.cat([model(part).argmax(-1) for part in test_x.split(500)]).numpy()
    np.savez(
        written, losses=losses, seconds=seconds, accuracy=np.mean(guesses == given["test_labels"]), **found
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
