"""Separators, categories, missing values and dates in tables; learners side by side."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from samewise import compare, load
from samewise.exceptions import InvalidInputError


@pytest.fixture
def shop(call):
    """Rows whose class follows the category and a number with gaps: a file, and its frame."""
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 3, 90)
    frame = pd.DataFrame(
        {
            "color": np.array(["red", "green", "blue"])[kind],
            "size": np.where(rng.random(90) < 0.2, np.nan, kind + rng.normal(size=90)),
            "code": np.where(rng.random(90) < 0.1, np.nan, 10 * rng.integers(0, 2, 90)),
            "class": np.array(["a", "b", "c"])[kind],
        }
    )
    frame.to_csv("shop.csv", index=False, sep=";")
    return frame


OPTIONS = ["--label", "class", "--sep", ";", "--categorical", "color,code", "--impute", "median"]


@pytest.fixture
def learned(call, shop):
    call("fit", "shop.csv", *OPTIONS, "--learner", "lda", "--keep", "learned", "--out", "shop.sw")
    return load("shop.sw")


def test_a_model_knows_its_categories_and_what_fills_gaps(call, call_json, shop, learned):
    names = ("color=blue", "color=green", "color=red", "size", "code=0", "code=10")
    assert learned.feature_names == names
    kept = learned.has_seen(encoded(shop, learned.fill), names)
    assert learned.fill[3] == np.nanmedian(shop["size"][kept]) and (learned.fill[:3] >= 0).all()
    call("transform", "shop.sw", "shop.csv", "--sep", ";", "--out", "z.csv")
    found = pd.read_csv("z.csv").iloc[:, :-1].to_numpy()
    np.testing.assert_allclose(found, learned.transform(encoded(shop, learned.fill)), atol=1e-5)
    shop.drop(columns="class").assign(color="violet").to_parquet("new.parquet")
    found = call_json("search", "shop.sw", "new.parquet", "--row", "2", "-k", "3")
    assert len(found["found"]["after"]) == 3
    assert call_json("evaluate", "shop.sw", "shop.csv", "--sep", ";")["queries"] == (~kept).sum()


def encoded(frame, fill):
    """The slow, obvious twin of what the command makes of a table."""
    rows = []
    for _, row in frame.iterrows():
        size = fill[3] if np.isnan(row["size"]) else row["size"]
        colors = [float(row["color"] == c) for c in ("blue", "green", "red")]
        rows.append([*colors, size, *[float(row["code"] == c) for c in (0, 10)]])
    return np.array(rows)


def test_without_the_option_gaps_and_text_are_refused_with_the_remedy(call, shop):
    fit = ("fit", "shop.csv", "--label", "class", "--sep", ";")
    assert "name it with --categorical color" in call(*fit, code=1).stderr
    text = call(*fit, "--categorical", "color", code=1).stderr
    assert "missing" in text and "--impute median" in text
    text = call(*fit, "--categorical", "hue", code=1).stderr
    assert "has no column 'hue'" in text
    text = call("compare", "half", "--impute", "mean", code=1).stderr
    assert "--impute is for columns of CSV or Parquet, which half does not have." in text


def test_a_column_of_gaps_cannot_be_filled(call, shop):
    shop.assign(void=np.nan).to_csv("void.csv", index=False)
    text = call("fit", "void.csv", *OPTIONS[:2], *OPTIONS[4:], code=1).stderr
    assert "'void' of void.csv has no values in the rows to learn from" in text


def test_categories_are_not_ids(call, shop):
    pd.DataFrame({"id": map("n{}".format, range(2000)), "c": [0, 1] * 1000}).to_csv("ids.csv")
    text = call("fit", "ids.csv", "--label", "c", "--categorical", "id", code=1).stderr
    assert "has 2,000 different values" in text and "--drop id" in text


@pytest.mark.parametrize(("sep", "named"), [(";", "';'"), ("\t", "tab"), ("|", "'|'")])
def test_another_separator_is_noticed(call, wine, sep, named):
    wine.to_csv("other.csv", index=False, sep=sep)
    text = call("fit", "other.csv", "--label", "class", code=1).stderr
    assert f"give --sep {named}." in text
    given = named.strip("'")
    call("fit", "other.csv", "--label", "class", "--sep", given, "--learner", "lda")
    assert "must be one character" in call("fit", "wine.csv", "--sep", "::", code=1).stderr


@pytest.mark.parametrize("day", ["2024-02-29", "29.02.2024", "2/29/24", "2024-02-29 12:00"])
def test_dates_are_refused_with_the_remedy(call, wine, day):
    wine.assign(day=day).to_csv("days.csv", index=False)
    text = call("fit", "days.csv", "--label", "class", code=1).stderr
    assert "look like dates or times: make numbers" in text and "--drop day" in text
    wine.assign(day=pd.Timestamp(2024, 2, 29)).to_parquet("days.parquet")
    text = call("fit", "days.parquet", "--label", "class", code=1).stderr
    assert "holds times" in text and "--drop day" in text


def test_decimal_commas_are_named(call, wine):
    wine.assign(hue="1,5").to_csv("commas.csv", index=False, sep=";")
    text = call("fit", "commas.csv", "--label", "class", "--sep", ";", code=1).stderr
    assert "Write decimal points, not commas." in text


def slow_rows(n=900):
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 60)), np.arange(n) % 30


def test_a_time_limit_stops_a_learner_and_the_others_go_on():
    X, y = slow_rows(9000)
    lines = []
    endless = {"nca": {"n_init": 3, "max_iter": 10**6, "tol": 1e-12}}
    found = compare(
        X, y, ["nca", "lda"], n_jobs=2, time_limit=6, params=endless, scale="none",
        watch=lines.append,
    )  # fmt: skip
    refused = {line.name: line.refused for line in found.lines}
    assert refused["nca"] == "it was stopped after the time limit of 6 s" and not refused["lda"]
    assert [line.name for line in found.lines] == ["euclidean", "cosine", "nca", "lda"]
    assert any(line.startswith("lda: ") for line in lines)


def test_side_by_side_finds_what_one_after_the_other_finds():
    X, y = slow_rows()
    first, second = (
        compare(X[:300], y[:300] % 3, ["lda", "pca"], scale="none", n_jobs=n) for n in (1, 3)
    )
    assert [line.name for line in first.lines] == [line.name for line in second.lines]
    for a, b in zip(first.lines, second.lines, strict=True):
        np.testing.assert_array_equal(a.correct, b.correct)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [({"n_jobs": 0}, "n_jobs must be"), ({"time_limit": 0}, "time_limit must be"),
     ({"scale": True}, "scale must be 'auto'")],
)  # fmt: skip
def test_wrong_limits(wrong, message):
    X, y = slow_rows()
    with pytest.raises(InvalidInputError, match=message):
        compare(X, y, [], **wrong)


def test_progress_in_a_pipe_is_lines(call):
    options = ("compare", "wine.csv", "--label", "class", "--learners", "lda", "--jobs", "1")
    said = call(*options, "--scale", "none", "--hold-out", "0.4", "--json").stderr.splitlines()
    progress = [json.loads(line)["progress"].split(":")[0] for line in said]
    # A slow machine says besides that a learner is still learning.
    assert list(dict.fromkeys(progress)) == ["euclidean", "cosine", "lda"]


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("01 Jan 2024", "look like dates or times"),
        ("Mar 3, 2024", "look like dates or times"),
        ("12:30:00", "look like dates or times"),
        ("31.01.24 08:00", "look like dates or times"),
        ("1,5", "Write decimal points"),
        ("1,234.50", "Write plain numbers"),
        ("12.5 %", "Write plain numbers"),
        ("$3.10", "Write plain numbers"),
        ("may", "name it with --categorical 'on day'"),
        ("red", "name it with --categorical 'on day'"),
    ],
)
def test_text_in_place_of_numbers_is_refused_with_what_helps(call, value, remedy):
    frame = pd.DataFrame({"on day": [value] * 12, "a": np.arange(12) % 5, "class": ["x", "y"] * 6})
    frame.to_csv("t.csv", index=False)
    text = call("fit", "t.csv", "--label", "class", code=1).stderr
    assert remedy in text and "in line 2" in text


def test_a_sign_for_what_is_missing_among_numbers(call):
    frame = pd.DataFrame({"a": ["1.5", "2", "?", "4"] * 5, "class": ["x", "y"] * 10})
    frame.to_csv("t.csv", index=False)
    text = call("fit", "t.csv", "--label", "class", code=1).stderr
    assert "'?' in line 4. Most of its values are numbers" in text and "--impute median" in text


def test_a_column_that_counts_the_rows_is_named(call):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=60), "class": ["x", "y"] * 30})
    frame.to_csv("t.csv")
    fit = ("fit", "t.csv", "--label", "class", "--learner", "lda")
    text = call(*fit).stderr
    assert "'Unnamed: 0' of t.csv counts the rows, from 0 to 59" in text
    assert "--drop 'Unnamed: 0'" in text
    assert "counts the rows" not in call(*fit, "--drop", "Unnamed: 0").stderr
    # The model knows its columns: nothing need be said again, and nothing is.
    assert "counts the rows" not in call("transform", "model.sw", "t.csv", "--out", "z.csv").stderr


def test_labels_are_asked_for_before_columns_are_looked_at(call):
    frame = pd.DataFrame({"name": ["ann", "bob", "cy", "dan"], "a": [1, 2, 3, 4]})
    frame.to_csv("t.csv", index=False)
    text = call("compare", "t.csv", code=1).stderr
    assert "--label NAME. Its columns: name, a." in text
    text = call("fit", "t.csv", "--label", "name", code=1).stderr
    assert "are all different" in text and "check --label" in text
    frame.to_csv("bare.csv", index=False, header=False)
    text = call("fit", "bare.csv", "--label", "name", code=1).stderr
    assert "there are: ann, 1." in text
    pd.DataFrame({"5.1": [1.0], "1.4": [2.0], "setosa": "x"}).to_csv("bare.csv", index=False)
    text = call("fit", "bare.csv", "--label", "species", code=1).stderr
    assert "the line with the names of the columns is missing" in text


def test_a_data_set_that_can_be_fetched_is_offered(call, monkeypatch, tmp_path):
    monkeypatch.setenv("SAMEWISE_DATA", str(tmp_path))
    text = call("fit", "mnist", code=1).stderr
    assert "mnist is not on this machine; samewise datasets fetch mnist downloads it." in text
    assert "neither a file nor a data set" in call("fit", "mnisst", code=1).stderr


def test_a_warning_is_said_once(call):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"])
    frame.assign(kind=[f"id{i // 2}" for i in range(80)]).to_csv("t.csv", index=False)
    lines = call("fit", "t.csv", "--label", "kind").stderr.splitlines()
    assert len(lines) == len({*lines}) and not any("regression problem" in line for line in lines)
