"""Wrong answers are many, and each is graded once: what they wait for is mostly the compiler."""

import pytest

from tests.settings import configured


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile(quick_to_compile):
    with configured(jax_disable_most_optimizations=True):
        yield


def pytest_collection_modifyitems(config, items):
    """With `--fewer-wrong-answers`: every third of each exercise, and no test that needs them all."""
    if not config.getoption("--fewer-wrong-answers"):
        return

    def stays(item):
        name = getattr(item, "originalname", None)
        if name == "test_diagnoses_tell_mistakes_apart":
            return False
        return name != "test_a_wrong_answer_gets_its_diagnosis" or item.callspec.params["number"] % 3 == 0

    dropped = [item for item in items if not stays(item)]
    items[:] = [item for item in items if stays(item)]
    config.hook.pytest_deselected(items=dropped)
