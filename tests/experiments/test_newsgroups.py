import csv
from collections import Counter
from itertools import product
from math import log2
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("joblib")

from experiments import _news_claims, _news_data, _news_report, _news_tables, newsgroups
from experiments._news_tables import (
    AROMAS,
    COSINE,
    DOCUMENTS,
    EUCLIDEAN,
    LEARNERS,
    METHODS,
    OF_PAIRS,
    Results,
)
from samewise import Pairs
from samewise.exceptions import DatasetNotFoundError

RESULTS = Path(newsgroups.__file__).parent / "results" / "newsgroups"
STAND_IN = "caltech10_surf"


def toy(n=260, d=12, n_classes=3, seed=0):
    """Counts where each class prefers some of the words."""
    random = np.random.RandomState(seed)
    y = np.arange(n) % n_classes
    rates = 0.2 + (np.arange(d) % n_classes == y[:, None])
    counts = random.poisson(rates)
    counts[:, 0] += counts.sum(axis=1) == 0
    return sparse.csr_matrix(counts.astype(np.float64)), y


def toy_split(number=0):
    counts, y = toy(seed=number)
    rows = np.arange(len(y))
    return _news_data.weighted(DOCUMENTS, number, counts, y, rows[:160], rows[160:])


def entropy(labels):
    counts = Counter(labels)
    return -sum(c / len(labels) * log2(c / len(labels)) for c in counts.values())


def test_information_gain_is_that_of_the_obvious_count():
    counts, y = toy()
    gain = _news_data.information_gain(counts, y)
    for term, column in enumerate(counts.toarray().T):
        wanted = entropy(y.tolist())
        for part in (y[column > 0].tolist(), y[column == 0].tolist()):
            wanted -= len(part) / len(y) * entropy(part)
        assert gain[term] == pytest.approx(wanted, abs=1e-12)


def test_information_gain_knows_its_extremes():
    y = np.array([0, 0, 1, 1])
    telling, always, never, useless = [1, 2, 0, 0], [1, 1, 3, 1], [0] * 4, [1, 0, 5, 0]
    counts = sparse.csr_matrix(np.array([always, telling, never, useless]).T)
    np.testing.assert_allclose(_news_data.information_gain(counts, y), [0, 1, 0, 0], atol=1e-12)
    # Of equal ones the first.
    assert _news_data.best_terms(counts, y, 2).tolist() == [0, 1]


def test_weights_come_from_the_training_rows_and_empty_rows_are_left_out():
    counts, y = toy()
    counts = sparse.csr_matrix(counts.toarray() * (np.arange(260) != 200)[:, None])
    first, second = np.arange(160), np.arange(160, 260)
    split = _news_data.weighted("toy", 3, counts, y, first, second)
    (A, a), (B, b) = split.train, split.test
    assert split.dropped == (0, 1)
    assert (A.shape[0], B.shape[0], len(a), len(b)) == (160, 99, 160, 99)
    assert A.dtype == B.dtype == np.float32
    df = np.count_nonzero(counts[:160].toarray(), axis=0)
    raw = counts.toarray() * (1 + np.log(161 / (1 + df)))
    lengths = np.linalg.norm(raw[:160], axis=1, keepdims=True)
    np.testing.assert_allclose(A.toarray(), raw[:160] / lengths, rtol=1e-5)
    rows = np.random.RandomState(3).permutation(second[second != 200])
    np.testing.assert_array_equal(b, y[rows])
    np.testing.assert_allclose(split.lengths[:, None] * B.toarray(), raw[rows], rtol=1e-5)


def test_documents_are_split_within_classes():
    try:
        splits = list(_news_data.documents(n_splits=2, n_terms=50, every=40))
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    for split in splits:
        sizes = [len(split.train[1]) + split.dropped[0], len(split.test[1]) + split.dropped[1]]
        assert sizes == [306, 165]
        assert len(np.unique(split.train[1])) == 20
        assert split.train[0].shape[1] == split.test[0].shape[1] == 50
    assert not np.array_equal(splits[0].train[1], splits[1].train[1])


@pytest.mark.parametrize(
    ("name", "n_classes", "n_rows"), [("caltech101_bow", 50, 2998), (STAND_IN, 10, 1123)]
)
def test_images_are_of_the_largest_classes(name, n_classes, n_rows):
    try:
        folds = list(_news_data.images(name, 2))
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    assert len(folds) == 2
    for fold in folds:
        assert len(fold.train[1]) + len(fold.test[1]) + sum(fold.dropped) == n_rows
        assert len(np.unique(fold.train[1])) == len(np.unique(fold.test[1])) == n_classes


