"""Every record is readable, whole, and says where it is from."""

import pytest

from mlax_tutorial import data
from mlax_tutorial.data import records

NAMES = sorted(path.stem for path in records.FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_a_record_says_where_it_is_from(name):
    record = data.recorded(name)
    assert record["command"].startswith("python -m ") and record["device"] and record["versions"]["jax"]
    assert len(record["date"]) == 10


def test_there_are_records_and_others_are_refused():
    assert "names_lstm" in NAMES
    with pytest.raises(data.DataError, match=r"^recorded: there is no record 'nmaes', but .*names_lstm"):
        data.recorded("nmaes")
