"""Matrices as files hold them."""

from __future__ import annotations

import numpy as np
import pytest

from samewise import Pairs, PassiveAggressive, load
from samewise.engine.stores import Symmetric
from samewise.exceptions import FileFormatError
from samewise.files.state import State


@pytest.mark.parametrize("place", [(0, 1), (0, 2), (1, 2)])
def test_one_number_above_the_diagonal_is_refused(place, tmp_path, monkeypatch):
    pairs = Pairs(np.diag([1.0, 2.0, 3.0]), [0, 1, 2], [1, 2, 0], [1, -1, 1])
    learner = PassiveAggressive().fit(pairs)
    learner.save(tmp_path / "sound")
    assert load(tmp_path / "sound").metric_ == learner.metric_
    monkeypatch.setattr(Symmetric, "state", lambda self: State({"lower": self.lower}))
    learner._online.mover.store.lower[place] = 0.5
    learner.save(tmp_path / "forged")
    with pytest.raises(FileFormatError, match="lower must be a lower triangle"):
        load(tmp_path / "forged")
