"""Every learner with its defaults: the report, and that the catalog says what was found."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import samewise
from experiments import _defaults_data, _defaults_report, defaults
from samewise.catalog import LEARNERS

RESULTS = Path(defaults.__file__).parent / "results" / "defaults"


def read(name):
    with (RESULTS / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_who_is_worse_on_more_than_one_set_in_ten_is_kept_for_the_record():
    record = {entry.name: bool(entry.record) for entry in LEARNERS}
    rows = [row for row in read("counts.csv") if row["learner"] not in defaults.BASELINES]
    assert {row["learner"] for row in rows} == {e.name for e in defaults.shown()[2:]}
    sure = {row["learner"]: row["at most one in ten"] == "no" for row in rows}
    assert {name for name, worse in sure.items() if worse} == {n for n in sure if record[n]}


def test_there_are_enough_sets_and_most_had_no_part_in_the_choice():
    names = {row["set"] for row in read("errors.csv")}
    assert names == {*_defaults_data.DEVELOPMENT, *_defaults_data.OTHERS}
    assert len(names) >= 25
    assert len(names - set(_defaults_data.DEVELOPMENT)) > len(names) / 2


def test_marks_are_against_the_better_baseline():
    right = np.zeros(20, dtype=bool)
    answers = {
        "Euclidean": np.arange(20) < 8,
        "Cosine": np.arange(20) < 10,
        "good": np.arange(20) < 18,
        "same": np.arange(20) < 11,
        "bad": right,
    }
    marks = _defaults_report._marks(answers)
    assert marks == {"Euclidean": "", "Cosine": "", "good": "+", "same": "", "bad": "-"}


def test_parts_are_apart_and_folds_are_of_the_training_part(monkeypatch):
    monkeypatch.setattr(_defaults_data, "TRAIN", 100)
    monkeypatch.setattr(_defaults_data, "TEST", 50)
    X, y, train, test = _defaults_data._split("digits")
    assert len(train) == 100 and len(test) == 50 and not set(train) & set(test)
    here = _defaults_data.parts("digits")
    assert here.X.shape == (100, 64) and here.X_test.shape == (50, 64)
    varies = X[train].std(axis=0) > 0
    np.testing.assert_allclose(here.X.std(axis=0)[varies], 1.0)
    folds = _defaults_data.folds("digits")
    assert sum(len(fold.y_test) for fold in folds) == 100
    np.testing.assert_array_equal(
        np.sort(np.concatenate([f.y_test for f in folds])), np.sort(y[train])
    )


def test_a_part_that_is_done_is_not_done_again(tmp_path):
    asked = []

    def part(name):
        asked.append(name)
        return {"set": name}

    for _ in range(2):
        assert defaults.once(tmp_path, part, "wine") == {"set": "wine"}
    assert asked == ["wine"]


@pytest.mark.parametrize("choice", defaults.CHOICES)
def test_choices_are_learners(choice):
    assert type(defaults.CHOICES[choice]()).__name__ == choice.split(",")[0]


def test_docstrings_say_what_the_record_is():
    kept = [entry for entry in LEARNERS if entry.record]
    assert kept
    for entry in LEARNERS:
        text = " ".join((getattr(samewise, entry.name).__doc__ or "").split())
        says = "worse than no learning does on more than one set in ten" in text
        assert says == bool(entry.record), entry.name
        assert entry.record in text
