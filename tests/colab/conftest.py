"""What was left out is said at the end."""

import pytest

from tests.tpu import remembered

_RECORD = pytest.StashKey()


def pytest_configure(config):
    from tests.colab.test_colab import RECORD  # before anything ran: what passes now was not left out

    config.stash[_RECORD] = RECORD
    remembered.Reporter.register(config)


def pytest_terminal_summary(terminalreporter, config):
    if said := config.stash[_RECORD].summary():
        terminalreporter.section("remembered", sep="-")
        terminalreporter.write(said)
