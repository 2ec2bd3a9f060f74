"""The laws of the rows in `tests/library/rows/basic.py`."""

from tests.library.laws.owed import *  # noqa: F403
from tests.library.rows.basic import LAYERS as ROWS  # noqa: F401
