"""The server of the live pages. Its whole list of addresses stands in `application`: what is not there, there is not.

Nobody gets in without the token: from this machine alone, from a page of this server alone. A cookie keeps the pages open;
kernels ask for the token each time. What a reader's own Jupyter is configured to do has no say.
"""

import asyncio
import html
import logging
import mimetypes
import os
import pathlib
import secrets
import signal
import socket
import sys
import tempfile
import threading
import time
import webbrowser

from jupyter_server.auth import AllowAllAuthorizer, IdentityProvider
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from jupyter_server.services.kernels.handlers import default_handlers as kernel_handlers
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler
from tornado import httpserver, netutil, web
from traitlets.config import Config

from mlax_tutorial.checking import progress
from mlax_tutorial.live.book import Book, live, policy
from mlax_tutorial.live.kernels import Kernels

try:
    import resource
except ImportError:  # on Windows
    resource = None

ADDRESS = "127.0.0.1"
PORT = 8810  # always the same if it is free: a browser keeps what was edited by address and port
SOON = 60  # seconds until the key of the browser that the server opens is good for nothing
STATIC = pathlib.Path(__file__).parent / "static"
BODY = 2**16  # bytes of a request's body: the largest asks for a kernel by its name
HEAD = 2**16  # bytes of its headers: cookies of all other servers on this machine are among them
MESSAGE = 2**23  # bytes of what a page tells a kernel at a time: the code of a cell
WHOLE = (
    20  # seconds until a request must be there as a whole, and until a connection that says nothing is closed
)
STRANGERS = 64  # connections at a time that have not shown the token or its cookie
BYTES_A_SECOND = 3e6  # of what a kernel prints; more is dropped, and the page says so


def owner(client, server):
    """Which user's program connected from `client` to `server`, two addresses; -1 if there is none, None where the system does
    not tell.
    """
    try:
        lines = pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return None
    ends = [
        f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
        for host, port in (client, server)
    ]
    established = [*ends, "01"]
    return next((int(each[7]) for each in map(str.split, lines) if each[1:4] == established), -1)


def _of_this_user(request):
    connected = request.connection.stream.socket
    uid = owner(connected.getpeername(), connected.getsockname())
    return uid is None or uid in (
        0,
        os.getuid(),
    )  # root reads everything anyway, and relays for a browser on Windows


