"""Learners on two processes equal the plain ones, however the rows are cut."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import samewise
from samewise import ITML, LDA, LMNN, MCML, MMC, NCA, PCA, RCA, Covariance, scale
from samewise.exceptions import SamewiseWarning
from samewise.learners.batch.lmnn.objective import LINEAR, LMNNObjective
from samewise.learners.batch.points_by_class import Classes, nearest_targets
from samewise.scale.class_layout import ClassLayout
from samewise.scale.cluster import Parts
from samewise.scale.lmnn import PartObjective
from samewise.scale.lmnn_parts import ALONE, NumberedRows, Targeted
from tests.scale.parts import N_PARTS, SOME_PARTS, in_parts

CLOSED = [
    (Covariance, {}),
    (Covariance, {"shrinkage": 0.3}),
    (PCA, {"n_components": 5}),
    (PCA, {"whiten": True}),
    (LDA, {}),
    (LDA, {"n_components": 4, "shrinkage": 0.2}),
    (RCA, {}),
    (RCA, {"n_components": 4, "n_chunklets": 90, "random_state": 3}),
]
ITERATED = [(NCA, {"n_components": 3, "max_iter": 15, "tol": 0.0}), (MCML, {}), (LMNN, {})]


def on_dask(plain, client, parameters):
    return getattr(scale, f"Dask{plain.__name__}")(client, **parameters)


@pytest.mark.parametrize("n_parts", N_PARTS)
@pytest.mark.parametrize(("plain", "parameters"), CLOSED)
def test_closed_forms_are_exact(client, rows, plain, parameters, n_parts):
    one = plain(**parameters).fit(*rows)
    many = on_dask(plain, client, parameters).fit(*in_parts(n_parts, *rows)).to_local()
    M = one.metric_.matrix
    np.testing.assert_allclose(many.metric_.matrix, M, atol=1e-10 * np.abs(M).max())
    # Chunklets that are c classes leave all directions but c − 1 open: M is the same in any.
    known = len(np.unique(rows[1])) - 1 if plain is RCA and not parameters else None
    np.testing.assert_allclose(
        np.abs(many.components_[:known]), np.abs(one.components_[:known]), atol=1e-9
    )
    assert type(many) is plain and many.n_features_in_ == rows[0].shape[1]
    if plain is RCA:
        assert np.array_equal(many.chunklets_, one.chunklets_)


@pytest.mark.filterwarnings("ignore:NCA has not converged")
@pytest.mark.parametrize("n_parts", SOME_PARTS)
@pytest.mark.parametrize(("plain", "parameters"), ITERATED)
def test_sums_over_points_are_exact(client, rows, plain, parameters, n_parts):
    one = plain(**parameters).fit(*rows)
    learner = on_dask(plain, client, parameters).fit(*in_parts(n_parts, *rows))
    many = learner.to_local()
    assert many.n_iter_ == one.n_iter_
    np.testing.assert_allclose(many.history_["loss"][:5], one.history_["loss"][:5], rtol=1e-10)
    assert many.loss_ == pytest.approx(one.loss_, rel=1e-8)
    scale_of = np.abs(one.components_).max()
    np.testing.assert_allclose(many.components_, one.components_, atol=1e-5 * scale_of)
    assert np.array_equal(many.classes_, one.classes_)
    if plain is LMNN:
        # Every pair of a search counts once.
        known, found = (each.history_["n_candidates"] for each in (one, many))
        assert np.array_equal(known[:5], found[:5])
        assert many.n_active_ == one.n_active_
        assert (learner.ghost_fraction_ == 0) == (n_parts == 1)


@pytest.mark.parametrize("n_parts", SOME_PARTS)
@pytest.mark.parametrize(
    ("plain", "parameters"), [(MMC, {}), (MMC, {"structure": "diagonal"}), (ITML, {})]
)
def test_sums_over_pairs_are_exact(client, row_pairs, plain, parameters, n_parts):
    one = plain(**parameters).fit(*row_pairs)
    many = on_dask(plain, client, parameters).fit(*in_parts(n_parts, *row_pairs)).to_local()
    M = one.metric_.matrix
    np.testing.assert_allclose(many.metric_.matrix, M, atol=1e-8 * np.abs(M).max())
    assert many.threshold_ == pytest.approx(one.threshold_, rel=1e-8)
    assert many.n_iter_ == one.n_iter_


def test_lmnn_with_a_proof_and_a_second_search_of_targets(client, letters):
    parameters = {"solver": "M", "tol": 0.2, "n_target_searches": 2, "n_neighbors": 2}
    some = [values[:300] for values in letters]
    one = LMNN(**parameters).fit(*some)
    many = scale.DaskLMNN(client, **parameters).fit(*in_parts(2, *some)).to_local()
    assert many.loss_ == pytest.approx(one.loss_, rel=1e-8)
    assert many.gap_ == pytest.approx(one.gap_, rel=1e-4)
    assert np.array_equal(many.history_["stage"], one.history_["stage"])


def test_classes_that_are_small_or_in_one_part_only(client):
    random = np.random.default_rng(5)
    X = random.normal(size=(70, 4))
    y = np.repeat(["many", "one", "two", "late"], [40, 1, 2, 27])
    small = pytest.warns(SamewiseWarning, match="2 of 4 classes have no more than n_neighbors=3")
    with small:
        one = LMNN().fit(X, y)
    with small as said:
        many = scale.DaskLMNN(client).fit(*in_parts(4, X, y)).to_local()
    assert said[0].filename == __file__
    assert many.loss_ == pytest.approx(one.loss_, rel=1e-8)
    assert many.classes_.tolist() == one.classes_.tolist()


def test_loss_and_gradient_of_lmnn_at_a_fixed_map(client, letters, seed):
    """The sum over parts, at a map that candidates were searched for elsewhere."""
    X, labels = letters[0] / 10, np.unique(letters[1], return_inverse=True)[1]
    n_classes = labels.max() + 1
    random = np.random.default_rng(seed)
    searched_at, L = random.normal(size=(2, 5, 16)) / 3
    classes = Classes(labels, n_classes)
    targets = nearest_targets(X, classes, 3, ALONE)
    S = X[classes.order]
    whole = LMNNObjective(S, targets, classes, 0.4, LINEAR, ALONE)
    whole.search(searched_at)
    expected = whole.value_and_gradient(L)

    part_of = random.integers(3, size=len(S))
    # Within a class, numbers go by part.
    part_of = part_of[np.lexsort((part_of, labels[classes.order]))]
    kinds = labels[classes.order]
    counts = np.array(
        [np.bincount(kinds[part_of == part], minlength=n_classes) for part in range(3)]
    )
    layout = ClassLayout(counts)
    parts = []
    for part in range(3):
        own = np.flatnonzero(part_of == part)
        assert np.array_equal(layout.numbers(part), own)
        rows = np.union1d(own, targets[own])
        at = np.searchsorted(rows, own)
        near = np.full((len(rows), 3), -1, dtype=np.int32)
        near[at] = np.where(targets[own] < 0, -1, np.searchsorted(rows, targets[own]))
        parts.append(client.submit(Targeted, NumberedRows(rows, S[rows]), at, near, kinds[rows]))
    objective = PartObjective(Parts(client, parts), layout, 0.4, LINEAR)
    objective.search(searched_at)
    found = objective.value_and_gradient(L)
    assert found.loss == pytest.approx(expected.loss, rel=1e-10)
    size = np.abs(expected.gradient).max()
    np.testing.assert_allclose(found.gradient, expected.gradient, atol=1e-10 * size)
    assert found.active == expected.active
    assert len(objective.candidates) == len(whole.candidates)
    assert objective.missing() == pytest.approx(whole.missing(), abs=1e-10)
    # The pairs of two searches, each once.
    before, known = objective.candidates, whole.candidates
    objective.search(L)
    whole.search(L)
    objective.candidates = before.union(objective.candidates)
    whole.candidates = known.union(whole.candidates)
    found, expected = objective.value_and_gradient(2 * L), whole.value_and_gradient(2 * L)
    assert found.loss == pytest.approx(expected.loss, rel=1e-10)
    assert len(objective.candidates) == len(whole.candidates)


def test_files_and_parameters_are_those_of_the_plain_learner(client, letters, tmp_path):
    learner = scale.DaskLDA(client, shrinkage=0.1)
    assert learner.get_params() == {"client": client, "n_components": None, "shrinkage": 0.1}
    learner = clone(learner).set_params(n_components=2)
    with pytest.raises(ValueError, match="Invalid parameter 'depth' for estimator LDA"):
        learner.set_params(shrinkage=0.5, depth=3)
    assert learner.get_params()["shrinkage"] == 0.1
    with pytest.raises(AttributeError, match="no attribute 'metric_'"):
        learner.metric_  # noqa: B018
    learner.fit(*in_parts(2, *letters))
    learner.save(tmp_path / "lda.sw")
    loaded = samewise.load(tmp_path / "lda.sw")
    assert type(loaded) is LDA and loaded.get_params() == learner.to_local().get_params()
    assert np.array_equal(loaded.components_, learner.components_)
    with pytest.raises(TypeError, match="unexpected keyword argument 'depth'"):
        scale.DaskLDA(client, depth=3)