def test_all_learners_of_a_split_see_the_same_stream():
    split = toy_split()
    short, long = (dict(newsgroups.stream(split, stops)) for stops in ((5, 20), (5, 20, 50)))
    assert [len(told) for told in long.values()] == [5, 15, 30]
    for stop, told in short.items():
        np.testing.assert_array_equal(told.anchor, long[stop].anchor)
        np.testing.assert_array_equal(told.negative, long[stop].negative)
    other = dict(newsgroups.stream(split._replace(number=1), (5, 20, 50)))
    assert not np.array_equal(long[50].anchor, other[50].anchor)


@pytest.mark.parametrize("method", [*LEARNERS, "LEGO"])
def test_learners_find_the_classes_of_a_toy(method):
    split, value = toy_split(), _news_tables.usual(DOCUMENTS, method)
    start = newsgroups.follow(split, COSINE, None, (), ())[0]
    records = newsgroups.follow(split, method, value, (100, 400), (100, 400))
    assert [record["seen"] for record in records] == [100, 400]
    assert 0 < records[0]["updates"] < records[1]["updates"] <= 400
    assert records[1]["map"] > start["map"] + 0.05
    last = newsgroups.follow(split, method, value, (100, 400), (400,))[0]
    np.testing.assert_array_equal(last["precision"], records[1]["precision"])


@pytest.mark.filterwarnings("ignore:ITML has not converged")
def test_learners_of_pairs_see_pairs_and_itml_starts_anew():
    split = toy_split()
    told = dict(newsgroups.stream(split, (50, 200), Pairs))
    assert [len(pairs) for pairs in told.values()] == [50, 150]
    start = newsgroups.follow(split, COSINE, None, (), ())[0]
    (end,) = newsgroups.follow(split, "ITML", 1.0, (200,), (200,))
    assert end["seen"] == 200
    assert 0 < end["updates"] <= 200
    assert end["map"] > start["map"]


def test_scores_are_those_of_the_obvious_ranking():
    split = toy_split()
    B, b = newsgroups.dense(split.test)
    scores = newsgroups.without_learning(split, EUCLIDEAN)
    raw = split.lengths[:, None] * B
    precision = []
    for i in range(len(b)):
        distances = np.linalg.norm(raw - raw[i], axis=1)
        # Rows of small counts coincide often: equal up to rounding is equal.
        order = np.argsort(distances.round(4), kind="stable")
        precision.append(np.mean(b[order[order != i][:50]] == b[i]))
    assert scores["precision"][49] == pytest.approx(np.mean(precision), abs=0.003)
    assert scores["precision"].shape == (50,)
    # Of unit length, the two without learning rank alike.
    even = newsgroups.without_learning(split._replace(lengths=np.ones(len(b))), EUCLIDEAN)
    assert even["map"] == pytest.approx(newsgroups.without_learning(split, COSINE)["map"], abs=1e-3)


def test_plan_runs_every_learner_on_every_split():
    plan = newsgroups.WHOLE
    tasks = [
        task[1:]
        for number in range(plan.n_splits)
        for task in newsgroups.document_tasks(toy_split()._replace(number=number), plan)
    ]
    for method in LEARNERS:
        value = _news_tables.usual(DOCUMENTS, method)
        ends = [marks for m, v, _, marks in tasks if (m, v) == (method, value)]
        assert len(ends) == 5
        assert all(500_000 in marks for marks in ends)
    tried = {v for m, v, _, marks in tasks if m == "f-AROMA" and 100_000 in marks}
    assert tried == set(newsgroups.TRIED)
    assert all(set(marks) <= set(stops) for _, _, stops, marks in tasks)
    # Three classes: 20 · 3² pairs.
    assert [stops for m, _, stops, _ in tasks if m == "ITML"] == [(180,)] * 5
    assert [marks[-1] for m, _, _, marks in tasks if m == "LEGO"] == [50_000] * 5


def record(name, split, method, value, seen, precision):
    flat = np.full(50, float(precision))
    about = {"set": name, "split": split, "method": method, "value": value, "seen": seen}
    return about | {"updates": seen, "precision": flat, "map": precision / 2}


CURVES = {
    ("OASIS", 0.1): (0.4, 0.5, 0.6),
    ("OASIS", 1.0): (0.5, 0.61, 0.65),
    ("d-AROMA", 1.0): (0.5, 0.6, 0.66),
    ("f-AROMA", 1.0): (0.45, 0.62, 0.665),
    ("d-AROMA", 0.01): (0.49, 0.59, 0.65),
    ("f-AROMA", 0.01): (0.44, 0.61, 0.655),
}


