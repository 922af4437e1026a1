"""Facts that the files must show if they are what they claim; skipped where there are none."""

import numpy as np
import pytest

# name: (n, d, number of classes, rows of the training part or None)
SHAPES = {
    "balance_scale": (625, 4, 3, None),
    "banking77_minilm": (13083, 384, 77, 10003),
    "breast_wisconsin": (683, 9, 2, None),
    "bupa": (345, 6, 2, None),
    "caltech101_bow": (5293, 1000, 101, None),
    "caltech10_surf": (1123, 800, 10, None),
    "coil20": (1440, 1024, 20, None),
    "ecoli": (336, 7, 8, None),
    "german_numeric": (1000, 24, 2, None),
    "glass": (214, 9, 6, None),
    "heart_statlog": (270, 13, 2, None),
    "ionosphere": (351, 34, 2, None),
    "iris": (150, 4, 3, None),
    "isolet": (7797, 617, 26, 6238),
    "letter": (20000, 16, 26, 16000),
    "magic04": (19020, 10, 2, None),
    "mfeat": (2000, 649, 10, None),
    "mnist": (70000, 784, 10, 60000),
    "musk1": (476, 166, 2, None),
    "olivetti": (400, 4096, 40, None),
    "optdigits": (5620, 64, 10, 3823),
    "pima": (768, 8, 2, None),
    "satellite": (6435, 36, 6, 4435),
    "segmentation": (2310, 19, 7, 210),
    "sonar": (208, 60, 2, None),
    "soybean_large": (683, 35, 19, None),
    "soybean_small": (47, 35, 4, None),
    "spambase": (4601, 57, 2, None),
    "waveform21": (5000, 21, 3, None),
    "waveform40": (5000, 40, 3, None),
    "wdbc": (569, 30, 2, None),
    "wine": (178, 13, 3, None),
    "yaleb32": (2414, 1024, 38, None),
    "yeast": (1484, 8, 10, None),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shape_classes_and_split(real, name):
    n, d, c, n_train = SHAPES[name]
    bunch = real(name, dtype=np.float32)
    assert bunch.data.shape == (n, d)
    assert bunch.data.dtype == np.float32
    assert len(bunch.target_names) == c
    assert len(np.unique(bunch.target)) == c
    if n_train is not None:
        assert bunch.train.sum() == n_train


def _one_nn_error(bunch):
    train, test = bunch.data[bunch.train], bunch.data[~bunch.train]
    squared = (train * train).sum(axis=1) - 2 * test @ train.T
    nearest = bunch.target[bunch.train][squared.argmin(axis=1)]
    return 100 * np.mean(nearest != bunch.target[~bunch.train])


@pytest.mark.parametrize(("name", "error"), [("optdigits", 2.00), ("satellite", 10.55)])
def test_one_nearest_neighbor_error(real, name, error):
    assert _one_nn_error(real(name)) == pytest.approx(error, abs=0.005)


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("german_numeric", [700, 300]),
        ("heart_statlog", [150, 120]),
        ("wine", [59, 71, 48]),
        ("balance_scale", [49, 288, 288]),
        ("olivetti", [10] * 40),
        ("coil20", [72] * 20),
        ("mfeat", [200] * 10),
    ],
)
def test_class_counts(real, name, counts):
    assert sorted(np.bincount(real(name).target)) == sorted(counts)


def test_balance_scale_is_the_law_of_the_lever(real):
    bunch = real("balance_scale")
    left, right = bunch.data[:, 0] * bunch.data[:, 1], bunch.data[:, 2] * bunch.data[:, 3]
    side = np.where(left > right, "L", np.where(left < right, "R", "B"))
    assert (bunch.target_names[bunch.target] == side).all()
    assert len(np.unique(bunch.data, axis=0)) == 5**4


def test_isolet_groups_of_speakers(real):
    bunch = real("isolet", dtype=np.float32)
    assert np.bincount(bunch.group).tolist() == [0, 1560, 1560, 1560, 1558, 1559]
    assert ((bunch.group <= 4) == bunch.train).all()


def test_soybean_marks_missing_values(real):
    bunch = real("soybean_large")
    assert len(bunch.feature_names) == 35
    assert (bunch.data < 0).any(axis=1).sum() == 683 - 562
    assert bunch.data.min() == -1


def test_mfeat_views_cover_the_columns(real):
    bunch = real("mfeat")
    assert np.diff(bunch.view_start).tolist() == [240, 76, 216, 47, 64, 6]
    assert len(bunch.view_names) == 6


def test_sentence_embeddings_have_unit_length(real):
    bunch = real("banking77_minilm")
    np.testing.assert_allclose(np.linalg.norm(bunch.data, axis=1), 1, atol=2e-3)
    assert len(bunch.text) == 13083


def test_bag_of_visual_words_stays_sparse(real):
    bunch = real("caltech101_bow")
    assert bunch.data.format == "csr"
    assert bunch.data.nnz == len(bunch.data.data) == 536749
    assert bunch.data.data.min() > 0
    assert len(bunch.terms) == 1000
    assert len(bunch.files) == 5293


def test_news_18828_groups(real):
    bunch = real("news20_18828")
    per_group = "799 973 985 982 961 980 972 990 994 994 999 991 981 990 987 997 910 940 775 628"
    assert np.bincount(bunch.target).tolist() == [int(count) for count in per_group.split()]
    assert len(bunch.data) == len(bunch.records) == 18828


def test_news_bydate_split(real):
    bunch = real("news20_bydate")
    assert bunch.train.sum() == 11314
    assert (~bunch.train).sum() == 7532
    assert len(bunch.target_names) == 20


def test_reuters_mod_apte(real):
    bunch = real("reuters21578")
    assert len(bunch.data) == 21578
    parts = {"TRAIN": [], "TEST": []}
    for record in bunch.records:
        if record["topics_attr"] == "YES" and record["lewissplit"] in parts:
            parts[record["lewissplit"]].append(record["topics"])
    assert [len(part) for part in parts.values()] == [9603, 3299]
    assert [sum("earn" in topics for topics in part) for part in parts.values()] == [2877, 1087]
    assert {"earn", "acq"} <= set(bunch.target_names)
    assert bunch.data[0].startswith("BAHIA COCOA REVIEW\nShowers continued")
