"""No cache of compiled programs; what happens where there is no TPU compiler; and what was left out is said at the end."""

import pytest

from tests.settings import configured
from tests.tpu import compiling, remembered


def pytest_configure(config):
    remembered.Reporter.register(config)


@pytest.fixture(scope="session")
def record():
    return remembered.Programs()


@pytest.fixture
def compiles(request, record):
    """`compiles(lowered, chips=1, check=None)` compiles a program, and checks the outcome, unless the same one passed before."""
    failed = request.session.testsfailed
    with record.of(request.node.nodeid) as programs:

        def compiles(lowered, chips=1, check=None):
            programs.add(compiling.compile_unless(programs.known, lowered, chips, check))

        yield compiles
        if (
            request.session.testsfailed > failed
        ):  # the test's error ends here, and does not come through the fixture
            programs.found.clear()


@pytest.fixture(autouse=True, scope="session")
def compiler():
    reason = compiling.why_not()
    if reason and compiling.REQUIRED:
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    with configured(jax_enable_compilation_cache=False):
        yield
