"""Small files to learn from, and the command in this process."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
import pandas as pd
from sklearn.datasets import load_wine
from typer.testing import CliRunner

from samewise.cli.app import app


@pytest.fixture(scope="session")
def wine():
    """Half of wine: a frame with its 13 columns, and the class by name."""
    bunch = load_wine(as_frame=True)
    frame = bunch.data.iloc[::2].reset_index(drop=True)
    frame["class"] = bunch.target_names[bunch.target.to_numpy()[::2]]
    return frame


@pytest.fixture
def files(wine, tmp_path, monkeypatch):
    """A folder with wine in every format; data sets are looked for in it too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SAMEWISE_DATA", str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    X, y = wine.drop(columns="class").to_numpy(), wine["class"].to_numpy(dtype=str)
    classes, codes = np.unique(y, return_inverse=True)
    train = np.arange(len(y)) % 3 > 0
    np.savez(tmp_path / "data" / "half.npz", X=X, y=codes, classes=classes, train=train)
    wine.to_csv("wine.csv", index=False)
    wine.to_csv("wine.tsv", index=False, sep="\t")
    wine.to_parquet("wine.parquet")
    np.savez("wine.npz", X=X, y=y, feature_names=wine.columns[:-1].to_numpy(dtype=str))
    with open("wine.jsonl", "w") as file:
        for i, (row, name) in enumerate(zip(X, y, strict=True)):
            entry = {"id": f"w{i}", "vector": row.tolist(), "class": name}
            file.write(json.dumps(entry) + "\n")
    return tmp_path


@pytest.fixture
def call(files):
    """Run the command; `code` is the exit code it must have."""

    def run(*arguments, code=0, **more):
        result = CliRunner().invoke(app, [str(a) for a in arguments], **more)
        assert result.exit_code == code, (result.output, result.exception)
        return result

    return run


@pytest.fixture
def call_json(call):
    """Run the command with --json, and parse what it prints."""

    def run(*arguments, **more):
        return json.loads(call(*arguments, "--json", **more).stdout)

    return run


@pytest.fixture
def model(call):
    """A model of wine.csv, by LDA because that is quick."""
    call("fit", "wine.csv", "--label", "class", "--learner", "lda", "--out", "wine.sw")
    return "wine.sw"


def frame_of(text):
    """A frame of CSV text."""
    from io import StringIO

    return pd.read_csv(StringIO(text))
