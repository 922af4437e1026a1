"""Exports of a live adapter, and headroom, in small."""

from __future__ import annotations

import numpy as np
import pytest

from experiments import live_export
from experiments._live_simulation import Corpus
from experiments.banking77 import banking
from samewise.exceptions import DatasetNotFoundError


@pytest.fixture(scope="module")
def few():
    try:
        (A, a), (B, b) = banking(4)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    return Corpus(A, a, B, b)


def test_exports_rank_as_the_form_does(few):
    rows = {row["form"]: row for row in live_export.exports(few, 0, 40)}
    assert list(rows) == [
        "the start",
        "embed_query",
        "to_numpy",
        "to_numpy, memory=False",
        "to_items",
    ]
    for name in live_export.NAMES:
        np.testing.assert_allclose(rows["to_numpy"][name], rows["embed_query"][name], atol=2.0)


def test_right_pairs_promise_and_teach_more_than_shuffled_ones(few):
    right, shuffled = live_export.promises(few, 60)
    assert (right["answers"], shuffled["answers"]) == ("right", "shuffled")
    assert right["test, start"] == shuffled["test, start"]
    assert right["promised"] > shuffled["promised"] + 20
    assert right["test, reached"] > shuffled["test, reached"]
