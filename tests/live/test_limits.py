"""What somebody without the token can take from the server: little, and not for long."""

import asyncio
import contextlib
import http.client
import json
import os
import re
import resource
import socket

import pytest

from mlax_tutorial.live import server as server_module
from mlax_tutorial.live.book import Book
from tests.live.conftest import started

MEGABYTE = 2**20
pytestmark = pytest.mark.skipif(
    not os.path.isdir("/proc/self/fd"), reason="reads a process's memory as Linux shows it"
)


def memory(server):
    """Megabytes that the server holds."""
    with open(f"/proc/{server.process.pid}/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


@pytest.fixture(scope="module")
def attacked(built, tmp_path_factory):
    """A server, and what it is held to after each attack: it answers, and holds no more memory than before."""
    with started(built, tmp_path_factory.mktemp("home")) as server:
        server.enter()
        before = memory(server)
        yield server
        assert memory(server) < before + 30


@pytest.fixture
def many():
    """As many open files as these tests need."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4000:
        pytest.skip("this user may not open 4000 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def knock(server, sent):
    """A connection on which this has been sent."""
    host, port = server.place.split(":")
    knocking = socket.create_connection((host, int(port)), timeout=60)
    with contextlib.suppress(ConnectionError):  # the server has heard enough
        knocking.sendall(sent)
    return knocking


def answers(server):
    assert server.get(f"/book/one.html?token={server.token}", Cookie=None)[0] == 200


def head(server, *lines):
    return "\r\n".join(["POST /api/kernels HTTP/1.1", f"Host: {server.place}", *lines, "", ""]).encode()


def told(knocking):
    """What the server says before it closes the connection."""
    said = b""
    with knocking, contextlib.suppress(ConnectionError):
        while part := knocking.recv(2**16):
            said += part
    return said


@pytest.mark.parametrize("size", [server_module.BODY + 1, 10**9])
def test_a_large_body_is_refused_before_it_is_sent(attacked, size):
    assert told(knock(attacked, head(attacked, f"Content-Length: {size}"))).startswith(b"HTTP/1.1 400")


def test_a_body_without_a_length_is_not_kept(attacked):
    before = memory(attacked)
    knocking = []
    for _ in range(40):
        part = b"%x\r\n%s\r\n" % (MEGABYTE, bytes(MEGABYTE))
        knocking.append(knock(attacked, head(attacked, "Transfer-Encoding: chunked") + part * 8))
    assert memory(attacked) < before + 30
    for each in knocking:
        assert b"403" not in told(each), "it was read to its end"
    answers(attacked)


def test_headers_without_end_are_not_kept(attacked):
    before = memory(attacked)
    knocking = [knock(attacked, head(attacked)[:-2] + b"X: " + bytes(4 * MEGABYTE)) for _ in range(40)]
    assert memory(attacked) < before + 30
    answers(attacked)
    for each in knocking:
        each.close()


def test_what_is_small_enough_is_heard(attacked):
    name = json.dumps({"name": "x" * (server_module.BODY - 100)})
    status, _, _ = attacked.ask("POST", "/api/kernels", name, headers=attacked.key)
    assert status == 404, "there is no such chapter"


def test_thousands_of_connections_that_say_nothing(attacked, many):
    half = head(attacked)[:-2]
    with contextlib.ExitStack() as open_ones:
        for i in range(3000):
            open_ones.enter_context(knock(attacked, half if i % 2 else b""))
        answers(attacked)
        connected = [each for each in os.listdir(f"/proc/{attacked.process.pid}/fd")]
        assert len(connected) < server_module.STRANGERS + 100


def test_who_is_in_stays_in_while_others_knock(attacked, many):
    mine = http.client.HTTPConnection(attacked.place, timeout=60)
    for _ in range(2):
        mine.request("GET", f"/book/one.html?token={attacked.token}")
        assert mine.getresponse().read()
        kept = mine.sock
        with contextlib.ExitStack() as open_ones:
            for _ in range(2 * server_module.STRANGERS):
                open_ones.enter_context(knock(attacked, b""))
            answers(attacked)
    assert mine.sock is kept is not None
    mine.close()


def test_with_few_descriptors_it_still_lets_its_reader_in(built, tmp_path):
    few = (256, 256)
    with started(
        built, tmp_path, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, few)
    ) as server:
        with contextlib.ExitStack() as open_ones:
            for _ in range(400):
                open_ones.enter_context(knock(server, b"GET / HTTP/1.1\r\n"))
            answers(server)
            for name in ("one", "two"):
                assert server.post("/api/kernels", {"name": name}, **server.key)[0] == 201
            answers(server)


@pytest.mark.parametrize(
    "half",
    ["", "GET / HTTP/1.1\r\nHost: ", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n12"],
)
def test_a_request_that_does_not_come_to_its_end_is_ended(built, monkeypatch, half):
    monkeypatch.setattr(server_module, "WHOLE", 0.2)

    async def ends():
        door = server_module.Door(token="token")
        server = server_module.Guarded(server_module.application(Book(built), None, door))
        (listening,) = server_module._listen(0)
        server.add_sockets([listening])
        reading, writing = await asyncio.open_connection(*listening.getsockname())
        writing.write(half.encode())
        await reading.read()  # to the end
        writing.close()
        server.stop()

    asyncio.run(asyncio.wait_for(ends(), 60))


def test_a_preflight_of_another_origin_is_not_answered(attacked):
    asked = {
        "Origin": "http://evil.example",
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "authorization",
    }
    for path in ("/api/kernels", "/live/progress", "/book/one.html"):
        _, headers, _ = attacked.ask("OPTIONS", path, headers={**asked, "Cookie": None})
        assert headers["Access-Control-Allow-Origin"] != "*"
        assert "evil" not in str(headers.as_string())


# The one host that is named

NAME = "reader-8810.app.github.dev"


def entered(server, **headers):
    return server.get(f"/book/one.html?token={server.token}", **headers)


def test_a_host_that_is_not_named_is_refused(attacked):
    assert entered(attacked, Host=NAME, Cookie=None)[0] == 403


def test_the_host_that_is_named_is_let_in_and_no_other(built, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with started(built, tmp_path, "--host", NAME, "--port", str(port)) as server:
        assert server.host == NAME, "the address is the one that the reader's browser opens"
        server.place = f"127.0.0.1:{port}"
        for host in (NAME, f"{NAME}:443", server.place, f"localhost:{port}"):
            status, headers, _ = entered(server, Host=host)
            assert status == 200
            assert f"wss://{NAME}" in re.search("connect-src [^;]*", headers["Content-Security-Policy"])[0]
        for host in ("evil.example", f"x.{NAME}", f"{NAME}.evil.example", "other-8810.app.github.dev"):
            assert entered(server, Host=host)[0] == 403
        assert server.get("/book/one.html", Host=NAME)[0] == 403, "nobody gets in without the token"
        # What forwards may pass on the name, or put this machine's own in its place; the browser's origin stays.
        for host in (NAME, f"localhost:{port}"):
            own = {"Host": host, "Origin": f"https://{NAME}"} | server.key
            status, _, text = server.post("/api/kernels", {"name": "one"}, **own)
            assert status == 201
            upgrade = {
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec_WebSocket_Version": "13",
                "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            }
            channels = f"/api/kernels/{json.loads(text)['id']}/channels?session_id=test"
            assert server.get(channels, **upgrade, **own)[0] == 101
            for other in ("https://evil.example", "https://other-8810.app.github.dev", f"http://{NAME}"):
                if host != NAME or NAME not in other:  # whoever answers for the name answers by HTTPS alone
                    assert server.get(channels, **upgrade, **(own | {"Origin": other}))[0] == 403


@pytest.mark.parametrize(
    "name",
    ["https://a.dev", "a.dev:8810", "*", "127.0.0.1", "10.0.0.1", "localhost", "a.dev/b", "", "-a.dev"],
)
def test_what_is_no_name_of_a_host_is_not_taken(built, name, capsys):
    from mlax_tutorial.__main__ import main

    with pytest.raises(SystemExit):
        main(["live", "--book", str(built), f"--host={name}"])
    assert "is no name of a host" in capsys.readouterr().err
