"""The laws of the rows `AROUND_OTHERS` in `tests/library/rows/optimizers.py`."""

from tests.library.laws.owed_by_optimizers import *  # noqa: F403
from tests.library.rows.optimizers import AROUND_OTHERS as ROWS  # noqa: F401
