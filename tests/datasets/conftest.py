import numpy as np
import pytest

from samewise.datasets import load
from samewise.exceptions import DatasetNotFoundError


@pytest.fixture
def real():
    """`load`, but a missing file skips the test."""

    def load_or_skip(name, **options):
        try:
            return load(name, **options)
        except DatasetNotFoundError as error:
            pytest.skip(str(error))

    return load_or_skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty directory that SAMEWISE_DATA names."""
    directory = tmp_path / "sets"
    directory.mkdir()
    monkeypatch.setenv("SAMEWISE_DATA", str(directory))
    return directory


@pytest.fixture
def tiny():
    """The arrays of a small well-formed file."""
    return {
        "X": np.array([[0, 1, 2], [3, 4, 5]], dtype=np.uint8),
        "y": np.array([1, 0], dtype=np.uint8),
        "classes": np.array(["no", "yes"]),
    }