def made_up():
    """Records of two splits, one of them scored along the way, with five values of r."""
    rows = []
    for name, split in product((DOCUMENTS, STAND_IN), (0, 1)):
        rows += [record(name, split, EUCLIDEAN, None, 0, 0.2)]
        rows += [record(name, split, COSINE, None, 0, 0.45)]
        rows += [record(name, split, "ITML", 1.0, 300, 0.5 + 0.2 * split)]
        rows += [record(name, split, "LEGO", 1.0, 700, 0.4)]
        for (method, value), curve in CURVES.items():
            points = list(zip((100, 1000, 10_000), curve, strict=True))
            points = points if split == 0 else points[-1:]
            rows += [record(name, split, method, value, n, p) for n, p in points]
        rows += [record(name, 0, "LEGO", 1.0, 70, 0.3)] if split == 0 else []
    rows += [record(DOCUMENTS, 0, "OASIS", 0.1, 100_000, 0.8)]
    for name, method in product((DOCUMENTS, STAND_IN), LEARNERS):
        tried = {0.001: 0.55, 0.1: 0.6, 10.0: 0.59}
        rows += [
            record(name, 0, method, value, 1000, p)
            for value, p in tried.items()
            if (method, value) not in CURVES
        ]
    return Results(rows)


def test_triplets_needed_interpolates_and_bounds():
    curve = {100: 0.4, 1000: 0.5, 10_000: 0.6}
    assert _news_tables.triplets_needed(curve, 0.55) == ("", pytest.approx(np.sqrt(1000 * 10_000)))
    assert _news_tables.triplets_needed(curve, 0.3) == ("≤", 100)
    assert _news_tables.triplets_needed(curve, 0.7) == (">", 10_000)


def test_triplets_are_compared_where_aroma_is_better_than_no_learning():
    rows = _news_tables.needed_rows(made_up())
    rows = [r for r in rows if (r["score"], r["C"], r["r"]) == ("precision@10", "0.1", "1")]
    # f-AROMA's first stop has the cosine's precision.
    assert [(r["method"], r["triplets"]) for r in rows] == [
        *(("d-AROMA", n) for n in (100, 1000, 10_000)),
        *(("f-AROMA", n) for n in (1000, 10_000)),
    ]
    assert [r["times"] for r in rows[:2]] == [pytest.approx(10), pytest.approx(10)]
    # From 10 000 to 100 000 OASIS goes from 0.6 to 0.8.
    assert rows[2]["times"] == pytest.approx(10**0.3)


def test_curves_are_of_the_first_splits_and_finals_of_all():
    results = made_up()
    assert (results.n_first(DOCUMENTS), results.n_for_r(DOCUMENTS)) == (1, 1000)
    assert results.end(DOCUMENTS) == 10_000
    assert len(results.finals(DOCUMENTS, "OASIS", 10)) == 2
    assert results.curve(DOCUMENTS, "d-AROMA", 1.0, 10) == {100: 0.5, 1000: 0.6, 10_000: 0.66}


def test_claims_follow_from_the_numbers():
    results = made_up()
    needed, choice = _news_tables.needed_rows(results), _news_tables.choice_rows(results)
    claims = _news_claims.claims(results, needed, choice)
    found = {(c["set"], c["claim"]): c for c in claims}
    assert len(found) == len(claims)
    d, f = (found[DOCUMENTS, f"{m} far above OASIS at the top"] for m in AROMAS)
    assert d["verdict"] == f["verdict"] == "not confirmed: better, but not by far"
    assert "0.600 → 0.660 (+10.0 %), better on 2 of 2 splits" in d["ours"]
    claim = "r = 1: f-AROMA converges faster than d-AROMA, which reaches it at the end"
    assert found[DOCUMENTS, claim]["verdict"] == "confirmed; the same at the end"
    assert "2 of 3 stops (1000, 10000)" in found[DOCUMENTS, claim]["ours"]
    claim = "r = 1: OASIS needs 10 times the triplets of d-AROMA for the same precision@10"
    assert found[DOCUMENTS, claim]["verdict"] == "confirmed: median 10.0×, at most 10.0×"
    assert "100: 10.0×, 1000: 10.0×, 10000: 2.0×" in found[DOCUMENTS, claim]["ours"]
    claim = "r = 0.01: OASIS needs 10 times the triplets of d-AROMA for the same precision@10"
    other = found[DOCUMENTS, claim + ", OASIS with C = 1"]
    assert other["verdict"] == "not confirmed: median 1.0×, at most 1.0×"
    assert "100: ≤1.0×" in other["ours"]
    claim = "d-AROMA: precision@10 changes by less than 5 % over three decades of r"
    assert found[DOCUMENTS, claim]["verdict"] == "only from 0.01 to 10"
    assert found[DOCUMENTS, "OASIS is robust to the choice of C"]["verdict"] == "only for C = 0.1"
    stand_ins = [c for c in claims if c["set"] != DOCUMENTS]
    assert stand_ins
    assert all("a stand-in" in c["set"] for c in stand_ins)


