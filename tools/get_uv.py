"""Fetch the `uv` program into a folder, with nothing but Python's standard library.

A fresh machine may have `python3` without `pip` or `venv`, so this reads the package index
itself: it picks the wheel for this platform, checks its SHA-256, and unpacks the one program.

    python3 tools/get_uv.py .uv            # leaves .uv/uv
"""

import hashlib
import html.parser
import io
import os
import pathlib
import platform
import sys
import urllib.error
import urllib.parse
import urllib.request
import zipfile

VERSION = "0.13.8"


def index_url():
    """The package index to ask: the one that pip or uv was told to use, or PyPI."""
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL"):
        if os.environ.get(name):
            return os.environ[name].rstrip("/")
    return "https://pypi.org/simple"


def platform_tags():
    """The endings of wheel names that fit this machine, best first."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    if sys.platform == "darwin":
        return [f"macosx_11_0_{'arm64' if machine == 'aarch64' else machine}", f"macosx_10_12_{machine}"]
    if sys.platform.startswith("linux"):
        musl = [f"musllinux_1_1_{machine}"]
        glibc = [f"manylinux_2_28_{machine}", f"manylinux_2_17_{machine}"]
        return glibc + musl if platform.libc_ver()[0] == "glibc" else musl + glibc
    raise SystemExit(
        f"get_uv: no uv is known here for {sys.platform!r}. On Windows, use WSL (see README.md)."
    )


class _Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.hrefs = []

    def handle_starttag(self, tag, attrs):
        self.hrefs += [value for name, value in attrs if tag == "a" and name == "href"]


def fetch(url):
    request = urllib.request.Request(url, headers={"Accept": "text/html"})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read()
    except urllib.error.URLError as error:
        raise SystemExit(
            f"get_uv: could not fetch {url} ({error.reason}).\n"
            "Check the network, or install uv by hand (https://docs.astral.sh/uv) and run make again."
        ) from None


def main(folder):
    page = f"{index_url()}/uv/"
    links = _Links()
    links.feed(fetch(page).decode())
    wheels = {}
    for href in links.hrefs:
        url = urllib.parse.urljoin(page, href)
        name = urllib.parse.unquote(urllib.parse.urlparse(url).path.rsplit("/", 1)[-1])
        if name.startswith(f"uv-{VERSION}-") and name.endswith(".whl"):
            wheels[name] = url
    chosen = next((url for tag in platform_tags() for name, url in wheels.items() if tag in name), None)
    if chosen is None:
        raise SystemExit(f"get_uv: {page} has no uv {VERSION} for {platform_tags()}; install uv by hand.")
    wheel, expected = fetch(chosen.split("#")[0]), urllib.parse.urlparse(chosen).fragment
    if expected and expected != f"sha256={hashlib.sha256(wheel).hexdigest()}":
        raise SystemExit(f"get_uv: {chosen} arrived broken (its SHA-256 differs); run make again.")
    target = pathlib.Path(folder) / "uv"
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        member = next(name for name in archive.namelist() if name.endswith("/scripts/uv"))
        partial = target.with_suffix(".partial")
        partial.write_bytes(archive.read(member))
    partial.chmod(0o755)
    partial.replace(target)
    print(f"uv {VERSION} is in {target}")


if __name__ == "__main__":
    main(sys.argv[1])
