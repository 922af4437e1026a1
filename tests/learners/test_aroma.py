"""The contract of both AROMAs: scikit-learn's checks, bad input, refused input without a trace."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import OASIS, DiagonalAROMA, FactoredAROMA, KNNClassifier, Pairs, Triplets


@parametrize_with_checks(
    [
        DiagonalAROMA(),
        DiagonalAROMA(0.1, 0.3, init="identity", average="survival"),
        FactoredAROMA(),
        FactoredAROMA(init="identity", average=("suffix", 3)),
        FactoredAROMA(update="mistake", average="uniform"),
    ]
)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


BOTH = [DiagonalAROMA, FactoredAROMA]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 4))
ITEMS = RNG.normal(size=(8, 3))
ARRAY = RNG.normal(size=(6, 3, 4))


@pytest.fixture(params=BOTH)
def learner(request):
    return request.param


@pytest.fixture
def fitted(learner):
    """Queries of 4 features, items of 3."""
    return learner().fit(Triplets(X, [0, 1, 2], [1, 2, 3], [4, 5, 6], items=ITEMS))


@pytest.fixture(scope="module")
def triplets(labeled):
    return Triplets.from_labels(*labeled, n_triplets=300, random_state=0)


def state(learner):
    return pickle.dumps(vars(learner))


# Bad input


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda L: L().fit(Pairs(X, [0], [1], [1])), "learns from triplets. Got Pairs"),
        (lambda L: L().fit(X), "requires y to be passed, but the target y is None"),
        (lambda L: L().fit(ARRAY, np.ones(6)), "call fit(triplets) without y"),
        (lambda L: L().fit(ARRAY[:, :2]), "must have shape (n_triplets, 3, n_features)"),
        (lambda L: L().fit(ARRAY[:0]), "needs at least one triplet. Got none"),
        (lambda L: L().fit(Triplets(X, [], [], [])), "needs at least one triplet. Got none"),
        (lambda L: L().fit(Triplets(X, [10], [1], [2])), "anchor"),
        (lambda L: L().fit(Triplets(X, [0], [8], [2], items=ITEMS)), "positive"),
        (lambda L: L().fit(Triplets(X, [0], [1], [-1])), "negative"),
        (lambda L: L().fit(np.full((2, 3, 4), np.nan)), "triplets contains NaN"),
        (lambda L: L().fit(np.where(ARRAY > 1, np.inf, ARRAY)), "infinity"),
        (lambda L: L().fit(np.where(X > 1, np.nan, X), np.arange(10) % 2), "NaN"),
        (lambda L: L().fit(X, np.zeros(10)), "Got one class"),
        (lambda L: L().fit(X, np.arange(10)), "Triplets need a class with at least two"),
        (lambda L: L(r=0).fit(ARRAY), "The 'r' parameter of"),
        (lambda L: L(r=-1.0).fit(ARRAY), "must be a float in the range (0.0, inf)"),
        (lambda L: L(r="1").fit(ARRAY), "The 'r' parameter of"),
        (lambda L: L(r=np.nan).fit(ARRAY), "The 'r' parameter of"),
        (lambda L: L(margin=0).fit(ARRAY), "The 'margin' parameter of"),
        (lambda L: L(margin=-0.5).fit(ARRAY), "The 'margin' parameter of"),
        (lambda L: L(margin="wide").fit(ARRAY), "The 'margin' parameter of"),
        (lambda L: L(average="mean").fit(ARRAY), "The 'average' parameter must be"),
        (lambda L: L(average=("cutoff", 0)).fit(ARRAY), "The 'average' parameter must be"),
        (lambda L: L(average=("suffix", 0)).fit(ARRAY), "The 'average' parameter must be"),
        (lambda L: L(init="one").fit(ARRAY), "The 'init' parameter must be 'auto', 'zero'"),
        (lambda L: L(init=np.eye(3)).fit(ARRAY), "give a matrix of shape (4, 4)"),
        (lambda L: L(init=np.full((4, 4), np.nan)).fit(ARRAY), "NaN"),
        (lambda L: L(path="fast").fit(ARRAY), "The 'path' parameter of"),
        (lambda L: L(n_passes=0).fit(ARRAY), "The 'n_passes' parameter of"),
        (lambda L: L(n_triplets=0).fit(X, np.arange(10) % 2), "The 'n_triplets' parameter of"),
        (lambda L: L().fit(ARRAY, sample_weight=-np.ones(6)), "weight"),
        (lambda L: L().fit(ARRAY, sample_weight=np.ones(5)), "weight"),
        (
            lambda L: L().fit(Triplets(X, [0], [1], [2]), sample_weight=[1.0]),
            "give sample_weight to Triplets(...) instead",
        ),
    ],
)
def test_bad_input_is_named(learner, call, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        call(learner)


def test_parameters_of_one_of_them():
    with pytest.raises(ValueError, match="The 'update' parameter of FactoredAROMA must be"):
        FactoredAROMA(update="always").fit(ARRAY)
    with pytest.raises(ValueError, match=r"DiagonalAROMA has no suffix average.*use 'survival'"):
        DiagonalAROMA(average=("suffix", 3)).fit(ARRAY)
    with pytest.raises(TypeError, match="update"):
        DiagonalAROMA(update="mistake")


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda a: a.score_variance(X[:, :3], ITEMS), "3 features"),
        (lambda a: a.score_variance(X, X), "4 features"),
        (lambda a: a.score_variance(X[0], ITEMS), "two dimensions"),
        (lambda a: a.score_variance(np.where(X > 1, np.nan, X), ITEMS), "NaN"),
        (lambda a: a.score_variance(X, np.where(ITEMS > 1, np.inf, ITEMS)), "infinity"),
        (lambda a: a.sample_scores(X[:, :3], ITEMS), "3 features"),
        (lambda a: a.sample_scores(sp.csr_array(X), sp.csr_array(X)), "4 features"),
        (lambda a: a.sample_scores(X, np.where(ITEMS > 1, np.nan, ITEMS)), "NaN"),
        (lambda a: a.sample_scores(X, ITEMS, random_state="dice"), "dice"),
        (lambda a: a.ask(X[0, :3], ITEMS), "3 features"),
        (lambda a: a.ask(X[0], X), "4 features"),
        (lambda a: a.ask(np.full(4, np.nan), ITEMS), "NaN"),
        (lambda a: a.ask(X[0], ITEMS, 9), "between 1 and the number of candidates, 8. Got 9"),
        (lambda a: a.ask(X[0], ITEMS, 0), "between 1 and the number of candidates, 8. Got 0"),
        (lambda a: a.ask(X[0], ITEMS, 1.5), "n must be"),
        (lambda a: a.ask(X[0], ITEMS, by="mean"), "by must be 'variance' or 'upper'. Got 'mean'"),
        (lambda a: a.ask(X[0], ITEMS, by="upper", width=np.nan), "width"),
        (lambda a: a.ask(X[0], ITEMS[0]), "two dimensions"),
        (lambda a: a.ask(X[0], ITEMS[:0]), "0"),
        (lambda a: a.transform(X[:, :3]), "3 features"),
        (lambda a: a.triplet_margin(Triplets(X, [0], [1], [2])), "4 features"),
    ],
)
def test_bad_questions_are_named_and_change_nothing(fitted, call, text):
    fitted.metric_  # noqa: B018 - the form may be remembered from here on.
    before = state(fitted)
    with pytest.raises(ValueError, match=re.escape(text)):
        call(fitted)
    assert state(fitted) == before


ATTRIBUTES = ["metric_", "n_updates_", "n_seen_", "n_mistakes_", "n_skipped_", "loss_", "history_"]


def test_unfitted(learner):
    own = ["variance_"] if learner is DiagonalAROMA else ["query_covariance_", "item_covariance_"]
    for name in (*ATTRIBUTES, *own):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            getattr(learner(), name)
    for call in (
        lambda a: a.get_bilinear_matrix(),
        lambda a: a.transform(X),
        lambda a: a.score(ARRAY),
        lambda a: a.score(X, np.arange(10) % 2),
        lambda a: a.triplet_margin(ARRAY),
        lambda a: a.score_variance(X, X),
        lambda a: a.ask(X[0], X),
        lambda a: a.sample_scores(X, X),
        lambda a: a.get_feature_names_out(),
    ):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call(learner())


def test_a_refused_fit_leaves_the_learner_unfitted(learner):
    one = learner(init=np.eye(3))
    with pytest.raises(ValueError, match="shape"):
        one.fit(ARRAY)
    with pytest.raises(NotFittedError):
        one.metric_  # noqa: B018 - asking is what raises.
    assert vars(one) == vars(learner(init=one.init))


@pytest.mark.parametrize(
    ("refused", "text"),
    [
        (lambda X, y: (X[:, :3], y), "3 features"),
        (lambda X, y: (np.where(X > 1, np.inf, X), y), "infinity"),
        (lambda X, y: (X, np.zeros(len(y))), "one class"),
        (lambda X, y: (Triplets(X[:, :3], [0], [1], [2]),), "X has 3 features"),
        (lambda X, y: (Triplets(X, [0], [1], [2], items=X[:, :2]),), "Items have 2 features"),
        (lambda X, y: (Triplets(X, [], [], []),), "at least one triplet"),
        (lambda X, y: (Pairs(X, [0], [1], [1]),), "learns from triplets"),
        (lambda X, y: (X[:15].reshape(5, 3, 5), y[:5]), "without y"),
    ],
)
def test_a_refused_portion_changes_nothing(learner, refused, text, labeled):
    def begun():
        return learner(n_triplets=50, average="uniform", random_state=3).partial_fit(*labeled)

    one = begun()
    before = state(one)
    with pytest.raises(ValueError, match=text):
        one.partial_fit(*refused(*labeled))
    assert state(one) == before
    expected = begun().partial_fit(*labeled)
    np.testing.assert_array_equal(one.partial_fit(*labeled).metric_.matrix, expected.metric_.matrix)


def test_a_stream_keeps_what_came_before_a_refused_block(learner, triplets):
    one = learner()
    blocks = [triplets[:100], Triplets(triplets.X[:, :3], [0], [1], [2]), triplets[100:]]
    with pytest.raises(ValueError, match="3 features"):
        one.partial_fit(iter(blocks))
    expected = learner().fit(triplets[:100])
    np.testing.assert_array_equal(one.metric_.matrix, expected.metric_.matrix)
    assert one.n_seen_ == 100


# Labels


@pytest.mark.parametrize("init", ["zero", "identity"])
@pytest.mark.parametrize("unit", [False, True], ids=["", "unit length"])
def test_neither_order_nor_repetition_of_examples_matters(learner, init, unit, labeled, seed):
    X, y = labeled
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if unit else X
    rng = np.random.RandomState(seed)
    weights = rng.randint(0, 4, len(y))
    again = rng.permutation(np.repeat(np.arange(len(y)), weights))
    weighted = learner(init=init, random_state=0).fit(X, y, sample_weight=weights)
    repeated = learner(init=init, random_state=0).fit(X[again], y[again])
    np.testing.assert_allclose(
        weighted.metric_.matrix, repeated.metric_.matrix, rtol=1e-8, atol=1e-10
    )


def test_csr_draws_and_learns_like_dense(learner, labeled):
    X, y = labeled
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    dense, sparse = (learner(random_state=0).fit(given, y) for given in (X, sp.csr_array(X)))
    np.testing.assert_allclose(dense.metric_.matrix, sparse.metric_.matrix, atol=1e-10)
    np.testing.assert_allclose(
        dense.score_variance(X, X), sparse.score_variance(sp.csr_array(X), X), atol=1e-10
    )


def test_it_learns_and_serves(learner, labeled, triplets):
    X, y = labeled
    one = learner(n_passes=3, shuffle=True, random_state=0).fit(triplets)
    assert one.score(triplets) > OASIS(C=1e-12).fit(triplets).score(triplets)
    assert 0 <= one.score(X, y) <= 1
    knn = KNNClassifier(one.metric_, n_neighbors=3).fit(X, y)
    served = (one.transform(X) @ X.T).argmax(axis=1)
    np.testing.assert_array_equal(knn.kneighbors(X, 1)[1][:, 0], served)


def test_it_is_deterministic_given_the_seed(learner, labeled):
    def learned(random_state):
        one = learner(n_triplets=80, shuffle=True, random_state=random_state)
        return one.fit(*labeled).partial_fit(*labeled).metric_.matrix

    np.testing.assert_array_equal(learned(5), learned(5))
    np.testing.assert_array_equal(learned(np.random.RandomState(5)), learned(5))
    assert np.abs(learned(5) - learned(6)).max() > 1e-6


# Among scikit-learn's tools


def test_grid_search_over_triplets(learner, triplets):
    rs = [1e-3, 1.0, 100.0]
    search = GridSearchCV(learner(), {"r": rs}, cv=KFold(3), error_score="raise").fit(triplets)
    for i, r in enumerate(rs):
        by_hand = [
            learner(r).fit(triplets[learn]).score(triplets[test])
            for learn, test in KFold(3).split(np.arange(len(triplets)))
        ]
        assert search.cv_results_["mean_test_score"][i] == pytest.approx(np.mean(by_hand))
    assert search.best_score_ > 0.5
    assert search.best_estimator_.n_seen_ == len(triplets)


def test_grid_search_over_labels(learner, labeled):
    one = learner(n_triplets=100, random_state=0)
    grid = {"margin": [0.3, "auto"], "init": ["zero", "identity"]}
    search = GridSearchCV(one, grid, cv=3, error_score="raise").fit(*labeled)
    best = clone(one).set_params(**search.best_params_).fit(*labeled)
    np.testing.assert_array_equal(search.best_estimator_.metric_.matrix, best.metric_.matrix)


def test_a_clone_is_unfitted_and_learns_the_same(learner, triplets):
    one = learner(0.3, init=np.eye(5), average=("cutoff", 2)).fit(triplets)
    copy = clone(one)
    assert not hasattr(copy, "n_seen_")
    np.testing.assert_array_equal(copy.fit(triplets).metric_.matrix, one.metric_.matrix)


def test_data_frames(learner, labeled):
    pd = pytest.importorskip("pandas")
    X, y = labeled
    frame = pd.DataFrame(X, columns=list("abcde"))
    one = learner(n_triplets=50, random_state=0).fit(frame, y)
    assert one.feature_names_in_.tolist() == list("abcde")
    prefix = learner.__name__.lower()
    assert one.get_feature_names_out().tolist() == [f"{prefix}{i}" for i in range(5)]
    with pytest.raises(ValueError, match="feature names should match"):
        one.transform(frame[list("edcba")])


def test_progress_and_silence(learner, triplets, capsys):
    learner().fit(triplets)
    assert capsys.readouterr() == ("", "")
    learner(verbose=True).fit(triplets)
    out, err = capsys.readouterr()
    assert out == "" and f"{learner.__name__}: 300 examples seen" in err
