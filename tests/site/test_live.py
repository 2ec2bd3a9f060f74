"""Live pages, as a reader uses them: cells changed and run, exercises solved, kernels that hang and die."""

import contextlib
import datetime
import json
import os
import re
import signal
import subprocess
import sys

import pytest
from playwright.sync_api import expect

from tools.visits import accessibility, browser

# Their cells run in kernels.

PATIENCE = 120_000  # milliseconds: on a busy machine a kernel starts slowly


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


# As `python -m mlax_tutorial live` does (`tests/live`), which also knows how to list all exercises.
SERVE = """import pathlib, sys
from mlax_tutorial.live import server
server.serve(pathlib.Path(sys.argv[1]), port=int(sys.argv[2]), open_browser=False)
"""


def server(site, home, port=0):
    return serving([sys.executable, "-c", SERVE, str(site), str(port)], home)


@contextlib.contextmanager
def serving(command, home, folder=None):
    """A live book that this command serves from a folder, and its address with its token."""
    own = {
        "JAX_PLATFORMS": "cpu",
        "MLAX_TUTORIAL_PROGRESS": str(home / "progress.json"),
    }
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder, env=os.environ | own)
    try:
        yield process, next(line.strip() for line in process.stdout if "http://" in line)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()


@pytest.fixture(scope="module")
def served(site, home, made_once):
    """The address of the live book, with its token."""
    made_once("live")
    with server(site, home) as (_, address):
        yield address


class Reader:
    """A browser window on a chapter."""

    def __init__(self, page, served):
        self.page, self.served = page, served
        self.status = page.locator(".live-status")
        self.complaints, self.requests = [], []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on(
            "console",
            lambda message: self.complaints.append(message.text) if message.type == "error" else None,
        )
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, chapter):
        self.page.goto(self.served.replace("welcome", chapter))
        browser.settle(self.page)
        expect(self.page.locator(".live-bar")).not_to_have_attribute(
            "data-state", "starting", timeout=PATIENCE
        )
        expect(self.button("Run all")).to_be_enabled()
        return self

    def button(self, name):
        return self.page.locator(".live-bar").get_by_role("button", name=name, exact=True)

    def cell(self, number):
        return self.page.locator("#book div.cell:has(> .live-tools, > details > .live-tools)").nth(number - 1)

    def write(self, cell, text):
        cell.evaluate(
            "cell => cell.querySelectorAll(':scope > details').forEach((each) => { each.open = true; })"
        )
        cell.locator(".cm-content").click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(text)

    def text(self, cell):
        return cell.locator(".cm-line").all_text_contents()

    def run(self, cell, text=None, ends="Done"):
        if text is not None:
            self.write(cell, text)
        cell.locator(".live-run").click()
        return self.until(ends)

    def afresh(self):
        """With a kernel that knows nothing."""
        if self.button("Restart").is_enabled():
            self.button("Restart").click()
        expect(self.page.locator(".live-bar")).to_have_attribute(
            "data-state", re.compile("none|idle"), timeout=PATIENCE
        )

    def lit(self, color):
        """Waits until the light of the bar has this color of the book's."""
        self.page.wait_for_function(
            """(name) => {
              const light = document.querySelector(".live-light"), probe = light.cloneNode();
              probe.style.background = `var(${name})`;
              light.after(probe);
              const [now, wanted] = [light, probe].map((each) => getComputedStyle(each).backgroundColor);
              probe.remove();
              return now === wanted;
            }""",
            arg=color,
        )

    def until(self, said):
        expect(self.status).to_contain_text(re.compile(said), timeout=PATIENCE)


