"""The filtering experiments on data of no consequence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("joblib")

from experiments import infile_shape, reuters_filtering
from experiments._filter_data import Collection, Stream
from samewise.filtering import Document, Topic


def test_one_topic_of_reuters():
    rng = np.random.default_rng(0)
    X = rng.random((120, 12)) * (rng.random((120, 12)) < 0.4)
    relevant = (X[:, 0] > 0)[:, None]
    stream = Stream(sparse.csr_matrix(X), ["gold"], relevant)
    row = reuters_filtering.one_topic(stream, 0)
    assert row["relevant"] == relevant.sum()
    assert all(0 <= row[name] <= 0.5 for name in reuters_filtering.FILTERS)
    assert "120 documents" in reuters_filtering.summary([row], stream)


def test_the_four_runs():
    pytest.importorskip("snowballstemmer")
    rng = np.random.default_rng(1)
    words = {"gold": "gold mines ounces", "cocoa": "cocoa beans harvest"}
    topics = [Topic(name, title=text) for name, text in words.items()]
    documents, relevant = [], []
    for k in range(150):
        about = [name for name in words if rng.random() < 0.2]
        text = " ".join([*(words[name] for name in about), *rng.choice(["rain", "snow", "ice"], 3)])
        documents.append(Document(f"d{k}", text))
        relevant.append([name in about for name in words])
    data = Collection(documents, topics, np.array(relevant))
    rows = []
    for name in infile_shape.THESIS:
        row, evolution = infile_shape.one_run(data, name, every=60)
        assert [line["documents"] for line in evolution] == [60, 120, 150]
        assert row["relevant retrieved"] > 0
        rows.append(row)
    text = infile_shape.summary(rows, data)
    assert "The collection differs" in text
    assert len(infile_shape.claims(rows)) == 4


def test_claims_are_checked():
    def row(name, P, R, F, A):
        return {"run": name, "macro P": P, "macro R": R, "macro F": F, "macro A": A}

    rows = [row(name, v[0], v[1], v[2], v[5]) for name, v in infile_shape.THESIS.items()]
    assert [claim["holds here"] for claim in infile_shape.claims(rows)] == ["yes"] * 4
    rows[3] = row("Run 4", 0.1, 0.01, 0.01, 0.01)
    assert [claim["holds here"] for claim in infile_shape.claims(rows)] == ["no", "yes", "no", "no"]
