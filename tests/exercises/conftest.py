"""Each file of a chapter's folder is the test of one exercise; to its own tests come those that every exercise owes."""

import pathlib

import pytest

from tests.settings import configured

pytest.register_assert_rewrite("tests.exercises.owed")

from tests.exercises import owed  # noqa: E402  (its assertions are rewritten)

HERE = pathlib.Path(__file__).parent


class ExerciseFile(pytest.Module):
    """The tests of one exercise."""

    def collect(self):
        for name, test in vars(owed).items():
            if name.startswith("test_") and (self.obj.answers.rights or name != "test_a_right_answer_passes"):
                setattr(self.obj, name, test)
        return super().collect()


def pytest_pycollect_makemodule(module_path, parent):
    if module_path.parent.parent == HERE:
        return ExerciseFile.from_parent(parent, path=module_path)


@pytest.fixture
def answers(request):
    return request.module.answers


def pytest_generate_tests(metafunc):
    few = metafunc.config.getoption("answers") == "few"
    for name in {"right", "wrong"} & set(metafunc.fixturenames):
        answers = metafunc.module.answers
        cases = getattr(answers, f"{name}s")
        if few:
            cases = cases[:1] if name == "right" else answers.different
        metafunc.parametrize(name, cases, ids=lambda answer: answer.name)


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile(quick_to_compile):
    """Wrong answers are many, and each is graded once: what they wait for is mostly the compiler."""
    with configured(jax_disable_most_optimizations=True):
        yield
