"""A language model on many hosts, data parallel: each process reads its own part of each batch, and all devices train one model.

    .venv/bin/python -m examples.multihost                                  # one process, all devices of this machine
    .venv/bin/python -m examples.multihost --local 2                        # two processes here, on its CPU: to try it before it costs
    .venv/bin/python -m examples.multihost --cluster                        # in each process that SLURM, GKE or a TPU pod started
    .venv/bin/python -m examples.multihost --coordinator 10.0.0.1:1234 --processes 2 --process 0      # by hand; on the other host 1
    .venv/bin/python -m examples.multihost --checkpoints DIR --log FILE     # save every 50 steps; started again, it goes on

It predicts the next character of the Jargon File, with the decoder of `fsdp.py`. All processes run the same program, and start each
computation over all devices in the same order; process 0 alone reports. `examples/launch/` has what to type on a cluster.
"""

import argparse
import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from examples.fsdp import SIZES, add_options, cross_entropy, decoder, encoded, windows
from mlax_tutorial import data, optim, saving, sharding, streams, training


def train(text, *, mesh, size="small", steps=200, batch_size=32, rate=1e-3, seed=0, directory=None, log=None, every=50, say=print):  # fmt: skip
    """Train to the step ``steps``, from the last checkpoint if there is one; returns the state and the losses of these steps.

    Raises:
      CheckpointError: if what lies there is of another size, seed or batch size.
      ValueError: if the processes did not find the same checkpoint.
    """
    ids, characters = encoded(text)
    length = SIZES[size][3]
    model, stream = decoder(characters, size), streams.Stream(windows(ids, length), batch_size)
    optimizer = optim.Chain(optim.ClipByGlobalNorm(1.0), optim.AdamW(rate, epsilon=1e-6))
    # Without rules, all weights and moments are on each device.
    recipe = model, optimizer, jax.random.key(seed), jax.ShapeDtypeStruct((batch_size, length), "int32"), mesh, ()  # fmt: skip
    target, by_rows, losses = sharding.abstract(*recipe), NamedSharding(mesh, P("data")), []
    step = training.make_step(model, cross_entropy, jax.tree.map(lambda leaf: leaf.sharding, target))
    with contextlib.ExitStack() as stack:
        checkpoints = stack.enter_context(saving.Checkpoints(directory)) if directory else None
        begun, position = (checkpoints and checkpoints.latest_step()) or 0, stream.begin(seed)
        # A directory that the hosts do not share would have some begin anew, and all wait for each other.
        sharding.check_agreement(np.int32(begun), "the step of the last checkpoint")
        if begun:
            saved = checkpoints.restore(_saved(target, position, batch_size))
            variables, position = saved["variables"], saved["position"]
            for name, wanted, found in [
                ("--seed", seed, position.seed),
                ("--batch-size", batch_size, saved["batch_size"]),
            ]:
                if int(found) != wanted:
                    raise saving.CheckpointError(
                        f"{directory} holds a run with {name} {found}, not {wanted}."
                    )
            say(f"resumed after step {begun}, on {mesh.size} devices")
        else:
            variables = sharding.init(*recipe)
        sharding.check_agreement((variables, position), "what to begin with")
        state = training.State(*variables)
        log = stack.enter_context(training.Log(log, after=begun)) if log else None
        progress = contextlib.nullcontext()
        if jax.process_index() == 0:
            progress = stack.enter_context(training.Progress(steps))
            progress.done = begun
        last = time.perf_counter()
        for number in range(begun + 1, steps + 1):
            mine, position = stream.read(position)  # the rows of this process, on the host
            x, y = (jax.make_array_from_process_local_data(by_rows, part) for part in mine)
            state, loss = step(optimizer, state, None, x, y)
            losses.append(loss)
            if jax.process_index() == 0:
                progress.advance()
            if log:
                log.write(number, {"loss": loss})
            if number % every == 0 or number == steps:
                # Each device holds the loss, so any process may read it alone.
                now, bits = time.perf_counter(), float(loss) / math.log(2)
                say(f"step {number}: {bits:.3f} bits a character, {now - last:.1f} s")
                last = now
                if checkpoints:  # all processes, also where the first alone writes
                    checkpoints.save(number, _saved(tuple(state), position, batch_size))
    return state, [float(loss) for loss in losses]


def _saved(variables, position, batch_size):
    return {"variables": variables, "position": position, "batch_size": np.int32(batch_size)}


