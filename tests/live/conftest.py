"""A book of one page and five chapters, and its server, in a process of its own."""

import contextlib
import http.client
import json
import os
import re
import subprocess
import sys

import pytest

PAGE = """<!DOCTYPE html>
<html><head><script>window.set = "before the page is painted"</script></head>
<body><article id="book"><h1>Page</h1></article></body></html>
"""


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder of a built book, in a folder with a file that is nobody's business."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.txt").write_text("a secret")
    book = outside / "html"
    for folder in ("book", "_sources/book", "_static"):
        (book / folder).mkdir(parents=True)
    (book / "index.html").write_text(PAGE)
    (book / "book" / "reference").mkdir()
    (book / "book" / "reference" / "one.html").write_text(PAGE)
    (book / "_static" / "style.css").write_text("p { color: red }")
    (book / "leading_out.txt").symlink_to(outside / "secret.txt")
    for name in ("one", "two", "three", "four", "five"):
        (book / "book" / f"{name}.html").write_text(PAGE)
        cells = [
            {"cell_type": "markdown", "id": "text", "metadata": {}, "source": ["# Title"]},
            {"cell_type": "code", "id": "shown", "metadata": {}, "source": ["x = 1\n", "x"], "outputs": [{}]},
            {
                "cell_type": "code",
                "id": "hidden",
                "metadata": {"tags": ["remove-cell"]},
                "source": "assert x == 1",
                "outputs": [],
            },
        ]
        (book / "_sources" / "book" / f"{name}.ipynb").write_text(json.dumps({"cells": cells}))
    return book


class Server:
    """A running server; `get` and `post` send what they are told, as it is, and give status, headers and text."""

    def __init__(self, process, address, home):
        self.process, self.home, self.progress = process, home, home / "progress.json"
        self.host, self.token = re.fullmatch(
            r"https?://([\w.:-]+)/book/welcome.html\?token=(\w+)", address
        ).groups()
        self.place = self.host
        self.cookies = {}

    @property
    def key(self):
        """What kernels ask for each time."""
        return {"Authorization": f"token {self.token}"}

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body=None, wait=True, **headers):
        return self.ask("POST", path, json.dumps(body), headers=headers, wait=wait)

    def ask(self, method, path, body=None, *, headers, wait=True):
        connection = http.client.HTTPConnection(self.place, timeout=60)
        connection.putrequest(method, path, skip_host=True)
        given = {"Host": self.host, "Content-Length": str(len(body or ""))} | headers
        if self.cookies:
            given.setdefault("Cookie", "; ".join(f"{name}={value}" for name, value in self.cookies.items()))
        for name, value in given.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value)
        connection.endheaders((body or "").encode())
        with contextlib.closing(connection):
            if not wait:
                return None
            answer = connection.getresponse()
            text = b"" if answer.status == 101 else answer.read()
            return answer.status, answer.headers, text.decode()

    def enter(self):
        """Opens the door with the token; from then on with the cookies alone."""
        status, headers, _ = self.get(f"/book/one.html?token={self.token}")
        assert status == 200
        self.cookies = dict(each.split(";")[0].split("=", 1) for each in headers.get_all("Set-Cookie"))
        return headers.get_all("Set-Cookie")


@contextlib.contextmanager
def started(built, home, *arguments, command=None, **options):
    """`arguments` are further ones of the command, `command` another one, `options` those of its process."""
    (home / "ipython" / "profile_default" / "startup").mkdir(parents=True)
    for file in ("startup.py", "ipython/profile_default/startup/own.py"):
        (home / file).write_text("what_the_reader_always_wants = 1")
    usual = [
        sys.executable,
        "-m",
        "mlax_tutorial",
        "live",
        "--no-browser",
        "--port",
        "0",
        "--book",
        str(built),
    ]
    process = subprocess.Popen(
        command or [*usual, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            **os.environ,
            "JAX_PLATFORMS": "cpu",
            "MLAX_TUTORIAL_PROGRESS": str(home / "progress.json"),
            "IPYTHONDIR": str(home / "ipython"),
            "PYTHONSTARTUP": str(home / "startup.py"),
            "TMPDIR": str(home),
        },
        **options,
    )
    try:
        address = next((line.strip() for line in process.stdout if "://" in line), None)
        assert address, process.stderr.read()
        yield Server(process, address, home)
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()
        process.stderr.close()


@pytest.fixture(scope="module")
def server(built, tmp_path_factory):
    """A server that asks for the token at each request."""
    with started(built, tmp_path_factory.mktemp("home")) as running:
        yield running


@pytest.fixture
def inside(server):
    """The same, with the cookies of somebody who came in with the token."""
    server.enter()
    yield server
    server.cookies = {}
