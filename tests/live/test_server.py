"""Who gets in, what is served, and what becomes of kernels."""

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import time
import types

import pytest
import zmq
from jupyter_client.blocking import BlockingKernelClient
from tornado import web

from mlax_tutorial.live import book, kernels
from mlax_tutorial.live import server as server_module
from mlax_tutorial.live.heard import MOST as kept_of_a_run
from mlax_tutorial.live.kernels import MOST
from mlax_tutorial.live.server import Door
from tests.live.conftest import PAGE, started

EVERYTHING = [
    "/",
    "/book/one.html",
    "/_static/style.css",
    "/live/live.js",
    "/live/cells/one",
    "/live/progress",
    "/live/heard/2f87ec46-de61-49ef-b9d0-c0c1e0406602",
    "/api/kernels",
    "/api/kernels/2f87ec46-de61-49ef-b9d0-c0c1e0406602/channels",
    "/nothing",
]


def start(server, chapter="one", **headers):
    return server.post("/api/kernels", {"name": chapter}, **(server.key | headers))


def channels(server, kernel, **headers):
    """Knocks at a kernel's messages as a WebSocket does."""
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec_WebSocket_Version": "13",
        "Sec_WebSocket_Key": base64.b64encode(bytes(16)).decode(),
    }
    return server.get(f"/api/kernels/{kernel}/channels?session_id=test", **(upgrade | server.key | headers))[
        0
    ]


# Who gets in


@pytest.mark.parametrize("path", EVERYTHING)
@pytest.mark.parametrize("token", ["", "wrong", "x" * 48, "%C3%A9"])
def test_nothing_without_the_token(server, path, token):
    status, headers, text = server.get(f"{path}?token={token}" if token else path)
    assert status == 403
    assert "Set-Cookie" not in headers
    assert "Page" not in text and "x = 1" not in text


def test_no_kernel_without_the_token(server):
    assert start(server, Authorization=None)[0] == 403
    assert start(server, Authorization="token wrong")[0] == 403


def test_the_cookies_alone_open_pages_and_no_kernel(inside):
    """A browser sends them to every port of this machine: whoever listens there has them."""
    kernel = json.loads(start(inside)[2])["id"]
    own = {"Authorization": None, "X_XSRFToken": inside.cookies["_xsrf"]}
    assert inside.get("/book/one.html")[0] == 200
    assert start(inside, "two", **own)[0] == 403
    assert channels(inside, kernel, **own) == 403
    assert inside.get("/api/kernels", **own)[0] == 403
    for action in ("restart", "interrupt"):
        assert inside.post(f"/api/kernels/{kernel}/{action}", **own)[0] == 403
    assert inside.ask("DELETE", f"/api/kernels/{kernel}", headers=own)[0] == 403
    assert [each["id"] for each in json.loads(inside.get("/api/kernels", **inside.key)[2])] == [kernel]
    assert inside.ask("DELETE", f"/api/kernels/{kernel}", headers=inside.key)[0] == 204


def test_the_page_that_the_token_opens_brings_it_and_no_other_page_does(inside):
    _, headers, text = inside.get(f"/book/one.html?token={inside.token}")
    assert f'data-key="{inside.token}"' in text and headers["Cache-Control"] == "no-store"
    assert 'data-key=""' in inside.get("/book/one.html")[2]


def test_the_token_opens_and_a_cookie_keeps_open(server):
    for cookie in server.enter():
        assert "samesite=strict" in cookie.lower()
        assert "httponly" in cookie.lower() or cookie.startswith("_xsrf=")
    assert server.get("/book/one.html")[0] == 200
    forged = {name: value[:-4] + "beef" for name, value in server.cookies.items()}
    assert server.get("/book/one.html", Cookie="; ".join(map("=".join, forged.items())))[0] == 403
    server.cookies = {}


