"""The benchmarks run, and what makes their figures worth reading holds: equal work, equal counting, honest ratios."""

import functools
import json

import jax
import jax.numpy as jnp
import pytest

from benchmarks import __main__ as command
from benchmarks import contest, dense, report
from benchmarks.workload import BY_HAND, OURS, Workload, all_workloads

SIZES = (6, 5, 3)
WEIGHTS, BATCH = dense.weights(SIZES), dense.batch(4, SIZES)
CONTENDERS = dense.contenders(jnp.tanh)


def small(**contenders):
    return Workload("small", "for tests", lambda: WEIGHTS, lambda: WEIGHTS, lambda: BATCH, contenders)


def test_a_quick_run_reports_one_workload(tmp_path, capsys):
    assert command.main(["mlp", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "mlp: a training step of 784-512-512-10" in printed
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["json", "md"]
    data = json.loads((tmp_path / names[0]).read_text())
    assert data["versions"]["jax"] == jax.__version__ and data["device"]
    results = data["workloads"]["mlp"]
    assert list(results) == [BY_HAND, OURS]
    for result in results.values():
        assert len(result["steps"]) == len(result["first_calls"]) == 1
        assert 0 < result["steps"][0] < result["first_calls"][0], "the first call also compiles"
        assert result["traces"] == 1, "a new learning rate was traced again"
    # The package brings jax and little else; a wide margin, since this may be a busy machine.
    assert data["imports"]["mlax_tutorial"][0] < 3 * data["imports"]["jax"][0]
    text = (tmp_path / names[1]).read_text()
    assert "| by hand " in text and "## Imports" in text and jax.__version__ in text


def test_an_unknown_workload_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["no_such"])
    assert "there are mlp" in capsys.readouterr().err


@pytest.mark.parametrize("name", all_workloads())
def test_workloads_are_complete(name):
    workload = all_workloads()[name]
    assert workload.name == name and workload.about
    assert next(iter(workload.contenders)) == BY_HAND and OURS in workload.contenders
    first, again = workload.weights(), workload.weights()
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), first, again))
    begun = contest.begin(workload.contenders[BY_HAND], workload.small(), workload.batch())
    assert len(set(begun[1])) == 3, "the small copy does not fit the batch, or does not train"


@pytest.mark.parametrize("name", all_workloads())
def test_the_library_computes_what_is_written_by_hand(name):
    workload = all_workloads()[name]
    weights, batch = workload.weights(), workload.batch()
    found = {who: contest.begin(workload.contenders[who], weights, batch)[1] for who in (BY_HAND, OURS)}
    contest.check_equal(found)


def test_a_contender_that_computes_something_else_stops_the_run():
    relu = functools.partial(dense.by_hand, jax.nn.relu)
    with pytest.raises(contest.Differs, match="relu"):
        contest.run(small(**CONTENDERS | {"relu": relu}), [BY_HAND, "relu"], rounds=1, first_calls=1)


def test_a_contender_that_does_not_train_stops_the_run():
    with pytest.raises(contest.Differs, match="does not change"):
        contest.check_equal({BY_HAND: [2.0, 2.0, 2.0]})


def test_traces_are_counted():
    def closes_over(weights, batch, tally):
        def start(learning_rate):
            @jax.jit
            def step():
                tally()
                return jnp.float32(learning_rate)

            return step

        return start

    assert contest.count_traces(closes_over, WEIGHTS, BATCH) == len(contest.LEARNING_RATES)
    assert contest.count_traces(CONTENDERS[BY_HAND], WEIGHTS, BATCH) == 1
    assert contest.count_traces(CONTENDERS[OURS], WEIGHTS, BATCH) == 1


def test_each_start_begins_anew():
    """Weights are donated; a second run must not find them gone, or trained already."""
    for name in (BY_HAND, OURS):
        start = CONTENDERS[name](WEIGHTS, BATCH, contest.Tally())
        first = [float(start(0.1)()) for _ in range(2)]
        step = start(0.1)
        assert first == [float(step())] * 2
        assert float(step()) < first[0]


def test_ratios_are_taken_round_by_round():
    """A machine that is ten times slower in the second half changes the times, and not the ratios."""
    slow = [1.0] * 4 + [10.0] * 4
    assert contest.ratios([2 * t for t in slow], slow) == (2.0, 2.0, 2.0)
    assert contest.ratios([1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5) == (2.0, 3.0, 4.0)
    assert contest.ratios([3.0], [2.0]) == (1.5,) * 3


def test_a_table_reads_well_as_text():
    assert report.table([["a", "long"], ["longer", "b"]]) == (
        "| a      | long |\n| ------ | ---- |\n| longer | b    |"
    )
