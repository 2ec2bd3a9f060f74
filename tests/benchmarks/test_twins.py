"""The twins: their records are of twins, and where PyTorch is installed their first steps agree."""

import numpy as np
import pytest

from benchmarks.pytorch import PYTHON
from benchmarks.twins import __main__ as twins
from mlax_tutorial import data


@pytest.mark.parametrize("name", twins.NAMES)
def test_the_record_is_of_a_twin(name):
    record = data.recorded(f"twin_{name}")
    assert max(record["first step"].values()) < twins.CLOSE
    ours, theirs = (np.array(record[side]["losses"]) for side in ("jax", "torch"))
    assert ours.shape == theirs.shape and len(ours) == 3
    assert record["versions"]["torch"] and record["jax"]["milliseconds"] > 0


@pytest.mark.skipif(not PYTHON.exists(), reason="PyTorch is not installed: make .venv-torch/.made")
def test_names_agree(monkeypatch):
    from benchmarks.twins import names

    monkeypatch.setattr(names, "EPOCHS", 1)
    monkeypatch.setattr(names, "BATCH_SIZE", 1024)
    result = twins.compare("names", seeds=1)
    np.testing.assert_allclose(result["jax"]["losses"], result["torch"]["losses"], atol=1e-4)


@pytest.mark.skipif(not PYTHON.exists(), reason="PyTorch is not installed: make .venv-torch/.made")
def test_encoders_agree(monkeypatch):
    from benchmarks.twins import encoder

    monkeypatch.setattr(encoder, "STEPS", 8)
    result = twins.compare("encoder", seeds=1)
    np.testing.assert_allclose(result["jax"]["losses"], result["torch"]["losses"], atol=1e-3)


def test_what_is_no_twin_is_refused(monkeypatch):
    from benchmarks.twins import names

    side = {"losses": [1.0], "seconds": [1.0], "accuracy": 0.5}
    monkeypatch.setattr(names, "run", lambda seed: ({"loss": 1e-3}, side, side))
    with pytest.raises(RuntimeError, match=r"names, seed 0: loss of the first step differs by 0\.001"):
        twins.compare("names", seeds=1)
