"""Data sets as the experiments load them."""

import pytest

from experiments._pa_data import load_pa_study
from samewise.datasets import load
from samewise.exceptions import DatasetNotFoundError


def _or_skip(loader):
    def load_or_skip(name, **options):
        try:
            return loader(name, **options)
        except DatasetNotFoundError as error:
            pytest.skip(str(error))

    return load_or_skip


@pytest.fixture
def real():
    """`load`, but a missing file skips the test."""
    return _or_skip(load)


@pytest.fixture
def real_pa_study():
    """`load_pa_study`, but a missing file skips the test."""
    return _or_skip(load_pa_study)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty directory that SAMEWISE_DATA names."""
    directory = tmp_path / "sets"
    directory.mkdir()
    monkeypatch.setenv("SAMEWISE_DATA", str(directory))
    return directory