def test_learners_of_pairs_have_claims_and_tables_of_their_own():
    results = made_up()
    needed, choice = _news_tables.needed_rows(results), _news_tables.choice_rows(results)
    found = {(c["set"], c["claim"]): c for c in _news_claims.claims(results, needed, choice)}
    claim = found[DOCUMENTS, "d-AROMA far above LEGO at the top"]
    assert claim["verdict"] == "confirmed"
    assert "0.400 → 0.660 (+65.0 %), better on 2 of 2 splits" in claim["ours"]
    assert found[DOCUMENTS, "d-AROMA far above ITML at the top"]["verdict"] == (
        "not confirmed: better in the mean only"
    )
    stand_in = f"{STAND_IN}, a stand-in"
    assert found[stand_in, "OASIS above LEGO at the top"]["verdict"] == "confirmed"
    assert found[stand_in, "d-AROMA above ITML at the top"]["verdict"] == "not confirmed"
    assert [r["method"] for r in _news_tables.pair_rows(results, DOCUMENTS)] == list(OF_PAIRS)
    assert _news_tables.pair_rows(results, DOCUMENTS)[0]["precision@1"] == "0.600 ± 0.141"
    curve = [r for r in _news_tables.pair_learning_rows(results) if r["set"] == DOCUMENTS]
    assert [(r["pairs"], r["precision@10"]) for r in curve] == [(70, 0.3), (700, 0.4)]
    rows = _news_tables.record_rows(results)
    assert not any(r["method"] in OF_PAIRS for r in rows)
    rows = _news_tables.record_rows(results, of_pairs=True)
    assert {r["method"] for r in rows} == set(OF_PAIRS)


@pytest.mark.parametrize(
    ("aroma", "verdict"),
    [
        ((0.5, 0.5), "confirmed"),
        ((0.41, 0.42), "not confirmed: better, but not by far"),
        ((0.39, 0.42), "not confirmed: better in the mean only"),
        ((0.39, 0.39), "not confirmed: not better"),
    ],
)
def test_far_is_far(aroma, verdict):
    assert _news_claims._verdict(np.array([0.4, 0.4]), np.array(aroma)) == verdict


def test_report_writes_all_files(tmp_path):
    pytest.importorskip("matplotlib")
    splits = [toy_split(0), toy_split(1), toy_split(0)._replace(name=STAND_IN)]
    _news_report.write(tmp_path, made_up().records, splits)
    names = {path.name for path in tmp_path.iterdir()}
    assert {"claims.csv", "learning.csv", "fig4_newsgroups.png", "fig3_stand_ins.png"} < names
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "0.660 ± 0.000" in text
    assert f"{STAND_IN}, a stand-in" in text


def read(name):
    path = RESULTS / name
    if not path.exists():
        pytest.skip(f"no results of the whole experiment: {name}")
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_committed_precision_has_every_set_and_k():
    rows = read("precision_at_k.csv")
    names = (DOCUMENTS, *newsgroups.WHOLE.image_sets)
    assert [(r["set"], int(r["k"])) for r in rows] == list(product(names, range(1, 51)))
    assert all(0 < float(r[m]) < 1 for r in rows for m in METHODS)


def test_committed_records_cover_the_plan():
    rows, plan = read("records.csv"), newsgroups.WHOLE
    for method in LEARNERS:
        at_end = {
            r["split"]
            for r in rows
            if (r["set"], r["method"], int(r["triplets"])) == (DOCUMENTS, method, plan.stops[-1])
        }
        assert at_end == {str(i) for i in range(plan.n_splits)}
    for r in read("records_of_pairs.csv"):
        assert int(r["pairs"]) in (*plan.pair_stops, 2000, plan.most_pairs)
        assert r["method"] in OF_PAIRS


def test_committed_summary_names_the_stand_ins():
    claims = read("claims.csv")
    assert {c["set"] for c in claims} == {
        DOCUMENTS,
        *(f"{name}, a stand-in" for name in newsgroups.WHOLE.image_sets),
    }
    assert all(path.stat().st_size < 200_000 for path in RESULTS.glob("*.png"))
