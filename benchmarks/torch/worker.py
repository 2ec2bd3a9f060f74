"""The workloads as PyTorch has them, in a process that answers requests: `benchmarks/pytorch.py` asks.

Run by the Python of `.venv-torch`, which knows nothing of JAX. Optimizers are the fused ones, the fastest on a CPU.
"""

import os
import pickle
import sys
import time

os.environ.setdefault("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1")  # a first call is to compile

import torch
import torch._dynamo
from torch import nn
from torch.nn import functional as F


def tensor(array):
    return torch.from_numpy(array.copy())


def dense(pair):
    kernel, bias = pair
    layer = nn.Linear(*kernel.shape)
    layer.weight.data, layer.bias.data = tensor(kernel).T.contiguous(), tensor(bias)
    return layer


class Stack(nn.Module):
    def __init__(self, weights, activation):
        super().__init__()
        self.layers, self.activation = nn.ModuleList(map(dense, weights)), activation

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)


class Block(nn.Module):
    HEADS = 6

    def __init__(self, block, rate):
        super().__init__()
        width = block["query_kernel"].shape[0]
        for name in ("query", "key", "value", "out"):
            setattr(
                self,
                name,
                dense((block[f"{name}_kernel"].reshape(width, width), block[f"{name}_bias"].reshape(width))),
            )
        self.attention_norm, self.dense_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = dense(block["wide"]), dense(block["narrow"])
        self.dropout = nn.Dropout(rate)

    def forward(self, x):
        y = self.attention_norm(x)
        heads = [
            layer(y).unflatten(-1, (self.HEADS, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        ]
        y = F.scaled_dot_product_attention(*heads, dropout_p=self.dropout.p).transpose(1, 2).flatten(-2)
        x = x + self.dropout(self.out(y))
        y = self.dropout(F.relu(self.wide(self.dense_norm(x))))
        return x + self.dropout(self.narrow(y))


class Encoder(nn.Module):
    def __init__(self, weights, rate):
        super().__init__()
        self.embed = nn.Embedding.from_pretrained(tensor(weights["embed"]), freeze=False)
        self.positions = nn.Parameter(tensor(weights["positions"]))
        self.blocks = nn.ModuleList(Block(block, rate) for block in weights["blocks"])
        self.norm, self.head = nn.LayerNorm(weights["embed"].shape[1]), dense(weights["head"])

    def forward(self, ids):
        x = self.embed(ids) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x).mean(1))


class Both(nn.Sequential):
    def __init__(self, name, block):
        kernel, _ = block[name]
        size, _, inputs, outputs = kernel.shape
        stride = 2 if "shortcut" in block and name != "second" else 1
        conv = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
        conv.weight.data = tensor(kernel.transpose(3, 2, 0, 1)).contiguous()
        super().__init__(conv, nn.BatchNorm2d(outputs))


class ResidualBlock(nn.Module):
    def __init__(self, block):
        super().__init__()
        self.first, self.second = Both("first", block), Both("second", block)
        self.shortcut = Both("shortcut", block) if "shortcut" in block else nn.Identity()

    def forward(self, x):
        return F.relu(self.second(F.relu(self.first(x))) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.stem = Both("stem", weights)
        self.blocks = nn.Sequential(*map(ResidualBlock, weights["blocks"]))
        self.head = dense(weights["head"])

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.stem(x))).mean((2, 3)))


class BiLSTM(nn.Module):
    def __init__(self, weights):
        super().__init__()
        features, hidden = weights["forward"][0].shape[0], weights["forward"][1].shape[0]
        self.lstm = nn.LSTM(features, hidden, batch_first=True, bidirectional=True)
        for name, suffix in (("forward", ""), ("backward", "_reverse")):
            kernel, recurrent_kernel, bias = map(tensor, weights[name])
            getattr(self.lstm, f"weight_ih_l0{suffix}").data.copy_(kernel.T)
            getattr(self.lstm, f"weight_hh_l0{suffix}").data.copy_(recurrent_kernel.T)
            getattr(self.lstm, f"bias_ih_l0{suffix}").data.copy_(bias)
            # PyTorch has a second bias, which others do not have: it stays zero.
            second = getattr(self.lstm, f"bias_hh_l0{suffix}")
            second.data.zero_()
            second.requires_grad_(False)
        self.head = dense(weights["head"])

    def forward(self, x):
        return self.head(self.lstm(x)[0].mean(1))


MODELS = {
    "mlp": lambda weights, draws: Stack(weights, F.relu),
    "tiny_layers": lambda weights, draws: Stack(weights, torch.tanh),
    "encoder": lambda weights, draws: Encoder(weights, 0.1 if draws else 0.0),
    "resnet": lambda weights, draws: ResNet(weights).to(memory_format=torch.channels_last),
    "bilstm": lambda weights, draws: BiLSTM(weights),
}


def make_step(workload, compiled, draws, weights, batch):
    """A function from a learning rate to a step; what a program does once is done before."""
    if workload == "adam":
        parameters = [nn.Parameter(tensor(array)) for layer in weights for array in layer]
        for parameter in parameters:
            parameter.grad = torch.cos(100 * parameter.detach())

        def start(learning_rate):
            optimizer = torch.optim.Adam(parameters, learning_rate, fused=True)

            def step():
                optimizer.step()
                with torch.no_grad():
                    return parameters[0].sum() + parameters[-1].sum()

            return step

        return start

    x, labels = map(tensor, batch)
    if workload == "resnet":
        x = x.permute(0, 3, 1, 2)  # channels last in memory, as with all others
    labels, model = labels.long(), MODELS[workload](weights, draws)

    def loss_fn(x, labels):
        return F.cross_entropy(model(x), labels)

    function = torch.compile(loss_fn) if compiled else loss_fn

    def start(learning_rate):
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if workload in ("mlp", "tiny_layers"):
            optimizer = torch.optim.SGD(trained, learning_rate, momentum=0.9, fused=True)
        else:
            optimizer = torch.optim.Adam(trained, learning_rate, fused=True)

        def step():
            loss = function(x, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach()

        return step

    return start


STEPS = {}  # the last one that was begun, eager and compiled


def begin(workload, compiled, draws, weights, batch, learning_rate):
    torch._dynamo.reset()
    torch.manual_seed(0)
    STEPS[compiled] = step = make_step(workload, compiled, draws, weights, batch)(learning_rate)
    begun = time.perf_counter()
    loss = step()
    seconds = time.perf_counter() - begun
    return seconds, [float(loss), float(step()), float(step())]


def count_graphs(workload, compiled, weights, batch, learning_rates):
    if not compiled:
        return 0
    kept = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    start = make_step(workload, compiled, True, weights, batch)
    for learning_rate in learning_rates:
        step = start(learning_rate)
        step(), step()
    return torch._dynamo.utils.counters["stats"]["unique_graphs"] - kept


def calibrate(compiled, group_seconds):
    seconds(compiled, 2)
    return max(1, round(group_seconds / seconds(compiled, 1)))


def seconds(compiled, calls):
    step = STEPS[compiled]
    begun = time.perf_counter()
    for _ in range(calls):
        step()
    return (time.perf_counter() - begun) / calls


def version():
    return str(torch.__version__)


def serve(functions):
    """Answer requests, each the name of a function and its arguments, until nobody asks any more."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # what anyone prints must not get among the answers
    while True:
        try:
            method, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = functions[method](*arguments), None
        except Exception as error:
            answer = None, f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve(globals())
