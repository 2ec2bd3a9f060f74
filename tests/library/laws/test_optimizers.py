"""The laws of the rows `BY_THEMSELVES` in `tests/library/rows/optimizers.py`."""

from tests.library.laws.owed_by_optimizers import *  # noqa: F403
from tests.library.rows.optimizers import BY_THEMSELVES as ROWS  # noqa: F401
