"""LMNN in feature space: its loss from the kernel alone, LMNN with a linear kernel, edge cases."""

from __future__ import annotations

import os
import pickle
import re
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics.pairwise import pairwise_kernels, polynomial_kernel, rbf_kernel
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from samewise import LMNN, KNNClassifier, load
from samewise.datasets import make_concentric_circles
from samewise.exceptions import NotPSDError
from samewise.forms import KernelMahalanobis
from samewise.learners import kernel_basis
from samewise.learners.batch.lmnn import kernel_lmnn as module
from samewise.learners.batch.lmnn.kernel_lmnn import KernelLMNN

RBF = {"kernel": "rbf", "kernel_params": {"gamma": 0.1}}


@parametrize_with_checks([KernelLMNN(), KernelLMNN("linear", n_directions=1, n_landmarks=10)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def kernel_loss(A, K, y, k=3, mu=0.5, squared=False):
    """ε and the number of positive hinges, by loops over kernel values.

    k(x_i) is column i of K, and D_ij = (k(x_i) − k(x_j))ᵀ A (k(x_i) − k(x_j)).
    """
    near = np.diag(K)[:, None] - 2 * K + np.diag(K)
    Q = K @ A @ K
    D = np.diag(Q)[:, None] - 2 * Q + np.diag(Q)
    loss, active = 0.0, 0
    for i in range(len(K)):
        same = [j for j in np.argsort(near[i], kind="stable") if y[j] == y[i] and j != i]
        for j in same[:k]:
            loss += (1 - mu) * D[i, j]
            for m in np.flatnonzero(y != y[i]):
                h = 1 + D[i, j] - D[i, m]
                if h > 0:
                    active += 1
                    loss += mu * (h**2 if squared else h)
    return loss, active


# The loss


@pytest.mark.parametrize(
    "kernel",
    [
        ("linear", {}),
        ("rbf", {"gamma": 0.1}),
        ("poly", {"degree": 2, "coef0": 1.0}),
        ("laplacian", {"gamma": 0.05}),
        (lambda a, b: float(a @ b) ** 2, {}),
    ],
    ids=["linear", "rbf", "poly", "laplacian", "callable"],
)
@pytest.mark.parametrize("hinge", ["linear", "squared"])
def test_loss_is_that_of_the_kernel_values_alone(labeled, kernel, hinge):
    X, y = labeled
    learner = KernelLMNN(*kernel, hinge=hinge, n_directions=5, max_iter=20, tol=0.01).fit(X, y)
    K = pairwise_kernels(X, metric=kernel[0], **kernel[1])
    # Targets, too, are found among five directions: in all of feature space there may be others.
    B = kernel_basis.directions(K, K.dtype)[:5]
    within = K @ B.T @ B @ K
    A = learner.metric_.matrix
    assert (np.abs(A) > 0).any() and A.shape == (60, 60)
    # On the span of five directions the metric sees `within` as it sees K.
    np.testing.assert_allclose(learner.components_ @ within, learner.components_ @ _centered(K))
    loss, active = _loss_among(A, K, within, y, hinge == "squared")
    assert learner.loss_ == pytest.approx(loss, rel=1e-6)
    assert learner.n_active_ == active > 0


def test_loss_with_all_directions_needs_no_basis(labeled):
    X, y = labeled
    learner = KernelLMNN(**RBF, n_components=1, max_iter=1, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="not converged"):
        learner.fit(X, y)
    loss, active = kernel_loss(learner.metric_.matrix, rbf_kernel(X, gamma=0.1), y)
    assert learner.n_directions_ == 59
    assert learner.loss_ == pytest.approx(loss, rel=1e-6)
    assert not learner.converged_
    assert learner.n_active_ == active > 0


def _centered(K):
    return K - K.mean(axis=0)


def _loss_among(A, K, within, y, squared):
    """As `kernel_loss`, with targets by the distances of `within`."""
    near = np.diag(within)[:, None] - 2 * within + np.diag(within)
    Z = np.linalg.eigh(A)
    Z = (K @ Z[1]) * np.sqrt(np.maximum(Z[0], 0))
    D = ((Z[:, None] - Z) ** 2).sum(axis=2)
    near = np.where((y[:, None] == y) & ~np.eye(len(y), dtype=bool), near, np.inf)
    loss, active = 0.0, 0
    for i, targets in enumerate(np.argsort(near, axis=1, kind="stable")[:, :3]):
        h = 1 + D[i, targets][:, None] - D[i, y != y[i]]
        h = h[h > 0]
        active += len(h)
        loss += 0.5 * D[i, targets].sum() + 0.5 * (h**2 if squared else h).sum()
    return loss, active


@pytest.mark.parametrize("solver", ["L", "M"])
def test_linear_kernel_is_lmnn(labeled, solver):
    X, y = labeled
    tol = 1e-7 if solver == "L" else 1e-4
    plain = LMNN(solver=solver, tol=tol).fit(X, y)
    kernel = KernelLMNN("linear", solver=solver, tol=tol).fit(X, y)
    assert kernel.n_directions_ == 5
    assert kernel.loss_ == pytest.approx(plain.loss_, rel=1e-4)
    M = kernel.metric_.coefficients @ X
    M = M.T @ M
    np.testing.assert_allclose(M, plain.metric_.matrix, atol=0.03 * np.abs(M).max())
    assert hasattr(kernel, "gap_") == (solver == "M")
    neighbors = [KNNClassifier(learner).fit(X, y).kneighbors()[1] for learner in (plain, kernel)]
    assert np.mean(neighbors[0] == neighbors[1]) > 0.95


def test_rings_that_no_linear_map_sets_apart():
    X, y = make_concentric_circles(120, random_state=0)
    mixed = np.random.default_rng(0).permutation(120)
    X, y = X[mixed], y[mixed]
    for learner, least, most in [
        (LMNN(), 0.0, 0.6),
        (KernelLMNN("poly", {"degree": 2}), 1.0, 1.0),
        (KernelLMNN("rbf", {"gamma": 0.5}), 1.0, 1.0),
    ]:
        knn = KNNClassifier(learner, n_neighbors=1).fit(X[:80], y[:80])
        assert least <= knn.score(X[80:], y[80:]) <= most


# Landmarks and directions


def test_landmarks_span_what_they_can(labeled):
    X, y = labeled
    whole = KernelLMNN("linear", tol=1e-6).fit(X, y)
    some = KernelLMNN("linear", n_landmarks=12, tol=1e-6, random_state=3).fit(X, y)
    # Twelve points span five dimensions as well as sixty do.
    assert some.landmarks_.shape == (12,) and some.components_.shape == (5, 12)
    assert some.loss_ == pytest.approx(whole.loss_, rel=1e-3)
    np.testing.assert_array_equal(some.metric_.support, X[some.landmarks_])
    again = clone(some).fit(X, y)
    np.testing.assert_array_equal(again.components_, some.components_)
    other = clone(some).set_params(random_state=4).fit(X, y)
    assert not np.array_equal(other.landmarks_, some.landmarks_)


def test_loss_among_landmarks_is_that_of_the_projections(labeled):
    X, y = labeled
    learner = KernelLMNN(**RBF, n_landmarks=20, random_state=0, max_iter=50, tol=1e-2).fit(X, y)
    S = X[learner.landmarks_]
    K, B = rbf_kernel(X, S, gamma=0.1), kernel_basis.directions(rbf_kernel(S, gamma=0.1), X.dtype)
    Z = K @ B.T
    loss, active = _loss_among(learner.metric_.matrix, K, Z @ Z.T, y, False)
    assert learner.loss_ == pytest.approx(loss, rel=1e-5, abs=1e-6)
    assert learner.n_active_ == active


def test_beyond_a_size_landmarks_are_drawn(labeled, monkeypatch):
    X, y = labeled
    monkeypatch.setattr(kernel_basis, "EXACT", 50)
    monkeypatch.setattr(kernel_basis, "LANDMARKS", 30)
    assert len(KernelLMNN("linear", random_state=0).fit(X, y).landmarks_) == 30
    assert len(KernelLMNN("linear", n_landmarks=60).fit(X, y).landmarks_) == 60
    assert len(KernelLMNN("linear").fit(X[:50], y[:50]).landmarks_) == 50


def test_rows_of_the_map(labeled, monkeypatch):
    X, y = labeled
    common = {**RBF, "n_directions": 10, "tol": 1e-2}
    assert KernelLMNN(**common, n_components=2).fit(X, y).transform(X).shape == (60, 2)
    assert KernelLMNN(**common).fit(X, y).components_.shape == (10, 60)
    monkeypatch.setattr(module, "ROWS", 4)
    assert KernelLMNN(**common).fit(X, y).components_.shape == (4, 60)


def test_directions_are_orthonormal_in_feature_space(labeled):
    K = polynomial_kernel(labeled[0], degree=2)
    B = kernel_basis.directions(K, K.dtype)
    np.testing.assert_allclose(B @ K @ B.T, np.eye(len(B)), atol=1e-6)
    np.testing.assert_allclose(B.sum(axis=1), 0, atol=1e-6)
    # 5 linear and 15 quadratic features.
    assert len(B) == 20
    spread = np.var(K @ B.T, axis=0)
    assert (np.diff(spread) <= 0).all()


# Input of all kinds


def test_precomputed_is_the_named_kernel(labeled):
    X, y = labeled
    K = rbf_kernel(X, gamma=0.1)
    common = {"n_directions": 8, "tol": 1e-2, "random_state": 0}
    for n_landmarks in (None, 25):
        named = KernelLMNN(**RBF, **common, n_landmarks=n_landmarks).fit(X[:50], y[:50])
        given = KernelLMNN("precomputed", **common, n_landmarks=n_landmarks)
        given.fit(K[:50, :50], y[:50])
        assert given.n_features_in_ == 50
        np.testing.assert_allclose(
            given.transform(K[50:, :50]), named.transform(X[50:]), rtol=1e-6, atol=1e-8
        )
    learner = clone(given).set_params(n_landmarks=None)
    pipeline = make_pipeline(learner, KNNClassifier(n_neighbors=3))
    scores = cross_val_score(pipeline, K, y, cv=KFold(3), error_score="raise")
    for score, (train, test) in zip(scores, KFold(3).split(X), strict=True):
        learner.fit(K[np.ix_(train, train)], y[train])
        knn = KNNClassifier(n_neighbors=3)
        knn.fit(learner.transform(K[np.ix_(train, train)]), y[train])
        assert score == knn.score(learner.transform(K[np.ix_(test, train)]), y[test])


def test_more_features_than_points_strings_and_sparse_rows(labeled, seed):
    X, y = labeled
    wide = np.random.default_rng(seed).normal(size=(60, 200))
    wide[wide < 0.5] = 0.0
    wide[:, :5] += X - X.min(axis=0)
    names = np.array(["one", "two", "three"])[y]
    common = {"kernel": "linear", "n_directions": 10, "tol": 1e-2}
    dense = KernelLMNN(**common).fit(wide, names)
    assert dense.classes_.tolist() == ["one", "three", "two"]
    sparse = KernelLMNN(**common).fit(sp.csr_array(wide), names)
    assert sp.issparse(sparse.metric_.support)
    np.testing.assert_allclose(sparse.transform(wide), dense.transform(wide), atol=1e-6)
    assert KNNClassifier(dense).fit(wide, names).score(wide, names) > 0.6


def test_float32_keeps_fewer_directions_and_its_type(labeled):
    X, y = labeled
    learner = KernelLMNN("rbf", {"gamma": 0.01}, n_components=2, tol=1e-2).fit(X, y)
    single = clone(learner).fit(X.astype(np.float32), y)
    assert single.n_directions_ < learner.n_directions_
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    near = single.metric_.pairs(X[:30].astype(np.float32), X[30:].astype(np.float32))
    np.testing.assert_allclose(near, single.metric_.pairs(X[:30], X[30:]), rtol=1e-2, atol=1e-2)


def test_points_that_are_all_the_same():
    X, y = np.ones((8, 3)), np.repeat([0, 1], 4)
    learner = KernelLMNN().fit(X, y)
    assert learner.n_directions_ == 1
    # 8 points with 3 targets and 4 impostors each, at hinges of 1.
    assert learner.loss_ == pytest.approx(0.5 * 8 * 3 * 4)


def test_a_loss_of_nothing_ends_the_run(labeled):
    X, y = labeled
    learner = KernelLMNN(**RBF).fit(X, y)
    assert learner.converged_ and 0 <= learner.loss_ <= 2e-4 * 60 and learner.n_iter_ < 100


def test_given_targets_passes_callback_and_history(labeled):
    X, y = labeled
    targets = np.array(
        [np.flatnonzero((y == c) & (np.arange(60) != i))[:1] for i, c in enumerate(y)]
    )
    seen = []

    def look(info):
        seen.append(info["components"])
        return len(seen) == 3

    common = {**RBF, "n_directions": 6, "n_target_searches": 2}
    learner = KernelLMNN(**common, targets=targets, callback=look).fit(X, y)
    assert learner.n_iter_ == 3 == len(learner.history_["loss"]) and not learner.converged_
    assert seen[-1].shape == learner.components_.shape == (6, 60)
    learner = KernelLMNN(**common, tol=1e-2).fit(X, y)
    assert set(learner.history_["stage"]) == {1, 2}


def test_warm_start_goes_on_from_the_form_before(labeled):
    X, y = labeled
    common = {**RBF, "n_directions": 8, "tol": 1e-3}
    learner = KernelLMNN(**common, warm_start=True).fit(X, y)
    loss, before = learner.loss_, learner.n_iter_
    learner.fit(X, y)
    assert learner.loss_ <= loss * (1 + 1e-6) and learner.n_iter_ < before
    # Other landmarks: the form, not its coefficients, is what goes on.
    learner.set_params(n_landmarks=40, n_directions=None, max_iter=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="not converged"):
        learner.fit(X, y)
    assert learner.history_["loss"][0] < 3 * loss
    with pytest.raises(ValueError, match="n_components must be that of the fit before, 8"):
        learner.set_params(n_components=2).fit(X, y)
    with pytest.raises(ValueError, match="must have the 5 features of the fit before"):
        learner.fit(X[:, :3], y)


def test_held_out_points(labeled):
    X, y = labeled
    learner = KernelLMNN(**RBF, n_directions=10, validation_fraction=0.3, random_state=0, tol=1e-3)
    errors = learner.fit(X, y).history_["validation_error"]
    assert np.isfinite(errors).any()
    np.testing.assert_array_equal(clone(learner).fit(X, y).components_, learner.components_)


def test_ctrl_c_keeps_what_was_learned(labeled):
    X, y = labeled

    def interrupt(info):
        if info["iteration"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    learner = KernelLMNN(**RBF, n_directions=8, tol=0, callback=interrupt)
    with pytest.raises(KeyboardInterrupt, match="what it had learned is kept"):
        learner.fit(X, y)
    assert learner.n_iter_ in (2, 3) and not learner.converged_
    assert learner.transform(X).shape == (60, 8)


# The form


def test_form_saved_and_loaded(labeled, tmp_path):
    X, y = labeled
    learner = KernelLMNN(**RBF, n_directions=8, tol=1e-2).fit(X, y)
    assert isinstance(learner.metric_, KernelMahalanobis)
    np.testing.assert_array_equal(learner.metric_.coefficients, learner.components_)
    np.testing.assert_array_equal(learner.metric_.embed(X), learner.transform(X))
    learner.metric_.save(tmp_path / "form")
    again = load(tmp_path / "form")
    np.testing.assert_array_equal(
        again.pairs(X[:30], X[30:]), learner.metric_.pairs(X[:30], X[30:])
    )
    again = pickle.loads(pickle.dumps(learner))
    np.testing.assert_array_equal(again.transform(X), learner.transform(X))
    assert learner.get_feature_names_out()[-1] == "kernellmnn7"


# Bad input

RNG = np.random.default_rng(0)
X = RNG.normal(size=(10, 4))
Y = np.repeat([0, 1], 5)
CROOKED = X @ X.T + np.triu(np.ones((10, 10)))
NEITHER = X @ np.diag([1.0, 1.0, 1.0, -1.0]) @ X.T


def fit(*args, data=X, labels=Y, **params):
    return KernelLMNN(*args, **params).fit(data, labels)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fit("nothing"), "The 'kernel' parameter of KernelLMNN must be"),
        (lambda: fit("rbf", {"degree": 2}), "cannot be evaluated on the support with kernel_param"),
        (lambda: fit("chi2"), "cannot be evaluated on the support"),
        (
            lambda: fit("precomputed", {"gamma": 2}, data=X @ X.T),
            "A precomputed kernel takes no kernel_params",
        ),
        (lambda: fit("precomputed"), "must be the square kernel matrix"),
        (lambda: fit("precomputed", data=CROOKED), "The kernel must be symmetric"),
        (lambda: fit("precomputed", data=sp.csr_array(X @ X.T)), "Sparse data was passed"),
        (
            lambda: fit(lambda a, b: np.inf),
            "largest value on the landmarks is inf, but it must be finite",
        ),
        (lambda: fit(n_landmarks=11), "at most the number of points, 10. Got 11"),
        (lambda: fit(n_landmarks=1), "The 'n_landmarks' parameter of KernelLMNN must be"),
        (lambda: fit("linear", n_directions=5), "n_directions must be at most the number of direc"),
        (lambda: fit("linear", n_components=5), "n_components must be at most the number of direc"),
        (lambda: fit("linear", n_components=2, solver="M"), "solver='M' is convex only without"),
        (lambda: fit(data=np.where(X > 1, np.nan, X)), "Input X contains NaN"),
        (lambda: fit(labels=np.zeros(10)), "at least two classes"),
        (lambda: fit(labels=None), "requires y to be passed"),
        (lambda: fit(targets=np.full((10, 1), 1)), "same class, but row 1 names row 1"),
        (lambda: fit(push_weight=2.0), "The 'push_weight' parameter of KernelLMNN must be"),
    ],
)
def test_bad_input_is_named(call, text):
    with pytest.raises((ValueError, TypeError), match=re.escape(text)):
        call()


def test_a_kernel_must_be_positive():
    with pytest.raises(NotPSDError, match="eigenvalues of its matrix go from -"):
        fit("precomputed", data=NEITHER)
    with pytest.raises(NotPSDError, match="Choose another kernel"):
        fit("sigmoid", {"gamma": 1.0, "coef0": -2.0})


def test_refused_input_changes_nothing(labeled):
    learner = KernelLMNN("linear").fit(*labeled)
    before = vars(learner).copy()
    for bad in [(X, np.zeros(10)), (np.full((10, 4), np.nan), Y), (X, Y[:5])]:
        with pytest.raises(ValueError, match=r"classes|NaN|inconsistent"):
            learner.fit(*bad)
        assert vars(learner) == before
    with pytest.raises(ValueError, match="X has 4 features, but KernelLMNN is expecting 5"):
        learner.transform(X)


def test_unfitted():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        KernelLMNN().transform(X)
