"""What was left out is said at the end."""


def pytest_terminal_summary(terminalreporter):
    from tests.colab.test_colab import RECORD

    if said := RECORD.summary():
        terminalreporter.section("remembered", sep="-")
        terminalreporter.write(said)