@pytest.fixture
def opened(chromium, served):
    """Opens chapters in windows of one browser, which shares what it remembers among them."""
    with contextlib.ExitStack() as stack:
        context = chromium.new_context(
            viewport={"width": 1280, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        stack.callback(context.close)
        context.set_default_timeout(PATIENCE)
        readers = []

        def open_chapter(chapter):
            readers.append(Reader(context.new_page(), served))
            return readers[-1].open(chapter)

        yield open_chapter
        for reader in readers:
            assert not reader.complaints
            elsewhere = [
                url for url in reader.requests if not url.startswith(("http://127.0.0.1:", "data:", "blob:"))
            ]
            assert not elsewhere


WRONG = "from mlax_tutorial.exercises import welcome as ex\ndef double(x):\n    return x * 3\nex.double.check(double)\n"
RIGHT = WRONG.replace("3", "2")


def test_an_exercise_is_failed_hinted_solved_and_remembered(opened, home):
    reader = opened("welcome")
    exercise = reader.page.locator("section.book-exercise")
    cell = exercise.locator("div.cell").first
    expect(cell.get_by_role("button", name="Check exercise double")).to_be_visible()
    reader.run(cell)
    expect(cell.locator(".cell_output")).to_contain_text("not attempted yet")
    reader.run(cell, WRONG + "ex.double.hint()")
    expect(cell.locator(".cell_output")).to_contain_text("expected 2., got 3.")
    expect(cell.locator(".cell_output")).to_contain_text("Hint 1 of")
    assert "book-done" not in exercise.get_attribute("class")
    expect(cell.locator(".live-passed")).to_be_hidden()
    reader.run(cell, RIGHT)
    expect(cell.locator(".cell_output")).to_contain_text("double: passed")
    expect(exercise.get_by_role("checkbox")).to_be_checked()
    noted = json.loads((home / "progress.json").read_text())["exercises"]
    assert noted["welcome.double"]["status"] == "passed"
    assert "token" not in reader.page.url

    # The day is said beside the button, now and after a reload, also in a browser that keeps nothing.
    day = datetime.date.fromisoformat(noted["welcome.double"]["on"])
    passed = cell.locator(".live-passed")
    expect(passed).to_have_text(f"passed on {day:%B} {day.day}, {day.year}")
    for forget in ("", "localStorage.clear(); sessionStorage.clear()"):
        reader.page.evaluate(forget)
        reader.page.goto(reader.served)
        expect(passed).to_be_visible()
        expect(passed).to_have_text(f"passed on {day:%B} {day.day}, {day.year}")
        expect(exercise.get_by_role("checkbox")).to_be_checked()
    reader.run(cell, RIGHT)

    # Passed elsewhere: marked on any page of the book, and once. What is passed was asked for when the cell ended: the answer
    # writes these keys, so a page that has it, which shows the day, forgets them.
    reader.page.goto(reader.served)
    expect(passed).to_be_visible()
    for key in ("book:done:welcome.double", "live:passed"):
        reader.page.evaluate(f"localStorage.removeItem('{key}')")
    reader.page.goto(reader.served.replace("welcome", "exercises"))
    expect(reader.page.locator(".book-progress")).to_contain_text("You have solved 1 of")
    reader.open("welcome")
    exercise.get_by_role("checkbox").uncheck()
    with reader.page.expect_response("**/live/progress"):
        reader.open("welcome")
    expect(exercise.get_by_role("checkbox")).not_to_be_checked()
    exercise.get_by_role("checkbox").check()
    assert reader.text(cell) == RIGHT.split("\n")
    expect(cell.locator(".live-said")).to_contain_text("ran before")
    cell.get_by_role("button", name="Reset").click()
    assert "    ...  # your code" in reader.text(cell)
    expect(cell.locator(".cell_output")).to_have_count(0)
    reader.open("welcome")
    assert "    ...  # your code" in reader.text(cell)


REFUSES = """Storage.prototype.setItem = function (key) {
  if (key.startsWith("live:")) throw new DOMException("full", "QuotaExceededError");
}"""


def test_what_is_written_shows_in_the_other_window_and_is_not_lost_without_a_word(opened):
    first, second = opened("welcome"), opened("welcome")
    first.write(first.cell(3), "first = 1")
    expect(second.cell(3).locator(".cm-line")).to_have_text(["first = 1"])
    first.cell(3).get_by_role("button", name="Reset").click()
    expect(second.cell(3).locator(".cm-line")).not_to_have_text(["first = 1"])

    asked = []
    second.page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    second.open("welcome")
    assert not asked
    second.page.context.add_init_script(REFUSES)
    second.open("welcome")
    second.write(second.cell(3), "lost = True")
    second.until("This browser keeps nothing")
    second.open("welcome")
    assert asked == ["beforeunload"]
    assert second.text(second.cell(3)) != ["lost = True"]


def test_a_prediction_stays_shut_when_all_is_run_and_opens_when_it_is(opened):
    reader = opened("welcome")
    cell = reader.page.locator("#book div.tag_predict").first
    lid = reader.page.locator("details.book-reveal").first
    stored = lid.locator(".cell_output").inner_html()
    reader.write(cell, "print('found out')")
    reader.button("Run all").click()
    reader.until("Done: ")
    assert lid.get_attribute("open") is None
    expect(lid.locator(".cell_output")).to_have_count(1)
    assert lid.locator(".cell_output").text_content().strip() == "found out"
    reader.run(cell, "print(no_such_name)", ends="stopped: NameError")
    assert lid.get_attribute("open") is None, "an error is no answer"
    expect(cell.locator(".traceback")).to_be_visible()
    assert lid.locator(".cell_output").inner_html() == stored
    reader.run(cell, "print('found out')")
    expect(cell.locator(".traceback")).to_have_count(0)
    assert lid.get_attribute("open") is not None
    cell.get_by_role("button", name="Reset").click()
    assert lid.get_attribute("open") is None
    assert lid.locator(".cell_output").inner_html() == stored


FIGURE = """from mlax_tutorial import viz

def cube(x):
    y = x * x
    return y * x

viz.trace(cube, jnp.ones(3))"""


def test_all_of_a_chapter_runs_and_a_figure_steps_through_another_function(opened):
    reader = opened("tracing")
    reader.button("Run all").click()
    reader.until(r"Done: \d\d cells")
    said = reader.page.locator(".live-said").all_text_contents()
    assert all(re.search(r"ran in", each) for each in said)
    assert not [each for each in said if "fails" in each], "a cell that the page does not show failed"
    cell = reader.page.locator("#book div.cell:has(> .cell_output .viz-trace):has(> .live-tools)").first
    cell.evaluate("e => e.id = 'the-figure'")
    cell = reader.page.locator("#the-figure")
    assert "return y * x" not in cell.locator(".viz-trace").inner_text()
    reader.run(cell, FIGURE)
    figure = cell.locator(".viz-trace")
    assert "return y * x" in figure.inner_text()
    for step in ("1", "2"):
        figure.get_by_role("button", name=re.compile("Next")).click()
        expect(figure.locator(".viz-status")).to_contain_text(f"Line {step} of")
    # An output brings scripts, and they run; a handler in an attribute does not, and nothing is fetched from elsewhere.
    reader.run(
        cell,
        """from IPython.display import HTML
HTML('<p id="a">-</p><script type="application/json" id="b">["ran"]</script>'
     '<script>document.getElementById("a").textContent = JSON.parse(document.getElementById("b").textContent)[0]</script>'
     '<img src="data:," onerror="document.getElementById(\\'a\\').textContent = \\'attacked\\'">')""",
    )
    expect(cell.locator("#a")).to_have_text("ran")
    assert [each for each in reader.complaints if "Content Security Policy" in each]
    reader.complaints.clear()


def test_two_chapters_at_once(opened):
    first, second = opened("welcome"), opened("tracing")
    for reader, value in ((first, 1), (second, 2)):
        reader.run(reader.cell(2), f"value = {value}")
    for reader, value in ((first, "1"), (second, "2")):
        reader.run(reader.cell(2), "print(value)")
        expect(reader.cell(2).locator(".cell_output")).to_have_text(value)
    # A page without the token in its address, as links lead there, runs too.
    first.page.goto(first.served.split("?")[0])
    expect(first.button("Interrupt")).to_be_visible()
    first.run(first.cell(2), "print(value)")
    expect(first.cell(2).locator(".cell_output")).to_have_text("1")
    # Run is pressed before the page knows that the kernel runs: it still has one connection.
    page, held, sockets = first.page, [], []
    page.on("websocket", lambda socket: sockets.append(socket))
    page.route(
        "**/api/kernels*",
        lambda route: held.append(route) if route.request.method == "GET" else route.continue_(),
    )
    first.open("welcome")
    first.cell(2).locator(".live-run").click()
    expect(first.cell(2)).to_have_attribute("data-live", "waiting")
    held.pop().continue_()
    first.until("Done")
    page.unroute("**/api/kernels*")
    assert len(sockets) == 1
    second.afresh()
    exercise = second.page.locator("section.book-exercise div.cell").first
    second.run(exercise)  # which needs what cells above import, and they have not run
    expect(exercise.locator(".cell_output")).to_contain_text("not attempted yet")
    # What has run is not run again behind it: the reader may have changed what it made.
    second.run(second.cell(2), '"""\nimport no_such_module\n"""\nimport math as name')
    second.run(second.cell(3), "name = 'mine'")
    second.run(exercise, "print(name)")
    expect(exercise.locator(".cell_output")).to_have_text("mine")


def test_a_name_that_is_missing_brings_the_cells_above(opened):
    reader = opened("welcome")
    reader.afresh()
    reader.write(reader.cell(2), "base = 20")
    reader.run(reader.cell(3), "print(base + 1)", ends="stopped: NameError")
    expect(reader.cell(3).locator(".traceback .-Color-Red").first).to_have_text("NameError")
    reader.status.get_by_role("link").click()
    expect(reader.page.locator(":focus")).to_have_attribute("aria-label", "Code of cell 3")
    reader.cell(3).get_by_role("button", name="Run all above, then this").click()
    expect(reader.cell(3).locator(".cell_output")).to_have_text("21")


def test_a_restart_before_the_kernel_has_answered(opened):
    reader = opened("welcome")
    reader.run(reader.cell(2), "value = 1")
    sockets = []

    def hold(socket):
        sockets.append(socket)
        server = socket.connect_to_server()
        if len(sockets) == 1:  # what the kernel says on the first connection never arrives
            server.on_message(lambda message: None)

    reader.page.route_web_socket(re.compile("/channels"), hold)
    reader.page.reload()
    expect(reader.page.locator(".live-bar")).to_have_attribute("data-state", "starting")
    with reader.page.expect_response("**/restart*"):
        reader.button("Restart").click()
    reader.until("ready")
    reader.run(reader.cell(2), "print('value' in globals())")
    expect(reader.cell(2).locator(".cell_output")).to_have_text("False")


def test_an_endless_loop_is_interrupted(opened):
    reader = opened("welcome")
    reader.run(reader.cell(2), "while True:\n    pass", ends="Cell 2 runs")
    reader.cell(3).locator(".live-run").click()
    expect(reader.cell(3)).to_have_attribute("data-live", "waiting")
    expect(reader.page.locator(".live-bar")).to_have_attribute("data-state", "busy", timeout=PATIENCE)
    reader.button("Interrupt").click()
    reader.until("stopped: KeyboardInterrupt")
    expect(reader.cell(3)).to_have_attribute("data-live", "")
    reader.lit("--book-error")
    reader.run(reader.cell(2), "print('again')")
    reader.lit("--book-takeaway")
    reader.run(reader.cell(2), "no_such_name", ends="stopped: NameError")
    reader.lit("--book-error")
    reader.afresh()
    reader.until("ready")
    reader.lit("--book-takeaway")
    reader.run(reader.cell(2), "print('again')")
    expect(reader.cell(2).locator(".cell_output")).to_have_text("again")


def test_output_without_end_is_cut_and_the_page_stays_usable(opened):
    reader = opened("welcome")
    reader.run(reader.cell(2), "while True:\n    print('all work and no play')", ends="Cell 2 runs")
    expect(reader.cell(2).locator(".live-note")).to_contain_text("The rest of the output is left out")
    assert len(reader.cell(2).locator(".cell_output").text_content()) < 110_000
    reader.button("Interrupt").click()
    reader.until("stopped: KeyboardInterrupt")
    reader.run(reader.cell(2), "for i in range(3):\n    print(f'\\r{i} of 2', end='')")
    expect(reader.cell(2).locator(".cell_output")).to_have_text("2 of 2")


TICKS = """import time
print("before", flush=True)
while True:
    print("tick", flush=True)
    time.sleep(0.2)"""


def test_a_run_is_heard_and_interrupted_after_a_reload_and_in_a_second_window(opened):
    reader = opened("welcome")
    reader.run(reader.cell(2), TICKS, ends="Cell 2 runs")
    reader.cell(3).locator(".live-run").click()
    expect(reader.cell(2).locator(".cell_output")).to_contain_text("tick")
    reader.page.goto(reader.served)
    second = opened("welcome")
    for window in (reader, second):
        window.until("Cell 2 runs")
        expect(window.cell(2)).to_have_attribute("data-live", "running")
        output = window.cell(2).locator(".cell_output")
        expect(output).to_contain_text("before")  # what it had said
        ticks = output.text_content().count("tick")
        expect(output).to_contain_text(re.compile(f"(tick\\s*){{{ticks + 2}}}"))  # and what comes meanwhile
        expect(window.button("Interrupt")).to_be_enabled()
    expect(reader.cell(3).locator(".live-said")).to_contain_text(
        "was not run: the page was left while it waited"
    )
    second.run(
        second.cell(3), "print('mine')", ends="Cell 3 waits: the kernel runs what was begun in another window"
    )
    expect(second.cell(3).locator(".live-said")).to_have_text("waits for the kernel")
    reader.button("Interrupt").click()
    for window in (reader, second):
        expect(window.cell(2).locator(".traceback")).to_contain_text("KeyboardInterrupt", timeout=PATIENCE)
        expect(window.cell(2).locator(".live-said")).to_have_text("KeyboardInterrupt")
    for window in (reader, second):
        window.until("Done")
        expect(window.cell(3).locator(".cell_output")).to_have_text("mine")
        expect(window.page.locator(".live-bar")).to_have_attribute("data-state", "idle")
    # What has run is known in every window; a restart in one is noticed in the other.
    reader.page.goto(reader.served)
    expect(reader.cell(3).locator(".live-said")).to_contain_text("ran before")
    expect(reader.cell(2).locator(".live-said")).to_be_empty()
    second.button("Restart").click()
    second.until("ready")
    second.run(second.cell(3), "print('afresh')")
    reader.until("Done")
    expect(reader.cell(3).locator(".cell_output")).to_have_text("afresh")


def test_a_silent_run_is_interrupted_after_a_reload(opened):
    reader = opened("welcome")
    reader.run(reader.cell(2), "while True:\n    pass", ends="Cell 2 runs")
    expect(reader.page.locator(".live-bar")).to_have_attribute("data-state", "busy", timeout=PATIENCE)
    reader.page.goto(reader.served)
    reader.until("Cell 2 runs")
    reader.button("Interrupt").click()
    reader.until("Cell 2 stopped: KeyboardInterrupt")
    expect(reader.page.locator(".live-bar")).to_have_attribute("data-state", "idle")
    reader.run(reader.cell(2), "print('again')")


def test_a_set_up_that_failed_runs_again(opened):
    reader = opened("welcome")
    reader.afresh()
    original = "\n".join(reader.text(reader.cell(1)))
    reader.run(reader.cell(1), "raise OSError('no disk')", ends="Cell 1 stopped: OSError")
    reader.run(reader.cell(2), "print('never')", ends="Cell 1 stopped: OSError")
    reader.write(reader.cell(1), original)
    reader.run(reader.cell(2), "print('set up')", ends="Done: 2 cells")
    reader.run(reader.cell(2), "print('and not twice')", ends="Done.$")


def test_a_result_of_other_code_is_marked(opened):
    reader = opened("welcome")
    cell = reader.cell(2)
    older, output = cell.locator(".live-older"), cell.locator(".cell_output")
    expect(older).to_be_hidden()
    reader.run(cell, "print('first')")
    expect(older).to_be_hidden()
    reader.write(cell, "print('second')")
    expect(older).to_have_text("changed since it ran")
    expect(output).to_have_class(re.compile("live-older-output"))
    reader.write(cell, "print('first')")
    expect(older).to_be_hidden()
    reader.run(cell, "import time\ntime.sleep(2)\nprint('third')", ends="Cell 2 runs")
    reader.write(cell, "print('written during the run')")
    reader.until("Done")
    expect(output).to_have_text("third")
    expect(older).to_have_text("changed since it ran")
    reader.run(cell)
    expect(output).to_have_text("written during the run")
    expect(older).to_be_hidden()
    reader.page.goto(reader.served)
    with_result = reader.page.locator("#book div.cell:has(> .live-tools):has(> .cell_output)").first
    reader.write(with_result, "1 + 1")
    expect(with_result.locator(".live-older")).to_have_text("the result is the book's")
    with_result.get_by_role("button", name="Reset").click()
    expect(with_result.locator(".live-older")).to_be_hidden()


def test_the_kernel_completes_and_explains_names(opened):
    reader = opened("welcome")
    cell, press, write = reader.cell(2), reader.page.keyboard.press, reader.page.keyboard.type
    offered, signature = (
        reader.page.locator(".cm-tooltip-autocomplete"),
        reader.page.locator(".live-signature"),
    )
    defined = "def overshoot(rate, steps=10):\n    'Goes too far.'\novershadow = \"\N{GRINNING FACE}\""
    reader.run(cell, defined)
    reader.write(cell, "face = '\N{GRINNING FACE}'; oversho")
    press("Tab")
    expect(offered).to_be_visible()
    expect(offered.locator("li")).to_have_text(["overshoot"])
    reader.page.wait_for_timeout(150)  # for 75 ms after it has opened, the editor takes no key for it
    press("Tab")
    assert reader.text(cell) == ["face = '\N{GRINNING FACE}'; overshoot"]
    write("(")
    expect(signature).to_contain_text("overshoot(rate, steps=10)")
    expect(signature).to_contain_text("Goes too far.")
    paper = reader.page.locator(".cm-tooltip:has(> .live-signature)")
    expect(paper).not_to_have_css("background-color", "rgba(0, 0, 0, 0)")  # it lies on text
    write("0.1")
    expect(signature).to_be_visible()
    press("Escape")
    expect(signature).to_be_hidden()
    assert reader.page.locator(":focus").get_attribute("aria-label") == "Code of cell 2"
    reader.write(cell, "oversh")
    press("Control+Space")
    expect(offered.locator("li")).to_have_text(["overshadow", "overshoot"])
    reader.page.wait_for_timeout(300)  # a key that comes at once is for the text
    press("ArrowDown")
    press("Enter")
    assert reader.text(cell) == ["overshoot"]
    press("Control+Shift+Space")
    expect(signature).to_contain_text("overshoot(rate, steps=10)")
    press("Enter")
    press("Tab")  # nothing to complete: it indents
    assert reader.text(cell) == ["overshoot", "    "]
    reader.run(cell, "overshoot?")
    expect(cell.locator(".cell_output")).to_contain_text("Goes too far.")
    # A kernel that is busy says so, and is not asked.
    reader.run(cell, "import time\nwhile True:\n    time.sleep(0.1)", ends="Cell 2 runs")
    second = opened("welcome")
    second.until("Cell 2 runs")
    second.write(second.cell(3), "oversh")
    second.page.keyboard.press("Control+Space")
    second.until("It completes and explains names when the cell has ended")
    second.button("Interrupt").click()
    reader.until("stopped: KeyboardInterrupt")


RICH = r"""from IPython.display import JSON, Latex, Markdown, Math, display
display(Markdown("# A heading\n\n*all* $x_1 * y_2 * z$, $5 and $6\n\n$$\\sum_i x_i$$\n\n```python\nfor i in x: pass\n```\n\n<img src='x' onerror='alert(1)'>"))
display(Math("x^2"), Latex(r"\begin{align} a &= b \end{align}"), JSON({"a": [1, {"b": None}]}))"""


def test_markdown_formulas_and_json_are_shown(opened):
    reader = opened("welcome")
    cell = reader.cell(2)
    reader.run(cell, RICH)
    expect(cell.locator(".text_markdown h1")).to_have_text("A heading")
    expect(cell.locator(".text_markdown em")).to_have_text("all")
    expect(cell.locator(".text_markdown")).to_contain_text("$5 and $6")
    expect(cell.locator(".text_markdown .tok-keyword")).to_have_text(["for", "in", "pass"])
    expect(cell.locator(".text_markdown mjx-container")).to_have_count(2)
    expect(cell.locator(".text_latex mjx-container")).to_have_count(2)
    assert "$" not in cell.locator(".text_latex").first.inner_text()
    assert json.loads(cell.locator(".cell_output pre").last.inner_text()) == {"a": [1, {"b": None}]}
    assert [each for each in reader.complaints if "Content Security Policy" in each], "a handler does not run"
    reader.complaints.clear()


MANY = {
    "HTML": ("HTML('<p>x</p>' * 200_000)", "HTML of 200,000 elements is left out"),
    "text": ("'x' * 1_000_000", "The rest of the output is left out"),
    "Markdown": ("Markdown('x ' * 1_000_000)", "The rest of the output is left out"),
    "LaTeX": ("Latex('x ' * 1_000_000)", "The rest of the output is left out"),
    "JSON": ("JSON(['x'] * 1_000_000)", "The rest of the output is left out"),
    "parts": ("[display(HTML('<p>x</p>')) for _ in range(1000)]", "The rest of the output is left out"),
    "printed": ("print('x' * 1_000_000)", "The rest of the output is left out"),
    "an error": ("1 / int(''.join('0' for _ in range(1)))", ""),
}


@pytest.mark.parametrize("kind", MANY)
def test_no_output_buries_the_page(opened, kind):
    reader = opened("welcome")
    cell, (code, said) = reader.cell(2), MANY[kind]
    begin = "from IPython.display import HTML, Image, JSON, Latex, Markdown, display\n"
    if kind == "an error":
        reader.run(cell, "print('x' * 1_000_000)\n" + code, ends="stopped: ZeroDivisionError")
        expect(cell.locator(".traceback")).to_contain_text("division by zero")
    else:
        reader.run(cell, begin + code)
        expect(cell.locator(".live-note")).to_contain_text(said)
        expect(cell.locator(".live-note")).not_to_contain_text("still runs")
    assert cell.locator(".cell_output *").count() < 25_000
    assert len(cell.locator(".cell_output").inner_text()) < 110_000


def test_what_is_written_anew_counts_once(opened):
    reader = opened("welcome")
    cell = reader.cell(2)
    again = "from IPython.display import HTML, display\nshown = display(HTML(''), display_id=True)\n"
    reader.run(cell, again + "for i in range(30): shown.update(HTML(f'<i>{i}</i>' * 1000))")
    expect(cell.locator(".cell_output i").first).to_have_text("29")
    expect(cell.locator(".live-note")).to_have_count(0)
    reader.run(cell, again + "shown.update(HTML('<p>x</p>' * 30_000))")
    expect(cell.locator(".live-note")).to_contain_text("HTML of 30,000 elements is left out")


def test_a_phone_does_not_zoom_into_the_editor(chromium, served):
    with chromium.new_context(
        viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True, reduced_motion="reduce"
    ) as context:
        reader = Reader(context.new_page(), served).open("welcome")
        assert (
            reader.cell(2).locator(".cm-content").evaluate("e => parseFloat(getComputedStyle(e).fontSize)")
            >= 16
        )


def test_a_kernel_that_dies_is_noticed(opened):
    reader = opened("welcome")
    reader.run(reader.cell(2), "import os\nos.kill(os.getpid(), 9)", ends="The kernel died")
    expect(reader.cell(2)).to_have_attribute("data-live", "lost")
    expect(reader.page.locator(".live-bar")).to_have_attribute("data-state", "idle", timeout=PATIENCE)
    reader.until("The kernel died")
    reader.lit("--book-error")
    reader.run(reader.cell(2), "print('jax' in globals())")
    expect(reader.cell(2).locator(".cell_output")).to_have_text("True")  # the set-up cell ran by itself


def test_by_keyboard_alone(opened):
    reader = opened("welcome")
    press, focused = reader.page.keyboard.press, reader.page.locator(":focus")
    press("Tab")
    assert focused.inner_text() == "Skip to main content"
    press("Tab")
    assert focused.inner_text() == "Run all"
    for _ in range(150):  # to the second cell; nothing on the way holds the key
        press("Tab")
        if focused.get_attribute("aria-label") == "Code of cell 2":
            break
    assert focused.get_attribute("aria-label") == "Code of cell 2"
    press("ControlOrMeta+a")
    reader.page.keyboard.type("if True:\n")
    press("Tab")  # indents now
    reader.page.keyboard.type("print('typed')\n")
    assert focused.get_attribute("aria-label") == "Code of cell 2"
    press("Shift+Enter")
    assert focused.get_attribute("aria-label") == "Code of cell 3"
    reader.until("Done")
    expect(reader.cell(2).locator(".cell_output")).to_have_text("typed")
    for label in ("Run cell 2", "Code of cell 2"):  # and back
        for _ in range(4):
            press("Shift+Tab")
            if focused.get_attribute("aria-label") == label:
                break
        assert focused.get_attribute("aria-label") == label
    press("End")
    reader.page.keyboard.type("  # typed")
    press("Escape")  # and the key walks again
    press("Tab")
    assert focused.get_attribute("aria-label") != "Code of cell 2"
    assert "  # typed" in "".join(reader.text(reader.cell(2)))
    # From a cell before one whose code is folded away, the focus goes to one that can be seen.
    reader.page.evaluate("""() => {
      const cells = [...document.querySelectorAll("#book div.cell:has(.cm-content)")];
      cells[cells.findIndex((each) => each.matches(".tag_hide-input")) - 1].querySelector(".cm-content").focus();
    }""")
    before = focused.get_attribute("aria-label")
    press("Shift+Enter")
    assert focused.get_attribute("aria-label") != before
    expect(focused).to_be_visible()
    reader.until("Done|stopped")


@pytest.mark.parametrize("theme, width", [("light", 1280), ("dark", 390)])
def test_accessible_and_not_wider_than_the_screen(chromium, served, theme, width):
    with chromium.new_context(
        viewport={"width": width, "height": 800}, color_scheme=theme, reduced_motion="reduce", bypass_csp=True
    ) as context:
        reader = Reader(context.new_page(), served).open("welcome")
        reader.run(
            reader.cell(2), "print('printed')\nraise ValueError('long ' * 40)", ends="stopped: ValueError"
        )
        reader.run(reader.page.locator("section.book-exercise div.cell").first)
        assert not accessibility.violations(reader.page)
        assert reader.page.evaluate("document.documentElement.scrollWidth") <= width


# How much of the bar is covered by something else: of points all over it, those where another thing lies on top.
COVERED = """() => {
  const bar = document.querySelector(".live-bar"), { left, top, width, height } = bar.getBoundingClientRect(), covered = new Set();
  for (let across = 0.02; across < 1; across += 0.02) for (const down of [0.15, 0.5, 0.85]) {
    const there = document.elementFromPoint(left + across * width, top + down * height);
    if (!bar.contains(there)) covered.add(there?.id || there?.className || there?.localName);
  }
  return [...covered];
}"""


@pytest.mark.parametrize("width, fault", [(390, False), (780, False), (1100, False), (1100, True)])
def test_nothing_lies_on_the_bar(chromium, served, width, fault):
    with chromium.new_context(
        viewport={"width": width, "height": 800}, reduced_motion="reduce", bypass_csp=True
    ) as context:
        reader = Reader(context.new_page(), served).open("welcome")
        if fault:
            reader.page.add_style_tag(
                content="#pst-back-to-top.book-planted { display: block !important; top: auto; bottom: 1rem; left: auto; right: 5rem }"
            )
            reader.page.evaluate("document.getElementById('pst-back-to-top').classList.add('book-planted')")
        reader.page.mouse.wheel(0, 3000)
        reader.page.wait_for_timeout(200)
        reader.page.mouse.wheel(0, -300)  # on the way up the theme offers its button
        reader.page.wait_for_timeout(200)
        button = reader.page.locator("#pst-back-to-top")
        if fault:
            button.wait_for()
        assert button.is_visible() == fault
        covered = reader.page.evaluate(COVERED)
        assert "pst-back-to-top" in covered if fault else not covered


@pytest.mark.parametrize("touch, width", [(True, 390), (False, 1280)])
def test_copy_stands_beside_run_and_takes_no_room(chromium, served, touch, width):
    with chromium.new_context(
        viewport={"width": width, "height": 800}, has_touch=touch, is_mobile=touch, reduced_motion="reduce"
    ) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        reader = Reader(context.new_page(), served).open("welcome")
        cell = reader.cell(3)
        reader.write(cell, "mine = 1")
        assert cell.locator(".cell_input .copybtn").count() == 0
        frame, code = (cell.locator(each).bounding_box() for each in (".cell_input", ".cm-editor"))
        assert frame["height"] - code["height"] < 6
        copy, run = cell.get_by_role("button", name="Copy"), cell.locator(".live-run").bounding_box()
        assert abs(copy.bounding_box()["y"] - run["y"]) < 10
        expect(copy).to_have_css("opacity", "1")
        (copy.tap if touch else copy.click)()
        assert reader.page.evaluate("navigator.clipboard.readText()") == "mine = 1"


def test_the_page_says_when_the_server_is_gone_or_another(chromium, site, tmp_path):
    with chromium.new_context(viewport={"width": 1280, "height": 800}) as context:
        with server(site, tmp_path) as (process, served):
            reader = Reader(context.new_page(), served).open("welcome")
            later = Reader(context.new_page(), served).open("tracing")
            reader.run(reader.cell(2), "1")
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            reader.until("The server does not answer")
            reader.cell(3).locator(".live-run").click()
            assert reader.cell(3).get_attribute("data-live") in (None, "")
            reader.write(reader.cell(3), "kept = True")
            assert reader.text(reader.cell(3)) == ["kept = True"]
        with server(site, tmp_path, re.search(r":(\d+)/", served)[1]):
            later.run(later.cell(3), "1", "the server was started anew. Open the address")