class Guarded(httpserver.HTTPServer):
    """Takes little from whoever has not shown the token: short requests, soon, on a few connections. One more closes the oldest of
    them, so that who comes with the token always gets in.
    """

    def initialize(self, *arguments, **kwargs):
        super().initialize(
            *arguments,
            max_header_size=HEAD,
            max_body_size=BODY,
            max_buffer_size=MESSAGE,
            idle_connection_timeout=WHOLE,
            body_timeout=WHOLE,
            **kwargs,
        )
        self._strangers = {}  # streams, the oldest first
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0] if resource else 4 * STRANGERS
        self._most = STRANGERS if limit < 0 else max(8, min(STRANGERS, limit // 4))

    def handle_stream(self, stream, address):
        self._strangers = {each: None for each in self._strangers if not each.closed()}
        while len(self._strangers) >= self._most:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.close()
        self._strangers[stream] = None
        super().handle_stream(stream, address)

    def admit(self, stream):
        self._strangers.pop(stream, None)


class Door(IdentityProvider):
    """Asks for the token. Any user of the machine may read with which address a program was started, so the browser that the
    server opens gets a key instead: it opens once, soon, before anybody came in with the token, and to the same user alone.
    """

    once, until = "", 0.0
    server = None  # what is told which connections belong to somebody who is in

    def admit_once(self):
        """A new key."""
        self.once, self.until = secrets.token_hex(24), time.monotonic() + SOON
        return self.once

    async def get_user(self, handler):
        user = await super().get_user(handler)
        if user and self.server:
            self.server.admit(handler.request.connection.stream)
        return user

    def get_token(self, handler):
        given = super().get_token(handler)
        if self.once and given:
            if self._same(given, self.token):
                self.once = ""
            elif (
                self._same(given, self.once)
                and time.monotonic() < self.until
                and _of_this_user(handler.request)
            ):
                self.once = ""
                return self.token
        return given

    @staticmethod
    def _same(given, key):
        return secrets.compare_digest(given.encode(), key.encode())


class Page(JupyterHandler):
    """A file of the book. A page is sent with the script that makes it live."""

    content_security_policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

    @web.authenticated
    def get(self, path):
        book = self.settings["book"]
        file = book.file(path or "index.html")
        if file is None:
            raise web.HTTPError(404)
        self.send(file)

    def send(self, file):
        self.set_header("Cache-Control", "no-cache")
        self.set_header("Referrer-Policy", "same-origin")
        self.set_header("Content-Type", mimetypes.guess_type(file.name)[0] or "application/octet-stream")
        if file.suffix != ".html":
            self.finish(file.read_bytes())
            return
        page, nonce = file.read_text(encoding="utf-8"), secrets.token_urlsafe(16)
        self.xsrf_token  # noqa: B018  (sets its cookie, which each request of the page must repeat)
        self.set_header("Content-Type", "text/html; charset=utf-8")
        hosts = [
            f"ws://{self.request.host}",
            *(f"wss://{each}" for each in filter(None, [self.settings["host"]])),
        ]
        self.set_header("Content-Security-Policy", policy(page, nonce, " ".join(hosts)))
        chapter = self.settings["book"].chapter(file)
        key = self.identity_provider.token if self.token_authenticated else ""
        if key:
            self.set_header("Cache-Control", "no-store")
        self.finish(live(page, chapter, nonce, key))

    def get_login_url(self):
        raise web.HTTPError(403)  # no form: the address with the token is the only way in

    def write_error(self, status_code, **kwargs):
        said = {
            403: "This book opens with the address that was printed when it was started. It ends with a token.",
            404: "There is no such page in the book.",
        }.get(status_code, "Something went wrong.")
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(
            f"<!doctype html><html lang=en><title>{status_code}</title><p>{html.escape(said)}</p></html>"
        )


class Part(Page):
    """What a page loads to be live."""

    @web.authenticated
    def get(self, name):
        self.send(STATIC / name)


class Closed:
    """What runs code asks for the token each time. A cookie would not do: a browser sends it to every port of this machine,
    and another user's server may listen there.
    """

    async def prepare(self, **kwargs):
        await super().prepare(**kwargs)
        if not self.token_authenticated:
            raise web.HTTPError(403)

    def skip_check_origin(self):  # the token excuses no foreign origin
        return False


class Channels(Closed, KernelWebsocketHandler):
    """A kernel's messages. A refusal says nothing."""

    def write_error(self, status_code, **kwargs):
        self.finish()


class Cells(APIHandler):
    """The cells of a chapter's notebook."""

    @web.authenticated
    def get(self, chapter):
        book = self.settings["book"]
        if chapter not in book.chapters:
            raise web.HTTPError(404)
        ended = self.settings["kernel_manager"].ended.get(chapter, "")
        self.finish({"cells": book.cells(chapter), "ended": ended})


class HeardSoFar(Closed, APIHandler):
    """What a kernel has said of the cell that it runs."""

    @web.authenticated
    def get(self, kernel):
        if kernel not in self.settings["kernel_manager"]:
            raise web.HTTPError(404)
        self.finish(self.settings["kernel_manager"].heard(kernel).told())


class Progress(APIHandler):
    """The exercises that the reader has passed, wherever that was, each with its day."""

    @web.authenticated
    def get(self):
        noted, _ = progress.read()
        passed = {name: entry.get("on") for name, entry in noted.items() if entry["status"] == "passed"}
        self.finish({"passed": passed})


def application(book, kernels, door, host=""):
    """All that is served. `host` is the one name, other than this machine's own, under which it may be reached."""
    return web.Application(
        [
            # /api/kernels: start, interrupt, restart and end one; its messages
            *(
                (
                    path,
                    Channels if each is KernelWebsocketHandler else type(each.__name__, (Closed, each), {}),
                )
                for path, each in kernel_handlers
            ),
            (r"/live/cells/(\w+)", Cells),
            (r"/live/heard/([\w-]+)", HeardSoFar),
            (r"/live/progress", Progress),
            (r"/live/(live\.(?:js|css))", Part),
            (r"/(.*)", Page),
        ],
        book=book,
        host=host,
        kernel_manager=kernels,
        kernel_websocket_connection_class=ZMQChannelsWebsocketConnection,
        config=Config({"ZMQChannelsWebsocketConnection": {"iopub_data_rate_limit": BYTES_A_SECOND}}),
        identity_provider=door,
        authorizer=AllowAllAuthorizer(identity_provider=door),
        base_url="/",
        websocket_max_message_size=MESSAGE,
        cookie_secret=secrets.token_bytes(32),  # a new one at each start: no cookie outlives its server
        xsrf_cookies=True,
        xsrf_cookie_kwargs={"path": "/", "samesite": "Strict"},
        allow_unauthenticated_access=False,
        allow_remote_access=False,  # a Host that is not this machine is refused, but for the one that is named
        local_hostnames=["localhost", *filter(None, [host])],
        # A proxy that forwards may put `localhost` in the place of Host; the browser's origin stays.
        allow_origin=f"https://{host}" if host else "",
        log_function=lambda handler: None,
    )


def _listen(port, others=20):
    """Sockets on `port`, or on one of the next if it is taken."""
    for candidate in range(port, port + others) if port else [0]:
        try:
            return netutil.bind_sockets(candidate, ADDRESS)
        except OSError:
            continue
    raise OSError(
        f"no free port between {port} and {port + others - 1}" if others > 1 else f"port {port} is taken"
    )


async def _serve(folder, port, open_browser, host=""):
    logging.getLogger("tornado").setLevel(logging.ERROR)
    logging.getLogger("traitlets").setLevel(logging.ERROR)
    book = Book(folder)
    door = Door(token=secrets.token_hex(24), cookie_options={"samesite": "Strict"})
    with tempfile.TemporaryDirectory(prefix="live-") as scratch:
        kernels = Kernels(book.chapters, scratch)
        server = door.server = Guarded(application(book, kernels, door, host))
        sockets = _listen(port, 1 if host else 20)  # what forwards knows one port
        server.add_sockets(sockets)
        place = f"https://{host}" if host else f"http://{ADDRESS}:{sockets[0].getsockname()[1]}"
        first = f"{place}/book/welcome.html?token="
        ended = asyncio.Event()
        hangup = getattr(signal, "SIGHUP", signal.SIGTERM)  # its terminal is closed
        for each in (signal.SIGINT, signal.SIGTERM, hangup):
            try:
                asyncio.get_running_loop().add_signal_handler(each, ended.set)
            except NotImplementedError:  # on Windows Ctrl-C raises KeyboardInterrupt
                pass
        print(
            f"The book is live at\n\n    {first}{door.token}\n\nCtrl-C ends it, and its kernels.", flush=True
        )
        if port and sockets[0].getsockname()[1] != port:
            print(
                f"Port {port} is taken. What you changed in the book there stays there, and does not show here."
            )
        if open_browser:
            threading.Thread(target=webbrowser.open, args=[first + door.admit_once()], daemon=True).start()
        try:
            await ended.wait()
        finally:
            server.stop()
            await kernels.end()


def serve(folder, *, port=PORT, open_browser=True, host=""):
    """Serves the built book in `folder` until it is told to stop. `host` is the name under which another machine forwards to it, by
    HTTPS.
    """
    try:
        asyncio.run(_serve(folder, port, open_browser, host))
    except KeyboardInterrupt:
        pass
