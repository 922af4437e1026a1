import numpy as np
import pytest

from experiments._pa_data import PA_STUDY, load_pa_study
from samewise.exceptions import DatasetNotFoundError

TABLE_1 = {
    "soyS": (136, 35, 4),
    "wine": (178, 13, 3),
    "glass": (214, 9, 4),
    "ecoli": (272, 7, 3),
    "iono": (351, 34, 2),
    "balance": (625, 4, 3),
    "breast": (683, 9, 2),
    "mor": (2000, 6, 10),
    "spam": (4601, 57, 2),
    "satellite": (6435, 36, 6),
    "soyL": (266, 35, 15),
    "nist16": (2000, 256, 10),
}


def test_the_names_are_those_of_the_table_in_order():
    assert tuple(TABLE_1) == PA_STUDY


@pytest.mark.parametrize("name", PA_STUDY)
def test_numbers_of_the_paper_beside_ours(real_pa_study, name):
    bunch = real_pa_study(name)
    assert bunch.paper == TABLE_1[name]
    assert bunch.ours == (*bunch.data.shape, len(np.unique(bunch.target)))
    assert bunch.ours == ((2000, 240, 10) if name == "nist16" else bunch.paper)
    assert len(bunch.target_names) == bunch.target.max() + 1
    assert bunch.target.dtype == np.int64
    assert bunch.note.endswith(".")


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("soyS", [40, 40, 40, 16]),
        ("glass", [70, 76, 17, 51]),
        ("ecoli", [143, 77, 52]),
        ("soyL", [40, 20, 10, 10, 40, 20, 10, 10, 10, 40, 10, 16, 10, 10, 10]),
    ],
)
def test_class_sizes_of_the_made_ones(real_pa_study, name, counts):
    assert np.bincount(real_pa_study(name).target).tolist() == counts


@pytest.mark.parametrize("name", ["soyS", "soyL"])
def test_no_missing_value_is_left(real_pa_study, name):
    assert real_pa_study(name).data.min() >= 0


@pytest.mark.parametrize(("name", "view"), [("mor", slice(643, 649)), ("nist16", slice(0, 240))])
def test_views_are_the_columns_of_mfeat(real, real_pa_study, name, view):
    np.testing.assert_array_equal(real_pa_study(name).data, real("mfeat").data[:, view])


def test_rows_keep_their_label_through_selection_and_merge(folder):
    np.savez(
        folder / "ecoli.npz",
        X=[[0], [1], [2], [3]],
        y=[3, 2, 0, 1],
        classes=["cp", "im", "om", "pp"],
    )
    ecoli = load_pa_study("ecoli", dtype=np.float32)
    assert ecoli.data.ravel().tolist() == [0, 2, 3]
    assert ecoli.data.dtype == np.float32
    assert ecoli.target_names[ecoli.target].tolist() == ["pp", "cp", "im"]
    np.savez(folder / "glass.npz", X=[[0], [1], [2]], y=[2, 0, 1], classes=["1", "5", "7"])
    glass = load_pa_study("glass")
    assert glass.target_names[glass.target].tolist() == ["5-6-7", "1", "5-6-7"]
    assert glass.ours == (3, 1, 2)


def test_unknown_names(folder):
    with pytest.raises(DatasetNotFoundError, match=r"'Art100' is not a .*There are: soyS, wine"):
        load_pa_study("Art100")
    with pytest.raises(DatasetNotFoundError, match="did you mean 'satellite'"):
        load_pa_study("satelite")


def test_a_missing_file_is_named(folder):
    with pytest.raises(DatasetNotFoundError, match="no data set 'spambase'"):
        load_pa_study("spam")
