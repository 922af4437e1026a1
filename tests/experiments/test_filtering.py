"""The filtering experiments on data of no consequence."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("joblib")

from experiments import infile_shape, reuters_filtering
from experiments._filter_data import Collection, Stream
from experiments._filter_records import measured
from samewise.filtering import Document, Topic


def test_one_topic_of_reuters():
    rng = np.random.default_rng(0)
    X = rng.random((120, 12)) * (rng.random((120, 12)) < 0.4)
    relevant = (X[:, 0] > 0)[:, None]
    stream = Stream(sparse.csr_matrix(X), ["gold"], relevant)
    row, seconds = reuters_filtering.one_topic(stream, 0)
    assert row["relevant"] == relevant.sum()
    assert set(seconds) == set(row) - {"topic", "relevant", "ratio"}
    assert all(0 <= row[name] <= 0.5 for name in reuters_filtering.FILTERS)
    text = reuters_filtering.summary([row], stream)
    assert "120 documents" in text and "The setting is not the paper's" in text


def test_claims_about_pola_are_checked():
    def rows(**errors):
        return [{"POLA": 0.1, **errors}] * 3 + [{"POLA": 0.1, **dict.fromkeys(errors, 0.5)}]

    names = {"Perceptron": 0.11, "PAUM": 0.3, "1-NN": 0.2}
    found = reuters_filtering.claims(rows(**names))
    assert [claim["holds here"] for claim in found] == ["yes", "yes", "no"]
    compared = reuters_filtering.compared(rows(**names))
    assert [list(line.values())[1:4] for line in compared] == [[4, 0, 3], [4, 0, 0], [4, 0, 0]]
    found = reuters_filtering.claims(rows(**{**names, "1-NN": 0.1}))
    assert found[0]["holds here"] == "no"


def _found(name):
    if name == "broken":
        raise RuntimeError(name)
    return {"name": name}, {"all": 0.0}


def test_what_is_finished_is_kept(tmp_path):
    with pytest.raises(RuntimeError):
        measured(tmp_path, _found, {"a": ("a",), "b": ("broken",), "c": ("c",)}, 1)
    (tmp_path / "records" / "a.json").write_text('{"name": "kept"}')
    tasks = {name: (name,) for name in "abc"}
    found = measured(tmp_path, _found, tasks, 1)
    assert list(found.items()) == [(n, {"name": "kept" if n == "a" else n}) for n in "abc"]
    assert measured(tmp_path, _found, tasks, 1, again=["a"])["a"] == {"name": "a"}
    assert not list(tmp_path.glob("*/*.new"))
    with pytest.raises(SystemExit, match="--only knows a, b, c; not d"):
        measured(tmp_path, _found, tasks, 1, again=["d"])


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
    results = []
    for name in infile_shape.THESIS:
        result, seconds = infile_shape.one_run(data, name)
        assert [line["documents"] for line in result["evolution"]] == list(range(15, 151, 15))
        assert list(seconds) == [name]
        for column in ("retrieved", "relevant retrieved", "relevant"):
            assert result["scores"][column] == sum(line[column] for line in result["evolution"])
        assert 0 < result["scores"]["relevant retrieved"] <= result["scores"]["relevant"]
        results.append(result)
    text = infile_shape.summary(results, data)
    assert "The collection differs" in text
    marks = ("| yes |", "| no |", "| not testable here |")
    assert sum(map(text.count, marks)) == len(infile_shape.claims(results))


def test_claims_about_the_runs_are_checked():
    names = ["retrieved", "relevant retrieved", *infile_shape.COLUMNS]
    results = []
    for name, values in infile_shape.THESIS.items():
        row = {"run": name, **dict(zip(names, values, strict=True))}
        row |= {"micro P": values[1] / values[0], "micro R": values[1] / infile_shape.N_RELEVANT}
        first = {c: row[c] + (0.1 if name == "Run 3" else -0.1) for c in infile_shape.COLUMNS}
        results.append({"scores": row, "evolution": [first, row]})
    marks = {claim["holds here"] for claim in infile_shape.claims(results)}
    assert marks == {"yes", "not testable here"}
    results[3]["scores"] = dict.fromkeys(row, 0.01) | {"run": "Run 4"}
    found = {c["the thesis says"]: c["holds here"] for c in infile_shape.claims(results)}
    assert found["batch (4) has the best R"] == "no"
    assert found["runs 1, 2 and 3 are precision-oriented (P > R)"] == "yes"