def test_the_key_for_the_browser_opens_once_and_soon_and_to_this_user(monkeypatch):
    class Knock:
        def __init__(self, given):
            self.given, self.request = given, self
            self.headers = {}

        def get_argument(self, name, default):
            return self.given

    def given(key):
        return door.get_token(Knock(key))

    ours = True
    monkeypatch.setattr(server_module, "_of_this_user", lambda request: ours)
    door = Door(token="token")
    key = door.admit_once()
    assert [given("wrong"), given(key), given(key)] == ["wrong", "token", key]
    key = door.admit_once()
    assert [given("token"), given(key)] == ["token", key], "somebody is in"
    key, ours = door.admit_once(), False
    assert given(key) == key
    ours = True
    monkeypatch.setattr(server_module, "SOON", -1)
    key = door.admit_once()
    assert given(key) == key, "it is too late"


@pytest.mark.skipif(not os.path.isfile("/proc/net/tcp"), reason="the system does not tell")
def test_whose_program_connected():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ends = listening.getsockname()
        with socket.create_connection(ends) as client:
            accepted, peer = listening.accept()
            with accepted:
                assert server_module.owner(peer, ends) == os.getuid()
                assert server_module.owner(ends, ends) == -1
                client.close()
                assert server_module.owner(peer, ends) == -1, "what is closed is nobody's"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.168.1.7:8810"])
def test_a_foreign_host_is_refused(inside, host):
    for path in EVERYTHING:
        assert inside.get(path, Host=host)[0] == 403
    assert inside.get(f"/?token={inside.token}", Host=host)[0] == 403


def test_a_foreign_origin_is_refused(inside):
    for path in ("/live/cells/one", "/live/progress"):
        assert inside.get(path, Origin="http://evil.example")[0] == 404
    assert inside.get("/api/kernels", Origin="http://evil.example", **inside.key)[0] == 404
    assert start(inside, Origin="http://evil.example")[0] in (403, 404)
    assert not inside.get("/api/kernels", **inside.key)[1]["Access-Control-Allow-Origin"]


def test_a_request_that_changes_something_must_come_from_a_page(inside):
    assert inside.post("/api/kernels", {"name": "one"})[0] == 403
    assert inside.post("/api/kernels", {"name": "one"}, X_XSRFToken="guessed")[0] == 403
    assert inside.get("/api/kernels", **inside.key)[2] == "[]"


def test_it_listens_on_this_machine_alone(server):
    address, port = server.host.split(":")
    assert address == "127.0.0.1"
    with socket.socket() as other:
        other.settimeout(2)
        assert other.connect_ex(("127.0.0.2", int(port))), "another address of the machine answers"


# What is served

