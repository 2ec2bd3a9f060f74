"""The decoder of `examples/decoder.py` as PyTorch has it, in a process that answers requests: that example asks.

Run by a Python that has PyTorch and NumPy, and knows nothing of JAX. Queries, keys and values come from one product, the update is the
fused one. As on the other side, the weights are float32, and everything behind them has the dtype that is asked for.
"""

import time

from worker import serve, tensor  # first, for it says where PyTorch may keep what it compiled

# isort: split
import torch
import torch._dynamo
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BASE, EPSILON = 10_000.0, 1e-5


def normalized(x):
    return F.rms_norm(x, (x.shape[-1],), eps=EPSILON)


def turned(x, cosine, sine):  # (batch, heads, length, head_dim)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


class Block(nn.Module):
    """One layer of the stack, from our kernels, whose last axis is the output."""

    def __init__(self, query_kernel, key_kernel, value_kernel, out_kernel, wide, narrow):
        super().__init__()
        width, self.heads, _ = query_kernel.shape
        into = [kernel.reshape(width, width) for kernel in (query_kernel, key_kernel, value_kernel)]
        kernels = {"into": torch.cat(into, dim=1), "out": out_kernel.reshape(width, width), "wide": wide, "narrow": narrow}  # fmt: skip
        for name, kernel in kernels.items():
            setattr(self, name, nn.Parameter(kernel.T.contiguous()))

    def forward(self, x, cosine, sine):
        into = F.linear(normalized(x), self.into.to(x.dtype))
        query, key, value = into.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key = turned(query, cosine, sine), turned(key, cosine, sine)
        y = F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(-2)
        x = x + F.linear(y, self.out.to(x.dtype))
        y = F.relu(F.linear(normalized(x), self.wide.to(x.dtype))).square()
        return x + F.linear(y, self.narrow.to(x.dtype))

    def gradients(self):
        """Those of our kernels, by the end of their names."""
        width = self.out.shape[0]
        into = self.into.grad.T.unflatten(-1, (3, self.heads, -1))
        found = {f"{name}_kernel']": into[:, i] for i, name in enumerate(("query", "key", "value"))}
        found["out_kernel']"] = self.out.grad.T.reshape(self.heads, -1, width)
        return found | {f"['{name}']['kernel']": getattr(self, name).grad.T for name in ("wide", "narrow")}


class Decoder(nn.Module):
    def __init__(self, weights, length, dtype):
        super().__init__()
        self.names, self.dtype = list(weights), getattr(torch, dtype)
        self.words = nn.Parameter(tensor(weights[self.named("['embed']")]))
        ends = [f"{name}_kernel']" for name in ("query", "key", "value", "out")]
        stacks = [tensor(weights[self.named(end)]) for end in (*ends, "['wide']['kernel']", "['narrow']['kernel']")]  # fmt: skip
        self.blocks = nn.ModuleList(Block(*kernels) for kernels in zip(*stacks))
        half = stacks[0].shape[-1] // 2
        rates = BASE ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = torch.arange(length, dtype=torch.float32)[:, None] * rates
        self.register_buffer("cosine", angles.cos().to(self.dtype))
        self.register_buffer("sine", angles.sin().to(self.dtype))

    def named(self, end):
        (name,) = [name for name in self.names if name.endswith(end)]
        return name

    def forward(self, ids):
        words = self.words.to(self.dtype)
        x = F.embedding(ids[:, :-1], words)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        logits = F.linear(normalized(x), words)
        return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())

    def gradients(self):
        found = {self.named("['embed']"): self.words.grad}
        each = [block.gradients() for block in self.blocks]
        for end in each[0]:
            found[self.named(end)] = torch.stack([one[end] for one in each])
        return {name: gradient.float().cpu().numpy() for name, gradient in found.items()}


GIVEN, STEPS = {}, {}  # what `load` was given, and the last step that was begun, eager and compiled


def device():
    """Where this runs, and the version."""
    where = torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu"
    return where, str(torch.__version__)


def load(weights, batches, dtype, rate, decay, second_decay):
    GIVEN.update(weights=weights, batches=batches, dtype=dtype, rate=rate, decay=decay, second_decay=second_decay)  # fmt: skip


def make():
    batches = torch.from_numpy(GIVEN["batches"]).long().to(DEVICE)
    return Decoder(GIVEN["weights"], batches.shape[-1] - 1, GIVEN["dtype"]).to(DEVICE), batches


def first_step():
    """The loss of the first batch, and the gradients by our names."""
    model, batches = make()
    loss = model(batches[0])
    loss.backward()
    return loss.item(), {f"gradients.{name}": array for name, array in model.gradients().items()}


def begin(compiled, steps):
    """The losses of the first steps, and the seconds of the first of all, with compiling."""
    torch._dynamo.reset()
    model, batches = make()
    decays = [parameter for parameter in model.parameters() if parameter is not model.words]
    optimizer = torch.optim.AdamW(
        [{"params": decays, "weight_decay": GIVEN["decay"]}, {"params": [model.words], "weight_decay": 0.0}],
        lr=GIVEN["rate"], betas=(0.9, GIVEN["second_decay"]), fused=True,
    )  # fmt: skip
    function, done = torch.compile(model) if compiled else model, 0

    def step():
        nonlocal done
        loss = function(batches[done % len(batches)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        return loss.detach()

    begun = time.perf_counter()
    losses = [step().item()]
    spent = time.perf_counter() - begun
    STEPS[compiled] = step
    return losses + [step().item() for _ in range(steps - 1)], spent


def seconds(compiled, calls):
    """Of a step, the mean of some; the device has nothing else to do before and behind."""
    step = STEPS[compiled]
    wait()
    begun = time.perf_counter()
    for _ in range(calls):
        step()
    wait()
    return (time.perf_counter() - begun) / calls


def wait():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    serve(globals())
