import numpy as np
import pytest

from samewise.datasets import make_concentric_circles, make_noisy_digits, make_zebra_stripes
from samewise.exceptions import InvalidInputError

SEEDS = [0, 1, 42]


def _loo_error(X, y):
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    np.fill_diagonal(squared, np.inf)
    return np.mean(y[squared.argmin(axis=1)] != y)


@pytest.mark.parametrize("seed", SEEDS)
def test_zebra_rewards_shrinking_the_vertical_only(seed):
    X, y = make_zebra_stripes(800, n_stripes=8, random_state=seed)
    plain = _loo_error(X, y)
    assert 0.05 < plain < 0.4
    assert _loo_error(X * [1, 0.05], y) < 0.01
    assert _loo_error(X * [0.05, 1], y) > plain + 0.1
    for c in (0, 1):
        horizontal, vertical = X[y == c].var(axis=0)
        assert horizontal > 10 * vertical


@pytest.mark.parametrize("n_classes", [2, 3])
def test_zebra_class_follows_the_stripe(n_classes):
    X, y = make_zebra_stripes(600, n_classes=n_classes, n_stripes=6, noise=0.0, random_state=0)
    place = X[:, 0].astype(int)
    right = place >= 200
    assert right.sum() == 300
    np.testing.assert_array_equal((place - 200 * right) % n_classes, y)
    assert np.unique(place, return_counts=True)[1].tolist() == [50] * 12
    assert X[:, 1].min() >= 0 and X[:, 1].max() <= 50
    assert y.dtype == np.int64


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("n", "n_classes"), [(4, 2), (60, 2), (200, 2), (90, 3)])
def test_nearest_neighbor_is_always_on_another_circle(seed, n, n_classes):
    X, y = make_concentric_circles(n, n_classes=n_classes, random_state=seed)
    assert _loo_error(X, y) == 1.0
    assert np.bincount(y).tolist() == [n // n_classes] * n_classes


def test_a_wide_gap_parts_the_circles():
    X, y = make_concentric_circles(101, gap=0.5, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1 + 0.5 * y)
    assert np.bincount(y).tolist() == [51, 50]
    assert _loo_error(X, y) == 0.0


def test_noise_of_the_circles():
    X, y = make_concentric_circles(4000, gap=1.0, noise=0.1, random_state=0)
    assert (np.linalg.norm(X, axis=1) - 1 - y).std() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("seed", SEEDS)
def test_digit_noise_is_on_odd_columns_or_odd_rows(seed):
    X, y, prototypes = make_noisy_digits(random_state=seed)
    clean = prototypes[(y == 5).astype(int)]
    noisy = (X != clean).reshape(64, 12, 12)
    columns, rows = np.zeros((2, 12, 12), dtype=bool)
    columns[:, ::2] = True
    rows[::2, :] = True
    kinds = {}
    for mask, digit in zip(noisy, y, strict=True):
        on_columns, on_rows = np.array_equal(mask, columns), np.array_equal(mask, rows)
        assert on_columns != on_rows
        kinds[int(digit), on_columns] = kinds.get((int(digit), on_columns), 0) + 1
    assert kinds == {(2, True): 16, (2, False): 16, (5, True): 16, (5, False): 16}


@pytest.mark.parametrize("snr", [1.0, 4.0])
def test_digit_signal_to_noise_ratio(snr):
    X, y, prototypes = make_noisy_digits(2000, snr=snr, random_state=0)
    clean = prototypes[(y == 5).astype(int)]
    ratio = (clean**2).sum() / ((X - clean) ** 2).sum()
    assert ratio == pytest.approx(snr, rel=0.02)
    # Every noisy image has as many noisy pixels, so the noise has mean zero overall.
    assert abs((X - clean).mean()) < 0.01


def test_digits_differ_where_there_is_never_noise():
    X, y, prototypes = make_noisy_digits(random_state=0)
    quiet = np.zeros((12, 12), dtype=bool)
    quiet[1::2, 1::2] = True
    seen = X[:, quiet.ravel()]
    for digit, prototype in zip((2, 5), prototypes, strict=True):
        assert (seen[y == digit] == prototype[quiet.ravel()]).all()
    assert (prototypes[0] != prototypes[1])[quiet.ravel()].sum() >= 4
    assert set(np.unique(prototypes)) == {0.0, 1.0}


def test_digit_distances_hide_the_classes():
    X, y, _ = make_noisy_digits(random_state=0)
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    same = (y[:, None] == y)[np.triu_indices(64, 1)]
    squared = squared[np.triu_indices(64, 1)]
    best = min(np.mean((squared <= t) != same) for t in squared)
    assert best > 0.2


@pytest.mark.parametrize("make", [make_zebra_stripes, make_concentric_circles, make_noisy_digits])
def test_same_seed_same_points(make):
    first, second = make(random_state=3), make(random_state=3)
    for one, two in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(first[0], make(random_state=4)[0])


@pytest.mark.parametrize(
    ("make", "options", "match"),
    [
        (make_zebra_stripes, {"n_samples": 0}, "'n_samples' must be an integer at least 1"),
        (make_zebra_stripes, {"n_classes": 1}, "'n_classes' must be an integer at least 2"),
        (make_zebra_stripes, {"n_classes": 4, "n_stripes": 3}, "'n_stripes' .* at least 4. Got 3"),
        (make_zebra_stripes, {"height": 0}, r"'height' must be a number in \(0, inf\). Got 0"),
        (make_zebra_stripes, {"offset": -1}, r"'offset' must be a number in \[0, inf\)"),
        (make_zebra_stripes, {"noise": np.nan}, r"'noise' must be a number in \[0, inf\)"),
        (make_concentric_circles, {"n_samples": 3}, "'n_samples' must be an integer at least 4"),
        (make_concentric_circles, {"n_classes": "2"}, "'n_classes' must be an integer"),
        (make_concentric_circles, {"gap": 0.0}, r"'gap' must be a number in \(0, inf\)"),
        (make_concentric_circles, {"noise": -0.1}, r"'noise' must be a number in \[0, inf\)"),
        (make_noisy_digits, {"n_samples": -1}, "'n_samples' must be an integer at least 1"),
        (make_noisy_digits, {"snr": 0}, r"'snr' must be a number in \(0, inf\). Got 0"),
    ],
)
def test_bad_parameters(make, options, match):
    with pytest.raises(InvalidInputError, match=match):
        make(**options)
