"""A built site on a local address, and a browser that talks to nothing else."""

import contextlib
import functools
import gzip
import http.server
import io
import threading
from pathlib import Path

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    "--font-render-hinting=none",  # letters are as wide as they are designed, whatever the machine
    "--safebrowsing-disable-auto-update",
    "--disable-features=OptimizationHints,MediaRouter,Translate,AutofillServerCommunication",
    # names other than the local server's do not resolve, so nothing can leave by another way either
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


@functools.cache
def compressed(path, changed):
    return gzip.compress(Path(path).read_bytes(), mtime=0)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Sends text compressed, as GitHub Pages does, so that a page is weighed as its readers load it."""

    def log_message(self, *args):
        pass

    def send_head(self):
        path = Path(self.translate_path(self.path))
        kind = self.guess_type(str(path))
        text = kind.startswith("text/") or kind in (
            "application/javascript",
            "application/json",
            "image/svg+xml",
        )
        if not (text and path.is_file() and "gzip" in self.headers.get("Accept-Encoding", "")):
            return super().send_head()
        content = compressed(path, path.stat().st_mtime_ns)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        return io.BytesIO(content)


@contextlib.contextmanager
def serve(folder):
    """Serve `folder` on a free port of this machine; gives the address."""
    handler = functools.partial(QuietHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def chromium():
    """A headless Chromium that does not phone home."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def pages(folder):
    """The site's pages, as paths relative to `folder`: those of the book, then the site's own."""
    folder = Path(folder)
    found = sorted(path.relative_to(folder).as_posix() for path in folder.glob("book/**/*.html"))
    return [*found, *(name for name in ("search.html", "404.html") if (folder / name).is_file())]


def settle(page):
    """Wait until the fonts are there and the mathematics is set."""
    page.wait_for_load_state("load")
    page.evaluate("""async () => {
        await document.fonts.ready;
        if (window.MathJax && MathJax.startup) await MathJax.startup.promise;
    }""")
