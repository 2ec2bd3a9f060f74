"""What trainings at full size came to: the records of the examples and of their twins in PyTorch, which chapters show."""

import json
from pathlib import Path

from mlax_tutorial.data.download import DataError

FOLDER = Path(__file__).parent / "recorded"


def recorded(name: str) -> dict:
    """Load the record of a training that was run once.

    Args:
      name: of a file in ``mlax_tutorial/data/recorded``, without its ending; that of an example, ``"names_lstm"``, or of a twin,
        ``"twin_names"``.

    Returns:
      A dict with what was found, and with ``command``, ``date``, ``device`` and ``versions`` of the run.

    Raises:
      DataError: if there is no such record; it names those that there are.

    Example:
      >>> from mlax_tutorial import data
      >>> data.recorded("names_lstm")["names"]
      {'train': 10866, 'test': 2714}
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        known = ", ".join(sorted(one.stem for one in FOLDER.glob("*.json")))
        raise DataError(f"recorded: there is no record {name!r}, but {known}.")
    return json.loads(path.read_text())
