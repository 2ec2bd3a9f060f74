"""`python -m tools.site screenshots DIR`: a picture of every page, wide and narrow, light and dark."""

import argparse
import sys
from pathlib import Path

from . import browser

SITE = Path(__file__).parents[2] / "_build" / "html"
WIDTHS = (1280, 390)


def screenshots(site, folder, only=()):
    folder.mkdir(parents=True, exist_ok=True)
    with browser.serve(site) as address, browser.chromium() as chromium:
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                context = chromium.new_context(
                    viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
                )
                page = context.new_page()
                for name in browser.pages(site):
                    if only and Path(name).stem not in only:
                        continue
                    page.goto(f"{address}/{name}")
                    browser.settle(page)
                    path = folder / f"{Path(name).stem}-{width}-{scheme}.png"
                    page.screenshot(path=path, full_page=True)
                    print(path)
                context.close()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tools.site", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    shoot = commands.add_parser("screenshots", help="picture every page of the built site")
    shoot.add_argument("folder", type=Path, help="where the pictures go")
    shoot.add_argument("--site", type=Path, default=SITE, help="the built site (default: _build/html)")
    shoot.add_argument("--only", nargs="*", default=(), metavar="PAGE", help="only these pages, such as `arrays`")
    options = parser.parse_args(arguments)
    if not (options.site / "index.html").is_file():
        sys.exit(f"No site at {options.site}: run `make book` first.")
    screenshots(options.site, options.folder, options.only)


if __name__ == "__main__":
    main()
