"""The benchmarks run, and what makes their figures worth reading holds: equal work, equal counting, honest ratios."""

import functools
import json
import time

import jax
import jax.numpy as jnp
import pytest

from benchmarks import __main__ as command
from benchmarks import contest, dense, loops, pytorch, report
from benchmarks.workload import BY_HAND, OURS, PACKED, Workload, all_workloads

QUICK_TO_COMPILE = True  # what is computed is compared here, and no time
SIZES = (6, 5, 3)
WEIGHTS, BATCH = dense.weights(SIZES), dense.batch(4, SIZES)
CONTENDERS = dense.contenders(jnp.tanh)


def small(**contenders):
    return Workload("small", "for tests", lambda: WEIGHTS, lambda: WEIGHTS, lambda: BATCH, contenders)


def test_a_quick_run_reports_one_workload(tmp_path, capsys, optimized):
    assert command.main(["mlp", "--quick", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "mlp: a training step of 784-512-512-10" in printed
    names = sorted(path.name for path in tmp_path.iterdir())
    assert [name.rpartition(".")[2] for name in names] == ["json", "md", "svg"]
    data = json.loads((tmp_path / names[0]).read_text())
    assert data["versions"]["jax"] == jax.__version__ and data["device"]
    results = data["workloads"]["mlp"]
    assert list(results) == [BY_HAND, OURS]
    for result in results.values():
        assert len(result["steps"]) == len(result["first_calls"]) == 1
        assert result["steps"][0] > 0 < result["first_calls"][0]
        assert result["traces"] == 1, "a new learning rate was traced again"
        assert result["program"]["flops"] > 1e8 and result["program"]["memory"] > 1e6
    assert data["imports"]["mlax_tutorial"][0] > 0 < data["imports"]["jax"][0]
    text = (tmp_path / names[1]).read_text()
    assert "| by hand " in text and "## Imports" in text and jax.__version__ in text


def test_an_unknown_workload_is_refused(capsys):
    with pytest.raises(SystemExit):
        command.main(["no_such"])
    assert "there are adam, bilstm" in capsys.readouterr().err


def tiny(workload):
    """Small weights, and four examples of the batch."""
    return workload.small(), jax.tree.map(lambda array: array[:4], workload.batch())


@pytest.mark.parametrize("name", all_workloads())
def test_workloads_are_complete(name):
    workload = all_workloads()[name]
    assert workload.name == name and workload.about
    for contenders in filter(None, (workload.contenders, workload.without_draws)):
        assert next(iter(contenders)) == BY_HAND and OURS in contenders
    first, again = workload.weights(), workload.weights()
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), first, again))


@functools.cache
def losses(name, who):
    """The first three losses of a contender, all of them on the same small weights and few examples, without draws."""
    workload = all_workloads()[name]
    contenders = workload.without_draws or workload.contenders
    return contest.begin(contenders[who], *tiny(workload), workload.learning_rate)[1]


@pytest.mark.parametrize("name", all_workloads())
def test_the_library_computes_what_is_written_by_hand(name):
    contest.check_equal({who: losses(name, who) for who in (BY_HAND, OURS, PACKED)})


@pytest.mark.parametrize("name", all_workloads())
@pytest.mark.parametrize("who", [name for name in CONTENDERS if name not in (BY_HAND, OURS, PACKED)])
def test_peers_compute_what_is_written_by_hand(name, who):
    pytest.importorskip({"Haiku": "haiku", "Equinox": "equinox"}.get(who.partition(",")[0], "flax"))
    contest.check_equal({one: losses(name, one) for one in (BY_HAND, who)})


