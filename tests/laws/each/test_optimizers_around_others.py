"""The laws of the rows `AROUND_OTHERS` in `tests/laws/rows/optimizers.py`."""

from tests.laws.each.owed_by_optimizers import *  # noqa: F403
from tests.laws.rows.optimizers import AROUND_OTHERS as ROWS  # noqa: F401
