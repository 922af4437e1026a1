import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib")

from experiments import _banking_report, banking77
from experiments.banking77 import Setting
from samewise.exceptions import DatasetNotFoundError

RESULTS = Path(banking77.__file__).parent / "results" / "banking77"
MEASURES = ["P@1", "P@10", "mAP"]
KEYS = ["learner", "start", "margin", "C or r", "average", "negatives", "triplets"]


def read(name):
    with (RESULTS / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def values(rows, learner, triplets, **wanted):
    wanted |= {"learner": learner, "triplets": str(triplets)}
    (row,) = (r for r in rows if all(r[key] == value for key, value in wanted.items()))
    return np.array([float(row[name]) for name in MEASURES])


@pytest.fixture(scope="module")
def few():
    try:
        return banking77.banking(4)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))


def test_committed_tables_have_all_settings_and_sizes():
    rows = read("test.csv")
    assert list(rows[0])[:7] == KEYS
    assert {int(r["triplets"]) for r in rows} == set(banking77.SIZES)
    described = {tuple(_banking_report._described(s).values()) for s in banking77.shown_settings()}
    assert described <= {tuple(r[key] for key in KEYS[:6]) for r in rows}
    assert len(read("runs.csv")) == banking77.N_SEEDS * len(rows)
    tried = banking77.tried_settings()
    assert len(tried) == len(set(tried))
    assert len(read("validation.csv")) == len(tried) * len(banking77.SIZES)


def test_committed_means_are_those_of_the_runs():
    runs = read("runs.csv")
    for row in read("test.csv"):
        mine = [r for r in runs if all(r[key] == row[key] for key in KEYS)]
        for name in MEASURES:
            seeds = [float(r[name]) for r in mine]
            assert float(row[name]) == pytest.approx(np.mean(seeds), abs=2e-6)
            assert float(row[f"sd {name}"]) == pytest.approx(np.std(seeds, ddof=1), abs=2e-6)


def test_committed_choices_are_safe_on_the_held_out_questions():
    chosen = [r for r in read("validation.csv") if r["chosen"] == "True"]
    assert {r["learner"] for r in chosen} == set(banking77.LEARNERS)
    for row in chosen:
        if row["safe"] == "True":
            assert min(float(row[name]) for name in MEASURES) >= 0


def test_committed_results_show_what_hurts_and_what_helps():
    rows = read("test.csv")
    cosine = next(r for r in read("baselines.csv") if r["method"] == "cosine")
    before = np.array([float(cosine[name]) for name in MEASURES])
    np.testing.assert_allclose(before, [88.8, 75.9, 54.1], atol=0.06)
    for name in banking77.LEARNERS:
        C = f"{Setting(name).step:g}"
        usual = {"start": "identity", "C or r": C}
        plain = {**usual, "negatives": "random"}
        paper = values(rows, name, 5000, **plain, margin="1", average="last")
        assert paper[0] < before[0] - 3
        safe = values(rows, name, 50000, **plain, margin="auto", average="survival")
        assert safe[0] > before[0] - 1
        assert np.all(safe[1:] > before[1:] + 2)
        last = {**usual, "margin": "auto", "average": "last"}
        semi = values(rows, name, 50000, **last, negatives="semi-hard, current")
        assert np.all(semi[1:] > safe[1:])
        collapsed = values(rows, name, 50000, **last, negatives="hardest, identity")
        assert np.all(collapsed < before / 2)


def test_committed_figures_are_small():
    sizes = {path.name: path.stat().st_size for path in RESULTS.glob("*.png")}
    assert set(sizes) == {"fig_triplets.png", "fig_trade.png", "fig_margins.png"}
    assert max(sizes.values()) < 200_000


def test_measures_are_those_of_the_obvious_count():
    random = np.random.RandomState(0)
    X, y = random.standard_normal((40, 3)), random.randint(0, 4, 40)
    first, ten, precision = [], [], []
    for i in range(40):
        others = [j for j in np.argsort(-(X @ X[i])) if j != i]
        hits = y[others] == y[i]
        first.append(hits[0])
        ten.append(hits[:10].mean())
        precision.append(np.mean([hits[: k + 1].mean() for k in np.flatnonzero(hits)]))
    wanted = [np.mean(first), np.mean(ten), np.mean(precision)]
    np.testing.assert_allclose(banking77.measures(banking77.plain(X), X, y), wanted, rtol=1e-12)


def test_hardest_negative_is_the_closest_of_another_class(few):
    X, y = (part[::7] for part in few[0])
    found = banking77.hardest_negatives(X, y)
    for i in range(len(y)):
        others = np.flatnonzero(y != y[i])
        assert X[i] @ X[found[i]] == pytest.approx((X[others] @ X[i]).max(), abs=1e-6)


def test_held_out_questions_are_a_fifth_of_every_intent(few):
    (_, kept), (_, held) = banking77.held_out(few[0], 0)
    share = np.bincount(held) / (np.bincount(held) + np.bincount(kept))
    np.testing.assert_allclose(share, 0.2, atol=0.02)


def test_learners_follow_their_setting(few):
    auto = banking77.margin_of("auto", few[0])
    assert 0 < auto < 1
    assert banking77.margin_of("0.5 auto", few[0]) == auto / 2
    assert banking77.margin_of("0.3", few[0]) == 0.3
    learner = banking77.made(Setting("f-AROMA", "2 auto", average="uniform"), few[0])
    assert (learner.r, learner.margin, learner.init) == (1.0, 2 * auto, "identity")
    assert banking77.made(Setting("OASIS", step=0.01), few[0]).C == 0.01


@pytest.mark.parametrize("negatives", ["random", "semi-hard", "hardest"])
def test_a_run_is_repeatable_and_learns(few, negatives):
    setting = Setting("f-AROMA", negatives=negatives, form="current")
    first = banking77.follow(*few, setting, (20, 200), 0)
    again = banking77.follow(*few, setting, (20, 200), 0)
    other = banking77.follow(*few, setting, (20, 200), 1)
    assert list(first) == [20, 200]
    assert np.array_equal(first[200], again[200])
    assert not np.array_equal(first[200], other[200])
    before = banking77.measures(banking77.plain(few[1][0]), *few[1])
    if negatives != "hardest":
        assert first[200][2] > before[2]


def test_the_best_of_the_safe_settings_is_chosen():
    safe, better, unsafe = (Setting("OASIS", margin) for margin in ("1", "2", "3"))
    mined = replace(safe, negatives="semi-hard")
    curves = {safe: [0, 0, 1], better: [0, 1, 2], unsafe: [-1, 5, 9], mined: [1, 1, 3]}
    validation = {s: [{10: np.array(v, dtype=float)}] for s, v in curves.items()}
    chosen = banking77.choices(validation)
    assert chosen == {("OASIS", "random"): better, ("OASIS", "any"): mined}
    assert banking77.choices({unsafe: validation[unsafe]})["OASIS", "any"] == unsafe
