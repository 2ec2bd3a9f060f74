"""The laws of the rows in `tests/laws/rows/precision.py`."""

from tests.laws.each.owed_by_layers import *  # noqa: F403
from tests.laws.rows.precision import LAYERS as ROWS  # noqa: F401