OUTSIDE = [
    "/../secret.txt",
    "/book/../../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "/..%5csecret.txt",
    "/....//secret.txt",
    "//{outside}/secret.txt",
    "/{outside}/secret.txt",
    "/%2f{outside}/secret.txt",
    "/leading_out.txt",
    "/secret.txt%00.html",
    "/live/../../secret.txt",
    "/live/%2e%2e/server.py",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_path_leads_out_of_the_book(inside, built, path):
    status, _, text = inside.get(path.format(outside=built.parent))
    assert status in (400, 404)
    assert "a secret" not in text and "import" not in text


@pytest.mark.parametrize(
    "path", ["/api", "/api/contents", "/api/sessions", "/api/terminals", "/api/kernelspecs", "/api/status", "/files/secret.txt",
             "/login", "/logout", "/metrics", "/static/favicon.ico", "/terminals/1", "/nbextensions/x", "/lab"]
)  # fmt: skip
def test_of_jupyter_there_are_kernels_alone(inside, path):
    assert inside.get(path)[0] == 404


def test_pages_are_those_of_the_site_with_one_link_and_one_script(inside, built):
    status, headers, text = inside.get("/book/one.html")
    assert status == 200
    added = re.findall(r"<(?:link|script)[^>]*/live/live\.[^>]*>(?:</script>)?\n", text)
    assert len(added) == 2 and 'data-chapter="one"' in added[1]
    for each in added:
        text = text.replace(each, "")
    assert text == PAGE == (built / "book" / "one.html").read_text()
    assert 'data-chapter=""' in inside.get("/index.html")[2]
    assert 'data-chapter=""' in inside.get("/book/reference/one.html")[2], "the name is that of a chapter"
    assert inside.get("/_static/style.css")[2] == "p { color: red }"


def test_a_page_runs_its_own_scripts_and_reaches_nothing_else(inside):
    _, headers, text = inside.get("/book/one.html")
    rules = dict(each.split(" ", 1) for each in headers["Content-Security-Policy"].split("; "))
    code = re.search("<script>(.*?)</script>", PAGE)[1]
    hashed = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    nonce = re.search('nonce="([^"]+)"', text)[1]
    assert rules["script-src"] == f"'self' 'nonce-{nonce}' 'sha256-{hashed}'"
    assert rules["default-src"] == "'none'" and rules["connect-src"] == f"'self' ws://{inside.host}"
    assert not re.search(r"https?:|\*|unsafe-eval", headers["Content-Security-Policy"])
    assert nonce not in inside.get("/book/one.html")[2], "a nonce serves one answer"


def test_the_cells_of_a_chapter(inside):
    shown, hidden = json.loads(inside.get("/live/cells/one")[2])["cells"]
    assert shown == {"id": "shown", "source": "x = 1\nx", "shown": True, "predict": False, "output": True}
    assert (hidden["shown"], hidden["source"]) == (False, "assert x == 1")
    assert inside.get("/live/cells/six")[0] == 404


def test_progress_is_that_of_the_file(inside):
    entry = {"status": "passed", "on": "2026-11-21"}
    noted = {
        "version": 1,
        "exercises": {"one.a": entry, "one.b": entry | {"status": "failed"}, "one.c": {"status": "passed"}},
    }
    assert json.loads(inside.get("/live/progress")[2]) == {"passed": {}}
    inside.progress.write_text(json.dumps(noted))
    assert json.loads(inside.get("/live/progress")[2]) == {"passed": {"one.a": "2026-11-21", "one.c": None}}


# Kernels


def test_a_chapter_has_one_kernel_and_only_a_page_of_ours_hears_it(inside):
    status, _, text = start(inside)
    assert status == 201
    kernel = json.loads(text)["id"]
    assert json.loads(start(inside)[2])["id"] == kernel
    assert start(inside, "six")[0] == 404
    assert channels(inside, kernel, Origin="http://evil.example") == 403
    assert channels(inside, kernel, Origin="http://127.0.0.1:1") == 403
    assert channels(inside, kernel, Authorization=None) == 403
    assert channels(inside, kernel, Host="evil.example") == 403
    assert channels(inside, kernel, Origin=f"http://{inside.host}") == 101


@pytest.fixture
def client(server):
    kernel = json.loads(start(server)[2])["id"]
    assert channels(server, kernel) == 101, "it has started"
    with talking(server, kernel) as client:
        yield client


@contextlib.contextmanager
def talking(server, kernel):
    """Talks to a kernel with what stands in its connection file."""
    (file,) = server.home.glob(f"live-*/kernel-{kernel}.json")
    client = BlockingKernelClient(connection_file=str(file))
    client.load_connection_file()
    # By default a kernel counts as dead when a busy machine lets it answer a second late.
    client.hb_channel.time_to_dead = 60.0
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield client
    client.stop_channels()


def printed(client, code):
    heard = []
    client.execute_interactive(code, output_hook=heard.append, timeout=60)
    return "".join(each["content"].get("text", "") for each in heard)


def test_nobody_listens_in_on_a_kernel(client):
    with zmq.Context() as context, context.socket(zmq.SUB) as stranger:
        stranger.linger = 0
        stranger.subscribe("")
        stranger.connect(client._make_url("iopub"))
        assert printed(client, "print('a secret')") == "a secret\n"
        assert not stranger.poll(500)


def test_what_the_reader_has_set_for_ipython_has_no_say(client):
    assert printed(client, "print('what_the_reader_always_wants' in globals())") == "False\n"


def test_a_kernel_works_in_a_folder_of_its_own(server, client):
    (scratch,) = server.home.glob("live-*")
    assert printed(client, "import os; print(os.getcwd())").strip() == str(scratch / "work" / "one")
    assert printed(client, "import mlax_tutorial; print('found')") == "found\n"


def heard(server, kernel, **headers):
    status, _, text = server.get(f"/live/heard/{kernel}", **(server.key | headers))
    return json.loads(text) if status == 200 else status


def until(server, kernel, holds):
    for _ in range(600):
        if holds(known := heard(server, kernel)):
            return known
        time.sleep(0.1)
    raise AssertionError(str(known)[:2000])


def ask(client, code, cell):
    """Runs code as a page does, which names the cell; returns the name of the request."""
    message = client.session.msg("execute_request", {"code": code, "silent": False, "store_history": True})
    message["header"]["msg_id"] = name = f"{message['header']['msg_id']}.{cell}"
    client.shell_channel.send(message)
    return name


def test_a_page_that_comes_late_hears_what_runs(server, client):
    kernel = json.loads(start(server)[2])["id"]
    run = ask(client, "print('so far', flush=True)\nimport time\nwhile True: time.sleep(0.1)", "shown")
    known = until(server, kernel, lambda known: known["running"] == run and len(known["messages"]) > 2)
    kinds = [each["header"]["msg_type"] for each in known["messages"]]
    assert kinds == ["status", "execute_input", "stream"]
    assert known["messages"][2]["content"]["text"] == "so far\n"
    assert all(each["parent_header"]["msg_id"] == run for each in known["messages"])
    assert "shown" not in known["ran"]
    # A cookie does not suffice: it is what the reader's code has printed.
    assert heard(server, kernel, Authorization=None) == 403
    assert heard(server, kernel, Host="evil.example") == 403
    assert heard(server, "2f87ec46-de61-49ef-b9d0-c0c1e0406602") == 404
    assert server.post(f"/api/kernels/{kernel}/interrupt", **server.key)[0] == 204
    assert "shown" not in until(server, kernel, lambda known: not known["running"])["ran"], (
        "it was interrupted"
    )
    ask(client, "1", "shown")
    until(server, kernel, lambda known: known["ran"] == ["shown"])
    ask(client, "for _ in range(100): print('x' * 50_000, flush=True)\nwhile True: pass", "shown")
    known = until(
        server, kernel, lambda known: known["running"] and len(json.dumps(known)) > kept_of_a_run / 2
    )
    assert len(json.dumps(known)) < 2 * kept_of_a_run
    server.post(f"/api/kernels/{kernel}/restart", **server.key)
    assert until(server, kernel, lambda known: not known["running"])["ran"] == []


# The server stands still for a while, as on a busy machine, and the cell says more than a socket holds.
MUCH = """\
import os, signal, subprocess
server = os.getppid()
subprocess.Popen(["sh", "-c", f"sleep 2; kill -CONT {server}"])
os.kill(server, signal.SIGSTOP)
for _ in range(3000):
    display("x" * 10_000)
"""


def test_nothing_that_a_cell_says_is_lost(server, client):
    kernel = json.loads(start(server)[2])["id"]
    run = ask(client, MUCH, "much")
    displayed = 0
    while True:
        message = client.get_iopub_msg(timeout=60)
        if message["parent_header"].get("msg_id") == run:
            displayed += message["msg_type"] == "display_data"
            if message["content"].get("execution_state") == "idle":
                break
    assert displayed == 3000
    assert until(server, kernel, lambda known: not known["running"])["ran"] == ["much"]


def test_the_page_of_a_chapter_says_why_its_kernel_is_gone(few, monkeypatch):
    async def ends():
        running = few()
        monkeypatch.setattr(kernels, "MOST", 1)
        for name in ("one", "two"):
            await running.start_kernel(kernel_name=name)
            running.get_kernel(name).last_activity = 0
        assert "another one was opened" in running.ended["one"]
        monkeypatch.setattr(kernels, "MOST", 2)
        await running.start_kernel(kernel_name="one")
        assert not running.ended
        await running.end()

    asyncio.run(asyncio.wait_for(ends(), 60))


@pytest.fixture
def few(monkeypatch, tmp_path):
    """Kernels that are names alone."""

    async def start_kernel(self, *, kernel_name, cwd):
        self._kernels[kernel_name] = types.SimpleNamespace(kernel_name=kernel_name)
        return kernel_name

    async def shutdown_kernel(self, kernel_id, now, restart):
        await asyncio.sleep(0)
        if self._kernels.pop(kernel_id, None) is None:
            raise web.HTTPError(404)

    monkeypatch.setattr(kernels.AsyncMappingKernelManager, "start_kernel", start_kernel)
    monkeypatch.setattr(kernels.AsyncMappingKernelManager, "shutdown_kernel", shutdown_kernel)
    return lambda: kernels.Kernels(["one", "two", "three"], tmp_path)


def test_a_kernel_whose_page_never_connects_is_ended(few, monkeypatch):
    async def leaves():
        running = few()
        await running.start_kernel(kernel_name="one")
        while "one" in running:
            await asyncio.sleep(0.01)

    monkeypatch.setattr(kernels, "PATIENCE", 0.01)
    asyncio.run(asyncio.wait_for(leaves(), 60))


def test_all_kernels_end_though_some_go_or_start_meanwhile(few):
    async def ends():
        running = few()
        for name in ("one", "two", "three"):
            await running.start_kernel(kernel_name=name)
        ending = asyncio.create_task(running.end())
        await asyncio.sleep(0)
        del running._kernels["one"], running._kernels["two"]  # they die
        late = asyncio.create_task(running.start_kernel(kernel_name="one"))
        await ending
        with pytest.raises(web.HTTPError, match="503"):
            await late
        assert not running.list_kernel_ids()

        running = few()
        starting = asyncio.create_task(running.start_kernel(kernel_name="one"))
        await asyncio.sleep(0)
        await running.end()
        assert starting.done() and not running.list_kernel_ids()

    asyncio.run(asyncio.wait_for(ends(), 60))


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes as Linux shows them")
def test_kernels_are_few_and_end_with_the_server(built, tmp_path):
    with started(built, tmp_path) as server:
        server.enter()
        ids = [json.loads(start(server, name)[2])["id"] for name in ("one", "two", "three", "four", "five")]
        assert {each["id"] for each in json.loads(server.get("/api/kernels", **server.key)[2])} == set(
            ids[-MOST:]
        )
        children = child_processes(server.process.pid)
        assert len(children) == MOST
        # At the worst moment: one of them is about to start anew.
        server.post(f"/api/kernels/{ids[-1]}/restart", wait=False, **server.key)
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(60) == 0
    assert not [each for each in children if alive(each)]
    assert not any(str(tmp_path) in environment(each) for each in os.listdir("/proc") if each.isdigit())


ESCAPES = """import os, subprocess, sys
subprocess.Popen(["sleep", "1000"], start_new_session=True)
subprocess.Popen(["sleep", "1000"], start_new_session=True, env={})
daemon = "import os, time; os.setsid(); os.fork() and os._exit(0); time.sleep(1000)"
subprocess.Popen([sys.executable, "-c", daemon], stdout=subprocess.DEVNULL).wait()
"""


@pytest.mark.skipif(not os.path.isdir("/proc"), reason="looks for processes as Linux shows them")
@pytest.mark.parametrize("end", ["kernel", "server"])
def test_nothing_that_a_cell_starts_outlives_it(built, tmp_path, end):
    def escaped():
        listed = [int(each) for each in os.listdir("/proc") if each.isdigit()]
        return [each for each in listed if working(each) == folder]

    def working(process):
        try:
            return os.readlink(f"/proc/{process}/cwd")
        except OSError:
            return None

    with started(built, tmp_path) as server:
        kernel = json.loads(start(server)[2])["id"]
        (scratch,) = tmp_path.glob("live-*")
        folder = str(scratch / "work" / "one")
        assert channels(server, kernel) == 101, "it has started"
        with talking(server, kernel) as client:
            printed(client, ESCAPES)
        found = escaped()
        assert len(found) == 4, "the kernel, and three that have left its process group"
        if end == "kernel":
            assert server.ask("DELETE", f"/api/kernels/{kernel}", headers=server.key)[0] == 204
        else:
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(60) == 0
        assert not [each for each in found if alive(each)]


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="the system has no such signal")
def test_a_closed_terminal_ends_it_and_leaves_nothing(built, tmp_path):
    with started(built, tmp_path) as server:
        assert list(tmp_path.glob("live-*"))
        server.process.send_signal(signal.SIGHUP)
        assert server.process.wait(60) == 0
    assert not list(tmp_path.glob("live-*"))


