"""The development container: the book opens in the browser of a codespace, and under that one name alone."""

import json
import os
import socket
import sys

import pytest

from mlax_tutorial.live import server as server_module
from tests.live.conftest import started
from tools import project

FOLDER = project.ROOT / ".devcontainer"
CONTAINER = json.loads((FOLDER / "devcontainer.json").read_text(encoding="utf-8"))
NAME = "silver-lamp-8810.app.github.dev"


def test_it_forwards_the_port_of_the_live_pages():
    assert CONTAINER["forwardPorts"] == [server_module.PORT]
    assert set(CONTAINER["portsAttributes"]) == {str(server_module.PORT)}
    assert f"-{server_module.PORT}." in (FOLDER / "live").read_text(encoding="utf-8")


def test_what_it_runs_exists():
    assert (
        CONTAINER["updateContentCommand"] == "make book"
    )  # `make live` would serve before the port is forwarded
    command = project.ROOT / CONTAINER["postAttachCommand"]
    assert command == FOLDER / "live" and os.access(command, os.X_OK)


@pytest.mark.parametrize("codespace", [True, False])
def test_the_name_of_the_codespace_is_let_in_and_elsewhere_none_is(built, tmp_path, monkeypatch, codespace):
    for name in ("CODESPACE_NAME", "GITHUB_CODESPACES_PORT_FORWARDING_DOMAIN"):
        monkeypatch.delenv(name, raising=False)
    if codespace:
        monkeypatch.setenv("CODESPACE_NAME", "silver-lamp")
        monkeypatch.setenv("GITHUB_CODESPACES_PORT_FORWARDING_DOMAIN", "app.github.dev")
    monkeypatch.setenv("PYTHON", sys.executable)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    own = ["--no-browser", "--port", str(port), "--book", str(built)]
    with started(built, tmp_path, command=[str(FOLDER / "live"), *own]) as server:
        assert server.host == (NAME if codespace else f"127.0.0.1:{port}")
        server.place = f"127.0.0.1:{port}"
        page = f"/book/one.html?token={server.token}"
        assert server.get(page, Host=NAME)[0] == (200 if codespace else 403)
        assert server.get(page, Host=NAME.replace("lamp", "other"))[0] == 403
        assert server.get("/book/one.html", Host=NAME)[0] == 403, "nobody gets in without the token"
        assert server.get(page, Host=server.place)[0] == 200
