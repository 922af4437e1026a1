"""What learners that take examples one by one count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from samewise.engine.history import History


class Counted:
    """The counters of a learner, out of its `_history`."""

    if TYPE_CHECKING:

        @property
        def _history(self) -> History:
            """What was counted; refused before there is anything."""

    @property
    def n_updates_(self) -> int:
        """Number of examples that moved the matrix."""
        return self._history.updates

    @property
    def n_seen_(self) -> int:
        """Number of examples seen so far: labeled examples, pairs or triplets."""
        return self._history.rounds

    @property
    def n_mistakes_(self) -> int:
        """Number of examples that were judged wrongly when they were seen."""
        return self._history.mistakes

    @property
    def loss_(self) -> float:
        """Σ ℓ_t: the sum of the hinge losses of the examples when they were seen."""
        return self._history.loss

    @property
    def history_(self) -> dict[str, NDArray[np.float64]]:
        """The learning curve: running totals "rounds", "loss", "mistakes", "updates"."""
        return self._history.curve
