"""Two simulated devices for all tests, so that what is sharded really is; and how their programs are compiled."""

import sys
import tempfile

import jax
import pytest

import mlax_tutorial  # noqa: F401  (before any test uses a device)
from tests.settings import configured

jax.config.update("jax_num_cpu_devices", 2)
# Tests compile the same small programs again and again; what each was compiled to is kept, which pays most where answers are graded.
# Each process has a folder of its own, since JAX does not write its files in one go.
COMPILED = tempfile.TemporaryDirectory(prefix="compiled_for_tests_")
jax.config.update("jax_compilation_cache_dir", COMPILED.name)
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)


def pytest_addoption(parser):
    few = "the first right one, and wrong ones with three different diagnoses"
    parser.addoption(
        "--answers", choices=("all", "few"), default="all", help=f"of an exercise to grade; few: {few}"
    )


@pytest.fixture(autouse=True, scope="module")
def quick_to_compile(request):
    """Most tests wait for the compiler, for thousands of small programs that run once; a module or its folder may have
    `QUICK_TO_COMPILE`.
    """
    before = jax.config.values["jax_disable_most_optimizations"]
    folder = getattr(sys.modules[request.module.__package__], "QUICK_TO_COMPILE", before)
    with configured(jax_disable_most_optimizations=getattr(request.module, "QUICK_TO_COMPILE", folder)):
        yield
    jax.clear_caches()  # or else the programs of all modules fill gigabytes


@pytest.fixture
def optimized():
    """Compile as for a user, for one test of a module that is quick to compile."""
    with configured(jax_disable_most_optimizations=False):
        yield


@pytest.fixture
def x64():
    """Switch float64 on for one test."""
    with configured(jax_enable_x64=True):
        yield
