"""Data sets from OpenML, which is not asked: there may be no network."""

from __future__ import annotations

from http.client import RemoteDisconnected
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets
from sklearn.utils import Bunch

from samewise.datasets import OPENML, fetch, load
from samewise.datasets.store import stored_names
from samewise.exceptions import DatasetNotFoundError


@pytest.fixture
def answers(monkeypatch):
    """Set what OpenML answers: a Bunch, or an error to raise; returns what it was asked."""
    asked = []

    def set_answer(answer):
        def fetch_openml(**request):
            asked.append(request)
            if isinstance(answer, Exception):
                raise answer
            return answer

        monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
        return asked

    return set_answer


def test_what_is_fetched_is_stored_and_loaded(answers, monkeypatch, tmp_path):
    monkeypatch.setenv("SAMEWISE_DATA", str(tmp_path / "new" / "sets"))
    asked = answers(
        Bunch(
            data=np.array([[1.0, 2.0], [np.nan, 3.0], [4.0, 5.0]]),
            target=np.array(["b", "b", "a"], dtype=object),
        )
    )
    path = fetch("wine")
    assert path == tmp_path / "new" / "sets" / "wine.npz"
    assert asked[0]["data_id"] == OPENML["wine"]
    assert stored_names() == ["wine"]
    wine = load("wine")
    # The row with a missing value is left out.
    np.testing.assert_array_equal(wine.data, [[1.0, 2.0], [4.0, 5.0]])
    assert wine.target_names[wine.target].tolist() == ["b", "a"]


@pytest.mark.parametrize(
    "error", [URLError("no route to host"), TimeoutError("timed out"), RemoteDisconnected("gone")]
)
def test_without_network_it_says_so(answers, folder, error):
    answers(error)
    with pytest.raises(DatasetNotFoundError, match="could not be fetched from OpenML") as caught:
        fetch("wine")
    assert "Check the network connection, or put wine.npz into" in str(caught.value)
    assert stored_names() == []


def test_unknown_names_are_refused_with_near_ones(folder):
    with pytest.raises(DatasetNotFoundError, match="did you mean 'letter'"):
        fetch("leter")
    with pytest.raises(DatasetNotFoundError, match=r"can be fetched\. There are: balance_scale, "):
        fetch("zzz")