def child_processes(parent):
    listed = [int(each) for each in os.listdir("/proc") if each.isdigit()]
    return [each for each in listed if status(each, "PPid") == str(parent)]


def environment(process):
    try:
        with open(f"/proc/{process}/environ", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def alive(process):
    for _ in range(600):
        if status(process, "State") in (None, "Z (zombie)"):
            return False
        time.sleep(0.1)
    return True


def status(process, field):
    try:
        with open(f"/proc/{process}/status") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith(f"{field}:"))
    except OSError:
        return None


# The command


def test_another_port_is_spoken_of(built, monkeypatch, capsys):
    async def serve():
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            serving = asyncio.create_task(server_module._serve(built, port, open_browser=False))
            while "live at" not in (said := capsys.readouterr().out):
                await asyncio.sleep(0.01)
            serving.cancel()
            assert f"Port {port} is taken." in said

    asyncio.run(asyncio.wait_for(serve(), 60))


def test_before_it_loads_it_says_that_it_starts(built, monkeypatch, capsys):
    from mlax_tutorial.__main__ import main

    said = []
    monkeypatch.setattr(server_module, "serve", lambda *_, **__: said.append(capsys.readouterr().out))
    assert main(["live", "--book", str(built)]) == 0
    assert said == ["Starting …\n"]


