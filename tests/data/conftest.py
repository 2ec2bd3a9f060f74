"""A local server that stands for the network, and misbehaves on demand."""

import gzip
import http.server
import threading
import time

import pytest

from mlax_tutorial.data import download
from mlax_tutorial.data import fashion as module

# A file large enough to break off in the middle, small enough to be quick.
CONTENT = gzip.compress(bytes(range(256)) * 4000 + b"the end", mtime=0, compresslevel=0)


class Handler(http.server.BaseHTTPRequestHandler):
    """Serves `server.content`, with Range, in the manner that `server.manner` names."""

    def do_GET(self):
        server = self.server
        server.requests.append(self.headers.get("Range"))
        manner = server.manners.pop(0) if server.manners else "well"
        if manner == "absent":
            return self.send_error(404)
        if manner == "hang":
            time.sleep(1.5)
            return None
        start = 0
        if self.headers.get("Range") and manner != "no-range":
            start = int(self.headers["Range"].removeprefix("bytes=").removesuffix("-"))
            if start >= len(server.content):
                return self.send_error(416)
        body = b"<html>please log in</html>" * 50_000 if "garbage" in manner else server.content[start:]
        self.send_response(206 if start else 200)
        if manner != "no-length":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if manner == "break":
            body = body[: len(body) // 2]
        if "slow" in manner:
            for index in range(0, len(body), 20_000):
                self.wfile.write(body[index : index + 20_000])
                time.sleep(0.02)
            return None
        self.wfile.write(body)
        return None

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.5)
    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.manners, running.requests, running.content = [], [], CONTENT
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    running.url = f"http://127.0.0.1:{running.server_port}/"
    monkeypatch.setattr(module, "URL", running.url)
    yield running
    running.shutdown()
    running.server_close()
