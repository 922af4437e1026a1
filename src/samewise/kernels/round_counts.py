"""Loss, mistakes and updates of a run, added up round by round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from samewise.kernels.compiling import compiled


@compiled
def count_rounds(
    violation: NDArray[np.float64],
    target: NDArray[np.float64],
    sign: NDArray[np.float64],
    tau: NDArray[np.float64],
    rounds: int,
    every: int,
    loss: float,
    mistakes: int,
    updates: int,
    points: NDArray[np.float64],
) -> tuple[float, int, int]:
    """Add up loss, mistakes and updates, noting the totals after every so many rounds."""
    k = 0
    left = every - rounds % every
    for i in range(violation.shape[0]):
        margin = target[i] - violation[i]
        loss += max(violation[i], 0.0)
        # A pair is called similar when vᵀMv ≤ b: on the border, similar is right.
        mistakes += margin < 0.0 or (margin == 0.0 and sign[i] > 0.0)
        updates += tau[i] != 0.0
        left -= 1
        if left == 0:
            points[0, k], points[1, k] = rounds + i + 1, loss
            points[2, k], points[3, k] = mistakes, updates
            k += 1
            left = every
    return loss, mistakes, updates