def test_without_a_book_it_says_what_to_do(tmp_path, capsys):
    from mlax_tutorial.__main__ import main

    assert main(["live", "--book", str(tmp_path)]) == 2
    assert f"{tmp_path} holds no built book" in capsys.readouterr().err


def test_the_package_alone_says_where_the_book_is(tmp_path, monkeypatch):
    monkeypatch.setattr(
        book, "__file__", str(tmp_path / "site-packages" / "mlax_tutorial" / "live" / "book.py")
    )
    with pytest.raises(book.NoBook, match="make live.*--book FOLDER"):
        book.find()


def test_without_the_extra_it_says_what_to_install(built, monkeypatch, capsys):
    import sys

    from mlax_tutorial.__main__ import main

    monkeypatch.delitem(sys.modules, "mlax_tutorial.live.server")
    monkeypatch.delattr("mlax_tutorial.live.server")
    monkeypatch.setitem(sys.modules, "jupyter_server.auth", None)
    assert main(["live", "--book", str(built)]) == 2
    said = capsys.readouterr().err
    assert "jupyter_server" in said and "pip install 'mlax-tutorial[live]'" in said


def test_the_book_that_came_with_the_package_is_found(tmp_path, monkeypatch):
    packed = tmp_path / "site-packages" / "mlax_tutorial" / "live" / "site"
    packed.mkdir(parents=True)
    monkeypatch.setattr(book, "__file__", str(packed.with_name("book.py")))
    assert book.find() == packed
