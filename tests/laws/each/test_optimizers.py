"""The laws of the rows `BY_THEMSELVES` in `tests/laws/rows/optimizers.py`."""

from tests.laws.each.owed_by_optimizers import *  # noqa: F403
from tests.laws.rows.optimizers import BY_THEMSELVES as ROWS  # noqa: F401
