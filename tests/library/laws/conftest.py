"""The tests of `owed.py` run over the `ROWS` of each file of this folder."""

import pytest

from mlax_tutorial.checking.laws import LAYER
from tests.library.rows.judging import pairs

pytest.register_assert_rewrite("tests.library.laws.owed")


def pytest_generate_tests(metafunc):
    rows = metafunc.module.ROWS
    if "law" in metafunc.fixturenames:
        metafunc.parametrize(("row", "law"), pairs(rows, LAYER))
    elif "row" in metafunc.fixturenames:
        metafunc.parametrize("row", rows, ids=lambda row: row.id)
