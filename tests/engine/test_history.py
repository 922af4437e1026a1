from __future__ import annotations

import numpy as np
import pytest

from samewise.engine.history import LENGTH, History


def totals(n: int, seed: int):
    rng = np.random.RandomState(seed)
    violation = rng.randn(n)
    return violation, np.ones(n), rng.choice([-1.0, 1.0], n), np.maximum(violation, 0.0)


@pytest.mark.parametrize("n", [1, 100, LENGTH, LENGTH + 1, 5 * LENGTH + 7])
@pytest.mark.parametrize("portion", [1, 13, 4096])
def test_the_curve_has_the_running_totals_in_bounded_memory(n, portion, seed):
    violation, target, sign, tau = totals(n, seed)
    history = History()
    for start in range(0, n, portion):
        part = slice(start, start + portion)
        history.record(violation[part], target[part], sign[part], tau[part])
    curve = history.curve
    at = curve["rounds"].astype(int) - 1
    assert len(at) <= LENGTH
    assert len(history._points) <= LENGTH
    assert np.all(np.diff(at) == history.every)
    assert len(at) == n // history.every
    margin = target - violation
    mistake = (margin < 0) | ((margin == 0) & (sign > 0))
    np.testing.assert_allclose(curve["loss"], np.cumsum(np.maximum(violation, 0))[at])
    np.testing.assert_array_equal(curve["mistakes"], np.cumsum(mistake)[at])
    np.testing.assert_array_equal(curve["updates"], np.cumsum(tau != 0)[at])
    assert history.rounds == n
    assert history.updates == np.count_nonzero(tau)
    assert history.loss == pytest.approx(np.maximum(violation, 0).sum())


def test_on_the_border_similar_is_right():
    history = History()
    history.record(np.ones(2), np.ones(2), np.array([-1.0, 1.0]), np.zeros(2))
    assert history.mistakes == 1
