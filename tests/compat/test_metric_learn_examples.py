"""Programs in the manner of metric-learn's documentation, with nothing changed but the import."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification, make_regression
from sklearn.manifold import TSNE
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from samewise.compat.metric_learn import (
    ITML,
    LMNN,
    LSML,
    MLKR,
    MMC,
    NCA,
    RCA,
    SCML,
    Constraints,
    Covariance,
    ITML_Supervised,
    LSML_Supervised,
    RCA_Supervised,
    SCML_Supervised,
    SDML_Supervised,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::samewise.exceptions.SamewiseWarning"),
]


def test_a_first_distance_for_neighbors():
    X, y = load_iris(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    nca = NCA(max_iter=200, random_state=42)
    knn = make_pipeline(nca, KNeighborsClassifier())
    knn.fit(train, y_train)
    assert knn.score(test, y_test) > 0.9
    lmnn = LMNN(n_neighbors=5, learn_rate=1e-6)
    assert cross_val_score(make_pipeline(lmnn, KNeighborsClassifier()), X, y).mean() > 0.9
    lmnn.fit(X, y)
    by_function = KNeighborsClassifier(5, metric=lmnn.get_metric()).fit(X[::3], y[::3])
    by_map = KNeighborsClassifier(5).fit(lmnn.transform(X[::3]), y[::3])
    np.testing.assert_array_equal(by_function.predict(X), by_map.predict(lmnn.transform(X)))


def test_friends_and_strangers_named_by_index():
    faces = np.random.RandomState(0).normal(size=(30, 6)) + np.repeat([0, 3, 6], 10)[:, None]

    def photo(names):
        """Loads them."""
        return np.array([faces[int(name.removeprefix("face"))] for name in names])

    pairs = [[f"face{i}", f"face{j}"] for i, j in [(0, 1), (1, 14), (22, 23), (3, 29), (15, 16)]]
    y = [1, -1, 1, -1, 1]
    mmc = MMC(preprocessor=photo, random_state=0).fit(pairs, y)
    assert mmc.predict([["face2", "face4"]]) == [1]
    assert mmc.decision_function([["face0", "face9"], ["face0", "face25"]])[0] > -9
    assert mmc.score(pairs, y) == 1.0
    mmc.set_threshold(0.0)
    assert mmc.predict([["face2", "face4"]]) == [-1]


def test_a_threshold_for_a_rate():
    X, y = make_classification(200, 5, n_informative=3, random_state=1)
    a, b, c, d = Constraints(y).positive_negative_pairs(150, random_state=0)
    rows = np.vstack([np.column_stack([a, b]), np.column_stack([c, d])])
    said = np.concatenate([np.ones(len(a)), -np.ones(len(c))])
    learn, calibrate, learn_y, calibrate_y = train_test_split(rows, said, random_state=0)
    itml = ITML(preprocessor=X, max_iter=200).fit(learn, learn_y)
    itml.calibrate_threshold(calibrate, calibrate_y, strategy="max_tpr", min_rate=0.9)
    rejected = itml.predict(calibrate[calibrate_y < 0]) == -1
    assert rejected.mean() >= 0.9
    search = GridSearchCV(ITML(preprocessor=X, max_iter=50), {"gamma": [0.1, 1.0]}, cv=3)
    assert search.fit(learn, learn_y).best_params_["gamma"] in (0.1, 1.0)


def test_triplets_and_quadruplets():
    X, y = load_iris(return_X_y=True)
    triplets = Constraints(y).generate_knntriplets(X, k_genuine=2, k_impostor=5)
    scml = SCML(preprocessor=X, n_basis=80, random_state=0).fit(triplets)
    assert scml.score(triplets) > 0.9
    assert set(scml.predict(triplets[:5])) <= {-1.0, 0.0, 1.0}
    a, b, c, d = Constraints(y).positive_negative_pairs(100, same_length=True, random_state=0)
    quadruplets = X[np.column_stack([a, b, c, d])]
    lsml = LSML(random_state=0).fit(quadruplets, weights=np.ones(100))
    assert lsml.score(quadruplets) > 0.9
    assert lsml.decision_function(quadruplets).shape == (100,)


def test_every_way_from_labels_to_a_picture():
    X, y = make_classification(
        90, 5, n_informative=3, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    for learner in (
        ITML_Supervised(n_constraints=60, max_iter=100, random_state=0),
        LSML_Supervised(n_constraints=60, random_state=0),
        SDML_Supervised(sparsity_param=0.1, balance_param=0.0015, random_state=0),
        RCA_Supervised(n_chunks=30, chunk_size=2, random_state=0),
        SCML_Supervised(random_state=0),
    ):
        mapped = learner.fit_transform(X, y)
        assert KNeighborsClassifier(3).fit(mapped[::2], y[::2]).score(mapped[1::2], y[1::2]) > 0.5
    picture = TSNE(max_iter=250, perplexity=10, random_state=0).fit_transform(mapped[:40])
    assert picture.shape == (40, 2)
    chunks = np.where(np.arange(90) % 3 == 0, -1, y)
    assert RCA(n_components=2).fit(X, chunks).transform(X).shape == (90, 2)
    assert Covariance().fit(X).get_mahalanobis_matrix().shape == (5, 5)


def test_neighbors_for_regression():
    X, y = make_regression(120, 5, n_informative=2, random_state=0)
    mapped = MLKR(n_components=2).fit_transform(X, y)
    plain, learned = (
        KNeighborsRegressor(3).fit(Z[::2], y[::2]).score(Z[1::2], y[1::2]) for Z in (X, mapped)
    )
    assert learned > plain
