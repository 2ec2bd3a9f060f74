"""`python -m tools.visits screenshots DIR`: a picture of every page, wide and narrow, light and dark, or as it is printed.

`python -m tools.visits pdf` prints the built site as a book. `python -m tools.visits pictures` draws the PNG files of book/_static anew from the SVG ones.
"""

import argparse
import itertools
import sys
from pathlib import Path

from . import browser, pdf

SITE = Path(__file__).parents[2] / "_build" / "html"
STATIC = Path(__file__).parents[2] / "book" / "_static"
WIDTHS = (1280, 390)


def screenshots(site, folder, only=(), widths=WIDTHS, schemes=("light", "dark")):
    """A page of a folder, such as reference/layers, is named `reference/layers`, and its picture `reference-layers`."""
    folder.mkdir(parents=True, exist_ok=True)
    with browser.serve(site) as address, browser.chromium() as chromium:
        for width, scheme in itertools.product(widths, schemes):
            context = chromium.new_context(
                viewport={"width": width, "height": 900},
                color_scheme="light" if scheme == "print" else scheme,
                reduced_motion="reduce",
            )
            page = context.new_page()
            if scheme == "print":
                page.emulate_media(media="print")
            for name in browser.pages(site):
                short = name.removeprefix("book/").removesuffix(".html")
                if only and short not in only:
                    continue
                page.goto(f"{address}/{name}")
                browser.settle(page)
                if scheme == "print":
                    page.evaluate("dispatchEvent(new Event('beforeprint'))")
                page.wait_for_timeout(200)  # else a tall page is taken before its sidebar is painted
                path = folder / f"{short.replace('/', '-')}-{width}-{scheme}.png"
                page.screenshot(path=path, full_page=True)
                print(path)
            context.close()


def pictures(static=STATIC):
    """The logo and the hero as PNG, for those who cannot read SVG: telephones and link previews."""
    with browser.serve(static) as address, browser.chromium() as chromium:
        for source, name, size, width in (
            ("logo", "touch-icon", (180, 180), 140),
            ("hero", "social", (1200, 630), 743),
        ):
            page = chromium.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme="light")
            page.goto(f"{address}/{source}.svg")
            picture = page.content()
            page.goto("about:blank")
            page.set_content(
                "<style>body { margin: 0; height: 100vh; display: grid; place-content: center; background: #f4f2ec }"
                f"svg {{ width: {width}px; height: auto }}</style>{picture}"
            )
            page.screenshot(path=static / f"{name}.png")
            print(static / f"{name}.png")


def make_pdf(site, target, only=()):
    if not Path(browser.CHROMIUM).is_file():
        sys.exit(
            f"No browser at {browser.CHROMIUM}: install Chromium, for Debian and Ubuntu the package `chromium`."
        )
    pages = pdf.build(site, target, only=only)
    size = target.stat().st_size
    if not only and target == site / pdf.NAME:
        pdf.offer(site)
    print(f"{pages} pages, {size / 1e6:.1f} MB: {target}")


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tools.visits", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    shoot = commands.add_parser("screenshots", help="picture every page of the built site")
    shoot.add_argument("folder", type=Path, help="where the pictures go")
    shoot.add_argument("--site", type=Path, default=SITE, help="the built site (default: _build/html)")
    shoot.add_argument(
        "--only", nargs="*", default=(), metavar="PAGE", help="only these pages, such as `arrays`"
    )
    shoot.add_argument("--widths", nargs="*", type=int, default=WIDTHS, metavar="PIXELS")
    shoot.add_argument("--schemes", nargs="*", default=("light", "dark"), choices=("light", "dark", "print"))
    commands.add_parser("pictures", help="draw the PNG files of book/_static anew from the SVG ones")
    paper = commands.add_parser("pdf", help="print the built site as a book, and offer it on its pages")
    paper.add_argument("--site", type=Path, default=SITE, help="the built site (default: _build/html)")
    paper.add_argument(
        "--only", nargs="*", default=(), metavar="PAGE", help="only these pages; nothing is offered then"
    )
    paper.add_argument("--output", type=Path, help=f"the file (default: {pdf.NAME} in the site)")
    options = parser.parse_args(arguments)
    if options.command == "pictures":
        return pictures()
    if not (options.site / "index.html").is_file():
        sys.exit(f"No site at {options.site}: run `make book` first.")
    if options.command == "pdf":
        return make_pdf(options.site, options.output or options.site / pdf.NAME, options.only)
    screenshots(options.site, options.folder, options.only, options.widths, options.schemes)


if __name__ == "__main__":
    main()
