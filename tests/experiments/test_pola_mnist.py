import csv
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("joblib")

from experiments import _pola_pictures, _pola_report, pola_mnist
from samewise import RCA, Pairs
from samewise.exceptions import DatasetNotFoundError

RESULTS = Path(pola_mnist.__file__).parent / "results" / "pola_mnist"
MAIN = ["euclidean", "pola", "rca_pca40", "rca", "pola_leading", "fda"]


def read(name):
    with (RESULTS / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_committed_errors_have_all_problems_and_methods():
    rows = read("errors.csv")
    assert [r["digits"] for r in rows] == [f"{a}-{b}" for a in range(10) for b in range(a + 1, 10)]
    assert list(rows[0])[:9] == ["digits", "n_train", "n_test", *MAIN]
    assert all(0 <= float(r[name]) < 50 for r in rows for name in MAIN)


def test_committed_claims_are_counted_from_the_errors():
    rows = [{key: float(r[key]) for key in MAIN} for r in read("errors.csv")]
    for claim in read("claims.csv"):
        better = sum(r[claim["first"]] < r[claim["second"]] for r in rows)
        assert int(claim["first better"]) == better
        parts = [int(claim[key]) for key in ("first better", "equal", "second better")]
        assert sum(parts) == 45


def test_committed_choice_is_the_best_by_leave_one_out():
    rows = read("choices.csv")
    assert len(rows) == 4
    best = min(rows, key=lambda r: float(r["pola_leave_one_out"]))
    summary = (RESULTS / "summary.md").read_text(encoding="utf-8")
    assert f"{best['scale']} pixels, k = {best['k']}," in summary


def test_committed_figures_are_small():
    sizes = {path.name: path.stat().st_size for path in RESULTS.glob("*.png")}
    assert len(sizes) == 4
    assert max(sizes.values()) < 200_000


def test_a_small_problem_runs_and_finds_the_digits():
    try:
        train, test = pola_mnist.mnist(600)
    except DatasetNotFoundError as error:
        pytest.skip(str(error))
    train, (B, b) = pola_mnist.binary(train, test, (0, 1))
    assert set(train[1]) == {0, 1}
    rows = pola_mnist.scaled((train, (B[:200], b[:200])), "unit length")
    np.testing.assert_allclose(np.linalg.norm(rows[0][0], axis=1), 1)
    errors = pola_mnist.try_scale((train, (B[:200], b[:200])), "unit length")
    assert errors["pola_test"].shape == (3,)
    assert errors["pola_test"].max() < 0.05


def scattered():
    random = np.random.RandomState(0)
    X = random.standard_normal((300, 5)) @ random.standard_normal((5, 5))
    y = random.randint(0, 2, 300)
    C = np.zeros((5, 5))
    for c in (0, 1):
        for x in X[y == c]:
            v = x - X[y == c].mean(axis=0)
            C += np.outer(v, v) / 300
    return X, y, C


def test_shrinkage_is_the_ridge_up_to_a_factor():
    X, y, C = scattered()
    ridged = C + pola_mnist.RIDGE * np.trace(C) / 5 * np.eye(5)
    L = RCA(shrinkage=pola_mnist.SHRINKAGE).fit(X, y).components_
    np.testing.assert_allclose(L @ ridged @ L.T, (1 + pola_mnist.RIDGE) * np.eye(5), atol=1e-10)


def test_a_metric_learned_after_a_projection_is_that_of_the_projected_rows():
    X, y, C = scattered()
    P = pola_mnist.principal_directions(X, 2)
    np.testing.assert_allclose(P @ P.T, np.eye(2), atol=1e-12)
    L = pola_mnist.mapped_back(RCA().fit(X @ P.T, y), P).components
    assert L.shape == (2, 5)
    np.testing.assert_allclose(L @ C @ L.T, np.eye(2), atol=1e-10)


def test_similar_pairs_are_chunklets_of_two():
    X, y, _ = scattered()
    pairs = Pairs.from_labels(X, y, 80, strategy="random", random_state=0)
    V = pairs.differences()[pairs.y == 1]
    C = V.T @ V / (2 * len(V))
    # A chunklet is centered at its mean: each of two ends is v/2 from it.
    ends, which = pola_mnist.similar(pairs)
    L = RCA().fit(ends, chunklets=which).components_
    np.testing.assert_allclose(L @ C @ L.T, 2 * np.eye(5), atol=1e-9)


def test_the_pseudo_inverse_gives_fishers_direction_where_there_is_an_inverse():
    X, y, C = scattered()
    w = np.linalg.solve(C, X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    (found,) = pola_mnist.by_pseudo_inverse(X, y).components
    np.testing.assert_allclose(np.abs(found), np.abs(w) / np.linalg.norm(w), rtol=1e-8)


def test_counts_of_a_comparison():
    rows = [{"a": 1.0, "b": 2.0}, {"a": 2.0, "b": 2.0}, {"a": 3.0, "b": 1.0}]
    row = _pola_report._compared(rows, "a", "b")
    assert [row[key] for key in ("first better", "equal", "second better")] == [1, 1, 1]


def test_separable_sees_a_line_and_its_absence():
    E = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [1.0, 3.0]])
    assert _pola_pictures.separable(E, np.array([0, 0, 1, 1]))
    assert not _pola_pictures.separable(E, np.array([0, 1, 1, 0]))


def test_noisy_digits_are_told_apart(tmp_path):
    pytest.importorskip("matplotlib")
    rows = _pola_pictures.noisy_digits(tmp_path / "digits.png", snr=1.0)
    assert (tmp_path / "digits.png").exists()
    batch = next(r for r in rows if "batch" in r["what"] and r["images"] == "learned from")
    assert batch["1-NN leave-one-out error"] == 0
