"""The laws of the rows in `tests/laws/rows/embed.py`."""

from tests.laws.each.owed_by_layers import *  # noqa: F403
from tests.laws.rows.embed import LAYERS as ROWS  # noqa: F401