def local(count, devices, arguments):
    """Run the script in processes of this machine; return the exit status of the first that fails, or 0. None of them outlives it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = ["--local", "0", "--tied", "--devices", str(devices), "--coordinator", address, "--processes", str(count)]  # fmt: skip
    command = [sys.executable, "-m", "examples.multihost", *arguments, *options]
    processes = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # or else it would end without the `finally`
    try:
        for index in range(count):
            # A session of their own, or Ctrl-C would reach them, too, and each would print where it was.
            processes.append(
                subprocess.Popen(
                    [*command, "--process", str(index)], stdin=subprocess.PIPE, start_new_session=True
                )
            )
        while any(process.poll() is None for process in processes):
            if failed := [process.returncode for process in processes if process.poll()]:
                return failed[0] if failed[0] > 0 else 128 - failed[0]  # the others would wait for it
            time.sleep(0.1)
        return max(process.returncode for process in processes)
    except KeyboardInterrupt:
        return 130
    finally:
        for process in processes:
            process.kill()  # JAX takes SIGTERM for a notice that the machine will be taken away
        for process in processes:
            process.wait()


def end_with_the_parent():
    """End when the standard input ends: a parent that was killed can end nobody."""

    def watch():
        os.read(0, 1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )  # fmt: skip
    parser.add_argument("--local", type=int, default=0, metavar="N", help="start N processes on this machine's CPU")  # fmt: skip
    parser.add_argument("--cluster", action="store_true", help="join the processes that SLURM, GKE or a TPU pod started")  # fmt: skip
    parser.add_argument("--coordinator", metavar="HOST:PORT", help="where process 0 runs; any free port")
    parser.add_argument("--processes", type=int, metavar="N", help="how many there are, with --coordinator")
    parser.add_argument("--process", type=int, metavar="I", help="which this is, from 0")
    parser.add_argument("--devices", type=int, help="simulate so many in each process, on the CPU; with --local 1")  # fmt: skip
    add_options(parser)
    parser.add_argument("--checkpoints", metavar="DIR", help="on a file system that all share; go on from what lies there")  # fmt: skip
    parser.add_argument("--log", metavar="FILE", help="a line of JSON for each step, from process 0")
    parser.add_argument("--tied", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    for name in ("steps", "batch_size", "every", "devices"):
        if getattr(given, name) is not None and getattr(given, name) < 1:
            parser.error(f"--{name.replace('_', '-')} must be at least 1")
    by_hand = [given.coordinator, given.processes, given.process]
    if None in by_hand and by_hand != [None] * 3:
        parser.error("--coordinator, --processes and --process belong together")
    if bool(given.local) + given.cluster + bool(given.coordinator) > 1:
        parser.error("--local, --cluster and --coordinator are three ways to start: choose one")
    if given.coordinator and not 0 <= given.process < given.processes:
        parser.error(
            f"--process must be from 0 to {given.processes - 1}, one less than --processes, got {given.process}"
        )
    if given.local < 0:
        parser.error(f"--local must be at least 1, got {given.local}")

    def check_batch(count):
        if given.batch_size % count:
            parser.error(f"--batch-size {given.batch_size} cannot be divided over {count} devices")

    if given.local:
        check_batch(given.local * (given.devices or 1))
        return local(given.local, given.devices or 1, arguments)
    if given.tied:
        end_with_the_parent()
    if given.devices:
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", given.devices)
    # Before anything else is done with JAX: once devices are in use, it is too late.
    if given.coordinator:
        jax.distributed.initialize(given.coordinator, given.processes, given.process)
    elif given.cluster:
        try:
            jax.distributed.initialize()
        except ValueError as error:
            parser.error(f"--cluster: JAX finds no cluster around this process ({error}): give --coordinator, --processes and --process")  # fmt: skip
    check_batch(jax.device_count())
    first = jax.process_index() == 0
    say = print if first else lambda _: None
    say(f"{jax.process_count()} processes, {jax.device_count()} devices, {jax.local_device_count()} of them in process 0")  # fmt: skip
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    try:
        train(
            data.jargon().train, mesh=mesh, size=given.size, steps=given.steps, batch_size=given.batch_size,
            rate=given.rate, seed=given.seed, directory=given.checkpoints, log=given.log, every=given.every, say=say,
        )  # fmt: skip
    except saving.CheckpointError as error:
        parser.error(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
