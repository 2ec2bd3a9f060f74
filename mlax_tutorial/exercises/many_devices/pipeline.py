"""Four stages on four devices, microbatches one behind the other."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

from mlax_tutorial.checking import Exercise, Failed
from mlax_tutorial.exercises.many_devices import _eight
from mlax_tutorial.inspection import collectives

STAGES, MICRO = 4, 6


def solution(stage, kernel, micro, axis_name):
    size, me = jax.lax.axis_size(axis_name), jax.lax.axis_index(axis_name)
    ahead = [(i, i + 1) for i in range(size - 1)]

    def tick(arriving, t):
        first = micro[jnp.minimum(t, len(micro) - 1)]
        out = stage(kernel, jnp.where(me == 0, first, arriving))
        return jax.lax.ppermute(out, axis_name, ahead), out

    start = jnp.zeros_like(micro[0]) + 0 * kernel[0, 0]  # of this device
    _, outs = jax.lax.scan(tick, start, jnp.arange(len(micro) + size - 1))
    return outs[size - 1 :]  # whole on the last device


def _stage(kernel, x):
    return x + jnp.tanh(x @ kernel)


@jax.jit
def _through(kernels, micro):
    for kernel in kernels:
        micro = _stage(kernel, micro)
    return micro


def check(pipeline):
    kernels, micro = _eight.numbers(0, STAGES, 5, 5), _eight.numbers(1, MICRO, 2, 5)

    def over(size):
        return _eight.each(
            lambda kernel, micro: pipeline(_stage, kernel[0], micro, "stages"),
            (P("stages"), P()),
            name="stages",
            size=size,
        )

    function = over(STAGES)
    got = function(kernels, micro)
    right = _through(kernels, micro)
    if got.shape[1:] != right.shape:
        raise Failed(f"The result has the shape of `micro`, {right.shape}, not {got.shape[1:]}.")
    last = got[-1]
    if not _eight.close(last, right):
        if all(_eight.close(part, _stage(kernel, micro)) for part, kernel in zip(got, kernels)):
            raise Failed("Each device has applied its stage to the inputs; only the first takes them, the others take what the one before made.", expected=right[0], got=last[0])  # fmt: skip
        if any(_eight.close(last, jnp.broadcast_to(each, right.shape)) for each in right):
            raise Failed("All outputs are those of one microbatch. Does the first stage take another one in each tick, and are all outputs kept?", expected=right[-1], got=last[-1])  # fmt: skip
        shifted = [i for i in range(1, STAGES) if _eight.close(last[i:], right[: MICRO - i])]
        if shifted:
            places = f"{shifted[0]} places" if shifted[0] > 1 else "a place"
            raise Failed(f"The outputs stand {places} too late in your result. The first one leaves the last stage after {STAGES - 1} ticks, if the first stage takes microbatch `t` in tick `t`.", expected=right[0], got=last[0])  # fmt: skip
        wrong = next(i for i in range(MICRO) if not _eight.close(last[i], right[i]))
        if wrong:
            raise Failed(f"In the result the microbatch at place {wrong} is the first that is wrong. Does the first stage take microbatch `t` in tick `t`, and does the pipeline run on until it is empty?", expected=right[wrong], got=last[wrong])  # fmt: skip
        raise Failed("What comes out of the last stage is wrong.", expected=right[0], got=last[0])
    one = np.arange(MICRO)[:, None, None] == 2
    spoiled = np.asarray(function(kernels, np.where(one, np.float32("nan"), micro)))[-1]
    if not _eight.close(np.where(one, 0, spoiled), np.where(one, 0, right)):
        raise Failed(
            "Right for finite numbers, but with NaNs in one microbatch others are wrong: 0 times NaN is NaN. Choose what a stage takes, and what is "
            "kept, by `jnp.where` instead of multiplying by 0 or 1.",
            expected=right[0], got=spoiled[0],
        )  # fmt: skip
    # More microbatches than before, and fewer than stages.
    more, deeper = np.concatenate([micro, np.asarray(micro)[:1] + 1]), _eight.numbers(2, 8, 5, 5)
    got = over(8)(deeper, more)
    more = _through(deeper, more)
    if got.shape[1:] != more.shape or not _eight.close(got[-1], more):
        raise Failed(
            f"Right for {MICRO} microbatches and {STAGES} stages, but not for {MICRO + 1} and 8: `len(micro)` and "
            "`jax.lax.axis_size(axis_name)` say how many there are."
        )
    for kind in (jnp.bfloat16, jnp.float16):
        halves = (jax.ShapeDtypeStruct(x.shape, kind) for x in (kernels, micro))
        dtype = jax.eval_shape(function, *halves).dtype
        if dtype != kind:
            raise Failed(
                f"Right for float32, but where weights and microbatches are {kind.__name__}, your result is {dtype}: zeros have the dtype of `micro`."
            )
    found = collectives.find(function, kernels, micro)
    whole = [each.kind for each in found if each.kind != "collective-permute"]
    if whole:
        raise Failed(
            f"Right, but there is an {whole[0]} in it: stages speak to the next one only, by `ppermute`."
        )
    ticks = sum(each.times for each in found)
    if ticks > MICRO + STAGES - 1:
        raise Failed(
            f"Right, in {ticks} ticks. {MICRO} microbatches through {STAGES} stages take {MICRO + STAGES - 1}, if a stage begins the next one while the "
            "others are at work."
        )
    sent = max(each.bytes for each in found)
    if sent > micro[0].nbytes:
        raise Failed(
            f"Right, but {sent} bytes go to the next stage at once; a microbatch has {micro[0].nbytes}. So a stage waits until the one before "
            "has finished all of them: in each tick it takes one."
        )


exercise = Exercise(
    title="A pipeline of four stages",
    stars=3,
    minutes=25,
    why="Of M + S - 1 ticks each stage works in M: the rest is the bubble, and more microbatches make it smaller.",
    hints=(
        "Think in ticks. In tick `t` the first stage takes `micro[t]`, every other stage what arrived; then all pass on what they made.",
        "`jax.lax.scan` over `jnp.arange(len(micro) + size - 1)`, with what arrived as the carry. `jnp.where(me == 0, first, arriving)` chooses.",
        "After `size - 1` ticks the first result leaves the last stage. The carry begins as zeros that vary over the devices: `jnp.zeros_like(micro[0]) + 0 * kernel[0, 0]`.",
    ),
    solution=solution,
    check=check,
    devices=8,
)
