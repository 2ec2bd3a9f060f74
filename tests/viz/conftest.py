"""A browser for figures."""

import pytest

from tests.browsers import chromium


class Browser:
    """Opens pages that hold nothing but figures, as wide as a telephone.

    Attributes:
      errors: what scripts have raised on all of them.
    """

    def __init__(self, chromium, folder):
        self._chromium, self._file, self.errors = chromium, folder / "page.html", []

    def open(self, markup: str, *, scripts: bool = True, width: int = 390):
        """A page with this markup, on which scripts run or do not."""
        text = f'<!doctype html><meta charset=utf-8><meta name=viewport content="width=device-width"><title>t</title>{markup}'
        self._file.write_text(text, encoding="utf-8")
        context = self._chromium.new_context(
            java_script_enabled=scripts, viewport={"width": width, "height": 800}
        )
        page = context.new_page()
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.goto(self._file.as_uri())
        return page


@pytest.fixture
def browser(tmp_path):
    with chromium() as running:
        yield Browser(running, tmp_path)
