"""The tests of `owed_by_layers.py` or `owed_by_optimizers.py` run over the `ROWS` of each file of this folder."""

import pytest

from tests.laws.rows.judging import pairs

pytest.register_assert_rewrite("tests.laws.each.owed_by_layers", "tests.laws.each.owed_by_optimizers")


def pytest_generate_tests(metafunc):
    rows = metafunc.module.ROWS
    if "law" in metafunc.fixturenames:
        metafunc.parametrize(("row", "law"), pairs(rows, metafunc.module.LAWS))
    elif "row" in metafunc.fixturenames:
        metafunc.parametrize("row", rows, ids=lambda row: row.id)
