import numpy as np
import pytest

from samewise.datasets import make_separable_pairs
from samewise.exceptions import InvalidInputError

SEEDS = [0, 1, 42]


def _margins(pairs, y, M, b):
    margins = []
    for (left, right), sign in zip(pairs, y, strict=True):
        v = left - right
        margins.append(sign * (b - v @ M @ v))
    return np.array(margins)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("d", "rank"), [(1, None), (5, None), (8, 1), (8, 3), (30, 29)])
@pytest.mark.parametrize("b", [1.001, 2.0, 10.0])
def test_every_pair_keeps_the_margin(seed, d, rank, b):
    pairs, y, M, threshold = make_separable_pairs(100, d, rank=rank, b=b, random_state=seed)
    assert pairs.shape == (100, 2, d)
    assert threshold == b
    assert _margins(pairs, y, M, b).min() >= 1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rank", [1, 2, 6])
def test_the_metric_is_psd_of_the_wanted_rank(seed, rank):
    M = make_separable_pairs(10, 6, rank=rank, random_state=seed)[2]
    np.testing.assert_array_equal(M, M.T)
    eigenvalues = np.linalg.eigvalsh(M)
    np.testing.assert_allclose(eigenvalues[: 6 - rank], 0, atol=1e-14)
    assert eigenvalues[6 - rank :].min() >= 0.5 - 1e-12
    assert eigenvalues.max() <= 2 + 1e-12


@pytest.mark.parametrize(("similar", "n_similar"), [(0.0, 0), (0.25, 25), (1.0, 100)])
def test_share_of_similar_pairs(similar, n_similar):
    y = make_separable_pairs(100, 3, similar=similar, random_state=0)[1]
    assert y.dtype == np.int8
    assert (y == 1).sum() == n_similar
    assert (y == -1).sum() == 100 - n_similar


def test_distances_fill_their_intervals():
    pairs, y, M, b = make_separable_pairs(4000, 4, rank=2, random_state=0)
    distance = b - y * _margins(pairs, y, M, b)
    near, far = distance[y == 1], distance[y == -1]
    assert near.min() < 0.01 and near.max() > 0.98
    assert far.min() < 3.05 and far.max() > 5.98
    # Uniform directions: the mean of v is zero within its sampling error.
    v = pairs[:, 0] - pairs[:, 1]
    assert np.all(np.abs(v.mean(axis=0)) < 5 * v.std(axis=0) / np.sqrt(len(v)))


def test_the_unseen_part_has_the_wanted_length():
    pairs, _, M, _ = make_separable_pairs(4000, 6, rank=2, nuisance=9.0, random_state=0)
    null = np.linalg.eigh(M)[1][:, :4]
    unseen = (pairs[:, 0] - pairs[:, 1]) @ null
    assert (unseen**2).sum(axis=1).mean() == pytest.approx(9.0, rel=0.05)


def test_euclidean_distance_does_not_separate_them():
    pairs, y, _, _ = make_separable_pairs(500, 10, rank=2, random_state=0)
    squared = ((pairs[:, 0] - pairs[:, 1]) ** 2).sum(axis=1)
    best = min(np.mean((squared <= t) != (y == 1)) for t in squared)
    assert best > 0.03


def test_same_seed_same_pairs():
    first, second = (make_separable_pairs(20, 3, random_state=7) for _ in range(2))
    other = make_separable_pairs(20, 3, random_state=8)
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[2], second[2])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"n_pairs": 0}, "'n_pairs' must be an integer at least 1. Got 0"),
        ({"n_pairs": 2.5}, "'n_pairs' must be an integer"),
        ({"n_features": True}, "'n_features' must be an integer"),
        ({"rank": 6}, "'rank' must be an integer between 1 and 5. Got 6"),
        ({"rank": 0}, "'rank' must be an integer between 1 and 5"),
        ({"similar": 1.5}, r"'similar' must be a number in \[0, 1\]. Got 1.5"),
        ({"b": 1}, r"'b' must be a number in \(1, inf\). Got 1"),
        ({"b": np.nan}, r"'b' must be a number in \(1, inf\). Got nan"),
        ({"nuisance": np.inf}, r"'nuisance' must be a number in \[0, inf\). Got inf"),
        ({"nuisance": "4"}, r"'nuisance' must be a number in \[0, inf\). Got '4'"),
    ],
)
def test_bad_parameters(options, match):
    with pytest.raises(InvalidInputError, match=match):
        make_separable_pairs(**options)
