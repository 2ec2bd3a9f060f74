"""`python -m tests.site.gallery DIR [--store]`: build the gallery and picture all of it."""

import argparse
import shutil
import tempfile
from pathlib import Path

from tests.site import gallery
from tests.site.gallery import pictures
from tools.visits import browser


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.site.gallery", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go, to be looked at")
    parser.add_argument(
        "--store", action="store_true", help="and take them as those that the tests compare with"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        site, kept = gallery.build(Path(scratch) / "site"), Path(scratch) / "stored"
        with browser.serve(site) as address, browser.chromium() as chromium:
            for name, width, scheme, picture in pictures.take_all(chromium, address):
                target = options.folder / f"{width}-{scheme}" / f"{name}.png"
                target.parent.mkdir(parents=True, exist_ok=True)
                picture.save(target)
                if options.store:
                    stored = pictures.path(name, width, scheme, kept)
                    stored.parent.mkdir(parents=True, exist_ok=True)
                    pictures.small(picture).save(stored, optimize=True)
            if options.store:
                (kept / pictures.DRAWN).write_text(f"{pictures.version(chromium)}\n")
        if options.store:  # only now, when all of them are there
            shutil.rmtree(gallery.STORED, ignore_errors=True)
            shutil.copytree(kept, gallery.STORED)
    print(f"{options.folder}: {len(gallery.STATES)} states, each wide and narrow, light and dark")


if __name__ == "__main__":
    main()
