import pickle
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import estimator_checks_generator

from samewise.datasets import available, load
from samewise.decide import KNNClassifier
from samewise.decide.energy import Energy, nearest_of_class
from samewise.exceptions import InvalidInputError
from samewise.forms import Bilinear, KernelMahalanobis, Mahalanobis, MultiMetric
from tests.pairwise import SEEDS, pairwise
from tests.reference.energy import energies, input_targets

RULES = ["energy", "energy_printed"]


def problem(seed, n=50, d=3, n_classes=3):
    """Overlapping classes, a matrix whose distances are of the order of the margin, and queries."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    centers = rng.normal(size=(n_classes, d))
    X = centers[y] + rng.normal(size=(n, d))
    Q = centers[rng.integers(n_classes, size=12)] + rng.normal(size=(12, d))
    B = rng.normal(size=(d, d))
    return X, y, Q, B.T @ B / d


def model_and_loop(X, y, Q, M, k, rule, **given):
    """Energies and labels, the fast ones and those of the loop."""
    model = KNNClassifier(Mahalanobis(M), n_neighbors=k, rule=rule, **given).fit(X, y)
    targets = given.get("targets")
    lists = None if targets is None else [[j for j in row if j >= 0] for row in targets]
    mu = given.get("push_weight", 0.5)
    slow = energies(Q, X, y, M, k, targets=lists, mu=mu, printed=rule == "energy_printed")
    return model.energies(Q), model.predict(Q), slow, model.classes_[slow.argmin(axis=1)]


def put_twice(a):
    return np.concatenate([a, a])


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        *estimator_checks_generator(KNNClassifier(rule="energy")),
        *estimator_checks_generator(KNNClassifier(rule="energy_printed")),
    ],
    ids=lambda value: getattr(getattr(value, "func", None), "__name__", None),
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("rule", RULES)
def test_energies_equal_the_loop(rule, k, seed):
    fast, labels, slow, slow_labels = model_and_loop(*problem(seed), k, rule)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(labels, slow_labels)


@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("rule", RULES)
def test_the_push_weight_is_that_of_both_push_terms(rule, mu):
    fast, _, slow, _ = model_and_loop(*problem(3), 3, rule, push_weight=mu)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)


# Thinned from 24 cases to 6.
@pairwise(seed=SEEDS, rule=RULES, k=[1, 4], dtype=[np.float64, np.float32])
def test_integers_give_the_very_energies_of_the_loop(rule, k, dtype, seed):
    # Few distinct points, far from the origin: ties of distances, of targets and of energies.
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(3, size=(40, 2)) + 1000, rng.integers(-1, 4, size=(15, 2)) + 1000
    y = rng.permutation(np.arange(40) % 3)
    model = KNNClassifier(n_neighbors=k, rule=rule).fit(X.astype(dtype), y)
    slow = energies(Q, X, y, np.eye(2), k, printed=rule == "energy_printed")
    np.testing.assert_array_equal(model.energies(Q.astype(dtype)), slow)
    np.testing.assert_array_equal(model.predict(Q.astype(dtype)), slow.argmin(axis=1))


@pytest.mark.parametrize("rule", RULES)
def test_rows_far_from_the_origin_keep_their_energies(rule):
    # Multiples of 2⁻¹⁰ can be moved by 2²³ without rounding.
    X, y, Q, _ = problem(7)
    X, Q = np.round(X * 1024) / 1024, np.round(Q * 1024) / 1024
    model = KNNClassifier(rule=rule).fit(X + 2.0**23, y)
    slow = energies(Q, X, y, np.eye(3), 3, printed=rule == "energy_printed")
    np.testing.assert_allclose(model.energies(Q + 2.0**23), slow, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_a_training_point_is_not_nearer_to_itself_than_zero(rule):
    X, y, _, M = problem(8, n=400)
    model = KNNClassifier(Mahalanobis(M), n_neighbors=1, rule=rule, push_weight=0).fit(X, y)
    assert model.energies(X).min() == 0


def test_equal_energies_go_to_the_smaller_class():
    X = np.array([[0.0], [1.0], [0.0], [1.0], [0.0], [1.0]])
    y = np.array(["c", "c", "a", "a", "b", "b"])
    model = KNNClassifier(n_neighbors=1, rule="energy").fit(X, y)
    energies = model.energies([[0.3], [7.0]])
    np.testing.assert_array_equal(energies, np.repeat(energies[:, :1], 3, axis=1))
    np.testing.assert_array_equal(model.predict([[0.3], [7.0]]), ["a", "a"])


@pytest.mark.parametrize("rule", RULES)
def test_small_classes_take_part_with_what_they_have(rule):
    # 1, 2, 3 and 34 members for k = 3: no target, one, two, three; one, two, three for a query.
    rng = np.random.default_rng(5)
    X, Q = rng.normal(size=(40, 2)), rng.normal(size=(15, 2))
    y = rng.permutation(np.repeat([0, 1, 2, 3], [1, 2, 3, 34]))
    fast, labels, slow, slow_labels = model_and_loop(X, y, Q, np.eye(2), 3, rule)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(labels, slow_labels)


@pytest.mark.parametrize("rule", RULES)
def test_duplicates_and_queries_among_the_training_points(rule):
    X, y, _, M = problem(6, n=30)
    X, y = put_twice(X), put_twice(y)
    fast, labels, slow, slow_labels = model_and_loop(X, y, X[:12], M, 3, rule)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(labels, slow_labels)


@pytest.mark.parametrize("rule", RULES)
def test_constant_data_and_a_metric_of_rank_zero(rule):
    X, y, Q, _ = problem(7, n=20)
    fast, _, slow, _ = model_and_loop(X, y, Q, np.zeros((3, 3)), 2, rule)
    np.testing.assert_array_equal(fast, slow)
    fast, _, slow, _ = model_and_loop(np.ones((20, 3)), y, Q, np.eye(3), 2, rule)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_many_classes_and_thresholds_of_all_sizes(rule):
    # One class lies so far off that all other thresholds share a cell of the lookup table.
    rng = np.random.default_rng(8)
    y = np.arange(90) % 30
    X = rng.normal(size=(90, 2))
    X[y == 7] += 1e4
    fast, labels, slow, slow_labels = model_and_loop(X, y, X[4:10] + 0.1, np.eye(2), 2, rule)
    # A distance within that class is the small difference of numbers of the size of 1e8.
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-7)
    np.testing.assert_array_equal(labels, slow_labels)


@pytest.mark.parametrize("rule", RULES)
def test_float32_stays_close(rule):
    X, y, Q, M = problem(9)
    X, Q = X.astype(np.float32), Q.astype(np.float32)
    fast, _, slow, _ = model_and_loop(X, y, Q, M, 3, rule)
    assert fast.dtype == np.float64
    np.testing.assert_allclose(fast, slow, rtol=1e-4, atol=1e-4)
    in_double = KNNClassifier(Mahalanobis(M), rule=rule).fit(X.astype(np.float64), y).energies(Q)
    assert 0 < np.abs(fast - in_double).max() < 1e-4


@pytest.mark.parametrize("rule", RULES)
def test_given_targets(rule):
    X, y, Q, M = problem(10)
    rng = np.random.default_rng(0)
    targets = np.full((len(X), 2), -1)
    for i in range(len(X)):
        others = np.flatnonzero((y == y[i]) & (np.arange(len(X)) != i))
        chosen = rng.choice(others, size=i % 3, replace=False)
        targets[i, : len(chosen)] = chosen
    fast, labels, slow, slow_labels = model_and_loop(X, y, Q, M, 4, rule, targets=targets)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(labels, slow_labels)


def test_targets_are_those_of_the_input_space():
    X, y, _, M = problem(11)
    model = KNNClassifier(Mahalanobis(M), n_neighbors=2, rule="energy").fit(X, y)
    np.testing.assert_array_equal(model.targets_, input_targets(X, y, 2))
    again = clone(model).set_params(targets=model.targets_).fit(X, y)
    np.testing.assert_array_equal(again.energies(X), model.energies(X))
    np.testing.assert_array_equal(nearest_of_class(X[:3], np.arange(3), 2), np.full((3, 2), -1))


@pytest.mark.parametrize("printed", [False, True])
def test_one_map_for_each_class(printed, seed):
    X, y, Q, _ = problem(seed, n=50)
    L = np.random.default_rng(seed).normal(size=(3, 2, 3))
    maps = [Mahalanobis.from_components(part).embed for part in L]
    rule = Energy(maps, X, y, nearest_of_class(X, y, 2), 2, printed=printed)
    slow = energies(Q, X, y, {c: L[c].T @ L[c] for c in range(3)}, 2, printed=printed)
    np.testing.assert_allclose(rule(Q), slow, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(
        Energy([maps[0]] * 3, X, y, nearest_of_class(X, y, 2), 2, printed=printed)(Q),
        Energy([maps[0]], X, y, nearest_of_class(X, y, 2), 2, printed=printed)(Q),
        rtol=1e-12,
    )


def several(seed, by, n_groups=3, d=3):
    """A form with several maps, the groups of given rows, and that of a test point."""
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(n_groups, 2, d)) / np.sqrt(d)
    if by == "class":
        return MultiMetric(L, classes=range(n_groups)), None
    centers = rng.normal(size=(n_groups, d))
    form = MultiMetric(L, centers=centers)
    return form, lambda t: int(((centers - t) ** 2).sum(axis=1).argmin())


@pytest.mark.parametrize("by", ["class", "center"])
@pytest.mark.parametrize("rule", RULES)
def test_several_metrics_equal_the_loop(rule, by, seed):
    X, y, Q, _ = problem(seed, n=50)
    form, group_of = several(seed, by)
    groups = y if group_of is None else [group_of(x) for x in X]
    model = KNNClassifier(form, n_neighbors=3, rule=rule).fit(X, y)
    M = {g: L.T @ L for g, L in enumerate(form.components)}
    printed = rule == "energy_printed"
    slow = energies(Q, X, y, M, 3, printed=printed, groups=groups, group_of=group_of)
    np.testing.assert_allclose(model.energies(Q), slow, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(model.predict(Q), slow.argmin(axis=1))
    sparse = KNNClassifier(form, n_neighbors=3, rule=rule).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.energies(sp.csr_array(Q)), slow, rtol=1e-9, atol=1e-12)


# Thinned from 24 cases to 6.
@pairwise(seed=SEEDS, rule=RULES, by=["class", "center"], dtype=[np.float64, np.float32])
def test_several_metrics_with_ties_give_the_very_energies_of_the_loop(rule, by, dtype, seed):
    # Integers everywhere: ties of distances, of centers, of targets and of energies.
    rng = np.random.default_rng(seed)
    X, Q = rng.integers(4, size=(40, 2)), rng.integers(-1, 5, size=(15, 2))
    y = rng.permutation(np.arange(40) % 3)
    L = rng.integers(-1, 3, size=(3, 2, 2))
    if by == "class":
        form, group_of, groups = MultiMetric(L, classes=range(3)), None, y
    else:
        centers = np.array([[0, 0], [2, 2], [0, 2]])
        form = MultiMetric(L, centers=centers)

        def group_of(t):
            return int(((centers - t) ** 2).sum(axis=1).argmin())

        groups = [group_of(x) for x in X]
    model = KNNClassifier(form, n_neighbors=2, rule=rule).fit(X.astype(dtype), y)
    M = {g: part.T @ part for g, part in enumerate(L)}
    printed = rule == "energy_printed"
    slow = energies(Q, X, y, M, 2, printed=printed, groups=groups, group_of=group_of)
    np.testing.assert_array_equal(model.energies(Q.astype(dtype)), slow)
    np.testing.assert_array_equal(model.predict(Q.astype(dtype)), slow.argmin(axis=1))


def test_a_test_point_may_be_of_a_group_without_training_points():
    X, y, Q, _ = problem(4)
    L = np.random.default_rng(4).normal(size=(2, 3, 3))
    form = MultiMetric(L, centers=[[0.0] * 3, [100.0] * 3])
    Q[:3] = X[:3] + 60
    near = [0 if t.sum() < 150 else 1 for t in Q]
    model = KNNClassifier(form, rule="energy").fit(X, y)
    M = {g: part.T @ part for g, part in enumerate(L)}
    slow = energies(
        Q, X, y, M, 3, groups=np.zeros(50, int), group_of=lambda t: 0 if t.sum() < 150 else 1
    )
    assert set(near) == {0, 1}
    np.testing.assert_allclose(model.energies(Q), slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_many_blocks_in_many_threads_give_the_same_energies(rule, monkeypatch):
    X, y, _, M = problem(12)
    model = KNNClassifier(Mahalanobis(M), rule=rule).fit(X, y)
    whole = model.energies(X)
    seen = set()
    block = Energy._of_block
    monkeypatch.setattr("samewise.decide.energy._BLOCK_BYTES", 1)
    monkeypatch.setattr("samewise.decide.energy._LEAST_ROWS", 3)
    monkeypatch.setattr(
        Energy,
        "_of_block",
        lambda self, *given: (seen.add(threading.get_ident()), block(self, *given))[1],
    )
    np.testing.assert_allclose(model.energies(X), whole, rtol=1e-12, atol=1e-12)
    assert threading.get_ident() not in seen


@pytest.mark.parametrize("rule", RULES)
def test_sparse_and_kernel_metrics(rule):
    X, y, Q, M = problem(13)
    X[np.abs(X) < 0.5] = 0
    for form, matrix in [
        (None, np.eye(3)),
        (Mahalanobis(M), M),
        (KernelMahalanobis(np.eye(3), np.eye(3), kernel="linear"), np.eye(3)),
    ]:
        slow = energies(Q, X, y, matrix, 3, printed=rule == "energy_printed")
        model = KNNClassifier(form, rule=rule).fit(sp.csr_matrix(X), y)
        np.testing.assert_allclose(model.energies(sp.csr_matrix(Q)), slow, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.energies(Q), slow, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_probabilities_agree_with_predictions(rule):
    X, y, Q, M = problem(14)
    names = np.array(["one", "two", "three"])[y]
    model = KNNClassifier(Mahalanobis(M), rule=rule).fit(X, names)
    p, e = model.predict_proba(Q), model.energies(Q)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(p[:, 0] / p[:, 1]), e[:, 1] - e[:, 0], rtol=1e-6)
    np.testing.assert_array_equal(model.classes_[p.argmax(axis=1)], model.predict(Q))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).energies(Q), e)


@pytest.mark.parametrize("rule", RULES)
def test_one_class_is_always_the_answer(rule):
    X, _, Q, M = problem(15)
    model = KNNClassifier(Mahalanobis(M), rule=rule).fit(X, ["all"] * len(X))
    assert set(model.predict(Q)) == {"all"}


@pytest.mark.parametrize(("name", "rank"), [("letter", 16), ("isolet", 40)])
@pytest.mark.parametrize("rule", RULES)
def test_real_data(name, rank, rule):
    if name not in available():
        pytest.skip(f"{name} is not on this machine")
    data = load(name)
    rows = np.flatnonzero(np.isin(data.target, [0, 6, 14, 16]))[:165]
    X, y = data.data[rows], data.target[rows]
    if rank < X.shape[1]:
        X = PCA(rank, random_state=0).fit_transform(X)
    M = np.diag(1 / (1 + np.arange(rank)))
    fast, labels, slow, slow_labels = model_and_loop(X[15:], y[15:], X[:15], M, 3, rule)
    np.testing.assert_allclose(fast, slow, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(labels, slow_labels)


X, Y, _, _ = problem(0, n=12)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (KNNClassifier(Bilinear(np.eye(3)), rule="energy"), "squared distances, but Bilinear is a"),
        (KNNClassifier(rule="energy", push_weight=2), "'push_weight' parameter of KNNClassifier"),
        (KNNClassifier(rule="energy", targets="all"), "'targets' parameter of KNNClassifier must"),
        (KNNClassifier(rule="energy", n_neighbors=13), "n_neighbors=13 is more than"),
        (
            KNNClassifier(rule="energy", targets=[[1]] * 5),
            r"shape \(12, n_targets\).*Got int64 of shape \(5, 1\)",
        ),
        (KNNClassifier(rule="energy", targets=np.zeros(12, int)), r"of shape \(12,\) instead"),
        (KNNClassifier(rule="energy", targets=np.zeros((12, 0), int)), r"of shape \(12, 0\)"),
        (KNNClassifier(rule="energy", targets=np.zeros((12, 1))), "Got float64 of shape"),
        (
            KNNClassifier(rule="energy", targets=np.full((12, 1), 12)),
            "from 0 to 11, or -1 for none. Got numbers from 12 to 12",
        ),
        (KNNClassifier(rule="energy", targets=np.full((12, 1), -2)), "Got numbers from -2 to -2"),
        (
            KNNClassifier(rule="energy", targets=np.arange(12)[:, None]),
            "other examples of the same class, but row 0 names row 0",
        ),
        (
            KNNClassifier(rule="energy", targets=np.argmax(Y[:, None] != Y, axis=1)[:, None]),
            "of the same class, but row 0 names row",
        ),
    ],
)
def test_bad_parameters_are_named(model, text):
    with pytest.raises(ValueError, match=text):
        model.fit(X, Y)


def test_bad_calls_are_named():
    with pytest.raises(AttributeError, match="'KNNClassifier' has no attribute 'energies'"):
        KNNClassifier().fit(X, Y).energies(X)
    model = KNNClassifier(rule="energy").fit(X, Y)
    with pytest.raises(ValueError, match="X has 2 features, but KNNClassifier is expecting 3"):
        model.energies(X[:, :2])
    with pytest.raises(InvalidInputError, match="squared distances overflow float64; scale"):
        model.energies(X * 1e160)
    with pytest.raises(InvalidInputError, match="overflow float32"):
        KNNClassifier(rule="energy").fit(X.astype(np.float32) * 1e20, Y)


@pytest.mark.parametrize("push_weight", [-0.1, 1.01, 2])
def test_the_push_weight_is_a_share(push_weight):
    X, y = np.arange(8.0)[:, None], np.arange(8) % 2
    with pytest.raises(ValueError, match="push_weight"):
        KNNClassifier(None, rule="energy", push_weight=push_weight).fit(X, y)
