"""What decides, written to a file and read again."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from samewise import (
    LDA,
    LMNN,
    OASIS,
    Bilinear,
    KNNClassifier,
    Mahalanobis,
    MultiMetric,
    MultiMetricLMNN,
    Pairs,
    PassiveAggressive,
    PerClassClassifier,
    Verifier,
    load,
)
from samewise.exceptions import FileFormatError, InvalidInputError
from samewise.files import container


@pytest.fixture
def path(tmp_path):
    return tmp_path / "saved"


def loaded(thing, path):
    """Read again; what it writes is the same file."""
    thing.save(path)
    again = load(path)
    first = path.read_bytes()
    again.save(path)
    assert path.read_bytes() == first and type(again) is type(thing)
    return again


CLASSIFIERS = {
    "euclidean": lambda: KNNClassifier(),
    "form": lambda: KNNClassifier(Mahalanobis(np.diag([1.0, 2.0, 0.5, 1.0, 3.0])), 5),
    "learner": lambda: KNNClassifier(LDA(), rule="sknn"),
    "energy": lambda: KNNClassifier(LMNN(max_iter=30), rule="energy"),
    "printed": lambda: KNNClassifier(None, rule="energy_printed", push_weight=0.3),
    "similarity": lambda: KNNClassifier(OASIS(random_state=0)),
    "several": lambda: KNNClassifier(MultiMetricLMNN(max_iter=20), rule="energy"),
    "per class": lambda: PerClassClassifier(PassiveAggressive(random_state=0)),
    "closest": lambda: PerClassClassifier(LDA(), rule="sknn", combine="closest"),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_classifier_decides_the_same(name, dtype, labeled, path):
    X, y = labeled[0].astype(dtype), np.array(["low", "mid", "high"])[labeled[1]]
    model = CLASSIFIERS[name]().fit(X[:40], y[:40])
    again = loaded(model, path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.classes_.tolist() == model.classes_.tolist() and again.n_features_in_ == 5
    assert again.score(X, y) == model.score(X, y)
    if isinstance(model, KNNClassifier):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again.kneighbors()[1], model.kneighbors()[1])
        assert (again.metric is None) == (model.metric is None)
    again.fit(X, y)


def test_a_fitted_learner_stays_one(labeled, path):
    learner = LDA().fit(*labeled)
    model = KNNClassifier(learner).fit(*labeled)
    again = loaded(model, path)
    assert again.learner_ is again.metric and again.metric_ is again.learner_.metric_


def test_given_targets_and_names_of_features(labeled, path):
    pd = pytest.importorskip("pandas")
    X, y = labeled
    frame = pd.DataFrame(X, columns=list("abcde"))
    targets = np.array(
        [[np.flatnonzero((y == c) & (np.arange(60) != i))[0]] for i, c in enumerate(y)]
    )
    model = KNNClassifier(rule="energy", targets=targets).fit(frame, y)
    again = loaded(model, path)
    np.testing.assert_array_equal(again.energies(frame), model.energies(frame))
    assert again.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[list("edcba")])


@pytest.mark.parametrize("make", [KNNClassifier, lambda: PerClassClassifier(OASIS(random_state=0))])
def test_sparse_rows_stay_sparse(make, labeled, path):
    X, y = sp.csr_array(np.where(labeled[0] > 0, labeled[0], 0.0)), labeled[1]
    model = make().fit(X, y)
    again = loaded(model, path)
    assert sp.issparse(again._rows)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("criterion", [None, "accuracy", "far"])
def test_a_verifier_judges_the_same(criterion, pairs, path):
    model = Verifier(PassiveAggressive(random_state=0), criterion=criterion).fit(pairs)
    again = loaded(model, path)
    np.testing.assert_array_equal(again.decision_function(pairs), model.decision_function(pairs))
    assert again.threshold_ == model.threshold_ and again.roc_.auc == model.roc_.auc
    np.testing.assert_array_equal(again.roc_.thresholds, model.roc_.thresholds)


def test_a_verifier_of_a_form_without_pairs(pairs, path):
    learner = PassiveAggressive(random_state=0).fit(pairs)
    again = loaded(Verifier(learner).fit(), path)
    assert again.threshold_ == learner.closeness_threshold_ and not hasattr(again, "roc_")


def test_what_cannot_be_saved_is_said(labeled, path):
    with pytest.raises(NotFittedError):
        KNNClassifier().save(path)
    foreign = KNNClassifier(LDA()).fit(*labeled).set_params(metric=NeighborhoodComponentsAnalysis())
    with pytest.raises(InvalidInputError, match=r"whose metric is a Neighbo.* cannot be saved"):
        foreign.save(path)
    assert not path.exists()


def test_forged_files_are_refused(labeled, path):
    model = KNNClassifier().fit(*labeled)
    model.save(path)
    good = container.read(path)

    def forge(change):
        arrays = {name: array.copy() for name, array in good.arrays.items()}
        change(arrays)
        container.write(path, good.kind, arrays, good.params, owner=good.kind)
        with pytest.raises(FileFormatError):
            load(path)

    forge(lambda arrays: arrays["learned.labels"].__setitem__(0, 9))
    forge(lambda arrays: arrays["learned.labels"].__setitem__(slice(None), 0))
    forge(lambda arrays: arrays.update({"learned.labels": arrays["learned.labels"][:-1].copy()}))
    forge(lambda arrays: arrays["learned.rows.dense"].__setitem__((0, 0), np.nan))
    forge(lambda arrays: arrays.pop("learned.rows.dense"))


# Names and maps


def test_pairs_and_triplets_of_a_data_frame_keep_its_names(labeled):
    pd = pytest.importorskip("pandas")
    from samewise import Triplets

    X, y = labeled
    frame = pd.DataFrame(X, columns=list("abcde"))
    drawn = Pairs.from_labels(frame, y, n_pairs=100, random_state=0)
    assert drawn.feature_names == tuple("abcde") and drawn[:10].feature_names == tuple("abcde")
    assert Pairs(frame, [0], [1], [1]).feature_names == tuple("abcde")
    assert Pairs.from_labels(X, y, n_pairs=100, random_state=0).feature_names is None
    assert Pairs.from_labels(frame.set_axis(range(5), axis=1), y, 100).feature_names is None
    learner = PassiveAggressive().fit(drawn)
    assert learner.feature_names_in_.tolist() == list("abcde")
    learner.transform(frame)
    other = Pairs.from_labels(frame[list("edcba")], y, n_pairs=100, random_state=0)
    with pytest.raises(InvalidInputError, match="feature names should match"):
        learner.partial_fit(other)
    triplets = Triplets.from_labels(frame, y, 50, random_state=0)
    assert OASIS().fit(triplets).feature_names_in_.tolist() == list("abcde")


def test_a_form_without_embed_says_what_to_use():
    form = Bilinear(np.eye(2))
    with pytest.raises(AttributeError, match=r"Bilinear has no embed.*: use embed_query"):
        form.embed  # noqa: B018
    with pytest.raises(AttributeError, match="embed_query for queries and embed_item for stored"):
        form.reduce(1).embed  # noqa: B018
    several = MultiMetric([np.eye(2), 2 * np.eye(2)], classes=[0, 1])
    with pytest.raises(AttributeError, match="it compares two rows; use closeness, or search"):
        several.embed  # noqa: B018
    assert getattr(form, "embed", None) is None
    with pytest.raises(AttributeError, match="'Bilinear' object has no attribute 'embedd'"):
        form.embedd  # noqa: B018
