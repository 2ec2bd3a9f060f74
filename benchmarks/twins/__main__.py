"""`python -m benchmarks.twins NAME`."""

import argparse
import importlib
import sys
from pathlib import Path

import numpy as np

from examples import recording

CLOSE = 1e-5  # of the first step's loss and gradients
NAMES = [
    path.stem for path in sorted(Path(__file__).parent.glob("[a-z]*.py")) if not path.stem.endswith("_torch")
]


def compare(name: str, seeds: int) -> dict:
    """What a twin came to over some seeds.

    Raises:
      RuntimeError: if the first steps differ, so that it is no twin, or PyTorch is not installed.
    """
    twin = importlib.import_module(f"benchmarks.twins.{name}")
    differences, sides = {}, {"jax": [], "torch": []}
    for seed in range(seeds):
        found, ours, theirs = twin.run(seed)
        for what, difference in found.items():
            if not difference < CLOSE:
                raise RuntimeError(
                    f"{name}, seed {seed}: {what} of the first step differs by {difference:.2g}"
                )
            differences[what] = max(differences.get(what, 0.0), float(difference))
        sides["jax"].append(ours)
        sides["torch"].append(theirs)
        print(
            f"seed {seed}: "
            + ", ".join(
                f"{side} {runs[-1]['losses'][-1]:.4f}, {runs[-1]['accuracy']:.2%}"
                for side, runs in sides.items()
            )
        )
    result = {
        "about": twin.ABOUT,
        "first step": {what: float(f"{value:.1e}") for what, value in differences.items()},
    }
    for side, runs in sides.items():
        result[side] = {
            "losses": [[round(float(loss), 5) for loss in run["losses"]] for run in runs],
            "accuracies": [round(float(run["accuracy"]), 4) for run in runs],
            # The fastest tenth: what else runs on the machine makes steps slower, never faster.
            "milliseconds": round(1000 * float(np.quantile([run["seconds"][5:] for run in runs], 0.1)), 2),
        }
        if "distance" in runs[0]:  # a generator's samples from real images
            result[side]["distances"] = [round(float(run["distance"]), 2) for run in runs]
    return result | {"versions": {"torch": str(sides["torch"][0]["torch"])}}


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.twins", description="A network beside its twin in PyTorch."
    )
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--record", action="store_true", help="write mlax_tutorial/data/recorded/twin_NAME.json"
    )
    options = parser.parse_args(arguments)
    try:
        result = compare(options.name, options.seeds)
    except RuntimeError as error:
        parser.exit(1, f"{error}\n")
    print(f"a step: JAX {result['jax']['milliseconds']} ms, PyTorch {result['torch']['milliseconds']} ms")
    if options.record:
        recording.write(f"twin_{options.name}", result, ["benchmarks.twins", *(arguments or sys.argv[1:])])
    return result


if __name__ == "__main__":
    main()
