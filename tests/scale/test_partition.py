"""Parts whose rows are near each other."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import LMNN
from samewise.exceptions import InvalidInputError
from samewise.scale import DaskLMNN, partition
from samewise.scale.space_partition import Cells
from tests.scale.parts import in_parts


def cell_of(x, directions, thresholds, n_cells):
    """Down the tree, one row at a time."""
    node = 0
    while node < n_cells - 1:
        node = 2 * node + (1 if directions[node] @ x < thresholds[node] else 2)
    return node - (n_cells - 1)


def test_cells_are_those_of_a_walk_down_the_tree(seed):
    X = np.random.default_rng(seed).normal(size=(500, 4)) * [3.0, 2.0, 1.0, 1.0]
    cells = Cells.of(X, 8)
    found = cells.cells(X)
    slow = [cell_of(x, cells.directions, cells.thresholds, 8) for x in X]
    assert found.tolist() == slow
    sizes = np.bincount(found, minlength=8)
    assert sizes.max() - sizes.min() <= 3
    # The first cut is along the direction of most variance.
    assert abs(cells.directions[0][0]) > 0.9


@pytest.mark.filterwarnings("ignore:LMNN has not converged")
def test_the_rows_stay_the_same_and_fewer_are_copied(client, letters):
    X, y = in_parts(3, *letters)
    near, labels = partition(X, y, 8, client=client, random_state=0)
    assert near.numblocks[0] == 8 and near.shape == X.shape
    sizes = near.chunks[0]
    assert min(sizes) > 0.7 * len(X) / 8
    known = np.column_stack(letters)
    found = np.column_stack([near.compute(), labels.compute()])
    assert np.array_equal(found[np.lexsort(found.T)], known[np.lexsort(known.T)])

    again, _ = partition(X, y, 8, client=client, random_state=0)
    assert np.array_equal(again.compute(), near.compute())

    apart, together = (
        DaskLMNN(client, max_iter=1).fit(*data).ghost_fraction_
        for data in (in_parts(8, *letters), (near, labels))
    )
    assert together < apart
    # The same problem but for the order of the rows.
    whole = LMNN(max_iter=1).fit(near.compute(), labels.compute())
    found = DaskLMNN(client, max_iter=1).fit(near, labels)
    assert found.loss_ == pytest.approx(whole.loss_, rel=1e-8)


def test_what_is_refused(client, letters):
    X, y = in_parts(2, *letters)
    for n_parts in (3, 0, 2.0):
        with pytest.raises(InvalidInputError, match=r"n_parts must be a power of 2"):
            partition(X, y, n_parts, client=client)
    with pytest.raises(InvalidInputError, match=r"512 parts need 1024 rows or more\. Got 600"):
        partition(X, y, 512, client=client)
