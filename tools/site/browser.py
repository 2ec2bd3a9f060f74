"""A built site on a local address, and a browser that talks to nothing else."""

import contextlib
import functools
import http.server
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
    "--safebrowsing-disable-auto-update",
    "--disable-features=OptimizationHints,MediaRouter,Translate,AutofillServerCommunication",
    # names other than the local server's do not resolve, so nothing can leave by another way either
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


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
