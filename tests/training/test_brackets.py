"""`examples/brackets.py`: its kinds run, and the record says what the chapter says of it."""

import numpy as np
import pytest

from examples import brackets
from mlax_tutorial import data


@pytest.mark.parametrize("kind", ["no block", "learned places, drawn"])
def test_a_kind_learns(kind):
    one, two = (brackets.test(kind, brackets.train(kind, 0, steps), 24, count=200)[0] for steps in (1, 60))
    assert two > one + 0.05 and two > 0.15


def test_drawn_places_are_in_order_and_use_the_whole_table():
    places = brackets.drawn_places(np.random.default_rng(0), 200)
    assert places.shape == (200, 24) and (np.diff(places, axis=1) > 0).all()
    assert set(places.ravel()) == set(range(48)) and places.dtype == np.int32


def test_the_record():
    record = data.recorded("brackets")
    assert set(record["results"]) == set(brackets.KINDS) and record["steps"] == 1500
    for found in record["results"].values():
        assert {len(found[length][what]) for length in ("24", "48") for what in ("brackets", "rows")} == {3}


def test_the_command_line(capsys):
    results = brackets.main(["--kind", "no block", "--seeds", "1", "--steps", "2"])
    assert 0 < results["no block"]["24"]["brackets"][0] < 1 and "seed 0" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        brackets.main(["--record", "--kind", "rotary"])