@pytest.mark.skipif(not pytorch.PYTHON.exists(), reason=pytorch.MISSING)
def test_pytorch_computes_what_is_written_by_hand():
    """Eager only: to compile takes a minute."""
    with pytorch.Worker() as worker:
        for name, workload in all_workloads().items():
            theirs = pytorch.contenders(worker, workload)["PyTorch"]
            found = theirs.begin(workload, *tiny(workload), workload.learning_rate, draws=False)[1]
            contest.check_equal({BY_HAND: losses(name, BY_HAND), "PyTorch": found})
            assert theirs.clock()() > 0
        with pytest.raises(RuntimeError, match="KeyError"):
            worker.ask("no_such")


@pytest.mark.parametrize("who", [BY_HAND, OURS])
def test_what_draws_draws_anew_at_each_step(who):
    workload = all_workloads()["encoder"]
    with_draws, without = (
        contest.begin(contenders[who], *tiny(workload), 0.0)[1]
        for contenders in (workload.contenders, workload.without_draws)
    )
    assert len(set(without)) == 1 and len({*with_draws, *without}) == 4


def test_the_first_call_is_timed_with_its_trace(monkeypatch):
    clock, traced = time.perf_counter, []
    monkeypatch.setattr(time, "perf_counter", lambda: clock() + sum(traced))

    @jax.jit
    def step():
        traced.append(10_000)  # seconds, as the clock tells them
        return jnp.float32(1)

    step()
    seconds, _ = contest.begin(lambda *_: lambda rate: loops.Run(step, step.lower), WEIGHTS, BATCH)
    assert len(traced) == 2 and seconds > 10_000


def test_the_sizes_are_those_that_are_promised():
    sizes = {
        name: sum(leaf.size for leaf in jax.tree.leaves(workload.weights()))
        for name, workload in all_workloads().items()
    }
    assert 98_000 < sizes["resnet"] < 102_000
    assert len(jax.tree.leaves(all_workloads()["adam"].weights())) == 1000


def test_a_program_is_looked_at():
    n = 128
    product, add = jax.jit(lambda x, y: x @ y), jax.jit(lambda x, y: x + y, donate_argnums=0)
    x = jnp.ones((n, n))
    program = contest.look_at(loops.Run(lambda: x, lambda: product.lower(x, x)))
    assert 2 * n**3 <= program.flops < 2.1 * n**3
    assert program.bytes >= 3 * 4 * n**2
    assert program.instructions >= 3
    program = contest.look_at(loops.Run(lambda: x, lambda: add.lower(x, x)))
    assert program.memory == 2 * 4 * n**2, "what is donated counts once"


def test_clocks_are_read_in_turns():
    read = []

    def clock(name):
        return lambda: read.append(name) or float(len(read))

    times = contest.in_turns({"a": clock("a"), "b": clock("b"), "c": clock("c")}, rounds=20)
    rounds = [tuple(read[start : start + 3]) for start in range(0, 60, 3)]
    assert all(sorted(names) == ["a", "b", "c"] for names in rounds)
    assert len(set(rounds)) > 3, "the order must change, or who comes after a heavy one is at a disadvantage"
    assert [read[int(when) - 1] for when in times["b"]] == ["b"] * 20
    assert list(times) == ["a", "b", "c"]


def test_a_contender_that_computes_something_else_stops_the_run():
    relu = dense.contenders(jax.nn.relu)[BY_HAND]
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

            return loops.Run(step, step.lower)

        return start

    assert contest.count_traces(closes_over, WEIGHTS, BATCH) == len(contest.LEARNING_RATES)
    assert contest.count_traces(CONTENDERS[BY_HAND], WEIGHTS, BATCH) == 1
    assert contest.count_traces(CONTENDERS[OURS], WEIGHTS, BATCH) == 1
    assert contest.count_traces(CONTENDERS[PACKED], WEIGHTS, BATCH) == 1


def test_each_start_begins_anew():
    """Weights are donated; a second run must not find them gone, or trained already."""
    for name in (BY_HAND, OURS):
        start = CONTENDERS[name](WEIGHTS, BATCH, contest.Tally())
        first = [float(start(0.1).step()) for _ in range(2)]
        step = start(0.1).step
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
