"""The laws of the rows in `tests/library/rows/convolution.py`."""

from tests.library.laws.owed_by_layers import *  # noqa: F403
from tests.library.rows.convolution import LAYERS as ROWS  # noqa: F401
