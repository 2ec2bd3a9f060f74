"""``viz.processes``: runs of all kinds, made up and real, and the figure in a browser."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from mlax_tutorial import viz
from mlax_tutorial.inspection import hosts
from mlax_tutorial.inspection.hosts import Call, Host, Hosts


def late():
    """Process 1 comes half a second after the others."""
    return Hosts(
        Host(process, "returned", seconds=2.0, calls=[Call("step 0", begin, 0.9, held="a", shown="3")])
        for process, begin in enumerate([0.2, 0.7, 0.3])
    )


def skipped():
    """Process 1 leaves out step 1, so its step 2 meets step 1 of process 0, which waits for ever in the end."""
    one = [Call("step 0", 0.1, 0.2), Call("step 1", 0.21, 0.3), Call("step 2", 0.31)]
    other = [Call("step 0", 0.11, 0.2), Call("step 2", 0.25, 0.3)]
    return Hosts([Host(0, seconds=5.0, calls=one), Host(1, "returned", seconds=0.35, calls=other)])


def disagreeing():
    """Four processes, of which one holds other numbers."""
    held = ["a", "a", "b", "a"]
    return Hosts(
        Host(process, "returned", seconds=1.0, calls=[Call("step 0", 0.1, 0.2, held=what, shown=what * 2)])
        for process, what in enumerate(held)
    )


def dead():
    one = [Call("step 0", 0.1, 0.2), Call("step 1", 0.3, 0.8, error="ValueError")]
    other = [Call("step 0", 0.15, 0.2)]
    return Hosts(
        [
            Host(0, "raised", error="ValueError: gone", seconds=0.9, calls=one),
            Host(1, "died", error="exit status 1", seconds=0.6, calls=other),
        ]
    )


def alone():
    """No collective: one had left before the other came."""
    return Hosts(
        Host(process, "returned", seconds=3.0, calls=[Call("mine", begin, begin + 0.5)])
        for process, begin in enumerate([0.1, 2.0])
    )


def silent():
    return Hosts(Host(process, "returned", seconds=0.4) for process in range(2))


RUNS = [late, skipped, disagreeing, dead, alone, silent]


def words(run):
    return repr(viz.processes(run)).splitlines()


def test_who_waited_for_whom():
    assert words(late())[1] == (
        "Call 1, step 0. Process 1 came last: process 0 waited 500 ms for it, process 2 waited 400 ms for it. "
        "The result is 3. Done at 900 ms."
    )


def test_one_that_leaves_out_a_call():
    summary, _, second, third = words(skipped())
    assert "Process 0 was still waiting at 5.00 s. Process 1 returned at 350 ms." in summary
    assert summary.endswith("In call 2 different calls met.")
    assert second.startswith("Call 2: process 0 in step 1, process 1 in step 2. They met, and JAX takes them")
    assert third == "Call 3, step 2. Process 0 waits for process 1, which returned at 350 ms."


def test_one_with_other_numbers():
    summary, only = words(disagreeing())
    assert summary.endswith("In call 1 copies differ.")
    assert "The copies of the result differ: processes 0, 1 and 3 hold aa; process 2 holds bb." in only


def test_one_that_dies():
    summary, _, second = words(dead())
    assert "Process 1 died at 600 ms: exit status 1." in summary
    assert second == (
        "Call 2, step 1. Without process 1, which died at 600 ms: exit status 1. Process 0 got a ValueError after 500 ms."
    )


def test_calls_that_wait_for_nobody():
    _, only = words(alone())
    assert "Nobody waited for process 1, which came last." in only and "waits" not in bars(alone())


def bars(run):
    page = viz.processes(run)._repr_html_()
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(re.findall(r'<i class="(.*?)"', body))


@pytest.mark.parametrize("run, kinds", [
    (late, {"waits", "works"}), (skipped, {"waits", "works", "other"}), (disagreeing, {"works", "differs"}),
    (dead, {"waits", "works", "failed"}), (alone, {"works"}), (silent, set()),
])  # fmt: skip
def test_the_page(run, kinds):
    figure = viz.processes(run())
    page = figure._repr_html_()
    assert page == figure._repr_html_() and len(page) < 30_000
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert set(re.findall(r"viz-processes-(\w+)", bars(run()))) == kinds
    assert body.count("viz-processes-lane") == len(figure.run)
    keys = set(re.findall(r'viz-processes-key viz-processes-(\w+)"', body))
    assert keys == kinds
    for left, width in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", body):
        assert 0 <= float(left) <= float(left) + float(width) <= 98.1
    for sentence in words(run())[1:]:
        assert sentence.replace("'", "&#x27;") in body


def test_what_is_refused():
    for wrong, said in [
        ([1, 2], "takes what hosts.run returned, got list"),
        (Hosts(Host(i) for i in range(9)), "up to 8 processes, got 9"),
        (Hosts([Host(0, calls=[Call("x", 0.0)] * 41)]), "up to 40 calls of a process, got 41"),
        ({}, "no run in the dictionary"),
        ({"late": late(), "wrong": [1]}, "takes what hosts.run returned, got list as 'wrong'"),
    ]:
        with pytest.raises(ValueError, match=f"^viz.processes: .*{said}"):
            viz.processes(wrong)


def test_names_are_escaped():
    page = viz.processes(Hosts([Host(0, "returned", seconds=1.0, calls=[Call("<b>", 0.1, 0.2)])]))._repr_html_()  # fmt: skip
    assert "Call 1, &lt;b&gt;" in page and "Call 1, <b>" not in page


def program():
    mesh = jax.make_mesh((jax.device_count(),), ("data",), axis_types=(AxisType.Auto,))
    everywhere, mine = NamedSharding(mesh, P()), jax.process_index()
    weight = jax.make_array_from_callback((), everywhere, lambda index: np.float32(mine))
    x = jax.make_array_from_process_local_data(NamedSharding(mesh, P("data")), np.float32([mine + 1]))
    add = jax.jit(lambda weight, x: weight + x.sum())
    hosts.call("sum", jax.jit(jnp.sum), x)
    hosts.call("add", add, weight, x)
    try:
        hosts.call("fails", lambda: 1 / 0)
    except ZeroDivisionError:
        pass
    if mine == 0:
        hosts.call("alone", add, weight, x)


def test_a_run_of_the_reader():
    figure = viz.processes(hosts.run(program, seconds=5))
    assert [sorted(meeting.names) for meeting in figure.meetings] == [["sum"], ["add"], ["fails"], ["alone"]]
    first, second, third, last = figure.meetings
    assert [call.shown for call in first.calls.values()] == ["3", "3"] and len(first.copies) == 1
    assert [call.shown for call in second.calls.values()] == ["3", "4"] and len(second.copies) == 2
    assert {call.error for call in third.calls.values()} == {"ZeroDivisionError"}
    assert last.missing == (1,) and last.calls[0].ended is None
    for meeting in figure.meetings[:2]:
        assert meeting.together
        assert all(0 <= call.began <= call.ended <= figure.run[0].seconds for call in meeting.calls.values())


def test_outside_of_a_run_a_call_is_only_a_call():
    assert hosts.call("sum", jnp.sum, jnp.ones(3)) == 3


def test_in_a_browser(browser):
    markup = "".join(viz.processes(run())._repr_html_() for run in RUNS) * 2
    page = browser.open(markup)
    first, second = (page.locator(".viz-processes").nth(index) for index in (1, 1 + len(RUNS)))
    status, marked = first.locator(".viz-status"), first.locator("i.viz-now")
    assert status.inner_text().startswith("2 processes, 3 calls.") and marked.count() == 0
    first.locator(".viz-next").click()
    assert status.inner_text().startswith("Call 1, step 0.") and marked.count() == 3
    page.keyboard.press("End")
    assert status.inner_text().endswith("Process 0 waits for process 1, which returned at 350 ms.")
    assert marked.count() == 1 and first.locator(".viz-next").is_disabled()
    first.locator("summary").click()
    assert first.locator("li.viz-processes-said").inner_text() == status.inner_text()
    assert second.locator(".viz-status").inner_text().startswith("2 processes")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") and browser.errors == []
    for figure in page.locator(".viz-processes").all():
        assert figure.evaluate("figure => figure.scrollWidth <= figure.clientWidth")
    page = browser.open(markup, scripts=False)
    assert page.locator(".viz-bar:visible").count() == 0


def test_several_runs_are_listed():
    figure = viz.processes({"one is late": late(), "one dies": dead()})
    assert list(figure) == ["one is late", "one dies"] and len(figure["one dies"].meetings) == 2
    assert repr(figure) == f"one is late\n{viz.processes(late())!r}\n\none dies\n{viz.processes(dead())!r}"


def test_one_of_several_is_chosen(browser):
    markup = viz.processes(
        {"one is late": late(), "<i>silent</i>": silent(), "one dies": dead()}
    )._repr_html_()
    page = browser.open(markup)
    status, rows = page.locator(".viz-status"), page.locator(".viz-processes-row:visible")
    assert status.inner_text().startswith("3 processes, 1 call.") and rows.count() == 3
    page.locator(".viz-next").click()
    assert status.inner_text().startswith("Call 1, step 0.") and page.locator(".viz-next").is_disabled()
    page.locator("select").select_option("one dies")
    assert status.inner_text().startswith("2 processes, 2 calls.") and rows.count() == 2
    page.keyboard.press("End")
    assert status.inner_text().startswith("Call 2, step 1. Without process 1")
    assert page.locator("i.viz-now:visible").count() == 1 and page.locator(".viz-next").is_disabled()
    page.locator("select").select_option("<i>silent</i>")
    assert "0 calls" in status.inner_text() and page.locator(".viz-next").is_disabled()
    assert browser.errors == []
    page = browser.open(markup, scripts=False)  # all of them, with their names
    assert page.locator(".viz-processes-row:visible").count() == 7
    assert page.locator(".viz-processes-name:visible").all_inner_texts() == [
        "one is late",
        "<i>silent</i>",
        "one dies",
    ]
    assert page.locator("select:visible").count() == 0
