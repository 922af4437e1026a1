"""The measures of a replayed log, beside those of all of its lists."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import LiveAdapter
from samewise.adapt.replay import FORMS, LogReplay

ITEMS = np.random.default_rng(0).normal(size=(40, 4)).astype(np.float32)


# One that is not full, the last that fits, and logs whose portions were joined once and twice.
@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (120, [50, 50, 20]),
        (500, [50] * 10),
        (501, [100] * 5 + [1]),
        (1000, [100] * 10),
        (1730, [200] * 8 + [130]),
    ],
)
def test_portions_are_the_lists_in_their_order(n, sizes):
    rng = np.random.default_rng(0)
    auc, liked = rng.random((n, 3)), (rng.random((n, 3)) < 0.5).astype(float)
    # Lists without a pair have no AUC.
    auc[rng.random(n) < 0.3] = np.nan
    replay = LogReplay(LiveAdapter(items=ITEMS, random_state=0).fit(ITEMS), {})
    for row in zip(auc, liked, strict=True):
        replay._add(*map(tuple, row))
    found = replay.portions
    assert [entry["last_list"] - entry["first_list"] + 1 for entry in found] == sizes
    assert (found[0]["first_list"], found[-1]["last_list"]) == (1, n)
    for entry in found:
        rows = slice(entry["first_list"] - 1, entry["last_list"])
        for k, form in enumerate(FORMS):
            assert entry["first_liked"][form] == pytest.approx(liked[rows, k].mean())
            known = auc[rows, k][~np.isnan(auc[rows, k])]
            if len(known):
                assert entry["auc"][form] == pytest.approx(known.mean())
    for k, form in enumerate(FORMS[1:], 1):
        for measure, values in (("auc", auc[~np.isnan(auc[:, 0])]), ("first_liked", liked)):
            better, worse = (values[:, k] > values[:, 0]).sum(), (values[:, k] < values[:, 0]).sum()
            test = replay.test(form, measure)
            assert (test.n_better, test.n_worse) == (better, worse)
