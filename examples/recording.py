"""How a run writes its record, which `mlax_tutorial.data.recorded` reads."""

import datetime
import json
import os
import platform

import jax
import optax

from mlax_tutorial.data import records


def write(name: str, result: dict, command: list[str]) -> None:
    """Write ``result`` as the record ``name``, whole or not at all, with the command, the date, the device and the versions."""
    result = result | {
        "command": " ".join(["python -m", *command]),
        "date": datetime.date.today().isoformat(),
        "device": f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), "jax": jax.__version__, "optax": optax.__version__}
        | result.get("versions", {}),
    }
    path = records.FOLDER / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(result, indent=1) + "\n")
    partial.replace(path)
    print(f"written: {path}")
