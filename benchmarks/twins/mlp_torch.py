"""PyTorch's half of the twin `mlp`: run by the Python of `.venv-torch`, which knows nothing of JAX.

.venv-torch/bin/python benchmarks/twins/mlp_torch.py IN.npz OUT.npz
"""

import sys
import time

import numpy as np
import torch
from torch import nn


def make(weights):
    """The network with our weights, whose kernels are the other way round."""
    layers, count = [nn.Flatten()], len(weights) // 2
    for i in range(count):
        kernel, bias = (torch.from_numpy(weights[f"{i}.{name}"]) for name in ("kernel", "bias"))
        layer = nn.Linear(*kernel.shape)
        with torch.no_grad():
            layer.weight.copy_(kernel.T)
            layer.bias.copy_(bias)
        layers += [layer, nn.ReLU()] if i < count - 1 else [layer]
    return nn.Sequential(*layers)


def main(given, written):
    torch.manual_seed(0)
    given = dict(np.load(given))
    model = make(
        {name.removeprefix("weights."): array for name, array in given.items() if name.startswith("weights.")}
    )
    affine = [layer for layer in model if isinstance(layer, nn.Linear)]
    optimizer = torch.optim.SGD(
        model.parameters(), lr=float(given["rate"]), momentum=float(given["momentum"]), nesterov=True
    )
    x, y = torch.from_numpy(given["x"]), torch.from_numpy(given["y"]).long()
    losses, seconds, found = [], [], {"torch": np.array(torch.__version__)}
    for number, rows in enumerate(torch.from_numpy(given["order"]).long()):
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        if number == 0:
            for i, layer in enumerate(affine):
                found[f"gradients.{i}.kernel"] = layer.weight.grad.numpy().T.copy()
                found[f"gradients.{i}.bias"] = layer.bias.grad.numpy().copy()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    with torch.no_grad():
        answers = model(torch.from_numpy(given["x_test"])).argmax(-1).numpy()
    np.savez(written, losses=losses, seconds=seconds, accuracy=np.mean(answers == given["y_test"]), **found)


if __name__ == "__main__":
    main(*sys.argv[1:])
