"""The gallery, served on this machine."""

import pytest

from tests.site import gallery as page_of_all
from tools.visits import browser


@pytest.fixture(scope="session")
def gallery(tmp_path_factory, made_once):
    """The address of the page of all components."""
    made_once("gallery")
    with browser.serve(page_of_all.build(tmp_path_factory.mktemp("gallery"))) as served:
        yield served
